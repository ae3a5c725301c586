/* Executes the ordinary opcodes of the vector ALU. The file includes valu.def twice. Each entry
 * becomes a function with a loop over the lanes, and an entry of the opcode table. */
#include "lane_math.h"
#include "sim.h"
#include <string.h>

/* These macros access lane l of a register, for each operand type. LOAD_* reads the lane, TYPE_*
 * is the C type of its value, and SAVE_* writes it. */
#define LOAD_N(p)   0
#define LOAD_F16(p) gfx9_f16_to_f32(((const uint32_t *)p)[l] & 0xffff)
#define LOAD_F32(p) ((const float *)p)[l]
#define LOAD_F64(p) ((const double *)p)[l]
#define LOAD_U16(p) (((const uint32_t *)p)[l] & 0xffff)
#define LOAD_I16(p) (int16_t)((const uint32_t *)p)[l]
#define LOAD_U32(p) ((const uint32_t *)p)[l]
#define LOAD_I32(p) ((const int32_t *)p)[l]
#define LOAD_U64(p) ((const uint64_t *)p)[l]
#define LOAD_I64(p) ((const int64_t *)p)[l]
#define TYPE_N      int
#define TYPE_F16    float
#define TYPE_F32    float
#define TYPE_F64    double
#define TYPE_U16    uint32_t
#define TYPE_I16    int32_t
#define TYPE_U32    uint32_t
#define TYPE_I32    int32_t
#define TYPE_U64    uint64_t
#define TYPE_I64    int64_t
#define SAVE_F16(v) ((uint32_t *)d)[l] = gfx9_f32_to_f16(v)
#define SAVE_F32(v) ((float *)d)[l] = (v)
#define SAVE_F64(v) ((double *)d)[l] = (v)
#define SAVE_U16(v) ((uint32_t *)d)[l] = (uint32_t)(v)
#define SAVE_I16(v) ((uint32_t *)d)[l] = (uint32_t)(v)
#define SAVE_U32(v) ((uint32_t *)d)[l] = (v)
#define SAVE_I32(v) ((int32_t *)d)[l] = (v)
#define SAVE_U64(v) ((uint64_t *)d)[l] = (v)
#define SAVE_I64(v) ((int64_t *)d)[l] = (v)

#define V(name, D, A, B, C, value, cost)                                                           \
    static void lanes_##name(void *restrict d, const void *pa, const void *pb, const void *pc) {   \
        for (int l = 0; l < LANES; l++) {                                                          \
            const TYPE_##A a = LOAD_##A(pa);                                                       \
            const TYPE_##B b = LOAD_##B(pb);                                                       \
            const TYPE_##C c = LOAD_##C(pc);                                                       \
            (void)a, (void)b, (void)c;                                                             \
            SAVE_##D(value);                                                                       \
        }                                                                                          \
        (void)pa, (void)pb, (void)pc;                                                              \
    }
#define W V
#define P V
#include "valu.def"
#undef V
#undef W
#undef P

/* Holds the binary digits of 2 / pi after the point, 24 bits per element, because v_trig_preop_f64
 * returns some of them. */
static const uint32_t two_over_pi[] = {
    0xa2f983, 0x6e4e44, 0x1529fc, 0x2757d1, 0xf534dd, 0xc0db62, 0x95993c, 0x439041, 0xfe5163,
    0xabdebb, 0xc561b7, 0x246e3a, 0x424dd2, 0xe00649, 0x2eea09, 0xd1921c, 0xfe1deb, 0x1cb129,
    0xa73ee8, 0x8235f5, 0x2ebb44, 0x84e99c, 0x7026b4, 0x5f7e41, 0x3991d6, 0x398353, 0x39f49c,
    0x845f8b, 0xbdf928, 0x3b1ff8, 0x97ffde, 0x05980f, 0xef2f11, 0x8b5a0a, 0x6d1f6d, 0x367ecf,
    0x27cb09, 0xb74f46, 0x3f669e, 0x5fea2d, 0x7527ba, 0xc7ebe5, 0xf17b3d, 0x0739f7, 0x8a5292,
    0xea6bfb, 0x5fb11f, 0x8d5d08, 0x560330, 0x46fc7b,
};

