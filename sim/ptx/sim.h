/* Declares the types and functions that all files of the PTX simulator share. docs/SIMULATOR.md
 * lists the PTX instructions that the simulator executes. */
#ifndef SIM_PTX_H
#define SIM_PTX_H
#include "common/clock.h"
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

/* Describes one spelling of an instruction, such as "ld.global.v2.u32". The parser splits each
 * spelling into its tokens once per module. */
typedef struct ptx_opcode {
    char *text;
    const ptx_row *row; /* `row` points to the opcode's table entry, or NULL if there is none. */
    uint8_t types[4];   /* `types` holds the tokens of the opcode that are types, in their order. */
    uint8_t type_count, vector, space, rounding;
    bool ftz, sat, relu, satfinite;
    /* `syncs` is true if the opcode orders the accesses of threads, as atomics and accesses with
     * .volatile, .relaxed, .acquire or .release do. `bulk` is true for cp.async.bulk. */
    bool syncs, bulk;
    /* `record` counts how often the opcode is executed (fidelity.h). It is NULL if nothing is
     * counted. */
    struct sim_record *record;
} ptx_opcode;
/* Returns true if `name` is a token of the opcode after the first token. */
bool ptx_has(const ptx_opcode *opcode, const char *name);
/* Returns the index of the first name in `names` that is a token of the opcode, or -1. Each name
 * in `names` ends with '|'. */
int ptx_which(const ptx_opcode *opcode, const char *names);

enum ptx_space { GENERIC, GLOBAL, SHARED, LOCAL, PARAM, CONST };
enum ptx_rounding { ROUND_NONE, RN, RZ, RM, RP, RNA };

typedef void (*ptx_execute)(ptx_warp *w, const ptx_inst *i);
typedef void (*ptx_lanes)(void *d, const void *a, const void *b, const void *c);
struct ptx_row {
    /* `pattern` holds the opcode's tokens as in the PTX ISA document, e.g.
     * "fma.rn|rz|rm|rp.{ftz}.{sat}.f32". A token in braces is optional, and `|` separates
     * alternatives. */
    const char *pattern;
    /* `operands` has one letter for each operand (bind.c explains the letters). If it is NULL, the
     * types d, a, b and c describe the operands. */
    const char *operands;
    ptx_execute execute;
    ptx_lanes lanes;
    /* `d` is the type of the result of the table entry's function `lanes`. `a`, `b` and `c` are the
     * types of its sources. */
    uint8_t d, a, b, c;
    int32_t what;
};
typedef struct {
    const ptx_row *rows;
    size_t count;
} ptx_table;
extern const ptx_table *const ptx_tables[]; /* A NULL ends this list. */
extern const ptx_table ptx_alu_table, ptx_compare_table, ptx_convert_table, ptx_control_table,
    ptx_lanes_table, ptx_access_table, ptx_atomics_table, ptx_copy_table, ptx_matrix_table,
    ptx_wgmma_table, ptx_mbarrier_table, ptx_bulk_table, ptx_tma_table, ptx_cluster_table,
    ptx_launch_control_table, ptx_tmem_table, ptx_tcgen05_table;
/* Splits an opcode's text into tokens and finds the opcode's table entry. */
void ptx_opcode_find(ptx_opcode *opcode);
/* ptx_opcode_fits tests whether the table entry of an opcode has the right number of operands. If
 * it does not, ptx_opcode_find_sources finds the right entry. Some opcodes have two entries with
 * different numbers of sources, e.g. max of two and of three sources. */
bool ptx_opcode_fits(const ptx_opcode *opcode, uint32_t operands);
void ptx_opcode_find_sources(ptx_opcode *opcode, uint32_t operands);

