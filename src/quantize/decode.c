/* Decodes consecutive elements of a row to double. */
#include "quantize/coder.h"

enum { RUN = 256 };

/* Loads f32, f16 or bf16 values. Unlike bsmm_operand_decode_row, the function keeps the payloads of
 * NaN. */
static void plain_values(const bsmm_operand *src, int64_t r, int64_t c, int64_t n, double *to) {
    float values[RUN];
    for (int64_t i = 0; i < n; i += RUN) {
        int64_t count = bsmm_min_i64(RUN, n - i);
        bsmm_values_load(src, r, 1, c + i, count, values, count);
        for (int64_t j = 0; j < count; j++)
            to[i + j] = (double)values[j];
    }
}

void bsmm_values_decode(const bsmm_operand *src, int64_t r, int64_t c, int64_t n, double *to) {
    if (bsmm_elem_is_narrow(src->m.format.elem)) {
        bsmm_operand_decode_row(src, r, c, n, to);
        return;
    }
    plain_values(src, r, c, n, to);
    bsmm_operand_scale_row(src, r, c, n, to);
}
