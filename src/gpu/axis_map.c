/* Converts a scale layout to the two maps from which kernels compute the offset of a scale. The
 * layout is given as a list of mixed-radix digits of the scale's row and column. One map has the
 * digits of the row, and the other has the digits of the column. */
#include "gpu/params.h"

static uint32_t log2_of(uint32_t value) {
    return 31u - (uint32_t)__builtin_clz(value);
}

static bsmm_axis_digit digit_of(uint32_t extent, uint64_t stride) {
    /* `shift` is the logarithm of the extent to base 2, rounded up. */
    uint32_t shift = extent > 1 ? log2_of(extent - 1) + 1 : 0;
    uint64_t power = 1ull << (31 + shift);
    return (bsmm_axis_digit){.extent = extent,
                             .magic = (uint32_t)((power + extent - 1) / extent),
                             .shift = shift,
                             .stride = stride};
}

bsmm_axis_map bsmm_axis_map_of(const bsmm_scale_map *map, uint32_t axis, uint32_t block) {
    bsmm_axis_map to = {.count = 0};
    if (map->count == 0) return to;
    if (block > 1) to.digits[to.count++] = digit_of(block, 0);
    for (uint32_t i = 0; i < map->digit_count; i++)
        if (map->digits[i].axis == axis)
            to.digits[to.count++] = digit_of(map->digits[i].extent, map->digits[i].stride);
    to.digits[to.count++] =
        (bsmm_axis_digit){.stride = axis ? map->tile_col_step : map->tile_row_step};
    return to;
}

/* Compares the offsets of `count` indices, one after another. */
static bool are_linear(const bsmm_axis_map *map, int64_t step, int64_t count) {
    const uint64_t distance = bsmm_axis_at(map, (uint32_t)step);
    for (int64_t i = 2; i < count; i++)
        if (bsmm_axis_at(map, (uint32_t)(i * step)) != (uint64_t)i * distance) return false;
    return true;
}

bool bsmm_axis_is_linear(const bsmm_axis_map *map, int64_t step, int64_t count) {
    if (count <= 2 || map->count <= 1) return true;
    /* The map splits an index into mixed-radix digits. The unit of a digit is the index in which
     * this digit is 1 and all other digits are 0. */
    int64_t unit = 1, below = 0;
    uint32_t i = 0;
    for (; i + 1 < map->count && unit % step; i++) {
        below = unit;
        unit *= map->digits[i].extent;
    }
    /* If the loop found a digit whose unit is a multiple of the step, `i` is this digit. Otherwise
     * the offsets of all indices must be compared one by one. */
    if (unit % step) return are_linear(map, step, count);
    /* An index is q * unit + r with r < unit. The digits before digit i depend only on r, and the
     * other digits only on q. The offset of the index is therefore the offset of q * unit plus the
     * offset of r. First consider the multiples of the step that are less than `unit`. `below` is
     * the unit of digit i - 1. If the step is a multiple of `below`, these multiples differ only in
     * digit i - 1, so their offsets are linear. Otherwise their offsets must be compared. */
    const int64_t inside = unit / step < count ? unit / step : count;
    if (below && step % below && !are_linear(map, step, inside)) return false;
    const uint64_t distance = bsmm_axis_at(map, (uint32_t)step);
    for (; i < map->count && unit <= (count - 1) * step; i++) {
        const bool last = i + 1 == map->count;
        /* A digit of extent 1 is always 0, so its stride does not matter. */
        if ((last || map->digits[i].extent > 1) &&
            map->digits[i].stride != (uint64_t)(unit / step) * distance)
            return false;
        unit *= last ? 1 : map->digits[i].extent;
    }
    return true;
}

bool bsmm_axis_fours(const void *scales, const bsmm_axis_map *down, const bsmm_axis_map *across,
                     uint32_t number) {
    const bsmm_axis_digit *d = &across->digits[number];
    /* The address and all strides are multiples of 4 if and only if their bitwise OR is a multiple
     * of 4. */
    uint64_t strides = (uintptr_t)scales;
    for (uint32_t i = 0; i < down->count; i++)
        strides |= down->digits[i].stride;
    for (uint32_t i = number + 1; i < across->count; i++)
        strides |= across->digits[i].stride;
    bool whole = across->count == number + 1 || d->extent % 4 == 0;
    return across->count > number && d->stride == 1 && whole && strides % 4 == 0;
}

bool bsmm_words_of(const bsmm_axis_map *down, const bsmm_axis_map *across, bsmm_pack_words *words) {
    const bsmm_axis_digit *d = down->digits;
    bool plain = down->count == 1 && across->count == 2;
    bool tiled = down->count == 3 && d[0].extent == 32 && d[1].extent == 4 && across->count == 3 &&
                 across->digits[1].extent == 4;
    if (!plain && !tiled) return false;
    uint64_t low = d[0].stride, middle = plain ? 32 * low : d[1].stride;
    *words = (bsmm_pack_words){.low = (uint32_t)low,
                               .middle = (uint32_t)middle,
                               .high = plain ? 128 * low : d[2].stride,
                               .across = plain ? 4 : across->digits[2].stride};
    return low <= UINT32_MAX >> 8 && middle <= UINT32_MAX >> 3;
}
