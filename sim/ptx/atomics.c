/* Executes the atomic instructions atom and red, for one lane after another. */
#include "access.h"
#include "floats.h"
#include "time.h"
#include <string.h>

static const char names[] = "add|min|max|and|or|xor|exch|cas|inc|dec|";
enum { ADD, MIN, MAX, AND, OR, XOR, EXCH, CAS, INC, DEC };

static uint64_t apply_integer(int what, bool sign, uint32_t bits, uint64_t old, uint64_t v) {
    const uint64_t top = bits == 64 ? ~0ull : (1ull << bits) - 1;
    const int64_t a = bits == 64 ? (int64_t)old : (int32_t)old,
                  b = bits == 64 ? (int64_t)v : (int32_t)v;
    const bool less = sign ? a < b : old < v;
    switch (what) {
    case ADD:
        return (old + v) & top;
    case MIN:
        return less ? old : v;
    case MAX:
        return less ? v : old;
    case AND:
        return old & v;
    case OR:
        return old | v;
    case XOR:
        return old ^ v;
    case INC:
        return old >= v ? 0 : old + 1;
    case DEC:
        return old == 0 || old > v ? v : old - 1;
    default:
        return v;
    }
}

static double decode(ptx_type type, uint64_t bits) {
    const ptx_format *f = ptx_format_of(type);
    return type == T_f64 ? sim_double(bits)
           : f           ? ptx_decode(f, (uint32_t)bits)
                         : (double)sim_float((uint32_t)bits);
}

static uint64_t apply_float(int what, ptx_type type, uint64_t old, uint64_t v) {
    const ptx_format *f = ptx_format_of(type);
    const double a = decode(type, old), b = decode(type, v);
    if (what == MIN || what == MAX) return (what == MIN ? b < a : b > a) || a != a ? v : old;
    if (f) return ptx_encode(f, a + b, RN, false);
    return type == T_f64 ? sim_bits64(a + b) : sim_bits((float)a + (float)b);
}

static uint64_t apply(int what, ptx_type type, uint64_t old, uint64_t v) {
    const ptx_type each = ptx_element_type(type);
    const uint32_t bits = ptx_types[type].bits;
    if (what >= EXCH && what <= CAS) return v;
    if (each != type) {
        const uint64_t low = apply_float(what, each, old & 0xffff, v & 0xffff);
        return low | apply_float(what, each, old >> 16 & 0xffff, v >> 16 & 0xffff) << 16;
    }
    if (ptx_types[type].kind == FLOAT) return apply_float(what, type, old, v);
    return apply_integer(what, ptx_types[type].kind == SIGNED, bits, old, v);
}

void ptx_reduce(const ptx_inst *i, ptx_type type, uint8_t *to, const uint8_t *from,
                uint32_t bytes) {
    const int what = ptx_which(i->opcode, names);
    const uint32_t each = ptx_types[type].bits / 8;
    for (uint32_t at = 0; at + each <= bytes; at += each) {
        uint64_t old = 0, v = 0;
        memcpy(&old, to + at, each), memcpy(&v, from + at, each);
        v = apply(what, type, old, v);
        memcpy(to + at, &v, each);
    }
}

static void execute(ptx_warp *w, const ptx_inst *i, const ptx_operand *to, const ptx_operand *where,
                    const ptx_operand *value, const ptx_operand *swap) {
    const ptx_type type = (ptx_type)i->opcode->types[0];
    const uint32_t count = i->opcode->vector ? i->opcode->vector : 1,
                   bytes = ptx_types[type].bits / 8;
    const int what = ptx_which(i->opcode, names);
    uint64_t address[LANES], wide[LANES];
    uint32_t narrow[LANES];
    uint8_t *at[LANES];
    if (w->mode) ptx_set_mode(w, 0);
    if (!ptx_check_written(w, i, where, "the address")) return;
    ptx_addresses(w, where, address);
    const int space = where->space ? where->space : i->opcode->space;
    if (!ptx_resolve(w, i, address, space, count * bytes, false, at)) return;
    if (w->trace) ptx_time_access(w, i, address, space, count * bytes);
    for (uint32_t k = 0; k < count; k++) {
        for (uint32_t left = w->mask; left; left &= left - 1) {
            const uint32_t l = ptx_first(left);
            uint64_t old = 0, v = ptx_lane(w, ptx_element(value, k), l);
            memcpy(&old, at[l] + (size_t)k * bytes, bytes);
            wide[l] = old, narrow[l] = (uint32_t)old;
            if (bytes < 8) v &= (1ull << 8 * bytes) - 1;
            if (what == CAS && old != v) continue;
            v = what == CAS && swap ? ptx_lane(w, swap, l) : apply(what, type, old, v);
            memcpy(at[l] + (size_t)k * bytes, &v, bytes);
        }
        const ptx_operand *o = to ? ptx_element(to, k) : NULL;
        if (o && o->place == REG) ptx_commit(w, o, o->width == 8 ? (void *)wide : (void *)narrow);
    }
}

static void execute_atom(ptx_warp *w, const ptx_inst *i) {
    const bool swaps = ptx_which(i->opcode, names) == CAS;
    if (swaps && i->op[3].place == NOWHERE)
        ptx_stop(w, i, "an operand is missing");
    else
        execute(w, i, &i->op[0], &i->op[1], &i->op[2], &i->op[3]);
}

static void execute_red(ptx_warp *w, const ptx_inst *i) {
    execute(w, i, NULL, &i->op[0], &i->op[1], NULL);
}

#define ROW(pattern, operands, execute, what)                                                      \
    { pattern, operands, execute, NULL, 0, 0, 0, 0, what }
#define WORD                                                                                       \
    "{relaxed|acquire|release|acq_rel|volatile|cta|cluster|gpu|sys|global|shared|shared::cta|"     \
    "shared::cluster}."
#define WORDS    WORD WORD WORD
#define INTEGERS "u32|s32|u64|s64"
static const ptx_row rows[] = {
    ROW("atom." WORDS "add|min|max|inc|dec." INTEGERS, "tmTL?", execute_atom, 0),
    ROW("atom." WORDS "and|or|xor|exch.b32|b64", "tmTL?", execute_atom, 0),
    ROW("atom." WORDS "cas.b16|b32|b64", "tmTT", execute_atom, 0),
    ROW("atom." WORDS "add.{noftz}.{L2::cache_hint}.{v2|v4|v8}.f32|f64|f16|bf16|f16x2|bf16x2",
        "vmVL?", execute_atom, 0),
    ROW("atom." WORDS "min|max.noftz.{v2|v4|v8}.f16|bf16|f16x2|bf16x2", "vmVL?", execute_atom, 0),
    ROW("red." WORDS "add|min|max|inc|dec." INTEGERS, "mTL?", execute_red, 0),
    ROW("red." WORDS "and|or|xor.b32|b64", "mTL?", execute_red, 0),
    ROW("red." WORDS "add.{noftz}.{L2::cache_hint}.{v2|v4|v8}.f32|f64|f16|bf16|f16x2|bf16x2",
        "mVL?", execute_red, 0),
    ROW("red." WORDS "min|max.noftz.{v2|v4|v8}.f16|bf16|f16x2|bf16x2", "mVL?", execute_red, 0),
};
const ptx_table ptx_atomics_table = {rows, sizeof rows / sizeof *rows};
