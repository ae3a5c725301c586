/* Executes tcgen05.mma, tcgen05.cp and tcgen05.commit. The simulated copy engine (async.h) runs
 * these instructions in the order of issue and as late as possible, so that a missing wait gives
 * wrong results. */
#include "access.h"
#include "async.h"
#include "floats.h"
#include "layout.h"
#include "matrix.h"
#include "tcgen05_form.h"
#include "time.h"
#include "tmem.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_K = 64,
    MOST_M = 128,
    MOST_N = 256,
    DESCRIPTOR = 0,
    ADDS = 1,
    SCALE_A = 2,
    SCALE_B = 3,
    FROM_TMEM = 4,
    /* These operands of tcgen05.mma exist only in kinds without block scales. */
    DISABLED = 4,
    ENABLED = 5,
    SCALE_D = 6
};

typedef struct {
    enum ptx_mma_kind kind;
    /* `block` is the number of elements of K that share a scale, or 0 without scales. */
    uint32_t m, n, k, block;
    /* With cta_group::2, `pair` is true, and a pair of thread blocks executes the instruction: each
     * block computes half of the rows of D. `rows` is the number of rows that one thread block
     * computes. `at` is the thread block whose rows the simulator computes now. */
    bool pair;
    uint32_t rows;
    ptx_block *at;
    ptx_type a, b, d, scale;
    bool a_transposed, b_transposed, saturates;
    double sign;
    double scale_d; /* D is multiplied by `scale_d` before the sum is added. */
    /* `a_scale` and `b_scale` are the positions of the first scale's byte in a 32-bit word of
     * tensor memory. */
    uint32_t a_scale, b_scale;
    char wrong[80]; /* `wrong` is the reason for which the instruction descriptor is refused. */
    double left[MOST_M][MOST_K], right[MOST_K][MOST_N];
} product;

static ptx_type small_float(uint32_t code) {
    static const uint8_t types[] = {T_e4m3, T_e5m2, T_none, T_e2m3, T_e3m2, T_e2m1, T_none, T_none};
    return (ptx_type)types[code & 7];
}

static ptx_type operand_type(enum ptx_mma_kind kind, uint32_t code) {
    switch (kind) {
    case F16:
        return code == 0 ? T_f16 : code == 1 ? T_bf16 : T_none;
    case TF32:
        return code == 2 ? T_tf32 : T_none;
    case I8:
        return code == 0 ? T_u8 : code == 1 ? T_s8 : T_none;
    case MXF4:
    case MXF4NVF4:
        return T_e2m1;
    default:
        return small_float(code);
    }
}

static const char *check(const product *p) {
    if (p->pair && p->m != 128 && p->m != 256) return "M is not 128 or 256";
    if (!p->pair && p->m != 64 && p->m != 128) return "M is not 64 or 128";
    if (p->block && !p->pair && p->m != 128) return "block scales want an M of 128";
    const uint32_t step = p->pair ? p->block ? 16 : 32 : p->m == 64 || p->block ? 8 : 16;
    if (!(p->scale_d >= 0x1p-15 && p->scale_d <= 1)) return "scale-input-d is above 15";
    if (p->scale_d < 1 && p->kind > TF32) return "scale-input-d is for kind::f16 and kind::tf32";
    if (p->n < step || p->n > 256 || p->n % step) return "N is out of range";
    return NULL;
}

static const char *decode(product *p, const ptx_inst *i, uint32_t d) {
    static const char kinds[] =
        "kind::f16|kind::tf32|kind::f8f6f4|kind::i8|kind::mxf8f6f4|kind::mxf4|kind::mxf4nvf4|";
    static const uint8_t ks[] = {16, 8, 32, 32, 32, 64, 64};
    p->kind = (enum ptx_mma_kind)ptx_which(i->opcode, kinds);
    p->k = ks[p->kind];
    p->a = operand_type(p->kind, d >> 7 & 7), p->b = operand_type(p->kind, d >> 10 & 7);
    p->sign = (d >> 13 & 1) != (d >> 14 & 1) ? -1 : 1;
    p->a_transposed = d >> 15 & 1, p->b_transposed = d >> 16 & 1;
    p->saturates = d >> 3 & 1;
    p->n = (d >> 17 & 63) * 8, p->m = (d >> 24 & 31) * 16;
    p->pair = ptx_has(i->opcode, "cta_group::2"), p->rows = p->pair ? p->m / 2 : p->m;
    const bool scaled = p->kind >= MXF8F6F4;
    p->scale_d = scaled || !i->op[SCALE_D].place ? 1 : ldexp(1, -(int)i->op[SCALE_D].value);
    p->d = scaled ? T_f32 : (d >> 4 & 3) == 0 ? T_f16 : (d >> 4 & 3) == 1 ? T_f32 : T_s32;
    p->scale = d >> 23 & 1 ? T_ue8m0 : T_ue4m3;
    const bool sixteen = ptx_has(i->opcode, "block16") || ptx_has(i->opcode, "scale_vec::4X");
    p->block = !scaled ? 0 : sixteen ? 16 : 32;
    p->a_scale = d >> 29 & 3, p->b_scale = d >> 4 & 3;
    return ptx_check_form(p->kind, p->block, d, p->wrong, sizeof p->wrong) ? check(p) : p->wrong;
}

