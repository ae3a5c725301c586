/* Declarations that all files of the simulator of gfx942 and gfx950 share. docs/SIMULATOR.md
 * describes the simulator. */
#ifndef SIM_GFX9_H
#define SIM_GFX9_H
#include "common/memory.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LANES = 64, VGPRS = 512, SGPRS = 128, MAX_LDS = 160 << 10 };
enum { VCC = 106, M0 = 124, EXEC = 126, FLAT_SCRATCH = 102 };
enum gfx9_arch { GFX942, GFX950 };

typedef struct {
    uint32_t offset, size;
    char kind[32]; /* the argument's value_kind in the code object's metadata */
} gfx9_arg;

typedef struct {
    char name[256];
    /* Offsets of the kernel's descriptor and of its first instruction in `image`. */
    uint64_t descriptor, entry;
    uint32_t lds, scratch, kernarg_size, agpr_offset;
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
    /* The segments of the code object as they lie in memory. The memory comes from
     * sim_memory_alloc, so that kernels can read it like any device memory. */
    uint8_t *image;
    uint64_t image_size;
    gfx9_kernel *kernels;
    uint32_t kernel_count;
    gfx9_function *functions;
    uint32_t function_count;
    struct {
        char name[256];
        uint64_t offset, size;
    } * objects; /* the module's variables, which hipModuleGetGlobal finds by name */
    uint32_t object_count;
    gfx9_inst *code;
    uint32_t code_count;
    /* True if the code has atomics on global memory. Their results depend on the order of
     * workgroups, so the simulator then runs the workgroups in a fixed order. */
    bool orders;
    /* For each 32-bit word of `image`, the index in `code` of the instruction that begins there, or
     * -1. */
    int32_t *index;
} gfx9_object;

/* Loads a code object. If the bytes are no code object of `arch`, returns NULL and writes the
 * reason to `error` (at least 256 bytes). */
gfx9_object *gfx9_load(const void *bytes, size_t size, enum gfx9_arch arch, char *error);
void gfx9_unload(gfx9_object *object);
/* Reads the arguments and sizes of the kernels from the msgpack data of a note section. */
bool gfx9_metadata(gfx9_object *object, const uint8_t *bytes, size_t size);
/* Fills `code` and `index` of a code object. On failure returns false and writes the reason to
 * `error`. */
bool gfx9_decode(gfx9_object *object, char *error);

enum gfx9_type { N, F16, F32, F64, U16, I16, U32, I32, U64, I64, PK };
enum gfx9_place { NOWHERE, VGPR, SGPR, CONSTANT, SCC_BIT, OFF };

typedef struct {
    /* the kind of operand (enum gfx9_place), and its number of registers */
    uint8_t place, count;
    uint16_t reg; /* the first register; AGPRs have the numbers 256 to 511 */
    uint8_t neg, abs, sext, sel;
    /* this operand's bits of the modifiers op_sel, op_sel_hi, neg_lo and neg_hi */
    uint8_t half_lo, half_hi, neg_lo, neg_hi;
    bool literal, real;
    double number;
    uint64_t value;
} gfx9_operand;

/* The modifier SDWA selects a part of a register by a number: 0 to 3 for BYTE_0 to BYTE_3, 4 and 5
 * for WORD_0 and WORD_1, 6 for DWORD. */
enum { SEL_DWORD = 6 };
/* The DPP pattern, which is stored in the low byte of dpp_control. The pattern's argument is stored
 * above it. */
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

/* The cost class of an instruction in the time model. */
enum gfx9_cost {
    COST_SALU,
    COST_VALU,
    COST_VALU64,
    COST_TRANS, /* a quarter of the rate: transcendental functions, 32-bit integer products */
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
    uint8_t d, a, b, c; /* the types of the result and of the three sources (enum gfx9_type) */
    uint8_t cost;
    /* For a memory instruction: the bytes per lane, and how loaded bytes become a register
     * (access.h). */
    int32_t size, form;
};

