/* Declarations that all files of the PTX simulator share. docs/SIMULATOR.md lists what it
 * executes. */
#ifndef SIM_PTX_H
#define SIM_PTX_H
#include "common/memory.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LANES = 32, BARRIERS = 16, MAX_WARPS = 32, MAX_OPERANDS = 16, ERROR_BYTES = 1024 };

__extension__ typedef __int128 ptx_s128;
__extension__ typedef unsigned __int128 ptx_u128;

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
/* Returns the type with this name, or T_none. */
ptx_type ptx_type_of(const char *name, size_t length);

typedef struct ptx_row ptx_row;
typedef struct ptx_inst ptx_inst;
typedef struct ptx_warp ptx_warp;
typedef struct ptx_block ptx_block;
typedef struct ptx_module ptx_module;

/* A spelling of an instruction, such as "ld.global.v2.u32". Each spelling is split into its tokens
 * once per module. */
typedef struct ptx_opcode {
    char *text;
    const ptx_row *row; /* the opcode's table entry, or NULL if there is none */
    uint8_t types[4];   /* the tokens that are types, in order */
    uint8_t type_count, vector, space, rounding;
    bool ftz, sat;
} ptx_opcode;
/* Returns true if a token of the opcode, other than the first, is `name`. */
bool ptx_has(const ptx_opcode *opcode, const char *name);
/* Returns the index of the first of several names that the opcode has, or -1. Each name in `names`
 * ends with '|'. */
int ptx_which(const ptx_opcode *opcode, const char *names);

enum ptx_space { GENERIC, GLOBAL, SHARED, LOCAL, PARAM, CONST };
enum ptx_rounding { ROUND_NONE, RN, RZ, RM, RP, RNA };

typedef void (*ptx_execute)(ptx_warp *w, const ptx_inst *i);
typedef void (*ptx_lanes)(void *d, const void *a, const void *b, const void *c);
struct ptx_row {
    /* The opcode's tokens as in the ISA document, e.g. "fma.rn|rz|rm|rp.{ftz}.{sat}.f32". A token
     * in braces is optional, and `|` separates alternatives. */
    const char *pattern;
    /* The operands, one letter each (bind.c explains the letters). If it is NULL, the types d, a, b
     * and c describe the operands. */
    const char *operands;
    ptx_execute execute;
    ptx_lanes lanes;
    uint8_t d, a, b, c; /* the types of the result and of the sources of `lanes` */
    int32_t what;
};
typedef struct {
    const ptx_row *rows;
    size_t count;
} ptx_table;
extern const ptx_table *const ptx_tables[]; /* NULL ends the list */
extern const ptx_table ptx_alu_table, ptx_compare_table, ptx_convert_table, ptx_control_table,
    ptx_lanes_table, ptx_access_table, ptx_atomics_table, ptx_copy_table, ptx_matrix_table,
    ptx_wgmma_table, ptx_mbarrier_table, ptx_bulk_table, ptx_tma_table, ptx_cluster_table,
    ptx_launch_control_table, ptx_tmem_table, ptx_tcgen05_table;
/* Splits an opcode's text into tokens and finds its table entry. */
void ptx_opcode_find(ptx_opcode *opcode);
/* Two table entries may have the same pattern and differ only in the number of sources, e.g. max of
 * two and max of three sources. ptx_opcode_fits tests if the entry found for an opcode fits the
 * number of operands. If not, ptx_opcode_find_sources finds the entry that does. */
bool ptx_opcode_fits(const ptx_opcode *opcode, uint32_t operands);
void ptx_opcode_find_sources(ptx_opcode *opcode, uint32_t operands);

enum ptx_place { NOWHERE, REG, PRED, SINK, VECTOR, ADDRESS, LABEL, FUNCTION, LIST, COUNT };
typedef struct ptx_operand ptx_operand;
struct ptx_operand {
    uint8_t place, width; /* width: bytes of a register: 2, 4, 8 or 16 */
    uint8_t space; /* ADDRESS: the state space of its variable; GENERIC: that of the opcode */
    bool negated;
    bool refer;     /* LABEL: its value is not known yet */
    uint16_t count; /* number of elements of a vector or list, or of coordinates of an address */
    uint32_t at; /* REG and ADDRESS: byte offset of the register; PRED: number of the predicate */
    ptx_operand *elements;
    /* for an ADDRESS, the offset that is added to the base; for a LABEL, the index of the
     * instruction there; for a FUNCTION, its index; for a COUNT, the number itself */
    int64_t value;
};

struct ptx_inst {
    ptx_execute execute;
    const ptx_opcode *opcode;
    ptx_operand *op; /* in the order of the entry's operands; NOWHERE for an absent operand */
    int32_t guard;   /* number of the guard predicate, or -1 */
    bool guard_not;
    uint8_t count;
    uint32_t line, text, length; /* position in the module's text */
    uint32_t file, source_line;  /* position in the source that the last .loc gave */
    uint32_t function;
};

