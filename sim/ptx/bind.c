/* Checks the operands of a PTX instruction and assigns them to the operands that the instruction's
 * table entry (ptx_row) names.
 *
 * The string `operands` of an entry has one letter for each operand. Small letters are results, and
 * capitals are sources:
 *   p P      predicates
 *   h H r R l L q Q   registers of 16, 32, 64 and 128 bits; sources may be numbers and addresses
 *   t T s S  registers as wide as the opcode's first (t) or second (s) type
 *   c C      a result of the first type, a source of the second type, or wider registers
 *   v V      a register of the first type or wider; with .v2, .v4 or .v8 a vector of 2, 4 or 8
 *   y Y      a register of the first type, or a vector of registers with as many bits in total
 *   w W      a vector of 32-bit registers, or one 32-bit register
 *   U        a vector of 16-bit registers, or of wider ones
 *   z Z      a vector of registers of the first type
 *   D        a descriptor of 64 bits, or a vector of 32-bit registers
 *   G        a descriptor of 64 bits, or an address in brackets
 *   m        an address in brackets, with optional coordinates
 *   i        a number
 *   x        a label, or a list of .branchtargets
 *   f        a function
 *   N        a 32-bit source, which is absent if the next operand in the text is a predicate
 *   K        a vector of 32-bit registers, which is absent if the next operand in the text is no
 *            vector
 *   ( o      a list in parentheses; o is optional
 * The character `|` joins the next operand, which is optional, to the operand before it. The
 * character `?` after a letter makes its operand and all later operands optional. */
#include "parse.h"
#include <string.h>

static uint32_t new_register(ptx_parser *p, uint32_t width) {
    const uint32_t bytes = width <= 4 ? 128 : width * 32;
    const uint32_t at = p->f->base + p->f->bytes;
    if (p->f->bytes > 1u << 26) {
        ptx_fail(p, "a function has too many registers");
        return p->f->base;
    }
    p->f->bytes += bytes;
    return at;
}

uint32_t ptx_slot_at(ptx_parser *p, int kind, uint64_t value, uint32_t width) {
    const uint32_t size = width <= 4 ? 4 : width;
    for (uint32_t k = p->slot_count; k-- > 0 && p->slot_count - k < 256;) {
        const ptx_slot *s = &p->slots[k];
        if (s->kind == kind && s->value == value && s->width == size) return s->at;
    }
    if (!ptx_grow(p, (void **)&p->slots, p->slot_count, &p->slot_room, sizeof *p->slots)) return 0;
    ptx_slot *s = &p->slots[p->slot_count++];
    *s = (ptx_slot){(uint8_t)kind, (uint8_t)size, new_register(p, size), value};
    return s->at;
}

static uint64_t float_bits(double value, ptx_type type) {
    const float narrow = (float)value;
    uint64_t wide = 0;
    uint32_t bits = 0;
    memcpy(&wide, &value, 8), memcpy(&bits, &narrow, 4);
    return type == T_f64 || type == T_b64 ? wide : bits;
}

static uint64_t number_bits(const ptx_token *t, ptx_type type) {
    const bool wants_float = type == T_f32 || type == T_f64;
    if (t->bits == 32 && type == T_f64) {
        const uint32_t bits = (uint32_t)t->value;
        float value;
        memcpy(&value, &bits, 4);
        return float_bits((double)value, type);
    }
    if (t->bits == 64 && type == T_f32) {
        double value;
        memcpy(&value, &t->value, 8);
        return float_bits(value, type);
    }
    if (t->bits || (!t->real && !wants_float)) return t->value;
    return float_bits(t->number, type);
}

static void refuse(ptx_parser *p, const ptx_raw *r, const char *wanted) {
    ptx_fail(p, "operand %.*s: %s was expected", (int)r->token.length, r->token.text, wanted);
}

static void place_variable(ptx_parser *p, const ptx_symbol *s, ptx_operand *o, uint32_t width) {
    const int kind = s->dynamic           ? SLOT_DYNAMIC
                     : s->space == SHARED ? SLOT_SHARED
                     : s->formal          ? SLOT_PARAM
                                          : SLOT_CONSTANT;
    if (s->outer && p->f->entry) p->f->uses_outer = true;
    if (s->outer && !p->f->entry) p->m->functions_use_outer = true;
    *o = (ptx_operand){.place = REG, .width = (uint8_t)width};
    o->at = ptx_slot_at(p, kind, s->value, width);
}

