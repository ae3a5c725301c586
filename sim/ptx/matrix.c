/* Executes ldmatrix, stmatrix, movmatrix and mma.sync. The registers of mma.sync in lane 4 g + t
 * hold these elements, where E is the number of elements in a 32-bit register. Register r of A
 * holds E elements of row g + 8 (r % 2), beginning with K index E t + 4 E (r / 2). Register r of B
 * holds E elements of column g, beginning with K index E t + 4 E r. C and D hold columns 2 t and 2
 * t + 1 of row g, then of row g + 8. */
#include "matrix.h"
#include "access.h"
#include "floats.h"
#include "time.h"
#include <string.h>

static uint32_t matrices(const ptx_inst *i) {
    static const char names[] = "x1|x2|x4|";
    const int which = ptx_which(i->opcode, names);
    return which == 2 ? 4 : which == 1 ? 2 : 1;
}

/* Finds the rows of the 8 x 8 matrices that ldmatrix or stmatrix accesses. Lane 8 k + r holds the
 * shared address of row r of matrix k. */
static bool find_rows(ptx_warp *w, const ptx_inst *i, const ptx_operand *address, uint32_t count,
                      bool write, uint8_t **rows) {
    uint64_t at[LANES];
    if (!ptx_together(w, i, ~0u)) return false;
    if (!ptx_check_written(w, i, address, "the address")) return false;
    ptx_addresses(w, address, at);
    const uint32_t mask = w->mask;
    w->mask = count == 4 ? ~0u : (1u << 8 * count) - 1;
    const bool good =
        ptx_resolve(w, i, at, i->opcode->space == GENERIC ? GENERIC : SHARED, 16, write, rows);
    if (w->trace && good) ptx_time_access(w, i, at, SHARED, 16);
    w->mask = mask;
    return good;
}

bool ptx_has_count(ptx_warp *w, const ptx_inst *i, const ptx_operand *o, uint32_t count) {
    if ((o->place == VECTOR ? o->count : 1u) == count) return true;
    ptx_stop(w, i, "a vector of %u registers instead of %u", o->place == VECTOR ? o->count : 1,
             count);
    return false;
}

static void execute_ldmatrix(ptx_warp *w, const ptx_inst *i) {
    const uint32_t count = matrices(i);
    const bool trans = ptx_has(i->opcode, "trans");
    uint8_t *rows[LANES];
    uint32_t result[LANES];
    if (!ptx_has_count(w, i, &i->op[0], count) || !find_rows(w, i, &i->op[1], count, false, rows))
        return;
    for (uint32_t k = 0; k < count; k++) {
        for (uint32_t l = 0; l < LANES; l++) {
            uint16_t half[2];
            for (uint32_t e = 0; e < 2; e++) {
                const uint32_t row = trans ? 2 * (l % 4) + e : l / 4,
                               column = trans ? l / 4 : 2 * (l % 4) + e;
                memcpy(&half[e], rows[8 * k + row] + (size_t)2 * column, 2);
            }
            result[l] = half[0] | (uint32_t)half[1] << 16;
        }
        ptx_commit(w, ptx_element(&i->op[0], k), result);
    }
}

static void execute_stmatrix(ptx_warp *w, const ptx_inst *i) {
    const uint32_t count = matrices(i);
    const bool trans = ptx_has(i->opcode, "trans");
    uint8_t *rows[LANES];
    if (!ptx_has_count(w, i, &i->op[1], count) || !find_rows(w, i, &i->op[0], count, true, rows))
        return;
    for (uint32_t k = 0; k < count; k++) {
        const uint32_t *from = ptx_u32(w, ptx_element(&i->op[1], k));
        for (uint32_t l = 0; l < LANES; l++)
            for (uint32_t e = 0; e < 2; e++) {
                const uint32_t row = trans ? 2 * (l % 4) + e : l / 4,
                               column = trans ? l / 4 : 2 * (l % 4) + e;
                const uint16_t half = (uint16_t)(from[l] >> 16 * e);
                memcpy(rows[8 * k + row] + (size_t)2 * column, &half, 2);
            }
    }
}