enum ptx_place { NOWHERE, REG, PRED, SINK, VECTOR, ADDRESS, LABEL, FUNCTION, LIST, COUNT };
typedef struct ptx_operand ptx_operand;
struct ptx_operand {
    uint8_t place, width; /* `width` is the number of bytes of a register, i.e. 2, 4, 8 or 16. */
    /* If the operand is an address (place ADDRESS) that names a variable, `space` is the state
     * space of the variable. GENERIC means that the opcode gives the state space. */
    uint8_t space;
    bool negated;
    bool refer; /* `refer` is true for a LABEL whose instruction is not known yet. */
    /* `count` is the number of elements of a vector or list, or of coordinates of an address. */
    uint16_t count;
    /* For an operand of the kind REG or ADDRESS, `at` is the byte offset of its register. For the
     * kind PRED, `at` is the number of the predicate. */
    uint32_t at;
    ptx_operand *elements;
    /* For an ADDRESS, `value` is the offset that is added to the base. For a LABEL, `value` is the
     * index of the label's instruction. For a FUNCTION, `value` is the function's index. For a
     * COUNT, `value` is the number itself. */
    int64_t value;
};

struct ptx_inst {
    ptx_execute execute;
    const ptx_opcode *opcode;
    /* `op` holds the operands in the order of the table entry. An absent operand has the place
     * NOWHERE. */
    ptx_operand *op;
    int32_t guard; /* `guard` is the number of the guard predicate, or -1 if there is none. */
    bool guard_not;
    uint8_t count;
    /* `line`, `text` and `length` give the instruction's position in the module's text. */
    uint32_t line, text, length;
    /* `file` and `source_line` give the position that the last .loc directive named. */
    uint32_t file, source_line;
    uint32_t function;
};

/* Describes a register that has a fixed value from the start of a thread block, such as a constant,
 * an address or %tid. */
enum ptx_slot_kind { SLOT_CONSTANT, SLOT_SHARED, SLOT_DYNAMIC, SLOT_PARAM, SLOT_SPECIAL };
typedef struct {
    uint8_t kind, width;
    uint32_t at;
    uint64_t value; /* For a SLOT_SPECIAL register, `value` is the index in special.def. */
} ptx_slot;

typedef struct {
    char *name;
    uint32_t offset, size, align;
} ptx_parameter;

typedef struct {
    char *name;
    bool entry, defined, calls;
    uint32_t first, end; /* The function consists of the instructions `first` to `end` - 1. */
    /* `base` is the offset and `bytes` is the size of the function's part of a warp's registers. */
    uint32_t base, bytes;
    uint32_t pred_base, preds;
    /* `shared` is the offset in bytes at which the function's shared variables end. A kernel's own
     * variables begin at offset `own_shared`. Below this offset are those of the module and of
     * functions (.func). `uses_outer` is true if the function uses one of these outer variables. */
    uint32_t shared, own_shared;
    bool uses_outer;
    /* `local_base` is the offset and `local` is the size of the function's local variables, in
     * bytes. */
    uint32_t local_base, local;
    uint32_t param_bytes, param_align, parameter_count, result_count;
    /* `parameters` lists the function's parameters, with the offset of each in bytes. For a kernel
     * the offset is in the .param space. For a function (.func) it is in local memory, and the list
     * has the function's results first and then its parameters. */
    ptx_parameter *parameters;
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
    uint32_t target; /* `target` is the compute capability times 10, e.g. 80, 90 or 100. */
    char feature;    /* `feature` is the letter of .target, i.e. 'a', 'f' or 0. */
    ptx_inst *code;
    uint32_t code_count, code_room;
    ptx_function *functions;
    uint32_t function_count;
    ptx_variable *variables; /* `variables` lists the module's global and constant variables. */
    uint32_t variable_count;
    char **files;
    uint32_t file_count;
    ptx_opcode **opcodes;
    uint32_t opcode_count;
    /* These members say how much a warp needs: the bytes of registers, the number of predicates,
     * and the bytes of local memory. The members function_* are the sums over all functions
     * (.func). The members most_* are these sums plus the largest need of a kernel. */
    uint32_t function_bytes, function_preds, function_local;
    uint32_t most_bytes, most_preds, most_local;
    /* `shared_bytes` is the size of the shared variables that are not a kernel's own.
     * `functions_use_outer` is true if a function (.func) uses one of them. */
    uint32_t shared_bytes;
    bool functions_use_outer;
    /* `orders` is true if the module has atomics, whose results depend on the order of thread
     * blocks. */
    bool orders;
    struct ptx_arena *arena;
};

/* Parses a PTX module. If the text is not a valid module, returns NULL and writes the reason to
 * `error`, which has ERROR_BYTES bytes. */
