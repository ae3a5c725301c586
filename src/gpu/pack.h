/* Packing converts an operand of any format to an operand that tensor cores can multiply: rows of
 * bf16, f16 or 8-bit floats with K contiguous, and one fp32 scale for each group. A group is 128
 * consecutive elements along K in one row.
 *
 *     value(r, k) = packed(r, k) * group_scale[k / 128][r] * global      (exact, except for FAST)
 *
 * `global` is the operand's second-level scale. A packed operand is one allocation of device
 * memory. bsmm_pack_layout_of (cuda/host/pack_plan.h) computes where its parts begin. A header of
 * 64 bytes comes first. The group scales follow, as fp32 [padded K / 128][rows padded to 4]. The
 * elements come last, row-major [rows][K padded to 128], with zeros past the end of K. With
 * BSMM_PACK_TWO_BF16 or BSMM_PACK_THREE_BF16 a packed element is the sum of two or three bf16
 * numbers. Padding rows are not stored, because TMA reads rows past the end as 0.
 *
 * Packing never loses a value silently. The packing kernels record the range of the values in the
 * header. Before a kernel multiplies two packed operands, it calls bsmm_pack_pair_fits on the
 * device. */
#ifndef BSMM_GPU_PACK_H
#define BSMM_GPU_PACK_H

#include "gpu/axis_map.h"
#include "gpu/codec.h"

enum { BSMM_PACK_GROUP = 128, BSMM_PACK_HEADER_BYTES = 64 };

/* A route selects the type of the packed elements and the treatment of block scales. */
typedef enum bsmm_pack_route {
    /* Packs to bf16. Supports elements of at most 8 bits, bf16 elements, and f16 and f32 operands
     * whose values bf16 holds exactly. */
    BSMM_PACK_BF16 = 0,
    /* BSMM_PACK_FP8 packs to 8-bit floats without rounding. Elements in e2m1, e2m3 and e3m2 with
     * e8m0 scales become e4m3. Each element is multiplied by its block scale divided by the scale
     * of its group (128 elements of a row). This quotient is a power of two, so only the exponent
     * of the element changes. If the largest and the smallest block scale of a group are more than
     * 14 (e2m1), 11 (e2m3) or 9 (e3m2) powers of two apart, e4m3 cannot hold all products. Packing
     * then sets the flag WIDE, i.e. "cannot be packed". 8-bit elements with fp32 scales or without
     * scales are copied to the packed order unchanged. */
    BSMM_PACK_FP8 = 1,
    /* Packs 8-bit elements with e8m0 scales to 8-bit floats. Each element is multiplied by its
     * block scale divided by the group scale, and the product is rounded.
     *
     * The absolute error of a packed element is at most 2^-10 for e4m3 and 2^-17 for e5m2, before
     * the group scale multiplies it. Only packed elements below 2^-6 (e4m3) or 2^-14 (e5m2) lose
     * bits to rounding.
     *
     * Let s be the smallest scale of a group (128 elements) with which none of its packed elements
     * overflows. With the scale s, the largest packed magnitude of the group is at least 240 (e4m3)
     * or 2^15 (e5m2). Each row also has a common scale: 2^2 times the largest block scale of the
     * row's first group. The factor 2^2 makes it likely that the common scale suits the other
     * groups too. A group gets the common scale of its row if this scale is at least s, at most 2^8
     * times s, and at most 2^8 times each block scale of the group. Otherwise the group gets the
     * scale s. If the operand contains Inf, packing sets the flag WIDE, i.e. "cannot be packed". */
    BSMM_PACK_FAST = 2,
    /* Packs each f16 element as two bf16 numbers (TWO) or each f32 element as three (THREE). The
     * sum of these bf16 parts is exactly the element. For each 64 elements of K, the first parts of
     * all elements are stored first, then all second parts, then all third parts. If a part is
     * subnormal, packing sets the flag WIDE, i.e. "cannot be packed". All parts of Inf are Inf, and
     * all parts of NaN are NaN. */
    BSMM_PACK_TWO_BF16 = 3,
    BSMM_PACK_THREE_BF16 = 4,
    BSMM_PACK_ROUTES /* BSMM_PACK_ROUTES is the number of routes. */
} bsmm_pack_route;

