/* Executes the vector instructions whose effect on a lane cannot be written as one expression:
 * comparisons, carries, steps of a division, moves between lanes, and mixed-precision operations.
 */
#include "lane_math.h"
#include "sim.h"

/* Writes a lane mask to a pair of SGPRs. The bits of inactive lanes become 0. */
static void write_mask(gfx9_wave *w, const gfx9_operand *o, uint64_t mask) {
    if (o->place == SGPR) gfx9_set64(w, o->reg, mask & gfx9_exec(w));
}

static uint64_t lane_mask(const gfx9_wave *w, const gfx9_operand *o) {
    return o->place == CONSTANT ? o->value : o->place == SGPR ? gfx9_s64(w, o->reg) : 0;
}

static uint64_t gather_flags(const uint8_t flag[LANES]) {
    uint64_t mask = 0;
    for (int k = 0; k < LANES; k += 8) {
        uint64_t eight;
        memcpy(&eight, flag + k, 8);
        mask |= (eight * 0x0102040810204080u >> 56) << k;
    }
    return mask;
}

/* Compares two sources in each lane. Each bit of `what` is a relation for which the comparison is
 * true: 1 is less, 2 is equal, 4 is greater, and 8 is unordered. */
#define COMPARE(TYPE, LOAD)                                                                        \
    for (int l = 0; l < LANES; l++) {                                                              \
        const TYPE a = LOAD(p[0]), b = LOAD(p[1]);                                                 \
        flag[l] = (uint8_t)(((what & 1) && a < b) | ((what & 2) && a == b) |                       \
                            ((what & 4) && a > b) | ((what & 8) && !(a < b || a == b || a > b)));  \
    }
#define AT_F32(p) ((const float *)p)[l]
#define AT_F16(p) gfx9_f16_to_f32(((const uint32_t *)p)[l] & 0xffff)
#define AT_F64(p) ((const double *)p)[l]
#define AT_I16(p) (int16_t)((const uint32_t *)p)[l]
#define AT_U16(p) (uint16_t)((const uint32_t *)p)[l]
#define AT_I32(p) ((const int32_t *)p)[l]
#define AT_U32(p) ((const uint32_t *)p)[l]
#define AT_I64(p) ((const int64_t *)p)[l]
#define AT_U64(p) ((const uint64_t *)p)[l]

static uint64_t compare(int type, int what, const void *const p[2]) {
    uint8_t flag[LANES];
    switch (type) {
    case F16:
        COMPARE(float, AT_F16) break;
    case F32:
        COMPARE(float, AT_F32) break;
    case F64:
        COMPARE(double, AT_F64) break;
    case I16:
        COMPARE(int16_t, AT_I16) break;
    case U16:
        COMPARE(uint16_t, AT_U16) break;
    case I32:
        COMPARE(int32_t, AT_I32) break;
    case U32:
        COMPARE(uint32_t, AT_U32) break;
    case I64:
        COMPARE(int64_t, AT_I64) break;
    default:
        COMPARE(uint64_t, AT_U64) break;
    }
    return gather_flags(flag);
}

static void finish_compare(gfx9_wave *w, const gfx9_inst *i, uint64_t mask) {
    write_mask(w, &i->op[0], mask);
    if (i->row->size) gfx9_set64(w, EXEC, mask & gfx9_exec(w));
}

static void execute_compare(gfx9_wave *w, const gfx9_inst *i) {
    gfx9_vector room[2];
    const void *p[2];
    for (int k = 0; k < 2; k++)
        p[k] = gfx9_fetch(w, i, &i->op[k + 1], i->row->a, &room[k]);
    finish_compare(w, i, compare(i->row->a, i->row->form, p));
}

/* Returns the class bit of a double, as v_cmp_class defines it. `normal` is the smallest normal
 * number of the format from which the double was converted. `signaling` means that a NaN is
 * signaling. */
static uint32_t class_of(double v, double normal, bool signaling) {
    const bool minus = signbit(v);
    if (v != v) return signaling ? 1 : 2;
    if (isinf(v)) return minus ? 4 : 512;
    if (v == 0) return minus ? 32 : 64;
    return fabs(v) < normal ? minus ? 16 : 128 : minus ? 8 : 256;
}

