/* Declares the functions that all files with matrix instructions use. */
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
/* Returns true if the vector operand has `count` registers. Otherwise stops the warp. */
bool ptx_has_count(ptx_warp *w, const ptx_inst *i, const ptx_operand *o, uint32_t count);

/* How an operand of wgmma or tcgen05.mma lies in shared memory. */
typedef struct {
    uint32_t start, leading, stride; /* bytes */
    uint32_t span;                   /* bytes of a row inside a swizzle; 16 without one */
    bool swizzled, transposed;       /* transposed: contiguous along M or N */
} ptx_layout;
/* The shared address of the byte where element (row, k) begins; row is of M or N. */
uint32_t ptx_layout_place(const ptx_layout *y, uint32_t row, uint32_t k, uint32_t bits);
#endif
