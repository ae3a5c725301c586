/* Chooses the tile of an MFMA kernel, and the number of parts into which K is divided (split-K).
 * The functions have a file of their own so that tests can replace them (tests/support/mfma.c). */
#include "amdgpu/host/mfma.h"

uint32_t bsmm_mfma_choose_parts(const bsmm_product *p, const bsmm_mfma_tile *tile) {
    const uint32_t most = bsmm_mfma_most_parts(p, tile);
    uint32_t best = 1;
    for (uint32_t parts = 2; parts <= most; parts++)
        if (bsmm_mfma_estimate(p, tile, parts) < bsmm_mfma_estimate(p, tile, best)) best = parts;
    return best;
}

/* If workgroups compute several tiles each, the number of workgroups is a multiple of the number of
 * XCDs (dies). Each workgroup then computes only tiles of the range that gemm_schedule.h gives to
 * its XCD. If K is divided into parts, there are few tiles, and each workgroup computes one part of
 * one tile. */
uint32_t bsmm_mfma_choose_groups(const bsmm_product *p, const bsmm_mfma_tile *tile, uint32_t tiles,
                                 uint32_t parts) {
    const bsmm_hip_device *device = p->device;
    const uint32_t units = device->compute_units > 0 ? (uint32_t)device->compute_units : 0;
    const uint32_t most = units / BSMM_CDNA_XCDS * BSMM_CDNA_XCDS;
    return tile->persistent && parts == 1 && most && tiles > most ? most : tiles * parts;
}

static double least_time(const bsmm_product *p, const bsmm_mfma_tile *tile) {
    return bsmm_mfma_estimate(p, tile, bsmm_mfma_choose_parts(p, tile));
}

const bsmm_mfma_tile *bsmm_mfma_choose(const bsmm_product *p, const bsmm_mfma_tile *tiles,
                                       uint32_t count) {
    const bsmm_mfma_tile *best = &tiles[0];
    for (uint32_t i = 1; i < count; i++)
        if (bsmm_mfma_fits(p, &tiles[i]) && least_time(p, &tiles[i]) < least_time(p, best))
            best = &tiles[i];
    return best;
}
