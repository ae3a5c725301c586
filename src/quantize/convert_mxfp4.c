/* Converts mxfp4 to nvfp4, and to fp8 with f32 scales, without rounding. Each mxfp4 block has an
 * e8m0 scale 2^k. The conversion chooses one outer scale 2^m for several blocks, and each block
 * keeps the rest 2^(k - m).
 *
 *   nvfp4: 2^m is the second-level scale, and 2^(k - m) is the e4m3 scale of a block. e4m3 holds
 *          2^-9 to 2^8, so m is the largest k minus 8.
 *   fp8:   2^m is the f32 scale, and the e4m3 element is x * 2^(k - m) for the e2m1 element x. e4m3
 *          holds every e2m1 value times 2^-8 to 2^6, so m is the largest k minus 6.
 *
 * m is at least -126, so that the outer scale is a normal fp32 number. This limit excludes no
 * matrix, because k is never below -127. A block of zeros fits any scale, so it does not influence
 * the choice of m. */
#include "quantize/convert.h"

#include "base/threads.h"

#include <string.h>

enum { NONE = INT16_MIN, NAN_CODE = 255, BIAS = 127, LEAST_NORMAL = -126 };

/* The conversion splits the scale 2^k of each mxfp4 block into a scale 2^m, which several blocks
 * share, and the quotient 2^(k - m). In nvfp4 the quotient becomes an e4m3 block scale. In FP8 the
 * e4m3 elements are multiplied by the quotient. `split_rule` holds the limits of k - m within which
 * the quotient, or the product of the quotient and an element, is exact in e4m3. */
typedef struct split_rule {
    /* A block has the scale 2^k, and several blocks share the scale 2^m. In the destination format,
     * something must represent the remaining factor 2^(k - m) of a block, for example the block's
     * own scale. This is possible if bottom <= k - m <= top. `holder` names what represents the
     * factor, for messages. */
    int top, bottom;
    const char *holder;
} split_rule;

static const split_rule nvfp4_rule = {8, -9, "an e4m3 scale"};
static const split_rule fp8_rule = {6, -8, "an e4m3 element"};

static uint32_t scale_code(const bsmm_operand *src, int64_t r, int64_t block) {
    return bsmm_scale_load_code(BSMM_SCALE_E8M0, src->m.scales,
                                bsmm_scale_map_at(&src->map, r, block));
}

enum { RUN = 256 };

/* Tells whether n packed e2m1 codes, in whole bytes, are all zero (+0 or -0). */
static bool bytes_are_zero(const uint8_t *codes, int64_t n) {
    uint8_t any = 0;
    for (int64_t i = 0; i < n; i++)
        any |= codes[i];
    return (any & 0x77) == 0;
}

static bool block_is_zero(const bsmm_operand *src, int64_t r, int64_t block) {
    uint16_t codes[RUN];
    int64_t width = src->m.format.block_cols, begin = block * width;
    int64_t end = bsmm_min_i64(begin + width, src->m.cols);
    if (src->m.order == BSMM_ORDER_ROW && width % 2 == 0 && end == begin + width)
        return bytes_are_zero((const uint8_t *)src->m.data + bsmm_operand_index(src, r, begin) / 2,
                              width / 2);
    for (int64_t c = begin; c < end; c += RUN) {
        int64_t n = bsmm_min_i64(RUN, end - c);
        bsmm_codes_load(src, r, c, n, codes);
        for (int64_t i = 0; i < n; i++)
            if (codes[i] & 7) return false;
    }
    return true;
}

static bsmm_status nan_block(int64_t r, int64_t block) {
    return bsmm_fail(BSMM_E_RANGE,
                     "src.scales: block (row %lld, block column %lld) is NaN; only finite blocks "
                     "can be converted",
                     (long long)r, (long long)block);
}

/* A region consists of mxfp4 blocks that share one outer scale 2^m: block rows [r0, r1) and block
 * columns [b0, b1). */
typedef struct region {
    int64_t r0, r1, b0, b1;
} region;

/* Finds the largest scale exponent of those blocks of the region `g` that are not all zero.
 * *largest is NONE if all blocks are zero. */
