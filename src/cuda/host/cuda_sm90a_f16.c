/* The kernel cuda_sm90a_f16 computes GEMMs on Hopper's f16 tensor cores, at the speed of bf16. A is
 * f16 and is read as it is stored. B is f16, or it has elements of at most 8 bits, which are packed
 * to f16.
 *
 * Packing multiplies elements by their 8-bit scales. f16 holds a product exactly if it is a
 * multiple of 2^-24 and its magnitude is below 2^16. With e4m3 scales, f16 holds all products. With
 * e8m0 scales, packing also multiplies all values of B by a power of two, by which the epilogue
 * divides again. f16 then holds all products with scales from a lower bound to 2^3. If a scale of B
 * lies outside this range, A is split into two bf16 parts and is multiplied by B in bf16, as
 * cuda_sm90a_bf16 does. If bf16 cannot hold the values either, the generic GEMM (cuda_sm80_bf16.c)
 * computes the product.
 *
 * fp32 scales of whole rows multiply sums over all of K. fp32 scales of 128 x 128 blocks multiply
 * the sums of each k block, i.e. of 64 elements of K. */
#include "cuda/host/wgmma_kernel.h"

static const bsmm_wgmma_plan in_parts = {
    .kind = BSMM_WGMMA_BF16,
    .routes = {BSMM_PACK_TWO_BF16, BSMM_PACK_BF16},
    .elems = {BSMM_ELEM_BF16, BSMM_ELEM_BF16},
    .when = BSMM_WHEN_ELSE_PARTS,
};

/* Every f16 number is a multiple of 2^LEAST and has a magnitude below 2^MOST. An operand with e8m0
 * scales is packed after a multiplication by one power of two for the whole operand (shift_of). f16
 * then holds all values whose block scale is neither above 2^TOP nor too small. */
enum { LEAST = -24, MOST = 16, TOP = 3 };

/* For an operand with e8m0 scales, packing to f16 multiplies all values by a power of two, 2^shift.
 * Returns this shift: the largest one with which every element times a scale of 2^TOP stays below
 * 2^MOST, the bound of f16's range. */
static int shift_of(const bsmm_operand *o) {
    return MOST - TOP - bsmm_narrow_codec_of(o->m.format.elem).high;
}

/* Returns true if f16 can hold the operand's elements times their 8-bit scales. fp32 scales do not
 * count, because the kernel multiplies sums by them. With e4m3 scales, f16 must hold all such
 * products. e8m0 scales have a wider range than f16. With them, f16 must only hold the largest
 * element times the scale 2^TOP. */
static bool is_half(const bsmm_operand *o) {
    const bsmm_format *f = &o->m.format;
    if (f->elem == BSMM_ELEM_F16) return f->scale == BSMM_SCALE_NONE;
    if (!bsmm_elem_is_narrow(f->elem)) return false;
    const bsmm_narrow_codec codec = bsmm_narrow_codec_of(f->elem);
    if (f->scale == BSMM_SCALE_E8M0) return shift_of(o) >= 0;
    /* The magnitudes of e4m3 scales are 2^-9 to 2^9. */
    const int by = f->scale == BSMM_SCALE_E4M3 ? 9 : 0;
    return codec.high + by <= MOST && codec.low - by >= LEAST;
}

static bool is_stored(const bsmm_operand *o) {
    return o->m.format.elem == BSMM_ELEM_F16 && o->m.format.scale == BSMM_SCALE_NONE &&
           o->m.order == BSMM_ORDER_ROW && o->m.ld % 8 == 0;
}

static bsmm_wgmma_plan plan_of(const bsmm_product *p) {
    const bsmm_format *f = &p->b.m.format;
    bsmm_wgmma_plan plan = {
        .kind = BSMM_WGMMA_BF16,
        .routes = {BSMM_PACK_BF16, BSMM_PACK_BF16},
        .elems = {BSMM_ELEM_F16, BSMM_ELEM_F16},
        .when = BSMM_WHEN_ALWAYS,
    };
    if (f->scale == BSMM_SCALE_E8M0) {
        plan.when = BSMM_WHEN_HALF;
        plan.otherwise = &in_parts;
        plan.shift = (uint32_t)shift_of(&p->b);
    }
    if (f->scale != BSMM_SCALE_F32) return plan;
    plan.when = BSMM_WHEN_FITS;
    plan.by_rows = f->block_cols >= p->b.m.cols;
    if (!plan.by_rows) plan.kind = BSMM_WGMMA_BLOCK;
    return plan;
}

/* Returns the reason why the tensor cores cannot read an f16 operand as it is stored. The caller
 * has found that they cannot (is_stored). */
static const char *refuse_place(const bsmm_operand *o, char name, char *why, size_t size) {
    if (o->m.format.elem != BSMM_ELEM_F16 || o->m.format.scale != BSMM_SCALE_NONE)
        return bsmm_gpu_refuse_format(o, name, "the kernel takes f16 without scales", why, size);
    const char *reason = bsmm_gpu_refuse_order(o, name, why, size);
    if (reason) return reason;
    return bsmm_reason(why, size, "%c's ld is %lld; it must be a multiple of 8", name,
                       (long long)o->m.ld);
}

static const char *refuse_b(const bsmm_product *p, char *why, size_t size) {
    const bsmm_operand *b = &p->b;
    const uint32_t scale = b->m.format.scale;
    if (!is_half(b))
        return bsmm_gpu_refuse_format(b, 'B', "f16 must hold the values of B", why, size);
    if (b->m.format.elem == BSMM_ELEM_F16 && !is_stored(b)) return refuse_place(b, 'B', why, size);
    if (scale == BSMM_SCALE_F32 && !bsmm_cuda_has_row_groups(b) &&
        b->m.format.block_cols < b->m.cols)
        return bsmm_gpu_refuse_format(
            b, 'B', "the kernel takes f32 scales of 128 x 128 or of whole rows", why, size);
    if (p->has_c && (scale == BSMM_SCALE_F32 || scale == BSMM_SCALE_E8M0))
        return "beta is not 0 and B has scales; the kernel may compute D twice and needs C each "
               "time";
    return NULL;
}

static const char *refuse(const bsmm_product *p, void *state, char *why, size_t size) {
    if (!is_stored(&p->a)) return refuse_place(&p->a, 'A', why, size);
    const char *reason = refuse_b(p, why, size);
    if (reason) return reason;
    const bsmm_wgmma_plan plan = plan_of(p);
    return bsmm_wgmma_refuse(p, &plan, state, why, size);
}

static double bound(const bsmm_product *p, const void *state) {
    const bsmm_wgmma_plan *plan = &((const bsmm_wgmma_state *)state)->plan;
    const int64_t parts = plan->otherwise ? 2 : 1;
    /* Scales of rows add two rounding errors to each result: the product of a scale of A and a
     * scale of B is rounded, and so is its product with the sum. */
    return bsmm_wgmma_bound(plan->kind, BSMM_ELEM_BF16, p->a.m.cols * parts) +
           (plan->by_rows ? 0x1p-23 : 0);
}

const bsmm_kernel bsmm_kernel_cuda_sm90a_f16 = {
    BSMM_WGMMA_KERNEL,
    .name = "cuda_sm90a_f16",
    .refuse = refuse,
    .bound = bound,
};
