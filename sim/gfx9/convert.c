/* Executes AMD's conversions to and from float formats of 8, 6 and 4 bits. The instructions
 * v_cvt_scalef32_* of gfx950 also apply a scale. */
#include "floats.h"
#include "sim.h"

enum direction { WIDEN, NARROW };
/* In the table entries of conversions, the fields of gfx9_row have these meanings. `d` is the
 * direction (WIDEN or NARROW), `a` is the format of 8, 6 or 4 bits, and `b` is the type f32, f16 or
 * bf16. `c` is nonzero for stochastic rounding. `size` is the number of elements. `form` is 0 if
 * the instruction has no scale, 1 if it has one, and 2 if it has a scale and reads its elements
 * from two sources (2xpk16). */
enum { OVFL_BIT = 23 };

static enum gfx9_small format_of(const gfx9_wave *w, const gfx9_row *row) {
    return (enum gfx9_small)(row->a +
                             (w->group->object->arch == GFX942 && row->a <= BF8 ? FP8_FNUZ : 0));
}

static uint32_t width_of(enum gfx9_small f) {
    return 1u + (uint32_t)gfx9_formats[f].exponent + (uint32_t)gfx9_formats[f].mantissa;
}

enum { BF16_TYPE = PK };
static uint32_t bits_of(int type) {
    return type == F32 ? 32 : 16;
}

static uint32_t source_bits(const gfx9_wave *w, const gfx9_operand *o, int l, uint32_t at,
                            uint32_t width) {
    const uint32_t word = at / 32, low = at % 32;
    uint64_t v = o->place == VGPR ? w->v[o->reg + word][l] : (uint32_t)gfx9_scalar(w, o, U32);
    if (low + width > 32) v |= (uint64_t)w->v[o->reg + word + 1][l] << 32;
    return (uint32_t)(v >> low & (width == 32 ? ~0u : (1u << width) - 1));
}

static double widened(uint32_t u, int type) {
    return (double)(type == F32   ? sim_float(u)
                    : type == F16 ? gfx9_f16_to_f32(u)
                                  : gfx9_bf16_to_f32(u));
}

static uint32_t rounded(double v, int type) {
    return type == F32   ? sim_bits((float)v)
           : type == F16 ? gfx9_f32_to_f16((float)v)
                         : gfx9_f32_to_bf16((float)v);
}

static uint32_t lane_value(const gfx9_wave *w, const gfx9_operand *o, int l) {
    return o->place == VGPR ? w->v[o->reg][l] : (uint32_t)gfx9_scalar(w, o, F32);
}

/* Returns the power of two that a scale register means. Only the exponent bits of the f32 scale
 * count. A NaN or infinite scale gives NaN. */
static double factor(uint32_t scale) {
    const uint32_t e = scale >> 23 & 255;
    return e == 255 ? (double)NAN : ldexp(1, (int)e - 127);
}

static uint32_t next_random(uint32_t v) {
    return (v << 1) ^ (v >> 31 ? 197u : 0);
}

/* Holds the result of a conversion in one lane. The elements of the result are adjacent in up to 32
 * registers. */
typedef struct {
    uint32_t word[32];
} packed;

static void put(packed *p, uint32_t at, uint32_t width, uint32_t v) {
    p->word[at / 32] |= v << at % 32;
    if (at % 32 + width > 32) p->word[at / 32 + 1] |= v >> (32 - at % 32);
}

static void store(gfx9_wave *w, const gfx9_inst *i, int l, const packed *p, uint32_t bits,
                  uint32_t shift) {
    const gfx9_operand *o = &i->op[0];
    if (bits >= 32) {
        for (uint32_t k = 0; k < bits / 32; k++)
            w->v[o->reg + k][l] = p->word[k], w->written[o->reg + k] |= 1ull << l;
        return;
    }
    const uint32_t mask = ((1u << bits) - 1) << shift;
    w->v[o->reg][l] = (w->v[o->reg][l] & ~mask) | (p->word[0] << shift & mask);
    w->written[o->reg] |= 1ull << l;
}

