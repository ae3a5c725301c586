/* Any format to f32, f16 or bf16. */
#include "quantize/recipe.h"

#include <math.h>

enum { RUN = 256 };

/* The nearest fp32 towards zero, with its last bit set when that is not the value: rounding it
 * again, to 22 bits or fewer, gives what rounding the value once would. */
static float round_to_odd(double value) {
    float nearest = (float)value;
    uint32_t bits = bsmm_float_bits(nearest);
    double rest = fabs(value) - fabs((double)nearest);
    if (!isfinite(value) || rest == 0) return nearest;
    if (rest < 0) bits--; /* towards zero, from Inf to the largest too */
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

static bsmm_status check(const bsmm_operand *src, const bsmm_operand *dst) {
    BSMM_TRY(bsmm_check_plain(dst, "dst"));
    BSMM_TRY(bsmm_check_shape(src, dst));
    BSMM_TRY(bsmm_operand_check_memory(src, "src"));
    BSMM_TRY(bsmm_operand_check_memory(dst, "dst"));
    return bsmm_check_overlap(src, dst);
}

bsmm_status bsmm_dequantize(const bsmm_matrix *src, const bsmm_matrix *dst) {
    bsmm_operand from, to;
    const bsmm_recipe *cast;
    BSMM_TRY(bsmm_operand_take(src, "src", &from));
    BSMM_TRY(bsmm_operand_take(dst, "dst", &to));
    BSMM_TRY(check(&from, &to));
    BSMM_TRY(bsmm_recipe_find(NULL, to.m.format, &cast));
    bsmm_recipe_run run = bsmm_recipe_start(cast, &to, BSMM_ELEM_F32, 0);
#pragma omp parallel for num_threads(bsmm_thread_count(0)) schedule(static)
    for (int64_t r = 0; r < from.m.rows; r++)
        dequantize_row(&from, &run, r);
    return BSMM_OK;
}
