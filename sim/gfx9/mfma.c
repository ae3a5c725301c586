/* Executes AMD's matrix instructions (MFMA). The simulator unpacks the operands from the registers
 * to matrices and multiplies them in an order that the launch's seed varies. It writes D after it
 * has read all operands, because D and C may be the same registers. The register layouts are AMD's,
 * and tests/golden/mfma checks them. */
#include "floats.h"
#include "sim.h"

enum input { IN_F32, IN_XF32, IN_F16, IN_BF16, IN_I8, IN_F64, IN_FP8, IN_BF8, IN_MIXED };

/* Describes the shape of a matrix instruction, which computes `blocks` independent products of M x
 * K by K x M matrices. Each lane holds K * M * blocks / 64 elements of A and as many elements of
 * B. */
typedef struct {
    uint8_t m, k, blocks, a, b, scaled;
} shape;

static const uint8_t width_of[] = {32, 32, 16, 16, 8, 64, 8, 8, 0};

static uint32_t bits_at(const gfx9_wave *w, const gfx9_operand *o, uint32_t lane, uint32_t at,
                        uint32_t width) {
    const uint32_t word = at / 32, low = at % 32;
    if (o->place != VGPR) return 0;
    uint64_t v = w->v[o->reg + word][lane];
    if (low + width > 32) v |= (uint64_t)w->v[o->reg + word + 1][lane] << 32;
    return (uint32_t)(v >> low & (width == 32 ? ~0u : (1u << width) - 1));
}

static float xf32(uint32_t u) {
    return sim_float((u + 0xfff + (u >> 13 & 1)) & ~0x1fffu);
}

static const float *small_table(enum gfx9_small format) {
    static float tables[7][256];
    static bool made;
    if (!__atomic_load_n(&made, __ATOMIC_ACQUIRE)) {
        for (int f = 0; f < 7; f++)
            for (uint32_t c = 0; c < (f >= FP6 ? f == FP4 ? 16u : 64u : 256u); c++)
                tables[f][c] = gfx9_widen(c, (enum gfx9_small)f);
        __atomic_store_n(&made, true, __ATOMIC_RELEASE);
    }
    return tables[format];
}

static void convert_row(int kind, uint32_t m, const uint32_t *from, uint32_t shift, uint32_t mask,
                        const float *table, float *to) {
    uint32_t u[32];
    for (uint32_t i = 0; i < m; i++)
        u[i] = from[i] >> shift & mask;
    switch (kind) {
    case IN_XF32:
        for (uint32_t i = 0; i < m; i++)
            to[i] = xf32(u[i]);
        break;
    case IN_F16:
        for (uint32_t i = 0; i < m; i++)
            to[i] = gfx9_f16_to_f32(u[i]);
        break;
    case IN_F32:
    case IN_BF16:
        for (uint32_t i = 0; i < m; i++)
            to[i] = sim_float(kind == IN_F32 ? u[i] : u[i] << 16);
        break;
    default:
        for (uint32_t i = 0; i < m; i++)
            to[i] = table[u[i]];
    }
}

static enum gfx9_small small_of(const gfx9_wave *w, int kind) {
    const bool fnuz = w->group->object->arch == GFX942;
    return kind == IN_FP8 ? fnuz ? FP8_FNUZ : FP8 : fnuz ? BF8_FNUZ : BF8;
}

/* Finds the lane that holds element (row, k) of block b of an operand, and the element's index
 * among the elements of the lane. */
static void place_of(const shape *s, uint32_t b, uint32_t row, uint32_t k, uint32_t *lane,
                     uint32_t *item) {
    const uint32_t per_lane = (uint32_t)s->k * s->m * s->blocks / LANES;
    *lane = row + s->m * (b + s->blocks * (k / per_lane)), *item = k % per_lane;
}

/* Finds the lane that holds element (row, k) of an operand of an f8f6f4 instruction, and the
 * element's index among the elements of the lane. M neighboring lanes form a group, and lane `row`
 * of each group holds elements of the row. The groups take chunks of the row in turn. A chunk has
 * 16 elements of 8 bits, or 32 narrower elements. */
