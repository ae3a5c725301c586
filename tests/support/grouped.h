/* Grouped products for tests. The test computes each product twice: by one grouped call, and by one
 * call for each group with separate matrices. It copies the elements of the separate matrices to
 * the matrices of the grouped call one by one. */
#ifndef BSMM_TEST_GROUPED_H
#define BSMM_TEST_GROUPED_H

#include "operand.h"

enum {
    GROUPED_COUNT = 6, /* the number of groups */
    GROUPED_N = 38,
    GROUPED_K = 160,
    GROUPED_M = 70,
    GROUPED_TOKENS = 50, /* the number of rows of A from which groups gather their rows */
    GROUPED_MOST_ROWS = GROUPED_COUNT * GROUPED_M
};

typedef struct grouped_case {
    const char *name, *a, *b, *d;
    bsmm_group group; /* the group's kind, flags, alignment and steps */
    uint32_t a_layout, b_layout, d_layout;
    uint32_t orders; /* Bits 0, 1 and 2 are set if A, B and D are in column order. */
    int64_t d_ld;
    bool plain; /* true if there is no C, bias, factor or epilogue */
    bool gated;
    int32_t given[GROUPED_COUNT]; /* group sizes in device memory; if all are 0, the sizes of
                                     `extents` are used */
    int64_t extents[GROUPED_COUNT];
} grouped_case;

/* One group of the product, with separate matrices. One bsmm_matmul call multiplies the group. */
typedef struct grouped_part {
    test_matrix a, b, c, d, residual;
    bsmm_epilogue epilogue;
} grouped_part;

/* The grouped GEMM with all its operands. */
typedef struct grouped_whole {
    test_matrix a, b, c, d, residual;
    int32_t sizes[GROUPED_COUNT], gather[GROUPED_MOST_ROWS];
    float alphas[GROUPED_COUNT], a_globals[GROUPED_COUNT], b_globals[GROUPED_COUNT],
        d_globals[GROUPED_COUNT];
    float bias[GROUPED_COUNT * GROUPED_N], col_scale[GROUPED_COUNT * GROUPED_N],
        row_scale[GROUPED_MOST_ROWS];
    float alpha, beta;
    bsmm_epilogue epilogue;
    bsmm_group group;
    bsmm_matmul_desc desc;
} grouped_whole;

/* ---- positions of groups in the matrices of the grouped call (grouped_place.c) ---- */

bool grouped_has(const grouped_case *c, uint32_t flag);
bool grouped_is_stack(const grouped_case *c, char matrix);

/* Returns the number of D's columns. */
int64_t grouped_d_cols(const grouped_case *c);

/* Computes the first row or column of each group, and returns the total extent. */
int64_t grouped_starts(const grouped_case *c, int64_t starts[GROUPED_COUNT]);

/* These functions return the position in a matrix's memory of element (r, c), and of the scale of
 * block (i, j). */
uint64_t grouped_element_at(const bsmm_matrix *m, int64_t r, int64_t c);
uint64_t grouped_scale_at(const bsmm_matrix *m, int64_t i, int64_t j);

/* A function that is called with an element or a scale of a group's separate matrix (`part`) and
 * the element or scale at the same place of the matrix of the grouped call (`all`). */
typedef void grouped_visitor(uint32_t elem, void *part, uint64_t part_at, void *all,
                             uint64_t all_at);

/* Visits all elements and scales of one matrix of all groups. `matrix` is 'a' to 'd', or 'r' for
 * the residual. `member` is the matrix's offset in grouped_part. */
void grouped_visit(const grouped_case *c, char matrix, size_t member, grouped_part *parts,
                   const test_matrix *all, int64_t step, int64_t scale_step, grouped_visitor *f);

/* ---- products (grouped_make.c) ---- */

/* Makes the separate matrices of the groups and the matrices of the grouped call. */
void grouped_make(const grouped_case *c, grouped_whole *w, grouped_part *parts, rng *r);
void grouped_free(grouped_part *parts, grouped_whole *w);

/* ---- checks (grouped_check.c) ---- */

/* Checks each kernel that takes the case. Its results must be bitwise identical to those of one
 * bsmm_matmul call for each group, and close to dot products in double. Memory that belongs to no
 * group must not be written, whatever the group sizes in device memory are. */
void grouped_check(const grouped_case *c);

#endif
