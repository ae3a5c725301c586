/* A strip: some blocks side by side, the pipeline's unit of work. What a processor's vector unit
 * changes about the pipeline are the operations below; all of them give the same bytes. */
#ifndef BSMM_QUANTIZE_STRIP_H
#define BSMM_QUANTIZE_STRIP_H

#include "quantize/coder.h"

/* So many that what a call costs is shared; a multiple of 32. */
enum { BSMM_STRIP_BLOCKS = 128 };

/* f32, f16 or bf16 values whose rows are contiguous. */
typedef struct bsmm_plain {
    uint32_t elem;
    const void *data;
    int64_t pitch; /* elements from row to row */
} bsmm_plain;

/* From values to the codes of `dst`, in blocks of `width` columns. */
typedef struct bsmm_strip_job {
    const bsmm_operand *dst;
    const bsmm_coder *coder;
    bsmm_element_step step;
    int64_t width;
    int64_t ahead; /* columns from a value that is encoded to the one that memory is asked for */
} bsmm_strip_job;

/* From codes of 8 bits and fewer to f32, f16 or bf16: value = (element * exact) * rounded, where
 * the first product is exact and the second is rounded once, into the destination. A block's scale
 * is the one or the other factor; `other` is what the other one is. */
typedef struct bsmm_decode_job {
    uint32_t bits, to_elem;
    int mantissa_bits;
    int64_t width;
    bool scale_is_exact; /* an e4m3 scale: its product with an element is a float */
    bool is_exact;       /* so is the second product, or it overflows */
    bool streams;        /* stores whole cache lines past the caches */
    float other;
    float table[32];                       /* of the first codes; 4 and 6 bits */
    uint8_t low_bytes[16], high_bytes[16]; /* 4 bits: of the values as bf16 */
    /* 6 and 8 bits: an f16 code's magnitude is the code's, shifted; `bias` is what a value is
     * multiplied by then. NaN, of 8 bits: (code - nan_base) & nan_mask < nans. */
    int shift;
    float bias;
    int16_t nan_base, nan_mask, nans;
    /* 8 bits to bf16: a normal code's magnitude, shifted, plus `pairs_base`; that of one below
     * 2^mantissa_bits from a table. Not finite: (code - special_base) & nan_mask < specials. */
    int16_t pairs_base, special_base, specials;
    uint16_t subnormals[32];
} bsmm_decode_job;

typedef struct bsmm_strip_ops {
    /* amax[i] = the largest magnitude, as fp32 bits, of columns [i * width, (i + 1) * width) of
     * rows x cols values; at least one column, at most BSMM_STRIP_BLOCKS blocks, for
     * all of which there is room. fp32 bits order as
     * magnitudes do and put NaN on top, unless skips_nan says that it does not count. */
    void (*amax)(const bsmm_plain *values, int64_t rows, int64_t cols, int64_t width,
                 bool skips_nan, uint32_t *amax);

    /* Stores row[0 .. cols) at element (r, c) of job->dst, where a block begins; block i meets
     * factors[i] of BSMM_STRIP_BLOCKS, none when factors is NULL. tame: values are finite, factors
     * positive and normal; divisors and values are within 2^60, divisors above 2^-60. */
    void (*encode)(const bsmm_strip_job *job, const bsmm_plain *row, int64_t r, int64_t c,
                   int64_t cols, const float *factors, bool tame);

    /* The values of codes[0 .. cols), where a block begins, whose scales are scales[i] of as many
     * blocks as there are; width is a multiple of 16 or cols. NULL: there is only the general way.
     */
    void (*decode)(const bsmm_decode_job *job, const uint8_t *codes, int64_t cols,
                   const float *scales, void *to);

    /* After decode with job->streams, before another thread may read. */
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

/* n values of f32, f16 or bf16 to one of these; false where one is NaN, what is stored then being
 * none of it right. */
bool bsmm_cast_avx2(uint32_t from_elem, uint32_t to_elem, const void *from, void *to, int64_t n);
void bsmm_drain_avx512(void);
#endif

/* The best operations that this processor has, for any use of amax and for a destination. */
const bsmm_strip_ops *bsmm_strip_ops_best(void);
const bsmm_strip_ops *bsmm_strip_ops_for(const bsmm_operand *dst);

/* `count` values of a row, from `first` on, as fp32. */
void bsmm_plain_load(const bsmm_plain *row, int64_t first, int64_t count, float *to);

/* The same rows from (row, col) on. Inlined, for a struct that a call returns is read back by
 * wider loads than the stores that wrote it, which then wait for every store before them: here,
 * of codes that miss the caches. */
static inline bsmm_plain bsmm_plain_at(const bsmm_plain *values, int64_t row, int64_t col) {
    int64_t bytes = values->elem == BSMM_ELEM_F32 ? 4 : 2;
    const uint8_t *data = (const uint8_t *)values->data + (row * values->pitch + col) * bytes;
    return (bsmm_plain){values->elem, data, values->pitch};
}

#endif
