/* Block-scaled products on CDNA4's scaled matrix instruction: e4m3, e5m2, e2m3, e3m2 and e2m1 in
 * any pair, with e8m0 scales for 32 of K in any layout, all as they are stored
 * (cdna/gemm_scaled_body.h). */
#include "amdgpu/host/mfma.h"

enum { SMALL, LARGE, TILES };
enum { TYPES = 5 };

/* In the order of the kernels' numbers of types. */
static const uint32_t elems[TYPES] = {BSMM_ELEM_E4M3, BSMM_ELEM_E5M2, BSMM_ELEM_E2M3,
                                      BSMM_ELEM_E3M2, BSMM_ELEM_E2M1};

/* Two stages of 128 of K, of rows of A and of B: bits * 16 bytes each. */
#define STAGES(rows, a_bits, b_bits) (2 * (rows)*16 * ((a_bits) + (b_bits)))
#define SMALL_TILE(a, b, a_bits, b_bits)                                                           \
    [SMALL] = {{"gfx950/scaled_" #a, "small_" #b, STAGES(64, a_bits, b_bits)}, 64, 64, 256}
#define LARGE_TILE(a, b, a_bits, b_bits)                                                           \
    [LARGE] = {{"gfx950/scaled_" #a, "large_" #b, STAGES(256, a_bits, b_bits)}, 256, 256, 512}
#define BOTH_TILES(a, b, a_bits, b_bits)                                                           \
    SMALL_TILE(a, b, a_bits, b_bits), LARGE_TILE(a, b, a_bits, b_bits)

static const bsmm_mfma_tile tiles[TYPES][TYPES][TILES] = {
    {{BOTH_TILES(e4m3, e4m3, 8, 8)},
     {SMALL_TILE(e4m3, e5m2, 8, 8)},
     {SMALL_TILE(e4m3, e2m3, 8, 6)},
     {SMALL_TILE(e4m3, e3m2, 8, 6)},
     {BOTH_TILES(e4m3, e2m1, 8, 4)}},
    {{SMALL_TILE(e5m2, e4m3, 8, 8)},
     {BOTH_TILES(e5m2, e5m2, 8, 8)},
     {SMALL_TILE(e5m2, e2m3, 8, 6)},
     {SMALL_TILE(e5m2, e3m2, 8, 6)},
     {SMALL_TILE(e5m2, e2m1, 8, 4)}},
    {{SMALL_TILE(e2m3, e4m3, 6, 8)},
     {SMALL_TILE(e2m3, e5m2, 6, 8)},
     {BOTH_TILES(e2m3, e2m3, 6, 6)},
     {SMALL_TILE(e2m3, e3m2, 6, 6)},
     {SMALL_TILE(e2m3, e2m1, 6, 4)}},
    {{SMALL_TILE(e3m2, e4m3, 6, 8)},
     {SMALL_TILE(e3m2, e5m2, 6, 8)},
     {SMALL_TILE(e3m2, e2m3, 6, 6)},
     {BOTH_TILES(e3m2, e3m2, 6, 6)},
     {SMALL_TILE(e3m2, e2m1, 6, 4)}},
    {{SMALL_TILE(e2m1, e4m3, 4, 8)},
     {SMALL_TILE(e2m1, e5m2, 4, 8)},
     {SMALL_TILE(e2m1, e2m3, 4, 6)},
     {SMALL_TILE(e2m1, e3m2, 4, 6)},
     {BOTH_TILES(e2m1, e2m1, 4, 4)}},
};

/* TYPES: none. */
static uint32_t type_of(const bsmm_operand *o) {
    const bsmm_format *f = &o->m.format;
    uint32_t type = 0;
    if (f->scale != BSMM_SCALE_E8M0 || f->block_rows != 1 || f->block_cols != 32) return TYPES;
    while (type < TYPES && elems[type] != f->elem)
        type++;
    return type;
}

static const char *refuse(const bsmm_product *p, void *state, char *why, size_t size) {
    const uint32_t a = type_of(&p->a), b = type_of(&p->b);
    if (a == TYPES || b == TYPES)
        return "takes 4-, 6- and 8-bit floats with e8m0 scales of 1 x 32 on both sides";
    if (p->a.m.order != BSMM_ORDER_ROW || p->b.m.order != BSMM_ORDER_ROW)
        return "takes row-major operands";
    const bsmm_mfma_tile *tile = bsmm_mfma_choose(p, tiles[a][b], TILES);
    const char *reason = bsmm_mfma_refuse(p, tile, why, size);
    if (!reason) bsmm_mfma_begin(p, tile, 1, state);
    return reason;
}

/* Products are exact. An instruction adds 128 of them and a sum, each cut off 23 bits below the
 * largest at worst. */
static double bound(const bsmm_product *p, const void *state) {
    (void)state;
    return 2.1 * ((double)p->a.m.cols + 128) * 0x1p-24;
}

BSMM_CHECK_STATE(bsmm_mfma_state);

const bsmm_kernel bsmm_kernel_hip_gfx950_scaled = {
    .name = "hip_gfx950_scaled",
    .device = "hip",
    .state_bytes = sizeof(bsmm_mfma_state),
    .refuse = refuse,
    .workspace_bytes = bsmm_mfma_workspace_bytes,
    .bound = bound,
    .make = bsmm_mfma_make,
    .run = bsmm_mfma_run,
    .features = BSMM_FEATURE_INVARIANT, /* each result by itself, K ascending */
};