static uint32_t op_sel(const gfx9_inst *i) {
    return i->vop3 || i->operand_count > 2 ? i->word[0] >> 11 & 15 : 0;
}

static void widen_lane(gfx9_wave *w, const gfx9_inst *i, int l) {
    const gfx9_row *row = i->row;
    const enum gfx9_small f = format_of(w, row);
    const uint32_t width = width_of(f), count = (uint32_t)row->size, bits = bits_of(row->b);
    const double by = row->form ? factor(lane_value(w, &i->op[2], l)) : 1;
    uint32_t at = count == 32           ? 0
                  : count * width == 16 ? 16 * (op_sel(i) & 1)
                                        : 8 * ((op_sel(i) & 1) * 1 + (op_sel(i) & 2));
    if (i->sdwa) at = i->op[1].sel < 4 ? 8u * i->op[1].sel : i->op[1].sel == 5 ? 16 : 0;
    packed p = {{0}};
    for (uint32_t k = 0; k < count; k++) {
        const double v =
            (double)gfx9_widen(source_bits(w, &i->op[1], l, at + k * width, width), f) * by;
        put(&p, k * bits, bits, rounded(v, row->b));
    }
    store(w, i, l, &p, count * bits, count * bits == 16 ? op_sel(i) >> 3 << 4 : 0);
}

static double narrow_source(const gfx9_wave *w, const gfx9_inst *i, int l, uint32_t k) {
    const gfx9_row *row = i->row;
    const uint32_t bits = bits_of(row->b);
    uint32_t which = 1, at = k;
    /* The 2xpk16 conversions read the elements alternately from two sources. */
    if (row->form == 2)
        which = 1 + k % 2, at = k / 2;
    else if (row->size == 2 && row->b == F32 && !row->c)
        which = 1 + k, at = 0;
    const gfx9_operand *o = &i->op[which];
    uint32_t u = source_bits(w, o, l, at * bits, bits);
    if (o->place == CONSTANT) u = (uint32_t)gfx9_constant(o, row->b == F32 ? F32 : F16);
    double v = widened(u, row->b);
    if (o->abs) v = fabs(v);
    return o->neg ? -v : v;
}

static void narrow_lane(gfx9_wave *w, const gfx9_inst *i, int l) {
    const gfx9_row *row = i->row;
    const enum gfx9_small f = format_of(w, row);
    const uint32_t width = width_of(f), count = (uint32_t)row->size;
    const gfx9_operand *scale = &i->op[i->operand_count - 1];
    const double by = row->form ? 1 / factor(lane_value(w, scale, l)) : 1;
    const int saturate = (w->mode >> OVFL_BIT & 1) || f >= FP6;
    uint32_t noise = row->c ? lane_value(w, &i->op[2], l) : 0;
    packed p = {{0}};
    for (uint32_t k = 0; k < count; k++) {
        put(&p, k * width, width,
            gfx9_narrow(narrow_source(w, i, l, k) * by, f, saturate, row->c, noise));
        noise = next_random(noise);
    }
    const uint32_t select = op_sel(i) >> 2, bits = count * width;
    store(w, i, l, &p, bits, bits == 8 ? 8 * select : 16 * (select >> 1));
}

static void execute(gfx9_wave *w, const gfx9_inst *i) {
    const uint64_t exec = gfx9_exec(w);
    for (int l = 0; l < LANES; l++)
        if (exec >> l & 1) (i->row->d == WIDEN ? widen_lane : narrow_lane)(w, i, l);
}

/* Converts f32 to f16 or bf16 with stochastic rounding, i.e. adds random bits below the mantissa
 * and truncates. The modifier op_sel selects the half of the register that is written. */
static void execute_noise16(gfx9_wave *w, const gfx9_inst *i) {
    const uint64_t exec = gfx9_exec(w);
    for (int l = 0; l < LANES; l++) {
        if (!(exec >> l & 1)) continue;
        const uint32_t u = lane_value(w, &i->op[1], l), noise = lane_value(w, &i->op[2], l);
        const bool brain = i->row->what;
        packed p = {{brain ? (u + (noise & 0xffff)) >> 16
                           : gfx9_f16_chopped(sim_float(u + (noise & 0x1fff)))}};
        store(w, i, l, &p, 16, op_sel(i) >> 3 << 4);
    }
}

