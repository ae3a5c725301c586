/* The simulator of gfx942 and gfx950: what its files share. docs/SIMULATOR.md says what is
 * executed. */
#ifndef SIM_GFX9_H
#define SIM_GFX9_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LANES = 64, VGPRS = 512, SGPRS = 128, MAX_LDS = 160 << 10 };
enum { VCC = 106, M0 = 124, EXEC = 126, FLAT_SCRATCH = 102 };
enum gfx9_arch { GFX942, GFX950 };

/* ---- code objects ---- */
typedef struct {
    uint32_t offset, size;
    char kind[32]; /* value_kind of the metadata */
} gfx9_arg;

typedef struct {
    char name[256];
    uint64_t descriptor, entry; /* offsets in the image */
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
    uint8_t *image; /* segments as they lie in memory; allocated by gfx9_memory_alloc */
    uint64_t image_size;
    gfx9_kernel *kernels;
    uint32_t kernel_count;
    gfx9_function *functions;
    uint32_t function_count;
    struct {
        char name[256];
        uint64_t offset, size;
    } * objects; /* variables, for hipModuleGetGlobal */
    uint32_t object_count;
    gfx9_inst *code;
    uint32_t code_count;
    bool orders;    /* has instructions whose result depends on the order of workgroups: atomics */
    int32_t *index; /* instruction that starts at a word of the image, or -1 */
} gfx9_object;

/* NULL, and the reason in `error` (at least 256 bytes), if the bytes are no code object of `arch`.
 */
gfx9_object *gfx9_load(const void *bytes, size_t size, enum gfx9_arch arch, char *error);
void gfx9_unload(gfx9_object *object);
/* Reads kernels' arguments and sizes from a note's msgpack. */
bool gfx9_metadata(gfx9_object *object, const uint8_t *bytes, size_t size);
/* Fills code and index. */
bool gfx9_decode(gfx9_object *object, char *error);

/* ---- decoded instructions ---- */
enum gfx9_type { N, F16, F32, F64, U16, I16, U32, I32, U64, I64, PK };
enum gfx9_place { NOWHERE, VGPR, SGPR, CONSTANT, SCC_BIT, OFF };

typedef struct {
    uint8_t place, count; /* registers */
    uint16_t reg;         /* AGPRs are VGPRs 256 to 511 */
    uint8_t neg, abs, sext, sel;
    uint8_t half_lo, half_hi, neg_lo, neg_hi; /* op_sel, op_sel_hi */
    bool literal, real;
    double number;
    uint64_t value;
} gfx9_operand;

enum { SEL_DWORD = 6 }; /* SDWA: BYTE_0..3, WORD_0, WORD_1, DWORD */
/* Low byte of dpp_control; its argument follows in the bits above. */
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

/* What an instruction costs: the classes of the model of time. */
enum gfx9_cost {
    COST_SALU,
    COST_VALU,
    COST_VALU64,
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
    uint8_t d, a, b, c; /* types */
    uint8_t cost;
    int32_t size, form; /* of memory: bytes a lane, and how they are widened */
};

struct gfx9_inst {
    const gfx9_row *row;
    char *text;
    uint64_t address; /* in the image */
    uint32_t word[4];
    uint8_t bytes, operand_count, first; /* first: of the sources */
    bool sdwa, dpp, clamp, vop3;
    uint8_t omod, dst_sel, dst_unused;
    uint8_t dpp_rows, dpp_banks, dpp_bound;
    int32_t dpp_control;
    uint8_t bitop3, cbsz, abid, blgp, fmt[2];
    bool offen, idxen, lds, glc, offset_reg;
    int32_t offset, offset1, target;
    gfx9_operand op[8];
};

/* ---- memory ---- */
void *gfx9_memory_alloc(size_t bytes);
bool gfx9_memory_free(void *pointer);
/* The allocation that holds `address`: its first byte and its size; false if there is none. */
bool gfx9_memory_find(uint64_t address, uint64_t *begin, uint64_t *size);
extern uint64_t gfx9_shared_base, gfx9_private_base;

/* ---- waves ---- */
enum { STOP_NO, STOP_END, STOP_BARRIER, STOP_ERROR, STOP_YIELD };

typedef struct {
    uint8_t vm, lgkm, smem, to_lds; /* which counters it holds, and where it goes */
    uint16_t reg, count;
    uint64_t exec;
    uint32_t lds_at[LANES];
    const gfx9_inst *inst;
    uint32_t mask; /* bits of each register that change */
    uint32_t data[16][LANES];
} gfx9_pending;

typedef struct gfx9_group gfx9_group;

