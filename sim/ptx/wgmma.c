/* Executes wgmma, the matrix multiplication of a warpgroup of four warps, each of which computes 16
 * rows. The simulator reads the operands and computes only when the program waits for the result. A
 * program that overwrites operands too early therefore gets wrong results. */
#include "access.h"
#include "floats.h"
#include "layout.h"
#include "matrix.h"
#include "races.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_K = 64, MOST_N = 256 };

typedef struct {
    const ptx_inst *inst;
    /* `a` and `b` are the descriptors of A and B if these operands are in shared memory. */
    uint64_t a, b;
    /* `race` is the number of this operation for the race detector (races.h), or 0 if races are not
     * checked. */
    uint32_t group, race;
    bool adds;
} product;

struct ptx_products {
    uint32_t count, room, group;
    product list[];
};

typedef struct {
    uint32_t n, k;
    ptx_type d, a, b;
    double left[16][MOST_K], right[MOST_K][MOST_N], sum[16][MOST_N];
} tile;

static uint32_t number_after(const char *text, char letter) {
    const char *at = strchr(text, letter);
    return at ? (uint32_t)strtoul(at + 1, NULL, 10) : 0;
}

static bool read_left(ptx_warp *w, const product *p, tile *t) {
    const ptx_operand *o = &p->inst->op[1];
    const bool transposed = ptx_types[t->a].bits == 16 && p->inst->op[6].place == COUNT &&
                            p->inst->op[6].value && o->place != VECTOR;
    const uint32_t each = ptx_elements_of(t->a), first = w->id % 4 * 16;
    if (o->place == VECTOR) {
        for (uint32_t r = 0; r < 4; r++)
            for (uint32_t l = 0; l < LANES; l++)
                for (uint32_t e = 0; e < each; e++)
                    t->left[l / 4 + 8 * (r % 2)][each * (l % 4) + e + 4 * each * (r / 2)] =
                        ptx_value_of(t->a,
                                     ptx_element_bits(t->a, ptx_lane(w, &o->elements[r], l), e));
        return true;
    }
    ptx_layout layout;
    if (!ptx_layout_of_wgmma(w, p->inst, p->a, transposed, &layout)) return false;
    const ptx_part part = {first, 16, t->k, t->a, true};
    return ptx_layout_read(w, p->inst, w->block, &layout, part, t->left[0], MOST_K, 1);
}

static bool read_right(ptx_warp *w, const product *p, tile *t) {
    const ptx_operand *last = &p->inst->op[p->inst->op[1].place == VECTOR ? 6 : 7];
    const bool transposed = ptx_types[t->b].bits == 16 && last->place == COUNT && last->value;
    ptx_layout layout;
    if (!ptx_layout_of_wgmma(w, p->inst, p->b, transposed, &layout)) return false;
    const ptx_part part = {0, t->n, t->k, t->b, true};
    return ptx_layout_read(w, p->inst, w->block, &layout, part, t->right[0], 1, MOST_N);
}

static double signs(const product *p) {
    double s = 1;
    for (uint32_t k = 4; k < 6; k++)
        if (p->inst->op[k].place == COUNT && p->inst->op[k].value == -1) s = -s;
    return s;
}

/* Adds the products in double and rounds the sum once. This is used for element types for which it
 * is not known how the hardware adds and rounds. */
static void add_in_double(const product *p, tile *t) {
    const double s = signs(p);
    for (uint32_t m = 0; m < 16; m++)
        for (uint32_t k = 0; k < t->k; k++) {
            const double a = s * t->left[m][k];
            for (uint32_t n = 0; n < t->n; n++)
                t->sum[m][n] += a * t->right[k][n];
        }
}

/* Adds the products of A and B as real tensor cores do: `rule` says how they truncate. */
static void add_as_hardware(const product *p, tile *t, sim_tensor_rule rule) {
    const float s = (float)signs(p);
    sim_tensor_vector a[16], b;
    float elements[SIM_TENSOR_MOST_K];
    for (uint32_t m = 0; m < 16; m++) {
        for (uint32_t k = 0; k < t->k; k++)
            elements[k] = s * (float)t->left[m][k];
        sim_tensor_prepare(&a[m], elements, (int)t->k, rule.least_a);
    }
    for (uint32_t n = 0; n < t->n; n++) {
        for (uint32_t k = 0; k < t->k; k++)
            elements[k] = (float)t->right[k][n];
        sim_tensor_prepare(&b, elements, (int)t->k, rule.least_b);
        for (uint32_t m = 0; m < 16; m++)
            t->sum[m][n] = ptx_tensor_sum(t->d, t->sum[m][n], &a[m], &b, t->k, rule);
    }
}

