/* Chooses the CUDA kernel that dequantizes a matrix, and fills its parameters. */
#include "cuda/host/recode_calls.h"

#include "cuda/host/pack_plan.h"

enum { THREADS = BSMM_RECODE_THREADS, MOST_DOWN = BSMM_RECODE_MOST_DOWN };

#define MODULE "sm80/dequantize"
/* These kernels dequantize row-major matrices with any scales. The index is [bits of an element /
 * 2][1 if the result is f32]. */
static const bsmm_cuda_function dequantizers[][2] = {
    [2] = {{.module = MODULE, .name = "dequantize_rows_4_f16"},
           {.module = MODULE, .name = "dequantize_rows_4_f32"}},
    [3] = {{.module = MODULE, .name = "dequantize_rows_6_f16"},
           {.module = MODULE, .name = "dequantize_rows_6_f32"}},
    [4] = {{.module = MODULE, .name = "dequantize_rows_8_f16"},
           {.module = MODULE, .name = "dequantize_rows_8_f32"}},
};
static const bsmm_cuda_function dequantize_any = {.module = MODULE, .name = "dequantize_any"};

/* Describes a specialized dequantizing kernel and the only formats that it supports: the element's
 * bits, the type of scale, the method of decoding (`way`), and the type of the result. */
typedef struct made_for {
    uint32_t bits, scale, way, dst_elem;
    bsmm_cuda_function function;
} made_for;

/* clang-format off */
#define MADE(bits, scale, way, to, last)                                                           \
    {bits, BSMM_SCALE_##scale, BSMM_WAY_##way, BSMM_ELEM_##to, {.module = MODULE, .name = "dequantize_" last}}

static const made_for all_made[] = {
    MADE(4, E8M0, EXACT, BF16, "mx_4_bf16"),
    MADE(6, E8M0, EXACT, BF16, "mx_6_bf16"),
    MADE(8, E8M0, EXACT, BF16, "mx_8_bf16"),
    MADE(4, E8M0, EXACT, F16, "mx_4_f16"),
    MADE(4, E4M3, MULTIPLY, BF16, "nv_4_bf16_multiply"),
    MADE(4, E4M3, DIVIDE, BF16, "nv_4_bf16_divide"),
    MADE(4, E4M3, MULTIPLY, F16, "nv_4_f16_multiply"),
    MADE(4, E4M3, DIVIDE, F16, "nv_4_f16_divide"),
    MADE(8, F32, MULTIPLY, BF16, "fp8_bf16"),
    MADE(8, F32, MULTIPLY, F16, "fp8_f16"),
};
/* clang-format on */

/* Returns a kernel that is specialized for these formats, or NULL if there is none. With fp32
 * scales, a specialized kernel has two requirements. The block length must be a multiple of 64,
 * because 8 threads that share a scale dequantize 8 elements each. The instruction cvt must be able
 * to convert the elements. */
static const bsmm_cuda_function *find_made(const bsmm_dequantize_job *q, const bsmm_format *f) {
    if (f->scale == BSMM_SCALE_F32 && (f->block_cols % 64 || !q->hardware)) return NULL;
    for (size_t i = 0; i < BSMM_COUNT(all_made); i++) {
        const made_for *m = &all_made[i];
        if (m->bits == q->src_bits && m->scale == q->scale && m->way == q->way &&
            m->dst_elem == q->dst_elem)
            return &m->function;
    }
    return NULL;
}

bsmm_status bsmm_cuda_dequantize(const bsmm_recode *job) {
    const bsmm_format *f = &job->src.m.format;
    BSMM_TRY(bsmm_recode_check_size(&job->src));
    BSMM_TRY(bsmm_recode_check_elem(&job->src, "src"));
    if (bsmm_recode_is_empty(&job->src)) return BSMM_OK;
    bsmm_dequantize_job q = bsmm_dequantize_job_of(job);
    bool rows = job->src.m.order == BSMM_ORDER_ROW && job->dst.m.order == BSMM_ORDER_ROW;
    bool whole = !f->scale || f->block_cols % 8 == 0;
    if (rows && whole && q.src_bits <= 8 && job->src.m.cols <= (int64_t)MOST_DOWN * 64) {
        int64_t items = bsmm_round_up(bsmm_ceil_div(q.cols, 8), 8);
        q.lanes_log2 = bsmm_lanes_log2(items, 8);
        const bsmm_cuda_function *made = find_made(&q, f);
        int64_t each = made ? BSMM_DEQUANTIZED_ROWS_MADE : BSMM_DEQUANTIZED_ROWS;
        return bsmm_recode_launch(
            job, made ? made : &dequantizers[q.src_bits / 2][q.dst_elem == BSMM_ELEM_F32],
            bsmm_ceil_div(q.rows, (int64_t)(THREADS >> q.lanes_log2) * each), items >> q.lanes_log2,
            BSMM_CUDA_ARGUMENTS(&q));
    }
    int64_t fast = q.dst_lines.col_step == 1 ? q.cols : q.rows;
    int64_t slow = q.dst_lines.col_step == 1 ? q.rows : q.cols;
    return bsmm_recode_launch(job, &dequantize_any, bsmm_ceil_div(fast, THREADS),
                              bsmm_min_i64(slow, MOST_DOWN), BSMM_CUDA_ARGUMENTS(&q));
}