static void execute_movmatrix(ptx_warp *w, const ptx_inst *i) {
    if (!ptx_together(w, i, ~0u)) return;
    const uint32_t *from = ptx_u32(w, &i->op[1]);
    uint32_t result[LANES];
    for (uint32_t l = 0; l < LANES; l++) {
        result[l] = 0;
        for (uint32_t e = 0; e < 2; e++) {
            const uint32_t row = 2 * (l % 4) + e, column = l / 4;
            result[l] |= (from[4 * row + column / 2] >> 16 * (column % 2) & 0xffff) << 16 * e;
        }
    }
    ptx_commit(w, &i->op[0], result);
}

uint32_t ptx_elements_of(ptx_type type) {
    return ptx_types[type].bits >= 32 ? 1 : 32u / ptx_types[type].bits;
}

double ptx_value_of(ptx_type type, uint64_t bits) {
    switch (type) {
    case T_f16:
        return (double)ptx_f16_to_f32((uint32_t)bits);
    case T_bf16:
        return (double)ptx_bf16_to_f32((uint32_t)bits);
    case T_tf32:
        return (double)sim_float((uint32_t)bits & ~0x1fffu);
    case T_f32:
        return (double)sim_float((uint32_t)bits);
    case T_f64:
        return sim_double(bits);
    case T_s8:
        return (int8_t)bits;
    case T_u8:
        return (uint8_t)bits;
    case T_s32:
        return (int32_t)bits;
    default:
        return ptx_decode(ptx_format_of(type), (uint32_t)bits);
    }
}

uint64_t ptx_element_bits(ptx_type type, uint64_t reg, uint32_t e) {
    const uint32_t bits = ptx_types[type].bits;
    return bits >= 32 ? reg : reg >> bits * e & ((1ull << bits) - 1);
}

uint64_t ptx_result_bits(const ptx_inst *i, ptx_type type, double v) {
    if (type == T_f64) return sim_bits64(v);
    if (type == T_f32) return sim_bits((float)v);
    if (type == T_f16) return ptx_encode(ptx_format_of(T_f16), v, RN, false);
    if (ptx_has(i->opcode, "satfinite"))
        v = v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v;
    return (uint32_t)(int64_t)v;
}

enum { MOST_K = 64 };
typedef struct {
    uint32_t m, k;
    ptx_type a, b, c, d;
    /* `packed` is true if e2m1 elements are stored without gaps, i.e. 8 in a register. */
    bool packed;
} shape;

typedef struct {
    double a[16][MOST_K], b[MOST_K][8], c[16][8];
} tile;

static shape shape_of(const ptx_inst *i) {
    static const char names[] =
        "m16n8k4|m16n8k8|m16n8k16|m16n8k32|m16n8k64|m8n8k4|m8n8k16|m8n8k32|";
    static const uint8_t ks[] = {4, 8, 16, 32, 64, 4, 16, 32};
    const int which = ptx_which(i->opcode, names);
    const uint8_t *t = i->opcode->types;
    return (shape){which >= 5 ? 8 : 16,
                   ks[which],
                   (ptx_type)t[1],
                   (ptx_type)t[2],
                   (ptx_type)t[3],
                   (ptx_type)t[0],
                   ptx_has(i->opcode, "kind::mxf4") || ptx_has(i->opcode, "kind::mxf4nvf4")};
}

/* Returns the number of elements of A or B that one register holds. */
static uint32_t elements_in(const shape *s, ptx_type type) {
    return s->packed ? 8 : ptx_elements_of(type);
}

/* Returns element e of a register. An e2m1 element that is not packed is in bits 2 to 5 of its
 * byte. */
static double element_in(const shape *s, ptx_type type, uint64_t reg, uint32_t e) {
    if (s->packed) return ptx_value_of(type, reg >> 4 * e & 15);
    const uint64_t bits = ptx_element_bits(type, reg, e);
    return ptx_value_of(type, type == T_e2m1 ? bits >> 2 & 15 : bits);
}

