/* This is the host code of FP8 groupwise GEMMs on CDNA3 and CDNA4 (cdna/gemm_promoted_body.h). A
 * and B are both e4m3, or on CDNA3 both e4m3fnuz. They have fp32 scales for 1 x 128 or 128 x 128
 * elements in any layout. A and B are both row-major, or both column-major. */
#include "amdgpu/host/mfma.h"

#include <string.h>

/* These enums name the columns of cdna/groupwise.def. */
enum { SMALL, LARGE, TALL, TILES };
enum { BLOCKS, COLS, SCALES };
enum { TYPE_e4m3, TYPE_e4m3fnuz, TYPES };
enum { ROWS, TURNED, ORDERS };

/* STAGES(rows) is the number of bytes of LDS of a kernel. LDS holds two stages with `rows` rows of
 * A and `rows` rows of B. */
#define STAGES(rows) (2 * BSMM_CDNA_STAGE_BYTES(rows, rows, 8, 8))
/* TALL_BYTES is the number of bytes of LDS for a tile of 256 x 128 results, which exists only on
 * gfx942 (gfx942/tall.h). Each of two buffers in LDS holds 64 elements of K for 256 rows of A and
 * 128 rows of B. With column-major operands, some waves also write to the 4096 bytes after the
 * buffers. */
#define TALL_BYTES (2 * (256 + 128) * 64 + 4096)
#define ROW_SMALL(name)                                                                            \
    { {"cdna/groupwise", name, STAGES(64)}, 64, 64, 256, 830, 2400, false, false }
#define ROW_LARGE(name)                                                                            \
    { {"cdna/groupwise", name, STAGES(128)}, 128, 128, 512, 2200, 2700, false, false }
#define ROW_TALL(name)                                                                             \
    { {"gfx942/groupwise", name, TALL_BYTES}, 256, 128, 512, 2200, 2200, true, false }
#define TILE(size, elem, order, scales, name)                                                      \
    [TYPE_##elem][order][scales][size] = ROW_##size(#name),

static const bsmm_mfma_tile tiles[TYPES][ORDERS][SCALES][TILES] = {
#include "amdgpu/cdna/groupwise.def"
};

static bool has_groups(const bsmm_operand *o) {
    const bsmm_format *f = &o->m.format;
    return f->scale == BSMM_SCALE_F32 && f->block_cols == 128 &&
           (f->block_rows == 1 || f->block_rows == 128);
}

static bool is_gfx942(const bsmm_product *p) {
    const bsmm_hip_device *device = p->device;
    return strcmp(device->arch, "gfx942") == 0;
}

static const char *name_order(const bsmm_operand *o) {
    return o->m.order == BSMM_ORDER_ROW ? "ORDER_ROW" : "ORDER_COL";
}

static const char *refuse(const bsmm_product *p, void *state, char *why, size_t size) {
    const uint32_t elem = p->a.m.format.elem;
    if (elem != p->b.m.format.elem || (elem != BSMM_ELEM_E4M3 && elem != BSMM_ELEM_E4M3FNUZ))
        return bsmm_gpu_refuse_formats(
            p, "the kernel takes e4m3 elements on both sides, or e4m3fnuz on both", why, size);
    if (!has_groups(&p->a) || !has_groups(&p->b))
        return bsmm_gpu_refuse_formats(p, "the kernel takes f32 scales of 1 x 128 or 128 x 128",
                                       why, size);
    if (elem == BSMM_ELEM_E4M3FNUZ && !is_gfx942(p))
        return bsmm_reason(why, size,
                           "A has e4m3fnuz elements; only gfx942 multiplies them, not %s",
                           ((const bsmm_hip_device *)p->device)->arch);
    if (p->a.m.order != p->b.m.order)
        return bsmm_reason(why, size, "A is %s and B is %s; the kernel takes operands of one order",
                           name_order(&p->a), name_order(&p->b));
    const uint32_t order = p->a.m.order == BSMM_ORDER_ROW ? ROWS : TURNED;
    const uint32_t type = elem == BSMM_ELEM_E4M3 ? TYPE_e4m3 : TYPE_e4m3fnuz;
    const uint32_t scales = p->b.m.format.block_rows == 1 ? COLS : BLOCKS;
    const bsmm_mfma_tile *tile = bsmm_mfma_choose(p, tiles[type][order][scales], TILES);
    const char *reason = bsmm_mfma_refuse(p, tile, why, size);
    /* The matrix cores of gfx942 read e4m3 elements as e4m3fnuz, where the same bits mean half the
     * value. The kernel therefore multiplies the product of A and B by 4. */
    if (!reason) bsmm_mfma_begin(p, tile, elem == BSMM_ELEM_E4M3 && is_gfx942(p) ? 4 : 1, state);
    return reason;
}

/* Returns the error bound of a result, relative to the sum of the magnitudes of all its products.
 * The bound allows these errors:
 * - The matrix cores sum the products of each 128 elements of K. A product of two elements is
 *   exact. But an instruction may truncate each term of its sum to a multiple of a number that is
 *   2^23 times smaller than the largest term.
 * - The product of a scale of A and a scale of B may be rounded twice.
 * - The total over K is rounded once for each 128 elements of K.
 *
 * The same bound holds if K is divided into n parts (split-K). Adding the totals of the parts takes
 * n - 1 more roundings. But a part is shorter than K, so its total is rounded at least n - 1 times
 * less often than a total over all of K. */
static double bound(const bsmm_product *p, const void *state) {
    (void)state;
    return (2.1 * (128 + 16) + (double)p->a.m.cols / 128 + 4) * 0x1p-24;
}

const bsmm_kernel bsmm_kernel_hip_cdna_fp8 = {
    .name = "hip_cdna_fp8",
    BSMM_MFMA_KERNEL,
    .refuse = refuse,
    .bound = bound,
};
