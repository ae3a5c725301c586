/* Where scales lie, as kernels compute it: bsmm_scale_map taken apart into what the row adds to the
 * offset and what the column adds. */
#ifndef BSMM_GPU_AXIS_MAP_H
#define BSMM_GPU_AXIS_MAP_H

#include "gpu/scalar.h"

enum { BSMM_AXIS_DIGITS = 6 };

/* index -> index % extent, times stride; index / extent goes on to the next digit. Division by
 * multiplying, exact for an index below 2^31: index / extent = (2 * index * magic >> 32) >> shift.
 * The last digit takes all that is left: magic 0. */
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
    if (map->count == 1) return index * map->digits[0].stride; /* a plain pitch */
#if defined(__CUDA_ARCH__)
#    pragma unroll 1
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