struct gfx9_inst {
    const gfx9_row *row;
    char *text;
    uint64_t address; /* the instruction's address in the code object's image */
    uint32_t word[4];
    /* The instruction's size in bytes, its number of operands, and the index in `op` of its first
     * source. */
    uint8_t bytes, operand_count, first;
    bool sdwa, dpp, clamp, vop3;
    uint8_t omod, dst_sel, dst_unused;
    uint8_t dpp_rows, dpp_banks, dpp_bound;
    int32_t dpp_control;
    uint8_t bitop3, cbsz, abid, blgp, fmt[2];
    bool offen, idxen, lds, glc, offset_reg;
    int32_t offset, offset1, target;
    gfx9_operand op[8];
};

extern uint64_t gfx9_shared_base, gfx9_private_base;

enum { STOP_NO, STOP_END, STOP_BARRIER, STOP_ERROR, STOP_YIELD };

typedef struct {
    /* The amounts that the operation adds to the wait counters vmcnt and lgkmcnt, and whether it is
     * a scalar load or a load to LDS. `reg` and `count` are its destination registers. */
    uint8_t vm, lgkm, smem, to_lds;
    uint16_t reg, count;
    uint64_t exec;
    uint32_t lds_at[LANES];
    const gfx9_inst *inst;
    uint32_t mask; /* the bits of each register that the operation changes */
    uint32_t data[16][LANES];
} gfx9_pending;

typedef struct gfx9_group gfx9_group;

struct gfx9_wave {
    uint32_t v[VGPRS][LANES];
    uint32_t s[SGPRS] __attribute__((aligned(8)));
    uint32_t lane[LANES]; /* for each lane, all ones if its bit in lane_exec is set, else 0 */
    /* lane_exec is the mask for which `lane` was computed. dpp_lanes are the lanes that the current
     * instruction's DPP modifier allows to write. */
    uint64_t lane_exec, dpp_lanes;
    uint32_t scc, mode, pc, stop;
    /* The mode that s_set_gpr_idx has set: bits 1, 2 and 4 add the index in M0 to the register
     * numbers of the sources, bit 8 to that of the result. */
    uint32_t indexed;
    gfx9_group *group;
    uint8_t *scratch;
    uint32_t scratch_size, id;
    uint64_t steps;
    gfx9_pending *pending; /* memory operations that have not finished, the oldest first */
    uint32_t pending_count, pending_room;
    uint8_t late_v[VGPRS], late_s[SGPRS];
    uint64_t random;
    uint64_t written[VGPRS]; /* for each VGPR, a mask of the lanes whose value has been written */
    /* The number of wait states so far: one per instruction, plus those of s_nop. */
    uint64_t issued;
    /* For each VGPR that a matrix instruction writes, the first wait state in which another
     * instruction may access it. */
    uint64_t ready[VGPRS];
    struct gfx9_trace *trace; /* what the time model records, or NULL (time.h) */
};

struct gfx9_group {
    gfx9_object *object;
    const gfx9_kernel *kernel;
    uint8_t *lds;
    uint32_t lds_size, wave_count, epoch;
    /* the access history of LDS, one record per byte; NULL if checks are off */
    struct gfx9_shadow *shadow;
    gfx9_wave *waves;
    uint32_t checks;
    char *error; /* a buffer of 512 bytes for the message of the first failure */
};

/* Stops the wave with an error. The message is the formatted text, followed by the kernel, the
 * address and the instruction. */
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
/* Returns the mask EXEC as an array with one word per lane: all ones if the lane is active, else
 * 0. */
const uint32_t *gfx9_lane_masks(gfx9_wave *w);

typedef union {
    uint32_t u[2][LANES];
    uint64_t u64[LANES];
} gfx9_vector;
/* Returns a source as an array over lanes: 32 bits per lane, or 64 for 64-bit types. The array is
 * the register itself or, if modifiers change the value, a copy in `room`. */
const void *gfx9_fetch(gfx9_wave *w, const gfx9_inst *inst, const gfx9_operand *o, int type,
                       gfx9_vector *room);
void gfx9_store(gfx9_wave *w, const gfx9_inst *inst, const gfx9_operand *o, int type,
                gfx9_vector *value);
