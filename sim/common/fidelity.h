/* Declares counters of executed instructions, one for each opcode, which both simulators use. Each
 * counter also says whether the opcode is "vouched for", i.e. whether a test that compares the
 * simulator with code or documents of another project executes the opcode. A simulator's file
 * vouched.def lists these opcodes. */
#ifndef SIM_COMMON_FIDELITY_H
#define SIM_COMMON_FIDELITY_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Counts how often this process has executed an opcode. */
typedef struct sim_record {
    struct sim_record *next;
    uint64_t count;
    /* `vouched` is true if tests with code of other projects execute the opcode (vouched.def). */
    bool vouched;
    char name[];
} sim_record;

/* Lists the opcodes that tests with code of other projects execute (vouched.def), sorted by name.
 * Each simulator defines its list. */
extern const char *const sim_vouched[];
extern const size_t sim_vouched_count;

/* Returns the counter of an opcode. Returns NULL if the environment variable BSMM_SIM_FIDELITY is
 * not set, because then nothing is counted. */
sim_record *sim_record_of(const char *name);

static inline void sim_record_step(sim_record *record) {
    if (record) __atomic_add_fetch(&record->count, 1, __ATOMIC_RELAXED);
}

/* Gives opcode number `number` of those that this process has executed, and how often its warps or
 * waves executed it. Returns 1 if tests with code of other projects execute the opcode too, 0 if
 * only tests of bsmm do, and -1 after the last opcode. The environment variable BSMM_SIM_FIDELITY
 * must be set before modules are loaded. */
__attribute__((visibility("default"))) int bsmm_sim_fidelity(unsigned number, const char **opcode,
                                                             uint64_t *count);
#endif