static void execute_class(gfx9_wave *w, const gfx9_inst *i) {
    const int type = i->row->a;
    gfx9_vector room[2];
    const void *p = gfx9_fetch(w, i, &i->op[1], type, &room[0]);
    const uint32_t *classes = gfx9_fetch(w, i, &i->op[2], U32, &room[1]);
    uint64_t mask = 0;
    for (int l = 0; l < LANES; l++) {
        uint32_t c;
        if (type == F64)
            c = class_of(AT_F64(p), 0x1p-1022, !(AT_U64(p) >> 51 & 1));
        else if (type == F32)
            c = class_of((double)AT_F32(p), 0x1p-126, !(AT_U32(p) >> 22 & 1));
        else
            c = class_of((double)AT_F16(p), 0x1p-14, !(AT_U32(p) >> 9 & 1));
        mask |= (uint64_t)((c & classes[l]) != 0) << l;
    }
    finish_compare(w, i, mask);
}

static void execute_select(gfx9_wave *w, const gfx9_inst *i) {
    gfx9_vector room[2], result;
    const uint32_t *a = gfx9_fetch(w, i, &i->op[1], F32, &room[0]),
                   *b = gfx9_fetch(w, i, &i->op[2], F32, &room[1]);
    const uint64_t mask = i->operand_count > 3 ? lane_mask(w, &i->op[3]) : gfx9_s64(w, VCC);
    for (int l = 0; l < LANES; l++)
        result.u[0][l] = mask >> l & 1 ? b[l] : a[l];
    gfx9_store(w, i, &i->op[0], U32, &result);
}

enum { ADD, SUB, SUBREV };
static void execute_carry(gfx9_wave *w, const gfx9_inst *i) {
    gfx9_vector room[2], result;
    const uint32_t *a = gfx9_fetch(w, i, &i->op[2], U32, &room[0]),
                   *b = gfx9_fetch(w, i, &i->op[3], U32, &room[1]);
    const uint64_t in = i->row->form ? lane_mask(w, &i->op[4]) : 0;
    uint64_t out = 0;
    for (int l = 0; l < LANES; l++) {
        const uint64_t x = i->row->what == SUBREV ? b[l] : a[l],
                       y = i->row->what == SUBREV ? a[l] : b[l], c = in >> l & 1;
        const uint64_t r = i->row->what == ADD ? x + y + c : x - y - c;
        result.u[0][l] = (uint32_t)r;
        out |= (r >> 32 & 1) << l;
    }
    write_mask(w, &i->op[1], out);
    gfx9_store(w, i, &i->op[0], U32, &result);
}

static void execute_mad64(gfx9_wave *w, const gfx9_inst *i) {
    gfx9_vector room[3], result;
    const uint32_t *a = gfx9_fetch(w, i, &i->op[2], U32, &room[0]),
                   *b = gfx9_fetch(w, i, &i->op[3], U32, &room[1]);
    const uint64_t *c = gfx9_fetch(w, i, &i->op[4], i->row->what ? I64 : U64, &room[2]);
    uint8_t carry[LANES];
    const int with_sign = i->row->what ? LANES : 0, without = LANES - with_sign;
    for (int l = 0; l < with_sign; l++) {
        const int64_t product = (int64_t)(int32_t)a[l] * (int32_t)b[l];
        int64_t sum;
        /* The carry is bit 64 of the exact sum of the signed operands, i.e. the sign of this
         * sum. */
        const bool over = __builtin_add_overflow(product, (int64_t)c[l], &sum);
        carry[l] = (sum < 0) != over;
        result.u64[l] = (uint64_t)sum;
    }
    for (int l = 0; l < without; l++) {
        result.u64[l] = (uint64_t)a[l] * b[l] + c[l];
        carry[l] = result.u64[l] < c[l];
    }
    write_mask(w, &i->op[1], gather_flags(carry));
    gfx9_store(w, i, &i->op[0], U64, &result);
}

/* Computes v_div_scale, which prepares the division c / b: it multiplies one operand by a power of
 * two, so that intermediate results neither overflow nor underflow. `a` is the operand that the
 * instruction scales, i.e. the same number as b or as c. Sets *scaled if the quotient is then wrong
 * by a power of two, which v_div_fmas must correct. */
static double div_scale(double a, double b, double c, bool f64, bool *scaled) {
    const int eb = b == 0 ? -2000 : ilogb(b), ec = c == 0 ? -2000 : ilogb(c);
    const int step = f64 ? 128 : 64, wide_gap = f64 ? 768 : 96, least = f64 ? -1022 : -126;
    *scaled = false;
    if (b == 0 || c == 0) return (double)NAN;
    if (!isfinite(b) || !isfinite(c)) return a;
    if (ec - eb >= wide_gap) {
        *scaled = true;
        return a == b ? ldexp(a, step) : a;
    }
    if (eb < least) return ldexp(a, step);
    const bool tiny_inverse =
        -eb - (eb != 0 && ldexp(1, eb) != fabs(b)) < least && fabs(1 / b) < ldexp(1, least);
    const bool tiny_quotient = fabs(c / b) < ldexp(1, least);
    if (tiny_inverse && tiny_quotient) {
        *scaled = true;
        /* Scaling makes the denominator b smaller, so that its reciprocal is normal and the
         * quotient grows. */
        return a == b ? ldexp(a, -step) : a;
    }
    if (tiny_inverse) return ldexp(a, -step);
    if (tiny_quotient) {
        *scaled = true;
        return a == c ? ldexp(a, step) : a;
    }
    return ec <= least + (f64 ? 52 : 23) ? ldexp(a, step) : a;
}

