/* Declares a comparison of results that a CPU kernel computes with B in one slab and in many slabs.
 * A slab is a part of B's rows that is packed at once. */
#ifndef BSMM_TEST_SLABS_H
#define BSMM_TEST_SLABS_H

#include "operand.h"

/* Runs a product by each CPU kernel that packs B in slabs (a slab is the part of B that is packed
 * at a time): once with slabs of the smallest possible size, and once with all of B in one slab.
 * The workspace of each run ends before an unreadable page. Fails the test if the bits of D differ,
 * or if the smaller slabs need no smaller workspace. `rows` is the number of rows of a run, for
 * plans with BSMM_MATMUL_ANY_ROWS; else it is 0. Returns the number of kernels. */
int slabs_compare(bsmm_matmul_desc *desc, int64_t rows);

#endif