#define C(name, direction, small, wide, stochastic, count, scaled)                                 \
    { name, execute, {.what = 0}, direction, small, wide, stochastic, COST_VALU, count, scaled }
#define PLAIN(n, F)                                                                                \
    C("v_cvt_f32_" n, WIDEN, F, F32, 0, 1, 0), C("v_cvt_pk_f32_" n, WIDEN, F, F32, 0, 2, 0),       \
        C("v_cvt_pk_" n "_f32", NARROW, F, F32, 0, 2, 0),                                          \
        C("v_cvt_sr_" n "_f32", NARROW, F, F32, 1, 1, 0)
#define SCALED(n, F, t, T)                                                                         \
    C("v_cvt_scalef32_pk_" t "_" n, WIDEN, F, T, 0, 2, 1),                                         \
        C("v_cvt_scalef32_pk_" n "_" t, NARROW, F, T, 0, 2, 1)
#define EIGHT(n, F, t, T) SCALED(n, F, t, T), C("v_cvt_scalef32_sr_" n "_" t, NARROW, F, T, 1, 1, 1)
#define ONE(n, F, t, T)   C("v_cvt_scalef32_" t "_" n, WIDEN, F, T, 0, 1, 1)
#define SIX(n, F, t, T)                                                                            \
    C("v_cvt_scalef32_pk32_" t "_" n, WIDEN, F, T, 0, 32, 1),                                      \
        C("v_cvt_scalef32_sr_pk32_" n "_" t, NARROW, F, T, 1, 32, 1)
#define TYPES(M, n, F) M(n, F, "f32", F32), M(n, F, "f16", F16), M(n, F, "bf16", BF16_TYPE)
static const gfx9_row rows[] = {
    {"v_cvt_sr_f16_f32", execute_noise16, {.what = 0}, N, F32, U32, N, COST_VALU, 0, 0},
    {"v_cvt_sr_bf16_f32", execute_noise16, {.what = 1}, N, F32, U32, N, COST_VALU, 0, 0},
    PLAIN("fp8", FP8),
    PLAIN("bf8", BF8),
    TYPES(EIGHT, "fp8", FP8),
    TYPES(EIGHT, "bf8", BF8),
    TYPES(SCALED, "fp4", FP4),
    ONE("fp8", FP8, "f32", F32),
    ONE("fp8", FP8, "f16", F16),
    ONE("bf8", BF8, "f32", F32),
    ONE("bf8", BF8, "f16", F16),
    TYPES(SIX, "fp6", FP6),
    TYPES(SIX, "bf6", BF6),
    C("v_cvt_scalef32_pk32_fp6_f16", NARROW, FP6, F16, 0, 32, 1),
    C("v_cvt_scalef32_pk32_fp6_bf16", NARROW, FP6, BF16_TYPE, 0, 32, 1),
    C("v_cvt_scalef32_pk32_bf6_f16", NARROW, BF6, F16, 0, 32, 1),
    C("v_cvt_scalef32_pk32_bf6_bf16", NARROW, BF6, BF16_TYPE, 0, 32, 1),
    C("v_cvt_scalef32_2xpk16_fp6_f32", NARROW, FP6, F32, 0, 32, 2),
    C("v_cvt_scalef32_2xpk16_bf6_f32", NARROW, BF6, F32, 0, 32, 2),
    C("v_cvt_scalef32_sr_pk_fp4_f32", NARROW, FP4, F32, 1, 2, 1),
    C("v_cvt_scalef32_sr_pk_fp4_f16", NARROW, FP4, F16, 1, 2, 1),
    C("v_cvt_scalef32_sr_pk_fp4_bf16", NARROW, FP4, BF16_TYPE, 1, 2, 1),
};
const gfx9_table gfx9_convert_table = {rows, sizeof rows / sizeof *rows};