struct gfx9_wave {
    uint32_t v[VGPRS][LANES];
    uint32_t s[SGPRS] __attribute__((aligned(8)));
    uint32_t lane[LANES]; /* all ones where EXEC is set, for the EXEC that it was made from */
    uint64_t lane_exec, dpp_lanes; /* lanes that DPP lets write */
    uint32_t scc, mode, pc, stop;
    uint32_t
        indexed; /* bits of s_set_gpr_idx: 1, 2, 4 the sources, 8 the result; M0 holds the index */
    gfx9_group *group;
    uint8_t *scratch;
    uint32_t scratch_size, id;
    uint64_t steps;
    gfx9_pending *pending; /* oldest first */
    uint32_t pending_count, pending_room;
    uint8_t late_v[VGPRS], late_s[SGPRS];
    uint64_t random;
    uint64_t written[VGPRS]; /* lanes that were written */
    uint64_t issued;         /* wait states so far: one an instruction, and s_nop's */
    uint64_t
        ready[VGPRS]; /* the first wait state that may touch what a matrix instruction writes */
};

struct gfx9_group {
    gfx9_object *object;
    const gfx9_kernel *kernel;
    uint8_t *lds;
    uint32_t lds_size, wave_count, epoch;
    struct gfx9_shadow *shadow; /* of LDS, a record a byte; NULL without checks */
    gfx9_wave *waves;
    uint32_t checks;
    char *error; /* 512 bytes: the first failure */
};

/* Stops the wave; the message begins with what and goes on with kernel, address and instruction. */
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
/* EXEC as a mask a lane. */
const uint32_t *gfx9_lane_masks(gfx9_wave *w);

/* ---- operands ---- */
typedef union {
    uint32_t u[2][LANES];
    uint64_t u64[LANES];
} gfx9_vector;
/* One source as the lanes' functions take it: 32 bits a lane, or 64 for 64-bit types; in `room` or
 * where the register lies. */
const void *gfx9_fetch(gfx9_wave *w, const gfx9_inst *inst, const gfx9_operand *o, int type,
                       gfx9_vector *room);
void gfx9_store(gfx9_wave *w, const gfx9_inst *inst, const gfx9_operand *o, int type,
                gfx9_vector *value);
uint64_t gfx9_scalar(const gfx9_wave *w, const gfx9_operand *o, int type);
void gfx9_write_scalar(gfx9_wave *w, const gfx9_operand *o, int bits, uint64_t value);
/* The value of a constant as an operand of the type. */
uint64_t gfx9_constant(const gfx9_operand *o, int type);
/* Register row r of an operand, for memory and MFMA: NULL for constants. */
static inline uint32_t *gfx9_row_of(gfx9_wave *w, const gfx9_operand *o, uint32_t r) {
    return w->v[o->reg + r];
}

/* ---- checks ---- */
enum { CHECK_STATES = 8, CHECK_WAITS = 1, CHECK_RACES = 2, CHECK_UNWRITTEN = 4 };
void gfx9_deliver(gfx9_wave *w, uint32_t vm, uint32_t lgkm);
gfx9_pending *gfx9_postpone(gfx9_wave *w);
void gfx9_check_registers(gfx9_wave *w, const gfx9_inst *inst);
void gfx9_lds_touch(gfx9_wave *w, const gfx9_inst *inst, uint32_t at, uint32_t bytes, uint32_t lane,
                    int write, const void *data);
/* Counts loads to LDS that are under way. */
void gfx9_lds_late(gfx9_wave *w, uint32_t at, uint32_t bytes, int change);

/* ---- dispatch ---- */
typedef struct {
    uint32_t grid[3], block[3]; /* blocks; threads a block */
    uint32_t dynamic_lds;
    const void *kernarg; /* the explicit arguments as they lie */
    size_t kernarg_size;
    uint32_t checks;
    uint64_t seed, limit; /* instructions a wave may take; 0: many */
    uint64_t steps;       /* out: instructions that were executed */
} gfx9_launch;
bool gfx9_dispatch(gfx9_object *object, const gfx9_kernel *kernel, gfx9_launch *launch,
                   char *error);

const gfx9_row *gfx9_find_row(const char *name, size_t length);
const char *gfx9_row_name(size_t number);
/* The tables that it looks through, in order. */
typedef struct {
    const gfx9_row *rows;
    size_t count;
} gfx9_table;
extern const gfx9_table gfx9_salu_table, gfx9_valu_table, gfx9_special_table, gfx9_memory_table,
    gfx9_mfma_table, gfx9_lds_table, gfx9_convert_table;
#endif