/* Returns the lane of tensor memory that holds row m of D or A. If M is 64, only the first 16 of
 * every 32 lanes hold a row. */
static uint32_t lane_of(const product *p, uint32_t m) {
    return p->m == 64 ? m / 16 * 32 + m % 16 : m;
}

/* Returns 1 if element n of a row of D is in the upper half of the lanes of tensor memory, else 0.
 * It is 1 only for a pair of thread blocks with an M of 128. Each block then has 64 rows, with the
 * first half of the columns in lanes 0 to 63 and the second half in lanes 64 to 127. */
static uint32_t half_of(const product *p, uint32_t n) {
    return p->pair && p->m == 128 && n >= p->n / 2;
}

/* Returns the 32-bit cell of tensor memory that holds the element of the result D in row m and
 * column n. */
static uint32_t *cell_of(ptx_async *j, const product *p, uint32_t m, uint32_t n, bool write) {
    const uint32_t half = half_of(p, n), lane = (uint32_t)(j->to >> 16) + lane_of(p, m) + 64 * half,
                   column = ((uint32_t)j->to & 0xffff) + n - half * (p->n / 2);
    return ptx_tmem_cell_of(p->at, j->warp, j->inst, lane, column, write);
}

/* Returns true if the operand disable-output-lane excludes the lane that holds element n of row
 * m. */
static bool is_disabled(const ptx_async *j, const product *p, uint32_t m, uint32_t n) {
    const uint32_t lane = (uint32_t)(j->to >> 16) + lane_of(p, m) + 64 * half_of(p, n),
                   first = p->pair ? 4 * (p->at->rank & 1) : 0;
    return j->disabled[first + lane / 32 % 4] >> lane % 32 & 1;
}

static bool read_tmem(ptx_async *j, const product *p, uint32_t m, uint32_t k, double *to) {
    const uint32_t bits = ptx_types[p->a].bits, each = 32 / bits;
    const uint32_t *cell =
        ptx_tmem_cell_of(p->at, j->warp, j->inst, (uint32_t)(j->from >> 16) + lane_of(p, m),
                         ((uint32_t)j->from & 0xffff) + k / each, false);
    if (cell) *to = ptx_value_of(p->a, ptx_element_bits(p->a, *cell, k % each));
    return cell != NULL;
}

/* Reads the rows of A of one thread block, and all rows of B. */
static bool read_operands(ptx_async *j, product *p) {
    ptx_layout a = {0}, b;
    const bool from_tmem = j->at[FROM_TMEM];
    if (from_tmem && p->pair && p->m == 128) {
        ptx_stop(j->warp, j->inst,
                 "A in tensor memory with cta_group::2 and M 128 is not executed");
        return false;
    }
    if (!from_tmem && !ptx_layout_of_tcgen05(j->warp, j->inst, j->from, p->a_transposed, &a))
        return false;
    if (!ptx_layout_of_tcgen05(j->warp, j->inst, j->value, p->b_transposed, &b)) return false;
    for (uint32_t m = 0; from_tmem && m < p->rows; m++)
        for (uint32_t k = 0; k < p->k; k++)
            if (!read_tmem(j, p, m, k, &p->left[m][k])) return false;
    const ptx_part rows = {0, p->rows, p->k, p->a, p->kind >= MXF4};
    if (!from_tmem && !ptx_layout_read(j->warp, j->inst, p->at, &a, rows, p->left[0], MOST_K, 1))
        return false;
    /* With cta_group::2, each thread block of the pair stores half of the rows of B in its shared
     * memory. */
    const uint32_t blocks = p->pair ? 2 : 1;
    for (uint32_t k = 0; k < blocks; k++) {
        ptx_block *from = p->pair ? ptx_pair_block(j->warp, j->inst, k) : p->at;
        const ptx_part part = {0, p->n / blocks, p->k, p->b, p->kind >= MXF4};
        double *to = p->right[0] + (size_t)part.rows * k;
        if (!from || !ptx_layout_read(j->warp, j->inst, from, &b, part, to, 1, MOST_N))
            return false;
    }
    return true;
}