ptx_module *ptx_module_load(const char *text, size_t size, char *error);
/* Returns the bytes of static shared memory of a kernel. Shared variables that are not the kernel's
 * own all count if the kernel uses one of them, or if it calls functions and a function of the
 * module uses one. Otherwise none of them counts, because ptxas does not allocate variables that a
 * kernel cannot use. */
uint32_t ptx_static_shared(const ptx_module *m, const ptx_function *kernel);
void ptx_module_unload(ptx_module *module);
/* Returns `bytes` bytes of zeroed memory, which ptx_module_unload frees. Returns NULL if memory
 * runs out. */
void *ptx_keep(ptx_module *module, size_t bytes);

/* The generic addresses of shared memory begin at SHARED_WINDOW, and those of local memory begin at
 * LOCAL_WINDOW. A shared address is the thread block's rank in its cluster times 2^24, plus an
 * offset. The generic address is SHARED_WINDOW plus the shared address. */
#define SHARED_WINDOW 0x0100000000000000ull
#define LOCAL_WINDOW  0x0200000000000000ull
/* The addresses of kernel parameters in the .param space begin here. Parameters of functions
 * (.func) are in local memory and have lower addresses. */
#define PARAM_BEGIN 0x80000000ull
enum { RANK_SHIFT = 24, SHARED_BEGIN = 1024 };

enum ptx_stop { STOP_NO, STOP_BLOCKED, STOP_YIELD, STOP_END, STOP_ERROR };

typedef struct ptx_copies ptx_copies;
struct ptx_warp {
    uint8_t *memory, *regs; /* `regs` is the part of `memory` that is aligned to 64 bytes. */
    uint32_t *preds;
    /* `written` holds for each 32-bit register a mask of the lanes that have written the
     * register. */
    uint32_t *written;
    /* A tcgen05.ld loads registers asynchronously, and the warp may not read them before it
     * executes tcgen05.wait::ld (loading.h). Until then, `loading` holds for each such 32-bit
     * register the PTX line of the tcgen05.ld. For all other registers it holds 0. Registers with a
     * nonzero entry have numbers from `loading_begin` to `loading_end` - 1. If there are none,
     * `loading_end` is 0. */
    uint32_t *loading, loading_begin, loading_end;
    uint32_t mask; /* `mask` is the mask of lanes that execute the current instruction. */
    uint32_t active, live, blocked, parked;
    uint32_t pc, join; /* `join` is the next instruction at which inactive lanes wait. */
    bool rotated;
    uint8_t stop, mode;
    uint32_t id, lanes;
    uint32_t lane_pc[LANES];
    uint32_t depth[LANES];
    uint32_t returns[8][LANES];
    /* `sync_mask` holds for each lane that waits at bar.warp.sync the mask of lanes that must
     * arrive there. */
    uint32_t sync_mask[LANES];
    /* `waits` holds for each barrier a mask of the lanes that wait at it. */
    uint32_t waits[BARRIERS];
    uint8_t *local;
    uint32_t local_bytes;
    /* `carry` holds one bit for each lane, the carry of its last add.cc or similar instruction. */
    uint32_t carry;
    uint64_t steps, spins;
    /* `begin` is the address and `size` the size of the allocation that the warp accessed last. */
    uint64_t begin, size;
    ptx_block *block;
    ptx_copies *copies;
    struct ptx_products *products; /* `products` holds the wgmma operations that are in progress. */
    /* `products_issued` counts the wgmma operations for the race detector (races.h). */
    uint32_t products_issued;
    /* `bulks` holds the bulk copies from shared memory that are in progress. */
    struct ptx_bulks *bulks;
    /* `idle` is true if the warp has done nothing but test an mbarrier again and again. */
    bool idle;
    uint32_t cluster_phase, cluster_waits;
    const ptx_inst *reduces; /* `reduces` points to the bar.red instruction at which lanes wait. */
    /* `trace` receives a record of what the warp does, for the time model. It is NULL if nothing
     * is recorded. */
    struct ptx_trace *trace;
};

typedef struct {
    uint32_t arrived, expected;
    bool any, all;
    uint32_t population;
} ptx_barrier;

