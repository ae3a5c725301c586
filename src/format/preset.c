/* This file has the table of presets. A preset is a name for a combination of element format, scale
 * format and block shape. No other code depends on a preset's name. */
#include "format/format.h"

#include <stdio.h>
#include <string.h>

#define MX(element)                                                                                \
    { BSMM_ELEM_##element, BSMM_SCALE_E8M0, 1, 32 }

/* clang-format off */
static const bsmm_preset_info rows[] = {
    {.name = "mxfp8", .format = MX(E4M3), .second_level = "none", .default_recipe = "ocp",
     .used_by = "OCP MX v1.0"},
    {.name = "mxfp8_e5m2", .format = MX(E5M2), .second_level = "none", .default_recipe = "ocp",
     .used_by = "OCP MX v1.0"},
    {.name = "mxfp6_e2m3", .format = MX(E2M3), .second_level = "none", .default_recipe = "ocp",
     .used_by = "OCP MX v1.0"},
    {.name = "mxfp6_e3m2", .format = MX(E3M2), .second_level = "none", .default_recipe = "ocp",
     .used_by = "OCP MX v1.0"},
    {.name = "mxfp4", .format = MX(E2M1), .second_level = "none", .default_recipe = "ocp",
     .used_by = "OCP MX v1.0, gpt-oss"},
    {.name = "nvfp4", .format = {BSMM_ELEM_E2M1, BSMM_SCALE_E4M3, 1, 16},
     .second_level = "optional f32 per tensor", .default_recipe = "torchao",
     .used_by = "NVIDIA Blackwell, ModelOpt"},
    {.name = "fp8_group128", .format = {BSMM_ELEM_E4M3, BSMM_SCALE_F32, 1, 128},
     .second_level = "none", .default_recipe = "deepseek", .used_by = "DeepSeek activations"},
    {.name = "fp8_block128", .format = {BSMM_ELEM_E4M3, BSMM_SCALE_F32, 128, 128},
     .second_level = "none", .default_recipe = "deepseek", .used_by = "DeepSeek weights"},
    {.name = "fp8_group128_fnuz", .format = {BSMM_ELEM_E4M3FNUZ, BSMM_SCALE_F32, 1, 128},
     .second_level = "none", .default_recipe = "deepseek", .used_by = "DeepSeek activations on CDNA3"},
    {.name = "fp8_block128_fnuz", .format = {BSMM_ELEM_E4M3FNUZ, BSMM_SCALE_F32, 128, 128},
     .second_level = "none", .default_recipe = "deepseek", .used_by = "DeepSeek weights on CDNA3"},
};
/* clang-format on */

/* This table maps other common names of presets and element formats to the library's names. */
static const struct {
    const char *alias, *name;
} aliases[] = {
    {"mxfp8_e4m3", "mxfp8"}, {"mxfp6", "mxfp6_e2m3"}, {"mxfp4_e2m1", "mxfp4"},
    {"e4m3fn", "e4m3"},      {"fp32", "f32"},         {"fp16", "f16"},
};

static const char *resolve_alias(const char *name) {
    for (size_t i = 0; i < BSMM_COUNT(aliases); i++)
        if (strcmp(aliases[i].alias, name) == 0) return aliases[i].name;
    return name;
}

const bsmm_preset_info *bsmm_preset_row(const char *name) {
    for (size_t i = 0; i < BSMM_COUNT(rows); i++)
        if (strcmp(rows[i].name, name) == 0) return &rows[i];
    return NULL;
}

bool bsmm_format_equal(bsmm_format a, bsmm_format b) {
    return a.elem == b.elem && a.scale == b.scale && a.block_rows == b.block_rows &&
           a.block_cols == b.block_cols;
}

/* Returns the element format with a name such as "bf16". Element formats that only scales have are
 * not found, because no matrix may have them. */
static uint32_t elem_from_name(const char *name) {
    for (uint32_t elem = 1; elem < BSMM_ELEM_COUNT; elem++)
        if (bsmm_elem_traits_of[elem].in_matrices && strcmp(bsmm_elem_row(elem)->name, name) == 0)
            return elem;
    return BSMM_ELEM_NONE;
}

static bsmm_status unknown_format(const char *name) {
    char known[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < BSMM_COUNT(rows) && used < sizeof known; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, " %s", rows[i].name);
    return bsmm_fail(
        BSMM_E_NOT_FOUND,
        "format: value is \"%.64s\"; must be an element (f32, f16, bf16, e4m3, ...) or "
        "one of%s",
        name, known);
}

bsmm_status bsmm_format_from_name(const char *name, bsmm_format *format) {
    if (!name || !format)
        return bsmm_fail(BSMM_E_INVALID, "%s: value is NULL; must be given",
                         name ? "format" : "name");
    const char *known = resolve_alias(name);
    const bsmm_preset_info *preset = bsmm_preset_row(known);
    uint32_t elem = elem_from_name(known);
    if (!preset && elem == BSMM_ELEM_NONE) return unknown_format(name);
    *format = preset ? preset->format : (bsmm_format){.elem = elem};
    return BSMM_OK;
}

const char *bsmm_format_name(bsmm_format format) {
    for (size_t i = 0; i < BSMM_COUNT(rows); i++)
        if (bsmm_format_equal(rows[i].format, format)) return rows[i].name;
    bool plain = bsmm_format_equal(format, (bsmm_format){.elem = format.elem});
    bool known = format.elem < BSMM_ELEM_COUNT && bsmm_elem_traits_of[format.elem].in_matrices;
    return plain && known ? bsmm_elem_row(format.elem)->name : "custom";
}

bsmm_status bsmm_preset_at(uint32_t index, bsmm_preset_info *info) {
    if (index >= BSMM_COUNT(rows))
        return bsmm_fail(BSMM_E_NOT_FOUND, "index: value is %u; there are %zu presets", index,
                         BSMM_COUNT(rows));
    bsmm_preset_info row = rows[index];
    double block = (double)row.format.block_rows * row.format.block_cols;
    row.bits_per_weight = bsmm_elem_row(row.format.elem)->bits +
                          bsmm_scale_row_of(row.format.scale)->bytes * 8 / block;
    return bsmm_give_struct(info, &row, sizeof row, "info");
}