static void place_mixed(const shape *s, uint32_t width, uint32_t row, uint32_t k, uint32_t *lane,
                        uint32_t *item) {
    const uint32_t groups = LANES / s->m, chunk = k / 16;
    if (width == 8)
        *lane = s->m * (chunk % groups) + row, *item = chunk / groups * 16 + k % 16;
    else
        *lane = s->m * (k / 32) + row, *item = k % 32;
}

/* Unpacks an operand from registers to a matrix in memory, one block after another. Element (row,
 * k) of a block is at index k * M + row. */
static void spread(const gfx9_wave *w, const shape *s, const gfx9_operand *o, int kind, float *to) {
    const uint32_t width = width_of[kind], m = s->m;
    const float *table = kind >= IN_FP8 ? small_table(small_of(w, kind)) : NULL;
    for (uint32_t b = 0; b < s->blocks; b++)
        for (uint32_t k = 0; k < s->k; k++) {
            uint32_t lane, item;
            place_of(s, b, 0, k, &lane, &item);
            const uint32_t word = item * width / 32, shift = item * width % 32,
                           mask = width == 32 ? ~0u : (1u << width) - 1;
            convert_row(kind, m, &w->v[o->reg + word][lane], shift, mask, table,
                        to + (size_t)(b * s->k + k) * m);
        }
}

static const uint8_t mixed_format[] = {FP8, BF8, FP6, BF6, FP4};
static const uint8_t mixed_width[] = {8, 8, 6, 6, 4};

static void spread_mixed(const gfx9_wave *w, const shape *s, const gfx9_operand *o, uint32_t code,
                         float *to) {
    const uint32_t width = mixed_width[code];
    const float *table = small_table((enum gfx9_small)mixed_format[code]);
    for (uint32_t k = 0; k < s->k; k++) {
        uint32_t lane, item;
        place_mixed(s, width, 0, k, &lane, &item);
        const uint32_t word = item * width / 32, low = item * width % 32, mask = (1u << width) - 1;
        if (low + width <= 32) {
            convert_row(IN_MIXED, s->m, &w->v[o->reg + word][lane], low, mask, table,
                        to + (size_t)k * s->m);
            continue;
        }
        for (uint32_t i = 0; i < s->m; i++)
            to[k * s->m + i] = table[bits_at(w, o, lane + i, item * width, width)];
    }
}

/* Finds the register of D and the lane that hold D(i, j) of block b. The first register of D has
 * the number 0. */
static void place_of_result(const shape *s, uint32_t b, uint32_t i, uint32_t j, uint32_t *reg,
                            uint32_t *lane) {
    if (s->m == 4)
        *reg = i, *lane = j + 4 * b;
    else if (s->m == 16)
        *reg = 4 * b + i % 4, *lane = 16 * (i / 4) + j;
    else
        *reg = 16 * b + 4 * (i / 8) + i % 4, *lane = 32 * (i / 4 % 2) + j;
}

static uint32_t result_count(const shape *s) {
    return (uint32_t)s->m * s->m * s->blocks / LANES;
}

/* Reads the registers of C, which have the layout of D. If C is a constant, all elements get its
 * value. */
static void read_c(gfx9_wave *w, const gfx9_operand *o, uint32_t count, int type,
                   uint32_t (*c)[LANES]) {
    for (uint32_t r = 0; r < count; r++)
        for (int l = 0; l < LANES; l++)
            c[r][l] = o->place == VGPR ? w->v[o->reg + r][l] : (uint32_t)gfx9_scalar(w, o, type);
}

static void write_d(gfx9_wave *w, const gfx9_operand *o, uint32_t count, uint32_t (*d)[LANES]) {
    for (uint32_t r = 0; r < count; r++)
        memcpy(w->v[o->reg + r], d[r], sizeof d[r]), w->written[o->reg + r] = ~0ull;
}

/* Tells in which order an instruction adds the terms of a result: C, and the products for all k.
 * AMD has not published the order, so no program may depend on it. In step k, the simulator adds
 * the product with index k XOR `flip`. C is added first, or last if `late` is true. With the
 * default seed of 1, k ascends and C is first. */
typedef struct {
    uint32_t flip;
    bool late;
} order;

static order order_of(const gfx9_wave *w) {
    const uint64_t mixed = (w->group->seed - 1) * 0x9e3779b97f4a7c15u;
    return (order){mixed >> 40 & 127, mixed >> 63};
}

