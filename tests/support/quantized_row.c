#include "quantized_row.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

quantized quantize_row(choice how, const float *values, int64_t n) {
    quantized out = {.global = -1};
    uint8_t data[4 * MOST], scales[4 * MOST];
    bsmm_matrix src = describe(format_named("f32"), 1, n);
    bsmm_matrix dst = describe(format_named(how.format), 1, n);
    bsmm_operand o;
    assert_true(n <= MOST);
    src.data = (void *)values;
    dst.data = data;
    dst.global_scale = &out.global;
    dst.global_kind = how.kind;
    if (dst.format.scale != BSMM_SCALE_NONE) dst.scales = scales;
    bsmm_quantize_desc desc = {.struct_size = sizeof desc,
                               .flags = how.flags,
                               .src = &src,
                               .dst = &dst,
                               .recipe = how.recipe,
                               .amax = how.amax};
    out.status = bsmm_quantize(&desc, NULL);
    if (out.status != BSMM_OK) return out;
    assert_int_equal(bsmm_operand_take(&dst, "dst", &o), BSMM_OK);
    for (int64_t i = 0; i < n; i++)
        out.codes[i] = bsmm_elem_load(dst.format.elem, data, (uint64_t)i);
    for (int64_t b = 0; b < o.map.cols; b++)
        out.scales[b] = bsmm_scale_load_code(dst.format.scale, scales, (uint64_t)b);
    return out;
}

uint32_t kind_of(const char *recipe) {
    return strcmp(recipe, "compressed-tensors") == 0 ? BSMM_GLOBAL_DIVISOR : BSMM_GLOBAL_MULTIPLIER;
}

uint32_t scale_of(const char *recipe, const char *format, float amax) {
    float values[MOST] = {amax};
    quantized q = quantize_row((choice){recipe, format, 0, 0, NULL}, values, 16);
    assert_int_equal(q.status, BSMM_OK);
    return q.scales[0];
}
