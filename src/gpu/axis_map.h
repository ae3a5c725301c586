/* Computes where a scale lies in its buffer, for any scale layout. In every layout, the offset of a
 * scale is the sum of a number that depends only on its row and a number that depends only on its
 * column. An axis map computes such a number from the index of the row or column. */
#ifndef BSMM_GPU_AXIS_MAP_H
#define BSMM_GPU_AXIS_MAP_H

#include "gpu/scalar.h"

enum { BSMM_AXIS_DIGITS = 6 };

/* Describes one digit of an index in a mixed-radix number system. The digit's value is index %
 * extent, and it adds value * stride to the offset of the scale. The quotient index / extent is the
 * index for the next digit of the map.
 *
 * Kernels multiply instead of dividing: index / extent is (2 * index * magic >> 32) >> shift, which
 * is exact for an index below 2^31. The last digit of a map has magic = 0, so its quotient is 0 and
 * its value is the whole rest of the index. */
typedef struct bsmm_axis_digit {
    uint32_t extent, magic, shift, reserved;
    uint64_t stride;
} bsmm_axis_digit;

typedef struct bsmm_axis_map {
    uint32_t count, reserved;
    bsmm_axis_digit digits[BSMM_AXIS_DIGITS];
} bsmm_axis_map;

BSMM_SHARED uint64_t bsmm_axis_at(const bsmm_axis_map *map, uint32_t index) {
    uint64_t offset = 0;
    /* If a map has a single digit, the offset is the index times a stride. */
    if (map->count == 1) return index * map->digits[0].stride;
#if defined(__CUDA_ARCH__)
#    pragma unroll 1
#elif defined(__AMDGCN__)
#    pragma clang loop unroll(disable)
#endif
    for (uint32_t i = 0; i < map->count; i++) {
        const bsmm_axis_digit *d = &map->digits[i];
        uint32_t next = bsmm_high_product(2 * index, d->magic) >> d->shift;
        offset += (index - next * d->extent) * d->stride;
        index = next;
    }
    return offset;
}

#endif
