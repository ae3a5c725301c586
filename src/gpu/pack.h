/* Packing: an operand of any format becomes what the tensor cores eat, rows of bf16 or 8-bit floats
 * with K contiguous, beside one fp32 scale for each row and 128 of K.
 *
 *     value(r, k) = packed(r, k) * group_scale[k / 128][r] * global       exactly, unless FAST
 *
 * A packed operand is one piece of device memory, as bsmm_pack_plan_make lays it out: a header of
 * 64 bytes; group scales, fp32 [padded K / 128][rows padded to 4]; elements, row-major [rows][K
 * padded to 128], zeros behind K. Rows that only padding has are not there (TMA reads them as 0).
 *
 * What does not fit is never lost silently: the kernels say in the header how far the values reach,
 * and whoever multiplies two packed operands asks bsmm_pack_pair_fits first, on the device. */
#ifndef BSMM_GPU_PACK_H
#define BSMM_GPU_PACK_H

#include "gpu/axis_map.h"
#include "gpu/codec.h"

enum { BSMM_PACK_GROUP = 128, BSMM_PACK_HEADER_BYTES = 64 };

/* Into what, and how. */
typedef enum bsmm_pack_route {
    /* bf16. Any elements of 8 bits and fewer; bf16; f16 and f32 whose values bf16 holds. */
    BSMM_PACK_BF16 = 0,
    /* 8-bit floats. e2m1, e2m3, e3m2 with e8m0 scales: e4m3, the scales folded into its exponents;
     * blocks that span more than 14, 11, 9 binades in a group make it WIDE. 8-bit elements with
     * fp32 scales or none: their own bytes, in another order. */
    BSMM_PACK_FP8 = 1,
    /* 8-bit elements with e8m0 scales, folded with rounding: an element's error is at most 2^-10
     * (e4m3; e5m2: 2^-17) of its group's scale, and only elements below 2^-6 (2^-14) of that lose
     * bits. A group's scale is at most 2^8 times the one that puts its largest magnitude at 240
     * (2^15) or more, and 2^8 times any of its blocks' scales, or it is that one. Inf makes it
     * WIDE. */
    BSMM_PACK_FAST = 2
} bsmm_pack_route;

/* What all groups together look like; 0 in the fields of exponents: no value but 0, Inf and NaN.
 * Atomic maxima, so that the order of threads cannot show. */
typedef struct bsmm_pack_header {
    uint32_t flags; /* bsmm_pack_flags */
    uint32_t high;  /* 512 + h: every finite value is less than 2^h */
    uint32_t low;   /* 512 - l: every nonzero value is at least 2^l */
    uint32_t inner; /* 512 - i: every nonzero packed element is at least 2^i */
    uint32_t reserved[12];
} bsmm_pack_header;

typedef enum bsmm_pack_flags {
    BSMM_PACK_SCALED = 1, /* some group scale is not 1 */
    BSMM_PACK_WIDE = 2,   /* some group does not fit: its packed elements are not its values */
    BSMM_PACK_UNEVEN = 4  /* FP8, FAST of e8m0: a row may have groups of different scales */
} bsmm_pack_flags;

/* Whether products of the two, their sums and their scaled sums over K <= 2^log2_k stay inside
 * fp32's normal range, if group scales are multiplied with each other first. */
BSMM_SHARED bool bsmm_pack_pair_fits(const bsmm_pack_header *a, const bsmm_pack_header *b,
                                     uint32_t log2_k) {
    bool fits = !((a->flags | b->flags) & BSMM_PACK_WIDE);
    if (!a->high || !b->high) return fits; /* one has no values */
    return fits && a->low + b->low <= 1024 + 110 && a->inner + b->inner <= 1024 + 110 &&
           a->high + b->high + log2_k <= 1024 + 126;
}

/* Whether bf16 holds the values of both, packed to 8 bits by any route, as they are, and
 * bsmm_pack_pair_fits would hold for them as bf16. slack: by how many binades the largest value may
 * lie below what its block's exponent allows (FAST). What FP8 tells is at most some binades too
 * high. */
