/* Decodes elements of an operand to fp32 values, and splits each value into one or three bf16
 * numbers. The sum of these bf16 numbers is the value (bf16_product.h). */
#ifndef BSMM_GPU_BF16_VALUES_H
#define BSMM_GPU_BF16_VALUES_H

#include "gpu/bf16_product.h"

/* Marks functions of slow paths, which should not be inlined. A kernel may define this macro
 * differently and inline them, if a call would need more registers than inlined code. */
#ifndef BF16_RARE
#    define BF16_RARE BSMM_DEVICE_RARE
#endif

/* Holds the codes of eight elements that are adjacent along K, one code in each word. */
typedef struct bf16_codes {
    uint32_t c[8];
} bf16_codes;

BSMM_DEVICE uint32_t bf16_load16(const uint8_t *from) {
    return *(const uint16_t *)(const void *)from;
}

/* Holds two or four 4-byte words that one load instruction reads. Their address must be a multiple
 * of their size. */
typedef struct bf16_words2 {
    uint32_t w[2];
} __attribute__((aligned(8))) bf16_words2;
typedef struct bf16_words4 {
    uint32_t w[4];
} __attribute__((aligned(16))) bf16_words4;

/* Loads 8 adjacent elements, beginning with an element whose index is a multiple of 8. Elements of
 * 6 bits must lie at an even address. The address of other elements must be a multiple of the size
 * of 8 elements, or of 16 bytes if 8 elements are larger. */
BSMM_DEVICE bf16_codes bf16_load_together(const bsmm_gpu_operand *o, uint32_t row, uint32_t k) {
    bf16_codes to;
    const uint8_t *from = o->data + (row * o->row_step + k) * o->bits / 8;
    uint32_t w[8];
    if (o->bits == 4) {
        w[0] = *(const uint32_t *)(const void *)from;
        BSMM_UNROLL
        for (int i = 0; i < 8; i++)
            to.c[i] = w[0] >> 4 * i & 0xf;
    } else if (o->bits == 6) {
        /* The 8 elements of 6 bits have 48 bits. w[0] has the first 32 of these bits. w[1] has the
         * last 24 bits, i.e. the last four elements, so 8 bits are in both words. */
        w[0] = bf16_load16(from) | bf16_load16(from + 2) << 16;
        w[1] = bf16_load16(from + 2) >> 8 | bf16_load16(from + 4) << 8;
        BSMM_UNROLL
        for (int i = 0; i < 8; i++)
            to.c[i] = w[i / 4] >> 6 * (i % 4) & 0x3f;
    } else if (o->bits == 8) {
        bf16_words2 pair = *(const bf16_words2 *)(const void *)from;
        BSMM_UNROLL
        for (int i = 0; i < 8; i++)
            to.c[i] = pair.w[i / 4] >> 8 * (i % 4) & 0xff;
    } else {
        bf16_words4 low = *(const bf16_words4 *)(const void *)from, high = low;
        if (o->bits == 32) high = *(const bf16_words4 *)(const void *)(from + 16);
        BSMM_UNROLL
        for (int i = 0; i < 4; i++)
            w[i] = low.w[i], w[i + 4] = high.w[i];
        BSMM_UNROLL
        for (int i = 0; i < 8; i++)
            to.c[i] = o->bits == 32 ? w[i] : w[i / 2] >> 16 * (i % 2) & 0xffff;
    }
    return to;
}

/* Returns the scale by which an element is multiplied when it is decoded. It is the element's block
 * scale or, if `outside` is set, 1. In that case the scales are fp32, and the kernel multiplies the
 * sum of each step of K by them. */
BSMM_DEVICE float bf16_scale_at(const bsmm_bf16_side *side, uint32_t row, uint32_t k) {
    return side->outside ? 1 : bsmm_gpu_scale(&side->o, row, k);
}

BSMM_DEVICE float bf16_magnitude(float value) {
    return bsmm_bits_float(bsmm_float_bits(value) & 0x7fffffffu);
}

/* Returns an element times its scale as an fp32 number, for any operand. This is the slow path, for
 * elements that bf16_is_plain rejects. A product with an fp32 scale may need more than fp32's 24
 * significant bits, and is then rounded once. If the product is subnormal in fp32 and loses bits,
 * the function returns NaN. All results that depend on this NaN become NaN, and the kernel
 * recomputes them in double from the operands. */
BF16_RARE float bf16_value_at(const bsmm_bf16_side *side, uint32_t row, uint32_t k) {
    float element = bsmm_gpu_elem(&side->o, bsmm_gpu_code(&side->o, row, k));
    float scale = bf16_scale_at(side, row, k);
    float value = element * scale;
    bool cut =
        bf16_magnitude(value) < 0x1p-126f && (double)element * (double)scale != (double)value;
    return cut ? bsmm_bits_float(0x7fc00000u) : value;
}

