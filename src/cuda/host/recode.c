/* Chooses the kernels for quantizing, for moving scales and for the largest magnitude on a device,
 * and fills their parameters. */
#include "cuda/host/recode_calls.h"

#include "cuda/host/pack_plan.h"
#include "recipe/make.h"

enum { THREADS = BSMM_RECODE_THREADS, ITEM = 16, MOST_DOWN = BSMM_RECODE_MOST_DOWN };

/* ---- shared by all conversions ---- */

uint32_t bsmm_recode_bits(uint32_t elem) {
    return bsmm_elem_row(elem)->bits;
}

bsmm_recode_lines bsmm_recode_lines_of(const bsmm_operand *o) {
    bool rows = o->m.order == BSMM_ORDER_ROW;
    return (bsmm_recode_lines){rows ? (uint64_t)o->m.ld : 1, rows ? 1 : (uint64_t)o->m.ld};
}

bool bsmm_recode_aligned(const bsmm_operand *o, uint64_t bytes) {
    uint64_t line = (uint64_t)o->m.ld * bsmm_recode_bits(o->m.format.elem) / 8;
    return ((uintptr_t)o->m.data | line) % bytes == 0;
}

/* Kernels use 32-bit indices, and an index must not overflow when a stride is added to it. */
bsmm_status bsmm_recode_check_size(const bsmm_operand *o) {
    if (o->m.rows <= INT32_MAX - 1024 && o->m.cols <= INT32_MAX - 1024) return BSMM_OK;
    return bsmm_fail(BSMM_E_UNSUPPORTED,
                     "src.rows x cols: value is %lld x %lld; on cuda devices at most %d each",
                     (long long)o->m.rows, (long long)o->m.cols, INT32_MAX - 1024);
}

bsmm_status bsmm_recode_check_elem(const bsmm_operand *o, const char *what) {
    if (bsmm_gpu_knows_elem(o->m.format.elem)) return BSMM_OK;
    return bsmm_fail(BSMM_E_UNSUPPORTED,
                     "%s.format: value is %s; no device code was written for its elements", what,
                     bsmm_format_name(o->m.format));
}

bool bsmm_recode_is_empty(const bsmm_operand *o) {
    return o->m.rows == 0 || o->m.cols == 0;
}

