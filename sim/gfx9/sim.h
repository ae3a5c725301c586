/* Declares the types and functions that all files of the simulator of gfx942 and gfx950 share.
 * docs/SIMULATOR.md describes the simulator. */
#ifndef SIM_GFX9_H
#define SIM_GFX9_H
#include "common/clock.h"
#include "common/fidelity.h"
#include "common/memory.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LANES = 64, VGPRS = 512, SGPRS = 128, MAX_LDS = 160 << 10, HAZARD_KINDS = 6 };
enum { MAX_PENDING = 128 };
enum { VCC = 106, M0 = 124, EXEC = 126, FLAT_SCRATCH = 102 };
enum gfx9_arch { GFX942, GFX950 };

typedef struct {
    uint32_t offset, size;
    char kind[32]; /* `kind` holds the argument's value_kind in the code object's metadata. */
} gfx9_arg;

typedef struct {
    char name[256];
    /* `descriptor` and `entry` are the offsets of the kernel's descriptor and of its first
     * instruction in `image`, in bytes. */
    uint64_t descriptor, entry;
    uint32_t lds, scratch, kernarg_size;
    /* A wave has `vgprs` VGPRs. The AGPRs follow them in the same register file. */
    uint32_t vgprs, agprs;
    uint32_t rsrc1, rsrc2;
    uint16_t properties, preload;
    uint32_t arg_count;
    gfx9_arg *args;
} gfx9_kernel;

typedef struct {
    uint64_t start, size;
    char name[256];
} gfx9_function;

typedef struct gfx9_inst gfx9_inst;

typedef struct {
    enum gfx9_arch arch;
    /* `image` points to the segments of the code object as they lie in memory. The memory comes
     * from sim_memory_alloc, so that kernels can read it as device memory. */
    uint8_t *image;
    uint64_t image_size;
    gfx9_kernel *kernels;
    uint32_t kernel_count;
    gfx9_function *functions;
    uint32_t function_count;
    struct {
        char name[256];
        uint64_t offset, size;
    } * objects; /* `objects` lists the module's variables, which hipModuleGetGlobal finds by name.
                  */
    uint32_t object_count;
    gfx9_inst *code;
    uint32_t code_count;
    /* `orders` is true if the code has atomics on global memory. Their results depend on the order
     * of workgroups, so the simulator then runs the workgroups in a fixed order. */
    bool orders;
    /* `index` holds for each 32-bit word of `image` the index in `code` of the instruction that
     * begins there, or -1. */
    int32_t *index;
    /* `lines` holds the source line of each instruction (lines.h), or is NULL. */
    struct gfx9_lines *lines;
} gfx9_object;

/* Loads a code object. If the bytes are not a code object of architecture `arch`, returns NULL and
 * writes the reason to `error`, which has at least 256 bytes. */
gfx9_object *gfx9_load(const void *bytes, size_t size, enum gfx9_arch arch, char *error);
void gfx9_unload(gfx9_object *object);
/* Reads the arguments and sizes of the kernels from a code object's metadata, which is in msgpack
 * format. */
bool gfx9_metadata(gfx9_object *object, const uint8_t *bytes, size_t size);
/* Fills `code` and `index` of a code object. On failure returns false and writes the reason to
 * `error`. */
bool gfx9_decode(gfx9_object *object, char *error);

enum gfx9_type { N, F16, F32, F64, U16, I16, U32, I32, U64, I64, PK };
enum gfx9_place { NOWHERE, VGPR, SGPR, CONSTANT, SCC_BIT, OFF };

typedef struct {
    /* `place` is the kind of operand (enum gfx9_place), and `count` is its number of registers. */
    uint8_t place, count;
    /* `reg` is the number of the first register. AGPRs have the numbers 256 to 511. */
    uint16_t reg;
    uint8_t neg, abs, sext, sel;
    /* `half_lo`, `half_hi`, `neg_lo` and `neg_hi` hold this operand's bits of the modifiers op_sel,
     * op_sel_hi, neg_lo and neg_hi. */
    uint8_t half_lo, half_hi, neg_lo, neg_hi;
    bool literal, real;
    double number;
    uint64_t value;
} gfx9_operand;

