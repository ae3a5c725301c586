/* Reads the operands of wgmma and tcgen05.mma from shared memory. A descriptor of 64 bits describes
 * where the elements of an operand are. */
#ifndef SIM_PTX_LAYOUT_H
#define SIM_PTX_LAYOUT_H
#include "sim.h"

/* Tells where the elements of an operand are in shared memory. */
typedef struct {
    uint32_t start, leading, stride; /* `start`, `leading` and `stride` count bytes. */
    /* `span` is the width in bytes of the swizzle (32, 64 or 128), i.e. the number of bytes that a
     * row has in one swizzle pattern. It is 16 without a swizzle. */
    uint32_t span;
    /* `transposed` is true if M or N is the contiguous dimension instead of K. */
    bool swizzled, transposed;
} ptx_layout;
/* Writes to *y how an operand lies in shared memory, as a descriptor of wgmma or of tcgen05 states.
 * If the descriptor is invalid or not supported, stops the warp and returns false. */
bool ptx_layout_of_wgmma(ptx_warp *w, const ptx_inst *i, uint64_t descriptor, bool transposed,
                         ptx_layout *y);
bool ptx_layout_of_tcgen05(ptx_warp *w, const ptx_inst *i, uint64_t descriptor, bool transposed,
                           ptx_layout *y);
/* Returns the shared address of a byte of an operand. `byte` counts along the contiguous dimension
 * of the operand, and `across` counts along the other dimension. */
uint32_t ptx_layout_place(const ptx_layout *y, uint32_t across, uint32_t byte);

/* Describes a part of an operand, i.e. `rows` rows from `first` on, each with `k` elements. */
typedef struct {
    uint32_t first, rows, k;
    ptx_type type;
    /* If `packed` is true, elements of less than 8 bits lie without gaps. Otherwise 16 of them lie
     * at the beginning of each 16 bytes. */
    bool packed;
} ptx_part;
/* Reads a part of an operand from the shared memory of a block. Element k of row r of the part goes
 * to to[r * row_step + k * k_step]. Stops the warp and returns false after an error. */
bool ptx_layout_read(ptx_warp *w, const ptx_inst *i, ptx_block *b, const ptx_layout *y, ptx_part p,
                     double *to, uint32_t row_step, uint32_t k_step);
#endif