static void multiply(const product *p, tile *t) {
    sim_tensor_rule rule;
    if (ptx_tensor_rule(t->a, t->b, t->d, &rule))
        add_as_hardware(p, t, rule);
    else
        add_in_double(p, t);
}

/* Reads the accumulators of the warp's 16 rows from registers. For every j, lane 4 g + t holds
 * columns 8 j + 2 t and 8 j + 2 t + 1 of rows g and g + 8. */
static void read_sums(const ptx_warp *w, const product *p, tile *t) {
    const bool half = t->d == T_f16;
    for (uint32_t r = 0; r < t->n / 2; r++)
        for (uint32_t l = 0; l < LANES; l++) {
            const uint64_t reg = ptx_lane(w, &p->inst->op[0].elements[half ? r / 2 : r], l);
            t->sum[l / 4 + r / 2 % 2 * 8][r / 4 * 8 + 2 * (l % 4) + r % 2] =
                ptx_value_of(t->d, half ? ptx_element_bits(T_f16, reg, r % 2) : reg);
        }
}

static void write_sums(ptx_warp *w, const product *p, const tile *t) {
    const bool half = t->d == T_f16;
    for (uint32_t r = 0; r < t->n / 2; r += half ? 2 : 1) {
        uint32_t result[LANES];
        for (uint32_t l = 0; l < LANES; l++) {
            const double *from = &t->sum[l / 4 + r / 2 % 2 * 8][r / 4 * 8 + 2 * (l % 4)];
            result[l] = (uint32_t)ptx_result_bits(p->inst, t->d, from[r % 2]);
            if (half) result[l] |= (uint32_t)ptx_result_bits(p->inst, t->d, from[1]) << 16;
        }
        ptx_commit(w, &p->inst->op[0].elements[half ? r / 2 : r], result);
    }
}

/* Writes 1 to D instead of the product, or leaves D unchanged if the instruction adds to
 * accumulators that are not 0. The simulator calls the function if only the time of a launch is of
 * interest. The value is not 0, because some kernels do additional work if D is 0. */
static void skip(ptx_warp *w, const product *p, tile *t) {
    if (p->adds && ptx_lane(w, &p->inst->op[0].elements[0], 0) != 0) return;
    for (uint32_t m = 0; m < 16; m++)
        for (uint32_t n = 0; n < t->n; n++)
            t->sum[m][n] = 1;
    write_sums(w, p, t);
}

static void compute(ptx_warp *w, const product *p, tile *t) {
    for (uint32_t m = 0; m < 16; m++)
        memset(t->sum[m], 0, t->n * sizeof **t->sum);
    if (p->adds) read_sums(w, p, t);
    if (!read_left(w, p, t) || !read_right(w, p, t)) return;
    multiply(p, t);
    write_sums(w, p, t);
}

static void run(ptx_warp *w, const product *p) {
    const uint8_t *types = p->inst->opcode->types;
    const char *shape = strstr(p->inst->opcode->text, ".m64");
    tile *t = malloc(sizeof *t);
    if (!t || !shape) {
        free(t);
        ptx_stop(w, p->inst, "out of memory");
        return;
    }
    t->n = number_after(shape + 1, 'n'), t->k = number_after(shape + 1, 'k');
    t->d = (ptx_type)types[0], t->a = (ptx_type)types[1], t->b = (ptx_type)types[2];
    if (w->block->launch->timed == TIMING_SAMPLE)
        skip(w, p, t);
    else
        compute(w, p, t);
    free(t);
}

static struct ptx_products *with_room(ptx_warp *w) {
    struct ptx_products *q = w->products;
    if (q && q->count < q->room) return q;
    const uint32_t room = q ? 2 * q->room : 16;
    struct ptx_products *more = realloc(q, sizeof *more + room * sizeof *more->list);
    if (!more) return NULL;
    if (!q) memset(more, 0, sizeof *more);
    more->room = room;
    return w->products = more;
}