/* BSMM_PACK_TWO_BF16 and BSMM_PACK_THREE_BF16 split each element into bf16 parts. For each
 * BSMM_PACK_PART_COLS elements along K, they store the first parts of all these elements, then the
 * second parts, then the third parts. */
enum { BSMM_PACK_PART_COLS = 64 };

/* Returns the number of bf16 parts into which packing by the route `route` splits an element. It is
 * 1 for the routes BF16, FP8 and FAST. */
BSMM_SHARED uint32_t bsmm_pack_parts(uint32_t route) {
    return route == BSMM_PACK_TWO_BF16 ? 2 : route == BSMM_PACK_THREE_BF16 ? 3 : 1;
}

BSMM_SHARED bool bsmm_pack_is_bf16(uint32_t route) {
    return route != BSMM_PACK_FP8 && route != BSMM_PACK_FAST;
}

/* Describes a packed operand in a header, which summarizes the values of the whole operand. The
 * fields high, low and inner hold exponents of 2 with an offset of 512, which makes these fields
 * positive. They are 0 if every value is 0, Inf or NaN. Threads update the fields by atomic maxima,
 * so the order of the updates does not matter. */
typedef struct bsmm_pack_header {
    /* `flags` holds the problems that packing found, as bits of the enum bsmm_pack_flags. */
    uint32_t flags;
    /* `high` is 512 + h, where 2^h is a bound above the magnitudes of all finite values of the
     * operand. */
    uint32_t high;
    /* `low` is 512 - l, where 2^l is a lower bound of the magnitudes of all nonzero values of the
     * operand. */
    uint32_t low;
    /* `inner` is 512 - i, where every nonzero packed element has at least the magnitude 2^i. */
    uint32_t inner;
    uint32_t reserved[12];
} bsmm_pack_header;

typedef enum bsmm_pack_flags {
    /* BSMM_PACK_SCALED: at least one group (128 elements of a row) has a scale other than 1. */
    BSMM_PACK_SCALED = 1,
    /* BSMM_PACK_WIDE: at least one group (128 elements of a row) cannot be packed, because no
     * packed elements and group scale give exactly the values of the group's elements. */
    BSMM_PACK_WIDE = 2,
    /* BSMM_PACK_UNEVEN: the groups (128 elements) of at least one row may have different scales.
     * Only packing to 8-bit floats (the routes FP8 and FAST) sets this flag, when it packs elements
     * with e8m0 scales. */
    BSMM_PACK_UNEVEN = 4
} bsmm_pack_flags;

/* Returns true if packing of both operands succeeded (without the flag WIDE) and fp32 is sufficient
 * for the product of the operands. fp32's normal range must hold all products of elements, all dot
 * products over K <= 2^log2_k, and all dot products times their group scales. This assumes that the
 * kernel first multiplies the group scales of A and B with each other, and then multiplies a dot
 * product by the result. */
BSMM_SHARED bool bsmm_pack_pair_fits(const bsmm_pack_header *a, const bsmm_pack_header *b,
                                     uint32_t log2_k) {
    bool fits = !((a->flags | b->flags) & BSMM_PACK_WIDE);
    if (!a->high || !b->high) return fits; /* One operand has only 0, Inf and NaN. */
    return fits && a->low + b->low <= 1024 + 110 && a->inner + b->inner <= 1024 + 110 &&
           a->high + b->high + log2_k <= 1024 + 126;
}

/* Returns true if bf16 without group scales can hold all values of an operand that was packed to 8
 * bits. More exactly, it must be able to hold all values that the block scales allow, i.e. also the
 * product of each block's scale and the largest element of the format.
 *
 * In exact packing (route FP8), the header `h` gives the range of the values that the scales allow.
 * `slack` is then 0. In packing with rounding (route FAST), the header gives only the range of the
 * actual values. The largest element of a block may be smaller than the largest element of the
 * format, by up to `slack` binades. The scales may therefore allow values that are larger by as
 * many binades, so the function adds `slack` to the upper end of the range. */
BSMM_SHARED bool bsmm_pack_is_plain(const bsmm_pack_header *h, uint32_t slack) {
    return !h->high || (h->high + slack <= 512 + 127 && h->low <= 512 + 126);
}