/* The sums of a row begin with C. If C must be added last, take_row moves the row of C to another
 * array and sets the sums to 0, and add_row adds C to the finished sums. */
static void take_row(order o, uint32_t m, float *row, float *c) {
    if (!o.late) return;
    memcpy(c, row, m * sizeof *c);
    memset(row, 0, m * sizeof *row);
}
static void add_row(order o, uint32_t m, float *row, const float *c) {
    for (uint32_t j = 0; o.late && j < m; j++)
        row[j] += c[j];
}

/* Adds a(i, k) * b(k, j) to sum[j] for each j, in the order k = 0 XOR flip, 1 XOR flip and so on.
 * The vector type is for j: without it, compilers would vectorize the loop over k. */
typedef float floats __attribute__((vector_size(64)));

#if defined(__x86_64__)
__attribute__((target_clones("default", "avx512f")))
#endif
static void
multiply_row(size_t m, size_t depth, size_t flip, const float *a, const float *b, float *sum) {
    flip &= depth - 1;
    for (size_t j = 0; j + 16 <= m; j += 16) {
        floats s, row;
        memcpy(&s, sum + j, sizeof s);
        for (size_t k = 0; k < depth; k++) {
            memcpy(&row, b + (k ^ flip) * m + j, sizeof row);
            s += row * a[(k ^ flip) * m];
        }
        memcpy(sum + j, &s, sizeof s);
    }
    for (size_t j = m / 16 * 16; j < m; j++)
        for (size_t k = 0; k < depth; k++)
            sum[j] += a[(k ^ flip) * m] * b[(k ^ flip) * m + j];
}

/* Computes the same sums as multiply_row, but for f32 operands. The product of two f32 numbers is
 * not exact in f32, so the function uses fused multiply-adds, which round only the sum. */
static void fuse_row(size_t m, size_t depth, size_t flip, const float *a, const float *b,
                     float *sum) {
    flip &= depth - 1;
    for (size_t k = 0; k < depth; k++)
        for (size_t j = 0; j < m; j++)
            sum[j] = fmaf(a[(k ^ flip) * m], b[(k ^ flip) * m + j], sum[j]);
}

/* Returns the number of the block of A that the instruction multiplies by block `block` of B. The
 * field cbsz makes 2^cbsz neighboring blocks of B use the same block of A. The field abid says
 * which of the 2^cbsz neighboring blocks of A that is. */
static uint32_t broadcast(const gfx9_inst *i, uint32_t block) {
    return (block & ~((1u << i->cbsz) - 1)) + (i->abid & ((1u << i->cbsz) - 1));
}

static void finish(gfx9_wave *w, const gfx9_inst *inst, const shape *s, const float *a,
                   const float *b, bool fused) {
    uint32_t c[32][LANES], reg, lane;
    float kept[32];
    const order o = order_of(w);
    read_c(w, &inst->op[3], result_count(s), F32, c);
    for (uint32_t n = 0; n < s->blocks; n++) {
        const float *from = a + (size_t)(inst->cbsz ? broadcast(inst, n) : n) * s->k * s->m;
        for (uint32_t i = 0; i < s->m; i++) {
            place_of_result(s, n, i, 0, &reg, &lane);
            float *row = (float *)&c[reg][lane];
            take_row(o, s->m, row, kept);
            (fused ? fuse_row : multiply_row)(s->m, s->k, o.flip, from + i,
                                              b + (size_t)n * s->k * s->m, row);
            add_row(o, s->m, row, kept);
        }
    }
    write_d(w, &inst->op[0], result_count(s), c);
}

static void execute_floats(gfx9_wave *w, const gfx9_inst *i, const shape *s) {
    float a[1024] = {0}, b[1024] = {0};
    spread(w, s, &i->op[1], s->a, a);
    spread(w, s, &i->op[2], s->b, b);
    finish(w, i, s, a, b, s->a == IN_F32 || s->a == IN_XF32);
}

