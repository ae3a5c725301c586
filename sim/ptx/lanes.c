/* Executes instructions that exchange data between the lanes of a warp, i.e. shuffles, votes,
 * matches, reductions and elections. */
#include "sim.h"
#include <string.h>

static bool whole(ptx_warp *w, const ptx_inst *i, uint32_t operand) {
    return ptx_together(w, i, (uint32_t)ptx_uniform(w, &i->op[operand]));
}

enum { UP, DOWN, BUTTERFLY, INDEX };

/* Returns the lane from which lane l reads in a shuffle (shfl). `b` is the distance or index, and
 * `c` holds the mask that divides the warp into segments. If the lane is outside l's segment, sets
 * *inside to false and returns l. */
static uint32_t partner(int mode, uint32_t l, uint32_t b, uint32_t c, bool *inside) {
    const uint32_t clamp = c & 31, segment = c >> 8 & 31, by = b & 31;
    const uint32_t most = (l & segment) | (clamp & ~segment), least = l & segment;
    const int32_t at = mode == UP          ? (int32_t)l - (int32_t)by
                       : mode == DOWN      ? (int32_t)(l + by)
                       : mode == BUTTERFLY ? (int32_t)(l ^ by)
                                           : (int32_t)(least | (by & ~segment));
    *inside = mode == UP ? at >= (int32_t)most : at <= (int32_t)most;
    return *inside ? (uint32_t)at & 31 : l;
}

static void execute_shfl(ptx_warp *w, const ptx_inst *i) {
    if (!whole(w, i, 5)) return;
    const uint32_t *a = ptx_u32(w, &i->op[2]), *b = ptx_u32(w, &i->op[3]),
                   *c = ptx_u32(w, &i->op[4]);
    uint32_t result[LANES], in = 0;
    for (uint32_t l = 0; l < LANES; l++) {
        bool inside;
        const uint32_t from = partner(i->opcode->row->what, l, b[l], c[l], &inside);
        result[l] = a[from];
        in |= (uint32_t)inside << l;
        if (w->mask >> l & 1 && inside && !(w->mask >> from & 1)) {
            ptx_stop(w, i, "lane %u reads lane %u, which takes no part", l, from);
            return;
        }
    }
    ptx_commit(w, &i->op[0], result);
    ptx_set_pred(w, &i->op[1], in);
}

enum { ALL, ANY, UNIFORM, BALLOT };

static void execute_vote(ptx_warp *w, const ptx_inst *i) {
    if (!whole(w, i, 2)) return;
    const uint32_t yes = ptx_pred(w, &i->op[1]) & w->mask;
    uint32_t result[LANES];
    const int what = i->opcode->row->what;
    if (what == BALLOT) {
        for (uint32_t l = 0; l < LANES; l++)
            result[l] = yes;
        ptx_commit(w, &i->op[0], result);
        return;
    }
    const bool all = yes == w->mask, any = yes != 0;
    ptx_set_pred(w, &i->op[0], (what == ALL ? all : what == ANY ? any : all || !any) ? ~0u : 0);
}

static void execute_activemask(ptx_warp *w, const ptx_inst *i) {
    uint32_t result[LANES];
    for (uint32_t l = 0; l < LANES; l++)
        result[l] = w->mask;
    ptx_commit(w, &i->op[0], result);
}

static void execute_match(ptx_warp *w, const ptx_inst *i) {
    if (!whole(w, i, 3)) return;
    uint32_t result[LANES] = {0}, all = 0;
    for (uint32_t l = 0; l < LANES; l++) {
        for (uint32_t k = 0; k < LANES; k++)
            if (w->mask >> k & 1 && ptx_lane(w, &i->op[2], k) == ptx_lane(w, &i->op[2], l))
                result[l] |= 1u << k;
        all |= (uint32_t)(result[l] == w->mask) << l;
        if (i->opcode->row->what == ALL && result[l] != w->mask) result[l] = 0;
    }
    ptx_commit(w, &i->op[0], result);
    ptx_set_pred(w, &i->op[1], all);
}

enum { ADD, MIN, MAX, AND, OR, XOR };