/* A register that has a value from the start of a block, such as a constant, an address or %tid. */
enum ptx_slot_kind { SLOT_CONSTANT, SLOT_SHARED, SLOT_DYNAMIC, SLOT_PARAM, SLOT_SPECIAL };
typedef struct {
    uint8_t kind, width;
    uint32_t at;
    uint64_t value; /* SPECIAL: the register's index in special.def */
} ptx_slot;

typedef struct {
    char *name;
    uint32_t offset, size, align;
} ptx_parameter;

typedef struct {
    char *name;
    bool entry, defined, calls;
    uint32_t first, end;  /* indices of its instructions */
    uint32_t base, bytes; /* its part of a warp's registers, in bytes */
    uint32_t pred_base, preds;
    uint32_t shared;            /* where its shared variables end */
    uint32_t local_base, local; /* where its local variables begin, and their bytes */
    uint32_t param_bytes, param_align, parameter_count, result_count;
    ptx_parameter *parameters; /* for a .func: results first; offsets are in local memory */
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
    uint32_t target; /* e.g. 80, 90 or 100 */
    char feature;    /* the letter of .target: 'a', 'f' or 0 */
    ptx_inst *code;
    uint32_t code_count, code_room;
    ptx_function *functions;
    uint32_t function_count;
    ptx_variable *variables; /* the global and constant variables */
    uint32_t variable_count;
    char **files;
    uint32_t file_count;
    ptx_opcode **opcodes;
    uint32_t opcode_count;
    /* The sizes of the registers (bytes), the predicates and the local memory (bytes) that a warp
     * needs. function_* counts those of all functions (.func). most_* also counts those of the
     * kernel that needs most. */
    uint32_t function_bytes, function_preds, function_local;
    uint32_t most_bytes, most_preds, most_local;
    uint32_t shared_bytes; /* bytes of shared variables outside functions */
    bool orders; /* true if there are atomics, whose results depend on the order of blocks */
    struct ptx_arena *arena;
};

/* Parses a module. If the text is no valid module, returns NULL and writes the reason to `error`
 * (ERROR_BYTES bytes). */
ptx_module *ptx_module_load(const char *text, size_t size, char *error);
void ptx_module_unload(ptx_module *module);
/* Returns zeroed memory that is freed with the module, or NULL if there is none. */
void *ptx_keep(ptx_module *module, size_t bytes);

/* The ranges of generic addresses that mean shared and local memory. A shared address is the
 * block's rank in its cluster times 2^24, plus an offset. The generic address is SHARED_WINDOW plus
 * the shared address. */
#define SHARED_WINDOW 0x0100000000000000ull
#define LOCAL_WINDOW  0x0200000000000000ull
/* Addresses in the .param space. The parameters of a kernel have addresses from PARAM_BEGIN on. The
 * parameters of functions (.func) are in local memory and have lower addresses. */
#define PARAM_BEGIN 0x80000000ull
enum { RANK_SHIFT = 24, SHARED_BEGIN = 1024 };

enum ptx_stop { STOP_NO, STOP_BLOCKED, STOP_YIELD, STOP_END, STOP_ERROR };

typedef struct ptx_copies ptx_copies;
struct ptx_warp {
    uint8_t *memory, *regs; /* regs: a part of `memory` that is aligned to 64 bytes */
    uint32_t *preds;
    /* For each 128 bytes of the register file, i.e. for each register of 32 bits per lane, a mask
     * of the lanes whose value has been written. */
    uint32_t *written;
    uint32_t mask; /* the lanes that execute the current instruction */
    uint32_t active, live, blocked, parked;
    uint32_t pc, join; /* join: the next instruction at which inactive lanes wait */
    bool rotated;
    uint8_t stop, mode;
    uint32_t id, lanes;
    uint32_t lane_pc[LANES];
    uint32_t depth[LANES];
    uint32_t returns[8][LANES];
    /* For each lane that waits at bar.warp.sync, a mask of the lanes that must arrive there too. */
    uint32_t sync_mask[LANES];
    uint32_t waits[BARRIERS]; /* for each barrier, the lanes that wait at it */
    uint8_t *local;
    uint32_t local_bytes;
    uint32_t carry; /* the carry of add.cc and similar instructions, one bit per lane */
    uint64_t steps, spins;
    uint64_t begin, size; /* the allocation that was accessed last */
    ptx_block *block;
    ptx_copies *copies;
    struct ptx_products *products; /* the wgmma products that are in progress */
    struct ptx_bulks *bulks;       /* the bulk copies from shared memory that are in progress */
    bool idle;                     /* true if the warp only polls an mbarrier */
    uint32_t cluster_phase, cluster_waits;
    const ptx_inst *reduces; /* the bar.red at which lanes wait */
};

typedef struct {
    uint32_t arrived, expected;
    bool any, all;
    uint32_t population;
} ptx_barrier;

typedef struct ptx_cluster ptx_cluster;
/* The state of a byte of shared memory. UNFENCED: a thread has written it since the last
 * fence.proxy.async. */
