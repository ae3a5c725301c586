/* Declares functions for the files that implement PTX memory instructions. */
#ifndef SIM_PTX_ACCESS_H
#define SIM_PTX_ACCESS_H
#include "sim.h"

/* Returns true if all active lanes have written the register of an operand before. Otherwise stops
 * the warp with an error message that contains `what`, the operand's role. */
bool ptx_check_written(ptx_warp *w, const ptx_inst *i, const ptx_operand *o, const char *what);

/* Combines the elements at `to` with those at `from` by the operation in the opcode, such as add or
 * max, and writes the results to `to`. There are `bytes` bytes of elements. */
void ptx_reduce(const ptx_inst *i, ptx_type type, uint8_t *to, const uint8_t *from, uint32_t bytes);
#endif
