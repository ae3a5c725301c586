/* Declares the counters of executed instructions by opcode. Each counter also tells whether the
 * opcode is vouched for, i.e. whether a tested kernel of another project executes it (vouched.def).
 */
#ifndef SIM_PTX_FIDELITY_H
#define SIM_PTX_FIDELITY_H
#include <stdbool.h>
#include <stdint.h>

/* Counts how often the warps of this process have executed an opcode. */
typedef struct ptx_record {
    struct ptx_record *next;
    uint64_t count;
    bool vouched; /* True if the opcode is in vouched.def. */
    /* The opcode's text without hints for caches. The types of ld, st, mov and selp are those of
     * bits where only their width matters. */
    char name[];
} ptx_record;

/* Returns the counter of an opcode. Returns NULL if the environment variable BSMM_SIM_FIDELITY is
 * not set, because then nothing is counted. */
ptx_record *ptx_record_of(const char *opcode);
#endif
