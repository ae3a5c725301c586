/* Chooses between the small-M kernels, which may read all of B several times, and kernels that
 * first decode B to bf16. The functions have a file of their own, so that a test can link other
 * versions of them (tests/support/cuda.c). */
#include "cuda/host/small_m_product.h"

/* B is large if it has at least LARGE_8BIT elements of 8 bits or LARGE_NARROW elements of fewer
 * bits. For a large B, dividing the rows of A into bands and running a small-M kernel once for each
 * band was faster on an H200 than decoding B first, for nearly all measured products
 * (docs/notes/hopper-small-m.md, "More than 64 rows"). */
enum { LARGE_8BIT = 1 << 24, LARGE_NARROW = 1 << 25 };

bool bsmm_small_m_prefers_bands(const bsmm_product *p, uint32_t bits) {
    const int64_t large = bits == 8 ? LARGE_8BIT : LARGE_NARROW, cols = p->b.m.cols;
    return cols > 0 && p->b.m.rows >= bsmm_ceil_div(large, cols);
}

/* The constants of this function are fitted to 82 products with 9 to 64 rows of A that were
 * measured on an H200. Later the two fixed times were reduced by 0.7 us, because short products
 * among 98 other products took less time than predicted. */
double bsmm_small_m_with_columns(double time, uint32_t columns, uint32_t bits) {
    if (bits == 4) return (columns > 32 ? 1.85 : 1.5) * time;
    if (bits == 6 && columns <= 32) return 1.5 * time;
    return 1.1 * time + (columns > 32 ? 2.8 : 1.8);
}

bool bsmm_small_m_prefers_mixed(double mixed, double other) {
    return mixed <= other;
}

bool bsmm_small_m_divides_mixed(uint32_t columns, uint32_t groups, uint32_t splits,
                                uint32_t steps) {
    (void)columns;
    return groups * splits == 1 || groups * splits <= steps;
}

bool bsmm_small_m_launches_mixed(uint32_t launches) {
    return launches > 0;
}