/* Reads a block scale from tensor memory. Tensor memory has 128 lanes, i.e. four groups of 32, and
 * `quarter` is the number of the group to read. In a group, the scales of 128 rows take four
 * columns: row r is in lane r % 32 of column r / 32. The lane has a 32-bit cell in each column,
 * with four scales of a byte each. `byte` modulo 4 is the number of the byte to read. */
static bool read_scale(ptx_async *j, const product *p, uint32_t at, uint32_t row, uint32_t quarter,
                       uint32_t byte, double *to) {
    const uint32_t *cell = ptx_tmem_cell_of(p->at, j->warp, j->inst, quarter * 32 + row % 32,
                                            (at & 0xffff) + row / 32, false);
    if (cell) *to = ptx_decode(ptx_format_of(p->scale), *cell >> 8 * (byte & 3) & 255);
    return cell != NULL;
}

/* Multiplies the elements of A and B by their block scales, which are in tensor memory. If a pair
 * of thread blocks computes the product, each of the two has its own rows of A and all rows of B.
 * Its tensor memory has the scales of all these rows. */
static bool apply_scales(ptx_async *j, product *p) {
    for (uint32_t s = 0; p->block && s < p->k / p->block; s++) {
        double scale = 0;
        for (uint32_t m = 0; m < p->rows; m++) {
            if (!read_scale(j, p, (uint32_t)j->at[SCALE_A], m, m / 32, p->a_scale + s, &scale))
                return false;
            for (uint32_t k = s * p->block; k < (s + 1) * p->block; k++)
                p->left[m][k] *= scale;
        }
        for (uint32_t n = 0; n < p->n; n++) {
            if (!read_scale(j, p, (uint32_t)j->at[SCALE_B], n, 0, p->b_scale + s, &scale))
                return false;
            for (uint32_t k = s * p->block; k < (s + 1) * p->block; k++)
                p->right[k][n] *= scale;
        }
    }
    return true;
}

/* Computes a row of D with sums in double and rounds them once. NVIDIA does not publish how tensor
 * cores add, so the rounding of the hardware cannot be simulated. */
static void add_row(ptx_async *j, const product *p, uint32_t m) {
    double sum[MOST_N] = {0};
    for (uint32_t k = 0; k < p->k; k++)
        for (uint32_t n = 0; n < p->n; n++)
            sum[n] += p->left[m][k] * p->right[k][n];
    for (uint32_t n = 0; n < p->n; n++) {
        if (is_disabled(j, p, m, n)) continue;
        uint32_t *cell = cell_of(j, p, m, n, !j->at[ADDS]);
        if (!cell) return;
        if (j->at[ADDS])
            sum[n] = p->sign * sum[n] + p->scale_d * ptx_value_of(p->d, *cell);
        else
            sum[n] *= p->sign;
        if (p->saturates) sum[n] = fmax(INT32_MIN, fmin(INT32_MAX, sum[n]));
        *cell = (uint32_t)ptx_result_bits(j->inst, p->d, sum[n]);
    }
}

/* If only the time of a launch is of interest, the simulator does not compute products. This
 * function then takes the place of the multiplication. If the instruction overwrites D, it sets all
 * elements of D to 1. If the instruction adds to D, it leaves D as it is. The value is not 0,
 * because some kernels do additional work for results of 0. */
static void skip_product(ptx_async *j, const product *p) {
    const uint32_t one = (uint32_t)ptx_result_bits(j->inst, p->d, 1);
    for (uint32_t m = 0; m < p->rows && !j->at[ADDS]; m++)
        for (uint32_t n = 0; n < p->n; n++) {
            uint32_t *cell = cell_of(j, p, m, n, true);
            if (!cell) return;
            *cell = one;
        }
}

static void run_half(ptx_async *j, product *p, ptx_block *at) {
    p->at = at;
    if (at && j->warp->block->launch->timed == TIMING_SAMPLE)
        skip_product(j, p);
    else if (at && read_operands(j, p) && apply_scales(j, p))
        for (uint32_t m = 0; m < p->rows && j->warp->stop != STOP_ERROR; m++)
            add_row(j, p, m);
}

