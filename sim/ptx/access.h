/* What the files that touch memory share. */
#ifndef SIM_PTX_ACCESS_H
#define SIM_PTX_ACCESS_H
#include "sim.h"

/* Whether the register of a source, or of an address, was written in all lanes that use it; the
 * warp is stopped if not. `what` names it in the message. */
bool ptx_check_written(ptx_warp *w, const ptx_inst *i, const ptx_operand *o, const char *what);

/* ---- cp.async: copies that arrive when they are waited for ---- */
bool ptx_copies_finish(ptx_warp *w);
#endif