static bsmm_status clear(const bsmm_recode *job, void *to, uint64_t bytes) {
    const bsmm_cuda_device *d = job->device;
    BSMM_TRY(bsmm_cuda_enter(d));
    CUresult result = d->driver->cuMemsetD8Async((uintptr_t)to, 0, bytes, job->stream);
    bsmm_cuda_leave(d);
    return result == CUDA_SUCCESS ? BSMM_OK : bsmm_cuda_fail(result, "cuMemsetD8Async");
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

/* ---- largest magnitude ---- */

static bsmm_status queue_amax(const bsmm_recode *job, float *result) {
    static const bsmm_cuda_function function = {.module = "sm80/recode", .name = "amax_lines"};
    const bsmm_cuda_device *d = job->device;
    const bsmm_matrix *m = &job->src.m;
    bool rows = m->order == BSMM_ORDER_ROW;
    uint64_t bytes = bsmm_recode_bits(m->format.elem) / 8,
             count = (uint64_t)(rows ? m->cols : m->rows);
    bsmm_amax_job amax = {.src = m->data,
                          .line_bytes = (uint64_t)m->ld * bytes,
                          .lines = (uint64_t)(rows ? m->rows : m->cols),
                          .count = count,
                          .src_elem = m->format.elem,
                          .aligned = bsmm_recode_aligned(&job->src, 16),
                          .result = (uint32_t *)(void *)result};
    BSMM_TRY(clear(job, result, sizeof *result));
    if (bsmm_recode_is_empty(&job->src)) return BSMM_OK;
    if ((uint64_t)m->ld == count) { /* A contiguous matrix is treated as a single line. */
        amax.count *= amax.lines;
        amax.lines = 1;
        amax.aligned = (uintptr_t)m->data % 16 == 0;
    }
    int64_t most = (int64_t)d->multiprocessors * 8, item = 16 / (int64_t)bytes;
    int64_t blocks = bsmm_ceil_div((int64_t)amax.count, item * THREADS);
    int64_t x = bsmm_min_i64(blocks, most), y = bsmm_ceil_div(most, x);
    return bsmm_recode_launch(job, &function, x,
                              bsmm_min_i64(y, bsmm_min_i64((int64_t)amax.lines, MOST_DOWN)),
                              BSMM_CUDA_ARGUMENTS(&amax));
}

bsmm_status bsmm_cuda_amax(const bsmm_recode *job) {
    return queue_amax(job, job->result);
}

/* ---- quantizing ---- */

#define ROWS(type, bits)                                                                           \
    { .module = "sm80/quantize", .name = "quantize_rows_" type "_" bits }
#define TILES(type)                                                                                \
    { .module = "sm80/quantize", .name = "quantize_tiles_" type "_8" }
/* The kernels are indexed by [source element][half of the result's bits, or 5 for 128 x 128
 * blocks]. */
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

/* Returns true for unscaled formats, and for blocks of one row with 16, 32, ... 512 values. */
static bool is_by_rows(const bsmm_format *f) {
    uint32_t width = f->block_cols;
    if (!f->scale) return true;
    return f->block_rows == 1 && width >= ITEM && width <= 32 * ITEM && (width & (width - 1)) == 0;
}

static bool takes_fast(const bsmm_recode *job) {
    const bsmm_format *f = &job->dst.m.format;
    bool rows = job->src.m.order == BSMM_ORDER_ROW && job->dst.m.order == BSMM_ORDER_ROW;
    bool fits = job->src.m.cols <= (int64_t)MOST_DOWN * 128;
    return rows && fits && bsmm_recode_bits(f->elem) <= 8 && (is_tiled(f) || is_by_rows(f));
}

/* Returns true if zeros keep their signs. */
static bool is_plain(const bsmm_coder *k) {
    return k->zero_and == UINT32_MAX && !k->zero_or && k->zero_code_and == UINT32_MAX;
}

/* Returns the mantissa bits of the result if the cvt instruction gives the coder's codes, else 0.
 * They differ only if a recipe has a rule of its own for the sign of zeros. */
static uint32_t hardware_of(uint32_t elem, const bsmm_coder *k) {
    if (!is_plain(k)) return 0;
    return elem == BSMM_ELEM_E4M3 ? 3 : elem == BSMM_ELEM_E5M2 ? 2 : 0;
}

static uint32_t quick_of(const bsmm_quantize_job *q) {
    bool divides = q->steps.step == BSMM_STEP_DIVIDE;
    if (q->dst_bits == 8 && q->hardware == 3 && q->steps.step != BSMM_STEP_COMPARE)
        return divides ? BSMM_QUICK_E4M3_DIVIDE : BSMM_QUICK_E4M3_MULTIPLY;
    const bsmm_coder *k = &q->coder;
    /* True if the encoder turns -0 into +0. */
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

/* Returns true for nvfp4 by the default rule, which has specialized kernels. */
static bool is_nv(const bsmm_quantize_job *q) {
    bool known = !q->amax || q->steps.tensor == BSMM_TENSOR_TORCHAO;
    return known && q->steps.block == BSMM_BLOCK_E4M3_TORCHAO && q->block_rows == 1 &&
           q->block_cols == ITEM && q->quick == BSMM_QUICK_E2M1_MULTIPLY && q->aligned_src &&
           q->aligned_dst;
}

static void set_format(const bsmm_recode *job, bsmm_quantize_job *q) {
    const bsmm_format *f = &job->dst.m.format;
    uint32_t source = job->src.m.format.elem;
    bool pow2 = job->flags & BSMM_QUANTIZE_POW2,
         saturate = bsmm_recode_bits(f->elem) <= 8 || f->scale;
    q->block_rows = f->scale ? f->block_rows : 1;
    q->block_cols = f->scale ? f->block_cols : ITEM;
    q->scale = f->scale;
    q->src_elem = source;
    q->dst_bits = bsmm_recode_bits(f->elem);
    q->steps = *job->steps;
    q->tensor = bsmm_tensor_step_make(f->elem, source, pow2);
    if (q->dst_bits < 32)
        q->coder = bsmm_coder_make(f->elem, saturate, q->steps.ties, q->steps.zero_sign);
    q->hardware = hardware_of(f->elem, &q->coder);
    q->pairs = f->elem == BSMM_ELEM_E2M1 && is_plain(&q->coder) && !q->coder.down &&
               q->steps.step == BSMM_STEP_MULTIPLY;
    q->quick = quick_of(q);
    q->tables = has_tables(q);
    q->row_map = bsmm_axis_map_of(&job->dst.map, 0, q->block_rows);
    q->col_map = bsmm_axis_map_of(&job->dst.map, 1, q->block_cols);
    q->by_words = is_nv(q) && q->cols % (4 * ITEM) == 0 &&
                  bsmm_axis_fours(q->scales, &q->row_map, &q->col_map, 1) &&
                  bsmm_words_of(&q->row_map, &q->col_map, &q->words);
}

bsmm_quantize_job bsmm_quantize_job_of(const bsmm_recode *job, const float *amax) {
    uint32_t bits = bsmm_recode_bits(job->dst.m.format.elem);
    bsmm_quantize_job q = {.src = job->src.m.data,
                           .dst = job->dst.m.data,
                           .scales = job->dst.m.scales,
                           .src_lines = bsmm_recode_lines_of(&job->src),
                           .dst_lines = bsmm_recode_lines_of(&job->dst),
                           .rows = (uint32_t)job->src.m.rows,
                           .cols = (uint32_t)job->src.m.cols,
                           .aligned_src = bsmm_recode_aligned(&job->src, 16),
                           .aligned_dst = bsmm_recode_aligned(&job->dst, bits == 6 ? 4 : 2 * bits),
                           .amax = amax};
    set_format(job, &q);
    return q;
}

static bsmm_status queue_fast(const bsmm_recode *job, bsmm_quantize_job *q) {
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
        return bsmm_recode_launch(job, &nv_quantizers[q->src_elem], down * columns, 1,
                                  BSMM_CUDA_ARGUMENTS(q));
    }
    const bsmm_cuda_function *function = &quantizers[q->src_elem][tiled ? 5 : q->dst_bits / 2];
    return bsmm_recode_launch(job, function, down, columns, BSMM_CUDA_ARGUMENTS(q));
}

static uint32_t common_multiple(uint32_t a, uint32_t b) {
    uint32_t multiple = a;
    while (multiple % b)
        multiple += a;
    return multiple;
}

static bsmm_status queue_any(const bsmm_recode *job, bsmm_quantize_job *q) {
    static const bsmm_cuda_function function = {.module = "sm80/quantize_any",
                                                .name = "quantize_any"};
    uint32_t group = bsmm_elem_group(job->dst.m.format.elem);
    bool rows = q->src_lines.col_step == 1, along_rows = q->dst_lines.col_step == 1;
    uint32_t unit_rows = along_rows ? q->block_rows : common_multiple(q->block_rows, group);
    uint32_t unit_cols = along_rows ? common_multiple(q->block_cols, group) : q->block_cols;
    int64_t down = bsmm_ceil_div(q->rows, unit_rows), across = bsmm_ceil_div(q->cols, unit_cols);
    int64_t fast = rows ? across : down, slow = rows ? down : across;
    return bsmm_recode_launch(job, &function, bsmm_ceil_div(fast, THREADS),
                              bsmm_min_i64(slow, MOST_DOWN),
                              BSMM_CUDA_ARGUMENTS(q, &unit_rows, &unit_cols));
}

static bsmm_status queue_level(const bsmm_recode *job, const bsmm_quantize_job *q) {
    static const bsmm_cuda_function function = {.module = "sm80/recode", .name = "store_level"};
    bsmm_level_job level = {.steps = q->steps,
                            .tensor = q->tensor,
                            .amax = q->amax,
                            .level = job->dst.m.global_scale,
                            .by_divisor = job->dst.m.global_kind == BSMM_GLOBAL_DIVISOR};
    return bsmm_cuda_launch(job->device, &(bsmm_cuda_launch_desc){
                                             .function = &function,
                                             .stream = job->stream,
                                             .arguments = BSMM_CUDA_ARGUMENTS(&level),
                                         });
}

/* Clears the padding of the scales' layout. Gaps that the caller's scale_ld leaves are not padding,
 * and stay unchanged. */
static bsmm_status clear_padding(const bsmm_recode *job) {
    const bsmm_operand *o = &job->dst;
    bool whole = o->map.count == (uint64_t)o->map.rows * (uint64_t)o->map.cols;
    if (!o->m.format.scale || whole || !bsmm_layout_pads(o->m.scale_layout)) return BSMM_OK;
    return clear(job, o->m.scales, o->scale_bytes);
}

/* Quantizes a tensor. The tensor's amax is stored where the second-level scale will be, until the
 * values are converted. */
bsmm_status bsmm_cuda_quantize(const bsmm_recode *job) {
    const float *amax = job->amax ? job->amax : job->dst.m.global_scale;
    BSMM_TRY(bsmm_recode_check_size(&job->src));
    BSMM_TRY(bsmm_recode_check_elem(&job->dst, "dst"));
    if (job->two_level && !job->amax) BSMM_TRY(queue_amax(job, job->dst.m.global_scale));
    bsmm_quantize_job q = bsmm_quantize_job_of(job, job->two_level ? amax : NULL);
    BSMM_TRY(clear_padding(job));
    if (!bsmm_recode_is_empty(&job->src))
        BSMM_TRY((takes_fast(job) ? queue_fast : queue_any)(job, &q));
    return job->dst.m.global_scale ? queue_level(job, &q) : BSMM_OK;
}

/* ---- moving scales to another layout ---- */

bsmm_status bsmm_cuda_relayout(const bsmm_recode *job) {
    static const bsmm_cuda_function function = {.module = "sm80/recode", .name = "move_scales"};
    const bsmm_scale_map *from = &job->src.map, *to = &job->dst.map;
    bsmm_relayout_job q = {.from = job->src.m.scales,
                           .to = job->dst.m.scales,
                           .rows = (uint32_t)to->rows,
                           .cols = (uint32_t)to->cols,
                           .known_rows = (uint32_t)from->rows,
                           .known_cols = (uint32_t)from->cols,
                           .wide = job->src.m.format.scale == BSMM_SCALE_F32,
                           .from_row_map = bsmm_axis_map_of(from, 0, 1),
                           .from_col_map = bsmm_axis_map_of(from, 1, 1),
                           .to_row_map = bsmm_axis_map_of(to, 0, 1),
                           .to_col_map = bsmm_axis_map_of(to, 1, 1)};
    BSMM_TRY(bsmm_recode_check_size(&job->src));
    BSMM_TRY(clear_padding(job));
    if (bsmm_recode_is_empty(&job->src)) return BSMM_OK;
    q.by_words = !q.wide && q.cols % 4 == 0 && q.known_cols % 4 == 0 &&
                 bsmm_axis_fours(q.from, &q.from_row_map, &q.from_col_map, 0) &&
                 bsmm_axis_fours(q.to, &q.to_row_map, &q.to_col_map, 0);
    int64_t items = q.by_words ? q.cols / 4 : q.cols, lanes = 1;
    while (lanes < items && lanes < THREADS)
        lanes *= 2;
    q.lanes_log2 = 31u - (uint32_t)__builtin_clz((uint32_t)lanes);
    int64_t down = bsmm_ceil_div(q.rows, THREADS / lanes * BSMM_MOVED_ROWS);
    return bsmm_recode_launch(job, &function, bsmm_ceil_div(items, lanes),
                              bsmm_min_i64(down, MOST_DOWN), BSMM_CUDA_ARGUMENTS(&q));
}
