/* Declares functions that all files with PTX memory instructions call. */
#ifndef SIM_PTX_ACCESS_H
#define SIM_PTX_ACCESS_H
#include "sim.h"

/* Returns true if all active lanes have written the register of a source or address operand.
 * Otherwise stops the warp with an error that calls the operand `what`. */
bool ptx_check_written(ptx_warp *w, const ptx_inst *i, const ptx_operand *o, const char *what);

/* Combines each element at `to` with the element at `from` by the operation that the opcode names,
 * such as add or max. Writes the results to `to`. */
void ptx_reduce(const ptx_inst *i, ptx_type type, uint8_t *to, const uint8_t *from, uint32_t bytes);
#endif