/* Decodes the elements of a register and stores them at to[0], to[stride] and so on. Most products
 * have bf16 elements, so these have a loop of their own. */
static void read_register(const shape *s, ptx_type type, uint64_t reg, double *to, size_t stride) {
    const uint32_t each = elements_in(s, type);
    if (type == T_bf16) {
        for (uint32_t e = 0; e < 2; e++)
            to[e * stride] = (double)ptx_bf16_to_f32((uint32_t)reg >> 16 * e & 0xffff);
        return;
    }
    for (uint32_t e = 0; e < each; e++)
        to[e * stride] = element_in(s, type, reg, e);
}

static void read_a(const ptx_warp *w, const ptx_operand *o, const shape *s, tile *t) {
    const uint32_t each = elements_in(s, s->a), rows = s->m / 8;
    for (uint32_t r = 0; r < s->k / (4 * each) * rows; r++) {
        const ptx_operand *from = ptx_element(o, r);
        const uint32_t row = 8 * (r % rows), k = 4 * each * (r / rows);
        for (uint32_t l = 0; l < LANES; l++)
            read_register(s, s->a, ptx_lane(w, from, l), &t->a[l / 4 + row][each * (l % 4) + k], 1);
    }
}

static void read_b(const ptx_warp *w, const ptx_operand *o, const shape *s, tile *t) {
    const uint32_t each = elements_in(s, s->b);
    for (uint32_t r = 0; r < s->k / (4 * each); r++) {
        const ptx_operand *from = ptx_element(o, r);
        for (uint32_t l = 0; l < LANES; l++)
            read_register(s, s->b, ptx_lane(w, from, l),
                          &t->b[each * (l % 4) + 4 * each * r][l / 4], 8);
    }
}

/* Reads the accumulators C from registers. A register holds two f16 accumulators or one
 * accumulator of another type. */
static void read_c(const ptx_warp *w, const ptx_operand *o, const shape *s, tile *t) {
    const bool half = s->c == T_f16;
    for (uint32_t n = 0; n < s->m / 4; n++) {
        const ptx_operand *from = ptx_element(o, half ? n / 2 : n);
        for (uint32_t l = 0; l < LANES; l++) {
            const uint64_t reg = ptx_lane(w, from, l);
            t->c[l / 4 + n / 2 * 8][2 * (l % 4) + n % 2] =
                s->c == T_f32
                    ? (double)sim_float((uint32_t)reg)
                    : ptx_value_of(s->c, half ? ptx_element_bits(T_f16, reg, n % 2) : reg);
        }
    }
}

/* Returns the exponent of the smallest normal number of an element type. Returns 0 if it is not
 * known how tensor cores add products of this type. */
static int least_exponent(ptx_type type) {
    switch (type) {
    case T_bf16:
    case T_tf32:
        return SIM_TENSOR_LEAST_BF16;
    case T_f16:
        return SIM_TENSOR_LEAST_F16;
    case T_e4m3:
        return SIM_TENSOR_LEAST_E4M3;
    case T_e5m2:
        return SIM_TENSOR_LEAST_E5M2;
    default:
        return 0;
    }
}

bool ptx_tensor_rule(ptx_type a, ptx_type b, ptx_type d, sim_tensor_rule *rule) {
    const int least_a = least_exponent(a), least_b = least_exponent(b);
    if ((d != T_f32 && d != T_f16) || !least_a || !least_b) return false;
    *rule = sim_tensor_rule_of(ptx_types[a].bits == 8, least_a, least_b);
    if (d == T_f16) rule->least_sum = SIM_TENSOR_LEAST_F16;
    return true;
}

