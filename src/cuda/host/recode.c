/* Chooses the CUDA kernels that quantize a matrix, find its largest magnitude, or copy its elements
 * to row-major order, and fills the kernels' parameters. */
#include "cuda/host/recode_calls.h"

#include "cuda/host/pack_plan.h"

enum { THREADS = BSMM_RECODE_THREADS, ITEM = 16, MOST_DOWN = BSMM_RECODE_MOST_DOWN };

static bsmm_status clear(const bsmm_recode *job, void *to, uint64_t bytes) {
    const bsmm_cuda_device *d = job->device;
    BSMM_TRY(bsmm_cuda_enter(d));
    CUresult result = d->driver->cuMemsetD8Async((uintptr_t)to, 0, bytes, job->stream);
    bsmm_cuda_leave(d);
    return result == CUDA_SUCCESS ? BSMM_OK : bsmm_cuda_fail(d->driver, result, "cuMemsetD8Async");
}

bsmm_status bsmm_recode_launch(const bsmm_recode *job, const bsmm_cuda_function *function,
                               int64_t x, int64_t y, void **arguments) {
    return bsmm_cuda_launch(job->device, &(bsmm_cuda_launch_desc){
                                             .function = function,
                                             .grid = {(uint32_t)x, (uint32_t)y},
                                             .block = {THREADS},
                                             .stream = job->stream,
                                             .arguments = arguments,
                                         });
}

static bsmm_status queue_amax(const bsmm_recode *job, float *result) {
    static const bsmm_cuda_function function = {.module = "sm80/recode", .name = "amax_lines"};
    const bsmm_cuda_device *d = job->device;
    bsmm_amax_job amax = bsmm_amax_job_of(job, result);
    BSMM_TRY(clear(job, result, sizeof *result));
    if (bsmm_recode_is_empty(&job->src)) return BSMM_OK;
    int64_t most = (int64_t)d->multiprocessors * 8;
    int64_t item = 128 / bsmm_recode_bits(job->src.m.format.elem);
    int64_t blocks = bsmm_ceil_div((int64_t)amax.count, item * THREADS);
    int64_t x = bsmm_min_i64(blocks, most), y = bsmm_ceil_div(most, x);
    return bsmm_recode_launch(job, &function, x,
                              bsmm_min_i64(y, bsmm_min_i64((int64_t)amax.lines, MOST_DOWN)),
                              BSMM_CUDA_ARGUMENTS(&amax));
}

bsmm_status bsmm_cuda_amax(const bsmm_recode *job) {
    return queue_amax(job, job->result);
}

#define ROWS(type, bits)                                                                           \
    { .module = "sm80/quantize", .name = "quantize_rows_" type "_" bits }
#define TILES(type)                                                                                \
    { .module = "sm80/quantize", .name = "quantize_tiles_" type "_8" }
/* These kernels quantize row-major matrices. The first index is the element type of the source. The
 * second index is half of the number of bits of a result element: 2, 3 or 4. For 8-bit results with
 * scale blocks of 128 x 128, the second index is 5. */
static const bsmm_cuda_function quantizers[][6] = {
    [BSMM_ELEM_F32] = {[2] = ROWS("f32", "4"), ROWS("f32", "6"), ROWS("f32", "8"), TILES("f32")},
    [BSMM_ELEM_F16] = {[2] = ROWS("f16", "4"), ROWS("f16", "6"), ROWS("f16", "8"), TILES("f16")},
    [BSMM_ELEM_BF16] = {[2] = ROWS("bf16", "4"),
                        ROWS("bf16", "6"),
                        ROWS("bf16", "8"),
                        TILES("bf16")},
};

#define NV(type)                                                                                   \
    { .module = "sm80/quantize_nv", .name = "quantize_nv_" type }
static const bsmm_cuda_function nv_quantizers[] = {
    [BSMM_ELEM_F32] = NV("f32"), [BSMM_ELEM_F16] = NV("f16"), [BSMM_ELEM_BF16] = NV("bf16")};

