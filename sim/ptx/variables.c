/* Reads declarations of registers, parameters and variables from PTX text. */
#include "parse.h"
#include <stdlib.h>
#include <string.h>

static uint32_t round_up(uint32_t n, uint32_t to) {
    return (n + to - 1) / to * to;
}

typedef struct {
    ptx_type type;
    uint32_t align, vector;
    bool dynamic; /* `dynamic` is true if the variable is declared with [] and without a number. */
    uint64_t count;
} shape;

static uint32_t bytes_of(const shape *s) {
    const uint32_t bits = ptx_types[s->type].bits;
    return (bits < 8 ? 1 : bits / 8) * (s->vector ? s->vector : 1);
}

/* Reads the properties of a variable before its name, i.e. .align, .v2, .ptr and a type, in any
 * order. */
static void read_shape(ptx_parser *p, shape *s) {
    *s = (shape){.count = 1};
    while (!p->failed && p->x.token.kind == WORD && p->x.token.text[0] == '.') {
        const ptx_token t = p->x.token;
        const ptx_type type = ptx_type_of(t.text + 1, t.length - 1);
        ptx_lex_next(&p->x);
        if (type)
            s->type = type;
        else if (ptx_token_is(&t, ".align"))
            s->align = (uint32_t)ptx_integer(p);
        else if (ptx_token_is(&t, ".v2"))
            s->vector = 2;
        else if (ptx_token_is(&t, ".v4"))
            s->vector = 4;
    }
    if (!s->type) ptx_fail(p, "a declaration has no type");
    if (s->align > 1u << 16 || (s->align & (s->align - 1)))
        ptx_fail(p, ".align: value is %u; must be a power of two up to 65536", s->align);
    if (s->align == 0 && !p->failed) s->align = bytes_of(s);
}

static void read_extents(ptx_parser *p, shape *s) {
    while (!p->failed && ptx_accept(p, '[')) {
        s->dynamic = ptx_lex_is(&p->x, ']');
        const int64_t n = s->dynamic ? 1 : ptx_integer(p);
        if (n < 0 || n > 1ll << 32 || s->count > 1ull << 32)
            ptx_fail(p, "an array's extent is out of range");
        else
            s->count *= (uint64_t)n;
        ptx_expect(p, ']');
    }
    if (s->count * bytes_of(s) > 1ull << 32) ptx_fail(p, "an array is larger than 4 GiB");
}

static bool read_name(ptx_parser *p, ptx_token *name) {
    *name = p->x.token;
    if (name->kind != WORD) {
        ptx_fail(p, "a name was expected, not %.*s", (int)name->length, name->text);
        return false;
    }
    ptx_lex_next(&p->x);
    return true;
}

static void read_registers(ptx_parser *p) {
    shape s;
    ptx_lex_next(&p->x);
    read_shape(p, &s);
    if (s.vector) ptx_fail(p, "vectors of registers are not executed");
    while (!p->failed) {
        ptx_token name;
        uint32_t count = 1;
        const bool predicate = s.type == T_pred;
        if (!read_name(p, &name)) return;
        const bool range = ptx_accept(p, '<');
        if (range) {
            const int64_t n = ptx_integer(p);
            if (n < 0 || n > 1 << 20) ptx_fail(p, "%lld registers are too many", (long long)n);
            count = (uint32_t)n;
            ptx_expect(p, '>');
        }
        const uint32_t width = predicate ? 0 : bytes_of(&s);
        const uint32_t each = width <= 4 ? 128 : width * 32;
        ptx_symbol *symbol = p->failed ? NULL
                                       : ptx_define(p, &name,
                                                    range       ? SYM_RANGE
                                                    : predicate ? SYM_PRED
                                                                : SYM_REG);
        if (!symbol) return;
        symbol->width = (uint8_t)width, symbol->count = count;
        symbol->at = predicate ? p->f->pred_base + p->f->preds : p->f->base + p->f->bytes;
        if ((uint64_t)p->f->bytes + (uint64_t)count * each > 1u << 26 || p->f->preds > 1u << 20)
            ptx_fail(p, "a function has too many registers");
        else if (predicate)
            p->f->preds += count;
        else
            p->f->bytes += count * each;
        if (!ptx_accept(p, ',')) break;
    }
    ptx_expect(p, ';');
}

