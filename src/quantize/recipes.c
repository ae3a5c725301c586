/* This file has the table of recipes. The first entry that writes a scale format is the default
 * recipe of that scale format. */
#include "quantize/recipe.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define E2M1       BSMM_ELEM_BIT(BSMM_ELEM_E2M1)
#define E4M3       BSMM_ELEM_BIT(BSMM_ELEM_E4M3)
#define E2M3       BSMM_ELEM_BIT(BSMM_ELEM_E2M3)
#define E3M2       BSMM_ELEM_BIT(BSMM_ELEM_E3M2)
#define MULTIPLIER BSMM_KIND_BIT(BSMM_GLOBAL_MULTIPLIER)
#define DIVISOR    BSMM_KIND_BIT(BSMM_GLOBAL_DIVISOR)
#define INFO(recipe, flag_set, does, from)                                                         \
    .info = {.struct_size = sizeof(bsmm_recipe_info),                                              \
             .flags = flag_set,                                                                    \
             .name = recipe,                                                                       \
             .rule = does,                                                                         \
             .source = from}

/* clang-format off */
static const bsmm_recipe rows[] = {
    {INFO("ocp", 0, "scale 2^(floor(log2 amax) - emax)", "OCP MX v1.0 section 6.3"),
     .scale = BSMM_SCALE_E8M0, .elems = BSMM_ELEM_ANY, .steps.block = BSMM_BLOCK_E8M0_FLOOR},
    {INFO("rceil", 0, "scale 2^ceil(log2(amax / max))", "cuBLAS documentation, torchao RCEIL"),
     .scale = BSMM_SCALE_E8M0, .elems = BSMM_ELEM_ANY, .steps.block = BSMM_BLOCK_E8M0_RCEIL},
    {INFO("ceil", 0, "scale 2^(ceil(log2 amax) - emax)", "torchao CEIL, aiter, Quark ceil"),
     .scale = BSMM_SCALE_E8M0, .elems = BSMM_ELEM_ANY, .steps.block = BSMM_BLOCK_E8M0_CEIL},
    {INFO("even", 0, "amax rounded to the element's mantissa, then ocp", "torchao EVEN, vLLM MXFP4"),
     .scale = BSMM_SCALE_E8M0, .elems = BSMM_ELEM_ANY, .steps.block = BSMM_BLOCK_E8M0_EVEN},
    {INFO("quark", 0, "even; byte 1 for 2^-127; 2^127 where amax rounds to 2^128; zeros are +0", "AMD Quark 0.13 even_round, pack.py"),
     .scale = BSMM_SCALE_E8M0, .elems = E2M1 | E2M3 | E3M2, .steps.block = BSMM_BLOCK_E8M0_QUARK,
     .steps.zero_sign = BSMM_ZERO_CODE_PLUS},
    {INFO("torchao", 0, "ocp; under scale byte 0 elements are divided by 2^-126", "torchao 36027d8 to_mx"),
     .scale = BSMM_SCALE_E8M0, .elems = BSMM_ELEM_ANY, .steps.block = BSMM_BLOCK_E8M0_TORCHAO},
    {INFO("te", 0, "rceil; under scale byte 0 elements are not scaled", "TransformerEngine d0067d0 ptx.cuh"),
     .scale = BSMM_SCALE_E8M0, .elems = BSMM_ELEM_ANY, .steps.block = BSMM_BLOCK_E8M0_TE},
    {INFO("modelopt", 0, "scale 2^ceil(log2f(amax / 6)); ties down; zeros are -0", "ModelOpt 5a4242f mxfp4_tensor.py"),
     .scale = BSMM_SCALE_E8M0, .elems = E2M1, .steps.block = BSMM_BLOCK_E8M0_MODELOPT,
     .steps.ties = BSMM_TIES_DOWN, .steps.zero_sign = BSMM_ZERO_MINUS},
    {INFO("modelopt", 0, "scale 2^ceil(log2f(amax / 448))", "ModelOpt 5a4242f mxfp8_tensor.py"),
     .scale = BSMM_SCALE_E8M0, .elems = E4M3, .steps.block = BSMM_BLOCK_E8M0_MODELOPT},
    {INFO("compressed-tensors", 0, "even; -0 becomes +0", "compressed-tensors ac8e2ba mxfp_utils.py, fp4_utils.py"),
     .scale = BSMM_SCALE_E8M0, .elems = E2M1, .steps.block = BSMM_BLOCK_E8M0_COMPRESSED_TENSORS,
     .steps.zero_sign = BSMM_ZERO_PLUS},
    {INFO("compressed-tensors", 0, "even; mxfp8 with mxfp4's one mantissa bit", "compressed-tensors ac8e2ba mxfp_utils.py, 0.20 fp6_utils.py"),
     .scale = BSMM_SCALE_E8M0, .elems = E4M3 | E2M3, .steps.block = BSMM_BLOCK_E8M0_COMPRESSED_TENSORS},
    {INFO("ggml", 0, "scale 2^(floor(log2f amax) - 2); nearest, ties down; zeros are +0", "ggml d99724f quantize_row_mxfp4_ref"),
     .scale = BSMM_SCALE_E8M0, .elems = E2M1, .steps.block = BSMM_BLOCK_E8M0_GGML, .steps.skips_nan = true,
     .steps.ties = BSMM_TIES_DOWN, .steps.zero_sign = BSMM_ZERO_CODE_PLUS},
    {INFO("deepgemm", 0, "scale 2^ceil(log2(max(amax, 1e-4) / 6)); ties down; zeros are +0", "DeepGEMM 54e2261 per_token_cast_to_fp4"),
     .scale = BSMM_SCALE_E8M0, .elems = E2M1, .steps.block = BSMM_BLOCK_E8M0_DEEPGEMM,
     .steps.ties = BSMM_TIES_DOWN, .steps.zero_sign = BSMM_ZERO_CODE_PLUS},

    {INFO("torchao", BSMM_QUANTIZE_ONE_LEVEL, "s = amax_t / 2688; scale (amax / 6) / s, 2^-6 or more; x * ((1 / s) / scale)", "torchao 36027d8 nvfp4_quantize"),
     .scale = BSMM_SCALE_E4M3, .elems = BSMM_ELEM_ANY, .kinds = MULTIPLIER,
     .steps.tensor = BSMM_TENSOR_TORCHAO, .steps.block = BSMM_BLOCK_E4M3_TORCHAO},
    {INFO("te", 0, "S = 2688 / amax_t; scale amax * (S * (1 / 6)); x * (1 / (scale * (1 / S)))", "TransformerEngine d0067d0 reference_nvfp4.py"),
     .scale = BSMM_SCALE_E4M3, .elems = BSMM_ELEM_ANY, .kinds = MULTIPLIER | DIVISOR,
     .steps.tensor = BSMM_TENSOR_TE, .steps.block = BSMM_BLOCK_E4M3_TE, .steps.zero_sign = BSMM_ZERO_PLUS},
    {INFO("modelopt", 0, "s = amax_t / 2688; scale amax / (6 * s), 1 for a zero block; x / (scale * s)", "ModelOpt 5a4242f nvfp4_tensor.py"),
     .scale = BSMM_SCALE_E4M3, .elems = E2M1, .kinds = MULTIPLIER,
     .steps.tensor = BSMM_TENSOR_MODELOPT, .steps.block = BSMM_BLOCK_E4M3_MODELOPT, .steps.step = BSMM_STEP_DIVIDE,
     .steps.zero_sign = BSMM_ZERO_PLUS},
    {INFO("compressed-tensors", 0, "g = (1 / amax_t) * 2688, a divisor; scale g * (amax / 6), 0.125 for 0; x / (scale / g)", "compressed-tensors ac8e2ba helpers.py"),
     .scale = BSMM_SCALE_E4M3, .elems = E2M1, .kinds = DIVISOR,
     .steps.tensor = BSMM_TENSOR_COMPRESSED_TENSORS, .steps.block = BSMM_BLOCK_E4M3_COMPRESSED_TENSORS,
     .steps.step = BSMM_STEP_DIVIDE, .steps.zero_sign = BSMM_ZERO_PLUS},
    {INFO("ggml", 0, "scale amax / 6, half up, 448 from 256; nearest, ties down; zeros are +0", "ggml d99724f quantize_row_nvfp4_ref"),
     .scale = BSMM_SCALE_E4M3, .elems = E2M1, .steps.block = BSMM_BLOCK_E4M3_GGML, .steps.skips_nan = true,
     .steps.step = BSMM_STEP_COMPARE, .steps.ties = BSMM_TIES_DOWN, .steps.zero_sign = BSMM_ZERO_CODE_PLUS},

    {INFO("deepseek", BSMM_QUANTIZE_POW2, "s = max(amax, 1e-4) / 448; x / s", "DeepSeek-V3 9b4e978 inference/kernel.py"),
     .scale = BSMM_SCALE_F32, .elems = BSMM_ELEM_ANY, .steps.block = BSMM_BLOCK_F32_DEEPSEEK,
     .steps.step = BSMM_STEP_DIVIDE},
    {INFO("deepgemm", BSMM_QUANTIZE_POW2, "s = max(amax, 1e-4) / 448; x * (1 / s)", "DeepGEMM 54e2261 utils/math.py"),
     .scale = BSMM_SCALE_F32, .elems = BSMM_ELEM_ANY, .steps.block = BSMM_BLOCK_F32_DEEPGEMM},
    {INFO("te", BSMM_QUANTIZE_POW2, "f = 448 / amax; x * f; s = 1 / f", "TransformerEngine d0067d0 recipe_common.cuh"),
     .scale = BSMM_SCALE_F32, .elems = BSMM_ELEM_ANY, .steps.block = BSMM_BLOCK_F32_TE},

    {INFO("cast", 0, "nearest even; 8 bits and fewer saturate", "IEEE 754, OCP 8-bit v1.0 section 5.2.3"),
     .scale = BSMM_SCALE_NONE, .elems = BSMM_ELEM_ANY},
};
/* clang-format on */

