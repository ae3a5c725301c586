/* This is the host code of block-scaled products on CDNA4 (cdna/gemm_scaled_body.h). The operands
 * may be any pair of e4m3, e5m2, e2m3, e3m2 and e2m1, each with an e8m0 scale for 32 elements of K
 * in any layout. The scaled matrix instruction multiplies the elements in their stored format. */
#include "amdgpu/host/mfma.h"

enum { SMALL, LARGE, TILES };
enum { TYPES = 5 };

/* Lists the element types. The index of a type is its number in the matrix instruction f8f6f4. */
static const uint32_t elems[TYPES] = {BSMM_ELEM_E4M3, BSMM_ELEM_E5M2, BSMM_ELEM_E2M3,
                                      BSMM_ELEM_E3M2, BSMM_ELEM_E2M1};

/* STAGES is the number of bytes of LDS that the stages and the scales of a kernel take. A stage has
 * K elements of `rows` rows of A and of `rows` rows of B. K is 256 if both operands have 4-bit
 * elements, else 128. */
#define K(a_bits, b_bits)           ((a_bits) + (b_bits) == 8 ? 256 : 128)
#define STAGE(rows, a_bits, b_bits) ((rows)*K(a_bits, b_bits) / 8 * ((a_bits) + (b_bits)))
#define STAGES(rows, a_bits, b_bits)                                                               \
    (BSMM_CDNA_STAGES(STAGE(rows, a_bits, b_bits), 2 * (rows)) * STAGE(rows, a_bits, b_bits) +     \
     BSMM_CDNA_SCALE_BYTES(2 * (rows)))
#define SMALL_TILE(a, b, a_bits, b_bits)                                                           \
    [SMALL] = {{"gfx950/scaled_" #a, "small_" #b, STAGES(64, a_bits, b_bits)},                     \
               64,                                                                                 \
               64,                                                                                 \
               256,                                                                                \
               240,                                                                                \
               800,                                                                                \
               false,                                                                              \
               false}
#define LARGE_TILE(a, b, a_bits, b_bits)                                                           \
    [LARGE] = {{"gfx950/scaled_" #a, "large_" #b, STAGES(256, a_bits, b_bits)},                    \
               256,                                                                                \
               256,                                                                                \
               512,                                                                                \
               2560,                                                                               \
               2560,                                                                               \
               false,                                                                              \
               true}
#define BOTH_TILES(a, b, a_bits, b_bits)                                                           \
    SMALL_TILE(a, b, a_bits, b_bits), LARGE_TILE(a, b, a_bits, b_bits)

static const bsmm_mfma_tile tiles[TYPES][TYPES][TILES] = {
    {{BOTH_TILES(e4m3, e4m3, 8, 8)},
     {BOTH_TILES(e4m3, e5m2, 8, 8)},
     {BOTH_TILES(e4m3, e2m3, 8, 6)},
     {BOTH_TILES(e4m3, e3m2, 8, 6)},
     {BOTH_TILES(e4m3, e2m1, 8, 4)}},
    {{BOTH_TILES(e5m2, e4m3, 8, 8)},
     {BOTH_TILES(e5m2, e5m2, 8, 8)},
     {BOTH_TILES(e5m2, e2m3, 8, 6)},
     {BOTH_TILES(e5m2, e3m2, 8, 6)},
     {BOTH_TILES(e5m2, e2m1, 8, 4)}},
    {{BOTH_TILES(e2m3, e4m3, 6, 8)},
     {BOTH_TILES(e2m3, e5m2, 6, 8)},
     {BOTH_TILES(e2m3, e2m3, 6, 6)},
     {BOTH_TILES(e2m3, e3m2, 6, 6)},
     {SMALL_TILE(e2m3, e2m1, 6, 4)}},
    {{BOTH_TILES(e3m2, e4m3, 6, 8)},
     {BOTH_TILES(e3m2, e5m2, 6, 8)},
     {BOTH_TILES(e3m2, e2m3, 6, 6)},
     {BOTH_TILES(e3m2, e3m2, 6, 6)},
     {SMALL_TILE(e3m2, e2m1, 6, 4)}},
    {{BOTH_TILES(e2m1, e4m3, 4, 8)},
     {BOTH_TILES(e2m1, e5m2, 4, 8)},
     {SMALL_TILE(e2m1, e2m3, 4, 6)},
     {SMALL_TILE(e2m1, e3m2, 4, 6)},
     {BOTH_TILES(e2m1, e2m1, 4, 4)}},
};

/* Returns the index in `elems` of the operand's element type, or TYPES if the kernel does not
 * support the operand's format. */
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
        return bsmm_gpu_refuse_formats(
            p, "the kernel takes 4-, 6- and 8-bit floats with e8m0 scales of 1 x 32", why, size);
    const char *reason = bsmm_gpu_refuse_orders(p, why, size);
    if (reason) return reason;
    const bsmm_mfma_tile *tile = bsmm_mfma_choose(p, tiles[a][b], TILES);
    reason = bsmm_mfma_refuse(p, tile, why, size);
    if (!reason) bsmm_mfma_begin(p, tile, 1, state);
    return reason;
}

/* Returns the error bound, relative to the sum of the magnitudes of all products. A product of two
 * elements is exact. An instruction adds 128 products to a sum. It may truncate each term at a bit
 * that is 23 bits below the largest term. The same bound holds if K is divided into n parts. Adding
 * the sums of the parts takes n - 1 more roundings. But a part has at least 512 * (n - 1) elements
 * fewer than K, so its sum takes at least 4 * (n - 1) instructions less than a sum over all of K.
 */
static double bound(const bsmm_product *p, const void *state) {
    (void)state;
    return 2.1 * ((double)p->a.m.cols + 128) * 0x1p-24;
}

const bsmm_kernel bsmm_kernel_hip_gfx950_scaled = {
    .name = "hip_gfx950_scaled",
    BSMM_MFMA_KERNEL,
    .refuse = refuse,
    .bound = bound,
};
