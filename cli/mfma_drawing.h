/* Describes the drawing of one operand of an AMD matrix instruction, for the code that prints it as
 * text and the code that draws it as SVG. */
#ifndef CLI_MFMA_DRAWING_H
#define CLI_MFMA_DRAWING_H

#include "bsmm.h"
#include "common.h"
#include <stdbool.h>
#include <stdint.h>

/* Describes the drawing of one operand of a matrix instruction D(i, j) = sum over k of A(i, k) B(k,
 * j). The drawing of A, C or D has one line for each row i of the operand, and the drawing of B has
 * one line for each column j. In the functions below, `outer` is the number of a line, and `inner`
 * is the number of an element in its line. */
typedef struct cli_mfma_drawing {
    bsmm_mfma_info info;
    const char *operand, *type;
    uint32_t kind, block, rows, cols;
    /* `transposed` is true if the operand is B. A line of the drawing is then a column of the
     * operand. */
    bool transposed;
    const char *title, *outer_axis, *inner_axis;
} cli_mfma_drawing;

/* Describes neighboring elements of a line that share one cell of the drawing. Either one lane
 * holds all of them in adjacent bits, or adjacent lanes hold them in the same bits (over_lanes). */
typedef struct cli_mfma_run {
    uint32_t from, count;
    bsmm_mfma_place first;
    bool over_lanes;
} cli_mfma_run;

bsmm_mfma_place cli_mfma_place_at(const cli_mfma_drawing *d, uint32_t outer, uint32_t inner);

/* A run is a group of neighboring elements of a line that share one cell of the drawing. Returns
 * the longest run that begins at element `from` of line `outer`. */
cli_mfma_run cli_mfma_next_run(const cli_mfma_drawing *d, uint32_t outer, uint32_t from);

/* A place is the lane and the register bits that hold an element. Returns the number of its first
 * bit, counted from bit 0 of the operand's first register. */
uint32_t cli_mfma_first_bit(bsmm_mfma_place place);

/* Returns the name of a range of register bits: "v0[7:0]"; "v0" for a whole register;
 * "v0[31:30]-v1[3:0]" across two registers; "v2-v5" for several whole registers. */
cli_text cli_mfma_registers(uint32_t low, uint32_t bits);

void cli_mfma_draw_svg(const cli_mfma_drawing *d);

#endif