typedef struct {
    uint8_t *at;
    uint64_t left;
    uint32_t each;
    ptx_type type;
} filler;

static void put(ptx_parser *p, filler *f, uint64_t value) {
    if (f->left < f->each) {
        ptx_fail(p, "a variable has more values than room");
        return;
    }
    memcpy(f->at, &value, f->each > 8 ? 8 : f->each);
    f->at += f->each, f->left -= f->each;
}

static uint64_t value_of(ptx_parser *p) {
    const ptx_token t = p->x.token;
    if (t.kind != WORD) return (uint64_t)ptx_integer(p);
    ptx_lex_next(&p->x);
    const bool generic = ptx_token_is(&t, "generic") && ptx_accept(p, '(');
    const ptx_token name = generic ? p->x.token : t;
    if (generic) ptx_lex_next(&p->x), ptx_expect(p, ')');
    const ptx_symbol *s = ptx_lookup(p, name.text, name.length);
    if (!s || s->kind != SYM_VARIABLE || s->space == SHARED || s->space == LOCAL) {
        ptx_fail(p, "%.*s has no address here", (int)name.length, name.text);
        return 0;
    }
    uint64_t value = s->value;
    while (!p->failed && (ptx_lex_is(&p->x, '+') || ptx_lex_is(&p->x, '-')))
        value += (uint64_t)ptx_integer(p);
    return value;
}

static void read_value(ptx_parser *p, filler *f) {
    const ptx_token t = p->x.token;
    if (t.kind == NUMBER && t.real) {
        const float narrow = (float)t.number;
        uint64_t wide = t.value;
        uint32_t bits;
        if (t.bits == 0 && f->type == T_f64) memcpy(&wide, &t.number, 8);
        if (t.bits == 0 && f->type != T_f64) memcpy(&bits, &narrow, 4), wide = bits;
        ptx_lex_next(&p->x);
        put(p, f, wide);
        return;
    }
    put(p, f, value_of(p));
}

static void read_values(ptx_parser *p, filler *f, int depth) {
    if (!ptx_lex_is(&p->x, '{')) {
        read_value(p, f);
        return;
    }
    if (depth > 4) ptx_fail(p, "values are nested more than 4 deep");
    ptx_lex_next(&p->x);
    while (!p->failed && !ptx_lex_is(&p->x, '}')) {
        read_values(p, f, depth + 1);
        if (!ptx_accept(p, ',')) break;
    }
    ptx_expect(p, '}');
}

static void place_in_memory(ptx_parser *p, const shape *s, ptx_symbol *symbol, uint64_t bytes) {
    if (!ptx_grow(p, (void **)&p->m->variables, p->m->variable_count, &p->variable_room,
                  sizeof *p->m->variables))
        return;
    uint8_t *at = sim_memory_alloc(bytes);
    char *name = ptx_keep(p->m, symbol->length + 1);
    if (!at || !name) {
        ptx_fail(p, "out of memory: %llu bytes", (unsigned long long)bytes);
        return;
    }
    memset(at, 0, bytes);
    memcpy(name, symbol->name, symbol->length);
    symbol->value = (uint64_t)(uintptr_t)at;
    p->m->variables[p->m->variable_count++] =
        (ptx_variable){name, symbol->space, symbol->value, bytes};
    filler f = {at, bytes, bytes_of(s) / (s->vector ? s->vector : 1), s->type};
    if (ptx_accept(p, '=')) read_values(p, &f, 0);
}

static void place_shared(ptx_parser *p, const shape *s, ptx_symbol *symbol, uint64_t bytes) {
    uint32_t *end = p->f && p->f->entry ? &p->f->shared : &p->m->shared_bytes;
    symbol->dynamic = s->dynamic;
    symbol->outer = !s->dynamic && !(p->f && p->f->entry);
    if (!p->f && p->shared_most > *end) *end = p->shared_most;
    const uint32_t at = round_up(*end, s->align);
    if (at + bytes > 1u << 20) {
        ptx_fail(p, "more than 1 MiB of shared memory");
        return;
    }
    symbol->value = s->dynamic ? s->align : at;
    if (!s->dynamic) *end = at + (uint32_t)bytes;
    if (*end > p->shared_most) p->shared_most = *end;
}

