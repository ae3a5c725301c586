/* Replaces src/amdgpu/host/mfma_choose.c in tests. That file chooses the tile size of AMD kernels
 * and the number of parts of K (split-K). With BSMM_TEST_MFMA=large in the environment, all
 * products get large tiles. The environment variable BSMM_TEST_MFMA_PARTS sets the number of parts
 * of K, up to the largest possible number. For kernels whose workgroups can compute several tiles,
 * BSMM_TEST_MFMA_GROUPS sets the largest number of workgroups. */
#include "amdgpu/host/mfma.h"

#include <stdlib.h>
#include <string.h>

/* This file includes a source file of the library, in which macros give some functions other names,
 * e.g. choose_by_estimate. This file can therefore define a function with the library's original
 * name, which may call the renamed function. */
static const bsmm_mfma_tile *choose_by_estimate(const bsmm_product *p, const bsmm_mfma_tile *tiles,
                                                uint32_t count);
static uint32_t parts_by_estimate(const bsmm_product *p, const bsmm_mfma_tile *tile);
static uint32_t groups_by_units(const bsmm_product *p, const bsmm_mfma_tile *tile, uint32_t tiles,
                                uint32_t parts);
#define bsmm_mfma_choose        choose_by_estimate
#define bsmm_mfma_choose_parts  parts_by_estimate
#define bsmm_mfma_choose_groups groups_by_units
#include "../../src/amdgpu/host/mfma_choose.c" /* NOLINT(bugprone-suspicious-include) */
#undef bsmm_mfma_choose
#undef bsmm_mfma_choose_parts
#undef bsmm_mfma_choose_groups

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

uint32_t bsmm_mfma_choose_parts(const bsmm_product *p, const bsmm_mfma_tile *tile) {
    const char *wanted = getenv("BSMM_TEST_MFMA_PARTS");
    if (!wanted) return parts_by_estimate(p, tile);
    const uint32_t most = bsmm_mfma_most_parts(p, tile),
                   parts = (uint32_t)strtoul(wanted, NULL, 10);
    return parts < most ? parts : most;
}

uint32_t bsmm_mfma_choose_groups(const bsmm_product *p, const bsmm_mfma_tile *tile, uint32_t tiles,
                                 uint32_t parts) {
    const char *wanted = getenv("BSMM_TEST_MFMA_GROUPS");
    if (!wanted || !tile->persistent || parts > 1) return groups_by_units(p, tile, tiles, parts);
    const uint32_t most = (uint32_t)strtoul(wanted, NULL, 10);
    return most < tiles ? most : tiles;
}
