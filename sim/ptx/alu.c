/* Executes the arithmetic instructions of PTX. Each entry of alu.def becomes a function with a
 * loop over the 32 lanes of a warp. */
#include "lane_types.h"

#define X(name, pattern, D, A, B, C, value) LANES_FUNCTION(lanes_##name, D, A, B, C, value)
#define V1(base, tokens, T, value)          LANES_FUNCTION(lanes_##base##_##T, T, T, none, none, value)
#define V2(base, tokens, T, value)          LANES_FUNCTION(lanes_##base##_##T, T, T, T, none, value)
#define V3(base, tokens, T, value)          LANES_FUNCTION(lanes_##base##_##T, T, T, T, T, value)
#define H1(name, pattern, value)                                                                   \
    LANES_FUNCTION(lanes_##name##_f16, f16, f16, none, none, value)                                \
    LANES_FUNCTION(lanes_##name##_bf16, bf16, bf16, none, none, value)
#define H2(name, pattern, value)                                                                   \
    LANES_FUNCTION(lanes_##name##_f16, f16, f16, f16, none, value)                                 \
    LANES_FUNCTION(lanes_##name##_bf16, bf16, bf16, bf16, none, value)
#define H3(name, pattern, value)                                                                   \
    LANES_FUNCTION(lanes_##name##_f16, f16, f16, f16, f16, value)                                  \
    LANES_FUNCTION(lanes_##name##_bf16, bf16, bf16, bf16, bf16, value)
#define F2(base, tokens, value)
#define F3(base, tokens, value)
#include "alu.def"
#undef X
#undef V1
#undef V2
#undef V3
#undef H1
#undef H2
#undef H3
#undef F2
#undef F3

typedef union {
    uint32_t u[LANES];
    uint64_t u64[LANES];
    float f[LANES];
    double f64[LANES];
} vector;

/* Applies .sat, which limits a float to [0, 1] and turns NaN into 0. */
static void saturate(const ptx_inst *i, ptx_type type, vector *v) {
    if (!i->opcode->sat) return;
    const ptx_format *format = ptx_format_of(type);
    for (int l = 0; l < LANES; l++) {
        if (type == T_f32) v->f[l] = v->f[l] > 0 ? v->f[l] < 1 ? v->f[l] : 1 : 0;
        if (!format) continue;
        const double x = ptx_decode(format, v->u[l]);
        v->u[l] = ptx_encode(format, x > 0 ? x < 1 ? x : 1 : 0, RN, false);
    }
}

static uint32_t mask_of(const uint32_t *words) {
    uint32_t mask = 0;
    for (uint32_t l = 0; l < LANES; l++)
        mask |= (words[l] & 1) << l;
    return mask;
}

/* An f32 or f64 instruction is computed by the host's own f32 or f64 arithmetic. The function sets
 * the host's rounding mode, and whether it flushes subnormals to zero, as the instruction requires.
 * A 16-bit instruction is computed in f32 with the host's default settings. Its rounding is done
 * later, by the conversion to 16 bits. */
static void set_mode(ptx_warp *w, const ptx_inst *i, ptx_type type) {
    const bool own = type == T_f32 || type == T_f64;
    const unsigned rounding = own ? i->opcode->rounding : 0;
    const unsigned mode =
        (rounding > RN && rounding <= RP ? rounding - RN : 0) | (i->opcode->ftz && own ? 4u : 0);
    if (w->mode != mode) ptx_set_mode(w, mode);
}

static const void *source(const ptx_warp *w, const ptx_operand *o, uint32_t *mask) {
    if (o->place != PRED) return ptx_at(w, o);
    *mask = ptx_pred(w, o);
    return mask;
}

void ptx_execute_lanes(ptx_warp *w, const ptx_inst *i) {
    const ptx_row *row = i->opcode->row;
    uint32_t masks[3];
    const void *a = source(w, &i->op[1], &masks[0]);
    const void *b = row->b ? source(w, &i->op[2], &masks[1]) : NULL;
    const void *c = row->c ? source(w, &i->op[3], &masks[2]) : NULL;
    vector result;
    if (ptx_types[row->a].kind == FLOAT) set_mode(w, i, (ptx_type)row->a);
    row->lanes(&result, a, b, c);
    if (row->d == T_pred) {
        ptx_set_pred(w, &i->op[0], mask_of(result.u));
        return;
    }
    if (i->opcode->sat) saturate(i, (ptx_type)row->d, &result);
    ptx_commit(w, &i->op[0], &result);
}

/* Executes an f16x2 or bf16x2 instruction, which computes the two 16-bit halves of each register
 * separately. */
static void execute_pair(ptx_warp *w, const ptx_inst *i) {
    const ptx_row *row = i->opcode->row;
    vector half[3], result[2];
    const uint32_t sources = i->count - 1u;
    if (w->mode) ptx_set_mode(w, 0);
    for (uint32_t h = 0; h < 2; h++) {
        for (uint32_t k = 0; k < sources; k++) {
            const uint32_t *from = ptx_u32(w, &i->op[k + 1]);
            for (int l = 0; l < LANES; l++)
                half[k].u[l] = from[l] >> 16 * h & 0xffff;
        }
        row->lanes(&result[h], &half[0], &half[1], &half[2]);
        saturate(i, (ptx_type)row->what, &result[h]);
    }
    for (int l = 0; l < LANES; l++)
        result[0].u[l] |= result[1].u[l] << 16;
    ptx_commit(w, &i->op[0], &result[0]);
}

/* Executes an f32x2 instruction, which computes the two 32-bit halves of each register
 * separately. */
static void execute_floats(ptx_warp *w, const ptx_inst *i) {
    const ptx_row *row = i->opcode->row;
    vector half[3], result[2], both;
    set_mode(w, i, T_f32);
    for (uint32_t h = 0; h < 2; h++) {
        for (uint32_t k = 0; k < i->count - 1u; k++)
            for (int l = 0; l < LANES; l++)
                half[k].u[l] = (uint32_t)(ptx_u64(w, &i->op[k + 1])[l] >> 32 * h);
        row->lanes(&result[h], &half[0], &half[1], &half[2]);
    }
    for (int l = 0; l < LANES; l++)
        both.u64[l] = result[0].u[l] | (uint64_t)result[1].u[l] << 32;
    ptx_commit(w, &i->op[0], &both);
}

enum { AND, OR, XOR, NOT, MOVE };
static void execute_pred(ptx_warp *w, const ptx_inst *i) {
    const int what = i->opcode->row->what;
    const uint32_t a = ptx_pred(w, &i->op[1]), b = what < NOT ? ptx_pred(w, &i->op[2]) : 0;
    ptx_set_pred(w, &i->op[0],
                 what == AND   ? a & b
                 : what == OR  ? a | b
                 : what == XOR ? a ^ b
                 : what == NOT ? ~a
                               : a);
}

static void execute_lop3(ptx_warp *w, const ptx_inst *i) {
    const uint32_t *a = ptx_u32(w, &i->op[1]), *b = ptx_u32(w, &i->op[2]),
                   *c = ptx_u32(w, &i->op[3]);
    vector result;
    for (int l = 0; l < LANES; l++)
        result.u[l] = logic3(a[l], b[l], c[l], (uint32_t)i->op[4].value);
    ptx_commit(w, &i->op[0], &result);
}

static void execute_bfi(ptx_warp *w, const ptx_inst *i) {
    const uint32_t *at = ptx_u32(w, &i->op[3]), *length = ptx_u32(w, &i->op[4]);
    const bool wide = i->op[0].width == 8;
    vector result;
    for (uint32_t l = 0; l < LANES; l++) {
        const uint64_t v = insert(ptx_lane(w, &i->op[1], l), ptx_lane(w, &i->op[2], l), at[l],
                                  length[l], wide ? 64 : 32);
        if (wide)
            result.u64[l] = v;
        else
            result.u[l] = (uint32_t)v;
    }
    ptx_commit(w, &i->op[0], &result);
}

/* These are the kinds of additions, subtractions and multiply-adds with carry. The flag TAKES
 * means that the instruction adds the carry of an earlier one, and SETS means that it stores a
 * new carry. */
enum { ADD_CARRY, SUB_CARRY, MAD_LOW, MAD_HIGH, CARRY_KIND = 3, TAKES = 4, SETS = 8 };

static ptx_u128 carry_sum(int kind, uint64_t a, uint64_t b, uint64_t c, uint32_t bits,
                          uint64_t carry) {
    const uint64_t mask = bits == 64 ? ~0ull : (1ull << bits) - 1;
    ptx_u128 x = a, y = b;
    if (kind == SUB_CARRY) return x - y - carry;
    if (kind >= MAD_LOW) {
        x = x * y;
        x = kind == MAD_LOW ? x & mask : x >> bits & mask;
        y = c;
    }
    return x + y + carry;
}

static void execute_carry(ptx_warp *w, const ptx_inst *i) {
    const int what = i->opcode->row->what, kind = what & CARRY_KIND;
    const uint32_t bits = ptx_types[i->opcode->types[0]].bits;
    vector result;
    uint32_t carries = 0;
    for (uint32_t l = 0; l < LANES; l++) {
        const uint64_t c = kind >= MAD_LOW ? ptx_lane(w, &i->op[3], l) : 0;
        const ptx_u128 sum = carry_sum(kind, ptx_lane(w, &i->op[1], l), ptx_lane(w, &i->op[2], l),
                                       c, bits, what & TAKES ? w->carry >> l & 1 : 0);
        carries |= (uint32_t)(sum >> bits & 1) << l;
        if (bits == 64)
            result.u64[l] = (uint64_t)sum;
        else
            result.u[l] = (uint32_t)sum;
    }
    if (what & SETS) w->carry = (w->carry & ~w->mask) | (carries & w->mask);
    ptx_commit(w, &i->op[0], &result);
}

#define PLAIN(name, pattern, D, A, B, C)                                                           \
    {pattern, NULL, ptx_execute_lanes, lanes_##name, T_##D, T_##A, T_##B, T_##C, 0},
#define X(name, pattern, D, A, B, C, value) PLAIN(name, pattern, D, A, B, C)
#define V1(base, tokens, T, value)          PLAIN(base##_##T, #base "." tokens #T, T, T, none, none)
#define V2(base, tokens, T, value)          PLAIN(base##_##T, #base "." tokens #T, T, T, T, none)
#define V3(base, tokens, T, value)          PLAIN(base##_##T, #base "." tokens #T, T, T, T, T)
#define PAIR_ROWS(name, pattern, B, C)                                                             \
    {pattern "f16x2", NULL, execute_pair, lanes_##name##_f16, T_f16x2, T_f16x2, B, C, T_f16},      \
        {pattern "bf16x2",                                                                         \
         NULL,                                                                                     \
         execute_pair,                                                                             \
         lanes_##name##_bf16,                                                                      \
         T_bf16x2,                                                                                 \
         T_bf16x2,                                                                                 \
         B,                                                                                        \
         C,                                                                                        \
         T_bf16},
#define H1(name, pattern, value)                                                                   \
    PLAIN(name##_f16, pattern "f16", f16, f16, none, none)                                         \
    PLAIN(name##_bf16, pattern "bf16", bf16, bf16, none, none)                                     \
    PAIR_ROWS(name, pattern, T_none, T_none)
#define H2(name, pattern, value)                                                                   \
    PLAIN(name##_f16, pattern "f16", f16, f16, f16, none)                                          \
    PLAIN(name##_bf16, pattern "bf16", bf16, bf16, bf16, none)                                     \
    PAIR_ROWS(name, pattern, T_b32, T_none)
#define H3(name, pattern, value)                                                                   \
    PLAIN(name##_f16, pattern "f16", f16, f16, f16, f16)                                           \
    PLAIN(name##_bf16, pattern "bf16", bf16, bf16, bf16, bf16)                                     \
    PAIR_ROWS(name, pattern, T_b32, T_b32)
#define F2(base, tokens, value)                                                                    \
    {#base "." tokens "f32x2",                                                                     \
     NULL,                                                                                         \
     execute_floats,                                                                               \
     lanes_##base##_f32,                                                                           \
     T_f32x2,                                                                                      \
     T_f32x2,                                                                                      \
     T_f32x2,                                                                                      \
     T_none,                                                                                       \
     0},
#define F3(base, tokens, value)                                                                    \
    {#base "." tokens "f32x2",                                                                     \
     NULL,                                                                                         \
     execute_floats,                                                                               \
     lanes_##base##_f32,                                                                           \
     T_f32x2,                                                                                      \
     T_f32x2,                                                                                      \
     T_f32x2,                                                                                      \
     T_f32x2,                                                                                      \
     0},
#define PRED_ROW(pattern, operands, what)                                                          \
    {pattern, operands, execute_pred, NULL, T_none, T_none, T_none, T_none, what},
#define CARRY_ROW(pattern, operands, what)                                                         \
    {pattern, operands, execute_carry, NULL, T_none, T_none, T_none, T_none, what},
#define CARRY_TYPES "u32|s32|u64|s64"

static const ptx_row rows[] = {
    {"add.u16x2|s16x2", NULL, execute_pair, lanes_add_u16, T_u16x2, T_u16x2, T_u16x2, 0, T_u16},
    {"min.u16x2", NULL, execute_pair, lanes_min_u16, T_u16x2, T_u16x2, T_u16x2, 0, T_u16},
    {"max.u16x2", NULL, execute_pair, lanes_max_u16, T_u16x2, T_u16x2, T_u16x2, 0, T_u16},
    {"min.s16x2", NULL, execute_pair, lanes_min_s16, T_s16x2, T_s16x2, T_s16x2, 0, T_s16},
    {"max.s16x2", NULL, execute_pair, lanes_max_s16, T_s16x2, T_s16x2, T_s16x2, 0, T_s16},
#include "alu.def"
    PRED_ROW("and.pred", "pPP", AND) PRED_ROW("or.pred", "pPP", OR) PRED_ROW("xor.pred", "pPP", XOR)
        PRED_ROW("not.pred", "pP", NOT) PRED_ROW("mov.pred", "pP", MOVE) CARRY_ROW(
            "add.cc." CARRY_TYPES, "tTT", ADD_CARRY | SETS) CARRY_ROW("addc.cc." CARRY_TYPES, "tTT",
                                                                      ADD_CARRY | TAKES | SETS)
            CARRY_ROW("addc." CARRY_TYPES, "tTT",
                      ADD_CARRY | TAKES) CARRY_ROW("sub.cc." CARRY_TYPES, "tTT", SUB_CARRY | SETS)
                CARRY_ROW("subc.cc." CARRY_TYPES, "tTT", SUB_CARRY | TAKES | SETS)
                    CARRY_ROW("subc." CARRY_TYPES, "tTT", SUB_CARRY | TAKES)
                        CARRY_ROW("mad.lo.cc." CARRY_TYPES, "tTTT", MAD_LOW | SETS)
                            CARRY_ROW("mad.hi.cc.u32|u64", "tTTT", MAD_HIGH | SETS) CARRY_ROW(
                                "madc.lo.cc." CARRY_TYPES, "tTTT", MAD_LOW | TAKES | SETS)
                                CARRY_ROW("madc.hi.cc.u32|u64", "tTTT", MAD_HIGH | TAKES | SETS)
                                    CARRY_ROW("madc.lo." CARRY_TYPES, "tTTT", MAD_LOW | TAKES)
                                        CARRY_ROW("madc.hi.u32|u64", "tTTT", MAD_HIGH | TAKES){
                                            "lop3.b32", "rRRRi", execute_lop3, NULL, 0, 0, 0, 0, 0},
    {"bfi.b32|b64", "tTTRR", execute_bfi, NULL, 0, 0, 0, 0, 0},
};
const ptx_table ptx_alu_table = {rows, sizeof rows / sizeof *rows};
