#include "tables.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

bool cli_elem_find(const char *name, bsmm_elem_info *info) {
    *info = BSMM_INIT(bsmm_elem_info);
    for (uint32_t i = 0; !bsmm_elem_at(i, info); i++)
        if (!strcmp(info->name, name)) return true;
    return false;
}

/* Too many codes to walk through, but the C library knows its own format. */
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

const char *cli_scale_name(uint32_t scale) {
    static const char *const names[] = {
        [BSMM_SCALE_NONE] = "none",
        [BSMM_SCALE_E8M0] = "e8m0",
        [BSMM_SCALE_E4M3] = "e4m3",
        [BSMM_SCALE_F32] = "f32",
    };
    return scale < sizeof names / sizeof names[0] ? names[scale] : "unknown";
}

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