static void execute_integers(gfx9_wave *w, const gfx9_inst *inst, const shape *s) {
    uint32_t c[32][LANES] = {{0}}, reg, lane, from, item;
    read_c(w, &inst->op[3], result_count(s), U32, c);
    static _Thread_local int8_t a[2048], b[2048];
    for (uint32_t n = 0; n < s->blocks; n++)
        for (uint32_t k = 0; k < s->k; k++)
            for (uint32_t i = 0; i < s->m; i++) {
                place_of(s, n, i, k, &from, &item);
                a[(n * s->m + i) * s->k + k] = (int8_t)bits_at(w, &inst->op[1], from, 8 * item, 8);
                b[(n * s->m + i) * s->k + k] = (int8_t)bits_at(w, &inst->op[2], from, 8 * item, 8);
            }
    for (uint32_t n = 0; n < s->blocks; n++)
        for (uint32_t i = 0; i < s->m; i++)
            for (uint32_t j = 0; j < s->m; j++) {
                const int8_t *x = a +
                                  (size_t)((inst->cbsz ? broadcast(inst, n) : n) * s->m + i) * s->k,
                             *y = b + (size_t)(n * s->m + j) * s->k;
                int32_t sum = 0;
                for (uint32_t k = 0; k < s->k; k++)
                    sum += x[k] * y[k];
                place_of_result(s, n, i, j, &reg, &lane);
                c[reg][lane] += (uint32_t)sum;
            }
    write_d(w, &inst->op[0], result_count(s), c);
}

static double pair(const gfx9_wave *w, const gfx9_operand *o, uint32_t reg, uint32_t lane) {
    if (o->place != VGPR) return sim_double(gfx9_constant(o, F64));
    return sim_double(w->v[o->reg + 2 * reg][lane] | (uint64_t)w->v[o->reg + 2 * reg + 1][lane]
                                                         << 32);
}

/* Multiplies f64 matrices. Each register of D has, in each of four groups of 16 lanes, one row of a
 * 16 x 16 result, or the same row of all four 4 x 4 results. */
static void execute_doubles(gfx9_wave *w, const gfx9_inst *inst, const shape *s) {
    uint32_t d[8][LANES] = {{0}}, x, y, item;
    const order o = order_of(w);
    for (uint32_t n = 0; n < s->blocks; n++)
        for (uint32_t i = 0; i < s->m; i++)
            for (uint32_t j = 0; j < s->m; j++) {
                const uint32_t reg = s->m == 16 ? i / 4 : 0,
                               lane = s->m == 16 ? 16 * (i % 4) + j : 16 * i + 4 * n + j;
                const double first = pair(w, &inst->op[3], reg, lane);
                double sum = o.late ? 0 : first;
                for (uint32_t k = 0; k < s->k; k++) {
                    const uint32_t at = k ^ (o.flip & (s->k - 1u));
                    place_of(s, n, i, at, &x, &item), place_of(s, n, j, at, &y, &item);
                    sum = fma(pair(w, &inst->op[1], 0, x), pair(w, &inst->op[2], 0, y), sum);
                }
                if (o.late) sum += first;
                const uint64_t u = sim_bits64(sum);
                d[(size_t)2 * reg][lane] = (uint32_t)u;
                d[(size_t)2 * reg + 1][lane] = (uint32_t)(u >> 32);
            }
    write_d(w, &inst->op[0], 2 * result_count(s), d);
}

/* Reads the e8m0 scales of A (`which` is 0) or B (1), one for each row and 32 elements of K. The
 * modifiers op_sel and op_sel_hi select the byte of the scale register. */
static bool read_scales(gfx9_wave *w, const gfx9_inst *i, int which, uint8_t *to) {
    const gfx9_operand *o = &i->op[4 + which], *select = &i->op[1 + which];
    const uint32_t byte = select->half_lo + 2u * select->half_hi;
    if (o->place != VGPR) {
        gfx9_stop(w, i, "a scale operand that is no VGPR is misread by gfx950 (erratum)");
        return false;
    }
    for (uint32_t lane = 0; lane < LANES; lane++)
        to[lane] = (uint8_t)(w->v[o->reg][lane] >> 8 * byte);
    /* The scale of row `row` and block `block` is in lane M * block + row. This is also its index
     * in `to`, so the scales need no reordering. */
    return true;
}