static double as_double(const void *p, int type, int l) {
    return type == F64 ? AT_F64(p) : (double)AT_F32(p);
}

static void execute_div_scale(gfx9_wave *w, const gfx9_inst *i) {
    const int type = i->row->a;
    gfx9_vector room[3], result;
    const void *p[3];
    uint64_t mask = 0;
    for (int k = 0; k < 3; k++)
        p[k] = gfx9_fetch(w, i, &i->op[k + 2], type, &room[k]);
    for (int l = 0; l < LANES; l++) {
        bool scaled;
        const double r = div_scale(as_double(p[0], type, l), as_double(p[1], type, l),
                                   as_double(p[2], type, l), type == F64, &scaled);
        if (type == F64)
            result.u64[l] = sim_bits64(r);
        else
            result.u[0][l] = sim_bits((float)r);
        mask |= (uint64_t)scaled << l;
    }
    write_mask(w, &i->op[1], mask);
    gfx9_store(w, i, &i->op[0], type, &result);
}

/* Adds an exact product and a float, and rounds to odd, i.e. gives an inexact result an odd last
 * bit. The caller rounds the result to float. Rounding to odd makes the two roundings equal to
 * one. */
static double fma_odd(double product, double c) {
    const double sum = product + c, part = sum - product;
    const double rest = (product - (sum - part)) + (c - part);
    if (!isfinite(sum) || rest == 0 || (sim_bits64(sum) & 1)) return sum;
    return nextafter(sum, rest > 0 ? (double)INFINITY : -(double)INFINITY);
}

/* Undoes the scaling of a quotient r by v_div_scale. If the quotient exceeds the format's range,
 * the multiply-adds that refine the quotient give NaN, but the result must be infinity. */
static double undo_scale(double r, double quotient, int step) {
    if (isnan(r)) return (double)INFINITY;
    return ldexp(r, fabs(quotient) >= 2 ? step : -step);
}

static void execute_div_fmas(gfx9_wave *w, const gfx9_inst *i) {
    const int type = i->row->a;
    const uint64_t vcc = gfx9_s64(w, VCC);
    gfx9_vector room[3], result;
    const void *p[3];
    for (int k = 0; k < 3; k++)
        p[k] = gfx9_fetch(w, i, &i->op[k + 1], type, &room[k]);
    for (int l = 0; l < LANES; l++) {
        const bool scaled = vcc >> l & 1;
        if (type == F64) {
            const double r = fma(AT_F64(p[0]), AT_F64(p[1]), AT_F64(p[2]));
            result.u64[l] = sim_bits64(scaled ? undo_scale(r, AT_F64(p[2]), 128) : r);
        } else {
            const float c = AT_F32(p[2]), r = fmaf(AT_F32(p[0]), AT_F32(p[1]), c);
            const double odd = fma_odd((double)AT_F32(p[0]) * (double)AT_F32(p[1]), (double)c);
            result.u[0][l] = sim_bits(scaled ? (float)undo_scale(odd, (double)c, 64) : r);
        }
    }
    gfx9_store(w, i, &i->op[0], type, &result);
}

static void execute_readlane(gfx9_wave *w, const gfx9_inst *i) {
    const uint64_t exec = gfx9_exec(w);
    uint32_t lane = exec ? (uint32_t)__builtin_ctzll(exec) : 0;
    if (i->row->what) lane = (uint32_t)gfx9_scalar(w, &i->op[2], U32) & 63;
    gfx9_write_scalar(w, &i->op[0], 32,
                      i->op[1].place == VGPR ? w->v[i->op[1].reg][lane]
                                             : gfx9_scalar(w, &i->op[1], U32));
}

static void execute_writelane(gfx9_wave *w, const gfx9_inst *i) {
    const uint32_t lane = (uint32_t)gfx9_scalar(w, &i->op[2], U32) & 63;
    w->v[i->op[0].reg][lane] = (uint32_t)gfx9_scalar(w, &i->op[1], U32);
    w->written[i->op[0].reg] |= 1ull << lane;
}