static bool is_source(char letter) {
    return letter >= 'A' && letter <= 'Z';
}

/* Makes the operand a register. If the text has a number, an address or a special register, the
 * parser adds a register that holds this value from the start of a thread block. `exact` forbids
 * registers wider than `width`. */
static void place_register(ptx_parser *p, const ptx_raw *r, ptx_operand *o, char letter,
                           uint32_t width, ptx_type type, bool exact) {
    const bool source = is_source(letter);
    if (r->kind == RAW_REG && (r->width == width || (!exact && r->width > width))) {
        *o = (ptx_operand){.place = REG, .width = r->width, .at = r->at};
    } else if (r->kind == RAW_SINK && !source) {
        *o = (ptx_operand){.place = SINK};
    } else if (r->kind == RAW_NUMBER && source) {
        uint64_t value = number_bits(&r->token, type) + (uint64_t)r->offset;
        if (width < 8) value &= ~0u >> (32 - 8 * width);
        *o = (ptx_operand){.place = REG, .width = (uint8_t)width};
        o->at = ptx_slot_at(p, SLOT_CONSTANT, value, width);
    } else if (r->kind == RAW_SPECIAL && source && width >= 2) {
        *o = (ptx_operand){.place = REG, .width = (uint8_t)width};
        o->at = ptx_slot_at(p, SLOT_SPECIAL, r->at, width);
    } else if (r->kind == RAW_ADDRESS && source && width >= 4) {
        ptx_symbol s = r->symbol;
        s.value += (uint64_t)r->offset;
        place_variable(p, &s, o, width);
    } else {
        static const char *const wanted[] = {"a register of 16 bits", "a register of 32 bits",
                                             "a register of 64 bits", "a register of 128 bits"};
        refuse(p, r, wanted[width <= 2 ? 0 : width <= 4 ? 1 : width <= 8 ? 2 : 3]);
    }
}

static void place_predicate(ptx_parser *p, const ptx_raw *r, ptx_operand *o, bool source) {
    *o = (ptx_operand){.place = PRED, .at = r->at, .negated = r->negated};
    if (r->kind == RAW_SINK && !source)
        o->place = SINK;
    else if (r->kind == RAW_NUMBER && source)
        o->at = r->token.value != 0, o->negated = false;
    else if (r->kind != RAW_PRED || (r->negated && !source))
        refuse(p, r, "a predicate");
}

static void place_elements(ptx_parser *p, const ptx_raw *r, ptx_operand *o, char letter,
                           uint32_t width, ptx_type type) {
    ptx_operand *to = ptx_keep(p->m, (r->count + 1u) * sizeof *to);
    if (!to) {
        ptx_fail(p, "out of memory");
        return;
    }
    *o = (ptx_operand){.place = VECTOR, .count = r->count};
    o->elements = to;
    for (uint32_t k = 0; k < r->count && !p->failed; k++)
        place_register(p, &p->raw[r->first + k], &to[k], letter, width, type, false);
}

static void place_vector(ptx_parser *p, const ptx_raw *r, ptx_operand *o, char letter,
                         uint32_t width, ptx_type type) {
    if (r->kind == RAW_VECTOR)
        place_elements(p, r, o, letter, width, type);
    else
        place_register(p, r, o, letter, width, type, false);
}

static void place_parts(ptx_parser *p, const ptx_raw *r, ptx_operand *o, char letter,
                        uint32_t width, ptx_type type) {
    if (r->kind != RAW_VECTOR)
        place_register(p, r, o, letter, width, type, true);
    else if (r->count < 2 || r->count > 4 || width < r->count || width % r->count)
        refuse(p, r, "a vector that is as wide as the opcode says");
    else
        place_elements(p, r, o, letter, width / r->count, T_b32);
}

/* Makes the operand an address [base + offset]. Coordinates after a comma become the operand's
 * elements. */
