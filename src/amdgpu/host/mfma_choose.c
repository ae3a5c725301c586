/* Chooses the tile of an MFMA kernel. The function has a file of its own so that tests can replace
 * it (tests/support/mfma.c). */
#include "amdgpu/host/mfma.h"

const bsmm_mfma_tile *bsmm_mfma_choose(const bsmm_product *p, const bsmm_mfma_tile *tiles,
                                       uint32_t count) {
    const bsmm_mfma_tile *best = &tiles[0];
    for (uint32_t i = 1; i < count; i++)
        if (bsmm_mfma_fits(p, &tiles[i]) &&
            bsmm_mfma_estimate(p, &tiles[i]) < bsmm_mfma_estimate(p, best))
            best = &tiles[i];
    return best;
}