static bool takes(const bsmm_recipe *row, bsmm_format format) {
    return row->scale == format.scale && row->elems & BSMM_ELEM_BIT(format.elem);
}

_Static_assert(BSMM_ELEM_COUNT <= 32, "BSMM_ELEM_BIT has 32 bits");

static void append_name(char *text, size_t size, const char *name) {
    size_t used = strlen(text);
    snprintf(text + used, size - used, " %s", name);
}

static bool is_first_of_name(size_t row) {
    for (size_t i = 0; i < row; i++)
        if (strcmp(rows[i].info.name, rows[row].info.name) == 0) return false;
    return true;
}

static void list_names(char *text, size_t size) {
    *text = 0;
    for (size_t i = 0; i < BSMM_COUNT(rows); i++)
        if (is_first_of_name(i)) append_name(text, size, rows[i].info.name);
}

void bsmm_recipe_list_kind(bsmm_format format, uint32_t kind, char *text, size_t size) {
    *text = 0;
    for (size_t i = 0; i < BSMM_COUNT(rows); i++)
        if (takes(&rows[i], format) && rows[i].kinds & BSMM_KIND_BIT(kind))
            append_name(text, size, rows[i].info.name);
}

static bsmm_status not_found(const char *name, bool known, bsmm_format format) {
    char names[192];
    list_names(names, sizeof names);
    if (known)
        return bsmm_fail(BSMM_E_UNSUPPORTED,
                         "recipe: value is \"%.64s\", which does not write %s with %s scales", name,
                         bsmm_format_name(format), bsmm_scale_row_of(format.scale)->name);
    return bsmm_fail(BSMM_E_NOT_FOUND, "recipe: value is \"%.64s\"; must be one of%s", name, names);
}

