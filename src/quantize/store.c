/* The pipeline below the tensor's scale: block amax, block scale, element codes, memory. */
#include "quantize/recipe.h"

#include <float.h>
#include <math.h>

enum { RUN = 256 };

bsmm_recipe_run bsmm_recipe_start(const bsmm_recipe *recipe, const bsmm_operand *dst,
                                  uint32_t source_elem, uint32_t flags) {
    uint32_t elem = dst->m.format.elem;
    const bsmm_elem_info *info = bsmm_elem_row(elem);
    bsmm_recipe_run run = {
        .recipe = recipe,
        .dst = dst,
        .tensor = {.max = (float)info->max,
                   .emax = ilogb(info->max),
                   .mantissa_bits = info->mantissa_bits,
                   .source_elem = source_elem,
                   .multiplier = 1,
                   .divisor = 1,
                   .pow2 = flags & BSMM_QUANTIZE_POW2},
    };
    /* An unscaled f16 or bf16 overflows to Inf, as IEEE arithmetic does. */
    bool saturate = info->bits <= 8 || dst->m.format.scale != BSMM_SCALE_NONE;
    if (info->bits < 32)
        run.coder = bsmm_coder_make(elem, saturate, recipe->ties, recipe->zero_sign);
    return run;
}

/* ---- elements ---- */

static void store_f32(const bsmm_operand *dst, int64_t r, int64_t c, int64_t n,
                      const float *values) {
    for (int64_t i = 0; i < n; i++)
        bsmm_elem_store(BSMM_ELEM_F32, dst->m.data, bsmm_operand_index(dst, r, c + i),
                        bsmm_float_bits(values[i]));
}

static void scale_run(const bsmm_recipe_run *run, const float *values, int64_t n, float factor,
                      float *scaled) {
    if (run->recipe->step == BSMM_STEP_DIVIDE)
        for (int64_t i = 0; i < n; i++)
            scaled[i] = values[i] / factor;
    else
        for (int64_t i = 0; i < n; i++)
            scaled[i] = values[i] * factor;
}

static void store_codes(const bsmm_recipe_run *run, int64_t r, int64_t c, int64_t n,
                        const float *values, float factor) {
    float scaled[RUN];
    uint16_t codes[RUN];
    if (run->recipe->step == BSMM_STEP_COMPARE)
        bsmm_coder_run_bounds(&run->coder, values, n, factor, codes);
    else {
        scale_run(run, values, n, factor, scaled);
        bsmm_coder_run(&run->coder, scaled, n, codes);
    }
    bsmm_codes_store(run->dst, r, c, n, codes);
}

/* f32 elements of a scaled format: no format is narrower than they are, but they saturate too. */
static void store_wide(const bsmm_recipe_run *run, int64_t r, int64_t c, int64_t n,
                       const float *values, float factor) {
    float scaled[RUN];
    scale_run(run, values, n, factor, scaled);
    for (int64_t i = 0; i < n; i++)
        if (isinf(scaled[i])) scaled[i] = copysignf(FLT_MAX, scaled[i]);
    store_f32(run->dst, r, c, n, scaled);
}

/* One row of a block. */
static void store_run(const bsmm_recipe_run *run, int64_t r, int64_t c, int64_t n,
                      const float *values, float factor) {
    bool wide = run->dst->m.format.elem == BSMM_ELEM_F32;
    for (int64_t i = 0; i < n; i += RUN)
        (wide ? store_wide : store_codes)(run, r, c + i, bsmm_min_i64(RUN, n - i), values + i,
                                          factor);
}

/* ---- blocks ---- */

/* max |x| as fp32 bits, which order as magnitudes do and put NaN on top. */
static uint32_t largest_bits(const float *values, int64_t n, uint32_t limit) {
    uint32_t largest = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t a = bsmm_float_bits(values[i]) & 0x7fffffffu;
        a = a > limit ? 0 : a;
        largest = a > largest ? a : largest;
    }
    return largest;
}

static float block_amax(const bsmm_recipe *recipe, const float *values, int64_t rows, int64_t cols,
                        int64_t pitch) {
    uint32_t limit = recipe->skips_nan ? 0x7f800000u : UINT32_MAX, amax = 0;
    for (int64_t i = 0; i < rows; i++) {
        uint32_t row = largest_bits(values + i * pitch, cols, limit);
        amax = row > amax ? row : amax;
    }
    return bsmm_bits_float(amax);
}

static void store_block(const bsmm_recipe_run *run, int64_t r, int64_t rows, int64_t c,
                        int64_t cols, const float *values, int64_t pitch) {
    const bsmm_operand *dst = run->dst;
    const bsmm_format *f = &dst->m.format;
    float amax = block_amax(run->recipe, values, rows, cols, pitch);
    bsmm_block_step step = run->recipe->block(amax, &run->tensor);
    uint64_t at = bsmm_scale_map_at(&dst->map, r / f->block_rows, c / f->block_cols);
    bsmm_scale_store_code(f->scale, dst->m.scales, at, step.code);
    for (int64_t i = 0; i < rows; i++)
        store_run(run, r + i, c, cols, values + i * pitch, step.factor);
}

static void store_unscaled(const bsmm_recipe_run *run, int64_t row, int64_t rows, int64_t col,
                           int64_t cols, const float *values, int64_t pitch) {
    bool wide = run->dst->m.format.elem == BSMM_ELEM_F32;
    for (int64_t i = 0; i < rows; i++)
        if (wide)
            store_f32(run->dst, row + i, col, cols, values + i * pitch);
        else
            store_run(run, row + i, col, cols, values + i * pitch, 1);
}

void bsmm_recipe_store_part(const bsmm_recipe_run *run, int64_t row, int64_t rows, int64_t col,
                            int64_t cols, const float *values, int64_t pitch) {
    const bsmm_format *f = &run->dst->m.format;
    if (f->scale == BSMM_SCALE_NONE) {
        store_unscaled(run, row, rows, col, cols, values, pitch);
        return;
    }
    for (int64_t r = 0; r < rows; r += f->block_rows)
        for (int64_t c = 0; c < cols; c += f->block_cols)
            store_block(run, row + r, bsmm_min_i64(f->block_rows, rows - r), col + c,
                        bsmm_min_i64(f->block_cols, cols - c), values + r * pitch + c, pitch);
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
    set_level(&run.tensor, &dst->m, global);
    bsmm_recipe_store_part(&run, row, rows, col, cols, values, pitch);
}

void bsmm_recipe_pad(const bsmm_operand *dst) {
    if (dst->m.format.scale != BSMM_SCALE_NONE) bsmm_scales_pad(dst, 0, dst->map.rows);
}
