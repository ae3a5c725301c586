/* Executes the comparison instructions setp and set. compare.def lists the comparisons. */
#include "lane_types.h"

#define C(op, T, value) LANES_FUNCTION(lanes_##op##_##T, pred, T, T, none, value)
#include "compare.def"
#undef C

static uint32_t combined(const ptx_inst *i, uint32_t mask, uint32_t with) {
    static const char names[] = "and|or|xor|";
    const int which = ptx_which(i->opcode, names);
    return which == 0 ? mask & with : which == 1 ? mask | with : which == 2 ? mask ^ with : mask;
}

static uint32_t compare(ptx_warp *w, const ptx_inst *i, const ptx_operand *a,
                        const ptx_operand *b) {
    uint32_t words[LANES], mask = 0;
    const unsigned mode = i->opcode->ftz ? 4 : 0;
    if (w->mode != mode) ptx_set_mode(w, mode);
    i->opcode->row->lanes(words, ptx_at(w, a), ptx_at(w, b), NULL);
    for (uint32_t l = 0; l < LANES; l++)
        mask |= (words[l] & 1) << l;
    return mask;
}

/* Executes setp, which compares two sources and writes the result to a predicate. The instruction
 * may have a third source, which is a predicate. The result of the comparison is then combined with
 * it by the operation and, or or xor before it is written. If there is a second destination, it
 * gets the negated result of the comparison, combined with the third source in the same way. */
static void execute_setp(ptx_warp *w, const ptx_inst *i) {
    const uint32_t mask = compare(w, i, &i->op[2], &i->op[3]);
    if (i->op[4].place == NOWHERE && i->op[1].place == NOWHERE) {
        ptx_set_pred(w, &i->op[0], mask);
        return;
    }
    const uint32_t with = ptx_pred(w, &i->op[4]);
    const bool joins = i->op[4].place != NOWHERE;
    ptx_set_pred(w, &i->op[0], joins ? combined(i, mask, with) : mask);
    ptx_set_pred(w, &i->op[1], joins ? combined(i, ~mask, with) : ~mask);
}

static void execute_set(ptx_warp *w, const ptx_inst *i) {
    uint32_t mask = compare(w, i, &i->op[1], &i->op[2]), result[LANES];
    if (i->op[3].place != NOWHERE) mask = combined(i, mask, ptx_pred(w, &i->op[3]));
    const uint32_t yes = i->opcode->types[0] == T_f32 ? sim_bits(1) : ~0u;
    for (uint32_t l = 0; l < LANES; l++)
        result[l] = mask >> l & 1 ? yes : 0;
    ptx_commit(w, &i->op[0], result);
}

static void compare_half(ptx_warp *w, const ptx_inst *i, uint32_t half, const ptx_operand *a,
                         const ptx_operand *b, uint32_t *words) {
    uint32_t x[LANES], y[LANES];
    for (uint32_t l = 0; l < LANES; l++) {
        x[l] = ptx_u32(w, a)[l] >> 16 * half & 0xffff;
        y[l] = ptx_u32(w, b)[l] >> 16 * half & 0xffff;
    }
    i->opcode->row->lanes(words, x, y, NULL);
}

/* Executes set for f16x2 and bf16x2: each half becomes 1.0 if its comparison is true, else 0. */
static void execute_set_pair(ptx_warp *w, const ptx_inst *i) {
    const uint32_t one = i->opcode->types[0] == T_bf16x2 ? 0x3f80 : 0x3c00;
    uint32_t words[LANES], result[LANES] = {0};
    for (uint32_t h = 0; h < 2; h++) {
        compare_half(w, i, h, &i->op[1], &i->op[2], words);
        for (uint32_t l = 0; l < LANES; l++)
            result[l] |= words[l] ? one << 16 * h : 0;
    }
    ptx_commit(w, &i->op[0], result);
}

/* Executes setp for f16x2 and bf16x2. The first predicate is the comparison of the low halves of
 * the registers. The second predicate is the comparison of the high halves. */
static void execute_setp_pair(ptx_warp *w, const ptx_inst *i) {
    for (uint32_t h = 0; h < 2; h++) {
        uint32_t words[LANES], mask = 0;
        compare_half(w, i, h, &i->op[2], &i->op[3], words);
        for (uint32_t l = 0; l < LANES; l++)
            mask |= (words[l] & 1) << l;
        if (i->op[4].place != NOWHERE) mask = combined(i, mask, ptx_pred(w, &i->op[4]));
        ptx_set_pred(w, &i->op[h], mask);
    }
}

#define SET_PAIR_f16(op)                                                                           \
    {"set." #op ".{ftz}.f16x2.f16x2", "rRR", execute_set_pair, lanes_##op##_f16, 0, 0, 0, 0, 0},   \
        {"setp." #op ".{and|or|xor}.{ftz}.f16x2",                                                  \
         "p|pRRP?",                                                                                \
         execute_setp_pair,                                                                        \
         lanes_##op##_f16,                                                                         \
         0,                                                                                        \
         0,                                                                                        \
         0,                                                                                        \
         0,                                                                                        \
         0},
#define SET_PAIR_bf16(op)                                                                          \
    {                                                                                              \
        "set." #op ".{ftz}.bf16x2.bf16x2",                                                         \
        "rRR",                                                                                     \
        execute_set_pair,                                                                          \
        lanes_##op##_bf16,                                                                         \
        0,                                                                                         \
        0,                                                                                         \
        0,                                                                                         \
        0,                                                                                         \
        0},                                                                                        \
        {"setp." #op ".{and|or|xor}.{ftz}.bf16x2",                                                 \
         "p|pRRP?",                                                                                \
         execute_setp_pair,                                                                        \
         lanes_##op##_bf16,                                                                        \
         0,                                                                                        \
         0,                                                                                        \
         0,                                                                                        \
         0,                                                                                        \
         0},
#define SET_PAIR_b16(op)
#define SET_PAIR_b32(op)
#define SET_PAIR_b64(op)
#define SET_PAIR_u16(op)
#define SET_PAIR_u32(op)
#define SET_PAIR_u64(op)
#define SET_PAIR_s16(op)
#define SET_PAIR_s32(op)
#define SET_PAIR_s64(op)
#define SET_PAIR_f32(op)
#define SET_PAIR_f64(op)
#define C(op, T, value)                                                                            \
    SET_PAIR_##T(op){"setp." #op ".{and|or|xor}.{ftz}." #T,                                        \
                     "p|pTTP?",                                                                    \
                     execute_setp,                                                                 \
                     lanes_##op##_##T,                                                             \
                     0,                                                                            \
                     0,                                                                            \
                     0,                                                                            \
                     0,                                                                            \
                     0},                                                                           \
        {"set." #op ".{and|or|xor}.{ftz}.u32|s32|f32." #T,                                         \
         "tSSP?",                                                                                  \
         execute_set,                                                                              \
         lanes_##op##_##T,                                                                         \
         0,                                                                                        \
         0,                                                                                        \
         0,                                                                                        \
         0,                                                                                        \
         0},
static const ptx_row rows[] = {
#include "compare.def"
};
const ptx_table ptx_compare_table = {rows, sizeof rows / sizeof *rows};
