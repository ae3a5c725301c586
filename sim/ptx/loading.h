/* Finds registers that tcgen05.ld loads and that a warp reads before tcgen05.wait::ld. */
#ifndef SIM_PTX_LOADING_H
#define SIM_PTX_LOADING_H
#include "sim.h"

/* Marks a register as one that the instruction loads, until the warp executes tcgen05.wait::ld. */
void ptx_loading_mark(ptx_warp *w, const ptx_inst *i, const ptx_operand *o);
/* Unmarks all registers of a warp. */
void ptx_loading_end(ptx_warp *w);
/* A marked register is one that a tcgen05.ld is still loading. Returns true if the instruction
 * reads no marked register. Otherwise stops the warp with an error message. Only a mov may read a
 * marked register, because the assembler removes such a mov. The result of the mov is then marked
 * too. Must be called before the instruction is executed. */
bool ptx_loading_check(ptx_warp *w, const ptx_inst *i);
#endif