static void execute_mixed(gfx9_wave *w, const gfx9_inst *inst, const shape *s) {
    float a[4096], b[4096], kept[32];
    const order o = order_of(w);
    uint8_t sa[LANES], sb[LANES];
    uint32_t c[32][LANES] = {{0}}, reg, lane;
    if (inst->cbsz > 4 || inst->blgp > 4) {
        gfx9_stop(w, inst, "cbsz and blgp must be 0 to 4");
        return;
    }
    if (s->scaled && (!read_scales(w, inst, 0, sa) || !read_scales(w, inst, 1, sb))) return;
    if (!s->scaled) memset(sa, 127, sizeof sa), memset(sb, 127, sizeof sb);
    spread_mixed(w, s, &inst->op[1], inst->cbsz, a);
    spread_mixed(w, s, &inst->op[2], inst->blgp, b);
    read_c(w, &inst->op[3], result_count(s), F32, c);
    const uint32_t m = s->m;
    for (uint32_t i = 0; i < m; i++) {
        place_of_result(s, 0, i, 0, &reg, &lane);
        float *row = (float *)&c[reg][lane];
        take_row(o, m, row, kept);
        if (!s->scaled) multiply_row(m, s->k, o.flip, a + i, b, row);
        for (uint32_t n = 0; s->scaled && n < s->k / 32u; n++) {
            const uint32_t q = n ^ (o.flip / 32 & (s->k / 32u - 1));
            float part[32] = {0};
            multiply_row(m, 32, o.flip, a + (size_t)q * 32 * m + i, b + (size_t)q * 32 * m, part);
            const uint32_t x = sa[m * q + i];
            for (uint32_t j = 0; j < m; j++) {
                const uint32_t y = sb[m * q + j];
                const double factor = sim_double((uint64_t)(x + y - 254 + 1023) << 52);
                row[j] =
                    x == 255 || y == 255 ? NAN : (float)((double)row[j] + (double)part[j] * factor);
            }
        }
        add_row(o, m, row, kept);
    }
    write_d(w, &inst->op[0], result_count(s), c);
}

