/* Declares the operations on strips. A strip is a number of adjacent blocks of one row of blocks,
 * and the pipeline of the quantizer handles one strip at a time. The operations exist once for each
 * instruction set, and all versions write the same bytes. */
#ifndef BSMM_QUANTIZE_STRIP_H
#define BSMM_QUANTIZE_STRIP_H

#include "quantize/coder.h"

/* The quantizer processes a number of adjacent blocks by one call (a strip). BSMM_STRIP_BLOCKS is
 * the largest number of blocks in a strip. It is a multiple of 32, and so large that the cost of
 * the calls is negligible. */
enum { BSMM_STRIP_BLOCKS = 128 };

/* `bsmm_plain` is a matrix of f32, f16 or bf16 values in row-major order. */
typedef struct bsmm_plain {
    uint32_t elem;
    const void *data;
    int64_t pitch; /* `pitch` is the stride from one row to the next, in elements. */
} bsmm_plain;

/* `bsmm_strip_job` holds the constants for encoding values into the matrix dst, in blocks of
 * `width` columns. */
typedef struct bsmm_strip_job {
    const bsmm_operand *dst;
    const bsmm_coder *coder;
    bsmm_element_step step;
    int64_t width;
    int64_t ahead; /* `ahead` is the distance of the prefetch from the encoded value, in columns. */
} bsmm_strip_job;

/* `bsmm_decode_job` holds the constants for decoding codes of at most 8 bits to f32, f16 or bf16. A
 * value is element * block scale * `other`, rounded only once, directly to the destination format.
 * There are two cases:
 * - If scale_is_exact is true, element * block scale is exact, and `other` is the second-level
 *   scale. Only the multiplication by `other` rounds.
 * - Otherwise `other` is 1, and only the multiplication by the block scale rounds. */
typedef struct bsmm_decode_job {
    uint32_t bits, to_elem;
    int mantissa_bits;
    int64_t width;
    /* `scale_is_exact` is true if the product of an element and its block scale is exact, because
     * the scales are e4m3 or there are no block scales. */
    bool scale_is_exact;
    /* `is_exact` is true if element times block scale, and this product times the second-level
     * scale (the scale of the whole matrix), are exact in fp32 unless they overflow. */
    bool is_exact;
    bool streams; /* `streams` is true if stores bypass the caches. */
    float other;
    /* `table` holds the values of all 4-bit codes, or of the 6-bit codes without a sign bit, i.e.
     * the first 32. */
    float table[32];
    /* For 4-bit codes, these are the low and high byte of each code's value as bf16. */
    uint8_t low_bytes[16], high_bytes[16];
    /* These constants convert 6-bit and 8-bit codes by way of f16. The magnitude bits of a code are
     * shifted left by `shift`, so that they form an f16 code. The value of this f16 code differs
     * from the element's magnitude by a power of two; times `bias` it is the magnitude. An 8-bit
     * code is NaN if (code - nan_base) & nan_mask < nans. */
    int shift;
    float bias;
    int16_t nan_base, nan_mask, nans;
    /* These constants convert 8-bit codes to bf16. Let m be the magnitude bits of a code.
     * - If m is below 2^mantissa_bits, the code is subnormal, and subnormals[m] is the bf16 code.
     * - If (code - special_base) & nan_mask is below `specials`, the code is Inf or NaN.
     * - Otherwise the code is normal. m is shifted to the position of bf16's exponent and mantissa,
     *   and `pairs_base` is added, which corrects the exponent bias. */
    int16_t pairs_base, special_base, specials;
    uint16_t subnormals[32];
} bsmm_decode_job;