static uint32_t bit_of_two_over_pi(uint32_t n) {
    const uint32_t count = sizeof two_over_pi / sizeof *two_over_pi;
    return n / 24 < count ? two_over_pi[n / 24] >> (23 - n % 24) & 1 : 0;
}

/* Returns 53 bits of 2 / pi, as v_trig_preop_f64 does to reduce large angles. The larger the
 * exponent of `a` and the larger `segment`, the farther these bits lie from the binary point. */
double trig_preop(double a, uint32_t segment) {
    const uint32_t exponent = (uint32_t)(sim_bits64(a) >> 52) & 2047;
    const uint32_t shift = (segment & 31) * 53 + (exponent > 1077 ? exponent - 1077 : 0);
    uint64_t bits = 0;
    for (uint32_t k = 0; k < 53; k++)
        bits = bits << 1 | bit_of_two_over_pi(shift + k);
    return ldexp((double)bits, -53 - (int)shift + (exponent >= 1968 ? 128 : 0));
}

/* Maps a direction to a cube map. `which` selects the result: 0 is the face, 1 and 2 are the
 * coordinates on the face, and 3 is twice the major axis. */
float cube(float x, float y, float z, int which) {
    const float ax = fabsf(x), ay = fabsf(y), az = fabsf(z);
    const int axis = az >= ax && az >= ay ? 2 : ay >= ax ? 1 : 0;
    const float major = axis == 2 ? z : axis == 1 ? y : x;
    const int minus = axis == 0 ? x < 0 : axis == 1 ? y < 0 : z < 0;
    const float s = axis == 0 ? (minus ? z : -z) : axis == 1 ? x : minus ? -x : x;
    const float t = axis == 1 ? (minus ? -z : z) : -y;
    return which == 0 ? (float)(2 * axis + minus) : which == 1 ? s : which == 2 ? t : 2 * major;
}

/* Returns source k of a vector instruction. If the instruction's text has fewer sources, as for
 * v_fmac, the destination is also a source. */
static const gfx9_operand *source(const gfx9_inst *i, uint32_t k) {
    return k + 1 < i->operand_count ? &i->op[k + 1] : &i->op[0];
}

/* Computes an integer result in 64 bits, so that it cannot overflow. The modifier clamp then
 * limits the result to the range of its type. */
static bool wide_result(const gfx9_inst *i, const int64_t s[3], int64_t *r) {
    const char *name = i->row->name + (strncmp(i->row->name, "v_pk_", 5) == 0 ? 5 : 2);
    const bool mad = strncmp(name, "mad_", 4) == 0;
    if (strncmp(name, "add_", 4) == 0)
        *r = s[0] + s[1];
    else if (strncmp(name, "subrev_", 7) == 0)
        *r = s[1] - s[0];
    else if (strncmp(name, "sub_", 4) == 0)
        *r = s[0] - s[1];
    else if (mad && strstr(name, "24"))
        *r = (strchr(name, 'i') ? extend((int32_t)s[0], 24) * (int64_t)extend((int32_t)s[1], 24)
                                : (s[0] & 0xffffff) * (s[1] & 0xffffff)) +
             s[2];
    else if (mad)
        *r = s[0] * s[1] + s[2];
    else
        return false;
    return true;
}

static int64_t limited(int64_t v, bool sign, bool halves) {
    const int64_t top = halves ? sign ? 32767 : 65535
                        : sign ? INT32_MAX
                               : UINT32_MAX,
                  low = sign ? -top - 1 : 0;
    return v < low ? low : v > top ? top : v;
}

static bool saturate(gfx9_wave *w, const gfx9_inst *i, const void *const p[3], gfx9_vector *to) {
    const int t = i->row->d;
    if (!i->clamp || t == F16 || t == F32 || t == F64) return true;
    const bool sign = strstr(i->row->name, "_i") != NULL, halves = t == U16 || t == I16;
    const uint8_t types[] = {i->row->a, i->row->b, i->row->c};
    for (int l = 0; l < LANES; l++) {
        int64_t s[3] = {0}, r;
        for (int k = 0; k < 3 && p[k]; k++) {
            const uint32_t u = ((const uint32_t *)p[k])[l];
            const bool half = types[k] == U16 || types[k] == I16;
            s[k] = sign   ? half ? (int16_t)u : (int32_t)u
                   : half ? (int64_t)(u & 0xffff)
                          : (int64_t)u;
        }
        if (!wide_result(i, s, &r)) {
            gfx9_stop(w, i, "this integer result with clamp is not executed");
            return false;
        }
        to->u[0][l] = (uint32_t)limited(r, sign, halves);
    }
    return true;
}