static bool is_tiled(const bsmm_format *f) {
    return f->scale && f->block_rows == 128 && f->block_cols == 128 &&
           bsmm_recode_bits(f->elem) == 8;
}

/* Returns true if the fast kernels for row-major matrices support the format. These kernels support
 * formats without scales, and scale blocks of one row and 16, 32, ... 512 elements. */
static bool is_by_rows(const bsmm_format *f) {
    uint32_t width = f->block_cols;
    if (!f->scale) return true;
    return f->block_rows == 1 && width >= ITEM && width <= 32 * ITEM && (width & (width - 1)) == 0;
}

static bool takes_fast(const bsmm_recode *job) {
    const bsmm_format *f = &job->dst.m.format;
    bool rows = job->src.m.order == BSMM_ORDER_ROW && job->dst.m.order == BSMM_ORDER_ROW;
    bool fits = job->src.m.cols <= (int64_t)MOST_DOWN * 128;
    return rows && fits && bsmm_elem_is_narrow(f->elem) && (is_tiled(f) || is_by_rows(f));
}

/* Returns true if the encoder `k` keeps the signs of zeros. */
static bool is_plain(const bsmm_coder *k) {
    return k->zero_and == UINT32_MAX && !k->zero_or && k->zero_code_and == UINT32_MAX;
}

/* The GPU's instruction cvt can encode e4m3 and e5m2. It gives the same codes as the encoder `k`,
 * unless the recipe has its own rule for the sign of zeros. Returns the number of mantissa bits of
 * the element format `elem` if the kernel may use cvt, else 0. */
static uint32_t hardware_of(uint32_t elem, const bsmm_coder *k) {
    if (!is_plain(k)) return 0;
    return elem == BSMM_ELEM_E4M3 ? 3 : elem == BSMM_ELEM_E5M2 ? 2 : 0;
}

/* Returns true if the fast paths for elements of 6 bits produce the same bits as the general path
 * does for this recipe (the rules for quantizing). */
static bool takes_six(const bsmm_quantize_job *q) {
    return is_plain(&q->coder) && !q->coder.down && q->steps.step == BSMM_STEP_MULTIPLY &&
           !q->steps.skips_nan;
}

static uint32_t quick_of(uint32_t elem, const bsmm_quantize_job *q) {
    bool divides = q->steps.step == BSMM_STEP_DIVIDE;
    if (q->dst_bits == 8 && q->hardware == 3 && q->steps.step != BSMM_STEP_COMPARE)
        return divides ? BSMM_QUICK_E4M3_DIVIDE : BSMM_QUICK_E4M3_MULTIPLY;
    const bsmm_coder *k = &q->coder;
    if (q->dst_bits == 6)
        return takes_six(q) ? elem == BSMM_ELEM_E2M3 ? BSMM_QUICK_E2M3 : BSMM_QUICK_E3M2
                            : BSMM_QUICK_NONE;
    /* `plus` is true if the encoder `k` turns -0 into +0. */
    bool plus = !k->zero_and && !k->zero_or && k->zero_code_and == UINT32_MAX;
    if (q->dst_bits == 4 && plus && !k->down && q->steps.step != BSMM_STEP_COMPARE)
        return divides ? BSMM_QUICK_E2M1_PLUS_DIVIDE : BSMM_QUICK_E2M1_PLUS;
    if (!q->pairs) return BSMM_QUICK_NONE;
    bool pow2 = q->scale == BSMM_SCALE_E8M0 && q->src_elem != BSMM_ELEM_F32;
    return pow2 ? BSMM_QUICK_E2M1_PAIRS : BSMM_QUICK_E2M1_MULTIPLY;
}

static bool has_tables(const bsmm_quantize_job *q) {
    bsmm_block_rule rule = q->steps.block;
    return q->dst_bits == 4 &&
           (rule == BSMM_BLOCK_E4M3_TORCHAO || rule == BSMM_BLOCK_E4M3_TE ||
            rule == BSMM_BLOCK_E4M3_MODELOPT || rule == BSMM_BLOCK_E4M3_COMPRESSED_TENSORS);
}

