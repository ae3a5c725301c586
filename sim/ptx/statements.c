/* Reads the bodies of PTX functions, i.e. labels, scopes in braces, instructions and source
 * positions. */
#include "fidelity.h"
#include "parse.h"
#include <stdlib.h>
#include <string.h>

static ptx_opcode *find_opcode(ptx_parser *p, const ptx_token *t) {
    ptx_module *m = p->m;
    for (uint32_t k = m->opcode_count; k-- > 0;)
        if (strncmp(m->opcodes[k]->text, t->text, t->length) == 0 &&
            !m->opcodes[k]->text[t->length])
            return m->opcodes[k];
    if (!ptx_grow(p, (void **)&m->opcodes, m->opcode_count, &p->opcode_room, sizeof(void *)))
        return NULL;
    ptx_opcode *o = ptx_keep(m, sizeof *o);
    char *text = ptx_keep(m, t->length + 1);
    if (!o || !text) {
        ptx_fail(p, "out of memory");
        return NULL;
    }
    o->text = text;
    memcpy(o->text, t->text, t->length);
    ptx_opcode_find(o);
    o->record = ptx_record_of(o->text);
    m->opcodes[m->opcode_count++] = o;
    return o;
}

/* Returns an opcode with the same text as `o` whose table entry has `count` sources. */
static const ptx_opcode *with_sources(ptx_parser *p, const ptx_opcode *o, uint32_t count) {
    if (ptx_opcode_fits(o, count)) return o;
    ptx_opcode *other = ptx_keep(p->m, sizeof *other);
    if (!other) return o;
    *other = *o;
    ptx_opcode_find_sources(other, count);
    return other;
}

static ptx_inst *new_inst(ptx_parser *p) {
    ptx_module *m = p->m;
    if (!ptx_grow(p, (void **)&m->code, m->code_count, &m->code_room, sizeof *m->code)) return NULL;
    ptx_inst *i = &m->code[m->code_count++];
    *i = (ptx_inst){.guard = -1, .file = p->file, .source_line = p->source_line};
    i->line = p->x.token.line, i->text = (uint32_t)(p->x.token.text - m->text);
    i->function = p->function;
    return i;
}

static void read_guard(ptx_parser *p, ptx_inst *i) {
    if (!ptx_accept(p, '@')) return;
    i->guard_not = ptx_accept(p, '!');
    const ptx_symbol *s = ptx_lookup(p, p->x.token.text, p->x.token.length);
    if (p->x.token.kind != WORD || !s || !(s->kind == SYM_PRED || s->kind == SYM_RANGE) ||
        s->width) {
        ptx_fail(p, "%.*s is no predicate", (int)p->x.token.length, p->x.token.text);
        return;
    }
    uint32_t number = 0;
    for (size_t k = s->length; s->kind == SYM_RANGE && k < p->x.token.length; k++)
        number = 10 * number + (uint32_t)(p->x.token.text[k] - '0');
    i->guard = (int32_t)(s->at + number);
    ptx_lex_next(&p->x);
}

/* Skips the operands of an unknown instruction. Such an instruction causes an error only if a
 * kernel executes it. */
static void skip_operands(ptx_parser *p) {
    while (!ptx_lex_is(&p->x, ';') && p->x.token.kind != END)
        ptx_lex_next(&p->x);
}

static void unknown(ptx_warp *w, const ptx_inst *i) {
    ptx_stop(w, i, "this instruction is not executed: no row of the tables has %s",
             i->opcode->text);
}

static void read_instruction(ptx_parser *p) {
    ptx_inst *i = new_inst(p);
    if (!i) return;
    read_guard(p, i);
    if (p->x.token.kind != WORD) ptx_fail(p, "an instruction was expected");
    if (p->failed) return;
    i->opcode = find_opcode(p, &p->x.token);
    ptx_lex_next(&p->x);
    if (!i->opcode) return;
    if (i->opcode->row) {
        const uint32_t count = ptx_read_operands(p);
        i->opcode = with_sources(p, i->opcode, count);
        i->execute = i->opcode->row->execute;
        if (!p->failed) ptx_bind(p, i, count);
    } else {
        skip_operands(p);
        i->execute = unknown;
    }
    i->length = (uint32_t)(p->x.token.text - p->m->text) - i->text;
    ptx_expect(p, ';');
}

/* Reads ".loc file line column". Skips the rest of the directive, which says where the code was
 * inlined. */
static void read_loc(ptx_parser *p) {
    const uint32_t line = p->x.token.line;
    ptx_lex_next(&p->x);
    if (p->x.token.kind != NUMBER) return;
    p->file = (uint32_t)p->x.token.value;
    ptx_lex_next(&p->x);
    if (p->x.token.kind != NUMBER) return;
    p->source_line = (uint32_t)p->x.token.value;
    while (p->x.token.line == line && p->x.token.kind != END)
        ptx_lex_next(&p->x);
}

static void skip_to_semicolon(ptx_parser *p) {
    skip_operands(p);
    ptx_expect(p, ';');
}

/* Reads "name: .branchtargets label, label;". */
static void read_targets(ptx_parser *p, const ptx_token *name) {
    enum { MOST = 256 };
    ptx_operand *to = ptx_keep(p->m, MOST * sizeof *to);
    uint32_t count = 0;
    ptx_lex_next(&p->x);
    while (to && !p->failed && p->x.token.kind == WORD && count < MOST) {
        to[count] = (ptx_operand){.place = LABEL, .value = -1};
        ptx_refer(p, &p->x.token, &to[count++].value);
        ptx_lex_next(&p->x);
        if (!ptx_accept(p, ',')) break;
    }
    ptx_symbol *s = p->failed || !to ? NULL : ptx_define(p, name, SYM_TARGETS);
    if (s) s->targets = to, s->count = count;
    ptx_expect(p, ';');
}

static void read_label(ptx_parser *p, const ptx_token *name) {
    if (ptx_word_is(p, ".branchtargets")) {
        read_targets(p, name);
        return;
    }
    if (ptx_word_is(p, ".callprototype") || ptx_word_is(p, ".calltargets")) {
        skip_to_semicolon(p);
        return;
    }
    ptx_symbol *s = ptx_define(p, name, SYM_LABEL);
    if (s) s->value = p->m->code_count;
}

static void read_statement(ptx_parser *p) {
    const ptx_token t = p->x.token;
    if (ptx_accept(p, '{')) {
        ptx_open_scope(p);
    } else if (ptx_accept(p, ';')) {
        return;
    } else if (t.kind == WORD && t.text[0] == '.') {
        if (ptx_token_is(&t, ".loc"))
            read_loc(p);
        else if (!ptx_read_variable(p, false))
            skip_to_semicolon(p);
    } else {
        ptx_lexer ahead = p->x;
        ptx_lex_next(&ahead);
        if (t.kind == WORD && ptx_lex_is(&ahead, ':')) {
            p->x = ahead;
            ptx_lex_next(&p->x);
            read_label(p, &t);
        } else {
            read_instruction(p);
        }
    }
}

void ptx_read_body(ptx_parser *p) {
    const uint32_t depth = p->depth;
    ptx_expect(p, '{');
    ptx_open_scope(p);
    while (!p->failed && p->x.token.kind != END) {
        if (!ptx_lex_is(&p->x, '}')) {
            read_statement(p);
            continue;
        }
        ptx_lex_next(&p->x);
        ptx_close_scope(p);
        if (p->depth == depth) return;
    }
    ptx_fail(p, "a function's body does not end");
}