double ptx_tensor_sum(ptx_type d, double sum, const sim_tensor_vector *a,
                      const sim_tensor_vector *b, uint32_t k, sim_tensor_rule rule) {
    if (d == T_f32) return (double)sim_tensor_sum((float)sum, a, b, (int)k, rule);
    const double exact = sim_tensor_exact(sum, a, b, (int)k, rule);
    const double rounded = ptx_value_of(T_f16, ptx_encode(ptx_format_of(T_f16), exact, RN, false));
    return rounded != 0 ? rounded : 0;
}

/* Holds a row of A or a column of B. The hardware executes some mma.sync as two instructions. Entry
 * i of `of` holds the elements for instruction number i. */
typedef struct parts {
    sim_tensor_vector of[2];
} parts;

/* Prepares a row of A or a column of B for the emulated tensor core. Element k is at from[k *
 * stride]. On compute capability 9.0, ptxas compiles an mma.sync with 8-bit elements to two f16
 * instructions. The row or column is therefore divided into two halves. The first instruction gets
 * the elements k with k % 4 < 2, and its sum begins with 0. The second instruction gets the other
 * elements, and adds their products to the result of the first one. A separate addition then adds
 * the accumulator. */
static void prepare(const shape *s, parts *to, const double *from, size_t stride, int least) {
    const bool halves = ptx_types[s->a].bits == 8;
    float values[2][MOST_K] = {{0}};
    for (uint32_t k = 0; k < s->k; k++) {
        const float value = (float)from[k * stride];
        if (halves)
            values[k / 2 % 2][k / 4 * 2 + k % 2] = value;
        else
            values[0][k] = value;
    }
    for (uint32_t half = 0; half < (halves ? 2 : 1); half++)
        sim_tensor_prepare(&to->of[half], values[half], (int)(halves ? s->k / 2 : s->k),
                           halves ? SIM_TENSOR_LEAST_F16 : least);
}

static double add_parts(const shape *s, double sum, const parts *a, const parts *b,
                        sim_tensor_rule rule) {
    if (ptx_types[s->a].bits != 8) return ptx_tensor_sum(s->d, sum, a->of, b->of, s->k, rule);
    sim_tensor_rule wide;
    ptx_tensor_rule(T_f16, T_f16, s->d, &wide);
    const double first = ptx_tensor_sum(s->d, 0, &a->of[0], &b->of[0], s->k / 2, wide);
    sum += ptx_tensor_sum(s->d, first, &a->of[1], &b->of[1], s->k / 2, wide);
    return isnan(sum) ? (double)sim_tensor_nan() : sum;
}

static void add_as_hardware(const shape *s, tile *t, sim_tensor_rule rule) {
    parts a[16], b[8];
    for (uint32_t m = 0; m < s->m; m++)
        prepare(s, &a[m], t->a[m], 1, rule.least_a);
    for (uint32_t n = 0; n < 8; n++)
        prepare(s, &b[n], &t->b[0][n], 8, rule.least_b);
    for (uint32_t m = 0; m < s->m; m++)
        for (uint32_t n = 0; n < 8; n++)
            t->c[m][n] = add_parts(s, t->c[m][n], &a[m], &b[n], rule);
}

/* Multiplies the tile with sums in double, which are rounded once at the end. The simulator uses
 * this function if it is not known how the hardware adds and rounds. */
static void add_in_double(const shape *s, tile *t) {
    for (uint32_t m = 0; m < s->m; m++)
        for (uint32_t k = 0; k < s->k; k++)
            for (uint32_t n = 0; n < 8; n++)
                t->c[m][n] += t->a[m][k] * t->b[k][n];
}

static void write_d(ptx_warp *w, const ptx_inst *i, const shape *s, const tile *t) {
    const bool half = s->d == T_f16;
    for (uint32_t n = 0; n < s->m / 4; n += half ? 2 : 1) {
        uint64_t wide[LANES];
        uint32_t narrow[LANES];
        for (uint32_t l = 0; l < LANES; l++) {
            const double *from = &t->c[l / 4 + n / 2 * 8][(size_t)2 * (l % 4)];
            wide[l] = ptx_result_bits(i, s->d, from[n % 2]);
            if (half) wide[l] |= ptx_result_bits(i, s->d, from[1]) << 16;
            narrow[l] = (uint32_t)wide[l];
        }
        const ptx_operand *o = ptx_element(&i->op[0], half ? n / 2 : n);
        ptx_commit(w, o, s->d == T_f64 ? (void *)wide : (void *)narrow);
    }
}

