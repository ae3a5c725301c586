/* Converts a matrix of any format to f32, f16 or bf16. */
#include "quantize/recipe.h"

#include "base/cpu.h"
#include "base/threads.h"

#include <math.h>

enum { RUN = 256 };

/* Outputs of at least STREAMED bytes are written by stores that bypass the caches. Such an output
 * would be evicted from the caches before anything reads it. */
enum { STREAMED = 32 << 20 };

/* Rounds a double to an odd fp32 value: towards zero, with the last bit set if the result is
 * inexact. A second rounding, to 22 bits or fewer, then equals rounding the double once. */
static float round_to_odd(double value) {
    float nearest = (float)value;
    uint32_t bits = bsmm_float_bits(nearest);
    double rest = fabs(value) - fabs((double)nearest);
    if (!isfinite(value) || rest == 0) return nearest;
    /* If `nearest` is larger in magnitude than `value`, bits - 1 is the next fp32 value towards
     * zero. If `nearest` is Inf, this is the largest finite number. */
    if (rest < 0) bits--;
    return bsmm_bits_float(bits | 1);
}

static void narrow(const double *values, int64_t n, bool odd, float *to) {
    for (int64_t i = 0; i < n; i++)
        to[i] = odd ? round_to_odd(values[i]) : (float)values[i];
}

static void dequantize_row(const bsmm_operand *src, const bsmm_recipe_run *run, int64_t r) {
    double values[RUN];
    float rounded[RUN];
    for (int64_t c = 0, cols = src->m.cols; c < cols; c += RUN) {
        int64_t n = bsmm_min_i64(RUN, cols - c);
        bsmm_values_decode(src, r, c, n, values);
        narrow(values, n, run->dst->m.format.elem != BSMM_ELEM_F32, rounded);
        bsmm_recipe_store_part(run, r, 1, c, n, &(bsmm_plain){BSMM_ELEM_F32, rounded, n});
    }
}

/* Tells whether a matrix is unscaled f32, f16 or bf16, so that its elements need no decoding. */
static bool is_plain(const bsmm_operand *src) {
    return bsmm_elem_is_wide(src->m.format.elem) && src->m.format.scale == BSMM_SCALE_NONE &&
           !src->m.global_scale;
}

#if defined(__x86_64__)

static uint8_t *plain_at(const bsmm_operand *o, int64_t r, int64_t c) {
    uint32_t bytes = bsmm_elem_row(o->m.format.elem)->bits / 8;
    return (uint8_t *)o->m.data + bsmm_operand_index(o, r, c) * bytes;
}

/* Converts columns [c, c + n) of row r with AVX2. Returns false if the formats or the processor do
 * not allow it, or if a value is NaN. */
static bool cast_fast(const bsmm_operand *src, const bsmm_operand *dst, int64_t r, int64_t c,
                      int64_t n) {
    bool rows = src->m.order == BSMM_ORDER_ROW && dst->m.order == BSMM_ORDER_ROW;
    return rows && bsmm_cpu_features() & BSMM_CPU_AVX2 &&
           bsmm_cast_avx2(src->m.format.elem, dst->m.format.elem, plain_at(src, r, c),
                          plain_at(dst, r, c), n);
}

#else

static bool cast_fast(const bsmm_operand *src, const bsmm_operand *dst, int64_t r, int64_t c,
                      int64_t n) {
    (void)src, (void)dst, (void)r, (void)c, (void)n;
    return false;
}

#endif

/* Converts row r of an unscaled matrix. A signaling NaN becomes quiet, as in arithmetic. */
static void cast_row(const bsmm_operand *src, const bsmm_recipe_run *run, int64_t r) {
    float values[RUN];
    for (int64_t c = 0, cols = src->m.cols; c < cols; c += RUN) {
        int64_t n = bsmm_min_i64(RUN, cols - c);
        if (cast_fast(src, run->dst, r, c, n)) continue;
        bsmm_values_load(src, r, 1, c, n, values, n);
        for (int64_t i = 0; i < n; i++) {
            uint32_t bits = bsmm_float_bits(values[i]), quiet = isnan(values[i]) ? 0x00400000u : 0;
            values[i] = bsmm_bits_float(bits | quiet);
        }
        bsmm_recipe_store_part(run, r, 1, c, n, &(bsmm_plain){BSMM_ELEM_F32, values, n});
    }
}

