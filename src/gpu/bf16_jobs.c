/* This is the host code of the bf16 product, i.e. of the GEMM kernels that support operands of any
 * format (bf16_product.h). It chooses a kernel and fills its parameters. */
#include "gpu/bf16_jobs.h"
#include "gpu/refuse.h"

#include <string.h>

/* Returns true if one bf16 number holds each value of the operand exactly. fp32 scales do not
 * matter here, because a kernel can multiply sums by fp32 scales instead of elements. */
static bool fits_bf16(const bsmm_operand *o) {
    uint32_t elem = o->m.format.elem;
    if (elem == BSMM_ELEM_BF16) return o->m.format.scale != BSMM_SCALE_E4M3;
    return bsmm_elem_row(elem)->bits <= 8;
}

static bool has_floats(const bsmm_operand *o) {
    return o->m.format.scale == BSMM_SCALE_F32;
}

/* A kernel can apply fp32 scales in two ways: it multiplies each element by its scale, or it
 * multiplies the sum of each step of K (BSMM_BF16_K elements of a row). The second way requires
 * that no scale changes within a step. Returns true if it is possible for this operand. */
static bool may_stay_outside(const bsmm_operand *o) {
    uint32_t cols = o->m.format.block_cols;
    return has_floats(o) && (cols % BSMM_BF16_K == 0 || cols >= o->m.cols);
}

/* Returns true if a product of two elements may be so small that it underflows in fp32. If a large
 * fp32 scale multiplied only the sum of such products, the result would be wrong. Only products of
 * two bf16 elements can be so small. */
static bool may_vanish(const bsmm_product *p) {
    return p->a.m.format.elem == BSMM_ELEM_BF16 && p->b.m.format.elem == BSMM_ELEM_BF16;
}

bsmm_bf16_kind bsmm_gpu_bf16_choose(const bsmm_product *p) {
    bool a = fits_bf16(&p->a) && (!has_floats(&p->a) || may_stay_outside(&p->a));
    bool b = fits_bf16(&p->b) && (!has_floats(&p->b) || may_stay_outside(&p->b));
    bool floats = has_floats(&p->a) || has_floats(&p->b);
    if (a && b && !(floats && may_vanish(p))) return floats ? BSMM_BF16_SCALED : BSMM_BF16_1X1;
    a = fits_bf16(&p->a) && !has_floats(&p->a);
    b = fits_bf16(&p->b) && !has_floats(&p->b);
    return a ? BSMM_BF16_1X3 : b ? BSMM_BF16_3X1 : BSMM_BF16_3X3;
}

static bool is_together(const bsmm_operand *o) {
    static const uint32_t alignments[] = {[4] = 4, [6] = 2, [8] = 8, [16] = 16, [32] = 16};
    uint32_t bits = bsmm_elem_row(o->m.format.elem)->bits;
    uint64_t pitch = (uint64_t)o->m.ld * bits / 8;
    return o->m.order == BSMM_ORDER_ROW && ((uintptr_t)o->m.data | pitch) % alignments[bits] == 0;
}

static void fill_side(const bsmm_operand *o, bool outside, bsmm_bf16_side *to) {
    uint32_t cols = o->m.format.block_cols;
    to->o = bsmm_gpu_operand_of(o);
    to->rows = (uint32_t)o->m.rows;
    to->by_rows = o->m.order == BSMM_ORDER_ROW;
    to->together = is_together(o);
    to->one = cols % 8 == 0 || cols >= o->m.cols;
    to->outside = outside;
}

static int64_t tiles_of(int64_t rows, int64_t tile) {
    return bsmm_ceil_div(rows, tile);
}

const char *bsmm_gpu_bf16_refuse(const bsmm_product *p, int64_t tile, char *why, size_t size) {
    const char *reason = bsmm_gpu_refuse_large(p, why, size);
    return reason ? reason : bsmm_gpu_refuse_tiles(p, tile, tile, INT32_MAX, why, size);
}

bsmm_bf16_job bsmm_gpu_bf16_job_of(const bsmm_product *p, int64_t tile) {
    bool scaled = bsmm_gpu_bf16_choose(p) == BSMM_BF16_SCALED;
    int64_t down = tiles_of(p->d.m.rows, tile), across = tiles_of(p->d.m.cols, tile);
    bsmm_bf16_job job;
    /* The padding of the struct is passed to the kernel, too. It is set to zero, so that equal
     * products have equal parameters (test_golden_gpu). */
    memset(&job, 0, sizeof job);
    fill_side(&p->a, scaled && has_floats(&p->a), &job.sides[0]);
    fill_side(&p->b, scaled && has_floats(&p->b), &job.sides[1]);
    job.epilogue = bsmm_gpu_epilogue_of(p);
    job.k = (uint32_t)p->a.m.cols;
    job.b_tiles = (uint32_t)across;
    job.tiles = (uint32_t)(down * across);
    return job;
}

void bsmm_gpu_bf16_job_bind(const bsmm_product *p, bsmm_bf16_job *job) {
    const bsmm_operand *operands[2] = {&p->a, &p->b};
    for (int i = 0; i < 2; i++) {
        bsmm_gpu_operand_bind(operands[i], &job->sides[i].o);
        job->sides[i].together = is_together(operands[i]);
    }
    bsmm_gpu_epilogue_bind(p, &job->epilogue);
}