/* The modifier SDWA selects a part of a register by a number. Numbers 0 to 3 are BYTE_0 to BYTE_3,
 * 4 and 5 are WORD_0 and WORD_1, and 6 is DWORD. */
enum { SEL_DWORD = 6 };
/* Names the DPP patterns. The low byte of dpp_control holds the pattern, and the higher bits hold
 * the pattern's argument. */
enum {
    DPP_QUAD,
    DPP_ROW_SHL,
    DPP_ROW_SHR,
    DPP_ROW_ROR,
    DPP_WAVE_SHL,
    DPP_WAVE_ROL,
    DPP_WAVE_SHR,
    DPP_WAVE_ROR,
    DPP_MIRROR,
    DPP_HALF_MIRROR,
    DPP_BCAST15,
    DPP_BCAST31,
    DPP_NEWBCAST
};

typedef struct gfx9_wave gfx9_wave;
typedef struct gfx9_row gfx9_row;
typedef void (*gfx9_execute)(gfx9_wave *wave, const gfx9_inst *inst);
typedef void (*gfx9_lanes)(void *d, const void *a, const void *b, const void *c);

/* Names the cost classes of instructions in the time model. A class determines the unit and the
 * cycles of an instruction. */
enum gfx9_cost {
    COST_SALU,
    COST_VALU,
    COST_VALU64,
    /* COST_TRANS: the instruction has a quarter of the VALU rate. Such instructions are
     * transcendental functions and 32-bit integer products. */
    COST_TRANS,
    COST_MFMA,
    COST_LDS,
    COST_VMEM,
    COST_SMEM,
    COST_BRANCH
};

struct gfx9_row {
    const char *name;
    gfx9_execute execute;
    union {
        gfx9_lanes lanes;
        void (*scalar)(gfx9_wave *wave, const gfx9_inst *inst, uint64_t a, uint64_t b);
        int what;
    };
    /* `d`, `a`, `b` and `c` are the types of the result and of the three sources (enum
     * gfx9_type). */
    uint8_t d, a, b, c;
    uint8_t cost;
    /* For a memory instruction, `size` is the number of bytes per lane, and `form` says how loaded
     * bytes are written to a register (access.h). */
    int32_t size, form;
};

/* The fields that every execution of an instruction reads come first, so that they share few cache
 * lines. */
struct gfx9_inst {
    const gfx9_row *row;
    sim_record *record; /* `record` counts executions of the opcode, or is NULL. */
    /* `hazards` has a bit for each row of hazards.c that concerns this instruction. */
    uint32_t hazards;
    uint8_t effects;  /* `effects` tells what the instruction does to registers. */
    uint8_t accesses; /* `accesses` has the bits ACCESS_... of a memory instruction. */
    /* `bytes` is the instruction's size in bytes, `operand_count` is its number of operands, and
     * `first` is the index in `op` of its first source. */
    uint8_t bytes, operand_count, first;
    /* `vgprs` and `agprs` are 1 more than the highest VGPR and AGPR of the operands, or 0. */
    uint16_t vgprs, agprs;
    bool sdwa, dpp, clamp, vop3;
    uint8_t omod, dst_sel, dst_unused;
    uint8_t dpp_rows, dpp_banks, dpp_bound;
    int32_t dpp_control;
    uint8_t bitop3, cbsz, abid, blgp, fmt[2];
    bool offen, idxen, lds, glc, offset_reg;
    int32_t offset, offset1, target;
    gfx9_operand op[8];
    uint32_t word[4];
    uint64_t address; /* `address` is the instruction's address in the code object's image. */
    char *text;
};
/* Tells how a memory instruction accesses registers. With ACCESS_LOADS, the instruction writes
 * operand 0 and does not read it. With ACCESS_STORES, it reads operand 0. The simulator stops if a
 * memory instruction reads a register that was never written. With ACCESS_ADDRESS_ONLY, it checks
 * only operand 0 in this way. */
