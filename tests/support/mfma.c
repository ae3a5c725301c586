/* Replaces src/amdgpu/host/mfma_choose.c, which chooses the tile size of AMD kernels, in the
 * library's tests. If the environment variable BSMM_TEST_MFMA is "large", this function chooses a
 * tile whose name begins with "large", whatever the size of the product is. */
#include "amdgpu/host/mfma.h"

#include <stdlib.h>
#include <string.h>

static bool is_wanted(const bsmm_mfma_tile *tile) {
    const char *prefix = getenv("BSMM_TEST_MFMA");
    return prefix && tile->function.name &&
           strncmp(tile->function.name, prefix, strlen(prefix)) == 0;
}

const bsmm_mfma_tile *bsmm_mfma_choose(const bsmm_product *p, const bsmm_mfma_tile *tiles,
                                       uint32_t count) {
    const bsmm_mfma_tile *best = &tiles[0];
    for (uint32_t i = 0; i < count; i++)
        if (is_wanted(&tiles[i]) && bsmm_mfma_fits(p, &tiles[i])) return &tiles[i];
    for (uint32_t i = 1; i < count; i++)
        if (bsmm_mfma_fits(p, &tiles[i]) &&
            bsmm_mfma_estimate(p, &tiles[i]) < bsmm_mfma_estimate(p, best))
            best = &tiles[i];
    return best;
}
