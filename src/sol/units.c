/* The matrix units that can take an operand of a format, natively or after a conversion that keeps
 * every value (docs/notes/speed-of-light.md shows the table). Rare values that kernels handle on a
 * slow path do not count. One kind is NaN and -0 in a conversion of OCP 8-bit floats to fnuz, which
 * otherwise keeps the code and halves the value. The other is block exponents that are too far
 * apart to be folded into the elements. */
#include "sol/sol.h"

#define E(name) (1u << BSMM_ELEM_##name)
#define S(name) (1u << BSMM_SCALE_##name)
#define U(name) (1u << BSMM_UNIT_##name)

enum {
    ELEMS_ANY = ~0,
    ELEMS_OCP8 = E(E4M3) | E(E5M2),
    ELEMS_FNUZ8 = E(E4M3FNUZ) | E(E5M2FNUZ),
    ELEMS_6 = E(E3M2) | E(E2M3),
    ELEMS_SMALL = ELEMS_6 | E(E2M1),
    ELEMS_UP_TO_8 = ELEMS_OCP8 | ELEMS_FNUZ8 | ELEMS_SMALL,
    SCALES_ANY = ~0,
    SCALES_POW2 = S(NONE) | S(E8M0),
    TRAITS_8 = BSMM_SOL_OCP8 | BSMM_SOL_FNUZ8,
    BOTH_16 = U(F16) | U(BF16),
    BOTH_4 = U(F4_MX) | U(F4_NV)
};

/* A row applies to the elements and scales of its sets. Blocks along K must be at least min_block
 * and a multiple of `multiple` (0: any). The device must have at least one of the row's traits (0:
 * any device). */
static const struct {
    int elems, scales;
    uint32_t min_block, multiple;
    int traits, units;
} rules[] = {
    /* fp32 holds every value exactly. */
    {ELEMS_ANY, SCALES_ANY, 0, 0, 0, U(F32)},
    /* Scales that are powers of two multiply 16-bit floats exactly. Elements of at most 8 bits are
     * exact in f16 and in bf16. */
    {E(F16), SCALES_POW2, 0, 0, BSMM_SOL_F16, U(F16)},
    {E(BF16), SCALES_POW2, 0, 0, 0, U(BF16)},
    {ELEMS_UP_TO_8, SCALES_POW2, 0, 0, 0, BOTH_16},
    /* The product of an element of at most 8 bits and an e4m3 scale has at most 8 significant bits.
     */
    {ELEMS_UP_TO_8, S(E4M3), 0, 0, 0, BOTH_16},
    /* In blocks of 128 and more, a scale costs only one multiplication of the block's sum, so any
     * scale is possible. */
    {E(F16), SCALES_ANY, 128, 0, BSMM_SOL_F16, U(F16)},
    {E(BF16), SCALES_ANY, 128, 0, 0, U(BF16)},
    {ELEMS_UP_TO_8, SCALES_ANY, 128, 0, 0, BOTH_16},
    {ELEMS_OCP8 | ELEMS_SMALL, S(NONE), 0, 0, TRAITS_8, U(F8)},
    {ELEMS_OCP8 | ELEMS_SMALL, SCALES_ANY, 128, 0, TRAITS_8, U(F8)},
    {ELEMS_FNUZ8, S(NONE), 0, 0, BSMM_SOL_FNUZ8, U(F8)},
    {ELEMS_FNUZ8, SCALES_ANY, 128, 0, BSMM_SOL_FNUZ8, U(F8)},
    /* A power of two is folded into e4m3 or e5m2 if the element leaves exponent bits free. */
    {ELEMS_SMALL, S(E8M0), 0, 0, TRAITS_8, U(F8)},
    /* The instruction applies these scales. Smaller elements also run on the wider units. */
    {ELEMS_OCP8 | ELEMS_SMALL, S(E8M0), 0, 32, BSMM_SOL_MX, U(F8)},
    {ELEMS_SMALL, S(E8M0), 0, 32, BSMM_SOL_MX, U(F6)},
    {ELEMS_SMALL, S(NONE), 0, 0, BSMM_SOL_MX, U(F6)},
    {E(E2M1), S(E8M0), 0, 32, BSMM_SOL_MX, U(F4_MX)},
    {E(E2M1), S(NONE), 0, 0, BSMM_SOL_MX, U(F4_MX)},
    {E(E2M1), S(E4M3), 0, 16, BSMM_SOL_NV, U(F4_NV)},
    {E(E2M1), S(NONE), 0, 0, BSMM_SOL_NV, U(F4_NV)},
    /* 2 x e2m1 and 8 x e2m3 are small integers, and the scale multiplies the block's integer sum.
     */
    {E(E2M1) | E(E2M3), SCALES_ANY, 0, 0, BSMM_SOL_INT8, U(F6)},
    {E(E2M1), SCALES_ANY, 0, 0, BSMM_SOL_INT8, BOTH_4},
};

static bool takes_block(uint32_t block, uint32_t min_block, uint32_t multiple) {
    return block >= min_block && (multiple == 0 || block % multiple == 0);
}

uint32_t bsmm_sol_units(bsmm_format format, uint32_t traits) {
    uint32_t units = 0;
    for (size_t i = 0; i < BSMM_COUNT(rules); i++) {
        bool applies = rules[i].elems & 1 << format.elem && rules[i].scales & 1 << format.scale &&
                       takes_block(format.block_cols, rules[i].min_block, rules[i].multiple) &&
                       (!rules[i].traits || (uint32_t)rules[i].traits & traits);
        if (applies) units |= (uint32_t)rules[i].units;
    }
    return units;
}

static const struct {
    const char *name;
    size_t peak; /* offset of the peak in bsmm_device_info */
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
