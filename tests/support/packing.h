/* Declares checks that the tests of all packers share. A packer copies a panel, i.e. a few rows of
 * an operand, into the order in which a kernel reads it. */
#ifndef BSMM_TEST_PACKING_H
#define BSMM_TEST_PACKING_H

#include "core/describe.h"
#include "cpu/engine/engine_gemm.h"
#include "cpu/pack/pack.h"
#include "operand.h"

enum { PACKING_MOST_ROWS = 304 };

/* Describes how one packer packs one operand of a product. */
typedef struct packing {
    bsmm_request request;
    bool is_b;
    const double *values; /* `values` holds the expected values of the operand's elements. */
    int64_t width, unit, unit_bytes;
    int64_t form; /* `form` is the layout of panels if the packer has several layouts. */
    void (*pack)(const bsmm_pack_isa *isa, const struct packing *w, int64_t row, int64_t rows,
                 bsmm_panel *to);
} packing;

/* Holds one or more packed panels. A panel is a few rows of an operand in the order in which a
 * kernel reads it. */
typedef struct packed {
    uint8_t *units;
    uint64_t bytes;
    double factors[PACKING_MOST_ROWS];
    uint8_t wide[PACKING_MOST_ROWS];
} packed;

/* Describes the packing of the matrix `t`. If is_b is true, `t` is B of a product, otherwise A. The
 * other operand has the format `other`. */
void packing_describe(packing *w, const test_matrix *t, const char *other, bool is_b);

/* Packs rows [row, row + rows) into memory that ends before an unreadable page. The memory is
 * filled with 0xff first. The caller frees it by guarded_free. */
packed packing_pack(const bsmm_pack_isa *isa, const packing *w, int64_t row, int64_t rows);

/* Packs the panel of rows that begins at row `row` with plain C code and with each instruction set.
 * Calls check_values for the panel from plain C code. Calls check_units to compare this panel with
 * the panel from each instruction set. Fails unless all panels have the same factors and the same
 * values of `wide`. */
void packing_check_panel(const packing *w, const test_matrix *t, int64_t row,
                         void (*check_values)(const packing *w, const packed *p,
                                              const test_matrix *t, int64_t row, int64_t rows),
                         void (*check_units)(const packed *plain, const packed *other));

/* Checks that packing all panels of an operand in one call writes the same bytes as one call for
 * each panel. */
void packing_check_at_once(const packing *w, const test_matrix *t);

#endif
