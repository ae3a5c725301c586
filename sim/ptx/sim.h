/* The simulator of PTX: what its files share. docs/SIMULATOR.md says what is executed. */
#ifndef SIM_PTX_H
#define SIM_PTX_H
#include "common/memory.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LANES = 32, BARRIERS = 16, MAX_WARPS = 32, MAX_OPERANDS = 16, ERROR_BYTES = 1024 };

__extension__ typedef __int128 ptx_s128;
__extension__ typedef unsigned __int128 ptx_u128;

/* ---- types and modifiers of opcodes ---- */
typedef enum {
#define TYPE(name, bits, kind) T_##name,
#include "types.def"
#undef TYPE
} ptx_type;
enum ptx_kind { NO, PREDICATE, BITS, UNSIGNED, SIGNED, FLOAT, PACKED };
typedef struct {
    const char *name;
    uint8_t bits, kind;
} ptx_type_info;
extern const ptx_type_info ptx_types[];
/* T_none if the `length` bytes name no type. */
ptx_type ptx_type_of(const char *name, size_t length);

typedef struct ptx_row ptx_row;
typedef struct ptx_inst ptx_inst;
typedef struct ptx_warp ptx_warp;
typedef struct ptx_block ptx_block;
typedef struct ptx_module ptx_module;

/* One spelling of an instruction, such as "ld.global.v2.u32", taken apart once a module. */
typedef struct ptx_opcode {
    char *text;
    const ptx_row *row; /* NULL: no row has it */
    uint8_t types[4];   /* its type tokens in order */
    uint8_t type_count, vector, space, rounding;
    bool ftz, sat;
} ptx_opcode;
/* Returns true if a token of the opcode, other than the first, is `name`. */
bool ptx_has(const ptx_opcode *opcode, const char *name);
/* The number of the first of the names, each ended by '|', that the opcode has; -1 if none. */
int ptx_which(const ptx_opcode *opcode, const char *names);

enum ptx_space { GENERIC, GLOBAL, SHARED, LOCAL, PARAM, CONST };
enum ptx_rounding { ROUND_NONE, RN, RZ, RM, RP, RNA };

/* ---- rows ---- */
typedef void (*ptx_execute)(ptx_warp *w, const ptx_inst *i);
typedef void (*ptx_lanes)(void *d, const void *a, const void *b, const void *c);
struct ptx_row {
    /* Tokens as the ISA writes them: "fma.rn|rz|rm|rp.{ftz}.{sat}.f32". A token in braces may be
     * missing; `|` separates what may stand in its place. */
    const char *pattern;
    const char *operands; /* see bind.c; NULL: as the types d, a, b, c say */
    ptx_execute execute;
    ptx_lanes lanes;
    uint8_t d, a, b, c; /* types that `lanes` reads and writes */
    int32_t what;
};
typedef struct {
    const ptx_row *rows;
    size_t count;
} ptx_table;
extern const ptx_table *const ptx_tables[]; /* ends with NULL */
extern const ptx_table ptx_alu_table, ptx_compare_table, ptx_convert_table, ptx_control_table,
    ptx_lanes_table, ptx_access_table, ptx_atomics_table, ptx_copy_table, ptx_matrix_table,
    ptx_wgmma_table, ptx_mbarrier_table, ptx_bulk_table, ptx_tma_table, ptx_cluster_table,
    ptx_tmem_table, ptx_tcgen05_table;
/* Takes an opcode's text apart and finds its row. */
void ptx_opcode_find(ptx_opcode *opcode);
/* Two rows may differ in the number of their sources alone: max of two and of three. */
bool ptx_opcode_fits(const ptx_opcode *opcode, uint32_t operands);
void ptx_opcode_find_sources(ptx_opcode *opcode, uint32_t operands);

/* ---- decoded instructions ---- */
enum ptx_place { NOWHERE, REG, PRED, SINK, VECTOR, ADDRESS, LABEL, FUNCTION, LIST, COUNT };
typedef struct ptx_operand ptx_operand;
struct ptx_operand {
    uint8_t place, width; /* width: bytes of the register: 2, 4, 8, 16 */
    uint8_t space;        /* ADDRESS: of its variable; GENERIC where the opcode's counts */
    bool negated;
    bool refer;     /* LABEL: its value is still to come */
    uint16_t count; /* of a vector, a list, or an address' coordinates */
    uint32_t at;    /* REG and an address' base: bytes into the registers; PRED: its number */
    ptx_operand *elements;
    int64_t value; /* ADDRESS: offset; LABEL: instruction; FUNCTION: its number; COUNT: itself */
};

struct ptx_inst {
    ptx_execute execute;
    const ptx_opcode *opcode;
    ptx_operand *op; /* in the places of the row's operands; NOWHERE where one was left out */
    int32_t guard;   /* predicate, or -1 */
    bool guard_not;
    uint8_t count;
    uint32_t line, text, length; /* in the module's text */
    uint32_t file, source_line;  /* of the last .loc */
    uint32_t function;
};