static void place_address(ptx_parser *p, const ptx_raw *r, ptx_operand *o) {
    if (r->kind != RAW_BRACKET || r->count == 0) {
        refuse(p, r, "an address in brackets");
        return;
    }
    const ptx_raw *base = &p->raw[r->first];
    *o = (ptx_operand){.place = ADDRESS, .value = base->offset};
    if (base->kind == RAW_REG && (base->width == 4 || base->width == 8)) {
        o->at = base->at, o->width = base->width;
    } else if (base->kind == RAW_ADDRESS) {
        ptx_operand at = {0};
        place_variable(p, &base->symbol, &at, base->symbol.space == SHARED ? 4 : 8);
        o->at = at.at, o->width = at.width, o->space = base->symbol.space;
    } else if (base->kind == RAW_NUMBER) {
        o->at = ptx_slot_at(p, SLOT_CONSTANT, base->token.value, 8), o->width = 8;
    } else {
        refuse(p, base, "an address");
    }
    if (r->count < 2 || p->failed) return;
    const ptx_raw *more = &p->raw[r->first + 1];
    ptx_operand list = {0};
    if (r->count > 2 || more->kind != RAW_VECTOR) {
        refuse(p, more, "a list of coordinates");
        return;
    }
    place_elements(p, more, &list, 'R', 4, T_b32);
    o->elements = list.elements, o->count = list.count;
}

static void place_label(ptx_parser *p, const ptx_raw *r, ptx_operand *o) {
    *o = (ptx_operand){.place = LABEL, .value = -1};
    if (r->kind != RAW_NAME) {
        refuse(p, r, "a label");
    } else if (r->symbol.kind == SYM_TARGETS) {
        *o = (ptx_operand){.place = VECTOR, .count = (uint16_t)r->symbol.count};
        o->elements = r->symbol.targets;
    } else {
        /* The label's address is not known yet. The parser writes it to this operand when the
         * label's scope ends. */
        o->refer = true;
    }
}

static void place_function(ptx_parser *p, const ptx_raw *r, ptx_operand *o) {
    const int number = ptx_find_function(p, r->token.text, r->token.length);
    p->f->calls = true;
    *o = (ptx_operand){.place = FUNCTION, .value = number};
    if (r->kind != RAW_NAME)
        refuse(p, r, "a function's name");
    else if (number < 0)
        ptx_fail(p, "function %.*s is not declared", (int)r->token.length, r->token.text);
}

/* Makes *o the argument list of a call. Each element of the list must be the address of a .param
 * variable. */
static void place_list(ptx_parser *p, const ptx_raw *r, ptx_operand *o) {
    if (r->kind != RAW_LIST) {
        refuse(p, r, "a list in parentheses");
        return;
    }
    ptx_operand *to = ptx_keep(p->m, (r->count + 1u) * sizeof *to);
    if (!to) {
        ptx_fail(p, "out of memory");
        return;
    }
    *o = (ptx_operand){.place = LIST, .count = r->count};
    o->elements = to;
    for (uint32_t k = 0; k < r->count && !p->failed; k++) {
        const ptx_raw *a = &p->raw[r->first + k];
        if (a->kind != RAW_ADDRESS || a->symbol.space != LOCAL) refuse(p, a, "a .param variable");
        to[k] = (ptx_operand){.place = ADDRESS, .value = (int64_t)a->symbol.value + a->offset};
    }
}

static ptx_type type_for(const ptx_opcode *o, char letter) {
    switch (letter | 32) {
    case 't':
    case 'v':
    case 'y':
    case 'z':
        return (ptx_type)o->types[0];
    case 'c':
        return (ptx_type)o->types[letter == 'C'];
    case 's':
        return (ptx_type)o->types[1];
    case 'h':
    case 'u':
        return T_b16;
    case 'l':
        return T_b64;
    case 'q':
        return T_b128;
    default:
        return T_b32;
    }
}

static uint32_t width_of(ptx_type type) {
    const uint32_t bits = ptx_types[type].bits;
    return bits <= 8 ? 1 : bits / 8;
}