BSMM_SHARED bool bsmm_pack_pair_plain(const bsmm_pack_header *a, const bsmm_pack_header *b,
                                      uint32_t slack, uint32_t log2_k) {
    if (!bsmm_pack_is_plain(a, slack) || !bsmm_pack_is_plain(b, slack)) return false;
    if (!a->high || !b->high) return true;
    return a->low + b->low <= 1024 + 110 && a->high + b->high + log2_k <= 1024 + 126;
}

/* Returns true if f16 holds every value of an operand, times 2^shift, exactly. The caller has
 * packed the operand to bf16 or f16 without group scales, and its elements have at most 8 bits. No
 * value therefore has more than 8 significant bits. f16 holds such a number exactly if it is a
 * multiple of 2^-24 and below 2^16. The header gives the range of the operand's values. */
BSMM_SHARED bool bsmm_pack_is_half(const bsmm_pack_header *h, uint32_t shift) {
    if (h->flags) return false;
    return !h->high || (h->high + shift <= 512 + 16 && h->low <= 512 + 24 + shift);
}

/* Holds the constants that decode two 8-bit codes at a time to f16 or bf16. Each code begins at the
 * top of a 16-bit half of a uint32. Shifts move it to the exponent and mantissa of the 16-bit
 * float. The result still has the exponent bias of the 8-bit format. One exact multiplication by a
 * power of two corrects this. */
typedef struct bsmm_pair_codec {
    /* Magnitudes are shifted right by `down` bits, and `mask` selects the bits that are kept. Both
     * apply to the two halves of a register at once. */
    uint32_t down, mask;
    /* Multiplying by `up` moves a code from the top of a byte to the exponent and mantissa of a
     * 16-bit float. The multiplication is a left shift of both 16-bit halves of a word at once.
     * Only packing to bf16 or f16 uses it. */
    uint32_t up;
    /* `unbias` is the power of two that corrects the exponent bias, in both halves of a
     * register. */
    uint32_t unbias;
    /* `special` is a number that is added to each magnitude, one per byte. Bit 7 of the sum is set
     * if the magnitude is Inf or NaN, and clear otherwise. */
    uint32_t special;
} bsmm_pair_codec;

/* Tells where scale codes of one byte lie in memory, in row-major or tiled layouts. An aligned
 * uint32 word holds the codes of four consecutive blocks of a row. Word w of row r, i.e. the codes
 * of blocks 4 w to 4 w + 3, begins at byte r % 32 * low + r / 32 % 4 * middle + r / 128 * high + w
 * * across. */
typedef struct bsmm_pack_words {
    uint32_t low, middle;
    uint64_t high, across;
} bsmm_pack_words;

/* Holds the parameters of one launch of a packing kernel, passed by value. An item is the
 * consecutive elements along K that one thread loads at once: 8 elements if the result is bf16,
 * else 16. */
