/* This is the table of the weight formats that the small-M kernels support (small_m_weights.h). */
#include "cuda/host/small_m_weights.h"

#include "cuda/host/small_m_product.h"

/* The last index of the table `functions` stands for the number of tiles of 8 columns that a kernel
 * computes: PLACE_1, PLACE_2, PLACE_4 or PLACE_8 for 1, 2, 4 or 8 tiles. KERNEL adds an entry's
 * kernel for Hopper to the table. ON_BLACKWELL_1 also adds its version for Blackwell.
 * ON_BLACKWELL_0 adds nothing, for kernels without such a version. */
enum { PLACE_1, PLACE_2, PLACE_4, PLACE_8 };
#define ON_BLACKWELL_0(module, name, format, tiles, grouped)
#define ON_BLACKWELL_1(module, name, format, tiles, grouped)                                       \
    [format][BSMM_SMALL_M_BLACKWELL][grouped][PLACE_##tiles] = {"sm100f/" #module, #name,          \
                                                                BSMM_SMALL_M_MOST_SHARED},
#define COLUMNS(...)
#define KERNEL(module, blackwell, name, format, tiles, grouped)                                    \
    [format][BSMM_SMALL_M_HOPPER][grouped][PLACE_##tiles] = {"sm90a/" #module, #name,              \
                                                             BSMM_SMALL_M_MOST_SHARED},            \
    ON_BLACKWELL_##blackwell(module, name, format, tiles, grouped)

static const bsmm_cuda_function functions[SMALL_M_FORMATS][BSMM_SMALL_M_GENERATIONS][2][4] = {
#include "cuda/sm90a/small_m.def"
};

/* clang-format off */
static const bsmm_small_m_weights all_weights[] = {
    {.format = {BSMM_ELEM_E2M1, BSMM_SCALE_E8M0, 1, 32}, .step_scales = 4,
     .functions = functions[SMALL_M_MXFP4]},
    {.format = {BSMM_ELEM_E2M1, BSMM_SCALE_E4M3, 1, 16}, .step_scales = 8,
     .functions = functions[SMALL_M_NVFP4]},
    {.format = {BSMM_ELEM_E4M3, BSMM_SCALE_E8M0, 1, 32}, .step_scales = 4,
     .functions = functions[SMALL_M_MXFP8]},
    {.format = {BSMM_ELEM_E2M3, BSMM_SCALE_E8M0, 1, 32}, .step_scales = 4,
     .functions = functions[SMALL_M_MXFP6_E2M3]},
    {.format = {BSMM_ELEM_E3M2, BSMM_SCALE_E8M0, 1, 32}, .step_scales = 4,
     .functions = functions[SMALL_M_MXFP6_E3M2]},
    {.format = {BSMM_ELEM_E4M3, BSMM_SCALE_F32, 128, 128}, .step_scales = 4,
     .functions = functions[SMALL_M_FP8_F32]},
    {.format = {BSMM_ELEM_E4M3, BSMM_SCALE_F32, 1, 128}, .step_scales = 4, .by_row = true,
     .functions = functions[SMALL_M_FP8_ROWS]},
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