/* Returns true if eight elements along K can take the fast path. This requires that one load can
 * read them, that they share one scale, and that their products with the scale lie inside fp32's
 * range. `end` is the end of K. */
BSMM_DEVICE bool bf16_is_plain(const bsmm_bf16_side *side, uint32_t k, uint32_t end, float scale) {
    bool unscaled = side->o.scale == BSMM_SCALE_NONE || side->outside;
    return side->together && side->one && k + 8 <= end &&
           (unscaled || (side->o.bits <= 8 && !(bf16_magnitude(scale) < 0x1p-100f)));
}

BSMM_DEVICE void bf16_values(const bsmm_bf16_side *side, uint32_t row, uint32_t k, uint32_t end,
                             float values[8]) {
    float scale = side->one ? bf16_scale_at(side, row, k) : 1;
    if (bf16_is_plain(side, k, end, scale)) {
        bf16_codes codes = bf16_load_together(&side->o, row, k);
        BSMM_UNROLL
        for (int i = 0; i < 8; i++)
            values[i] = bsmm_gpu_elem(&side->o, codes.c[i]) * scale;
        return;
    }
    BSMM_UNROLL
    for (uint32_t i = 0; i < 8; i++)
        values[i] = k + i < end ? bf16_value_at(side, row, k + i) : 0;
}

/* Splits *rest into two fp32 numbers. The first one has the first 8 bits of the mantissa, so it is
 * a bf16 number, and the function returns its bits. The second one is the remainder, which the
 * function stores in *rest. */
BSMM_DEVICE uint32_t bf16_take_part(float *rest) {
    uint32_t bits = bsmm_float_bits(*rest) & 0xffff0000u;
    *rest = *rest - bsmm_bits_float(bits);
    return bits;
}

/* Splits two fp32 values, `low` and `high`, each into `parts` bf16 numbers whose sum is the value.
 * words[i] gets number i of `low` in its low 16 bits and number i of `high` in its high 16 bits. If
 * the bf16 numbers cannot represent a value exactly, its first number becomes NaN. The function
 * also ORs the bits of both values into *any. If *any is 0 after all calls, all values of the row
 * are zeros. */
BSMM_DEVICE void bf16_split(const int parts, float low, float high, uint32_t words[],
                            uint32_t *any) {
    *any |= bsmm_float_bits(low) | bsmm_float_bits(high);
    BSMM_UNROLL
    for (int part = 0; part < parts; part++) {
        uint32_t l = bf16_take_part(&low), h = bf16_take_part(&high);
        words[part] = bsmm_pick_bytes(l, h, 0x7632);
    }
    /* After the split, `low` and `high` hold the remainders. If a remainder is not 0, the bf16
     * numbers do not represent the value exactly. The first of them then becomes NaN, so that the
     * results become NaN and are computed again. Inf leaves a remainder of NaN, so it becomes NaN
     * too. */
    if (low != 0) words[0] = (words[0] & 0xffff0000u) | 0x7fc0;
    if (high != 0) words[0] = (words[0] & 0xffffu) | 0x7fc00000u;
}

/* If the operand has fp32 scales along K, the kernel multiplies the sum of each step of K by a
 * scale of A and a scale of B. Returns the operand's scale for one row and step, or 1 if there is
 * none. A nonzero scale whose magnitude is not between 2^-62 and 2^62 becomes NaN, because the
 * product of two such scales could leave fp32's range. The results are then NaN, and the kernel
 * computes them again in double. */
BSMM_DEVICE float bf16_factor(const bsmm_bf16_side *side, uint32_t row, uint32_t k) {
    float scale = side->outside && row < side->rows ? bsmm_gpu_scale(&side->o, row, k) : 1;
    float magnitude = bf16_magnitude(scale);
    bool tame = magnitude == 0 || (magnitude >= 0x1p-62f && magnitude <= 0x1p62f);
    return tame ? scale : bsmm_bits_float(0x7fc00000u);
}

/* Returns true if an fp32 sum of products may be wrong and must be recomputed in double. A sum with
 * a magnitude below 2^-118 may have lost terms to underflow. A sum above 2^127, Inf or NaN may come
 * from an overflow, or from a value that bf16 numbers cannot represent. A sum of exactly 0 is right
 * only if all of its products are 0, i.e. if `zero` is true: the whole row of A or the whole row of
 * B is 0. */
BSMM_DEVICE bool bf16_doubts(float sum, bool zero) {
    if (sum == 0) return !zero;
    return !(bf16_magnitude(sum) >= 0x1p-118f && bf16_magnitude(sum) <= 0x1p127f);
}

#endif
