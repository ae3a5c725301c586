/* This is the host code of block-scaled products on CDNA4 (cdna/gemm_scaled_body.h). The operands
 * may be any pair of e4m3, e5m2, e2m3, e3m2 and e2m1, each with an e8m0 scale for 32 elements of K
 * in any layout. The scaled matrix instruction multiplies the elements in their stored format. */
#include "amdgpu/host/mfma.h"

enum { SMALL, LARGE, TILES };
enum { TYPES = 5 };

/* Lists the element types. The index of a type is the code that the matrix instruction f8f6f4 uses
 * for this type. */
static const uint32_t elems[TYPES] = {BSMM_ELEM_E4M3, BSMM_ELEM_E5M2, BSMM_ELEM_E2M3,
                                      BSMM_ELEM_E3M2, BSMM_ELEM_E2M1};

/* These are the indices in `elems` and the numbers of bits of the types in tiles.def. */
enum { TYPE_e4m3, TYPE_e5m2, TYPE_e2m3, TYPE_e3m2, TYPE_e2m1 };
enum { BITS_e4m3 = 8, BITS_e5m2 = 8, BITS_e2m3 = 6, BITS_e3m2 = 6, BITS_e2m1 = 4 };

/* STAGE is the size of one stage of operands in bytes, for a square tile with `rows` rows of A and
 * `rows` rows of B. STAGES is the number of bytes of LDS that all stages and the scales of a kernel
 * take. */
#define STAGE(rows, a, b) BSMM_CDNA_STAGE_BYTES(rows, rows, BITS_##a, BITS_##b)
#define STAGES(rows, a, b)                                                                         \
    (BSMM_CDNA_STAGES(STAGE(rows, a, b), 2 * (rows)) * STAGE(rows, a, b) +                         \
     BSMM_CDNA_SCALE_BYTES(2 * (rows)))
#define FUNCTION(size, a, b, rows)                                                                 \
    { "gfx950/scaled_" #a, #size "_" #b, STAGES(rows, a, b) }
#define ROW_small(a, b)                                                                            \
    [TYPE_##a][TYPE_##b][SMALL] = {FUNCTION(small, a, b, 64), 64, 64, 256, 240, 800, false, false},
#define ROW_large(a, b)                                                                            \
    [TYPE_##a][TYPE_##b][LARGE] = {                                                                \
        FUNCTION(large, a, b, 256), 256, 256, 512, 2560, 2560, false, true},
#define TILE(size, a, b) ROW_##size(a, b)

static const bsmm_mfma_tile tiles[TYPES][TYPES][TILES] = {
#include "amdgpu/gfx950/tiles.def"
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

/* Returns the error bound of a result, relative to the sum of the magnitudes of all products. A
 * product of two elements is exact. An instruction adds 128 products to a sum. It may truncate each
 * term to a multiple of a number that is 2^23 times smaller than the largest term.
 *
 * The same bound holds if K is divided into n parts (split-K). Adding the sums of the parts takes
 * n - 1 more roundings, but each sum takes fewer instructions than a sum over all of K. All parts
 * except the last have at least 512 elements, i.e. 4 instructions. A part therefore takes at least
 * 4 * (n - 2) + 1 instructions less than all of K, and this is n - 1 or more. */
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