static void place(ptx_parser *p, const ptx_opcode *op, const ptx_raw *r, ptx_operand *o,
                  char letter) {
    const ptx_type type = type_for(op, letter);
    const uint32_t width = width_of(type);
    switch (letter) {
    case 'p':
    case 'P':
        place_predicate(p, r, o, letter == 'P');
        break;
    case 'c':
    case 'C':
        place_register(p, r, o, letter, width, type, false);
        break;
    case 'y':
    case 'Y':
        place_parts(p, r, o, letter, width, type);
        break;
    case 'v':
    case 'V':
        if (op->vector && (r->kind != RAW_VECTOR || r->count != op->vector))
            refuse(p, r, "a vector as long as the opcode says");
        else
            place_vector(p, r, o, letter, width, type);
        break;
    case 'w':
    case 'W':
    case 'K':
    case 'U':
    case 'z':
    case 'Z':
        place_vector(p, r, o, letter, width, type);
        break;
    case 'D':
        if (r->kind == RAW_VECTOR)
            place_elements(p, r, o, 'R', 4, T_b32);
        else
            place_register(p, r, o, 'L', 8, T_b64, true);
        break;
    case 'G':
        if (r->kind == RAW_BRACKET)
            place_address(p, r, o);
        else
            place_register(p, r, o, 'L', 8, T_b64, true);
        break;
    case 'm':
        place_address(p, r, o);
        break;
    case 'x':
        place_label(p, r, o);
        break;
    case 'f':
        place_function(p, r, o);
        break;
    case 'o':
    case '(':
        place_list(p, r, o);
        break;
    case 'i':
        if (r->kind != RAW_NUMBER) refuse(p, r, "a number");
        *o = (ptx_operand){.place = COUNT, .value = (int64_t)r->token.value + r->offset};
        break;
    default:
        place_register(p, r, o, letter, width, type, true);
    }
}

static char letter_of(ptx_type type, bool source) {
    const uint32_t width = width_of(type);
    const uint32_t size = width <= 2 ? 0 : width == 4 ? 1 : width == 8 ? 2 : 3;
    if (ptx_types[type].kind == PREDICATE) return source ? 'P' : 'p';
    return (source ? "HRLQ" : "hrlq")[size];
}

/* Assigns the operands in the text to the result and the sources of the table entry. A number in
 * the text is converted to bits by the type of the source. */
static void bind_types(ptx_parser *p, const ptx_row *row, ptx_operand *to, uint32_t count) {
    const uint8_t types[] = {row->d, row->a, row->b, row->c};
    uint32_t wanted = 1;
    while (wanted < 4 && types[wanted])
        wanted++;
    if (count != wanted) {
        ptx_fail(p, "%u operands instead of %u", count, wanted);
        return;
    }
    for (uint32_t k = 0; k < count && !p->failed; k++) {
        const char letter = letter_of((ptx_type)types[k], k > 0);
        if (letter == 'P' || letter == 'p')
            place_predicate(p, &p->raw[k], &to[k], k > 0);
        else
            place_register(p, &p->raw[k], &to[k], letter, width_of((ptx_type)types[k]),
                           (ptx_type)types[k], true);
    }
}

static void bind_letters(ptx_parser *p, const ptx_opcode *op, ptx_operand *to, uint32_t count) {
    uint32_t from = 0, k = 0;
    for (const char *s = op->row->operands; *s && !p->failed; s++, k++) {
        const bool joined = *s == '|';
        s += joined;
        const bool optional = s[1] == '?';
        const bool missing = joined      ? from >= count || !p->raw[from].joined
                             : *s == 'o' ? from >= count || p->raw[from].kind != RAW_LIST
                             : *s == 'K'
                                 ? from >= count || p->raw[from].kind != RAW_VECTOR
                                 : *s == 'N' && (from >= count || p->raw[from].kind == RAW_PRED);
        if (missing) {
            to[k] = (ptx_operand){0};
        } else if (from >= count) {
            if (!optional) ptx_fail(p, "an operand is missing");
            to[k] = (ptx_operand){0};
        } else {
            place(p, op, &p->raw[from++], &to[k], *s);
        }
        s += optional;
    }
    if (from < count) ptx_fail(p, "there are %u operands too many", count - from);
}

static uint32_t operands_of(const ptx_row *row, uint32_t count) {
    uint32_t n = 0;
    for (const char *s = row->operands; s && *s; s++)
        n += *s != '|' && *s != '?';
    return row->operands ? n : count;
}

void ptx_bind(ptx_parser *p, ptx_inst *i, uint32_t count) {
    const ptx_opcode *op = i->opcode;
    ptx_operand to[MAX_OPERANDS] = {{0}};
    if (op->row->operands)
        bind_letters(p, op, to, count);
    else
        bind_types(p, op->row, to, count);
    i->count = (uint8_t)operands_of(op->row, count);
    i->op = p->failed ? NULL : ptx_keep(p->m, (i->count + 1u) * sizeof *i->op);
    if (!i->op) {
        ptx_fail(p, "out of memory");
        return;
    }
    memcpy(i->op, to, i->count * sizeof *to);
    for (uint32_t k = 0; k < i->count; k++)
        if (i->op[k].refer) ptx_refer(p, &p->raw[k].token, &i->op[k].value);
}
