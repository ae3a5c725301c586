/* Packing converts an operand of any format to an operand that tensor cores can multiply: rows of
 * bf16 or 8-bit floats with K contiguous, and one fp32 scale for each group. A group is 128
 * consecutive elements along K in one row.
 *
 *     value(r, k) = packed(r, k) * group_scale[k / 128][r] * global      (exact, except for FAST)
 *
 * A packed operand is one piece of device memory, whose layout bsmm_pack_plan_make chooses. A
 * header of 64 bytes comes first. The group scales follow, as fp32 [padded K / 128][rows padded to
 * 4]. The elements come last, row-major [rows][K padded to 128], with zeros past the end of K. On
 * the routes TWO_BF16 and THREE_BF16 a packed element is the sum of several bf16 parts.
 * Padding rows are not stored, because TMA reads them as 0.
 *
 * Packing never loses a value silently. The packing kernels record the range of the values in the
 * header. Before a kernel multiplies two packed operands, it calls bsmm_pack_pair_fits on the
 * device. */
#ifndef BSMM_GPU_PACK_H
#define BSMM_GPU_PACK_H

#include "gpu/axis_map.h"
#include "gpu/codec.h"

enum { BSMM_PACK_GROUP = 128, BSMM_PACK_HEADER_BYTES = 64 };

/* The element type that packing writes, and how it treats scales. */
typedef enum bsmm_pack_route {
    /* Packs to bf16. Takes any elements of at most 8 bits, bf16, and those f16 and f32 operands
     * whose values are exact in bf16. */
    BSMM_PACK_BF16 = 0,
    /* Packs to 8-bit floats, exactly. e2m1, e2m3 and e3m2 elements with e8m0 scales become e4m3,
     * and the block scales are folded into the exponents. If the blocks of one group span more than
     * 14 (e2m1), 11 (e2m3) or 9 (e3m2) binades, the operand is marked WIDE. 8-bit elements with
     * fp32 scales or without scales keep their bytes and are only reordered. */
    BSMM_PACK_FP8 = 1,
    /* Packs 8-bit elements with e8m0 scales to 8-bit floats. Folding a block scale into the
     * elements rounds them.
     *
     * The absolute error of a packed element is at most 2^-10 for e4m3 and 2^-17 for e5m2, before
     * the group scale multiplies it. Only packed elements below 2^-6 (e4m3) or 2^-14 (e5m2) lose
     * bits.
     *
     * The group's own scale is the smallest that keeps its elements from overflowing: with it the
     * largest magnitude is at least 240 (e4m3) or 2^15 (e5m2). A group uses its row's common scale
     * instead if that scale is at most 2^8 times the group's own scale and at most 2^8 times the
     * scale of each of its blocks. An operand that contains Inf is marked WIDE. */
    BSMM_PACK_FAST = 2,
    /* Packs f16 as the sum of two bf16 parts (TWO), or f32 as the sum of three (THREE), exactly.
     * For each 64 elements of K, the first parts of all elements come first, then their second
     * parts, then the third. An operand with a subnormal part is marked WIDE. All parts of Inf are
     * Inf, and all parts of NaN are NaN. */
    BSMM_PACK_TWO_BF16 = 3,
    BSMM_PACK_THREE_BF16 = 4,
    BSMM_PACK_ROUTES /* number of routes */
} bsmm_pack_route;

/* The number of elements along K whose parts are stored together, for elements of several parts. */
enum { BSMM_PACK_PART_COLS = 64 };

/* Returns the number of parts into which a route splits an element. It is 1 for the routes BF16,
 * FP8 and FAST. */
BSMM_SHARED uint32_t bsmm_pack_parts(uint32_t route) {
    return route == BSMM_PACK_TWO_BF16 ? 2 : route == BSMM_PACK_THREE_BF16 ? 3 : 1;
}

BSMM_SHARED bool bsmm_pack_is_bf16(uint32_t route) {
    return route != BSMM_PACK_FP8 && route != BSMM_PACK_FAST;
}

/* Header of a packed operand: a summary of all of its groups. An exponent field is 0 if every value
 * is 0, Inf or NaN. Threads update the fields by atomic maxima, so their order does not matter. */
typedef struct bsmm_pack_header {
    uint32_t flags; /* the hazards that packing found, as bits of the enum bsmm_pack_flags */
    uint32_t high;  /* 512 + h, where every finite value of the operand is less than 2^h. */
    uint32_t low;   /* 512 - l, where every nonzero value of the operand is at least 2^l. */
    uint32_t inner; /* 512 - i, where every nonzero packed element is at least 2^i. */
    uint32_t reserved[12];
} bsmm_pack_header;

typedef enum bsmm_pack_flags {
    BSMM_PACK_SCALED = 1, /* At least one group scale is not 1. */
    /* At least one group does not fit: its packed elements are not its values. */
    BSMM_PACK_WIDE = 2,
    /* On the routes FP8 and FAST with e8m0 scales: groups of one row may have different scales. */
    BSMM_PACK_UNEVEN = 4
} bsmm_pack_flags;

/* Returns true if two packed operands can be multiplied in fp32: all products, dot products over K
 * <= 2^log2_k and scaled dot products stay in fp32's normal range. The group scales must be
 * multiplied with each other before they multiply a dot product. */
BSMM_SHARED bool bsmm_pack_pair_fits(const bsmm_pack_header *a, const bsmm_pack_header *b,
                                     uint32_t log2_k) {
    bool fits = !((a->flags | b->flags) & BSMM_PACK_WIDE);
    if (!a->high || !b->high) return fits; /* One operand has no nonzero finite values. */
    return fits && a->low + b->low <= 1024 + 110 && a->inner + b->inner <= 1024 + 110 &&
           a->high + b->high + log2_k <= 1024 + 126;
}