static bsmm_status largest_exponent(const bsmm_operand *src, region g, int *largest) {
    *largest = NONE;
    for (int64_t r = g.r0; r < g.r1; r++)
        for (int64_t b = g.b0; b < g.b1; b++) {
            uint32_t code = scale_code(src, r, b);
            if (code == NAN_CODE) return nan_block(r, b);
            int exponent = (int)code - BIAS;
            if (exponent > *largest && !block_is_zero(src, r, b)) *largest = exponent;
        }
    return BSMM_OK;
}

static int outer_exponent(int largest, const split_rule *rule) {
    if (largest == NONE) return 0;
    int outer = largest - rule->top;
    return outer < LEAST_NORMAL ? LEAST_NORMAL : outer;
}

static bsmm_status check_spread(const bsmm_operand *src, region g, int largest,
                                const split_rule *rule) {
    int outer = outer_exponent(largest, rule);
    for (int64_t r = g.r0; r < g.r1; r++)
        for (int64_t b = g.b0; b < g.b1; b++) {
            int exponent = (int)scale_code(src, r, b) - BIAS;
            if (exponent - outer >= rule->bottom || block_is_zero(src, r, b)) continue;
            return bsmm_fail(BSMM_E_RANGE,
                             "src.scales: block (row %lld, block column %lld) has exponent %d, the "
                             "largest that shares its outer scale has %d; %s holds a spread of %d",
                             (long long)r, (long long)b, exponent, largest, rule->holder,
                             rule->top - rule->bottom);
        }
    return BSMM_OK;
}

/* Chooses the exponent m of the outer scale 2^m that all mxfp4 blocks of a region share. The scale
 * 2^k of a block becomes 2^(k - m). Fails if k - m is outside the range that `rule` allows. */
static bsmm_status choose_outer(const bsmm_operand *src, region g, const split_rule *rule,
                                int *outer) {
    int largest;
    BSMM_TRY(largest_exponent(src, g, &largest));
    BSMM_TRY(check_spread(src, g, largest, rule));
    *outer = outer_exponent(largest, rule);
    return BSMM_OK;
}

/* A block scale 2^k is stored as the product of the outer scale 2^m and an inner scale 2^e with e =
 * k - m. Returns the exponent e of one block's inner scale. A block of zeros fits any scale, so its
 * exponent is clamped to the range that `rule` allows. */
static int inner_exponent(const bsmm_operand *src, int64_t r, int64_t block, int outer,
                          const split_rule *rule) {
    int inner = (int)scale_code(src, r, block) - BIAS - outer;
    return inner > rule->top ? rule->top : inner < rule->bottom ? rule->bottom : inner;
}

static float power_of_two(int exponent) {
    return bsmm_bits_float((uint32_t)(exponent + BIAS) << 23);
}

static bool is_mxfp4(const bsmm_format *f) {
    return f->elem == BSMM_ELEM_E2M1 && f->scale == BSMM_SCALE_E8M0 && f->block_rows == 1;
}

static bool takes_nvfp4(const bsmm_format *src, const bsmm_format *dst) {
    return is_mxfp4(src) && dst->elem == BSMM_ELEM_E2M1 && dst->scale == BSMM_SCALE_E4M3 &&
           dst->block_rows == 1 && src->block_cols % dst->block_cols == 0;
}

static void store_nvfp4_scales(const bsmm_operand *src, const bsmm_operand *dst, int64_t r,
                               int outer) {
    int64_t parts = src->m.format.block_cols / dst->m.format.block_cols;
    uint32_t code = 0;
    for (int64_t b = 0; b < dst->map.cols; b++) {
        if (b % parts == 0)
            code =
                bsmm_e4m3_code(power_of_two(inner_exponent(src, r, b / parts, outer, &nvfp4_rule)));
        bsmm_scale_store_code(BSMM_SCALE_E4M3, dst->m.scales, bsmm_scale_map_at(&dst->map, r, b),
                              code);
    }
}

typedef struct nvfp4_run {
    const bsmm_operand *src, *dst;
    int outer;
} nvfp4_run;

static void store_nvfp4_rows(const void *context, int64_t first, int64_t end, int worker) {
    const nvfp4_run *x = context;
    (void)worker;
    for (int64_t r = first; r < end; r++)
        store_nvfp4_scales(x->src, x->dst, r, x->outer);
}