/* Returns the scale of a block. It is byte number `byte` of the register `from` of one lane. */
static double scale_of(const ptx_warp *w, const ptx_inst *i, const ptx_operand *from, uint32_t lane,
                       uint32_t byte) {
    const ptx_type type = ptx_has(i->opcode, "ue4m3") ? T_ue4m3 : T_ue8m0;
    return ptx_decode(ptx_format_of(type),
                      (uint32_t)ptx_lane(w, ptx_element(from, 0), lane) >> 8 * byte & 255);
}

/* Multiplies the elements of A and B by their block scales, which are in registers of the lanes.
 * Lanes 4 g to 4 g + 3 could hold the scales of rows g and g + 8 of A, and those of column g of B.
 * The operand thread-id-a (0 or 1) selects two of these four lanes: the first has the scales of row
 * g, the second those of row g + 8. The operand thread-id-b (0 to 3) selects the lane that has the
 * scales of column g of B. */
static bool apply_scales(ptx_warp *w, const ptx_inst *i, const shape *s, tile *t) {
    static const char vectors[] = "scale_vec::1X|scale_vec::2X|scale_vec::4X|";
    static const uint8_t counts[] = {1, 2, 4};
    const bool one = !ptx_has(i->opcode, "scale_vec::2X") && !ptx_has(i->opcode, "scale_vec::4X");
    const uint32_t count = one ? s->packed ? 2 : 1 : counts[ptx_which(i->opcode, vectors)];
    uint32_t at[4];
    for (uint32_t n = 0; n < 4; n++)
        at[n] = (uint32_t)ptx_lane(w, ptx_element(&i->op[n < 2 ? 5 : 7], n % 2), 0) & 0xffff;
    if (at[0] % count || at[0] > 3 || at[1] > 1 || at[2] % count || at[2] > 3 || at[3] > 3) {
        ptx_stop(w, i, "scale selectors {%u, %u} and {%u, %u}: byte and thread are out of range",
                 at[0], at[1], at[2], at[3]);
        return false;
    }
    const uint32_t each = s->k / count;
    for (uint32_t block = 0; block < count; block++) {
        for (uint32_t m = 0; m < 16; m++) {
            const double scale =
                scale_of(w, i, &i->op[4], m % 8 * 4 + 2 * at[1] + m / 8, at[0] + block);
            for (uint32_t k = block * each; k < (block + 1) * each; k++)
                t->a[m][k] *= scale;
        }
        for (uint32_t n = 0; n < 8; n++) {
            const double scale = scale_of(w, i, &i->op[6], n * 4 + at[3], at[2] + block);
            for (uint32_t k = block * each; k < (block + 1) * each; k++)
                t->b[k][n] *= scale;
        }
    }
    return true;
}

/* Reads A, B and C of mma.sync from registers. Returns false after an error. */
static bool read_tile(ptx_warp *w, const ptx_inst *i, const shape *s, tile *t) {
    const uint32_t sums = s->m / 4;
    if (!ptx_together(w, i, ~0u)) return false;
    if (!ptx_has_count(w, i, &i->op[0], s->d == T_f16 ? sums / 2 : sums) ||
        !ptx_has_count(w, i, &i->op[1], s->k / (4 * elements_in(s, s->a)) * (s->m / 8)) ||
        !ptx_has_count(w, i, &i->op[2], s->k / (4 * elements_in(s, s->b))) ||
        !ptx_has_count(w, i, &i->op[3], s->c == T_f16 ? sums / 2 : sums))
        return false;
    if (w->mode) ptx_set_mode(w, 0);
    read_a(w, &i->op[1], s, t);
    read_b(w, &i->op[2], s, t);
    read_c(w, &i->op[3], s, t);
    return true;
}