typedef struct bsmm_strip_ops {
    /* Computes amax[i], the largest magnitude (as fp32 bits) of columns [i * width, (i + 1) *
     * width) of rows x cols values. There is at least one column, and there are at most
     * BSMM_STRIP_BLOCKS blocks. `amax` must have room for BSMM_STRIP_BLOCKS entries. NaN counts as
     * larger than any number; with skips_nan, NaN is ignored. */
    void (*amax)(const bsmm_plain *values, int64_t rows, int64_t cols, int64_t width,
                 bool skips_nan, uint32_t *amax);

    /* Encodes row[0 .. cols) and stores the codes at element (r, c) of job->dst, which is the start
     * of a block. Each value is first multiplied or divided (as job->step says) by its block's
     * factor: factors[i] is the factor of block i. If `factors` is NULL, the values are encoded as
     * they are. `tame` promises that values are finite and factors are positive and normal. If
     * job->step is a division, `tame` also promises that values and factors are at most 2^60 and
     * factors are at least 2^-60. */
    void (*encode)(const bsmm_strip_job *job, const bsmm_plain *row, int64_t r, int64_t c,
                   int64_t cols, const float *factors, bool tame);

    /* Decodes codes[0 .. cols), which start at a block. scales[i] is the scale of block i.
     * job->width is a multiple of 16 or equals cols. The pointer is NULL if there is no vector code
     * for decoding. */
    void (*decode)(const bsmm_decode_job *job, const uint8_t *codes, int64_t cols,
                   const float *scales, void *to);

    /* Completes stores that bypassed the caches. A thread must call it after `decode` with
     * job->streams set, before another thread reads the output. */
    void (*drain)(void);
} bsmm_strip_ops;

extern const bsmm_strip_ops bsmm_strip_portable;
#if defined(__x86_64__)
extern const bsmm_strip_ops bsmm_strip_avx2, bsmm_strip_avx512;
void bsmm_amax_avx2(const bsmm_plain *values, int64_t rows, int64_t cols, int64_t width,
                    bool skips_nan, uint32_t *amax);
void bsmm_amax_avx512(const bsmm_plain *values, int64_t rows, int64_t cols, int64_t width,
                      bool skips_nan, uint32_t *amax);
void bsmm_decode_avx2(const bsmm_decode_job *job, const uint8_t *codes, int64_t cols,
                      const float *scales, void *to);
void bsmm_decode_avx512(const bsmm_decode_job *job, const uint8_t *codes, int64_t cols,
                        const float *scales, void *to);
void bsmm_drain_avx2(void);

/* Converts n values between f32, f16 and bf16. Returns false if a value is NaN; the stored values
 * are then invalid. */
bool bsmm_cast_avx2(uint32_t from_elem, uint32_t to_elem, const void *from, void *to, int64_t n);
void bsmm_drain_avx512(void);
#endif

/* bsmm_strip_ops_best returns the operations for the best instruction set of this processor. These
 * operations can decode any source and find its amax, but they cannot encode into every
 * destination. bsmm_strip_ops_for returns the same operations if they can encode into `dst`.
 * Otherwise it returns the portable operations. */
const bsmm_strip_ops *bsmm_strip_ops_best(void);
const bsmm_strip_ops *bsmm_strip_ops_for(const bsmm_operand *dst);

/* Loads `count` values of a row as fp32, from index `first` on. */
void bsmm_plain_load(const bsmm_plain *row, int64_t first, int64_t count, float *to);

/* Returns a view of the same values that begins at (row, col). The function must be inlined.
 * Otherwise it would store the fields of the struct one by one, and the caller would load them with
 * wider loads. Such a load cannot take its data from the stores before they reach the cache (store
 * forwarding). It would wait for all earlier stores, including stores of codes that miss the
 * caches. */
static inline bsmm_plain bsmm_plain_at(const bsmm_plain *values, int64_t row, int64_t col) {
    int64_t bytes = values->elem == BSMM_ELEM_F32 ? 4 : 2;
    const uint8_t *data = (const uint8_t *)values->data + (row * values->pitch + col) * bytes;
    return (bsmm_plain){values->elem, data, values->pitch};
}

#endif