static bsmm_status run_nvfp4(const bsmm_operand *src, const bsmm_operand *dst,
                             const bsmm_place *place) {
    int outer;
    if (!dst->m.global_scale)
        return bsmm_fail(BSMM_E_INVALID, "dst.global_scale: value is NULL; must be given, for the "
                                         "conversion chooses it");
    if (src->m.global_scale)
        return bsmm_fail(BSMM_E_INVALID, "src.global_scale: given; must be NULL for mxfp4");
    BSMM_TRY(choose_outer(src, (region){0, src->map.rows, 0, src->map.cols}, &nvfp4_rule, &outer));
    const nvfp4_run x = {src, dst, outer};
    const bsmm_loop loop = {
        .threads = place->threads, .count = src->m.rows, .body = store_nvfp4_rows, .context = &x};
    BSMM_TRY(bsmm_loop_run(&loop, &place->pool));
    BSMM_TRY(bsmm_codes_copy(src, dst, place));
    bsmm_scales_pad(dst, 0, dst->map.rows);
    bool divides = dst->m.global_kind == BSMM_GLOBAL_DIVISOR;
    *dst->m.global_scale = power_of_two(divides ? -outer : outer);
    return BSMM_OK;
}

const bsmm_conversion bsmm_convert_mxfp4_nvfp4 = {"mxfp4 to nvfp4", takes_nvfp4, run_nvfp4};

static bool takes_fp8(const bsmm_format *src, const bsmm_format *dst) {
    return is_mxfp4(src) && dst->elem == BSMM_ELEM_E4M3 && dst->scale == BSMM_SCALE_F32 &&
           dst->block_cols % src->block_cols == 0;
}

/* A block of dst covers several blocks of src, which all get the scale of the dst block. Returns
 * the region of src's blocks that block (tr, tc) of dst covers. */
static region region_of(const bsmm_operand *src, const bsmm_operand *dst, int64_t tr, int64_t tc) {
    int64_t height = dst->m.format.block_rows;
    int64_t width = dst->m.format.block_cols / src->m.format.block_cols;
    return (region){tr * height, bsmm_min_i64((tr + 1) * height, src->m.rows), tc * width,
                    bsmm_min_i64((tc + 1) * width, src->map.cols)};
}

/* Converting mxfp4 to FP8 puts several blocks of mxfp4 into one block of FP8. If the block of FP8
 * has the scale 2^m and a block of mxfp4 has the scale 2^k, the elements of the latter are
 * multiplied by 2^(k - m). `shifted` holds the tables for one value of k - m. codes[c] is the e4m3
 * code of 2^(k - m) times the value of the e2m1 code c. pairs[b] has the two e4m3 codes for the two
 * e2m1 codes in the byte b. */
typedef struct shifted {
    uint16_t codes[16];
    uint8_t pairs[256][2];
} shifted;

static shifted shift_codes(int inner) {
    shifted table;
    for (uint32_t code = 0; code < 16; code++)
        table.codes[code] = (uint16_t)bsmm_elem_encode(
            BSMM_ELEM_E4M3, bsmm_elem_decode(BSMM_ELEM_E2M1, code) * (double)power_of_two(inner),
            true);
    for (int byte = 0; byte < 256; byte++) {
        table.pairs[byte][0] = (uint8_t)table.codes[byte & 0xf];
        table.pairs[byte][1] = (uint8_t)table.codes[byte >> 4];
    }
    return table;
}

/* Converts the e2m1 elements of one block of src to e4m3 elements of dst, two codes at a time.
 * table->pairs maps a byte of src (two codes) to two bytes of dst. The block must consist of whole
 * bytes, and its codes must be adjacent in src and in dst. */
static void store_pairs(const bsmm_operand *src, const bsmm_operand *dst, int64_t r, int64_t c,
                        int64_t width, const shifted *table) {
    const uint8_t *from = (const uint8_t *)src->m.data + bsmm_operand_index(src, r, c) / 2;
    uint8_t *to = (uint8_t *)dst->m.data + bsmm_operand_index(dst, r, c);
    for (int64_t i = 0; i < width / 2; i++)
        memcpy(to + 2 * i, table->pairs[from[i]], 2);
}