static void execute_mma(ptx_warp *w, const ptx_inst *i) {
    const shape s = shape_of(i);
    tile t;
    if (!read_tile(w, i, &s, &t)) return;
    sim_tensor_rule rule;
    if (w->block->launch->capability == 90 && ptx_tensor_rule(s.a, s.b, s.d, &rule))
        add_as_hardware(&s, &t, rule);
    else
        add_in_double(&s, &t);
    write_d(w, i, &s, &t);
}

static void execute_scaled(ptx_warp *w, const ptx_inst *i) {
    const shape s = shape_of(i);
    tile t = {0};
    for (uint32_t n = 4; n < 8; n++)
        if (!ptx_has_count(w, i, &i->op[n], n % 2 ? 2 : 1)) return;
    if (!read_tile(w, i, &s, &t) || !apply_scales(w, i, &s, &t)) return;
    add_in_double(&s, &t);
    write_d(w, i, &s, &t);
}

#define ROW(pattern, operands, execute)                                                            \
    { pattern, operands, execute, NULL, 0, 0, 0, 0, 0 }
#define MMA "mma.sync.aligned."
/* The PTX ISA writes the kind (such as .kind::mxf8f6f4) after the shape, and NVIDIA's compilers
 * write it before the shape. Both forms are accepted. */
#define KIND(shape, kind, types, operands, execute)                                                \
    ROW(MMA shape ".row.col." kind "." types, operands, execute),                                  \
        ROW(MMA kind "." shape ".row.col." types, operands, execute)
#define SCALES(shape, kind, types) KIND(shape, kind, types, "wWWWWUWU", execute_scaled)
#define SMALL                      "e4m3|e5m2|e3m2|e2m3|e2m1"
static const ptx_row rows[] = {
    ROW("ldmatrix.sync.aligned.m8n8.x1|x2|x4.{trans}.{shared|shared::cta}.b16", "wm",
        execute_ldmatrix),
    ROW("stmatrix.sync.aligned.m8n8.x1|x2|x4.{trans}.{shared|shared::cta}.b16", "mW",
        execute_stmatrix),
    ROW("movmatrix.sync.aligned.m8n8.trans.b16", "rR", execute_movmatrix),
    ROW(MMA "m16n8k8|m16n8k16.row.col.f32|f16.f16.f16.f32|f16", "wWWW", execute_mma),
    ROW(MMA "m16n8k8|m16n8k16.row.col.f32.bf16.bf16.f32", "wWWW", execute_mma),
    ROW(MMA "m16n8k4|m16n8k8.row.col.f32.tf32.tf32.f32", "wWWW", execute_mma),
    ROW(MMA "m16n8k16|m16n8k32|m8n8k16.row.col.{satfinite}.s32.s8|u8.s8|u8.s32", "wWWW",
        execute_mma),
    ROW(MMA "m16n8k16|m16n8k32.row.col.f32|f16.e4m3|e5m2.e4m3|e5m2.f32|f16", "wWWW", execute_mma),
    KIND("m16n8k32", "kind::f8f6f4", "f32|f16." SMALL "." SMALL ".f32|f16", "wWWW", execute_mma),
    SCALES("m16n8k32", "kind::mxf8f6f4.block_scale.{scale_vec::1X}",
           "f32." SMALL "." SMALL ".f32.ue8m0"),
    SCALES("m16n8k64", "kind::mxf4.block_scale.{scale_vec::2X}", "f32.e2m1.e2m1.f32.ue8m0"),
    SCALES("m16n8k64", "kind::mxf4nvf4.block_scale.scale_vec::2X|scale_vec::4X",
           "f32.e2m1.e2m1.f32.ue8m0|ue4m3"),
    ROW(MMA "m8n8k4|m16n8k4|m16n8k8|m16n8k16.row.col.f64.f64.f64.f64", "zZZZ", execute_mma),
};
const ptx_table ptx_matrix_table = {rows, sizeof rows / sizeof *rows};