/* BLOCKS is the number of blocks that one call of a vector function decodes. Each call loads the
 * constants of the job once. */
enum { BLOCKS = 128 };

typedef struct strip_decoder {
    /* `ops` has the vector operations. NULL means that vector code does not support the formats. */
    const bsmm_strip_ops *ops;
    const bsmm_operand *src, *dst;
    bsmm_scale_line line;
    bsmm_decode_job job;
    float scales[256]; /* `scales` is the table of the values of all scale codes. */
} strip_decoder;

static bool has_global(const bsmm_matrix *m) {
    return m->global_scale && *m->global_scale != 1;
}

/* Tells whether the vector code can apply the scales of the matrix. The vector code multiplies an
 * element by the block scale, and the product by the second-level scale. Its results are right only
 * if at most one of these two products needs rounding. With a second-level scale other than 1, the
 * first product must therefore be exact, which holds for e4m3 block scales and without block
 * scales, but not for e8m0 or f32. The second-level scale must also be finite, and must not be a
 * divisor, because the vector code cannot divide. */
static bool has_two_factors(const bsmm_matrix *m) {
    if (!has_global(m)) return true;
    bool first = m->format.scale == BSMM_SCALE_NONE || m->format.scale == BSMM_SCALE_E4M3;
    return first && m->global_kind == BSMM_GLOBAL_MULTIPLIER && isfinite(*m->global_scale);
}

/* Tells whether vector code can decode the matrix. Vector code decodes 8-bit codes by shifting them
 * to the exponent and mantissa of an f16 number. e5m2fnuz cannot be decoded in this way: its
 * highest exponent has finite values, but in f16 the same exponent means Inf or NaN. */
static bool takes_strips(const bsmm_operand *src, const bsmm_operand *dst) {
    const bsmm_elem_traits *traits = &bsmm_elem_traits_of[src->m.format.elem];
    return traits->narrow && traits->shifts_to_f16 && src->m.order == BSMM_ORDER_ROW &&
           dst->m.order == BSMM_ORDER_ROW && src->m.format.block_cols % 16 == 0 &&
           has_two_factors(&src->m);
}

/* Counts the codes of NaN and Inf. The NaN codes have the largest magnitudes, and the Inf code
 * comes just below them. In fnuz formats 0x80 is the only NaN. */
static void find_nans(const double *values, bsmm_decode_job *job) {
    bool lone = isnan(values[0x80]);
    int16_t nans = 0, specials = 0;
    while (isnan(values[0x7f - nans]))
        nans++;
    while (!isfinite(values[0x7f - specials]))
        specials++;
    job->nan_base = (int16_t)(0x80 - nans);
    job->special_base = (int16_t)(0x80 - specials);
    job->nan_mask = lone ? 0xff : 0x7f;
    job->nans = (int16_t)(lone ? 1 : nans);
    job->specials = (int16_t)(lone ? 1 : specials);
}

/* Sets the constants with which vector code converts 8-bit codes to bf16: the difference of the
 * exponent biases, for normal numbers, and the bf16 codes of the subnormal numbers. The conversion
 * is exact, because bf16 holds every finite value of an 8-bit element. */
static void set_pairs(const bsmm_elem_info *info, const double *values, bsmm_decode_job *job) {
    job->pairs_base = (int16_t)((127 - info->bias) << 7);
    for (int i = 0; i < 1 << info->mantissa_bits; i++)
        job->subnormals[i] = (uint16_t)(bsmm_float_bits((float)values[i]) >> 16);
}

/* Sets the tables of the low and of the high byte of each 4-bit code's value as bf16. Every value
 * of a 4-bit element is a bf16 value. */