static void store_fp8_block(const bsmm_operand *src, const bsmm_operand *dst, int64_t r,
                            int64_t block, const shifted *table) {
    uint16_t codes[RUN];
    int64_t width = src->m.format.block_cols, begin = block * width;
    int64_t end = bsmm_min_i64(begin + width, src->m.cols);
    bool in_rows = src->m.order == BSMM_ORDER_ROW && dst->m.order == BSMM_ORDER_ROW;
    if (in_rows && width % 2 == 0 && end == begin + width) {
        store_pairs(src, dst, r, begin, width, table);
        return;
    }
    for (int64_t c = begin; c < end; c += RUN) {
        int64_t n = bsmm_min_i64(RUN, end - c);
        bsmm_codes_load(src, r, c, n, codes);
        for (int64_t i = 0; i < n; i++)
            codes[i] = table->codes[codes[i]];
        bsmm_codes_store(dst, r, c, n, codes);
    }
}

enum { SHIFTS = 15 }; /* SHIFTS is the number of values of k - m that fp8_rule allows: -8 to 6. */

static void store_fp8_tile(const bsmm_operand *src, const bsmm_operand *dst, region g, int outer,
                           const shifted tables[SHIFTS]) {
    for (int64_t r = g.r0; r < g.r1; r++)
        for (int64_t b = g.b0; b < g.b1; b++) {
            int inner = inner_exponent(src, r, b, outer, &fp8_rule);
            store_fp8_block(src, dst, r, b, &tables[inner - fp8_rule.bottom]);
        }
}

static bsmm_status check_tiles(const bsmm_operand *src, const bsmm_operand *dst) {
    int outer;
    for (int64_t tr = 0; tr < dst->map.rows; tr++)
        for (int64_t tc = 0; tc < dst->map.cols; tc++)
            BSMM_TRY(choose_outer(src, region_of(src, dst, tr, tc), &fp8_rule, &outer));
    return BSMM_OK;
}

/* Converts all elements that one row of dst's blocks covers. The caller has checked that every
 * block fits dst's format. */
static void store_fp8_row(const bsmm_operand *src, const bsmm_operand *dst, int64_t tr,
                          const shifted tables[SHIFTS]) {
    int largest;
    for (int64_t tc = 0; tc < dst->map.cols; tc++) {
        region g = region_of(src, dst, tr, tc);
        largest_exponent(src, g, &largest);
        int outer = outer_exponent(largest, &fp8_rule);
        bsmm_scale_store_code(BSMM_SCALE_F32, dst->m.scales, bsmm_scale_map_at(&dst->map, tr, tc),
                              bsmm_float_bits(power_of_two(outer)));
        store_fp8_tile(src, dst, g, outer, tables);
    }
}

typedef struct fp8_run {
    const bsmm_operand *src, *dst;
    /* Each region of blocks has an outer scale. A block's scale divided by the outer scale of its
     * region is a power of two with one of SHIFTS exponents. `tables` has one table for each of
     * these exponents. */
    const shifted *tables;
} fp8_run;

static void store_fp8_rows(const void *context, int64_t first, int64_t end, int worker) {
    const fp8_run *x = context;
    (void)worker;
    for (int64_t tr = first; tr < end; tr++)
        store_fp8_row(x->src, x->dst, tr, x->tables);
}

static bsmm_status run_fp8(const bsmm_operand *src, const bsmm_operand *dst,
                           const bsmm_place *place) {
    shifted tables[SHIFTS];
    if (src->m.global_scale || dst->m.global_scale)
        return bsmm_fail(BSMM_E_INVALID, "global_scale: given; must be NULL for mxfp4 to fp8");
    BSMM_TRY(check_tiles(src, dst));
    for (int i = 0; i < SHIFTS; i++)
        tables[i] = shift_codes(fp8_rule.bottom + i);
    const fp8_run x = {src, dst, tables};
    const bsmm_loop loop = {
        .threads = place->threads, .count = dst->map.rows, .body = store_fp8_rows, .context = &x};
    BSMM_TRY(bsmm_loop_run(&loop, &place->pool));
    bsmm_scales_pad(dst, 0, dst->map.rows);
    return BSMM_OK;
}

const bsmm_conversion bsmm_convert_mxfp4_fp8 = {"mxfp4 to fp8 with f32 scales (fp8_block128)",
                                                takes_fp8, run_fp8};
