/* This file has the table of the matrix instructions (MFMA) of AMD's CDNA 1 to 4, and computes the
 * position of each matrix element in the registers of a wave.
 *
 * The cycles for CDNA 1 to 3 are from AMD's matrix instruction calculator, which does not know CDNA
 * 4. The cycles for CDNA 4 are from AMD's article on matrix cores. The cycles of instructions that
 * the article lacks are computed from the number of passes in LLVM's scheduling model; a pass takes
 * four cycles. The article and LLVM agree on all instructions that both list. */
#include "base/base.h"

#include <string.h>

#define NARROW "e2m3 e3m2 e2m1"
#define MIXED  "e4m3 e5m2 e2m3 e3m2 e2m1"

enum { GENERATIONS = 4, LANES = 64, SCALED_BLOCK = 32 };

typedef struct row {
    const char *name;
    uint32_t m, k, blocks;
    const char *a, *b, *d;
    uint32_t cycles[GENERATIONS];
} row;

#define MFMA(name, m, k, blocks, a, b, d, c1, c2, c3, c4)                                          \
    {name, m, k, blocks, a, b, d, {c1, c2, c3, c4}},
/* clang-format off */
static const row rows[] = {
#include "sol/mfma.def"
};
/* clang-format on */
#undef MFMA

/* This table lists the element types. short_name is the name in mfma.def, and name is the type's
 * full name. If CDNA 1 to 3 interpret the type differently, fnuz is its name there. */
static const struct {
    const char *short_name, *fnuz, *name;
    uint32_t bits;
} types[] = {
    {"f64", NULL, "f64", 64},       {"f32", NULL, "f32", 32},   {"xf32", NULL, "xf32", 32},
    {"f16", NULL, "f16", 16},       {"bf16", NULL, "bf16", 16}, {"i32", NULL, "i32", 32},
    {"i8", NULL, "i8", 8},          {"e2m3", NULL, "e2m3", 6},  {"e3m2", NULL, "e3m2", 6},
    {"fp8", "e4m3fnuz", "e4m3", 8}, {"e2m1", NULL, "e2m1", 4},  {"bf8", "e5m2fnuz", "e5m2", 8},
};

static const char *type_name(const char *type, uint32_t generation) {
    for (size_t i = 0; i < BSMM_COUNT(types); i++)
        if (!strcmp(types[i].short_name, type))
            return generation < 4 && types[i].fnuz ? types[i].fnuz : types[i].name;
    /* Here `type` is a list of several types, in which each type already has its full name. */
    return type;
}

static bool is_mixed(const row *r) {
    return strchr(r->a, ' ') != NULL;
}

static bool is_scaled(const row *r) {
    return strstr(r->name, "_scale_") != NULL;
}

static const char *source_of(const row *r, uint32_t generation) {
    if (generation < 4) return "AMD matrix instruction calculator 1.3.2";
    if (r->blocks > 1 || !strcmp(r->a, "i8")) return "LLVM 22, SISchedule.td: passes";
    return "AMD's article on matrix cores (2025), section 3";
}

static bsmm_mfma_info describe(const row *r, uint32_t generation) {
    const uint32_t cycles = r->cycles[generation - 1];
    return (bsmm_mfma_info){
        .struct_size = sizeof(bsmm_mfma_info),
        .cdna = generation,
        .name = r->name,
        .a = type_name(r->a, generation),
        .b = type_name(r->b, generation),
        .d = r->d,
        .m = r->m,
        .n = r->m,
        .k = r->k,
        .blocks = r->blocks,
        .cycles = cycles,
        .cu_operations = 4 * 2 * r->m * r->m * r->k * r->blocks / cycles,
        .is_scaled = is_scaled(r),
        .source = source_of(r, generation),
    };
}

bsmm_status bsmm_mfma_at(uint32_t index, bsmm_mfma_info *info) {
    uint32_t left = index;
    for (uint32_t generation = 1; generation <= GENERATIONS; generation++)
        for (size_t i = 0; i < BSMM_COUNT(rows); i++) {
            if (!rows[i].cycles[generation - 1] || left--) continue;
            bsmm_mfma_info found = describe(&rows[i], generation);
            return bsmm_give_struct(info, &found, sizeof found, "info");
        }
    return bsmm_fail(BSMM_E_NOT_FOUND, "index: value is %u; there are %u matrix instructions",
                     index, index - left);
}

/* Returns the last table entry with this name. If an instruction has several entries, the last one
 * lists all types that it accepts. */
static const row *find_row(const char *name) {
    for (size_t i = BSMM_COUNT(rows); name && i-- > 0;)
        if (!strcmp(rows[i].name, name)) return &rows[i];
    return NULL;
}

/* Tells whether `word` is one of the words, separated by spaces, of `choice`. */
static bool has_word(const char *choice, const char *word) {
    const size_t length = strlen(word);
    for (const char *at = choice; (at = strstr(at, word)); at += length)
        if ((at == choice || at[-1] == ' ') && (!at[length] || at[length] == ' ')) return true;
    return false;
}

/* Returns the number of bits of an element of type `type`, or of the first type of `choice` if
 * `type` is NULL. `choice` is the entry for A or B in the table of instructions: the short name of
 * one type, or a list of names separated by spaces. Returns 0 if `choice` does not contain `type`.
 */
static uint32_t type_bits(const char *choice, const char *type) {
    for (size_t i = 0; i < BSMM_COUNT(types); i++) {
        const bool alone = !strcmp(choice, types[i].short_name);
        const bool first = alone || !strncmp(choice, types[i].name, strlen(types[i].name));
        const bool fnuz = alone && types[i].fnuz && type && !strcmp(type, types[i].fnuz);
        if (type ? !fnuz && strcmp(type, types[i].name) : !first) continue;
        if (alone || has_word(choice, types[i].name)) return types[i].bits;
    }
    return 0;
}

