/* The pipeline below the tensor's scale: block amax, block scale, element codes, memory. */
#include "quantize/recipe.h"

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
    /* An unscaled f16 or bf16 overflows to Inf, as IEEE arithmetic does. */
    bool saturate = info->bits <= 8 || dst->m.format.scale != BSMM_SCALE_NONE;
    if (info->bits < 32)
        run.coder = bsmm_coder_make(elem, saturate, recipe->steps.ties, recipe->steps.zero_sign);
    return run;
}

/* ---- strips ---- */

/* Blocks [c / width, ...) of one row of blocks: `rows` rows and `cols` columns of values. */
typedef struct strip {
    int64_t r, rows, c, cols, blocks;
    bsmm_plain values;
} strip;

static void choose_scales(const bsmm_recipe_run *run, const strip *s, bsmm_strip_scales *to) {
    run->ops->amax(&s->values, s->rows, s->cols, run->dst->m.format.block_cols,
                   run->recipe->steps.skips_nan, to->amax);
    run->rule(to, s->blocks, &run->tensor);
}

/* Bounds of what needs no care, as fp32 bits. */
typedef struct tame_bounds {
    uint32_t amax, least_factor, most_factor;
} tame_bounds;

/* Finite values and positive normal factors: no NaN arises. Of divisors also quotients that do not
 * overflow, and remainders that do not underflow unless the quotient is below 2^-40. */
static const tame_bounds tame_multiplying = {0x7f7fffffu, 0x00800000u, 0x7f7fffffu};
static const tame_bounds tame_dividing = {0x5d800000u, 0x21800000u, 0x5d800000u}; /* 2^-60, 2^60 */

static bool is_tame(const bsmm_strip_scales *scales, int64_t blocks, bsmm_element_step step) {
    const tame_bounds bounds = step == BSMM_STEP_DIVIDE ? tame_dividing : tame_multiplying;
    uint32_t wild = 0;
    for (int64_t i = 0; i < blocks; i++) {
        uint32_t above = bsmm_float_bits(scales->factors[i]) - bounds.least_factor;
        wild |= (uint32_t)(scales->amax[i] > bounds.amax);
        wild |= (uint32_t)(above > bounds.most_factor - bounds.least_factor);
    }
    return !wild;
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

/* BSMM_SCALE_RUN codes side by side. */
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

static void store_scales(const bsmm_recipe_run *run, const strip *s, uint64_t row,
                         const uint32_t *codes) {
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

static bsmm_strip_job job_of(const bsmm_recipe_run *run, int64_t width) {
    return (bsmm_strip_job){run->dst, &run->coder, run->recipe->steps.step, width};
}

static void store_strip(const bsmm_recipe_run *run, const bsmm_strip_job *job, const strip *s,
                        uint64_t scale_row) {
    bsmm_strip_scales scales;
    choose_scales(run, s, &scales);
    store_scales(run, s, scale_row, scales.codes);
    bool tame = is_tame(&scales, s->blocks, job->step);
    for (int64_t i = 0; i < s->rows; i++) {
        bsmm_plain row = bsmm_plain_at(&s->values, i, 0);
        run->ops->encode(job, &row, s->r + i, s->c, s->cols, scales.factors, tame);
    }
}

/* So many blocks that the values of a strip and of the next, which are on their way meanwhile, stay
 * in the first cache until they are encoded; of blocks of many rows in the second. */
static int64_t strip_cols(const bsmm_format *f) {
    const int64_t elements = f->block_rows == 1 ? 1 << 12 : 1 << 17;
    int64_t block = (int64_t)f->block_rows * f->block_cols, blocks = elements / block;
    return bsmm_min_i64(blocks ? blocks : 1, BSMM_STRIP_BLOCKS) * f->block_cols;
}

/* One row of blocks. */
static void store_blocks(const bsmm_recipe_run *run, int64_t r, int64_t rows, int64_t col,
                         int64_t cols, const bsmm_plain *values) {
    const bsmm_format *f = &run->dst->m.format;
    bsmm_strip_job job = job_of(run, f->block_cols);
    uint64_t scale_row = bsmm_scale_map_at(&run->dst->map, r / f->block_rows, 0);
    for (int64_t c = 0, step = strip_cols(f); c < cols; c += step) {
        strip s = {.r = r, .rows = rows, .c = col + c, .cols = bsmm_min_i64(step, cols - c)};
        s.blocks = bsmm_ceil_div(s.cols, f->block_cols);
        s.values = bsmm_plain_at(values, 0, c);
        store_strip(run, &job, &s, scale_row);
    }
}

static void store_unscaled(const bsmm_recipe_run *run, int64_t row, int64_t rows, int64_t col,
                           int64_t cols, const bsmm_plain *values) {
    bsmm_strip_job job = job_of(run, cols);
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
        store_blocks(run, row + r, bsmm_min_i64(f->block_rows, rows - r), col, cols, &from);
    }
}

/* ---- for kernels ---- */

/* Both forms of a second level that is already chosen. A divisor in memory is taken as it is: the
 * factor would be its rounded reciprocal. */
static void set_level(bsmm_tensor_step *tensor, const bsmm_matrix *m, float global) {
    bool by_divisor = m->global_kind == BSMM_GLOBAL_DIVISOR && m->global_scale;
    tensor->divisor = by_divisor ? *m->global_scale : 1 / global;
    tensor->multiplier = by_divisor ? 1 / tensor->divisor : global;
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