BSMM_SHARED bool bsmm_pack_is_plain(const bsmm_pack_header *h, uint32_t slack) {
    return !h->high || (h->high + slack <= 512 + 127 && h->low <= 512 + 126);
}

BSMM_SHARED bool bsmm_pack_pair_plain(const bsmm_pack_header *a, const bsmm_pack_header *b,
                                      uint32_t slack, uint32_t log2_k) {
    if (!bsmm_pack_is_plain(a, slack) || !bsmm_pack_is_plain(b, slack)) return false;
    if (!a->high || !b->high) return true;
    return a->low + b->low <= 1024 + 110 && a->high + b->high + log2_k <= 1024 + 126;
}

/* Elements two at a time: a code at the top of a 16-bit half moves to where the exponent and
 * mantissa of a 16-bit float lie, and one exact product corrects the bias. */
typedef struct bsmm_pair_codec {
    uint32_t down, mask; /* of the magnitudes, in both halves */
    uint32_t up;         /* bf16: the factor that moves there what stands at the top of a byte */
    uint32_t unbias;     /* the power of two, in both halves */
    uint32_t special;    /* in each byte: what makes bit 7 of a magnitude that is not finite */
} bsmm_pair_codec;

/* Where words of four scale codes lie: the first byte of row r's w-th is at
 * r % 32 * low + r / 32 % 4 * middle + r / 128 * high + w * across. */
typedef struct bsmm_pack_words {
    uint32_t low, middle;
    uint64_t high, across;
} bsmm_pack_words;

/* One launch's parameters, passed by value. */
typedef struct bsmm_pack_job {
    const uint8_t *data;
    const uint8_t *scales;
    uint64_t line_bytes; /* from one row (ORDER_COL: column) to the next */
    uint32_t rows, cols;
    uint32_t scale;            /* bsmm_scale */
    uint32_t route;            /* bsmm_pack_route */
    uint32_t aligned;          /* whole items of source elements may be loaded at once */
    uint32_t lanes_log2;       /* threads side by side along K */
    uint32_t share;            /* neighbours whose items have one block: 1, 2 or 4 */
    uint32_t fours;            /* scales of four blocks (32 of e8m0, 16 of e4m3) from a multiple of
                                  four on lie side by side, in an aligned word; 2: as words has it */
    int32_t fit_low, fit_high; /* BF16: block exponents that need no group scale */
    int32_t fold;    /* FP8: largest shift of the element's values that e4m3 holds exactly */
    uint32_t window; /* FP8: how far below it the smallest is; FAST: how far below the row's scale
                        a group's own and its blocks' may lie */
    bsmm_narrow_codec codec, to; /* of the elements, of an 8-bit result */
    bsmm_pair_codec pair;
    bsmm_axis_map row_map, col_map; /* of elements */
    bsmm_pack_words words;
    void *elements;
    uint64_t element_pitch; /* bytes from row to row */
    float *group_scales;    /* NULL: a group whose scale is not 1 is WIDE */
    uint64_t group_pitch;   /* floats from one 128 of K to the next */
    bsmm_pack_header *header;
} bsmm_pack_job;

/* Packing to bf16 by the blocks of another kernel (sm80/pack_plain.h), of values that bf16 is known
 * to hold as they are. */
typedef struct bsmm_pack_plain {
    bsmm_pack_job job;       /* of elements of 4, 6 or 8 bits with e8m0 scales */
    uint32_t bits, by_rows;  /* by_rows: 1, K is contiguous; or 0 */
    uint32_t columns, parts; /* of what a launch's blocks would pack: along K, in all */
} bsmm_pack_plain;

/* fp32 scales of fp8_group128 and fp8_block128 for an engine that takes the elements as they are:
 * f32 [cols][pitch], to[c * pitch + r] for r < rows; padding (r < pitch) is 0. */
typedef struct bsmm_pack_scales_job {
    const float *scales;
    float *to;
    uint64_t row_pitch, col_pitch;   /* floats in `to` */
    uint32_t rows, cols;             /* to write */
    uint32_t known_rows, known_cols; /* beyond them 0 */
    bsmm_axis_map row_map, col_map;
} bsmm_pack_scales_job;

#endif
