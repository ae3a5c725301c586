/* Implements the pipeline that quantizes blocks, after the scale of the whole tensor is known. It
 * finds the amax (largest magnitude) of each block, chooses the block's scale, encodes the block's
 * elements, and stores scale and codes. */
#include "quantize/recipe.h"
#include "recipe/rules.h"

#include <math.h>
#include <string.h>

bsmm_recipe_run bsmm_recipe_start(const bsmm_recipe *recipe, const bsmm_operand *dst,
                                  uint32_t source_elem, uint32_t flags) {
    uint32_t elem = dst->m.format.elem;
    const bsmm_elem_info *info = bsmm_elem_row(elem);
    bsmm_recipe_run run = {
        .recipe = recipe,
        .dst = dst,
        .tensor = bsmm_tensor_step_make(elem, source_elem, flags & BSMM_QUANTIZE_POW2),
        .line = {.map = &dst->map},
        .ops = bsmm_strip_ops_for(dst),
        .rule = bsmm_strip_rule_of(recipe->steps.block),
    };
    /* Unscaled f16 and bf16 overflow to Inf, as in IEEE arithmetic; all other formats saturate. */
    bool saturate = info->bits <= 8 || dst->m.format.scale != BSMM_SCALE_NONE;
    if (info->bits < 32)
        run.coder = bsmm_coder_make(elem, saturate, recipe->steps.ties, recipe->steps.zero_sign);
    return run;
}

/* A strip consists of up to BSMM_STRIP_BLOCKS adjacent blocks of one row of blocks, from column c
 * on. */
typedef struct strip {
    int64_t r, rows, c, cols, blocks;
    bsmm_plain values;
    /* `tame` is true if values and factors are in a range in which the fast encoder is exact. */
    bool tame;
    bsmm_strip_scales scales;
} strip;

/* A block is called "tame" if the fast encoder is exact for it: no NaN can arise, and the fast
 * division gives the right codes. Whether it is tame follows from its amax (largest magnitude) and
 * its factor. The struct has the ranges, as fp32 bits, in which both must lie. */
typedef struct tame_ranges {
    bsmm_bits_range amax, factors;
} tame_ranges;

/* A block is "tame" if the fast encoder is exact for it. These are the ranges of tame blocks for
 * recipes that multiply the values of a block by a factor. The block's largest magnitude (amax)
 * must be finite, and the factor must be positive and a normal number. The product of a value and
 * the factor is then never NaN. */
static const tame_ranges tame_multiplying = {{0, 0x7f7fffffu, 0},
                                             {0x00800000u, 0x7f7fffffu, 0x00800000u}};
/* These are the ranges for recipes that divide the values of a block by a divisor: amax is at most
 * 2^60 (bits 0x5d800000), and divisors are from 2^-60 (bits 0x21800000) to 2^60. In these ranges
 * quotients cannot overflow. The remainder that the fast division computes can underflow only if
 * the quotient is below 2^-40, where it does not matter. */
static const tame_ranges tame_dividing = {{0, 0x5d800000u, 0},
                                          {0x21800000u, 0x5d800000u, 0x21800000u}};

/* Computes the scales of a strip (some adjacent blocks of a row of blocks). Sets s->tame to true if
 * the fast encoder is exact for the strip, i.e. if its largest magnitudes (amax) and its factors
 * lie in certain ranges. The magnitudes are tested only if the fast rule (bsmm_tame_rule_apply)
 * does not accept the blocks, because the fast rule accepts only magnitudes of at most 2^60. */
static void choose_scales(const bsmm_recipe_run *run, strip *s) {
    const bsmm_recipe_steps *steps = &run->recipe->steps;
    const tame_ranges *ranges =
        steps->step == BSMM_STEP_DIVIDE ? &tame_dividing : &tame_multiplying;
    run->ops->amax(&s->values, s->rows, s->cols, run->dst->m.format.block_cols, steps->skips_nan,
                   s->scales.amax);
    s->tame = bsmm_tame_rule_apply(run->tame, &s->scales, s->blocks, &run->tensor);
    if (!s->tame) {
        run->rule(&s->scales, s->blocks, &run->tensor);
        s->tame = bsmm_strip_within(s->scales.amax, s->blocks, ranges->amax);
    }
    s->tame = s->tame && bsmm_strip_within(s->scales.factors, s->blocks, ranges->factors);
}