static void execute(gfx9_wave *w, const gfx9_inst *i) {
    const gfx9_row *row = i->row;
    const uint8_t types[] = {row->a, row->b, row->c};
    const void *p[3] = {0};
    gfx9_vector room[3], result;
    for (uint32_t k = 0; k < 3 && types[k] != N; k++) {
        const gfx9_operand *o = source(i, k);
        gfx9_operand whole;
        if (o == &i->op[0] && o->half_lo) whole = *o, o = &whole;
        p[k] = gfx9_fetch(w, i, o, types[k], &room[k]);
    }
    row->lanes(&result, p[0], p[1], p[2]);
    if (!saturate(w, i, p, &result)) return;
    gfx9_store(w, i, &i->op[0], row->d, &result);
}

/* Returns the low or high half of a packed source. For packed f32 a half is one of two registers.
 * Otherwise a half is 16 bits of a register. */
static const void *fetch_half(gfx9_wave *w, const gfx9_inst *i, const gfx9_operand *o, int type,
                              int hi, gfx9_vector *room) {
    const bool pair = type == F32 || type == U32;
    gfx9_operand half = *o;
    const uint8_t select = hi ? o->half_hi : o->half_lo;
    half.half_lo = !pair && select, half.neg = hi ? o->neg_hi : o->neg_lo, half.abs = 0;
    if (pair && (o->place == VGPR || o->place == SGPR) && o->count > 1)
        half.reg = (uint16_t)(o->reg + select);
    if (half.place == CONSTANT && !o->literal && !o->real && type != F16) half.half_lo = 0;
    return gfx9_fetch(w, i, &half, type, room);
}

static void execute_packed(gfx9_wave *w, const gfx9_inst *i) {
    const gfx9_row *row = i->row;
    const uint8_t types[] = {row->a, row->b, row->c};
    gfx9_vector room[3], result[2];
    /* v_pk_mov_b32 takes the low half of the result from a and the high half from b. */
    const bool move = row->lanes == lanes_v_pk_mov_b32;
    for (int hi = 0; hi < 2; hi++) {
        const void *p[3] = {0};
        for (uint32_t k = 0; k < 3 && types[k] != N; k++)
            p[k] = fetch_half(w, i, source(i, k), types[k], move ? (int)k : hi, &room[k]);
        row->lanes(&result[hi], move && hi ? p[1] : p[0], p[1], p[2]);
        if (!saturate(w, i, p, &result[hi])) return;
    }
    gfx9_operand to = i->op[0];
    to.half_lo = 0;
    if (row->d == F32 || row->d == U32) {
        gfx9_store(w, i, &to, row->d, &result[0]);
        to.reg++;
        gfx9_store(w, i, &to, row->d, &result[1]);
        return;
    }
    gfx9_inst plain = *i;
    plain.clamp = false;
    for (int l = 0; l < LANES; l++) {
        uint32_t lo = result[0].u[0][l] & 0xffff, hi = result[1].u[0][l] & 0xffff;
        if (i->clamp && row->d == F16)
            lo = gfx9_f32_to_f16(max_f32(min_f32(gfx9_f16_to_f32(lo), 1), 0)),
            hi = gfx9_f32_to_f16(max_f32(min_f32(gfx9_f16_to_f32(hi), 1), 0));
        result[0].u[0][l] = lo | hi << 16;
    }
    gfx9_store(w, &plain, &to, U32, &result[0]);
}

#define V(name, D, A, B, C, value, cost)                                                           \
    {#name, execute, {lanes_##name}, D, A, B, C, COST_##cost, 0, 0},
#define W(name, D, A, B, C, value, cost)                                                           \
    {#name, execute, {lanes_##name}, D, A, B, C, COST_##cost, 0, 1},
#define P(name, D, A, B, C, value, cost)                                                           \
    {#name, execute_packed, {lanes_##name}, D, A, B, C, COST_##cost, 0, 0},
static const gfx9_row rows[] = {
#include "valu.def"
};
const gfx9_table gfx9_valu_table = {rows, sizeof rows / sizeof *rows};