typedef struct ptx_cluster ptx_cluster;
/* Names the states of a byte of shared memory. UNFENCED means that a thread has written the byte
 * after the last fence.proxy.async. */
enum ptx_shadow { NEVER_WRITTEN, WRITTEN, UNFENCED };
typedef struct ptx_launch ptx_launch;
struct ptx_block {
    ptx_cluster *cluster;
    const ptx_launch *launch;
    ptx_warp *warps;
    uint32_t warp_count, rank, shared_bytes, id[3];
    /* `shadow` has a state (ptx_shadow) for each byte of shared memory, or is NULL if checks are
     * off. All bytes with the state UNFENCED have offsets from unfenced[0] to unfenced[1]. */
    uint8_t *shared, *shadow;
    uint32_t unfenced[2];
    ptx_barrier barriers[BARRIERS];
    /* `tmem` points to the block's tensor memory, which the first tcgen05.alloc creates. */
    struct ptx_tmem *tmem;
    char *error;
};

struct ptx_cluster {
    ptx_block *blocks;
    /* `size` counts the thread blocks of the cluster. `arrived` counts the threads that have
     * arrived at barrier.cluster, and `phase` counts the completed uses of this barrier. */
    uint32_t size, arrived, phase;
    uint64_t random;
    struct ptx_async *later; /* `later` lists the asynchronous operations that have not run yet. */
    uint32_t later_count, later_room;
    /* `races` holds the recorded accesses to shared memory (races.h). It is NULL if races are not
     * checked. */
    struct ptx_races *races;
    /* `timeline` holds what the time model (time.h) has recorded about the cluster, or is NULL.
     * `running` is 1 plus the index in timeline->jobs of the asynchronous operation that runs now,
     * or 0 if there is none. */
    struct ptx_timeline *timeline;
    uint32_t running;
    /* `next` points to the number of the next cluster to begin. All clusters of the launch share
     * this number. */
    uint32_t *next;
};

enum { STALL_MEMORY, STALL_SHARED, STALL_BARRIER, STALL_MATRIX, STALL_ISSUE };
/* Holds the time of a launch and what it consists of. All fields are double, because bsmm_sim_times
 * copies them as an array. The fields from `sms` on are sums over the sample, i.e. over the
 * clusters that the model has timed in detail. */
typedef struct {
    /* `seconds` is the time of the launch, including its fixed cost. It is 0 if the launch was
     * not timed. */
    double seconds;
    /* The model times only a sample of the clusters of a launch. `replayed` is the number of cycles
     * of this sample. The whole launch takes `rounds` times as long, so `cycles`, the number of its
     * cycles without its fixed cost, is `replayed` times `rounds`. */
    double cycles, replayed, rounds;
    /* `groups` is the number of thread blocks in the sample of clusters that the model has timed.
     * `launched` is the number of thread blocks of the launch. */
    double groups, launched;
    /* `sms` is the number of SMs on which the sample of clusters ran, and `warps` is the number of
     * warps on each SM. */
    double sms, warps;
    /* `instructions` counts instructions. `matrix_busy` counts the cycles in which tensor pipes
     * are busy. */
    double instructions, matrix_busy;
    /* `shared_busy` counts the cycles in which shared memory is busy. `shared_conflicts` counts the
     * cycles of `shared_busy` that bank conflicts cause. */
    double shared_busy, shared_conflicts;
    /* `l1_bytes` counts the bytes that instructions and TMA move. `l2_bytes` counts the bytes
     * between SMs and L2, and `hbm_bytes` those of HBM. `l3_bytes` is 0, because these devices have
     * no cache after L2. */
    double l1_bytes, l2_bytes, l3_bytes, hbm_bytes;
    double stalls[STALLS]; /* `stalls` counts the cycles in which warps wait, for each cause. */
    /* `matrix_loop` is the sum over all tensor pipes of the cycles from the pipe's first operation
     * to the end of its last one. */
    double matrix_loop;
} ptx_times;
/* Returns true if the time model has the constants of a device. */
bool ptx_has_time_model(uint32_t capability);
/* Returns the time in seconds that a device needs to read or write `bytes` bytes of device
 * memory. */
double ptx_traffic_seconds(uint32_t capability, double bytes);