static void set_bytes(bsmm_decode_job *job) {
    for (int i = 0; i < 16; i++) {
        job->low_bytes[i] = (uint8_t)(bsmm_float_bits(job->table[i]) >> 16);
        job->high_bytes[i] = (uint8_t)(bsmm_float_bits(job->table[i]) >> 24);
    }
}

static void set_elements(uint32_t elem, bsmm_decode_job *job) {
    const bsmm_elem_info *info = bsmm_elem_row(elem);
    const double *values = bsmm_elem_values(elem);
    job->bits = info->bits;
    job->mantissa_bits = (int)info->mantissa_bits;
    for (int i = 0; i < bsmm_min_i64(32, 1 << info->bits); i++)
        job->table[i] = (float)values[i];
    set_bytes(job);
    job->shift = 10 - (int)info->mantissa_bits;
    job->bias = ldexpf(1, 15 - info->bias);
    if (info->bits < 8) return;
    find_nans(values, job);
    set_pairs(info, values, job);
}

static void set_scales(uint32_t scale, float scales[256]) {
    if (scale == BSMM_SCALE_NONE || scale == BSMM_SCALE_F32) return;
    const double *values = bsmm_elem_values(bsmm_scale_row_of(scale)->elem);
    for (int i = 0; i < 256; i++)
        scales[i] = (float)values[i];
}

static strip_decoder strip_decoder_make(const bsmm_operand *src, const bsmm_operand *dst) {
    const bsmm_format *f = &src->m.format;
    strip_decoder d = {.ops = bsmm_strip_ops_best(), .src = src, .dst = dst};
    bool global = has_global(&src->m), wide = f->scale == BSMM_SCALE_F32;
    if (!d.ops->decode || !takes_strips(src, dst)) return (strip_decoder){0};
    d.line = bsmm_scale_line_make(&src->map);
    d.job = (bsmm_decode_job){.to_elem = dst->m.format.elem,
                              .width = f->block_cols ? f->block_cols : src->m.cols,
                              .scale_is_exact = !wide && f->scale != BSMM_SCALE_E8M0,
                              .is_exact = !wide && !global,
                              .other = global ? *src->m.global_scale : 1,
                              .streams = dst->data_bytes >= STREAMED};
    set_elements(f->elem, &d.job);
    set_scales(f->scale, d.scales);
    return d;
}

/* Replaces a scale that is NaN, with any payload, by the NaN with one fixed payload. With some
 * payloads, the carry of a later rounding to bf16 would run into the sign bit. */
static float one_nan(float scale) {
    return isnan(scale) ? NAN : scale;
}

/* Looks up the values of the scales of n blocks whose scale codes are adjacent. */
static void look_up_scales(const strip_decoder *d, const uint8_t *codes, int64_t n, float *scales) {
    for (int64_t i = 0; i < n; i++)
        scales[i] = d->scales[codes[i]];
}

static void load_scales(const strip_decoder *d, uint64_t row, int64_t block, int64_t n,
                        float *scales) {
    const uint8_t *codes = d->src->m.scales;
    const float *floats = d->src->m.scales;
    bool wide = d->src->m.format.scale == BSMM_SCALE_F32;
    uint64_t offsets[BSMM_SCALE_RUN];
    if (d->line.contiguous && !wide) {
        bsmm_scale_line_at(&d->line, row, block, 1, offsets);
        look_up_scales(d, codes + offsets[0], n, scales);
        return;
    }
    for (int64_t first = 0; first < n; first += BSMM_SCALE_RUN) {
        int64_t count = bsmm_min_i64(BSMM_SCALE_RUN, n - first);
        bsmm_scale_line_at(&d->line, row, block + first, count, offsets);
        for (int64_t i = 0; i < count; i++)
            scales[first + i] = wide ? one_nan(floats[offsets[i]]) : d->scales[codes[offsets[i]]];
    }
}

