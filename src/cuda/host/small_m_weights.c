/* This is the table of the weight formats that the small-M kernels support (small_m_weights.h). */
#include "cuda/host/small_m_weights.h"

#include "cuda/host/small_m_product.h"

/* clang-format off */
#define FUNCTION(folder, module, name) \
    {folder module, "small_m_" name, BSMM_SMALL_M_MOST_SHARED}
#define FUNCTIONS_TO_32(folder, module, name) \
    FUNCTION(folder, module, name "_1"), FUNCTION(folder, module, name "_2"), \
    FUNCTION(folder, module, name "_4")
#define HOPPER_64(module, name) \
    {FUNCTIONS_TO_32("sm90a/", module, name), FUNCTION("sm90a/", "small_m_64", name "_8")}
#define HOPPER_32(module, name) {FUNCTIONS_TO_32("sm90a/", module, name)}
#define BLACKWELL_32(module, name) {FUNCTIONS_TO_32("sm100f/", module, name)}
#define BLACKWELL_16(module, name) \
    {FUNCTION("sm100f/", module, name "_1"), FUNCTION("sm100f/", module, name "_2")}
#define FOUR_BITS(name) \
    {[BSMM_SMALL_M_HOPPER] = {HOPPER_64("small_m", name), HOPPER_32("small_m", name "_grouped")}, \
     [BSMM_SMALL_M_BLACKWELL] = {BLACKWELL_32("small_m", name), BLACKWELL_16("small_m", name "_grouped")}}
#define EIGHT_BITS(name) \
    {[BSMM_SMALL_M_HOPPER] = {HOPPER_64("small_m", name), HOPPER_64("small_m", name "_grouped")}, \
     [BSMM_SMALL_M_BLACKWELL] = {BLACKWELL_32("small_m", name), BLACKWELL_32("small_m", name "_grouped")}}
#define SIX_BITS(name) \
    {[BSMM_SMALL_M_HOPPER] = {HOPPER_64("small_m_6bit", name), HOPPER_32("small_m_6bit", name "_grouped")}, \
     [BSMM_SMALL_M_BLACKWELL] = {BLACKWELL_32("small_m_6bit", name), BLACKWELL_32("small_m_6bit", name "_grouped")}}
#define FLOAT_SCALES(name) \
    {[BSMM_SMALL_M_HOPPER] = {HOPPER_64("small_m", name), HOPPER_64("small_m", name)}, \
     [BSMM_SMALL_M_BLACKWELL] = {BLACKWELL_32("small_m", name), BLACKWELL_32("small_m", name)}}

static const bsmm_small_m_weights all_weights[] = {
    {.format = {BSMM_ELEM_E2M1, BSMM_SCALE_E8M0, 1, 32}, .step_scales = 4,
     .functions = FOUR_BITS("mxfp4")},
    {.format = {BSMM_ELEM_E2M1, BSMM_SCALE_E4M3, 1, 16}, .step_scales = 8,
     .functions = FOUR_BITS("nvfp4")},
    {.format = {BSMM_ELEM_E4M3, BSMM_SCALE_E8M0, 1, 32}, .step_scales = 4,
     .functions = EIGHT_BITS("mxfp8")},
    {.format = {BSMM_ELEM_E2M3, BSMM_SCALE_E8M0, 1, 32}, .step_scales = 4,
     .functions = SIX_BITS("mxfp6_e2m3")},
    {.format = {BSMM_ELEM_E3M2, BSMM_SCALE_E8M0, 1, 32}, .step_scales = 4,
     .functions = SIX_BITS("mxfp6_e3m2")},
    {.format = {BSMM_ELEM_E4M3, BSMM_SCALE_F32, 128, 128}, .step_scales = 4,
     .functions = FLOAT_SCALES("fp8_grouped")},
    {.format = {BSMM_ELEM_E4M3, BSMM_SCALE_F32, 1, 128}, .step_scales = 4, .by_row = true,
     .functions = FLOAT_SCALES("fp8_rows_grouped")},
};
/* clang-format on */

const bsmm_cuda_function bsmm_small_m_prepare_a[BSMM_SMALL_M_GENERATIONS] = {
    [BSMM_SMALL_M_HOPPER] = {"sm90a/small_m", "small_m_prepare", 0},
    [BSMM_SMALL_M_BLACKWELL] = {"sm100f/small_m", "small_m_prepare", 0}};

int bsmm_small_m_generation(const bsmm_product *p) {
    const bsmm_cuda_device *device = p->device;
    return device->capability / 10 == 10 ? BSMM_SMALL_M_BLACKWELL : BSMM_SMALL_M_HOPPER;
}

static bool is_weights(const bsmm_small_m_weights *w, const bsmm_operand *b) {
    const bsmm_format *f = &b->m.format;
    if (w->format.scale != BSMM_SCALE_F32) return bsmm_format_equal(w->format, *f);
    if (f->elem != w->format.elem) return false;
    return w->by_row ? bsmm_small_m_has_steady_floats(b) : bsmm_small_m_has_tile_floats(b);
}

const bsmm_small_m_weights *bsmm_small_m_find_weights(const bsmm_operand *b) {
    for (size_t i = 0; i < BSMM_COUNT(all_weights); i++)
        if (is_weights(&all_weights[i], b)) return &all_weights[i];
    return NULL;
}

const bsmm_small_m_weights *bsmm_small_m_any_weights(void) {
    return all_weights;
}

uint32_t bsmm_small_m_bits(const bsmm_small_m_weights *w) {
    return bsmm_elem_row(w->format.elem)->bits;
}

bool bsmm_small_m_is_grouped(const bsmm_product *p) {
    return p->b.m.format.scale == BSMM_SCALE_F32 ||
           (p->a.m.format.scale == BSMM_SCALE_F32 && !bsmm_small_m_has_row_floats(&p->a));
}
