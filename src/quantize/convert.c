/* Implements bsmm_convert: the table of lossless conversions, and the conversion of a format to
 * itself in another order or scale layout. */
#include "quantize/convert.h"

#include "base/threads.h"

#include <math.h>
#include <string.h>

static bool same_format(const bsmm_format *src, const bsmm_format *dst) {
    return bsmm_format_equal(*src, *dst);
}

/* Computes dst's second-level scale. It is the same factor as src's, but stored as a multiplier or
 * as a divisor, as dst's global_kind requires. */
static bsmm_status same_level(const bsmm_operand *src, const bsmm_operand *dst, float *level) {
    float from = src->m.global_scale ? *src->m.global_scale : 1;
    bool turned = src->m.global_scale && src->m.global_kind != dst->m.global_kind;
    *level = turned ? 1 / from : from;
    if (turned && (double)from * (double)*level != 1)
        return bsmm_fail(BSMM_E_RANGE,
                         "src.global_scale: value is %.9g, whose reciprocal is not exact; "
                         "dst.global_kind must be src's",
                         (double)from);
    if (!dst->m.global_scale && *level != 1)
        return bsmm_fail(BSMM_E_INVALID,
                         "dst.global_scale: value is NULL; must be given, for src's is %.9g",
                         (double)from);
    return BSMM_OK;
}

enum { RUN = 256 };

/* Copies codes of row r with memcpy if both matrices are row-major. It copies only whole runs of
 * RUN elements, and returns the number of copied elements; the caller copies the rest of the
 * row. */
static int64_t copy_groups(const bsmm_operand *src, const bsmm_operand *dst, int64_t r) {
    uint32_t bits = bsmm_elem_row(src->m.format.elem)->bits;
    int64_t cols = src->m.cols / RUN * RUN;
    if (src->m.order != BSMM_ORDER_ROW || dst->m.order != BSMM_ORDER_ROW || cols == 0) return 0;
    memcpy((uint8_t *)dst->m.data + bsmm_operand_index(dst, r, 0) * bits / 8,
           (const uint8_t *)src->m.data + bsmm_operand_index(src, r, 0) * bits / 8,
           (size_t)(cols * bits / 8));
    return cols;
}

static void copy_row(const bsmm_operand *src, const bsmm_operand *dst, int64_t r) {
    uint16_t codes[RUN];
    for (int64_t c = copy_groups(src, dst, r); c < src->m.cols; c += RUN) {
        int64_t n = bsmm_min_i64(RUN, src->m.cols - c);
        bsmm_codes_load(src, r, c, n, codes);
        bsmm_codes_store(dst, r, c, n, codes);
    }
}

/* Copies a row of f32 codes, which are too wide for the 16-bit code buffer of the other formats.
 * The copy keeps all bits, including the payloads of NaN. */
static void copy_row_f32(const bsmm_operand *src, const bsmm_operand *dst, int64_t r) {
    for (int64_t c = 0; c < src->m.cols; c++)
        memcpy((float *)dst->m.data + bsmm_operand_index(dst, r, c),
               (const float *)src->m.data + bsmm_operand_index(src, r, c), sizeof(float));
}

typedef struct copy_run {
    const bsmm_operand *src, *dst;
    int64_t step; /* `step` is the number of rows in each task. */
} copy_run;

static void copy_tasks(const void *context, int64_t first, int64_t end, int worker) {
    const copy_run *x = context;
    bool wide = bsmm_elem_row(x->src->m.format.elem)->bits > 16;
    (void)worker;
    for (int64_t r = first * x->step; r < bsmm_min_i64(end * x->step, x->src->m.rows); r++)
        (wide ? copy_row_f32 : copy_row)(x->src, x->dst, r);
}

bsmm_status bsmm_codes_copy(const bsmm_operand *src, const bsmm_operand *dst,
                            const bsmm_place *place) {
    const copy_run x = {src, dst, bsmm_rows_per_task(src, dst)};
    const bsmm_loop loop = {.threads = place->threads,
                            .count = bsmm_ceil_div(src->m.rows, x.step),
                            .body = copy_tasks,
                            .context = &x};
    return bsmm_loop_run(&loop, &place->pool);
}

static bsmm_status run_same(const bsmm_operand *src, const bsmm_operand *dst,
                            const bsmm_place *place) {
    float level;
    BSMM_TRY(same_level(src, dst, &level));
    BSMM_TRY(bsmm_codes_copy(src, dst, place));
    if (src->m.format.scale != BSMM_SCALE_NONE) bsmm_scales_move(src, dst);
    if (dst->m.global_scale) *dst->m.global_scale = level;
    return BSMM_OK;
}

static const bsmm_conversion convert_same = {"a format to itself", same_format, run_same};

static const bsmm_conversion *const conversions[] = {
    &convert_same,
    &bsmm_convert_mxfp4_nvfp4,
    &bsmm_convert_mxfp4_fp8,
};

static const bsmm_conversion *find(const bsmm_format *src, const bsmm_format *dst) {
    for (size_t i = 0; i < BSMM_COUNT(conversions); i++)
        if (conversions[i]->takes(src, dst)) return conversions[i];
    return NULL;
}

bsmm_status bsmm_convert_on(const bsmm_exec *exec, const bsmm_matrix *src, const bsmm_matrix *dst) {
    bsmm_place place;
    bsmm_operand from, to;
    BSMM_TRY(bsmm_place_take(exec, &place));
    BSMM_TRY(bsmm_check_host(&place, "lossless conversion"));
    BSMM_TRY(bsmm_operand_take(src, "src", &from));
    BSMM_TRY(bsmm_operand_take(dst, "dst", &to));
    BSMM_TRY(bsmm_check_shape(&from, &to));
    const bsmm_conversion *conversion = find(&from.m.format, &to.m.format);
    if (!conversion)
        return bsmm_fail(BSMM_E_UNSUPPORTED,
                         "dst.format: value is %s; from %s there is no conversion that keeps every "
                         "value: there are %s, %s and %s",
                         bsmm_format_name(to.m.format), bsmm_format_name(from.m.format),
                         conversions[0]->name, conversions[1]->name, conversions[2]->name);
    BSMM_TRY(bsmm_operand_check_memory(&from, "src"));
    BSMM_TRY(bsmm_operand_check_memory(&to, "dst"));
    BSMM_TRY(bsmm_check_overlap(&from, &to));
    bsmm_drop_empty_rows(&from);
    bsmm_drop_empty_rows(&to);
    return conversion->run(&from, &to, &place);
}

bsmm_status bsmm_convert(const bsmm_matrix *src, const bsmm_matrix *dst) {
    return bsmm_convert_on(NULL, src, dst);
}