/* A register that holds a value of its own from the start of a block: constants, addresses, %tid.
 */
enum ptx_slot_kind { SLOT_CONSTANT, SLOT_SHARED, SLOT_DYNAMIC, SLOT_PARAM, SLOT_SPECIAL };
typedef struct {
    uint8_t kind, width;
    uint32_t at;
    uint64_t value; /* SPECIAL: its number in special.def */
} ptx_slot;

typedef struct {
    char *name;
    uint32_t offset, size, align;
} ptx_parameter;

typedef struct {
    char *name;
    bool entry, defined, calls;
    uint32_t first, end;  /* instructions */
    uint32_t base, bytes; /* its registers, in the file of a warp */
    uint32_t pred_base, preds;
    uint32_t shared;            /* where its shared variables end */
    uint32_t local_base, local; /* where its local variables begin, and their bytes */
    uint32_t param_bytes, param_align, parameter_count, result_count;
    ptx_parameter *parameters; /* of a .func: results first, offsets in local memory */
    uint32_t slot_count;
    ptx_slot *slots;
    uint32_t reqntid[3], maxntid[3], cluster[3];
} ptx_function;

typedef struct {
    char *name;
    uint8_t space;
    uint64_t address, size;
} ptx_variable;

struct ptx_module {
    char *text;
    size_t size;
    uint32_t target; /* 80, 90, 100, ... */
    char feature;    /* of .target: 'a', 'f' or 0 */
    ptx_inst *code;
    uint32_t code_count, code_room;
    ptx_function *functions;
    uint32_t function_count;
    ptx_variable *variables; /* global and constant ones, by name */
    uint32_t variable_count;
    char **files;
    uint32_t file_count;
    ptx_opcode **opcodes;
    uint32_t opcode_count;
    uint32_t function_bytes, function_preds, function_local; /* where those of all .func end */
    uint32_t most_bytes, most_preds, most_local;             /* where those of anything end */
    uint32_t shared_bytes;                                   /* of the module's own variables */
    bool orders; /* atomics: the order of blocks shows */
    struct ptx_arena *arena;
};

/* NULL, and the reason in `error` (ERROR_BYTES), where the text is no module. */
ptx_module *ptx_module_load(const char *text, size_t size, char *error);
void ptx_module_unload(ptx_module *module);
/* Zeroed memory that lives as long as the module; NULL if there is none. */
void *ptx_keep(ptx_module *module, size_t bytes);

/* Windows of generic addresses. A shared address is a block's rank in its cluster, times 2^24,
 * and an offset; its generic address lies that far into the window. */
#define SHARED_WINDOW 0x0100000000000000ull
#define LOCAL_WINDOW  0x0200000000000000ull
/* Kernels' parameters have 32-bit addresses in their space; those of functions lie in local memory,
 * below. */
#define PARAM_BEGIN 0x80000000ull
enum { RANK_SHIFT = 24, SHARED_BEGIN = 1024 };

/* ---- warps ---- */
enum ptx_stop { STOP_NO, STOP_BLOCKED, STOP_YIELD, STOP_END, STOP_ERROR };

typedef struct ptx_copies ptx_copies;
struct ptx_warp {
    uint8_t *memory, *regs; /* regs: aligned inside memory */
    uint32_t *preds;
    uint32_t *written; /* lanes, of each 128 bytes of registers */
    uint32_t mask;     /* lanes of this instruction */
    uint32_t active, live, blocked, parked;
    uint32_t pc, join; /* join: where other lanes wait to go on together */
    bool rotated;
    uint8_t stop, mode;
    uint32_t id, lanes;
    uint32_t lane_pc[LANES];
    uint32_t depth[LANES];
    uint32_t returns[8][LANES];
    uint32_t sync_mask[LANES]; /* what lanes parked at bar.warp.sync wait for */
    uint32_t waits[BARRIERS];  /* lanes that wait at a barrier */
    uint8_t *local;
    uint32_t local_bytes;
    uint32_t carry; /* of add.cc and its kind */
    uint64_t steps, spins;
    uint64_t begin, size; /* the allocation that was used last */
    ptx_block *block;
    ptx_copies *copies;
    struct ptx_products *products; /* wgmma that are under way */
    struct ptx_bulks *bulks;       /* bulk copies from shared memory that are under way */
    bool idle;                     /* it only asks whether an mbarrier's phase is over */
    uint32_t cluster_phase, cluster_waits;
    const ptx_inst *reduces; /* the bar.red that lanes wait at */
};

typedef struct {
    uint32_t arrived, expected;
    bool any, all;
    uint32_t population;
} ptx_barrier;

