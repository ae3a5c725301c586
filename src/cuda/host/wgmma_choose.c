/* Chooses the tile size of a GEMM, and the number of parts into which its K is split. These
 * functions have a file of their own, so that a test can link other versions of them
 * (tests/support/cuda.c). */
#include "cuda/host/wgmma.h"

const bsmm_wgmma_tile *bsmm_wgmma_choose(const bsmm_product *p, bsmm_wgmma_kind kind,
                                         uint32_t a_elem, uint32_t b_elem) {
    const bsmm_wgmma_tile *best = NULL, *t;
    double least = 0;
    for (size_t i = 0; (t = bsmm_wgmma_tile_at(i)); i++) {
        if (!bsmm_wgmma_tile_takes(t, kind, a_elem, b_elem)) continue;
        double cycles = bsmm_wgmma_tile_cycles(p, t);
        if (!best || cycles < least) best = t, least = cycles;
    }
    return best;
}

int64_t bsmm_wgmma_choose_splits(const bsmm_wgmma_split *split) {
    int64_t best = 1;
    for (int64_t splits = 2; splits <= split->most; splits++)
        if (bsmm_wgmma_split_cycles(split, splits) < bsmm_wgmma_split_cycles(split, best))
            best = splits;
    return best;
}
