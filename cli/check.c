#include "check.h"
#include "common.h"
#include "files.h"
#include "tables.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Finds the error bound of the kernel that computed the product. The bound is a multiple of
 * |alpha| sum |a||b|. */
static bool find_bound(const bsmm_matmul_desc *desc, double *bound) {
    bsmm_explanation row = BSMM_INIT(bsmm_explanation);
    for (uint32_t i = 0; !bsmm_explain(desc, i, &row); i++)
        if (row.accepts && (!desc->kernel || strcmp(desc->kernel, row.kernel) == 0)) {
            *bound = row.bound;
            return true;
        }
    return false;
}

/* Clears the sign bits of all codes in an array of packed codes. Each code has `bits` bits. */
static void clear_signs(void *memory, uint64_t bytes, uint32_t bits) {
    uint8_t mask[4], *data = memory;
    uint32_t period = bits == 6 ? 3 : bits < 8 ? 1 : bits / 8;
    memset(mask, 0xff, sizeof mask);
    for (uint32_t sign = bits - 1; sign < period * 8; sign += bits)
        mask[sign / 8] &= (uint8_t) ~(1u << sign % 8);
    for (uint64_t i = 0; i < bytes; i++)
        data[i] &= mask[i % period];
}

/* Holds |X| for a matrix X: a copy of X in which the sign bits of all elements, of all block scales
 * and of the second-level scale `global` are 0. */
typedef struct absolute {
    bsmm_matrix matrix;
    float global;
    void *memory;
} absolute;

static bool make_absolute(const bsmm_matrix *from, absolute *to) {
    uint32_t scale = from->format.scale;
    bsmm_elem_info elem;
    to->matrix = *from;
    to->memory = cli_matrix_allocate(&to->matrix);
    if (!to->memory ||
        !cli_elem_find(bsmm_format_name((bsmm_format){.elem = from->format.elem}), &elem))
        return false;
    memcpy(to->matrix.data, from->data, to->matrix.data_bytes);
    clear_signs(to->matrix.data, to->matrix.data_bytes, elem.bits);
    to->global = from->global_scale ? fabsf(*from->global_scale) : 0;
    if (from->global_scale) to->matrix.global_scale = &to->global;
    if (scale == BSMM_SCALE_NONE) return true;
    memcpy(to->matrix.scales, from->scales, to->matrix.scale_bytes);
    if (scale != BSMM_SCALE_E8M0)
        clear_signs(to->matrix.scales, to->matrix.scale_bytes, scale == BSMM_SCALE_F32 ? 32 : 8);
    return true;
}

static bool multiply_reference(bsmm_matmul_desc desc, bsmm_matrix *d) {
    desc.d = d;
    desc.kernel = "ref";
    desc.device = NULL;
    return !bsmm_matmul(&desc);
}

/* Computes |alpha| sum |a||b| for each element of D and stores it in d, because the error bound is
 * a multiple of this sum. */
static bool multiply_absolute(bsmm_matmul_desc desc, bsmm_matrix *d) {
    absolute a = {0}, b = {0};
    float alpha = fabsf(*desc.alpha);
    bool done = make_absolute(desc.a, &a) && make_absolute(desc.b, &b);
    desc.a = &a.matrix;
    desc.b = &b.matrix;
    desc.c = NULL;
    desc.alpha = &alpha;
    desc.beta = NULL;
    done = done && multiply_reference(desc, d);
    free(a.memory);
    free(b.memory);
    return done;
}

static double half_ulp(const bsmm_elem_info *elem, double value) {
    int exponent = fabs(value) > elem->min_normal ? ilogb(value) : 1 - elem->bias;
    return ldexp(1, exponent - (int)elem->mantissa_bits - 1);
}

/* The check of a result takes the difference of the computed and the expected value. Returns the
 * number that stands for one of these values in the difference: `value` itself or, if it is
 * infinite, the smallest number that rounds to Inf, i.e. half an ulp above the largest finite
 * value. */
static double stand_in(const bsmm_elem_info *elem, double value) {
    return isinf(value) ? copysign(elem->max + half_ulp(elem, elem->max), value) : value;
}

typedef struct comparison {
    /* `elem` describes D's element format. `f32` describes the format of the expected values. */
    bsmm_elem_info elem, f32;
    double bound; /* `bound` is the kernel's error bound as a multiple of |alpha| sum |a||b|. */
    cli_check *check;
} comparison;

static void compare(const comparison *with, int64_t row, int64_t col, double got, double expected,
                    double sum) {
    cli_check *check = with->check;
    double error = fabs(stand_in(&with->elem, got) - stand_in(&with->f32, expected));
    /* The expected value was rounded to f32, so the bound also includes half an ulp of f32. */
    double bound = with->bound * sum + half_ulp(&with->f32, stand_in(&with->f32, expected)) +
                   half_ulp(&with->elem, stand_in(&with->elem, got));
    double share = error / bound;
    if (isnan(expected) || isnan(got)) {
        error = 0;
        share = isnan(expected) && isnan(got) ? 0 : INFINITY;
    } else if (isinf(got) && isinf(expected) && signbit(got) == signbit(expected)) {
        error = share = 0;
    }
    if (error > check->max_error) check->max_error = error;
    if (share <= check->share) return;
    *check = (cli_check){check->max_error, share, row, col, got, expected};
}

/* Compares D with the expected values, one row at a time. The function converts D to f32. The
 * conversion is exact for every format of D. */
static bool compare_rows(const bsmm_matrix *d, const float *expected, const float *sums,
                         double bound, cli_check *check) {
    comparison with = {.check = check, .bound = bound};
    bsmm_matrix values = *d;
    values.format.elem = BSMM_ELEM_F32;
    float *got = cli_matrix_allocate(&values);
    bool done = got && !bsmm_dequantize(d, &values) &&
                cli_elem_find(bsmm_format_name(d->format), &with.elem) &&
                cli_elem_find("f32", &with.f32);
    for (int64_t i = 0; done && i < d->rows * d->cols; i++)
        compare(&with, i / d->cols, i % d->cols, (double)got[i], (double)expected[i],
                (double)sums[i]);
    free(got);
    return done;
}

bool cli_check_run(const bsmm_matmul_desc *desc, cli_check *check) {
    bsmm_matrix expected = *desc->d, sums;
    double bound = 0;
    *check = (cli_check){0};
    expected.format.elem = BSMM_ELEM_F32;
    sums = expected;
    void *expected_memory = cli_matrix_allocate(&expected);
    void *sums_memory = cli_matrix_allocate(&sums);
    bool done = expected_memory && sums_memory && find_bound(desc, &bound) &&
                multiply_reference(*desc, &expected) && multiply_absolute(*desc, &sums) &&
                compare_rows(desc->d, expected.data, sums.data, bound, check);
    free(expected_memory);
    free(sums_memory);
    return done;
}
