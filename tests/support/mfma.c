/* Replaces src/amdgpu/host/mfma_choose.c, which chooses the tile size of AMD kernels, in the
 * library's tests. If the environment variable BSMM_TEST_MFMA is "large", the function here chooses
 * a tile whose name begins with "large", whatever the size of the product is. */
#include "amdgpu/host/mfma.h"

#include <stdlib.h>
#include <string.h>

/* The library's own function, with another name. */
static const bsmm_mfma_tile *choose_by_estimate(const bsmm_product *p, const bsmm_mfma_tile *tiles,
                                                uint32_t count);
#define bsmm_mfma_choose choose_by_estimate
#include "../../src/amdgpu/host/mfma_choose.c" /* NOLINT(bugprone-suspicious-include) */
#undef bsmm_mfma_choose

static bool is_wanted(const bsmm_mfma_tile *tile) {
    const char *prefix = getenv("BSMM_TEST_MFMA");
    return prefix && tile->function.name &&
           strncmp(tile->function.name, prefix, strlen(prefix)) == 0;
}

const bsmm_mfma_tile *bsmm_mfma_choose(const bsmm_product *p, const bsmm_mfma_tile *tiles,
                                       uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (is_wanted(&tiles[i]) && bsmm_mfma_fits(p, &tiles[i])) return &tiles[i];
    return choose_by_estimate(p, tiles, count);
}
