/* What the files of matrix instructions share. */
#ifndef SIM_PTX_MATRIX_H
#define SIM_PTX_MATRIX_H
#include "sim.h"

/* Elements in a 32-bit register, or the one of a wider one: f64 and tf32 one, small floats in bytes
 * four. */
uint32_t ptx_elements_of(ptx_type type);
double ptx_value_of(ptx_type type, uint64_t bits);
/* Element e of a register. */
uint64_t ptx_element_bits(ptx_type type, uint64_t reg, uint32_t e);
/* A sum rounded to the type of the result. */
uint64_t ptx_result_bits(const ptx_inst *i, ptx_type type, double v);
/* Whether a vector operand has so many registers; the warp is stopped if not. */
bool ptx_has_count(ptx_warp *w, const ptx_inst *i, const ptx_operand *o, uint32_t count);
#endif