bsmm_status bsmm_recipe_find(const char *name, bsmm_format format, const bsmm_recipe **recipe) {
    bool known = false;
    for (size_t i = 0; i < BSMM_COUNT(rows); i++) {
        bool named = !name || strcmp(name, rows[i].info.name) == 0;
        known |= named;
        if (named && takes(&rows[i], format)) {
            *recipe = &rows[i];
            return BSMM_OK;
        }
    }
    return not_found(name ? name : "", known, format);
}

void bsmm_recipe_set(const bsmm_recipe *recipe, bsmm_recode *job) {
    job->recipe = recipe->info.name;
    job->steps = &recipe->steps;
}

/* `formats` holds the list of formats of each recipe, as text: presets, or elements for a recipe
 * without scales. The text is made once and kept, because callers keep a pointer to it. */
static char formats[BSMM_COUNT(rows)][256];

static void list_elements(const bsmm_recipe *row, char *text, size_t size) {
    for (uint32_t elem = 1; elem < BSMM_ELEM_COUNT; elem++)
        if (bsmm_elem_traits_of[elem].in_matrices && takes(row, (bsmm_format){.elem = elem}))
            append_name(text, size, bsmm_elem_row(elem)->name);
}

static void list_presets(const bsmm_recipe *row, char *text, size_t size) {
    bsmm_preset_info preset = {.struct_size = sizeof preset};
    for (uint32_t i = 0; bsmm_preset_at(i, &preset) == BSMM_OK; i++)
        if (takes(row, preset.format)) append_name(text, size, preset.name);
}

static void list_formats(void) {
    for (size_t i = 0; i < BSMM_COUNT(rows); i++)
        (rows[i].scale ? list_presets : list_elements)(&rows[i], formats[i], sizeof formats[i]);
}

bsmm_status bsmm_recipe_at(uint32_t index, bsmm_recipe_info *info) {
    if (index >= BSMM_COUNT(rows))
        return bsmm_fail(BSMM_E_NOT_FOUND, "index: value is %u; there are %zu recipes", index,
                         BSMM_COUNT(rows));
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, list_formats);
    bsmm_recipe_info row = rows[index].info;
    /* The text formats[index] has a space before each name. The first space is skipped. */
    row.formats = formats[index] + 1;
    return bsmm_give_struct(info, &row, sizeof row, "info");
}
