/* Computes one row of a batch in double, and bounds the error that the engine may make in this
 * row. */
#include "engine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* `rounding` bounds the error of rounding a result to bf16. `fp32_rounding` bounds the errors of
 * dequantizing to f32 and of adding C in f32. */
static const double rounding = 0x1p-9 + 0x1p-20, fp32_rounding = 0x1p-22;

/* Holds one row of values, and for each value the largest error of the engine's value. */
typedef struct row {
    double *values, *errors;
} row;

static double value_of(uint16_t bf16) {
    const uint32_t bits = (uint32_t)bf16 << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

/* Adds the product of `in` and one row of a weight to element n of `out`. The engine multiplies
 * its own values, which differ from in->values by at most in->errors. */
static void add_product(const row *in, const float *weight, int64_t k, double bound, row *out,
                        int64_t n) {
    double sum = 0, carried = 0, magnitude = 0;
    for (int64_t i = 0; i < k; i++) {
        const double w = (double)weight[i], x = in->values[i], error = in->errors[i];
        sum += w * x;
        carried += fabs(w) * error;
        magnitude += fabs(w) * (fabs(x) + error);
    }
    out->values[n] += sum;
    out->errors[n] += carried + (bound + fp32_rounding) * magnitude;
    out->errors[n] += rounding * (fabs(out->values[n]) + out->errors[n]);
}

/* Adds the product of the row `in` and a weight matrix to the row `out`. */
static bool multiply(const row *in, const bsmm_matrix *weight, double bound, row *out) {
    bsmm_matrix f32 = {sizeof f32, .rows = weight->rows, .cols = weight->cols};
    f32.format.elem = BSMM_ELEM_F32;
    f32.data = malloc((size_t)(f32.rows * f32.cols) * sizeof(float));
    const bool done = f32.data && engine_ok(bsmm_dequantize(weight, &f32), "check");
    const float *values = f32.data;
    for (int64_t n = 0; done && n < f32.rows; n++)
        add_product(in, values + n * f32.cols, f32.cols, bound, out, n);
    free(f32.data);
    return done;
}

static row row_create(int64_t count) {
    return (row){calloc((size_t)count, sizeof(double)), calloc((size_t)count, sizeof(double))};
}

static void row_destroy(row *r) {
    free(r->values);
    free(r->errors);
}

static bool run_layer(const engine *e, int layer, row *hidden) {
    row inner = row_create(e->products[ENGINE_UP].d.cols);
    const engine_weight *weights = e->weights[layer];
    const bool done =
        inner.values && inner.errors &&
        multiply(hidden, &weights[ENGINE_UP].host, e->products[ENGINE_UP].bound, &inner) &&
        multiply(&inner, &weights[ENGINE_DOWN].host, e->products[ENGINE_DOWN].bound, hidden);
    row_destroy(&inner);
    return done;
}

double engine_check(const engine *e, const uint16_t *given, const uint16_t *served) {
    const int64_t count = e->products[ENGINE_UP].a.cols;
    row hidden = row_create(count);
    bool done = hidden.values && hidden.errors;
    double worst = 0;
    for (int64_t i = 0; done && i < count; i++)
        hidden.values[i] = value_of(given[i]);
    for (int layer = 0; done && layer < e->layers; layer++)
        done = run_layer(e, layer, &hidden);
    for (int64_t i = 0; done && i < count; i++) {
        const double error = fabs(value_of(served[i]) - hidden.values[i]);
        const double share = error == 0 ? 0 : error / hidden.errors[i];
        /* A NaN counts as the largest error, because every comparison with it is false. */
        if (!(share <= worst)) worst = share;
    }
    row_destroy(&hidden);
    return done ? worst : -1;
}
