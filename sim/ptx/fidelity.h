/* Declares the counters of executed opcodes of PTX. */
#ifndef SIM_PTX_FIDELITY_H
#define SIM_PTX_FIDELITY_H
#include "common/fidelity.h"

/* Returns the counter of an opcode, or NULL if nothing is counted. The counter's name is the
 * opcode's text without hints for caches. The types of ld, st, mov and selp are those of bits where
 * only their width matters. */
sim_record *ptx_record_of(const char *opcode);
#endif
