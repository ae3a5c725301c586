/* Declares the counters of executed opcodes of PTX. */
#ifndef SIM_PTX_FIDELITY_H
#define SIM_PTX_FIDELITY_H
#include "common/fidelity.h"

/* Returns the counter of an opcode, or NULL if nothing is counted. The counter's name is the
 * opcode's text without cache hints. In ld, st, mov and selp, a type of which only the width
 * matters is named b32 or b64. */
sim_record *ptx_record_of(const char *opcode);
#endif