enum { CHECK_UNWRITTEN = 1, CHECK_PROXIES = 2, CHECK_RACES = 4, CHECK_LOADING = 8, CHECK_ALL = 15 };
struct ptx_launch {
    ptx_module *module;
    const ptx_function *kernel;
    uint32_t grid[3], block[3], cluster[3], dynamic;
    const void *arguments; /* `arguments` points to the kernel's arguments. */
    /* `most_shared` is the number of bytes of shared memory that the device allows a thread
     * block. */
    uint32_t most_shared, checks;
    /* A thread block has `shared_bytes` bytes of shared memory. Of these, `used_shared` count for
     * the device's limit (ptx_static_shared). */
    uint32_t shared_bytes, used_shared;
    uint32_t capability; /* `capability` is the device's compute capability times 10, e.g. 90. */
    uint64_t seed, limit, steps;
    uint32_t multiprocessors;
    enum sim_timed timed;
    ptx_times times; /* The simulator writes the time of the launch to `times`. */
    /* The simulator writes to `hot` the source lines at which warps wait longest, with the longest
     * wait first. */
    sim_hot hot[HOT_LINES];
};
/* Runs a launch of a kernel. On failure returns false and writes the reason to `error`, which has
 * ERROR_BYTES bytes. */
bool ptx_run_launch(ptx_launch *launch, char *error);

/* Stops the warp with an error. The message contains the formatted text, the kernel, the PTX and
 * source lines, the thread block, the warp and the instruction. */
void ptx_stop(ptx_warp *w, const ptx_inst *i, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void ptx_run(ptx_warp *w, uint64_t budget);
/* Chooses the lanes of a warp that execute next, i.e. all lanes that wait at one instruction.
 * Normally this is the instruction that is earliest in the text. If `rotate` is true, it is the
 * next instruction after the current one at which lanes wait. If no lane can run, the function sets
 * w->stop to STOP_BLOCKED or STOP_END. */
void ptx_schedule(ptx_warp *w, bool rotate);
/* Suspends the active lanes, which will continue at instruction `pc`. */
void ptx_leave(ptx_warp *w, uint32_t pc);
/* Returns true if all running lanes of the mask `members` have reached the instruction. Otherwise
 * suspends the lanes that are already there, and returns false. */
bool ptx_together(ptx_warp *w, const ptx_inst *i, uint32_t members);
/* Releases the threads that wait at a barrier of the thread block if all expected threads have
 * arrived. */
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
/* Returns a predicate operand as a mask of lanes. The mask is all ones if the operand is absent. */
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
static inline const ptx_operand *ptx_element(const ptx_operand *o, uint32_t k) {
    return o->place == VECTOR ? &o->elements[k] : o;
}
/* Writes `value` to a register in the lanes of w->mask. `value` is an array with one entry for each
 * lane: 64 bits for registers of 8 bytes, and 32 bits for smaller registers. */
void ptx_commit(ptx_warp *w, const ptx_operand *o, const void *value);
void ptx_execute_lanes(ptx_warp *w, const ptx_inst *i);

/* Returns the host address of `bytes` bytes at a shared address. If they are outside the thread
 * block's shared memory, stops the warp with an error and returns NULL. */
uint8_t *ptx_shared(ptx_warp *w, const ptx_inst *i, uint64_t address, uint32_t bytes, bool write);
/* Returns the host address of shared memory for an access by the async proxy, i.e. by the copy
 * engine or a tensor core. If the access reads bytes that a thread has written, and no
 * fence.proxy.async was executed since that write, it stops the warp with an error and returns
 * NULL. */
uint8_t *ptx_shared_async(ptx_warp *w, const ptx_inst *i, uint64_t address, uint32_t bytes,
                          bool write);
/* Records that a thread of the cluster has executed fence.proxy.async. */
void ptx_fence_proxies(ptx_cluster *c);
/* Stores in `at` the host address of the bytes that each lane accesses. If they are misaligned or
 * outside any allocation, stops the warp with an error and returns false. */
bool ptx_resolve(ptx_warp *w, const ptx_inst *i, const uint64_t *address, int space, uint32_t bytes,
                 bool write, uint8_t **at);
void ptx_addresses(const ptx_warp *w, const ptx_operand *o, uint64_t *address);
#endif
