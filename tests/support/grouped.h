/* Grouped products for tests: the same product as one grouped call and as a loop over groups with
 * separate matrices. The grouped matrices are assembled from those of the groups, element by
 * element. */
#ifndef BSMM_TEST_GROUPED_H
#define BSMM_TEST_GROUPED_H

#include "operand.h"

enum {
    GROUPED_COUNT = 6, /* groups */
    GROUPED_N = 38,
    GROUPED_K = 160,
    GROUPED_M = 70,
    GROUPED_TOKENS = 50, /* rows of A that groups gather from */
    GROUPED_MOST_ROWS = GROUPED_COUNT * GROUPED_M
};

typedef struct grouped_case {
    const char *name, *a, *b, *d;
    bsmm_group group; /* the group's kind, flags, alignment and steps */
    uint32_t a_layout, b_layout, d_layout;
    uint32_t orders; /* bit 0: A is in column order; bit 1: B; bit 2: D */
    int64_t d_ld;
    bool plain; /* true if there is no C, bias, factor or epilogue */
    bool gated;
    int32_t given[GROUPED_COUNT]; /* sizes on the device; if all are 0, those of `extents` */
    int64_t extents[GROUPED_COUNT];
} grouped_case;

/* One group with matrices of its own. */
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

/* ---- positions (grouped_place.c) ---- */

bool grouped_has(const grouped_case *c, uint32_t flag);
bool grouped_is_stack(const grouped_case *c, char matrix);

/* Returns the number of D's columns. */
int64_t grouped_d_cols(const grouped_case *c);

/* Computes the first row or column of each group, and returns the total extent. */
int64_t grouped_starts(const grouped_case *c, int64_t starts[GROUPED_COUNT]);

/* Return the index of an element, and of the scale of a block. */
uint64_t grouped_element_at(const bsmm_matrix *m, int64_t r, int64_t c);
uint64_t grouped_scale_at(const bsmm_matrix *m, int64_t i, int64_t j);

/* Is called with an element or a scale of a group's matrix and the one of the grouped matrix at the
 * same place. */
typedef void grouped_visitor(uint32_t elem, void *part, uint64_t part_at, void *all,
                             uint64_t all_at);

/* Visits all groups' parts of a matrix ('a' to 'd', or 'r' for the residual), which lie at offset
 * `member` of grouped_part. */
void grouped_visit(const grouped_case *c, char matrix, size_t member, grouped_part *parts,
                   const test_matrix *all, int64_t step, int64_t scale_step, grouped_visitor *f);

/* ---- products (grouped_make.c) ---- */

/* Makes the matrices of the groups and the grouped product. */
void grouped_make(const grouped_case *c, grouped_whole *w, grouped_part *parts, rng *r);
void grouped_free(grouped_part *parts, grouped_whole *w);

/* ---- checks (grouped_check.c) ---- */

/* Checks each kernel that takes the case. It must be bitwise identical to a loop that calls
 * bsmm_matmul for each group, and close to dot products in double. Memory that belongs to no group
 * must not be written, whatever sizes are found on the device. */
void grouped_check(const grouped_case *c);

#endif