static void execute_nothing(gfx9_wave *w, const gfx9_inst *i) {
    (void)w, (void)i;
}

static void execute_swap(gfx9_wave *w, const gfx9_inst *i) {
    const uint32_t *mask = gfx9_lane_masks(w);
    uint32_t *a = w->v[i->op[0].reg], *b = w->v[i->op[1].reg];
    for (int l = 0; l < LANES; l++) {
        const uint32_t t = (a[l] ^ b[l]) & mask[l];
        a[l] ^= t, b[l] ^= t;
    }
}

/* Exchanges the odd rows of the first register with the even rows of the second register. A row is
 * a group of `what` neighboring lanes. */
static void execute_permlane_swap(gfx9_wave *w, const gfx9_inst *i) {
    const int rows = i->row->what;
    const uint64_t exec = gfx9_exec(w);
    uint32_t *a = w->v[i->op[0].reg], *b = w->v[i->op[1].reg];
    for (int l = 0; l < LANES; l++) {
        if (l / rows % 2 || !(exec >> l & 1)) continue;
        const uint32_t t = a[l + rows];
        a[l + rows] = b[l], b[l] = t;
    }
}

static float mixed(gfx9_wave *w, const gfx9_operand *o, int l) {
    const uint32_t u =
        o->place == VGPR ? w->v[o->reg][l] : (uint32_t)gfx9_scalar(w, o, o->half_hi ? F16 : F32);
    float f = o->half_hi ? gfx9_f16_to_f32((o->half_lo ? u >> 16 : u) & 0xffff) : sim_float(u);
    if (o->abs) f = fabsf(f);
    return o->neg ? -f : f;
}

static void execute_mix(gfx9_wave *w, const gfx9_inst *i) {
    gfx9_vector result;
    gfx9_inst copy = *i;
    for (int k = 1; k < 4; k++)
        copy.op[k].half_hi = (uint8_t)(i->word[1] >> (k == 3 ? 0 : 27) >> (k == 3 ? 0 : k - 1) & 1);
    copy.op[3].half_hi = (uint8_t)(i->word[0] >> 14 & 1);
    copy.op[0].half_lo = i->row->what == 2;
    for (int l = 0; l < LANES; l++) {
        float r =
            fmaf(mixed(w, &copy.op[1], l), mixed(w, &copy.op[2], l), mixed(w, &copy.op[3], l));
        if (i->clamp && i->row->what) r = r > 0 ? r < 1 ? r : 1 : 0;
        result.u[0][l] = i->row->what ? gfx9_f32_to_f16(r) : sim_bits(r);
    }
    if (i->row->what) copy.clamp = false;
    gfx9_store(w, &copy, &copy.op[0], i->row->what ? F16 : F32, &result);
}

static void execute_bitop3(gfx9_wave *w, const gfx9_inst *i) {
    gfx9_vector room[3], result;
    const uint32_t *p[3];
    const int type = i->row->what ? U16 : U32;
    for (int k = 0; k < 3; k++)
        p[k] = gfx9_fetch(w, i, &i->op[k + 1], type, &room[k]);
    for (int l = 0; l < LANES; l++) {
        uint32_t r = 0;
        for (int k = 0; k < 8; k++)
            if (i->bitop3 >> k & 1)
                r |= (k & 4 ? p[0][l] : ~p[0][l]) & (k & 2 ? p[1][l] : ~p[1][l]) &
                     (k & 1 ? p[2][l] : ~p[2][l]);
        result.u[0][l] = r;
    }
    gfx9_store(w, i, &i->op[0], type, &result);
}

/* Adds four sums of absolute differences to c. Sum k compares the four bytes of b with four bytes
 * of a, beginning with byte k. */
static void execute_quad_sad(gfx9_wave *w, const gfx9_inst *i) {
    gfx9_vector a, c, room;
    const uint64_t *pa = gfx9_fetch(w, i, &i->op[1], U64, &a);
    const uint32_t *pb = gfx9_fetch(w, i, &i->op[2], U32, &room);
    gfx9_vector result = {0};
    const uint64_t *pc = gfx9_fetch(w, i, &i->op[3], U64, &c);
    for (int l = 0; l < LANES; l++)
        for (int k = 0; k < 4; k++) {
            const uint64_t sum = sad_bytes((uint32_t)(pa[l] >> 8 * k), pb[l], i->row->what) +
                                 (pc[l] >> 16 * k & 0xffff);
            result.u64[l] |= (sum & 0xffff) << 16 * k;
        }
    gfx9_store(w, i, &i->op[0], U64, &result);
}