/* Records the size of a product and the bytes that it reads from shared memory, for the time model.
 * In the kinds mxf4 and mxf4nvf4, a 4-bit element occupies 4 bits of shared memory. In all other
 * kinds, elements of 4 and 6 bits occupy 8 bits. */
static void record_product(const ptx_async *j, const product *p) {
    static const uint8_t bits[] = {16, 32, 8, 8, 8, 4, 4};
    ptx_job *job = ptx_time_running(j->warp->block->cluster);
    if (!job) return;
    job->m = p->rows, job->n = p->n, job->k = p->k, job->bits = bits[p->kind], job->pair = p->pair;
    const uint32_t rows = (j->at[FROM_TMEM] ? 0 : p->rows) + (p->pair ? p->n / 2 : p->n);
    job->reads = rows * p->k * job->bits / 8;
}

static void run_product(ptx_async *j) {
    product *p = malloc(sizeof *p);
    if (p) memset(p, 0, offsetof(product, left));
    const char *wrong = p ? decode(p, j->inst, (uint32_t)j->at[DESCRIPTOR]) : "out of memory";
    if (!wrong) record_product(j, p);
    if (wrong)
        ptx_stop(j->warp, j->inst, "%s: instruction descriptor 0x%x", wrong,
                 (uint32_t)j->at[DESCRIPTOR]);
    else if (p->pair)
        for (uint32_t half = 0; half < 2 && j->warp->stop != STOP_ERROR; half++)
            run_half(j, p, ptx_pair_block(j->warp, j->inst, half));
    else
        run_half(j, p, j->warp->block);
    free(p);
}

static uint32_t address_of(const ptx_warp *w, const ptx_operand *o, uint32_t lane) {
    uint64_t at[LANES];
    ptx_addresses(w, o, at);
    return (uint32_t)at[lane];
}

/* Checks the number of words of the operand disable-output-lane. Each word is a mask of 32 lanes of
 * tensor memory. */
static bool check_disabled(ptx_warp *w, const ptx_inst *i) {
    const uint32_t words = ptx_has(i->opcode, "cta_group::2") ? 8 : 4;
    const ptx_operand *o = &i->op[DISABLED];
    if (!o->place || (o->place == VECTOR && o->count == words)) return true;
    ptx_stop(w, i, "disable-output-lane has %u words, not %u", o->count, words);
    return false;
}

/* Refuses kind::i8 unless the target is sm_100a, as ptxas does. */
static bool check_target(ptx_warp *w, const ptx_inst *i) {
    const ptx_module *m = w->block->launch->module;
    if (!ptx_has(i->opcode, "kind::i8") || (m->target == 100 && m->feature == 'a')) return true;
    ptx_stop(w, i, "kind::i8 is for the target sm_100a, not for sm_%u%.1s", m->target,
             m->feature ? &m->feature : "");
    return false;
}

enum { PLAIN, SCALED };
static void execute_mma(ptx_warp *w, const ptx_inst *i) {
    const bool scaled = i->opcode->row->what == SCALED;
    const ptx_operand *adds = &i->op[scaled ? 6 : ENABLED];
    if (!scaled && (!check_disabled(w, i) || !check_target(w, i))) return;
    for (uint32_t left = w->mask; left && !w->stop; left &= left - 1) {
        const uint32_t l = ptx_first(left);
        ptx_async j = {.run = run_product, .warp = w, .inst = i, .lane = l, .ordered = true};
        j.to = address_of(w, &i->op[0], l);
        j.at[FROM_TMEM] = i->op[1].place == ADDRESS;
        j.from = j.at[FROM_TMEM] ? address_of(w, &i->op[1], l) : ptx_lane(w, &i->op[1], l);
        j.value = ptx_lane(w, &i->op[2], l);
        j.at[DESCRIPTOR] = (int32_t)ptx_lane(w, &i->op[3], l);
        if (scaled)
            j.at[SCALE_A] = (int32_t)address_of(w, &i->op[4], l),
            j.at[SCALE_B] = (int32_t)address_of(w, &i->op[5], l);
        j.at[ADDS] = (int32_t)(ptx_pred(w, adds) >> l & 1);
        for (uint32_t k = 0; !scaled && k < i->op[DISABLED].count; k++)
            j.disabled[k] = (uint32_t)ptx_lane(w, &i->op[DISABLED].elements[k], l);
        ptx_async_add(&j);
    }
}

