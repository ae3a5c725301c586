/* Fills the parameters of conversion kernels (recode.h) from a validated conversion. */
#include "gpu/recode_jobs.h"

#include "gpu/params.h"
#include "recipe/make.h"

#include <string.h>

/* ITEM is the number of consecutive values that one thread converts at once. If the result has no
 * block scales, each ITEM values are treated like a block. */
enum { ITEM = 16 };

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

/* Kernels compute indices with 32 bits, and an index may exceed the last row or column by up to
 * 1024. The sizes must therefore be at least 1024 below the largest int32. */
bsmm_status bsmm_recode_check_size(const bsmm_operand *o) {
    if (o->m.rows <= INT32_MAX - 1024 && o->m.cols <= INT32_MAX - 1024) return BSMM_OK;
    return bsmm_fail(BSMM_E_UNSUPPORTED,
                     "src.rows x cols: value is %lld x %lld; on GPUs at most %d each",
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

bool bsmm_recode_has_padding(const bsmm_recode *job) {
    const bsmm_operand *o = &job->dst;
    bool whole = o->map.count == (uint64_t)o->map.rows * (uint64_t)o->map.cols;
    return o->m.format.scale && !whole && !job->keeps_padding &&
           bsmm_layout_pads(o->m.scale_layout);
}

bsmm_amax_job bsmm_amax_job_of(const bsmm_recode *job, float *result) {
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
    if ((uint64_t)m->ld != count) return amax;
    /* The rows (or columns) follow each other in memory without gaps. The kernel therefore reads
     * the matrix as one long row. */
    amax.count *= amax.lines;
    amax.lines = 1;
    amax.aligned = (uintptr_t)m->data % 16 == 0;
    return amax;
}

static void set_format(const bsmm_recode *job, bsmm_quantize_job *q) {
    const bsmm_format *f = &job->dst.m.format;
    uint32_t source = job->src.m.format.elem;
    bool pow2 = job->flags & BSMM_QUANTIZE_POW2,
         saturate = bsmm_elem_is_narrow(f->elem) || f->scale;
    q->block_rows = f->scale ? f->block_rows : 1;
    q->block_cols = f->scale ? f->block_cols : ITEM;
    q->scale = f->scale;
    q->src_elem = source;
    q->dst_bits = bsmm_recode_bits(f->elem);
    q->steps = *job->steps;
    q->tensor = bsmm_tensor_step_make(f->elem, source, pow2);
    if (q->dst_bits < 32)
        q->coder = bsmm_coder_make(f->elem, saturate, q->steps.ties, q->steps.zero_sign);
    q->row_map = bsmm_axis_map_of(&job->dst.map, 0, q->block_rows);
    q->col_map = bsmm_axis_map_of(&job->dst.map, 1, q->block_cols);
}

/* Sets the parameters of a quantization whose second-level scale the caller has chosen. q->amax
 * usually points to the tensor's largest magnitude, from which kernels compute the second-level
 * scale. Here it points to the chosen scale, and the field `tensor` tells the kernels so. */
static void set_given_level(const bsmm_matrix *dst, bsmm_quantize_job *q) {
    bool by_divisor = dst->global_kind == BSMM_GLOBAL_DIVISOR;
    q->amax = dst->global_scale;
    q->steps.tensor = by_divisor ? BSMM_TENSOR_GIVEN_DIVISOR : BSMM_TENSOR_GIVEN;
}

/* Returns the alignment in bytes that the result needs so that one instruction can always store a
 * thread's 16 elements. */
static uint32_t dst_alignment(uint32_t elem) {
    const uint32_t bits = bsmm_recode_bits(elem);
    return bits == 6 ? 4 : 2 * bits;
}

bsmm_quantize_job bsmm_quantize_job_of(const bsmm_recode *job, const float *amax) {
    const uint32_t alignment = dst_alignment(job->dst.m.format.elem);
    bsmm_quantize_job q = {.src = job->src.m.data,
                           .dst = job->dst.m.data,
                           .scales = job->dst.m.scales,
                           .src_lines = bsmm_recode_lines_of(&job->src),
                           .dst_lines = bsmm_recode_lines_of(&job->dst),
                           .rows = (uint32_t)job->src.m.rows,
                           .cols = (uint32_t)job->src.m.cols,
                           .aligned_src = bsmm_recode_aligned(&job->src, 16),
                           .aligned_dst = bsmm_recode_aligned(&job->dst, alignment),
                           .amax = amax};
    set_format(job, &q);
    if (job->given_level && job->dst.m.global_scale) set_given_level(&job->dst.m, &q);
    return q;
}

static bool is_aligned(const void *pointer, uint32_t bytes) {
    return (uintptr_t)pointer % bytes == 0;
}

bool bsmm_quantize_job_bind(const bsmm_recode *job, bsmm_quantize_job *q) {
    q->src = job->src.m.data;
    q->dst = job->dst.m.data;
    q->scales = job->dst.m.scales;
    if (job->dst.m.global_scale) set_given_level(&job->dst.m, q);
    return (!q->aligned_src || is_aligned(q->src, 16)) &&
           (!q->aligned_dst || is_aligned(q->dst, dst_alignment(job->dst.m.format.elem))) &&
           (!q->by_words || is_aligned(q->scales, 4));
}

static uint32_t common_multiple(uint32_t a, uint32_t b) {
    uint32_t multiple = a;
    while (multiple % b)
        multiple += a;
    return multiple;
}

bsmm_quantize_units bsmm_quantize_units_of(const bsmm_recode *job, const bsmm_quantize_job *q) {
    uint32_t group = bsmm_elem_group(job->dst.m.format.elem);
    bool rows = q->src_lines.col_step == 1, along_rows = q->dst_lines.col_step == 1;
    bsmm_quantize_units units = {
        .rows = along_rows ? q->block_rows : common_multiple(q->block_rows, group),
        .cols = along_rows ? common_multiple(q->block_cols, group) : q->block_cols,
    };
    int64_t down = bsmm_ceil_div(q->rows, units.rows), across = bsmm_ceil_div(q->cols, units.cols);
    units.fast = rows ? across : down;
    units.slow = rows ? down : across;
    return units;
}

bsmm_level_job bsmm_level_job_of(const bsmm_recode *job, const bsmm_quantize_job *q) {
    bsmm_level_job level;
    memset(&level, 0, sizeof level);
    level.steps = q->steps;
    level.tensor = q->tensor;
    level.amax = q->amax;
    level.level = job->dst.m.global_scale;
    level.by_divisor = job->dst.m.global_kind == BSMM_GLOBAL_DIVISOR;
    return level;
}

static uint32_t way_of(const bsmm_matrix *m) {
    bool wide = m->format.scale == BSMM_SCALE_F32;
    if (!m->global_scale) return wide ? BSMM_WAY_MULTIPLY : BSMM_WAY_EXACT;
    if (wide) return BSMM_WAY_DOUBLE;
    return m->global_kind == BSMM_GLOBAL_DIVISOR ? BSMM_WAY_DIVIDE : BSMM_WAY_MULTIPLY;
}

bsmm_dequantize_job bsmm_dequantize_job_of(const bsmm_recode *job) {
    const bsmm_matrix *src = &job->src.m;
    uint32_t bits = bsmm_recode_bits(src->format.elem), elem = job->dst.m.format.elem;
    /* A fast load of 8 consecutive elements needs this alignment in bytes. */
    uint64_t needed = bits == 6 ? 2 : bits;
    bsmm_dequantize_job q = {.src = src->data,
                             .scales = src->scales,
                             .dst = job->dst.m.data,
                             .src_lines = bsmm_recode_lines_of(&job->src),
                             .dst_lines = bsmm_recode_lines_of(&job->dst),
                             .rows = (uint32_t)src->rows,
                             .cols = (uint32_t)src->cols,
                             .src_elem = src->format.elem,
                             .src_bits = bits,
                             .dst_elem = elem,
                             .scale = src->format.scale,
                             .aligned_src = bsmm_recode_aligned(&job->src, needed),
                             .aligned_dst = bsmm_recode_aligned(&job->dst, 16),
                             .by_divisor = src->global_kind == BSMM_GLOBAL_DIVISOR,
                             .way = way_of(src),
                             .hardware = src->format.elem == BSMM_ELEM_E4M3   ? 3
                                         : src->format.elem == BSMM_ELEM_E5M2 ? 2
                                                                              : 0,
                             .global = src->global_scale};
    q.row_map = bsmm_axis_map_of(&job->src.map, 0, src->format.block_rows);
    q.col_map = bsmm_axis_map_of(&job->src.map, 1, src->format.block_cols);
    if (bits <= 8) {
        q.codec = bsmm_narrow_codec_of(src->format.elem);
        q.pair = bsmm_pair_codec_of(src->format.elem, true);
    }
    uint32_t items = src->format.block_cols / 8;
    q.scale_lanes = items % 4 == 0 ? 4 : items % 2 == 0 ? 2 : 1;
    if (elem != BSMM_ELEM_F32) q.coder = bsmm_coder_make(elem, false, BSMM_TIES_EVEN, 0);
    return q;
}

bsmm_relayout_job bsmm_relayout_job_of(const bsmm_recode *job) {
    const bsmm_scale_map *from = &job->src.map, *to = &job->dst.map;
    bsmm_relayout_job q;
    memset(&q, 0, sizeof q); /* The padding of the struct is zero, too (test_golden_gpu). */
    q.from = job->src.m.scales;
    q.to = job->dst.m.scales;
    q.rows = (uint32_t)to->rows;
    q.cols = (uint32_t)to->cols;
    q.known_rows = (uint32_t)from->rows;
    q.known_cols = (uint32_t)from->cols;
    q.wide = job->src.m.format.scale == BSMM_SCALE_F32;
    q.from_row_map = bsmm_axis_map_of(from, 0, 1);
    q.from_col_map = bsmm_axis_map_of(from, 1, 1);
    q.to_row_map = bsmm_axis_map_of(to, 0, 1);
    q.to_col_map = bsmm_axis_map_of(to, 1, 1);
    q.by_words = !q.wide && q.cols % 4 == 0 && q.known_cols % 4 == 0 &&
                 bsmm_axis_fours(q.from, &q.from_row_map, &q.from_col_map, 0) &&
                 bsmm_axis_fours(q.to, &q.to_row_map, &q.to_col_map, 0);
    return q;
}

bsmm_codes_job bsmm_codes_job_of(const bsmm_recode *job) {
    uint32_t bits = bsmm_recode_bits(job->src.m.format.elem);
    bsmm_codes_job q;
    memset(&q, 0, sizeof q);
    q.from = job->src.m.data;
    q.to = job->dst.m.data;
    q.lines = bsmm_recode_lines_of(&job->src);
    q.pitch = (uint64_t)job->dst.m.ld * bits / 8;
    q.rows = (uint32_t)job->src.m.rows;
    q.cols = (uint32_t)job->src.m.cols;
    q.bits = bits;
    return q;
}