#define CARRY(name, op, in)                                                                        \
    { name, execute_carry, {.what = op}, U32, U32, U32, N, COST_VALU, 0, in }
#define CMPS(type, T)                                                                              \
    CMP("f", type, T, 0), CMP("lt", type, T, 1), CMP("eq", type, T, 2), CMP("le", type, T, 3),     \
        CMP("gt", type, T, 4), CMP("ge", type, T, 6)
#define CMP(op, type, T, mask)                                                                     \
    CMP1("v_cmp_" op "_" type, T, mask, 0), CMP1("v_cmpx_" op "_" type, T, mask, 1)
#define CMP1(name, T, mask, x)                                                                     \
    { name, execute_compare, {0}, N, T, T, N, COST_VALU, x, mask }
#define FLOATS(type, T)                                                                            \
    CMPS(type, T), CMP("lg", type, T, 5), CMP("o", type, T, 7), CMP("u", type, T, 8),              \
        CMP("nge", type, T, 9), CMP("nlg", type, T, 10), CMP("ngt", type, T, 11),                  \
        CMP("nle", type, T, 12), CMP("neq", type, T, 13), CMP("nlt", type, T, 14),                 \
        CMP("tru", type, T, 15),                                                                   \
        {"v_cmp_class_" type, execute_class, {0}, N, T, U32, N, COST_VALU, 0, 0}, {                \
        "v_cmpx_class_" type, execute_class, {0}, N, T, U32, N, COST_VALU, 1, 0                    \
    }
#define INTS(type, T) CMPS(type, T), CMP("ne", type, T, 5), CMP("t", type, T, 15)
#define S(name, execute, value, cost)                                                              \
    { name, execute, {.what = value}, U32, U32, U32, U32, COST_##cost, 0, 0 }

static const gfx9_row rows[] = {
    FLOATS("f16", F16),
    FLOATS("f32", F32),
    FLOATS("f64", F64),
    INTS("i16", I16),
    INTS("u16", U16),
    INTS("i32", I32),
    INTS("u32", U32),
    INTS("i64", I64),
    INTS("u64", U64),
    CARRY("v_add_co_u32", ADD, 0),
    CARRY("v_sub_co_u32", SUB, 0),
    CARRY("v_subrev_co_u32", SUBREV, 0),
    CARRY("v_addc_co_u32", ADD, 1),
    CARRY("v_subb_co_u32", SUB, 1),
    CARRY("v_subbrev_co_u32", SUBREV, 1),
    {"v_cndmask_b32", execute_select, {0}, U32, U32, U32, N, COST_VALU, 0, 0},
    S("v_mad_u64_u32", execute_mad64, 0, TRANS),
    S("v_mad_i64_i32", execute_mad64, 1, TRANS),
    {"v_div_scale_f32", execute_div_scale, {0}, F32, F32, F32, F32, COST_VALU, 0, 0},
    {"v_div_scale_f64", execute_div_scale, {0}, F64, F64, F64, F64, COST_VALU64, 0, 0},
    {"v_div_fmas_f32", execute_div_fmas, {0}, F32, F32, F32, F32, COST_VALU, 0, 0},
    {"v_div_fmas_f64", execute_div_fmas, {0}, F64, F64, F64, F64, COST_VALU64, 0, 0},
    S("v_readfirstlane_b32", execute_readlane, 0, VALU),
    S("v_readlane_b32", execute_readlane, 1, VALU),
    S("v_writelane_b32", execute_writelane, 0, VALU),
    S("v_nop", execute_nothing, 0, VALU),
    S("v_clrexcp", execute_nothing, 0, VALU),
    S("v_swap_b32", execute_swap, 0, VALU),
    S("v_permlane16_swap_b32", execute_permlane_swap, 16, VALU),
    S("v_permlane32_swap_b32", execute_permlane_swap, 32, VALU),
    S("v_fma_mix_f32", execute_mix, 0, VALU),
    S("v_fma_mixlo_f16", execute_mix, 1, VALU),
    S("v_fma_mixhi_f16", execute_mix, 2, VALU),
    S("v_mad_mix_f32", execute_mix, 0, VALU),
    S("v_mad_mixlo_f16", execute_mix, 1, VALU),
    S("v_mad_mixhi_f16", execute_mix, 2, VALU),
    S("v_bitop3_b32", execute_bitop3, 0, VALU),
    S("v_bitop3_b16", execute_bitop3, 1, VALU),
    S("v_qsad_pk_u16_u8", execute_quad_sad, 0, VALU64),
    S("v_mqsad_pk_u16_u8", execute_quad_sad, 1, VALU64),
};
const gfx9_table gfx9_special_table = {rows, sizeof rows / sizeof *rows};