enum { ACCESS_LOADS = 1, ACCESS_STORES = 2, ACCESS_ADDRESS_ONLY = 4 };

extern uint64_t gfx9_shared_base, gfx9_private_base;

enum { STOP_NO, STOP_END, STOP_BARRIER, STOP_ERROR, STOP_YIELD };

typedef struct {
    /* `vm` and `lgkm` are the amounts that the memory operation adds to the wait counters vmcnt
     * and lgkmcnt. `smem` and `to_lds` tell if it is a scalar load or a load to LDS. `reg` and
     * `count` give its destination registers. */
    uint8_t vm, lgkm, smem, to_lds;
    uint16_t reg, count;
    uint64_t exec;
    uint32_t lds_at[LANES];
    const gfx9_inst *inst;
    uint32_t mask; /* `mask` holds the bits of each register that the memory operation changes. */
    uint32_t data[16][LANES];
} gfx9_pending;

typedef struct gfx9_group gfx9_group;

struct gfx9_wave {
    uint32_t v[VGPRS][LANES];
    uint32_t s[SGPRS] __attribute__((aligned(8)));
    /* lane[l] is all ones if bit l of lane_exec is set, else 0. */
    uint32_t lane[LANES];
    /* lane_exec is the lane mask from which the array `lane` was computed. dpp_lanes are the lanes
     * that the DPP modifier of the current instruction allows to write. */
    uint64_t lane_exec, dpp_lanes;
    uint32_t scc, mode, pc, stop;
    /* `indexed` holds the mode that s_set_gpr_idx has set. The bits 0x1, 0x2 and 0x4 add the index
     * in M0 to the register numbers of the three sources. The bit 0x8 adds the index to the
     * register number of the result. */
    uint32_t indexed;
    gfx9_group *group;
    uint8_t *scratch;
    uint32_t scratch_size, id;
    uint32_t vgprs, agprs; /* The kernel allocates `vgprs` VGPRs and `agprs` AGPRs. */
    uint64_t steps;
    /* `pending` holds the memory operations that have not finished, in no particular order.
     * pending_order lists them from the oldest to the newest. */
    gfx9_pending *pending;
    uint32_t pending_count, pending_room;
    /* pending_order[k] is the index in `pending` of operation number k, counted from the oldest.
     * For k >= pending_count, it is the index of a free element of `pending`. */
    uint8_t pending_order[MAX_PENDING];
    uint8_t late_v[VGPRS], late_s[SGPRS];
    uint64_t random;
    uint64_t written[VGPRS]; /* `written` holds for each VGPR a mask of the lanes that have written
                                it. */
    /* `issued` counts the wait states so far, i.e. one for each instruction plus those of s_nop. */
    uint64_t issued;
    /* For each VGPR that a matrix instruction has written or has read as C, ready[v] is the first
     * wait state in which an instruction may read VGPR v, and free[v] is the first one in which an
     * instruction may write it. */
    uint64_t ready[VGPRS], free[VGPRS];
    /* From the wait state `matrix_until` on, no matrix instruction delays a later access, so the
     * simulator checks no delays of matrix instructions. No element of `ready`, `free`, ready_as_c
     * and ready_as_own_c lies later than `matrix_until`. The simulator computes it with the sum of
     * all kinds of delays of a matrix instruction, so it may be later than necessary. */
    uint64_t matrix_until;
    /* These arrays are for a matrix instruction (the reader) that reads the result of an earlier
     * matrix instruction as its C. `ready` does not apply to it. If VGPR v belongs to the result of
     * a matrix instruction, result_of[v] is the first register of this result. The two other arrays
     * hold the first wait state, in the count of `issued`, in which the reader may read VGPR v. If
     * its C begins at the first register of the earlier result, this is ready_as_own_c[v].
     * Otherwise it is ready_as_c[1][v] if the reader is an XDL instruction, else
     * ready_as_c[0][v]. */
    uint16_t result_of[VGPRS];
    uint64_t ready_as_c[2][VGPRS], ready_as_own_c[VGPRS];
    /* Hazards depend on the distance between two instructions, counted in wait states.
     * touched[k][r] is the wait state in which an instruction last had an effect of kind k (BY_...
     * in hazards.c) on register r, e.g. wrote it. The registers are the VGPRs, then the SGPRs, then
     * MODE. */
    uint64_t touched[HAZARD_KINDS][VGPRS + SGPRS + 1];
    /* `last_effect` holds, for each kind of effect (BY_... in hazards.c), the wait state in which
     * an instruction last had this effect on any register. */
    uint64_t last_effect[HAZARD_KINDS];
    /* `trace` points to the trace that the time model records (time.h), or is NULL. */
    struct gfx9_trace *trace;
};

