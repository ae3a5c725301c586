/* Splits PTX opcodes such as "fma.rn.f32" into tokens and finds their entries in the instruction
 * tables. */
#include "sim.h"
#include <string.h>

const ptx_type_info ptx_types[] = {
#define TYPE(name, bits, kind) {#name, bits, kind},
#include "types.def"
#undef TYPE
};

ptx_type ptx_type_of(const char *name, size_t length) {
    for (size_t k = 1; k < sizeof ptx_types / sizeof *ptx_types; k++)
        if (strlen(ptx_types[k].name) == length && memcmp(ptx_types[k].name, name, length) == 0)
            return (ptx_type)k;
    return T_none;
}

static size_t token_length(const char *at) {
    return strcspn(at, ".");
}

static bool has_token(const char *text, const char *name, size_t length) {
    for (const char *at = text + token_length(text); *at == '.'; at += token_length(at))
        if (token_length(++at) == length && memcmp(at, name, length) == 0) return true;
    return false;
}

bool ptx_has(const ptx_opcode *o, const char *name) {
    return has_token(o->text, name, strlen(name));
}

int ptx_which(const ptx_opcode *o, const char *names) {
    int number = 0;
    for (const char *at = names; *at; at += strcspn(at, "|") + 1, number++)
        if (has_token(o->text, at, strcspn(at, "|"))) return number;
    return -1;
}

/* Returns true if the token is one of the alternatives in the text from `from` to `to`, which `|`
 * separates, as in "rn|rz". */
static bool among(const char *from, const char *to, const char *token, size_t length) {
    while (from < to) {
        const char *bar = memchr(from, '|', (size_t)(to - from));
        const char *end = bar ? bar : to;
        if ((size_t)(end - from) == length && memcmp(from, token, length) == 0) return true;
        from = end + 1;
    }
    return false;
}

/* Returns true if the opcode matches the pattern of a table entry. The function calls itself once
 * for each token of the pattern. */
static bool matches(const char *pattern, const char *text) {
    if (!*pattern) return !*text;
    const bool optional = *pattern == '{';
    const char *from = pattern + optional, *to = from + strcspn(from, optional ? "}" : ".");
    const char *rest = to + (optional && *to == '}');
    if (*rest == '.') rest++;
    const size_t length = token_length(text);
    if (*text && among(from, to, text, length) &&
        matches(rest, text + length + (text[length] == '.')))
        return true;
    return optional && matches(rest, text);
}

static bool same_base(const char *pattern, const char *text) {
    const size_t length = token_length(text);
    return strncmp(pattern, text, length) == 0 &&
           (pattern[length] == '.' || pattern[length] == '\0');
}

static uint32_t sources_of(const ptx_row *row) {
    return (uint32_t)((row->a != 0) + (row->b != 0) + (row->c != 0));
}

/* Finds the table entry of an opcode. The entry must have `sources` sources. If `sources` is -1,
 * any number is allowed. */
static const ptx_row *find_row(const char *text, int sources) {
    for (const ptx_table *const *t = ptx_tables; *t; t++)
        for (size_t k = 0; k < (*t)->count; k++)
            if (same_base((*t)->rows[k].pattern, text) && matches((*t)->rows[k].pattern, text) &&
                (sources < 0 || (int)sources_of(&(*t)->rows[k]) == sources))
                return &(*t)->rows[k];
    return NULL;
}

static const struct {
    const char *name;
    uint8_t space;
} spaces[] = {{"global", GLOBAL},          {"shared", SHARED},     {"shared::cta", SHARED},
              {"shared::cluster", SHARED}, {"local", LOCAL},       {"param", PARAM},
              {"param::entry", PARAM},     {"param::func", PARAM}, {"const", CONST}};

static const struct {
    const char *name;
    uint8_t rounding;
} roundings[] = {{"rn", RN},  {"rz", RZ},  {"rm", RM},  {"rp", RP},  {"rni", RN},
                 {"rzi", RZ}, {"rmi", RM}, {"rpi", RP}, {"rna", RNA}};

static void take_token(ptx_opcode *o, const char *token, size_t length) {
    const ptx_type type = ptx_type_of(token, length);
    if (type && o->type_count < 4) o->types[o->type_count++] = (uint8_t)type;
    if (length == 2 && token[0] == 'v' && token[1] >= '2' && token[1] <= '8')
        o->vector = (uint8_t)(token[1] - '0');
    for (size_t k = 0; k < sizeof spaces / sizeof *spaces; k++)
        if (strlen(spaces[k].name) == length && memcmp(spaces[k].name, token, length) == 0 &&
            o->space == GENERIC)
            o->space = spaces[k].space;
    for (size_t k = 0; k < sizeof roundings / sizeof *roundings; k++)
        if (strlen(roundings[k].name) == length && memcmp(roundings[k].name, token, length) == 0)
            o->rounding = roundings[k].rounding;
    o->ftz |= length == 3 && memcmp(token, "ftz", 3) == 0;
    o->sat |= length == 3 && memcmp(token, "sat", 3) == 0;
}

/* Sets the fields that tell whether the opcode has a certain token. The functions that execute
 * instructions read these fields for each lane, and a search in the text would take longer. */
static void find_tokens(ptx_opcode *o) {
    o->relu = ptx_has(o, "relu");
    o->satfinite = ptx_has(o, "satfinite");
    o->bulk = strncmp(o->text, "cp.async.bulk", 13) == 0;
    o->syncs = strncmp(o->text, "atom", 4) == 0 || strncmp(o->text, "red.", 4) == 0 ||
               ptx_has(o, "volatile") || ptx_has(o, "relaxed") || ptx_has(o, "acquire") ||
               ptx_has(o, "release");
}

void ptx_opcode_find(ptx_opcode *o) {
    for (const char *at = o->text + token_length(o->text); *at == '.'; at += token_length(at)) {
        at++;
        take_token(o, at, token_length(at));
    }
    find_tokens(o);
    o->row = find_row(o->text, -1);
}

bool ptx_opcode_fits(const ptx_opcode *o, uint32_t operands) {
    return !o->row || o->row->operands || sources_of(o->row) + 1 == operands;
}

void ptx_opcode_find_sources(ptx_opcode *o, uint32_t operands) {
    const ptx_row *row = operands ? find_row(o->text, (int)operands - 1) : NULL;
    if (row) o->row = row;
}