uint64_t gfx9_scalar(const gfx9_wave *w, const gfx9_operand *o, int type);
void gfx9_write_scalar(gfx9_wave *w, const gfx9_operand *o, int bits, uint64_t value);
/* Returns the bits of a constant operand for an instruction that reads it as `type`. */
uint64_t gfx9_constant(const gfx9_operand *o, int type);

enum { CHECK_STATES = 8, CHECK_WAITS = 1, CHECK_RACES = 2, CHECK_UNWRITTEN = 4 };
void gfx9_deliver(gfx9_wave *w, uint32_t vm, uint32_t lgkm);
gfx9_pending *gfx9_postpone(gfx9_wave *w);
void gfx9_check_registers(gfx9_wave *w, const gfx9_inst *inst);
void gfx9_lds_touch(gfx9_wave *w, const gfx9_inst *inst, uint32_t at, uint32_t bytes, uint32_t lane,
                    int write, const void *data);
/* Adds `change` to the number of pending loads that will write these bytes of LDS. */
void gfx9_lds_late(gfx9_wave *w, uint32_t at, uint32_t bytes, int change);

/* Says whether a launch is timed. With TIMING_SAMPLE only the workgroups that the model needs are
 * executed, so the launch's results are incomplete. */
enum gfx9_timed { TIMING_OFF, TIMING_ALL, TIMING_SAMPLE };
enum { STALL_VMEM, STALL_LGKM, STALL_BARRIER, STALL_MATRIX, STALL_ISSUE, STALLS };
/* The time of a launch and what it consists of. All fields are double, because bsmm_sim_times
 * copies them as an array. All fields but `seconds`, `cycles` and `rounds` are sums over the
 * workgroups that the model has replayed. */
typedef struct {
    double seconds; /* includes the cost of a launch; 0 if the launch was not timed */
    /* `cycles`: cycles of the whole launch, without the fixed cost of a launch. `replayed`: cycles
     * of the workgroups that were replayed. */
    double cycles, replayed;
    double rounds; /* replayed rounds of workgroups are repeated this many times in `cycles` */
    double groups, launched;          /* replayed workgroups, and those of the launch */
    double cus, waves;                /* the CUs that ran the replayed workgroups; waves on a CU */
    double instructions, matrix_busy; /* cycles in which matrix units work */
    double lds_busy, lds_conflicts;   /* cycles of LDS, and those of them due to bank conflicts */
    double l1_bytes, l2_bytes, mall_bytes,
        hbm_bytes;         /* bytes that each level has delivered or taken */
    double stalls[STALLS]; /* cycles in which waves wait, by cause */
} gfx9_times;
/* Returns the passes (of 4 cycles) that a matrix instruction takes. */
uint32_t gfx9_passes(const gfx9_inst *inst);

typedef struct {
    uint32_t grid[3], block[3]; /* the number of workgroups, and of threads per workgroup */
    uint32_t dynamic_lds;
    const void *kernarg; /* the kernel's explicit arguments as they lie in memory */
    size_t kernarg_size;
    uint32_t checks;
    /* The seed that varies the order of waves, and the largest number of instructions that a wave
     * may execute (0: the default). */
    uint64_t seed, limit;
    uint64_t steps; /* out: the number of instructions that the launch has executed */
    enum gfx9_timed timed;
    gfx9_times times; /* out: the time of the launch */
} gfx9_launch;
bool gfx9_dispatch(gfx9_object *object, const gfx9_kernel *kernel, gfx9_launch *launch,
                   char *error);

const gfx9_row *gfx9_find_row(const char *name, size_t length);
const char *gfx9_row_name(size_t number);
/* A table of opcodes. gfx9_find_row searches all tables in a fixed order. */
typedef struct {
    const gfx9_row *rows;
    size_t count;
} gfx9_table;
extern const gfx9_table gfx9_salu_table, gfx9_valu_table, gfx9_special_table, gfx9_memory_table,
    gfx9_mfma_table, gfx9_lds_table, gfx9_convert_table;
#endif
