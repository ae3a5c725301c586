#include "tables.h"
#include "data.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

bool cli_elem_find(const char *name, bsmm_elem_info *info) {
    *info = BSMM_INIT(bsmm_elem_info);
    for (uint32_t i = 0; !bsmm_elem_at(i, info); i++)
        if (!strcmp(info->name, name)) return true;
    return false;
}

bool cli_is_plain(bsmm_format format) {
    return format.scale == BSMM_SCALE_NONE && bench_elem_is_wide(format.elem);
}

/* Finds the f32 numbers just below and above a value. f32 has too many codes for the search that
 * other formats use, so the function calls nextafterf. */
static void f32_neighbours(double value, double *below, double *above) {
    float nearest = (float)value;
    float down = (double)nearest < value ? nearest : nextafterf(nearest, -INFINITY);
    float up = (double)nearest > value ? nearest : nextafterf(nearest, INFINITY);
    *below = isfinite(down) ? (double)down : NAN;
    *above = isfinite(up) ? (double)up : NAN;
}

void cli_elem_neighbours(const bsmm_elem_info *info, double value, double *below, double *above) {
    double candidate;
    if (info->bits > 16) {
        f32_neighbours(value, below, above);
        return;
    }
    *below = *above = NAN;
    for (uint32_t code = 0; code < 1u << info->bits; code++) {
        if (bsmm_decode_elem(info->elem, code, &candidate) || !isfinite(candidate)) continue;
        if (candidate < value && !(candidate <= *below)) *below = candidate;
        if (candidate > value && !(candidate >= *above)) *above = candidate;
    }
}

const char *cli_layout_name(uint32_t layout) {
    bsmm_layout_info info = BSMM_INIT(bsmm_layout_info);
    for (uint32_t i = 0; !bsmm_layout_at(i, &info); i++)
        if (info.layout == layout) return info.name;
    return "unknown";
}

/* The library has no public table of scale formats, so this switch names them. -Wswitch is an error
 * here, so that a new scale format does not compile without a name. */
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wswitch"
const char *cli_scale_name(uint32_t scale) {
    switch ((bsmm_scale)scale) {
    case BSMM_SCALE_NONE:
        return "none";
    case BSMM_SCALE_E8M0:
        return "e8m0";
    case BSMM_SCALE_E4M3:
        return "e4m3";
    case BSMM_SCALE_F32:
        return "f32";
    }
    return "unknown";
}
#pragma GCC diagnostic pop

cli_text cli_format_text(bsmm_format format) {
    cli_text result;
    const char *name = bsmm_format_name(format);
    bool named = strcmp(name, "custom") != 0;
    if (named || format.scale == BSMM_SCALE_NONE)
        snprintf(result.text, sizeof result.text, "%s", name);
    else
        snprintf(result.text, sizeof result.text, "%s/%s/%ux%u",
                 bsmm_format_name((bsmm_format){.elem = format.elem}), cli_scale_name(format.scale),
                 format.block_rows, format.block_cols);
    return result;
}