static void store_codes(uint32_t scale, void *base, const uint64_t *offsets, int64_t n,
                        const uint32_t *codes) {
    if (scale == BSMM_SCALE_F32)
        for (int64_t i = 0; i < n; i++)
            memcpy((uint32_t *)base + offsets[i], &codes[i], sizeof codes[i]);
    else
        for (int64_t i = 0; i < n; i++)
            ((uint8_t *)base)[offsets[i]] = (uint8_t)codes[i];
}

/* Stores the scale codes of BSMM_SCALE_RUN adjacent blocks, whose scales are also adjacent in
 * memory. */
static void store_run(uint32_t scale, void *base, uint64_t offset, const uint32_t *codes) {
    uint8_t bytes[BSMM_SCALE_RUN];
    if (scale == BSMM_SCALE_F32) {
        memcpy((uint32_t *)base + offset, codes, BSMM_SCALE_RUN * sizeof *codes);
        return;
    }
    for (int i = 0; i < BSMM_SCALE_RUN; i++)
        bytes[i] = (uint8_t)codes[i];
    memcpy((uint8_t *)base + offset, bytes, sizeof bytes);
}

static void store_scales(const bsmm_recipe_run *run, const strip *s, uint64_t row) {
    const uint32_t *codes = s->scales.codes;
    const bsmm_matrix *m = &run->dst->m;
    uint64_t offsets[BSMM_SCALE_RUN];
    int64_t block = s->c / m->format.block_cols;
    bool aligned = run->line.contiguous && block % BSMM_SCALE_RUN == 0;
    for (int64_t first = 0; first < s->blocks; first += BSMM_SCALE_RUN) {
        int64_t n = bsmm_min_i64(BSMM_SCALE_RUN, s->blocks - first);
        bool side_by_side = aligned && n == BSMM_SCALE_RUN;
        bsmm_scale_line_at(&run->line, row, block + first, side_by_side ? 1 : n, offsets);
        if (side_by_side)
            store_run(m->format.scale, m->scales, offsets[0], codes + first);
        else
            store_codes(m->format.scale, m->scales, offsets, n, codes + first);
    }
}

static bsmm_strip_job job_of(const bsmm_recipe_run *run, int64_t width, int64_t ahead) {
    return (bsmm_strip_job){run->dst, &run->coder, run->recipe->steps.step, width, ahead};
}

static void store_strip(const bsmm_recipe_run *run, const bsmm_strip_job *job, const strip *s,
                        uint64_t scale_row) {
    store_scales(run, s, scale_row);
    for (int64_t i = 0; i < s->rows; i++) {
        bsmm_plain row = bsmm_plain_at(&s->values, i, 0);
        run->ops->encode(job, &row, s->r + i, s->c, s->cols, s->scales.factors, s->tame);
    }
}

/* Returns the number of columns of a strip, i.e. of adjacent blocks that are quantized together.
 * The values of a strip are read twice: first to find the scales of its blocks, and then to encode
 * the elements. In between, the next strip is prefetched. The length is chosen so that the values
 * of both strips fit into the L1 cache. If blocks have many rows, a strip has more values, which
 * fit only into the L2 cache. */
static int64_t strip_cols(const bsmm_format *f) {
    const int64_t elements = f->block_rows == 1 ? 1 << 11 : 1 << 17;
    int64_t block = (int64_t)f->block_rows * f->block_cols, blocks = elements / block;
    return bsmm_min_i64(blocks ? blocks : 1, BSMM_STRIP_BLOCKS) * f->block_cols;
}

/* `block_row` is one row of blocks of the destination. It is divided into strips, i.e. adjacent
 * blocks that are handled together. */
typedef struct block_row {
    int64_t r, rows, c, cols;
    const bsmm_plain *values;
} block_row;

/* Describes the strip (adjacent blocks that are handled together) that begins at column c of a row
 * of blocks. */
static void strip_at(const block_row *row, const bsmm_format *f, int64_t c, int64_t step,
                     strip *s) {
    s->r = row->r;
    s->rows = row->rows;
    s->c = row->c + c;
    s->cols = bsmm_min_i64(step, row->cols - c);
    s->blocks = bsmm_ceil_div(s->cols, f->block_cols);
    s->values = bsmm_plain_at(row->values, 0, c);
}

