/* Loads and stores the codes of packed arrays. Two 4-bit codes share a byte; the code with the even
 * index is in the low 4 bits. Four 6-bit codes share three bytes, the first code in the least
 * significant bits. Codes of 8, 16 and 32 bits are little-endian. */
#include "format/format.h"

#include <string.h>

uint32_t bsmm_elem_group(uint32_t elem) {
    uint32_t bits = bsmm_elem_row(elem)->bits;
    return bits == 4 ? 2 : bits == 6 ? 4 : 1;
}

bool bsmm_elem_bytes(uint32_t elem, uint64_t count, uint64_t *bytes) {
    uint32_t group = bsmm_elem_group(elem);
    uint64_t groups = count / group + (count % group != 0);
    return bsmm_mul_u64(groups, (uint64_t)group * bsmm_elem_row(elem)->bits / 8, bytes);
}

/* Loads a 6-bit code. The function loads a second byte only if the code continues in it, so it
 * never reads past the three bytes of its four codes. */
static uint32_t load6(const uint8_t *base, uint64_t index) {
    uint32_t bit = (uint32_t)(index % 4) * 6;
    const uint8_t *at = base + index / 4 * 3 + bit / 8;
    uint32_t shift = bit % 8;
    uint32_t word = at[0];
    if (shift > 2) word |= (uint32_t)at[1] << 8;
    return word >> shift & 0x3f;
}

static void store6(uint8_t *base, uint64_t index, uint32_t code) {
    uint32_t bit = (uint32_t)(index % 4) * 6;
    uint8_t *at = base + index / 4 * 3 + bit / 8;
    uint32_t shift = bit % 8;
    uint32_t mask = 0x3fu << shift, word = (code & 0x3f) << shift;
    at[0] = (uint8_t)((at[0] & ~mask) | word);
    if (shift > 2) at[1] = (uint8_t)((at[1] & ~(mask >> 8)) | word >> 8);
}

static void store4(uint8_t *base, uint64_t index, uint32_t code) {
    uint32_t shift = (uint32_t)(index & 1) * 4;
    uint8_t *at = base + index / 2;
    *at = (uint8_t)((*at & ~(0xfu << shift)) | (code & 0xf) << shift);
}

static uint32_t load_bytes(const uint8_t *base, uint64_t index, uint32_t bytes) {
    uint32_t code = 0;
    for (uint32_t i = 0; i < bytes; i++)
        code |= (uint32_t)base[index * bytes + i] << 8 * i;
    return code;
}

static void store_bytes(uint8_t *base, uint64_t index, uint32_t bytes, uint32_t code) {
    for (uint32_t i = 0; i < bytes; i++)
        base[index * bytes + i] = (uint8_t)(code >> 8 * i);
}

uint32_t bsmm_elem_load(uint32_t elem, const void *base, uint64_t index) {
    uint32_t bits = bsmm_elem_row(elem)->bits;
    if (bits == 4) return ((const uint8_t *)base)[index / 2] >> (index & 1) * 4 & 0xf;
    if (bits == 6) return load6(base, index);
    return load_bytes(base, index, bits / 8);
}

void bsmm_elem_store(uint32_t elem, void *base, uint64_t index, uint32_t code) {
    uint32_t bits = bsmm_elem_row(elem)->bits;
    if (bits == 4)
        store4(base, index, code);
    else if (bits == 6)
        store6(base, index, code);
    else
        store_bytes(base, index, bits / 8, code);
}
