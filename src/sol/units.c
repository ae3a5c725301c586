/* Lists the matrix units that can multiply an operand of a given format. They read the format
 * directly, or read another format to which a kernel can convert every value exactly
 * (docs/notes/speed-of-light.md shows the table). The list ignores rare values for which the
 * conversion fails and which a kernel handles on a slow path. For example, OCP's 8-bit formats are
 * converted to fnuz formats by keeping the code, which halves the value. This fails for NaN and -0.
 * Another example is a matrix whose block exponents differ so much that the elements, multiplied by
 * them, do not fit into the matrix unit's format. */
#include "sol/sol.h"

#define S(name) (1u << BSMM_SCALE_##name)
#define U(name) (1u << BSMM_UNIT_##name)

enum {
    SCALES_ANY = ~0,
    SCALES_POW2 = S(NONE) | S(E8M0),
    TRAITS_8 = BSMM_SOL_OCP8 | BSMM_SOL_FNUZ8,
    BOTH_16 = U(F16) | U(BF16),
    BOTH_4 = U(F4_MX) | U(F4_NV)
};

/* The rules below use these classes of element formats. The classes are computed from the
 * properties of the formats, so a new element format needs no change here. */
static bool any(uint32_t elem) {
    return elem < BSMM_ELEM_COUNT;
}
static bool is_f16(uint32_t elem) {
    return elem == BSMM_ELEM_F16;
}
static bool is_bf16(uint32_t elem) {
    return elem == BSMM_ELEM_BF16;
}
static bool up_to_8_bits(uint32_t elem) {
    return bsmm_elem_is_narrow(elem);
}
static bool is_fnuz(uint32_t elem) {
    return bsmm_elem_is_narrow(elem) && bsmm_elem_traits_of[elem].lone_nan;
}
static bool narrow_but_fnuz(uint32_t elem) {
    return bsmm_elem_is_narrow(elem) && !is_fnuz(elem);
}
static bool up_to_6_bits(uint32_t elem) {
    return bsmm_elem_is_narrow(elem) && bsmm_elem_row(elem)->bits <= 6;
}
static bool is_e2m1(uint32_t elem) {
    return elem == BSMM_ELEM_E2M1;
}
static bool small_integers(uint32_t elem) {
    return elem < BSMM_ELEM_COUNT && bsmm_elem_traits_of[elem].small_integer;
}

/* Each rule permits some arithmetic units (`units`) for an operand, because the unit can multiply
 * it exactly. The rule applies if four conditions hold. `elems` returns true for the element
 * format. The scale format is in the set `scales`. A scale block has at least min_block elements
 * along K, and a multiple of `multiple` elements (0: any number). The device has at least one of
 * `traits` (0: none is needed). */