/* Returns true if bf16 holds all values of an operand that was packed to 8 bits, without group
 * scales. `slack` is the number of binades by which the largest value of a block may lie below the
 * maximum that the block's exponent allows. Only the route FAST needs it. The header that the route
 * FP8 writes may overstate the largest value by some binades. */
BSMM_SHARED bool bsmm_pack_is_plain(const bsmm_pack_header *h, uint32_t slack) {
    return !h->high || (h->high + slack <= 512 + 127 && h->low <= 512 + 126);
}

BSMM_SHARED bool bsmm_pack_pair_plain(const bsmm_pack_header *a, const bsmm_pack_header *b,
                                      uint32_t slack, uint32_t log2_k) {
    if (!bsmm_pack_is_plain(a, slack) || !bsmm_pack_is_plain(b, slack)) return false;
    if (!a->high || !b->high) return true;
    return a->low + b->low <= 1024 + 110 && a->high + b->high + log2_k <= 1024 + 126;
}

/* Decodes 8-bit elements in pairs, one in each 16-bit half of a uint32. Shifts move the code from
 * the top of the half to the exponent and mantissa of a 16-bit float, and one exact multiplication
 * corrects the exponent bias. */
typedef struct bsmm_pair_codec {
    /* the shift and the mask of the magnitudes, for both halves of a register at once */
    uint32_t down, mask;
    /* The factor that moves a code from the top of a byte to its place. It is used for bf16
     * only. */
    uint32_t up;
    /* the power of two that corrects the exponent bias, in both halves of a register */
    uint32_t unbias;
    /* Addend for each byte that sets bit 7 exactly if the magnitude is not finite. */
    uint32_t special;
} bsmm_pair_codec;

/* The layout of scale codes that are stored as aligned uint32 words of four e8m0 or e4m3 codes.
 * Word w of row r begins at byte
 * r % 32 * low + r / 32 % 4 * middle + r / 128 * high + w * across. */
typedef struct bsmm_pack_words {
    uint32_t low, middle;
    uint64_t high, across;
} bsmm_pack_words;

/* The parameters of one launch of a packing kernel, which are passed by value. An item is the run
 * of elements along K that one thread loads at once. */
typedef struct bsmm_pack_job {
    const uint8_t *data;
    const uint8_t *scales;
    /* stride of rows, or of columns if the operand is in column order, in bytes */
    uint64_t line_bytes;
    uint32_t rows, cols;
    uint32_t scale; /* The type of the block scales, a value of the enum bsmm_scale. */
    uint32_t route; /* The packed format, a value of the enum bsmm_pack_route. */
    /* Nonzero if every item of the source is aligned and can be loaded at once. */
    uint32_t aligned;
    uint32_t lanes_log2; /* log2 of the number of neighboring threads that work along K */
    /* The number of neighboring threads (1, 2 or 4) whose items lie in one block. */
    uint32_t share;
    /* Nonzero if the scales of four consecutive blocks, beginning at a multiple of four, form one
     * aligned uint32. The value 2 means that `words` says where it lies. Blocks have 32 elements
     * for e8m0 and 16 for e4m3. */
    uint32_t fours;
    /* The range of block exponents that need no group scale, for the route BF16. */
    int32_t fit_low, fit_high;
    /* The largest power of two by which an element can be multiplied and stay exact in e4m3, for
     * the route FP8. */
    int32_t fold;
    /* Route FP8: number of binades from the largest block scale of a group down to the smallest
     * that still fits. Route FAST: number of binades by which a group's own scale and its block
     * scales may lie below the row's scale. */
    uint32_t window;
    /* the codec of the source's elements, and the codec of an 8-bit result */
    bsmm_narrow_codec codec, to;
    bsmm_pair_codec pair;
    /* These maps give the offset of the scale of an element's row and column. */
    bsmm_axis_map row_map, col_map;
    bsmm_pack_words words;
    void *elements;
    uint64_t element_pitch; /* stride of the packed rows, in bytes */
    /* The destination of the group scales. If it is NULL, a group whose scale is not 1 is marked
     * WIDE. */
    float *group_scales;
    /* the stride from the scales of one group of K to those of the next, in floats */
    uint64_t group_pitch;
    bsmm_pack_header *header;
} bsmm_pack_job;

/* Parameters for packing to bf16 by the blocks of a GEMM kernel (sm80/pack_plain.h). bf16 is known
 * to hold all the values without group scales. */
typedef struct bsmm_pack_plain {
    bsmm_pack_job job;      /* The job for elements of 4, 6 or 8 bits with e8m0 scales. */
    uint32_t bits, by_rows; /* The bits per element. by_rows is 1 if K is contiguous, else 0. */
    /* Number of parts into which a launch would split the packing: `columns` parts along K, `parts`
     * in all. */
    uint32_t columns, parts;
} bsmm_pack_plain;

/* Parameters for copying fp32 scales, each of which holds for 128 columns or more, to a layout that
 * TMA can load. The engine reads the elements in place. The result is fp32 [cols][pitch] with
 * element (r, c) at to[c * pitch + r]. Padding is 0. */
typedef struct bsmm_pack_scales_job {
    const float *scales;
    float *to;
    uint64_t row_pitch, col_pitch; /* strides of rows and columns of the destination, in floats */
    uint32_t rows, cols; /* Numbers of rows and columns of scales in `to`, including its padding. */
    /* The extent of the source in scales. Everything beyond it in the destination is padding and
     * becomes 0. */
    uint32_t known_rows, known_cols;
    bsmm_axis_map row_map, col_map;
} bsmm_pack_scales_job;

#endif
