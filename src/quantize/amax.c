/* The largest magnitude of a matrix. */
#include "quantize/recipe.h"

enum { RUN = 1024 };

static uint32_t row_amax(const bsmm_operand *src, int64_t r) {
    float values[RUN];
    uint32_t amax = 0;
    for (int64_t c = 0; c < src->m.cols; c += RUN) {
        int64_t n = bsmm_min_i64(RUN, src->m.cols - c);
        bsmm_values_load(src, r, 1, c, n, values, n);
        for (int64_t i = 0; i < n; i++) {
            uint32_t a = bsmm_float_bits(values[i]) & 0x7fffffffu;
            amax = a > amax ? a : amax;
        }
    }
    return amax;
}

/* A transposed view walks the contiguous index too: magnitudes have no order. */
static bsmm_operand along_memory(const bsmm_operand *src) {
    bsmm_operand view = *src;
    if (src->m.order == BSMM_ORDER_ROW) return view;
    view.m.order = BSMM_ORDER_ROW;
    view.m.rows = src->m.cols;
    view.m.cols = src->m.rows;
    return view;
}

uint32_t bsmm_amax_bits(const bsmm_operand *src, int threads) {
    bsmm_operand view = along_memory(src);
    uint32_t amax = 0;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(max : amax)
    for (int64_t r = 0; r < view.m.rows; r++) {
        uint32_t row = row_amax(&view, r);
        amax = row > amax ? row : amax;
    }
    return amax;
}

bsmm_status bsmm_amax(const bsmm_matrix *src, float *amax) {
    bsmm_operand from;
    BSMM_TRY(bsmm_operand_take(src, "src", &from));
    BSMM_TRY(bsmm_check_plain(&from, "src"));
    BSMM_TRY(bsmm_operand_check_memory(&from, "src"));
    if (!amax) return bsmm_fail(BSMM_E_INVALID, "amax: value is NULL; must be given");
    *amax = bsmm_bits_float(bsmm_amax_bits(&from, bsmm_thread_count(0)));
    return BSMM_OK;
}