enum ptx_shadow { NEVER_WRITTEN, WRITTEN, UNFENCED };
typedef struct ptx_launch ptx_launch;
struct ptx_block {
    ptx_cluster *cluster;
    const ptx_launch *launch;
    ptx_warp *warps;
    uint32_t warp_count, rank, shared_bytes, id[3];
    /* `shadow` tells for each byte of shared memory whether it was written (ptx_shadow). It is NULL
     * without checks. The bytes that are UNFENCED lie from unfenced[0] to unfenced[1]. */
    uint8_t *shared, *shadow;
    uint32_t unfenced[2];
    ptx_barrier barriers[BARRIERS];
    struct ptx_tmem *tmem; /* tensor memory, which the first tcgen05.alloc creates */
    char *error;
};

struct ptx_cluster {
    ptx_block *blocks;
    /* The number of blocks in the cluster, the number of threads that have arrived at
     * barrier.cluster, and the phase of this barrier. */
    uint32_t size, arrived, phase;
    uint64_t random;
    struct ptx_async *later; /* the pending jobs of the copy engine */
    uint32_t later_count, later_room;
    uint32_t *next; /* the number of the next cluster to begin, which all clusters share */
};

enum { CHECK_UNWRITTEN = 1, CHECK_PROXIES = 2, CHECK_ALL = 3 };
struct ptx_launch {
    ptx_module *module;
    const ptx_function *kernel;
    uint32_t grid[3], block[3], cluster[3], dynamic;
    const void *arguments; /* the kernel's arguments in device memory */
    /* `most_shared` is the shared memory that the device allows a block. */
    uint32_t most_shared, checks, shared_bytes;
    uint32_t capability; /* the device's compute capability, e.g. 90 */
    uint64_t seed, limit, steps;
};
/* Runs a launch. On failure returns false and writes the reason to `error` (ERROR_BYTES bytes). */
bool ptx_run_launch(ptx_launch *launch, char *error);

/* Stops the warp with an error. The message is the formatted text, followed by the kernel, the PTX
 * and source lines, the block, the warp and the instruction. */
void ptx_stop(ptx_warp *w, const ptx_inst *i, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void ptx_run(ptx_warp *w, uint64_t budget);
/* Chooses the lanes that execute next. Sets w->stop to STOP_BLOCKED or STOP_END if there are
 * none. */
void ptx_schedule(ptx_warp *w, bool rotate);
/* Suspends the active lanes. They will continue at `pc`. */
void ptx_leave(ptx_warp *w, uint32_t pc);
/* Returns true if all lanes of the mask `members`, except those that have ended, have reached the
 * instruction. Otherwise suspends the lanes that have reached it until the missing lanes do. */
bool ptx_together(ptx_warp *w, const ptx_inst *i, uint32_t members);
/* Releases the threads at each barrier of the block at which all expected threads have arrived. */
void ptx_barriers_check(ptx_block *b);
void ptx_retire(ptx_warp *w, uint32_t lanes);
void ptx_set_mode(ptx_warp *w, unsigned mode);

static inline void *ptx_at(const ptx_warp *w, const ptx_operand *o) {
    return w->regs + o->at;
}
static inline uint32_t *ptx_u32(const ptx_warp *w, const ptx_operand *o) {
    return (uint32_t *)(void *)(w->regs + o->at);
}
static inline uint64_t *ptx_u64(const ptx_warp *w, const ptx_operand *o) {
    return (uint64_t *)(void *)(w->regs + o->at);
}
/* Returns a predicate operand as a mask of lanes, all ones if the operand is absent. */
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
/* Returns the value of an operand that has the same value in all active lanes. */
static inline uint64_t ptx_uniform(const ptx_warp *w, const ptx_operand *o) {
    return ptx_lane(w, o, ptx_first(w->mask));
}
/* Returns element k of a vector operand, or the operand itself if it is no vector. */
const ptx_operand *ptx_element(const ptx_operand *o, uint32_t k);
/* Writes `value` to a register in the lanes of w->mask. `value` has 32 bits per lane, or 64 for
 * registers of 8 bytes. */
void ptx_commit(ptx_warp *w, const ptx_operand *o, const void *value);
void ptx_execute_lanes(ptx_warp *w, const ptx_inst *i);

/* Returns the host address of bytes at a shared address. If they are outside the block's shared
 * memory, stops the warp with an error and returns NULL. */
uint8_t *ptx_shared(ptx_warp *w, const ptx_inst *i, uint64_t address, uint32_t bytes, bool write);
/* The same for an access by the async proxy, i.e. by the copy engine or a tensor core. It also
 * stops the warp if a byte that it reads was written by a thread, and no thread of the cluster has
 * executed fence.proxy.async since then. */
uint8_t *ptx_shared_async(ptx_warp *w, const ptx_inst *i, uint64_t address, uint32_t bytes,
                          bool write);
/* Records that a thread of the cluster has executed fence.proxy.async. */
void ptx_fence_proxies(ptx_cluster *c);
/* Stores the host address of each lane's bytes in `at`. If the bytes of a lane are misaligned or
 * not inside an allocation, stops the warp with an error and returns false. */
bool ptx_resolve(ptx_warp *w, const ptx_inst *i, const uint64_t *address, int space, uint32_t bytes,
                 bool write, uint8_t **at);
void ptx_addresses(const ptx_warp *w, const ptx_operand *o, uint64_t *address);
#endif
