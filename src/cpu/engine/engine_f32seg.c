/* The f32seg engine sums in fp32 inside a segment of K, i.e. up to 128 elements whose scales do not
 * change. It then multiplies the segment's sum by the scales and adds it to the result in double.
 *
 * The error of a result is at most 128 * 2^-24 * sum |a * b|, because a segment has at most 128
 * terms. The error of the additions in double is far smaller. If a segment of a row of A or B is
 * marked `wide`, fp32 sums could leave fp32's range. The segment is then summed in double with the
 * scales applied to each term, so the bound holds for all inputs. The choice depends only on the
 * two rows, so a result does not depend on other rows of A or B. */
#include "cpu/engine/engine_f32seg.h"

#include <string.h>

enum { MR = BSMM_F32SEG_MR, NR = BSMM_F32SEG_NR };

/* `lanes` is a vector of four floats, because the SIMD unit of every processor supports this
 * length. The accumulators of a register tile are MR * VECTORS = 8 such vectors, for which every
 * SIMD unit has enough registers. */
typedef float lanes __attribute__((vector_size(16)));
enum { LANES = 4, VECTORS = NR / LANES };

static void multiply_tile(const float *a, const float *b, int64_t k, float sum[MR][NR]) {
    lanes acc[MR][VECTORS] = {0};
    for (int64_t i = 0; i < k; i++, a += MR, b += NR) {
        lanes column[VECTORS];
        memcpy(column, b, sizeof column);
        for (int r = 0; r < MR; r++)
            for (int v = 0; v < VECTORS; v++)
                acc[r][v] += a[r] * column[v];
    }
    memcpy(sum, acc, sizeof acc);
}

static double sum_in_double(const float *a, double a_scale, const float *b, double b_scale,
                            int64_t k) {
    double sum = 0;
    for (int64_t i = 0; i < k; i++)
        sum += ((double)a[i * MR] * a_scale) * ((double)b[i * NR] * b_scale);
    return sum;
}

static bool any(const uint8_t *flags, int count) {
    bool found = false;
    for (int i = 0; i < count; i++)
        found |= flags[i];
    return found;
}

/* `tile` holds the packed operands of one register tile in one segment, i.e. a range of K in which
 * the scales of A and B do not change. */
typedef struct tile {
    const float *a, *b;
    const double *a_scales, *b_scales;
    const uint8_t *a_wide, *b_wide;
    int64_t k;
} tile;

static void add_wide(const tile *t, double *acc, int64_t pitch, float sum[MR][NR]) {
    for (int r = 0; r < MR; r++)
        for (int c = 0; c < NR; c++)
            acc[r * pitch + c] +=
                t->a_wide[r] || t->b_wide[c]
                    ? sum_in_double(t->a + r, t->a_scales[r], t->b + c, t->b_scales[c], t->k)
                    : (double)sum[r][c] * (t->a_scales[r] * t->b_scales[c]);
}

static void add_segment(const tile *t, double *acc, int64_t pitch) {
    float sum[MR][NR];
    multiply_tile(t->a, t->b, t->k, sum);
    if (any(t->a_wide, MR) || any(t->b_wide, NR)) {
        add_wide(t, acc, pitch, sum);
        return;
    }
    for (int r = 0; r < MR; r++)
        for (int c = 0; c < NR; c++)
            acc[r * pitch + c] += (double)sum[r][c] * (t->a_scales[r] * t->b_scales[c]);
}

void bsmm_f32seg_engine(const bsmm_f32seg_block *a, int64_t padded_m, const bsmm_f32seg_block *b,
                        int64_t padded_n, int64_t k, int64_t segment, double *acc) {
    for (int64_t j = 0; j < padded_n; j += NR)
        for (int64_t i = 0; i < padded_m; i += MR)
            for (int64_t k0 = 0, s = 0; k0 < k; k0 += segment, s++) {
                tile t = {
                    .a = a->elements + i * k + k0 * MR,
                    .b = b->elements + j * k + k0 * NR,
                    .a_scales = a->scales + s * padded_m + i,
                    .b_scales = b->scales + s * padded_n + j,
                    .a_wide = a->wide + s * padded_m + i,
                    .b_wide = b->wide + s * padded_n + j,
                    .k = bsmm_min_i64(segment, k - k0),
                };
                add_segment(&t, acc + i * padded_n + j, padded_n);
            }
}