/* Returns the lane and the bits of its registers in which an instruction expects an element of A or
 * B. `outer` is the row of A (or column of B), and `k` is the index along K. An instruction
 * multiplies one or more independent blocks, i.e. pairs of matrices.
 *
 * Each lane holds some consecutive elements along K of one row of one block. Consecutive lanes hold
 * the rows of the first block, then those of the next block, and so on. After the last block come
 * the lanes with the next elements along K, in the same order of rows and blocks.
 *
 * The 8-bit operands of the f8f6f4 instructions differ. Their K is divided into chunks of 16
 * elements, and the lanes that hold the same row take the chunks in turn. */
static bsmm_mfma_place input_place(const row *r, uint32_t bits, uint32_t block, uint32_t outer,
                                   uint32_t k) {
    uint32_t held = r->k * r->m * r->blocks / LANES, group = k / held, item = k % held;
    if (is_mixed(r) && bits == 8) {
        const uint32_t groups = LANES / r->m, chunk = k / 16;
        group = chunk % groups, item = chunk / groups * 16 + k % 16;
    }
    return (bsmm_mfma_place){.lane = outer + r->m * (block + r->blocks * group),
                             .reg = item * bits / 32,
                             .low_bit = item * bits % 32,
                             .bits = bits};
}

/* An instruction computes several independent products, called blocks. Returns the position of
 * element (i, j) of C or D in one of the blocks. With f64, each pair of registers in a group of 16
 * lanes holds one row of every block. With all other types, a group of m lanes holds four
 * consecutive rows of a block, one in each of four registers. */
static bsmm_mfma_place output_place(const row *r, uint32_t block, uint32_t i, uint32_t j) {
    bsmm_mfma_place place = {.bits = 32};
    if (!strcmp(r->d, "f64")) {
        place.bits = 64;
        place.reg = r->m == 16 ? 2 * (i / 4) : 0;
        place.lane = r->m == 16 ? 16 * (i % 4) + j : 16 * i + 4 * block + j;
    } else if (r->m == 4) {
        place.reg = i, place.lane = 4 * block + j;
    } else if (r->m == 16) {
        place.reg = 4 * block + i % 4, place.lane = 16 * (i / 4) + j;
    } else {
        place.reg = 16 * block + 4 * (i / 8) + i % 4, place.lane = 32 * (i / 4 % 2) + j;
    }
    return place;
}

static bsmm_status check_index(const char *field, uint32_t value, uint32_t extent) {
    if (value < extent) return BSMM_OK;
    return bsmm_fail(BSMM_E_INVALID, "%s: value is %u; must be below %u", field, value, extent);
}

/* Stores the numbers of rows and columns of an operand in `extents`. If the instruction does not
 * have this operand (most instructions have no scales), the numbers are 0. */
static void operand_extents(const row *r, uint32_t operand, uint32_t extents[2]) {
    const uint32_t scales = is_scaled(r) ? r->k / SCALED_BLOCK : 0, scaled = scales ? r->m : 0;
    const uint32_t table[][2] = {
        [BSMM_MFMA_A] = {r->m, r->k},           [BSMM_MFMA_B] = {r->k, r->m},
        [BSMM_MFMA_C] = {r->m, r->m},           [BSMM_MFMA_D] = {r->m, r->m},
        [BSMM_MFMA_SCALE_A] = {scaled, scales}, [BSMM_MFMA_SCALE_B] = {scales, scaled},
    };
    const bool known = operand < BSMM_COUNT(table);
    extents[0] = known ? table[operand][0] : 0;
    extents[1] = known ? table[operand][1] : 0;
}

bsmm_status bsmm_mfma_find_place(const char *name, const char *type, uint32_t operand,
                                 uint32_t block, uint32_t row_index, uint32_t col,
                                 bsmm_mfma_place *place) {
    const row *r = find_row(name);
    uint32_t extents[2];
    if (!r)
        return bsmm_fail(BSMM_E_NOT_FOUND,
                         "name: value is \"%.64s\"; must be one that bsmm_mfma_at lists",
                         name ? name : "");
    const bool by_b = operand == BSMM_MFMA_B || operand == BSMM_MFMA_SCALE_B;
    const uint32_t bits = type_bits(by_b ? r->b : r->a, type);
    if (!bits)
        return bsmm_fail(BSMM_E_NOT_FOUND, "type: value is \"%.64s\"; must be one of %s", type,
                         by_b ? r->b : r->a);
    operand_extents(r, operand, extents);
    if (!extents[0])
        return bsmm_fail(BSMM_E_INVALID, "operand: value is %u; %s has no such operand", operand,
                         name);
    BSMM_TRY(check_index("block", block, r->blocks));
    BSMM_TRY(check_index("row", row_index, extents[0]));
    BSMM_TRY(check_index("col", col, extents[1]));
    const uint32_t outer = by_b ? col : row_index, inner = by_b ? row_index : col;
    bsmm_mfma_place found;
    if (operand == BSMM_MFMA_C || operand == BSMM_MFMA_D)
        found = output_place(r, block, row_index, col);
    else if (operand == BSMM_MFMA_A || operand == BSMM_MFMA_B)
        found = input_place(r, bits, block, outer, inner);
    else
        found = (bsmm_mfma_place){.lane = r->m * inner + outer, .bits = 8};
    found.struct_size = sizeof found;
    return bsmm_give_struct(place, &found, sizeof found, "place");
}