static void run_commit(ptx_async *j) {
    if (!j->multicast) {
        ptx_mbarrier_arrive(j->warp, j->inst, j->barrier, 1);
        return;
    }
    for (uint32_t left = j->multicast; left; left &= left - 1)
        ptx_mbarrier_arrive(j->warp, j->inst,
                            (j->barrier & 0xffffff) | (uint64_t)ptx_first(left) << RANK_SHIFT, 1);
}

static void execute_commit(ptx_warp *w, const ptx_inst *i) {
    uint64_t barrier[LANES];
    ptx_addresses(w, &i->op[0], barrier);
    for (uint32_t left = w->mask; left && !w->stop; left &= left - 1) {
        const uint32_t l = ptx_first(left);
        ptx_async j = {.run = run_commit,
                       .warp = w,
                       .inst = i,
                       .lane = l,
                       .ordered = true,
                       .commits = true,
                       .barrier = barrier[l]};
        if (i->count > 1) j.multicast = (uint32_t)ptx_lane(w, &i->op[1], l) & 0xffff;
        ptx_async_add(&j);
    }
}

/* Describes to which lanes of tensor memory tcgen05.cp copies `rows` rows of shared memory. Each
 * row goes to `copies` lanes. Without a multicast, `copies` is 1, and row r goes to lane r *
 * `stride`. With warpx4, there are 32 rows, and each of them goes to all four groups of 32 lanes.
 * With warpx2, there are 64 rows, and each of them goes to two of these groups. */
typedef struct {
    uint32_t rows, copies, stride;
    /* groups[0] has the numbers of the groups of 32 lanes to which rows 0 to 31 are copied.
     * groups[1] has those for rows 32 to 63. Only the first `copies` numbers of each are used. */
    uint32_t groups[2][4];
} spread;

static spread spread_of(const ptx_opcode *o) {
    if (ptx_has(o, "warpx4")) return (spread){32, 4, 1, {{0, 1, 2, 3}}};
    if (ptx_has(o, "warpx2::02_13")) return (spread){64, 2, 1, {{0, 2}, {1, 3}}};
    if (ptx_has(o, "warpx2::01_23")) return (spread){64, 2, 1, {{0, 1}, {2, 3}}};
    if (ptx_has(o, "4x256b")) return (spread){4, 1, 32, {{0}}};
    return (spread){128, 1, 1, {{0}}};
}

static bool read_word(ptx_async *j, uint64_t at, uint32_t *word) {
    const uint8_t *from = ptx_engine_shared(j, at, 4, false);
    if (from) memcpy(word, from, 4);
    return from != NULL;
}

/* Reads four elements of 4 or 6 bits from shared memory and puts each into the low bits of a byte
 * of *word. Shared memory is divided into units of 16 bytes. Each unit holds 16 elements without
 * gaps at its beginning, and its last bytes are unused. `at` is the address that the first of the
 * four elements would have if each element took a byte. */
static bool unpack_word(ptx_async *j, uint64_t at, uint32_t bits, uint32_t *word) {
    const uint64_t unit = at & ~15ull;
    const uint32_t bytes = 2 * bits, first = (uint32_t)(at & 15) * bits;
    uint64_t packed[2] = {0};
    const uint8_t *from = ptx_engine_shared(j, unit, bytes, false);
    if (!from) return false;
    memcpy(packed, from, bytes);
    const ptx_u128 all = (ptx_u128)packed[1] << 64 | packed[0];
    for (uint32_t e = 0; e < 4; e++)
        *word |= ((uint32_t)(all >> (first + e * bits)) & ((1u << bits) - 1)) << 8 * e;
    return true;
}

static bool copy_word(ptx_async *j, ptx_block *block, const ptx_layout *y, const spread *s,
                      uint32_t r, uint32_t c, uint32_t bits) {
    const uint64_t at = ptx_layout_place(y, r, 4 * c) | (uint64_t)block->rank << RANK_SHIFT;
    uint32_t word = 0;
    const bool read = bits < 8 ? unpack_word(j, at, bits, &word) : read_word(j, at, &word);
    for (uint32_t k = 0; read && k < s->copies; k++) {
        const uint32_t lane = s->copies == 1 ? r * s->stride : 32 * s->groups[r / 32][k] + r % 32;
        uint32_t *to = ptx_tmem_cell_of(block, j->warp, j->inst, (uint32_t)(j->to >> 16) + lane,
                                        ((uint32_t)j->to & 0xffff) + c, true);
        if (!to) return false;
        *to = word;
    }
    return read;
}