#define TABLE                                                                                      \
    X("v_mfma_f32_32x32x1_2b_f32", 32, 1, 2, IN_F32, IN_F32, 0)                                    \
    X("v_mfma_f32_16x16x1_4b_f32", 16, 1, 4, IN_F32, IN_F32, 0)                                    \
    X("v_mfma_f32_4x4x1_16b_f32", 4, 1, 16, IN_F32, IN_F32, 0)                                     \
    X("v_mfma_f32_32x32x2_f32", 32, 2, 1, IN_F32, IN_F32, 0)                                       \
    X("v_mfma_f32_16x16x4_f32", 16, 4, 1, IN_F32, IN_F32, 0)                                       \
    X("v_mfma_f32_32x32x4_xf32", 32, 4, 1, IN_XF32, IN_XF32, 0)                                    \
    X("v_mfma_f32_16x16x8_xf32", 16, 8, 1, IN_XF32, IN_XF32, 0)                                    \
    X("v_mfma_f32_32x32x4_2b_f16", 32, 4, 2, IN_F16, IN_F16, 0)                                    \
    X("v_mfma_f32_16x16x4_4b_f16", 16, 4, 4, IN_F16, IN_F16, 0)                                    \
    X("v_mfma_f32_4x4x4_16b_f16", 4, 4, 16, IN_F16, IN_F16, 0)                                     \
    X("v_mfma_f32_32x32x8_f16", 32, 8, 1, IN_F16, IN_F16, 0)                                       \
    X("v_mfma_f32_16x16x16_f16", 16, 16, 1, IN_F16, IN_F16, 0)                                     \
    X("v_mfma_f32_32x32x16_f16", 32, 16, 1, IN_F16, IN_F16, 0)                                     \
    X("v_mfma_f32_16x16x32_f16", 16, 32, 1, IN_F16, IN_F16, 0)                                     \
    X("v_mfma_f32_32x32x4_2b_bf16", 32, 4, 2, IN_BF16, IN_BF16, 0)                                 \
    X("v_mfma_f32_16x16x4_4b_bf16", 16, 4, 4, IN_BF16, IN_BF16, 0)                                 \
    X("v_mfma_f32_4x4x4_16b_bf16", 4, 4, 16, IN_BF16, IN_BF16, 0)                                  \
    X("v_mfma_f32_32x32x8_bf16", 32, 8, 1, IN_BF16, IN_BF16, 0)                                    \
    X("v_mfma_f32_16x16x16_bf16", 16, 16, 1, IN_BF16, IN_BF16, 0)                                  \
    X("v_mfma_f32_32x32x16_bf16", 32, 16, 1, IN_BF16, IN_BF16, 0)                                  \
    X("v_mfma_f32_16x16x32_bf16", 16, 32, 1, IN_BF16, IN_BF16, 0)                                  \
    X("v_mfma_i32_32x32x4_2b_i8", 32, 4, 2, IN_I8, IN_I8, 0)                                       \
    X("v_mfma_i32_16x16x4_4b_i8", 16, 4, 4, IN_I8, IN_I8, 0)                                       \
    X("v_mfma_i32_4x4x4_16b_i8", 4, 4, 16, IN_I8, IN_I8, 0)                                        \
    X("v_mfma_i32_32x32x16_i8", 32, 16, 1, IN_I8, IN_I8, 0)                                        \
    X("v_mfma_i32_16x16x32_i8", 16, 32, 1, IN_I8, IN_I8, 0)                                        \
    X("v_mfma_i32_32x32x32_i8", 32, 32, 1, IN_I8, IN_I8, 0)                                        \
    X("v_mfma_i32_16x16x64_i8", 16, 64, 1, IN_I8, IN_I8, 0)                                        \
    X("v_mfma_f64_16x16x4_f64", 16, 4, 1, IN_F64, IN_F64, 0)                                       \
    X("v_mfma_f64_4x4x4_4b_f64", 4, 4, 4, IN_F64, IN_F64, 0)                                       \
    X("v_mfma_f32_32x32x16_fp8_fp8", 32, 16, 1, IN_FP8, IN_FP8, 0)                                 \
    X("v_mfma_f32_32x32x16_fp8_bf8", 32, 16, 1, IN_FP8, IN_BF8, 0)                                 \
    X("v_mfma_f32_32x32x16_bf8_fp8", 32, 16, 1, IN_BF8, IN_FP8, 0)                                 \
    X("v_mfma_f32_32x32x16_bf8_bf8", 32, 16, 1, IN_BF8, IN_BF8, 0)                                 \
    X("v_mfma_f32_16x16x32_fp8_fp8", 16, 32, 1, IN_FP8, IN_FP8, 0)                                 \
    X("v_mfma_f32_16x16x32_fp8_bf8", 16, 32, 1, IN_FP8, IN_BF8, 0)                                 \
    X("v_mfma_f32_16x16x32_bf8_fp8", 16, 32, 1, IN_BF8, IN_FP8, 0)                                 \
    X("v_mfma_f32_16x16x32_bf8_bf8", 16, 32, 1, IN_BF8, IN_BF8, 0)                                 \
    X("v_mfma_f32_32x32x64_f8f6f4", 32, 64, 1, IN_MIXED, IN_MIXED, 0)                              \
    X("v_mfma_f32_16x16x128_f8f6f4", 16, 128, 1, IN_MIXED, IN_MIXED, 0)                            \
    X("v_mfma_scale_f32_32x32x64_f8f6f4", 32, 64, 1, IN_MIXED, IN_MIXED, 1)                        \
    X("v_mfma_scale_f32_16x16x128_f8f6f4", 16, 128, 1, IN_MIXED, IN_MIXED, 1)

#define X(name, m, k, blocks, a, b, scaled) {m, k, blocks, a, b, scaled},
static const shape shapes[] = {TABLE};
#undef X

/* Gives the number of operations that a SIMD of CDNA 3 executes per cycle, by the type of A and B.
 * The shapes that CDNA 4 adds have twice the K and twice this rate. */
static const uint16_t rates[] = {
    [IN_F32] = 64,  [IN_XF32] = 256, [IN_F16] = 512,  [IN_BF16] = 512,  [IN_I8] = 1024,
    [IN_F64] = 128, [IN_FP8] = 1024, [IN_BF8] = 1024, [IN_MIXED] = 2048};

/* Returns the time of a matrix instruction in passes of four cycles: its operations divided by the
 * rate, but at least two passes. CDNA 4's new shapes, and two operands of 6 or 4 bits, have twice
 * the rate. Several blocks that are larger than 4 x 4 take twice the time, except for f32. */