/* Prefetches the first cache lines of the values that lie `cols` columns further on. Without the
 * prefetch, the memory would be idle while scales are computed. */
static void ask_ahead(const bsmm_plain *values, int64_t cols) {
    enum { LINES = 16 }; /* LINES is the number of cache misses that a core can have in flight. */
    const char *at = bsmm_plain_at(values, 0, cols).data;
    for (int i = 0; i < LINES; i++)
        __builtin_prefetch(at + 64 * i);
}

/* Quantizes a row of blocks, one strip (some adjacent blocks) after another. If a block has only
 * one row, the scales of the next strip are computed before the current strip is encoded, which
 * hides the latency of that computation. If blocks have several rows, the scales of the next strip
 * are computed after the current strip is encoded, because the values of the next strip would evict
 * the current strip from the cache. */
static void store_blocks(const bsmm_recipe_run *run, const block_row *row) {
    const bsmm_format *f = &run->dst->m.format;
    const bool early = f->block_rows == 1;
    const int64_t step = strip_cols(f);
    bsmm_strip_job job = job_of(run, f->block_cols, early ? 2 * step : step);
    uint64_t scale_row = bsmm_scale_map_at(&run->dst->map, row->r / f->block_rows, 0);
    strip strips[2], *now = &strips[0], *next = &strips[1];
    if (row->cols <= 0) return;
    strip_at(row, f, 0, step, now);
    choose_scales(run, now);
    for (int64_t c = step; c < row->cols; c += step) {
        strip_at(row, f, c, step, next);
        if (early) ask_ahead(&next->values, step);
        if (early) choose_scales(run, next);
        store_strip(run, &job, now, scale_row);
        if (!early) choose_scales(run, next);
        strip *done = now;
        now = next;
        next = done;
    }
    store_strip(run, &job, now, scale_row);
}

static void store_unscaled(const bsmm_recipe_run *run, int64_t row, int64_t rows, int64_t col,
                           int64_t cols, const bsmm_plain *values) {
    bsmm_strip_job job = job_of(run, cols, cols);
    for (int64_t i = 0; i < rows; i++) {
        bsmm_plain from = bsmm_plain_at(values, i, 0);
        run->ops->encode(&job, &from, row + i, col, cols, NULL, false);
    }
}

void bsmm_recipe_store_part(const bsmm_recipe_run *run, int64_t row, int64_t rows, int64_t col,
                            int64_t cols, const bsmm_plain *values) {
    const bsmm_format *f = &run->dst->m.format;
    if (f->scale == BSMM_SCALE_NONE) {
        store_unscaled(run, row, rows, col, cols, values);
        return;
    }
    for (int64_t r = 0; r < rows; r += f->block_rows) {
        bsmm_plain from = bsmm_plain_at(values, r, 0);
        int64_t height = bsmm_min_i64(f->block_rows, rows - r);
        store_blocks(run, &(block_row){row + r, height, col, cols, &from});
    }
}

/* Sets the second-level scale that the caller chose. A divisor in memory is used unchanged, because
 * `global` is only its rounded reciprocal. */
static void set_level(bsmm_tensor_step *tensor, const bsmm_matrix *m, float global) {
    bool by_divisor = m->global_kind == BSMM_GLOBAL_DIVISOR && m->global_scale;
    bsmm_tensor_by(by_divisor ? BSMM_TENSOR_GIVEN_DIVISOR : BSMM_TENSOR_GIVEN,
                   by_divisor ? *m->global_scale : global, tensor);
}

void bsmm_recipe_store(const bsmm_recipe *recipe, const bsmm_operand *dst, int64_t row,
                       int64_t rows, int64_t col, int64_t cols, const float *values, int64_t pitch,
                       float global) {
    bsmm_recipe_run run = bsmm_recipe_start(recipe, dst, BSMM_ELEM_F32, 0);
    bsmm_plain from = {BSMM_ELEM_F32, values, pitch};
    set_level(&run.tensor, &dst->m, global);
    bsmm_recipe_store_part(&run, row, rows, col, cols, &from);
}

void bsmm_recipe_pad(const bsmm_operand *dst) {
    if (dst->m.format.scale != BSMM_SCALE_NONE) bsmm_scales_pad(dst, 0, dst->map.rows);
}