static void decode_strips(const strip_decoder *d, int64_t r) {
    const bsmm_format *f = &d->src->m.format;
    bool scaled = f->scale != BSMM_SCALE_NONE;
    int64_t cols = d->src->m.cols, step = scaled ? f->block_cols * BLOCKS : cols;
    uint64_t scale_row = scaled ? bsmm_scale_map_at(&d->src->map, r / f->block_rows, 0) : 0;
    uint32_t bits = bsmm_elem_row(f->elem)->bits, size = d->job.to_elem == BSMM_ELEM_F32 ? 4 : 2;
    const uint8_t *from = (uint8_t *)d->src->m.data + bsmm_operand_index(d->src, r, 0) * bits / 8;
    uint8_t *to = (uint8_t *)d->dst->m.data + bsmm_operand_index(d->dst, r, 0) * size;
    float scales[BLOCKS] = {1};
    for (int64_t c = 0; c < cols; c += step) {
        int64_t n = bsmm_min_i64(step, cols - c);
        if (scaled)
            load_scales(d, scale_row, c / f->block_cols, bsmm_ceil_div(n, f->block_cols), scales);
        d->ops->decode(&d->job, from + c * bits / 8, n, scales, to + c * size);
    }
    if (d->job.streams) d->ops->drain();
}

static bsmm_status check(const bsmm_place *place, const bsmm_operand *src,
                         const bsmm_operand *dst) {
    BSMM_TRY(bsmm_check_plain(dst, "dst"));
    BSMM_TRY(bsmm_check_shape(src, dst));
    BSMM_TRY(bsmm_place_check(place, src, "src", 0, NULL));
    BSMM_TRY(bsmm_place_check(place, dst, "dst", 0, NULL));
    return bsmm_check_overlap(src, dst);
}

typedef struct decode_run {
    const bsmm_operand *from;
    const bsmm_recipe_run *run;
    /* Decodes rows by vector code, many adjacent blocks at a time. strips->ops is NULL if vector
     * code does not support the formats. */
    const strip_decoder *strips;
    void (*by_row)(const bsmm_operand *, const bsmm_recipe_run *, int64_t);
} decode_run;

static void decode_rows(const void *context, int64_t first, int64_t end, int worker) {
    const decode_run *x = context;
    (void)worker;
    for (int64_t r = first; r < end; r++)
        if (x->strips->ops)
            decode_strips(x->strips, r);
        else
            x->by_row(x->from, x->run, r);
}

static bsmm_status dequantize_here(const bsmm_operand *from, const bsmm_operand *to,
                                   const bsmm_place *place) {
    const bsmm_recipe *cast;
    BSMM_TRY(bsmm_recipe_find(NULL, to->m.format, &cast));
    bsmm_recipe_run run = bsmm_recipe_start(cast, to, BSMM_ELEM_F32, 0);
    const strip_decoder strips = strip_decoder_make(from, to);
    const decode_run x = {from, &run, &strips, is_plain(from) ? cast_row : dequantize_row};
    const bsmm_loop loop = {
        .threads = place->threads, .count = from->m.rows, .body = decode_rows, .context = &x};
    return bsmm_loop_run(&loop, &place->pool);
}

bsmm_status bsmm_dequantize_on(const bsmm_exec *exec, const bsmm_matrix *src,
                               const bsmm_matrix *dst) {
    bsmm_place place;
    bsmm_recode job = {0};
    BSMM_TRY(bsmm_place_take(exec, &place));
    BSMM_TRY(bsmm_operand_take(src, "src", &job.src));
    BSMM_TRY(bsmm_operand_take(dst, "dst", &job.dst));
    BSMM_TRY(check(&place, &job.src, &job.dst));
    bsmm_drop_empty_rows(&job.src);
    bsmm_drop_empty_rows(&job.dst);
    if (place.backend->host_memory) return dequantize_here(&job.src, &job.dst, &place);
    return bsmm_recode_on(&place, place.backend->dequantize, &job, "dequantizing");
}

bsmm_status bsmm_dequantize(const bsmm_matrix *src, const bsmm_matrix *dst) {
    return bsmm_dequantize_on(NULL, src, dst);
}
