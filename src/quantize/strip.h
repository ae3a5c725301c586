/* A strip is some adjacent blocks of a row, which the pipeline handles together. The operations
 * below have a version for each instruction set; all versions give the same bytes. */
#ifndef BSMM_QUANTIZE_STRIP_H
#define BSMM_QUANTIZE_STRIP_H

#include "quantize/coder.h"

/* The largest number of blocks of a strip, a multiple of 32. It is large enough that the cost of a
 * call does not matter. */
enum { BSMM_STRIP_BLOCKS = 128 };

/* f32, f16 or bf16 values whose rows are contiguous. */
typedef struct bsmm_plain {
    uint32_t elem;
    const void *data;
    int64_t pitch; /* distance between two rows, in elements */
} bsmm_plain;

/* The constants for encoding values into dst, in blocks of `width` columns. */
typedef struct bsmm_strip_job {
    const bsmm_operand *dst;
    const bsmm_coder *coder;
    bsmm_element_step step;
    int64_t width;
    int64_t ahead; /* distance from an encoded value to the prefetched one, in columns */
} bsmm_strip_job;

/* The constants for decoding codes of at most 8 bits to f32, f16 or bf16: value = (element * exact)
 * * rounded. The first product is exact; the second is rounded once, into the destination. The
 * block's scale is one of the two factors, and `other` is the other one. */
typedef struct bsmm_decode_job {
    uint32_t bits, to_elem;
    int mantissa_bits;
    int64_t width;
    bool scale_is_exact; /* the scale is e4m3, whose product with an element is a float */
    bool is_exact;       /* the second product is exact too, or it overflows */
    bool streams;        /* store whole cache lines past the caches */
    float other;
    float table[32];                       /* values of the first codes, for 4 and 6 bits */
    uint8_t low_bytes[16], high_bytes[16]; /* 4 bits: low and high bytes of the values as bf16 */
    /* For 6 and 8 bits: shifting a code's magnitude by `shift` gives an f16 code; its value times
     * `bias` is the element's value. A code of 8 bits is NaN if (code - nan_base) & nan_mask <
     * nans. */
    int shift;
    float bias;
    int16_t nan_base, nan_mask, nans;
    /* For 8 bits to bf16: a normal code's shifted magnitude plus `pairs_base` is the bf16 code.
     * Magnitudes below 2^mantissa_bits are looked up in `subnormals`. A code is not finite if (code
     * - special_base) & nan_mask < specials. */
    int16_t pairs_base, special_base, specials;
    uint16_t subnormals[32];
} bsmm_decode_job;

typedef struct bsmm_strip_ops {
    /* Computes amax[i], the largest magnitude (as fp32 bits) of columns [i * width, (i + 1) *
     * width) of rows x cols values. There are at least one column and at most BSMM_STRIP_BLOCKS
     * blocks; `amax` has room for BSMM_STRIP_BLOCKS. The order of fp32 bits is that of magnitudes,
     * with NaN largest; with skips_nan, NaN does not count. */
    void (*amax)(const bsmm_plain *values, int64_t rows, int64_t cols, int64_t width,
                 bool skips_nan, uint32_t *amax);

    /* Encodes row[0 .. cols) and stores it at element (r, c) of job->dst, the start of a block.
     * factors[i] is the factor of block i; factors may be NULL. `tame` promises that values are
     * finite and factors positive and normal. For divisions it also promises that values and
     * divisors are at most 2^60 and divisors at least 2^-60. */
    void (*encode)(const bsmm_strip_job *job, const bsmm_plain *row, int64_t r, int64_t c,
                   int64_t cols, const float *factors, bool tame);

    /* Decodes codes[0 .. cols), which start at a block; scales[i] is the scale of block i. `width`
     * is a multiple of 16 or equals cols. NULL: only the slow path can decode. */
    void (*decode)(const bsmm_decode_job *job, const uint8_t *codes, int64_t cols,
                   const float *scales, void *to);

    /* Completes stores that bypassed the caches. Call it after decode with job->streams, before
     * another thread reads the output. */
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

/* These functions return the best operations that this processor has, for amax and for a
 * destination. */
const bsmm_strip_ops *bsmm_strip_ops_best(void);
const bsmm_strip_ops *bsmm_strip_ops_for(const bsmm_operand *dst);

/* Loads `count` values of a row, from index `first` on, as fp32. */
void bsmm_plain_load(const bsmm_plain *row, int64_t first, int64_t count, float *to);

/* Returns the view of the same values that begins at (row, col). The function is inlined,
 * because the caller of a function that returns a struct loads it with wider loads than the
 * stores that wrote it. Such a load waits for all stores before it, here stores of codes that
 * miss the caches. */
static inline bsmm_plain bsmm_plain_at(const bsmm_plain *values, int64_t row, int64_t col) {
    int64_t bytes = values->elem == BSMM_ELEM_F32 ? 4 : 2;
    const uint8_t *data = (const uint8_t *)values->data + (row * values->pitch + col) * bytes;
    return (bsmm_plain){values->elem, data, values->pitch};
}

#endif
