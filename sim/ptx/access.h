/* Declares the functions that all files with memory instructions use. */
#ifndef SIM_PTX_ACCESS_H
#define SIM_PTX_ACCESS_H
#include "sim.h"

/* Returns true if the register of a source or of an address was written in all lanes that read it.
 * Otherwise stops the warp; the message calls the operand `what`. */
bool ptx_check_written(ptx_warp *w, const ptx_inst *i, const ptx_operand *o, const char *what);

/* ---- cp.async: copies that arrive when they are waited for ---- */
bool ptx_copies_finish(ptx_warp *w);
#endif