static uint32_t reduce(int what, bool sign, uint32_t a, uint32_t b) {
    const bool less = sign ? (int32_t)a < (int32_t)b : a < b;
    switch (what) {
    case ADD:
        return a + b;
    case MIN:
        return less ? a : b;
    case MAX:
        return less ? b : a;
    case AND:
        return a & b;
    case OR:
        return a | b;
    default:
        return a ^ b;
    }
}

static void execute_redux(ptx_warp *w, const ptx_inst *i) {
    static const char names[] = "add|min|max|and|or|xor|";
    if (!whole(w, i, 2)) return;
    const uint32_t *a = ptx_u32(w, &i->op[1]);
    uint32_t result[LANES], total = a[ptx_first(w->mask)];
    const int what = ptx_which(i->opcode, names);
    for (uint32_t left = w->mask & (w->mask - 1); left; left &= left - 1)
        total = reduce(what, i->opcode->types[0] == T_s32, total, a[ptx_first(left)]);
    for (uint32_t l = 0; l < LANES; l++)
        result[l] = total;
    ptx_commit(w, &i->op[0], result);
}

/* Executes redux for f32. The result ignores NaN sources, unless the instruction has the modifier
 * .NaN. */
static void execute_redux_f32(ptx_warp *w, const ptx_inst *i) {
    static const char names[] = "min|max|";
    if (!whole(w, i, 2)) return;
    const float *a = ptx_at(w, &i->op[1]);
    const bool largest = ptx_which(i->opcode, names) == 1, nan = ptx_has(i->opcode, "NaN"),
               absolute = ptx_has(i->opcode, "abs");
    float result[LANES], total = a[ptx_first(w->mask)];
    if (absolute) total = __builtin_fabsf(total);
    for (uint32_t left = w->mask & (w->mask - 1); left; left &= left - 1) {
        float v = a[ptx_first(left)];
        if (absolute) v = __builtin_fabsf(v);
        const bool better = largest ? v > total : v < total;
        if (nan ? total == total && (v != v || better) : total != total || better) total = v;
    }
    for (uint32_t l = 0; l < LANES; l++)
        result[l] = total;
    ptx_commit(w, &i->op[0], result);
}

/* Executes elect, which chooses the lowest lane of the mask. */
static void execute_elect(ptx_warp *w, const ptx_inst *i) {
    if (!whole(w, i, 2)) return;
    uint32_t result[LANES];
    for (uint32_t l = 0; l < LANES; l++)
        result[l] = ptx_first(w->mask);
    ptx_commit(w, &i->op[0], result);
    ptx_set_pred(w, &i->op[1], 1u << ptx_first(w->mask));
}

#define ROW(pattern, operands, execute, what)                                                      \
    { pattern, operands, execute, NULL, 0, 0, 0, 0, what }
static const ptx_row rows[] = {
    ROW("shfl.sync.up.b32", "r|pRRRR", execute_shfl, UP),
    ROW("shfl.sync.down.b32", "r|pRRRR", execute_shfl, DOWN),
    ROW("shfl.sync.bfly.b32", "r|pRRRR", execute_shfl, BUTTERFLY),
    ROW("shfl.sync.idx.b32", "r|pRRRR", execute_shfl, INDEX),
    ROW("vote.sync.all.pred", "pPR", execute_vote, ALL),
    ROW("vote.sync.any.pred", "pPR", execute_vote, ANY),
    ROW("vote.sync.uni.pred", "pPR", execute_vote, UNIFORM),
    ROW("vote.sync.ballot.b32", "rPR", execute_vote, BALLOT),
    ROW("activemask.b32", "r", execute_activemask, 0),
    ROW("match.any.sync.b32|b64", "r|pTR", execute_match, ANY),
    ROW("match.all.sync.b32|b64", "r|pTR", execute_match, ALL),
    ROW("redux.sync.add|min|max.u32|s32", "rRR", execute_redux, 0),
    ROW("redux.sync.and|or|xor.b32", "rRR", execute_redux, 0),
    ROW("redux.sync.min|max.{abs}.{NaN}.f32", "rRR", execute_redux_f32, 0),
    ROW("elect.sync", "r|pR", execute_elect, 0),
};
const ptx_table ptx_lanes_table = {rows, sizeof rows / sizeof *rows};