static const struct {
    bool (*elems)(uint32_t elem);
    int scales;
    uint32_t min_block, multiple;
    int traits, units;
} rules[] = {
    /* fp32 represents the values of all elements exactly. */
    {any, SCALES_ANY, 0, 0, 0, U(F32)},
    /* The product of a 16-bit float and a power of two is exact. Elements of at most 8 bits are
     * exact in f16 and in bf16. */
    {is_f16, SCALES_POW2, 0, 0, BSMM_SOL_F16, U(F16)},
    {is_bf16, SCALES_POW2, 0, 0, 0, U(BF16)},
    {up_to_8_bits, SCALES_POW2, 0, 0, 0, BOTH_16},
    /* The product of an element of at most 8 bits and an e4m3 scale has at most 8 significant bits,
     * so it is exact in f16 and bf16. */
    {up_to_8_bits, S(E4M3), 0, 0, 0, BOTH_16},
    /* A kernel can multiply the sum of a block by its scale. With blocks of at least 128 elements
     * that multiplication costs little, so any scale format is possible. */
    {is_f16, SCALES_ANY, 128, 0, BSMM_SOL_F16, U(F16)},
    {is_bf16, SCALES_ANY, 128, 0, 0, U(BF16)},
    {up_to_8_bits, SCALES_ANY, 128, 0, 0, BOTH_16},
    {narrow_but_fnuz, S(NONE), 0, 0, TRAITS_8, U(F8)},
    {narrow_but_fnuz, SCALES_ANY, 128, 0, TRAITS_8, U(F8)},
    {is_fnuz, S(NONE), 0, 0, BSMM_SOL_FNUZ8, U(F8)},
    {is_fnuz, SCALES_ANY, 128, 0, BSMM_SOL_FNUZ8, U(F8)},
    /* A unit that multiplies e4m3 or e5m2 can also multiply elements of at most 6 bits with e8m0
     * scales. These elements have a smaller range of exponents than e4m3 and e5m2. A kernel can
     * therefore multiply an element by a scale (a power of two) when it converts the element to
     * e4m3 or e5m2. */
    {up_to_6_bits, S(E8M0), 0, 0, TRAITS_8, U(F8)},
    /* On devices with MX instructions, the matrix instruction itself applies e8m0 scales. A matrix
     * unit for wide elements also accepts narrower ones. */
    {narrow_but_fnuz, S(E8M0), 0, 32, BSMM_SOL_MX, U(F8)},
    {up_to_6_bits, S(E8M0), 0, 32, BSMM_SOL_MX, U(F6)},
    {up_to_6_bits, S(NONE), 0, 0, BSMM_SOL_MX, U(F6)},
    {is_e2m1, S(E8M0), 0, 32, BSMM_SOL_MX, U(F4_MX)},
    {is_e2m1, S(NONE), 0, 0, BSMM_SOL_MX, U(F4_MX)},
    {is_e2m1, S(E4M3), 0, 16, BSMM_SOL_NV, U(F4_NV)},
    {is_e2m1, S(NONE), 0, 0, BSMM_SOL_NV, U(F4_NV)},
    /* An e2m1 element times 2 and an e2m3 element times 8, for example, are small integers. An int8
     * dot product sums the products of such integers exactly, and the scale then multiplies the sum
     * of the block. */
    {small_integers, SCALES_ANY, 0, 0, BSMM_SOL_INT8, U(F6)},
    {is_e2m1, SCALES_ANY, 0, 0, BSMM_SOL_INT8, BOTH_4},
};

static bool takes_block(uint32_t block, uint32_t min_block, uint32_t multiple) {
    return block >= min_block && (multiple == 0 || block % multiple == 0);
}

uint32_t bsmm_sol_units(bsmm_format format, uint32_t traits) {
    uint32_t units = 0;
    for (size_t i = 0; i < BSMM_COUNT(rules); i++) {
        bool applies = rules[i].elems(format.elem) && rules[i].scales & 1 << format.scale &&
                       takes_block(format.block_cols, rules[i].min_block, rules[i].multiple) &&
                       (!rules[i].traits || (uint32_t)rules[i].traits & traits);
        if (applies) units |= (uint32_t)rules[i].units;
    }
    return units;
}

static const struct {
    const char *name;
    size_t peak; /* `peak` is the offset in bytes of the matrix unit's peak in bsmm_device_info. */
} unit_rows[BSMM_UNIT_COUNT] = {
    [BSMM_UNIT_F32] = {"f32", offsetof(bsmm_device_info, f32)},
    [BSMM_UNIT_F16] = {"f16", offsetof(bsmm_device_info, f16)},
    [BSMM_UNIT_BF16] = {"f16", offsetof(bsmm_device_info, f16)},
    [BSMM_UNIT_F8] = {"f8", offsetof(bsmm_device_info, f8)},
    [BSMM_UNIT_F6] = {"f6", offsetof(bsmm_device_info, f6)},
    [BSMM_UNIT_F4_MX] = {"f4", offsetof(bsmm_device_info, f4)},
    [BSMM_UNIT_F4_NV] = {"f4", offsetof(bsmm_device_info, f4)},
};

double bsmm_sol_peak(const bsmm_sol_device *device, bsmm_sol_unit unit) {
    const bool halved = unit == BSMM_UNIT_BF16 && device->traits & BSMM_SOL_SLOW_BF16;
    const char *peak = (const char *)&device->info + unit_rows[unit].peak;
    return *(const double *)(const void *)peak / (halved ? 2 : 1);
}

const char *bsmm_sol_unit_name(bsmm_sol_unit unit) {
    return unit_rows[unit].name;
}