static bool fits(ptx_warp *w, const ptx_inst *i) {
    const char *shape = strstr(i->opcode->text, ".m64");
    const uint32_t n = shape ? number_after(shape + 1, 'n') : 0,
                   k = shape ? number_after(shape + 1, 'k') : 0;
    const uint32_t bits = ptx_types[i->opcode->types[1]].bits;
    if (n < 8 || n > MOST_N || n % 8 || k * bits != 256) {
        ptx_stop(w, i, "there is no such shape");
        return false;
    }
    if (i->op[1].place == VECTOR && !ptx_has_count(w, i, &i->op[1], 4)) return false;
    return i->op[0].place == VECTOR &&
           ptx_has_count(w, i, &i->op[0], i->opcode->types[0] == T_f16 ? n / 4 : n / 2);
}

static void execute_product(ptx_warp *w, const ptx_inst *i) {
    if (!ptx_together(w, i, ~0u) || !fits(w, i)) return;
    struct ptx_products *q = with_room(w);
    if (!q) {
        ptx_stop(w, i, "out of memory");
        return;
    }
    product *p = &q->list[q->count++];
    *p = (product){.inst = i, .group = q->group, .adds = (ptx_pred(w, &i->op[3]) & 1) != 0};
    p->b = ptx_uniform(w, &i->op[2]);
    if (i->op[1].place == REG) p->a = ptx_uniform(w, &i->op[1]);
    p->race = ptx_race_issue(w, true);
}

static void execute_commit(ptx_warp *w, const ptx_inst *i) {
    struct ptx_products *q = with_room(w);
    if (q)
        q->group++;
    else
        ptx_stop(w, i, "out of memory");
}

static void execute_wait(ptx_warp *w, const ptx_inst *i) {
    struct ptx_products *q = w->products;
    uint32_t done = 0;
    if (!q) return;
    if (w->mode) ptx_set_mode(w, 0);
    while (done < q->count && q->list[done].group + (uint32_t)i->op[0].value < q->group &&
           !w->stop) {
        const product *p = &q->list[done++];
        ptx_race_start(w, p->race, false);
        run(w, p);
        ptx_race_finish(w, p->race, END_KNOWN);
    }
    memmove(q->list, q->list + done, (q->count - done) * sizeof *q->list);
    q->count -= done;
}

static void execute_fence(ptx_warp *w, const ptx_inst *i) {
    (void)ptx_together(w, i, ~0u);
}

#define ROW(pattern, operands, execute)                                                            \
    { pattern, operands, execute, NULL, 0, 0, 0, 0, 0 }
#define N_(n) "m64n" #n "k16|m64n" #n "k32|m64n" #n "k8|"
/* clang-format off */
#define SHAPES \
    N_(8) N_(16) N_(24) N_(32) N_(40) N_(48) N_(56) N_(64) \
    N_(72) N_(80) N_(88) N_(96) N_(104) N_(112) N_(120) N_(128) \
    N_(136) N_(144) N_(152) N_(160) N_(168) N_(176) N_(184) N_(192) \
    N_(200) N_(208) N_(216) N_(224) N_(232) N_(240) N_(248) N_(256)
/* clang-format on */
#define WGMMA "wgmma.mma_async.sync.aligned." SHAPES "."
static const ptx_row rows[] = {
    ROW(WGMMA "f32|f16.f16.f16", "wDLPi?i?i?i?", execute_product),
    ROW(WGMMA "f32.bf16.bf16", "wDLPi?i?i?i?", execute_product),
    ROW(WGMMA "f32.tf32.tf32", "wDLPi?i?", execute_product),
    ROW(WGMMA "f32|f16.e4m3|e5m2.e4m3|e5m2", "wDLPi?i?", execute_product),
    ROW(WGMMA "{satfinite}.s32.s8|u8.s8|u8", "wDLP", execute_product),
    ROW("wgmma.fence.sync.aligned", "", execute_fence),
    ROW("wgmma.commit_group.sync.aligned", "", execute_commit),
    ROW("wgmma.wait_group.sync.aligned", "i", execute_wait),
};
const ptx_table ptx_wgmma_table = {rows, sizeof rows / sizeof *rows};
