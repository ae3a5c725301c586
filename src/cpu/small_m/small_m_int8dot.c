/* Packs operands, prepares scales and checks formats for the int8 small-M kernels of all
 * instruction sets (small_m_int8dot.h). */
#include "cpu/small_m/small_m_int8dot.h"

#include <string.h>

enum { LANES = BSMM_SMALL_M_LANES };

bool bsmm_small_m_int8_has_fours(const bsmm_product *p) {
    return bsmm_elem_row(p->b.m.format.elem)->bits == 4;
}

bsmm_int8_scaling bsmm_int8_scaling_of(const bsmm_product *p) {
    if (bsmm_int8_by_exponent(p)) return BSMM_INT8_EXPONENT;
    return p->b.m.format.scale == BSMM_SCALE_E4M3 ? BSMM_INT8_E4M3 : BSMM_INT8_E8M0;
}

/* Returns the binary logarithm of a power of two by which the kernel multiplies the scales of A.
 * The factor corrects two errors of results. First, packing replaces the elements of B by multiples
 * of them, which are integers. Second, e4m3 scales of B may be read as f16, which gives 2^-8 times
 * their values. */
static int moved_exponent(const bsmm_product *p) {
    return (bsmm_int8_scaling_of(p) == BSMM_INT8_E4M3 ? 8 : 0) -
           bsmm_pack_table_of(p->b.m.format.elem)->log2_multiple;
}

/* Changes the order of each eight elements of K in packed A: the even elements come first, then the
 * odd ones. */
static void part_even_and_odd(uint8_t *groups, int64_t width, int64_t unit) {
    uint32_t *at = (uint32_t *)(void *)groups;
    for (int64_t g = 0; g < unit / 4; g += 2, at += 2 * width)
        for (int64_t i = 0; i < width; i++) {
            uint32_t x = at[i], y = at[width + i], swapped_x = x >> 8, swapped_y = y >> 8;
            at[i] = (x & 0xff) | (x >> 8 & 0xff00) | (y & 0xff) << 16 | (y & 0xff0000) << 8;
            at[width + i] = (swapped_x & 0xff) | (swapped_x >> 8 & 0xff00) |
                            (swapped_y & 0xff) << 16 | (swapped_y & 0xff0000) << 8;
        }
}

/* Multiplies `width` scales by 2^exponent, by adding to their exponents. If by_exponent is true, a
 * scale is stored as an exponent in the position of fp32's exponent bits. Otherwise it is an fp32
 * number that is normal or 0; a scale of 0 stays 0. */
static void shift_scales(int32_t *scales, int64_t width, int exponent, bool by_exponent) {
    for (int64_t i = 0; i < width; i++)
        if (by_exponent || scales[i]) scales[i] += exponent * (1 << 23);
}

static void adapt(const bsmm_product *p, uint8_t *units, int64_t width, bool is_a) {
    int64_t unit = bsmm_int8_unit(p),
            bytes = BSMM_INT8_UNIT_BYTES(width, unit, is_a ? BSMM_INT8_A : BSMM_INT8_B);
    for (int64_t k = 0; k < p->a.m.cols; k += unit, units += bytes) {
        if (bsmm_small_m_int8_has_fours(p)) part_even_and_odd(units, width, unit);
        shift_scales((int32_t *)(void *)(units + width * (unit + (is_a ? 4 : 0))), width,
                     is_a ? moved_exponent(p) : -moved_exponent(p), bsmm_int8_by_exponent(p));
    }
}

void bsmm_small_m_int8_pack_a(const bsmm_product *p, int64_t width, int64_t row, int64_t rows,
                              bsmm_panel *to) {
    bsmm_int8_pack(p, BSMM_INT8_A, width, bsmm_int8_unit(p), row, rows, to);
    adapt(p, to->units, width, true);
}

static void pack_b(const bsmm_product *p, int64_t row, int64_t rows, bsmm_panel *to) {
    bsmm_int8_pack(p, BSMM_INT8_B, LANES, bsmm_int8_unit(p), row, rows, to);
    adapt(p, to->units, LANES, false);
}

