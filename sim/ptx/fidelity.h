/* Declares the counters of executed opcodes of PTX. */
#ifndef SIM_PTX_FIDELITY_H
#define SIM_PTX_FIDELITY_H
#include "common/fidelity.h"

/* Returns the counter of an opcode, or NULL if nothing is counted. The counter's name is the
 * opcode's text without hints for caches. In ld, st, mov and selp, the name has the type b32 or b64
 * if only the type's width matters. */
sim_record *ptx_record_of(const char *opcode);
#endif