/* Returns true if the result is nvfp4 and its scales follow the default rule, which is the rule of
 * PyTorch's library torchao. Specialized kernels exist for this case. */
static bool is_nv(const bsmm_quantize_job *q) {
    return q->steps.block == BSMM_BLOCK_E4M3_TORCHAO && q->block_rows == 1 &&
           q->block_cols == ITEM && q->quick == BSMM_QUICK_E2M1_MULTIPLY && q->aligned_src &&
           q->aligned_dst;
}

/* Returns the parameters of a quantization, including the flags that select fast paths of the CUDA
 * kernels. */
static bsmm_quantize_job quantize_job_of(const bsmm_recode *job, const float *amax) {
    const bsmm_format *f = &job->dst.m.format;
    bsmm_quantize_job made = bsmm_quantize_job_of(job, amax), *q = &made;
    q->hardware = hardware_of(f->elem, &q->coder);
    q->pairs = f->elem == BSMM_ELEM_E2M1 && is_plain(&q->coder) && !q->coder.down &&
               q->steps.step == BSMM_STEP_MULTIPLY;
    q->quick = quick_of(f->elem, q);
    q->tables = has_tables(q);
    q->by_words = is_nv(q) && q->cols % (4 * ITEM) == 0 &&
                  bsmm_axis_fours(q->scales, &q->row_map, &q->col_map, 1) &&
                  bsmm_words_of(&q->row_map, &q->col_map, &q->words);
    return made;
}

static bsmm_cuda_launch_desc launch_fast(const bsmm_recode *job, bsmm_quantize_job *q) {
    bool tiled = is_tiled(&job->dst.m.format) && q->block_rows == 128;
    int64_t items = bsmm_ceil_div(q->cols, ITEM), rows = 128, columns = bsmm_ceil_div(q->cols, 128);
    if (!tiled) {
        q->block_lanes = q->scale ? q->block_cols / ITEM : 1;
        uint32_t least = q->block_lanes > 8 ? q->block_lanes : 8;
        items = bsmm_round_up(items, least);
        q->lanes_log2 = bsmm_lanes_log2(items, least);
        rows = (int64_t)(THREADS >> q->lanes_log2) * (q->src_elem == BSMM_ELEM_F32 ? 2 : 4);
        columns = items >> q->lanes_log2;
    }
    int64_t down = bsmm_ceil_div(q->rows, rows);
    if (is_nv(q) && down * columns <= INT32_MAX) {
        q->columns = (uint32_t)columns;
        return (bsmm_cuda_launch_desc){.function = &nv_quantizers[q->src_elem],
                                       .grid = {(uint32_t)(down * columns), 1}};
    }
    return (bsmm_cuda_launch_desc){.function =
                                       &quantizers[q->src_elem][tiled ? 5 : q->dst_bits / 2],
                                   .grid = {(uint32_t)down, (uint32_t)columns}};
}

static bsmm_cuda_launch_desc launch_any(const bsmm_quantize_units *units) {
    static const bsmm_cuda_function function = {.module = "sm80/quantize_any",
                                                .name = "quantize_any"};
    return (bsmm_cuda_launch_desc){.function = &function,
                                   .grid = {(uint32_t)bsmm_ceil_div(units->fast, THREADS),
                                            (uint32_t)bsmm_min_i64(units->slow, MOST_DOWN)}};
}

/* Holds the kernel that quantizes a matrix, and the kernel's parameters. `launch` has no handle if
 * the matrix is empty. */
typedef struct quantizer {
    bsmm_cuda_ready launch;
    bsmm_quantize_job job;
    bsmm_quantize_units units;
} quantizer;
BSMM_CHECK_QUANTIZER(quantizer);

/* Chooses and loads the kernel for a job. If an address of the job is NULL, because only a run will
 * provide it, the kernel is chosen for an aligned address. */
