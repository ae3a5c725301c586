/* Makes random operands. The device has one pool of random codes for each element and scale type.
 * An operand is filled by copying from a pool. The filling is as fast as any copy of device
 * memory. */
#include "data.h"
#include "surface.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    VARIETY = 4096,
    /* SCALES is the index of the first pool of random scale codes. The pools of random element
       codes have smaller indices. */
    SCALES = 24
};
static const uint64_t pool_bytes = (uint64_t)32 << 20;

/* Returns a random finite code of an element type. Types of more than 8 bits get values near 1. */
static uint32_t element_code(uint32_t elem, uint64_t *state) {
    uint32_t code = 0, bits = bench_elem_bits(elem);
    double value = INFINITY;
    if (bench_elem_is_wide(elem)) {
        bsmm_encode_elem(elem, (float)((double)(int64_t)bench_next_bits(state) * 0x1p-62), 1,
                         &code);
        return code;
    }
    while (!isfinite(value)) {
        code = (uint32_t)(bench_next_bits(state) >> (64 - bits));
        if (bsmm_decode_elem(elem, code, &value)) return 0;
    }
    return code;
}

/* Returns a random scale from 1/8 to 8. */
static uint32_t scale_code(uint32_t scale, uint64_t *state) {
    uint32_t code = 0, random = (uint32_t)(bench_next_bits(state) >> 32);
    float value = ldexpf(1 + (float)(random & 7) / 8, (int)(random >> 8) % 6 - 3);
    if (scale == BSMM_SCALE_E8M0) return 124 + random % 7;
    bsmm_encode_elem(scale == BSMM_SCALE_E4M3 ? BSMM_ELEM_E4M3 : BSMM_ELEM_F32, value, 1, &code);
    return code;
}

/* Fills the memory of a pool with random codes of `bits` bits each, without gaps. The code that
 * comes first has the less significant bits of a byte. */
static void fill_stream(uint8_t *memory, const uint32_t *codes, uint32_t bits, uint64_t *state) {
    uint64_t pending = 0, random = 0;
    uint32_t held = 0, left = 0;
    for (uint64_t i = 0; i < pool_bytes; i++) {
        for (; held < 8; held += bits, left--, random >>= 12) {
            if (left == 0) random = bench_next_bits(state), left = 5;
            pending |= (uint64_t)codes[random % VARIETY] << held;
        }
        memory[i] = (uint8_t)pending;
        pending >>= 8, held -= 8;
    }
}

static bool make_pool(surface *s, size_t which) {
    bool scales = which >= SCALES;
    uint32_t type = (uint32_t)(scales ? which - SCALES : which), codes[VARIETY];
    uint32_t scale_bits = type == BSMM_SCALE_F32 ? 32 : 8;
    uint64_t state = BENCH_FIRST_SEED + which;
    uint8_t *host = malloc(pool_bytes);
    void *made = NULL;
    for (int i = 0; i < VARIETY; i++)
        codes[i] = scales ? scale_code(type, &state) : element_code(type, &state);
    if (host) fill_stream(host, codes, scales ? scale_bits : bench_elem_bits(type), &state);
    bool done = host && s->device->kind->allocate(s->device->state, pool_bytes, &made) &&
                bench_device_write(s->device, made, host, pool_bytes);
    s->pools[which].memory = made;
    free(host);
    return done;
}

static bool fill(surface *s, size_t which, void *memory, uint64_t bytes) {
    if (!s->pools[which].memory && !make_pool(s, which)) return false;
    bool done = true;
    for (uint64_t at = 0; at < bytes && done; at += pool_bytes) {
        uint64_t part = bytes - at < pool_bytes ? bytes - at : pool_bytes;
        done = s->device->kind->copy(s->device->state, (uint8_t *)memory + at,
                                     s->pools[which].memory, part);
    }
    return done;
}

bool surface_fill_elements(surface *s, uint32_t elem, void *memory, uint64_t bytes) {
    return fill(s, elem, memory, bytes);
}

bool surface_fill_scales(surface *s, uint32_t scale, void *memory, uint64_t bytes) {
    return !bytes || fill(s, SCALES + scale, memory, bytes);
}

void surface_free_pools(surface *s) {
    for (size_t i = 0; i < sizeof s->pools / sizeof s->pools[0]; i++)
        if (s->pools[i].memory) s->device->kind->release(s->device->state, s->pools[i].memory);
}