static uint32_t passes_of(const shape *s, const gfx9_inst *i) {
    const uint32_t work = 2u * s->m * s->m * s->k * s->blocks,
                   each = (uint32_t)s->k * s->m * s->blocks / LANES;
    const bool wider = (each == 8 && width_of[s->a] == 16) || (each == 16 && s->a == IN_I8);
    const bool narrow = s->a == IN_MIXED && i->cbsz > 1 && i->blgp > 1;
    uint32_t cycles = work / rates[s->a] / (wider || narrow ? 2 : 1);
    if (s->blocks > 1 && s->m > 4 && s->a != IN_F32) cycles *= 2;
    return cycles / 4 < 2 ? 2 : cycles / 4;
}

uint32_t gfx9_passes(const gfx9_inst *i) {
    return passes_of(&shapes[i->row->what], i);
}

bool gfx9_is_xdl(const gfx9_inst *i) {
    const uint8_t input = shapes[i->row->what].a;
    return input != IN_F32 && input != IN_F64;
}

/* Says after how many wait states another instruction may use the result of a matrix instruction:
 * read it, overwrite it (`write`), or take it as its own C. In the last case, `own` is for a C that
 * is the whole result, and `part` for a C that is a part of it. For an XDL instruction, `part_xdl`
 * replaces `part`. It is 0 for results of f32 and f64. */
typedef struct {
    uint32_t read, write, part, part_xdl, own;
} states;

/* LLVM's GCNHazardRecognizer.cpp has these wait states (GFX940_*WaitStates). */
static states states_of(const shape *s, uint32_t passes, bool gfx950) {
    const bool small = s->m == 4, later = gfx950 && passes != 2;
    const uint32_t own = passes == 2 ? 2 : 0;
    if (s->a == IN_F64)
        return small ? (states){6, 6, 4, 0, 4} : (states){11, 11, gfx950 ? 17 : 9, 0, 0};
    if (s->a == IN_F32) return (states){passes + 2, passes + 2, passes, 0, own};
    return (states){passes + 3 + later, passes + 3, passes + 1 + later, passes + 1 + later, own};
}

static void raise_to(uint64_t *to, uint64_t value) {
    if (*to < value) *to = value;
}

/* Records the first wait states in which other instructions may access D and overwrite C. */
static void mark_result(gfx9_wave *w, const gfx9_inst *i, const shape *s) {
    const uint32_t passes = passes_of(s, i), registers = result_count(s) * (s->a == IN_F64 ? 2 : 1);
    const states n = states_of(s, passes, w->group->object->arch == GFX950);
    const uint64_t next = w->issued + 1;
    raise_to(&w->matrix_until, next + passes + n.read + n.write + n.part + n.part_xdl + n.own);
    for (uint32_t r = 0; r < registers && gfx9_is_xdl(i) && i->op[3].place == VGPR; r++)
        raise_to(&w->free[i->op[3].reg + r], next + passes - 1);
    for (uint32_t r = 0; r < registers; r++) {
        const uint32_t reg = i->op[0].reg + r;
        w->ready[reg] = next + n.read, w->free[reg] = next + n.write;
        w->result_of[reg] = i->op[0].reg, w->ready_as_own_c[reg] = next + n.own;
        w->ready_as_c[0][reg] = next + n.part, w->ready_as_c[1][reg] = next + n.part_xdl;
    }
}

static void execute(gfx9_wave *w, const gfx9_inst *i) {
    const shape *s = &shapes[i->row->what];
    if (s->a != IN_MIXED && i->blgp) gfx9_stop(w, i, "blgp is not executed but for f8f6f4");
    if (i->op[1].place != VGPR || i->op[2].place != VGPR) gfx9_stop(w, i, "A and B must be VGPRs");
    if (!w->stop)
        (s->a == IN_MIXED ? execute_mixed
         : s->a == IN_I8  ? execute_integers
         : s->a == IN_F64 ? execute_doubles
                          : execute_floats)(w, i, s);
    if (!w->stop) mark_result(w, i, s);
}

#define X(name, m, k, blocks, a, b, scaled)                                                        \
    {name, execute, {.what = 0}, F32, a, b, N, COST_MFMA, m, k},
static gfx9_row rows[] = {TABLE};
__attribute__((constructor)) static void number_rows(void) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        rows[i].what = (int)i;
}
const gfx9_table gfx9_mfma_table = {rows, sizeof rows / sizeof *rows};