static void place_local(ptx_parser *p, const shape *s, ptx_symbol *symbol, uint64_t bytes) {
    if (!p->f) {
        ptx_fail(p, "a local variable lies outside functions");
        return;
    }
    const uint32_t at = round_up(p->f->local_base + p->f->local, s->align < 16 ? s->align : 16);
    if (at + bytes > 1u << 24) {
        ptx_fail(p, "more than 16 MiB of local memory");
        return;
    }
    symbol->value = at;
    p->f->local = at + (uint32_t)bytes - p->f->local_base;
}

static void place(ptx_parser *p, const shape *s, ptx_symbol *symbol) {
    const uint64_t bytes = s->count * bytes_of(s);
    if (symbol->space == GLOBAL || symbol->space == CONST)
        place_in_memory(p, s, symbol, bytes);
    else if (symbol->space == SHARED)
        place_shared(p, s, symbol, bytes);
    else
        place_local(p, s, symbol, bytes);
}

static int space_of(const ptx_token *t) {
    static const struct {
        const char *name;
        int space;
    } spaces[] = {{".global", GLOBAL},
                  {".const", CONST},
                  {".shared", SHARED},
                  {".local", LOCAL},
                  {".param", LOCAL}};
    for (size_t k = 0; k < sizeof spaces / sizeof *spaces; k++)
        if (ptx_token_is(t, spaces[k].name)) return spaces[k].space;
    return -1;
}

bool ptx_read_variable(ptx_parser *p, bool is_extern) {
    if (ptx_word_is(p, ".reg")) {
        if (p->f)
            read_registers(p);
        else
            ptx_fail(p, "registers outside functions are not executed");
        return true;
    }
    const int space = space_of(&p->x.token);
    if (space < 0) return false;
    shape s;
    ptx_token name;
    ptx_lex_next(&p->x);
    read_shape(p, &s);
    while (!p->failed && read_name(p, &name)) {
        ptx_symbol *symbol = ptx_define(p, &name, SYM_VARIABLE);
        if (!symbol) return true;
        const uint32_t number = p->symbol_count - 1;
        s.count = 1, s.dynamic = false;
        read_extents(p, &s);
        if (s.dynamic && (space != SHARED || !is_extern))
            ptx_fail(p, "%.*s: only an .extern .shared array has no size", (int)name.length,
                     name.text);
        symbol = &p->symbols[number];
        symbol->space = (uint8_t)space;
        if (!p->failed) place(p, &s, symbol);
        if (!ptx_accept(p, ',')) break;
    }
    ptx_expect(p, ';');
    return true;
}

/* Reads a parameter of a kernel or function. Each launch fills the memory of a kernel's parameters.
 * The parameters of a function are in the function's local memory. */
static void read_parameter(ptx_parser *p, ptx_function *f) {
    shape s;
    ptx_token name;
    if (!ptx_word_is(p, ".param")) ptx_fail(p, "a parameter was expected");
    ptx_lex_next(&p->x);
    read_shape(p, &s);
    if (p->failed || !read_name(p, &name)) return;
    read_extents(p, &s);
    if (p->failed) return;
    const uint32_t bytes = (uint32_t)(s.count * bytes_of(&s));
    ptx_symbol *symbol = ptx_define(p, &name, SYM_VARIABLE);
    if (!symbol) return;
    symbol->space = f->entry ? PARAM : LOCAL, symbol->formal = f->entry;
    const uint32_t at = round_up(f->entry ? f->param_bytes : f->local_base + f->local, s.align);
    symbol->value = at;
    ptx_parameter *more = realloc(f->parameters, (f->parameter_count + 1) * sizeof *more);
    if (!more || bytes > 1u << 16) {
        ptx_fail(p, "a parameter is too large");
        if (more) f->parameters = more;
        return;
    }
    f->parameters = more;
    f->parameters[f->parameter_count++] = (ptx_parameter){NULL, at, bytes, s.align};
    if (f->entry)
        f->param_bytes = at + bytes;
    else
        f->local = at + bytes - f->local_base;
}

void ptx_read_parameters(ptx_parser *p, ptx_function *f, bool results) {
    if (!ptx_accept(p, '(')) return;
    while (!p->failed && !ptx_lex_is(&p->x, ')')) {
        read_parameter(p, f);
        if (!ptx_accept(p, ',')) break;
    }
    if (results) f->result_count = f->parameter_count;
    ptx_expect(p, ')');
}