static bsmm_status choose(const bsmm_recode *job, const float *amax, quantizer *to) {
    BSMM_TRY(bsmm_recode_check_size(&job->src));
    BSMM_TRY(bsmm_recode_check_elem(&job->dst, "dst"));
    *to = (quantizer){.job = quantize_job_of(job, amax)};
    if (bsmm_recode_is_empty(&job->src)) return BSMM_OK;
    to->units = bsmm_quantize_units_of(job, &to->job);
    bsmm_cuda_launch_desc launch =
        takes_fast(job) ? launch_fast(job, &to->job) : launch_any(&to->units);
    launch.block[0] = THREADS;
    return bsmm_cuda_ready_make(job->device, &launch, &to->launch);
}

/* Queues the chosen kernel. The kernel quantize_any has three parameters: the job, and the extents
 * of a unit, i.e. of the rectangle of elements that a thread quantizes at a time. All other kernels
 * have only the first one. The function passes three arguments in both cases, because the driver
 * reads only as many arguments as the kernel has parameters. */
static bsmm_status queue(const bsmm_recode *job, const quantizer *chosen, bsmm_quantize_job *q) {
    bsmm_quantize_units units = chosen->units;
    BSMM_TRY(bsmm_cuda_clear_padding(job));
    if (!chosen->launch.handle) return BSMM_OK;
    BSMM_CUDA_RETURN_INSIDE(
        job->device, bsmm_cuda_ready_launch(job->device, &chosen->launch, job->stream,
                                            BSMM_CUDA_ARGUMENTS(q, &units.rows, &units.cols)));
}

bsmm_status bsmm_cuda_make_quantizer(const bsmm_recode *job, void *to) {
    return choose(job, NULL, to);
}

bsmm_status bsmm_cuda_run_quantizer(const bsmm_recode *job, const void *from) {
    const quantizer *const chosen = from;
    bsmm_quantize_job q = chosen->job;
    if (!bsmm_quantize_job_bind(job, &q)) return bsmm_cuda_quantize(job);
    return queue(job, chosen, &q);
}

static bsmm_status queue_level(const bsmm_recode *job, const bsmm_quantize_job *q) {
    static const bsmm_cuda_function function = {.module = "sm80/recode", .name = "store_level"};
    bsmm_level_job level = bsmm_level_job_of(job, q);
    return bsmm_cuda_launch(job->device, &(bsmm_cuda_launch_desc){
                                             .function = &function,
                                             .stream = job->stream,
                                             .arguments = BSMM_CUDA_ARGUMENTS(&level),
                                         });
}

bsmm_status bsmm_cuda_clear_padding(const bsmm_recode *job) {
    return bsmm_recode_has_padding(job) ? clear(job, job->dst.m.scales, job->dst.scale_bytes)
                                        : BSMM_OK;
}

/* Quantizes a tensor. A recipe with a second-level scale needs the tensor's largest magnitude. If
 * the caller does not provide it, the function first queues a kernel that finds it. This kernel
 * stores it in the memory of the second-level scale (global_scale), so that no other memory is
 * needed. The last kernel replaces it there by the second-level scale. */
bsmm_status bsmm_cuda_quantize(const bsmm_recode *job) {
    const float *amax = job->amax ? job->amax : job->dst.m.global_scale;
    quantizer chosen;
    BSMM_TRY(choose(job, job->two_level ? amax : NULL, &chosen));
    if (job->two_level && !job->amax) BSMM_TRY(queue_amax(job, job->dst.m.global_scale));
    BSMM_TRY(queue(job, &chosen, &chosen.job));
    return job->dst.m.global_scale && !job->given_level ? queue_level(job, &chosen.job) : BSMM_OK;
}

bsmm_status bsmm_cuda_move_codes(const bsmm_recode *job) {
    static const bsmm_cuda_function function = {.module = "sm80/recode", .name = "move_codes"};
    BSMM_TRY(bsmm_recode_check_size(&job->src));
    if (bsmm_recode_is_empty(&job->src)) return BSMM_OK;
    bsmm_codes_job q = bsmm_codes_job_of(job);
    return bsmm_recode_launch(job, &function, bsmm_ceil_div(q.cols, 8 * (int64_t)THREADS),
                              bsmm_min_i64(q.rows, MOST_DOWN), BSMM_CUDA_ARGUMENTS(&q));
}