typedef struct ptx_cluster ptx_cluster;
typedef struct ptx_launch ptx_launch;
struct ptx_block {
    ptx_cluster *cluster;
    const ptx_launch *launch;
    ptx_warp *warps;
    uint32_t warp_count, rank, shared_bytes, id[3];
    uint8_t *shared, *shadow; /* shadow: bytes that were written; NULL without checks */
    ptx_barrier barriers[BARRIERS];
    struct ptx_tmem *tmem; /* made by the first tcgen05.alloc */
    char *error;
};

struct ptx_cluster {
    ptx_block *blocks;
    uint32_t size, arrived, phase; /* of barrier.cluster */
    uint64_t random;
    struct ptx_async *later; /* what the copy engine still has to do */
    uint32_t later_count, later_room;
};

enum { CHECK_UNWRITTEN = 1, CHECK_ALL = 1 };
struct ptx_launch {
    ptx_module *module;
    const ptx_function *kernel;
    uint32_t grid[3], block[3], cluster[3], dynamic;
    const void *arguments;                      /* in device memory */
    uint32_t most_shared, checks, shared_bytes; /* most_shared: that the device has for a block */
    uint64_t seed, limit, steps;
};
/* false, and why in `error` (ERROR_BYTES). */
bool ptx_run_launch(ptx_launch *launch, char *error);

/* Stops the warp: what, kernel, PTX line, source line, block, warp, instruction. */
void ptx_stop(ptx_warp *w, const ptx_inst *i, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void ptx_run(ptx_warp *w, uint64_t budget);
/* Picks the lanes that go on; STOP_BLOCKED or STOP_END if there are none. */
void ptx_schedule(ptx_warp *w, bool rotate);
/* The active lanes go on at `pc` later. */
void ptx_leave(ptx_warp *w, uint32_t pc);
/* Returns true if all lanes of `members` that still run have reached the instruction. Otherwise
 * parks the lanes that have. */
bool ptx_together(ptx_warp *w, const ptx_inst *i, uint32_t members);
/* Barriers whose threads have all arrived let them go on. */
void ptx_barriers_check(ptx_block *b);
void ptx_retire(ptx_warp *w, uint32_t lanes);
void ptx_set_mode(ptx_warp *w, unsigned mode);

/* ---- operands ---- */
static inline void *ptx_at(const ptx_warp *w, const ptx_operand *o) {
    return w->regs + o->at;
}
static inline uint32_t *ptx_u32(const ptx_warp *w, const ptx_operand *o) {
    return (uint32_t *)(void *)(w->regs + o->at);
}
static inline uint64_t *ptx_u64(const ptx_warp *w, const ptx_operand *o) {
    return (uint64_t *)(void *)(w->regs + o->at);
}
/* A predicate operand as a mask; all ones where it was left out. */
static inline uint32_t ptx_pred(const ptx_warp *w, const ptx_operand *o) {
    if (o->place != PRED) return ~0u;
    return o->negated ? ~w->preds[o->at] : w->preds[o->at];
}
static inline void ptx_set_pred(ptx_warp *w, const ptx_operand *o, uint32_t value) {
    if (o->place == PRED) w->preds[o->at] = (w->preds[o->at] & ~w->mask) | (value & w->mask);
}
static inline uint64_t ptx_lane(const ptx_warp *w, const ptx_operand *o, uint32_t lane) {
    return o->width == 8 ? ptx_u64(w, o)[lane] : ptx_u32(w, o)[lane];
}
static inline uint32_t ptx_first(uint32_t mask) {
    return (uint32_t)__builtin_ctz(mask);
}
/* The value of an operand that all lanes share. */
static inline uint64_t ptx_uniform(const ptx_warp *w, const ptx_operand *o) {
    return ptx_lane(w, o, ptx_first(w->mask));
}
/* Element k of a vector operand, or the operand itself. */
const ptx_operand *ptx_element(const ptx_operand *o, uint32_t k);
/* Writes the lanes of w->mask: 32 bits each (64 for registers of 8 bytes). */
void ptx_commit(ptx_warp *w, const ptx_operand *o, const void *value);
void ptx_execute_lanes(ptx_warp *w, const ptx_inst *i);

/* ---- memory accesses ---- */
/* A block's shared memory at a shared address; NULL, and the warp stopped, if it has not all the
 * bytes. */
uint8_t *ptx_shared(ptx_warp *w, const ptx_inst *i, uint64_t address, uint32_t bytes, bool write);
/* Stores the host address of each lane's bytes in `at`. Returns false, and stops the warp, if the
 * bytes of a lane lie outside all allocations or are misaligned. */
bool ptx_resolve(ptx_warp *w, const ptx_inst *i, const uint64_t *address, int space, uint32_t bytes,
                 bool write, uint8_t **at);
void ptx_addresses(const ptx_warp *w, const ptx_operand *o, uint64_t *address);
#endif