typedef struct bsmm_pack_job {
    const uint8_t *data;
    const uint8_t *scales;
    /* `line_bytes` is the stride in bytes of the operand's rows, or of its columns if it is
     * column-major. */
    uint64_t line_bytes;
    uint32_t rows, cols;
    uint32_t scale; /* `scale` is the type of the block scales, a value of the enum bsmm_scale. */
    uint32_t route; /* `route` says to which format the operand is packed, by a value of the enum
                       bsmm_pack_route. */
    /* `aligned` is nonzero if the elements that a thread loads at once are always aligned, so that
     * one instruction can load them. */
    uint32_t aligned;
    /* `lanes_log2` is the log2 of the number of adjacent threads that pack adjacent elements of one
     * row. */
    uint32_t lanes_log2;
    /* `scale_lanes` is the number of adjacent threads (1, 2 or 4) that have elements in the same
     * scale block. */
    uint32_t scale_lanes;
    /* `fours` is nonzero if a thread can load the scale codes of four consecutive blocks of a row
     * (the first of which is a multiple of four) as one aligned uint32. If it is 1, the codes lie
     * at the offset of the first block's scale; if it is 2, `words` tells where they lie. Blocks
     * have 32 elements if scales are e8m0 and 16 if they are e4m3. */
    uint32_t fours;
    /* These fields are for packing to bf16 or f16 (route BF16). A kernel can take its fast path if
     * the exponents of block scales lie between fit_low and fit_high. For bf16, a group (128
     * elements of a row) then gets the scale 1. */
    int32_t fit_low, fit_high;
    /* `fold` is the exponent of a power of two. In packing to f16, all values are multiplied by
     * 2^fold. In exact packing to 8-bit floats (route FP8), 2^fold is the largest power of two for
     * which e4m3 holds exactly the product of the power and each element of the operand's
     * format. */
    int32_t fold;
    /* `window` is a number of binades. In exact packing to 8-bit floats (route FP8), a group (128
     * elements of a row) can be packed with one scale only if its block scales differ by at most
     * `window` binades. In packing with rounding (route FAST), `window` is the condition for the
     * common scale of a row: a group can use it only if the smallest scale that the group could
     * have, and all of its block scales, are at most `window` binades smaller than the common
     * scale. */
    uint32_t window;
    /* `codec` holds the constants that decode the operand's elements. `to` holds the constants that
     * encode packed elements of 8 bits. */
    bsmm_narrow_codec codec, to;
    bsmm_pair_codec pair;
    /* The offset of an element's scale is the sum of two numbers: the value of row_map for the
     * element's row, and the value of col_map for its column. */
    bsmm_axis_map row_map, col_map;
    bsmm_pack_words words;
    void *elements;
    uint64_t element_pitch; /* `element_pitch` is the stride of packed rows in bytes. */
    /* The kernel stores the group scales at `group_scales`, one fp32 number for each group of 128
     * elements of a row. NULL means that there is no room for group scales, so each group must be
     * packed with the scale 1. If this is impossible for a group, the kernel sets the flag WIDE,
     * i.e. "cannot be packed". */
    float *group_scales;
    /* `group_pitch` is the distance in floats in group_scales from the scales of all rows for one
     * group (128 elements along K) to the scales of all rows for the next group. */
    uint64_t group_pitch;
    bsmm_pack_header *header;
} bsmm_pack_job;

/* Holds the parameters with which a GEMM kernel itself packs an operand to bf16
 * (sm80/pack_plain.h). It does so if bf16 holds all values of the operand without group scales. */
typedef struct bsmm_pack_plain {
    /* `job` holds the parameters of a packing kernel for elements of 4, 6 or 8 bits with e8m0
     * scales. */
    bsmm_pack_job job;
    /* `bits` is the number of bits per element. `by_rows` is 1 if K is contiguous, else 0. */
    uint32_t bits, by_rows;
    /* A GEMM kernel divides the packing into parts, each as large as the work of one thread block
     * of a packing kernel. `columns` is the number of parts along K, and `parts` is the number of
     * all parts. */
    uint32_t columns, parts;
} bsmm_pack_plain;

/* Holds the parameters for converting a packed operand in place from bf16 to f16. The kernel
 * multiplies each element by 2^shift. */
typedef struct bsmm_pack_half_job {
    uint32_t *words; /* `words` holds the packed elements, two in each word. */
    uint64_t quads;  /* `quads` is the number of groups of four words. */
    uint32_t shift;
    /* `header` is the header of the packed operand. The kernel does nothing if f16 does not hold
     * the operand's values (bsmm_pack_is_half). NULL means that f16 always holds the values of this
     * format. */
    const bsmm_pack_header *header;
} bsmm_pack_half_job;

/* Holds the parameters of the kernel that copies an operand's fp32 scales to a layout that TMA can
 * load. The kernel is used if the GEMM kernel reads the operand's elements where the caller stores
 * them. Each scale covers 128 columns or more. Scale (r, c) of the result lies at to[r * row_pitch
 * + c * col_pitch]. Padding is 0. */
typedef struct bsmm_pack_scales_job {
    const float *scales;
    float *to;
    /* `row_pitch` and `col_pitch` are the strides of rows and columns of the destination, in
     * floats. */
    uint64_t row_pitch, col_pitch;
    /* `rows` and `cols` are the numbers of rows and columns of scales in `to`, including its
     * padding. */
    uint32_t rows, cols;
    /* The source has known_rows rows and known_cols columns of scales. Everything beyond them in
     * `to` is padding. */
    uint32_t known_rows, known_cols;
    bsmm_axis_map row_map, col_map;
} bsmm_pack_scales_job;

#endif