/* Executes tcgen05.cp, which copies rows of 16 or 32 bytes from shared memory to lanes of tensor
 * memory. With cta_group::2, both thread blocks of the pair copy from their own shared memory. */
static void run_copy(ptx_async *j) {
    const spread s = spread_of(j->inst->opcode);
    const uint32_t bits = ptx_has(j->inst->opcode, "b4x16_p64")   ? 4
                          : ptx_has(j->inst->opcode, "b6x16_p32") ? 6
                                                                  : 8;
    const uint32_t columns = ptx_which(j->inst->opcode, "128x256b|4x256b|") >= 0 ? 8 : 4,
                   blocks = ptx_has(j->inst->opcode, "cta_group::2") ? 2 : 1;
    ptx_layout y;
    if (!ptx_layout_of_tcgen05(j->warp, j->inst, j->from, false, &y)) return;
    ptx_job *job = ptx_time_running(j->warp->block->cluster);
    if (job) job->reads = s.rows * columns * 4 * bits / 8, job->pair = blocks == 2;
    if (j->warp->block->launch->timed == TIMING_SAMPLE) return;
    for (uint32_t b = 0; b < blocks; b++) {
        ptx_block *block = blocks == 1 ? j->warp->block : ptx_pair_block(j->warp, j->inst, b);
        for (uint32_t r = 0; block && r < s.rows; r++)
            for (uint32_t c = 0; c < columns; c++)
                if (!copy_word(j, block, &y, &s, r, c, bits)) return;
    }
}

static void execute_cp(ptx_warp *w, const ptx_inst *i) {
    for (uint32_t left = w->mask; left && !w->stop; left &= left - 1) {
        const uint32_t l = ptx_first(left);
        ptx_async j = {.run = run_copy, .warp = w, .inst = i, .lane = l, .ordered = true};
        j.to = address_of(w, &i->op[0], l), j.from = ptx_lane(w, &i->op[1], l);
        ptx_async_add(&j);
    }
}

#define ROW(pattern, operands, execute, what)                                                      \
    { pattern, operands, execute, NULL, 0, 0, 0, 0, what }
#define GROUP "cta_group::1|cta_group::2."
#define MMA   "tcgen05.mma." GROUP
/* Lists the modifiers that say whether the tensor core keeps A in a buffer for the next product.
 * The results of a product do not depend on the modifier. */
#define COLLECTOR                                                                                  \
    ".{collector::a::fill|collector::a::use|collector::a::lastuse|collector::a::discard}"
/* COPY lists the two forms of tcgen05.cp: one copies bytes, and the other unpacks elements of 6 or
 * 4 bits to bytes. */
#define COPY(shape)                                                                                \
    ROW("tcgen05.cp." GROUP shape, "mL", execute_cp, 0),                                           \
        ROW("tcgen05.cp." GROUP shape ".b8x16.b6x16_p32|b4x16_p64", "mL", execute_cp, 0)
static const ptx_row rows[] = {
    ROW(MMA "kind::f16|kind::tf32|kind::f8f6f4|kind::i8" COLLECTOR, "mGLRKPi?", execute_mma, PLAIN),
    ROW(MMA "kind::mxf8f6f4.block_scale.{block32|scale_vec::1X}" COLLECTOR, "mGLRmmP", execute_mma,
        SCALED),
    ROW(MMA "kind::mxf4.block_scale.{block32|scale_vec::2X}" COLLECTOR, "mGLRmmP", execute_mma,
        SCALED),
    ROW(MMA "kind::mxf4nvf4.block_scale.block16|block32|scale_vec::2X|scale_vec::4X" COLLECTOR,
        "mGLRmmP", execute_mma, SCALED),
    ROW("tcgen05.commit." GROUP "mbarrier::arrive::one.{shared::cluster}.b64", "m", execute_commit,
        0),
    ROW("tcgen05.commit." GROUP "mbarrier::arrive::one.{shared::cluster}.multicast::cluster."
        "b64",
        "mH", execute_commit, 0),
    COPY("32x128b.warpx4"),
    COPY("warpx4.32x128b"),
    COPY("128x256b|4x256b|128x128b"),
    COPY("64x128b.warpx2::02_13|warpx2::01_23"),
    COPY("warpx2::02_13|warpx2::01_23.64x128b"),
};
const ptx_table ptx_tcgen05_table = {rows, sizeof rows / sizeof *rows};
