/* Declares functions that test grouped products, i.e. several matrix products that one call
 * computes. A test computes each product twice: by one grouped call, and by one bsmm_matmul call
 * for each group with separate matrices. */
#ifndef BSMM_TEST_GROUPED_H
#define BSMM_TEST_GROUPED_H

#include "operand.h"

enum {
    GROUPED_COUNT = 6,
    GROUPED_N = 38,
    GROUPED_K = 160,
    GROUPED_M = 70,
    /* GROUPED_TOKENS is the number of rows of A from which groups gather their rows. */
    GROUPED_TOKENS = 50,
    GROUPED_MOST_ROWS = GROUPED_COUNT * GROUPED_M
};

typedef struct grouped_case {
    const char *name, *a, *b, *d;
    bsmm_group group;
    uint32_t a_layout, b_layout, d_layout;
    /* Bit 0 of `orders` is set if A is column-major, bit 1 if B is, and bit 2 if D is. */
    uint32_t orders;
    int64_t d_ld;
    /* `a_scale_ld`, `b_scale_ld` and `d_scale_ld` are strides in the matrices of the grouped call:
     * the number of scales from one row (or column) of scales to the next. */
    int64_t a_scale_ld, b_scale_ld, d_scale_ld;
    bool plain; /* `plain` is true if there is no C, bias, factor or epilogue. */
    bool gated;
    /* `given` holds the group sizes that the test writes to device memory. If all are 0, the test
     * writes the sizes that follow from `extents`. */
    int32_t given[GROUPED_COUNT];
    int64_t extents[GROUPED_COUNT];
} grouped_case;

/* Holds the operands of one group as separate matrices, so that one call of bsmm_matmul can
 * multiply them. */
typedef struct grouped_part {
    test_matrix a, b, c, d, residual;
    bsmm_epilogue epilogue;
} grouped_part;

/* Holds the operands of the grouped call, which contain the matrices of all groups. */
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

bool grouped_has(const grouped_case *c, uint32_t flag);
bool grouped_is_stack(const grouped_case *c, char matrix);

int64_t grouped_d_cols(const grouped_case *c);

/* Computes for each group the number of its first row (or column) in the matrices of the grouped
 * call, as the sum of the earlier group sizes. Returns the sum of all group sizes. */
int64_t grouped_starts(const grouped_case *c, int64_t starts[GROUPED_COUNT]);

/* These functions return the index of element (r, c), or of the scale of block (i, j), in the
 * memory of a matrix. */
uint64_t grouped_element_at(const bsmm_matrix *m, int64_t r, int64_t c);
uint64_t grouped_scale_at(const bsmm_matrix *m, int64_t i, int64_t j);

/* Returns the number of scales from the first scale of one group's matrix to that of the next
 * group's. `given` is this number in the grouped call; 0 means that the matrices follow each other
 * without gaps. */
uint64_t grouped_scale_step(const bsmm_operand *o, int64_t given);

/* A function of this type is called for each element and scale of a group. `part` is the memory of
 * the group's separate matrix, and `all` is the memory of the grouped call's matrix. `part_at` and
 * `all_at` are the indices of the element or scale in these two memories. */
typedef void grouped_visitor(uint32_t elem, void *part, uint64_t part_at, void *all,
                             uint64_t all_at);

/* Calls `f` for each element and scale of one matrix of every group. `matrix` is 'a' to 'd', or
 * 'r' for the residual. `member` is the byte offset of the matrix in grouped_part. */
void grouped_visit(const grouped_case *c, char matrix, size_t member, grouped_part *parts,
                   const test_matrix *all, int64_t step, int64_t scale_step, grouped_visitor *f);

/* Makes the separate matrices of the groups and the matrices of the grouped call. */
void grouped_make(const grouped_case *c, grouped_whole *w, grouped_part *parts, rng *r);
void grouped_free(grouped_part *parts, grouped_whole *w);

/* Checks each kernel that accepts the case. The results must be bitwise identical to those of one
 * bsmm_matmul call for each group, and close to dot products in double. No kernel may write memory
 * that belongs to no group, whatever group sizes are in device memory. */
void grouped_check(const grouped_case *c);

#endif