bsmm_small_m_engine bsmm_small_m_int8_engine_of(const bsmm_product *p, int64_t width) {
    int64_t unit = bsmm_int8_unit(p);
    return (bsmm_small_m_engine){
        .width = width,
        .panels = 1,
        .group = BSMM_SMALL_M_GROUP,
        .read_group = BSMM_SMALL_M_GROUP,
        .unit = unit,
        .a_unit_bytes = (uint64_t)BSMM_INT8_UNIT_BYTES(width, unit, BSMM_INT8_A),
        .b_unit_bytes = (uint64_t)BSMM_INT8_UNIT_BYTES(LANES, unit, BSMM_INT8_B),
        .scale_unit = unit,
        .pack_a = bsmm_small_m_int8_pack_a,
        .pack_b = pack_b,
    };
}

/* Returns true if the loops that read B without packing it can use a scale code as it is. These are
 * the codes that the packer would not change, either: e8m0 from 2^-50 to 2^50, and all e4m3 codes
 * except NaN. */
static bool is_usual(uint32_t scale, uint8_t code) {
    if (scale == BSMM_SCALE_E8M0) return code >= 127 - 50 && code <= 127 + 50;
    return (code & 0x7f) != 0x7f;
}

/* Returns true if the loops can use a scale code. They can use every code that the packer would not
 * change. If the packer would change the code, the function checks whether all elements of the
 * code's block are zero and the code is not NaN. If so, it replaces the code by the code of 1, as
 * the packer does, and returns true. Otherwise it returns false, and the panel (16 rows of B) must
 * be packed. */
static bool replace_unusual(const bsmm_small_m_scales *s, int64_t unit, int64_t lane) {
    uint32_t scale = s->p->b.m.format.scale;
    uint8_t *code = &s->codes[unit * LANES + lane];
    if (is_usual(scale, *code)) return true;
    bool is_nan = scale == BSMM_SCALE_E8M0 ? *code == 0xff : (*code & 0x7f) == 0x7f;
    int64_t row = s->row + bsmm_min_i64(lane, s->rows - 1), length = bsmm_int8_unit(s->p);
    if (is_nan || !bsmm_small_m_is_empty(&s->p->b, row, unit * length, length)) return false;
    *code = scale == BSMM_SCALE_E8M0 ? 127 : 0x38;
    return true;
}

/* Checks all scale codes of a panel (16 rows of B). The packer uses most codes unchanged, and the
 * multiply loops can read such codes as they are. Other codes are called unusual, and
 * replace_unusual tries to replace them. Returns false if that fails for a code; the panel must
 * then be packed. find_unusual finds the unusual codes of four units (ranges of K with one scale
 * per row) at once. They are rare, so the inner loop is rarely entered. */
bool bsmm_small_m_int8_prepare(const bsmm_small_m_scales *s, bsmm_int8_find_unusual *find_unusual) {
    uint32_t scale = s->p->b.m.format.scale;
    if (scale == BSMM_SCALE_NONE) memset(s->codes, 127, (size_t)(s->units * LANES));
    for (int64_t i = 0; i < s->units; i += 4) {
        uint64_t unusual = find_unusual(s->codes + i * LANES, scale == BSMM_SCALE_E4M3);
        for (; unusual; unusual &= unusual - 1) {
            int at = __builtin_ctzll(unusual);
            if (i + at / LANES >= s->units) break;
            if (!replace_unusual(s, i + at / LANES, at % LANES)) return false;
        }
    }
    return true;
}

const char *bsmm_small_m_int8_refuse(const bsmm_product *p, char *why, size_t size) {
    const char *reason = bsmm_pack_refuse(p, bsmm_int8_refuse, why, size);
    if (reason) return reason;
    if (p->b.m.format.scale == BSMM_SCALE_F32)
        return "B has f32 scales; the kernel takes only scales of 8 bits";
    return NULL;
}
