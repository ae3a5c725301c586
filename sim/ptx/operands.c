/* Reads the operands of instructions from PTX text, i.e. registers, numbers, addresses, vectors
 * and lists. */
#include "parse.h"
#include <string.h>

static const struct {
    const char *name;
    uint8_t bytes;
} specials[] = {
#define SPECIAL(name, bytes, value) {name, bytes},
#include "special.def"
#undef SPECIAL
};

int ptx_special_number(const char *name, size_t length) {
    for (size_t k = 0; k < sizeof specials / sizeof *specials; k++)
        if (strlen(specials[k].name) == length && memcmp(specials[k].name, name, length) == 0)
            return (int)k;
    return -1;
}

static ptx_raw *new_raw(ptx_parser *p) {
    static ptx_raw spare;
    if (p->raw_count >= MOST_RAW) {
        ptx_fail(p, "an instruction has more than %d operands", MOST_RAW);
        return &spare;
    }
    ptx_raw *r = &p->raw[p->raw_count++];
    *r = (ptx_raw){.token = p->x.token};
    return r;
}

static void take_symbol(ptx_raw *r, const ptx_symbol *s, const ptx_token *token) {
    r->width = s->width;
    if (s->kind == SYM_RANGE) {
        uint32_t number = 0;
        for (size_t k = s->length; k < token->length; k++)
            number = 10 * number + (uint32_t)(token->text[k] - '0');
        r->kind = s->width ? RAW_REG : RAW_PRED;
        r->at = s->at + number * (s->width ? s->width <= 4 ? 128u : s->width * 32u : 1u);
    } else if (s->kind == SYM_REG || s->kind == SYM_PRED) {
        r->kind = s->kind == SYM_REG ? RAW_REG : RAW_PRED;
        r->at = s->at;
    } else {
        r->kind = s->kind == SYM_VARIABLE ? RAW_ADDRESS : RAW_NAME;
        r->symbol = *s;
    }
}

static void read_word(ptx_parser *p, ptx_raw *r) {
    const ptx_token *t = &p->x.token;
    const ptx_symbol *s = ptx_lookup(p, t->text, t->length);
    const int special = s ? -1 : ptx_special_number(t->text, t->length);
    if (s)
        take_symbol(r, s, t);
    else if (special >= 0)
        r->kind = RAW_SPECIAL, r->at = (uint32_t)special, r->width = specials[special].bytes;
    else if (t->length == 1 && t->text[0] == '_')
        r->kind = RAW_SINK;
    else
        r->kind = RAW_NAME;
    ptx_lex_next(&p->x);
}

static void read_operand(ptx_parser *p, ptx_raw *r, int depth);

/* Reads a list of operands up to the character `close`. The elements of the list become children of
 * r. They must be adjacent in p->raw, although reading an element that is itself a list appends
 * that list's elements to p->raw. The function therefore collects its elements in `items` and
 * appends them at the end. */
static void read_list(ptx_parser *p, ptx_raw *r, char close, int kind, int depth) {
    ptx_raw items[272];
    uint32_t count = 0;
    ptx_lex_next(&p->x);
    while (!p->failed && !ptx_lex_is(&p->x, close)) {
        if (count == 272) {
            ptx_fail(p, "a vector has more than 272 elements");
            return;
        }
        items[count] = (ptx_raw){.token = p->x.token};
        read_operand(p, &items[count++], depth + 1);
        if (!ptx_accept(p, ',')) break;
    }
    ptx_expect(p, close);
    r->kind = (uint8_t)kind, r->first = (uint16_t)p->raw_count, r->count = (uint16_t)count;
    for (uint32_t k = 0; k < count && !p->failed; k++)
        *new_raw(p) = items[k];
}

static void add_offset(ptx_parser *p, ptx_raw *r) {
    while (!p->failed && (ptx_lex_is(&p->x, '+') || ptx_lex_is(&p->x, '-')))
        r->offset = (int64_t)((uint64_t)r->offset + (uint64_t)ptx_integer(p));
}

/* Reads an address "[base+offset]" or "[base, {coordinates}]". More lists may follow inside the
 * brackets. */
static void read_bracket(ptx_parser *p, ptx_raw *r, int depth) {
    read_list(p, r, ']', RAW_BRACKET, depth);
}

static void read_number(ptx_parser *p, ptx_raw *r) {
    r->minus = ptx_accept(p, '-');
    if (p->x.token.kind == WORD && !r->minus) return;
    if (p->x.token.kind != NUMBER) {
        ptx_fail(p, "this is no operand: %.*s", (int)p->x.token.length, p->x.token.text);
        return;
    }
    r->kind = RAW_NUMBER, r->token = p->x.token;
    if (r->minus) r->token.value = 0 - r->token.value, r->token.number = -r->token.number;
    ptx_lex_next(&p->x);
}

static void read_operand(ptx_parser *p, ptx_raw *r, int depth) {
    if (depth > 4) {
        ptx_fail(p, "operands are nested more than 4 deep");
        return;
    }
    r->negated = ptx_accept(p, '!');
    r->token = p->x.token;
    if (ptx_lex_is(&p->x, '{'))
        read_list(p, r, '}', RAW_VECTOR, depth);
    else if (ptx_lex_is(&p->x, '('))
        read_list(p, r, ')', RAW_LIST, depth);
    else if (ptx_lex_is(&p->x, '['))
        read_bracket(p, r, depth);
    else if (p->x.token.kind == WORD)
        read_word(p, r), add_offset(p, r);
    else
        read_number(p, r), add_offset(p, r);
}

uint32_t ptx_read_operands(ptx_parser *p) {
    ptx_raw top[MAX_OPERANDS];
    uint32_t count = 0;
    bool joined = false;
    p->raw_count = MAX_OPERANDS;
    while (!p->failed && !ptx_lex_is(&p->x, ';') && p->x.token.kind != END) {
        if (count == MAX_OPERANDS) {
            ptx_fail(p, "an instruction has more than %d operands", MAX_OPERANDS);
            break;
        }
        top[count] = (ptx_raw){.token = p->x.token};
        read_operand(p, &top[count], 0);
        top[count++].joined = joined;
        joined = ptx_accept(p, '|');
        if (!joined && !ptx_accept(p, ',') && !ptx_lex_is(&p->x, '(')) break;
    }
    memcpy(p->raw, top, count * sizeof *top);
    return count;
}