struct gfx9_group {
    gfx9_object *object;
    const gfx9_kernel *kernel;
    uint8_t *lds;
    uint32_t lds_size, wave_count, epoch;
    /* `shadow` records the last accesses to each byte of LDS, or is NULL if checks are off. */
    struct gfx9_shadow *shadow;
    gfx9_wave *waves;
    uint32_t checks;
    /* `seed` is the seed of the launch. It varies the order in which matrix instructions add
     * products. */
    uint64_t seed;
    char *error; /* `error` receives the message of the first failure. The buffer has 512 bytes. */
};

/* Stops the wave with an error. The message contains the formatted text, the kernel, the address,
 * the line of source if the code object has line tables, and the instruction. */
void gfx9_stop(gfx9_wave *wave, const gfx9_inst *inst, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void gfx9_run(gfx9_wave *wave, uint64_t budget);

static inline uint64_t gfx9_exec(const gfx9_wave *w) {
    return w->s[EXEC] | (uint64_t)w->s[EXEC + 1] << 32;
}
static inline uint64_t gfx9_s64(const gfx9_wave *w, uint32_t reg) {
    return w->s[reg] | (uint64_t)w->s[reg + 1] << 32;
}
static inline void gfx9_set64(gfx9_wave *w, uint32_t reg, uint64_t value) {
    w->s[reg] = (uint32_t)value, w->s[reg + 1] = (uint32_t)(value >> 32);
}
/* Returns the lane mask EXEC as an array with one word per lane. The word is all ones if the lane
 * is active, else 0. */
const uint32_t *gfx9_lane_masks(gfx9_wave *w);

typedef union {
    uint32_t u[2][LANES];
    uint64_t u64[LANES];
} gfx9_vector;
/* Returns the address of a source of a vector instruction, as an array with one entry per lane: 32
 * bits, or 64 bits for 64-bit types. This is the register itself, or a copy in *room if modifiers
 * such as neg change the value. */
const void *gfx9_fetch(gfx9_wave *w, const gfx9_inst *inst, const gfx9_operand *o, int type,
                       gfx9_vector *room);
void gfx9_store(gfx9_wave *w, const gfx9_inst *inst, const gfx9_operand *o, int type,
                gfx9_vector *value);
uint64_t gfx9_scalar(const gfx9_wave *w, const gfx9_operand *o, int type);
void gfx9_write_scalar(gfx9_wave *w, const gfx9_operand *o, int bits, uint64_t value);
/* Returns the bits of a constant operand as an instruction reads it with the type `type`. */
uint64_t gfx9_constant(const gfx9_operand *o, int type);

enum { CHECK_STATES = 8, CHECK_WAITS = 1, CHECK_RACES = 2, CHECK_UNWRITTEN = 4 };
void gfx9_deliver(gfx9_wave *w, uint32_t vm, uint32_t lgkm);
gfx9_pending *gfx9_postpone(gfx9_wave *w);
void gfx9_check_registers(gfx9_wave *w, const gfx9_inst *inst);
void gfx9_lds_touch(gfx9_wave *w, const gfx9_inst *inst, uint32_t at, uint32_t bytes, uint32_t lane,
                    int write, const void *data);
/* Adds `change` to the number of pending loads that will write `bytes` bytes of LDS at address
 * `at`. */
void gfx9_lds_late(gfx9_wave *w, uint32_t at, uint32_t bytes, int change);

enum { STALL_VMEM, STALL_LGKM, STALL_BARRIER, STALL_MATRIX, STALL_ISSUE };
/* Holds the time of a launch and its causes. All fields are double, because bsmm_sim_times copies
 * them as an array. All fields except `seconds`, `cycles` and `rounds` are sums over the
 * workgroups that the model has replayed. */
typedef struct {
    double seconds; /* `seconds` includes the fixed cost of a launch. It is 0 if the launch was not
                       timed. */
    /* `cycles` counts the cycles of the whole launch, without the fixed cost of a launch.
     * `replayed` counts the cycles of the workgroups that the model has replayed. */
    double cycles, replayed;
    /* `rounds` is the number of rounds of workgroups that the launch takes. A round is as many
     * workgroups as run at once, and the model replays one round. */
    double rounds;
    /* `groups` counts the replayed workgroups, and `launched` counts all workgroups of the launch.
     */
    double groups, launched;
    /* `cus` counts the compute units that ran the replayed workgroups, and `waves` counts the waves
     * on a compute unit. */
    double cus, waves;
    /* `matrix_busy` counts the cycles in which matrix units work. */
    double instructions, matrix_busy;
    /* `lds_busy` counts the cycles in which LDS works. `lds_conflicts` counts the part of them that
     * bank conflicts cause. */
    double lds_busy, lds_conflicts;
    /* `l1_bytes`, `l2_bytes`, `mall_bytes` and `hbm_bytes` count the bytes that each cache level
     * and HBM have delivered or received. */
    double l1_bytes, l2_bytes, mall_bytes, hbm_bytes;
    double stalls[STALLS]; /* `stalls` counts the cycles in which waves wait, for each cause. */
} gfx9_times;
/* Returns the number of passes (of 4 cycles each) that a matrix instruction takes. */
uint32_t gfx9_passes(const gfx9_inst *inst);
/* Returns true for the matrix instructions whose inputs are neither f32 nor f64. */
bool gfx9_is_xdl(const gfx9_inst *inst);

typedef struct {
    /* `grid` is the number of workgroups, and `block` is the number of threads of a workgroup, in
     * three dimensions. */
    uint32_t grid[3], block[3];
    uint32_t dynamic_lds;
    const void
        *kernarg; /* `kernarg` points to the kernel's explicit arguments as they lie in memory. */
    size_t kernarg_size;
    uint32_t checks;
    /* `seed` varies the order of waves, and the order in which MFMA adds. `limit` is the largest
     * number of instructions that a wave may execute, or 0 for the default. */
    uint64_t seed, limit;
    /* The simulator writes the number of instructions that the launch has executed to `steps`. */
    uint64_t steps;
    enum sim_timed timed;
    gfx9_times times; /* The simulator writes the time of the launch to `times`. */
    /* The simulator writes the lines at which waves wait longest to `hot`, the longest first. */
    sim_hot hot[HOT_LINES];
} gfx9_launch;
bool gfx9_dispatch(gfx9_object *object, const gfx9_kernel *kernel, gfx9_launch *launch,
                   char *error);

/* Returns the counter of an instruction's opcode. SDWA, DPP and loads to LDS count as opcodes of
 * their own, and f8f6f4 counts for each pair of element types. */
sim_record *gfx9_record_of(const gfx9_inst *inst);
const gfx9_row *gfx9_find_row(const char *name, size_t length);
const char *gfx9_row_name(size_t number);
/* Holds a table of opcodes. gfx9_find_row searches all tables in a fixed order. */
typedef struct {
    const gfx9_row *rows;
    size_t count;
} gfx9_table;
extern const gfx9_table gfx9_salu_table, gfx9_valu_table, gfx9_special_table, gfx9_memory_table,
    gfx9_mfma_table, gfx9_lds_table, gfx9_convert_table;
#endif
