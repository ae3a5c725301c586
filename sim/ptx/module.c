/* Loads PTX modules: parses their directives and functions. A loaded module owns the memory of what
 * was parsed. */
#include "parse.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ptx_arena {
    struct ptx_arena *next;
    size_t used, size;
};
enum { ARENA_BYTES = 1 << 18 };

void *ptx_keep(ptx_module *m, size_t bytes) {
    bytes = (bytes + 15) & ~(size_t)15;
    struct ptx_arena *a = m->arena;
    if (!a || a->size - a->used < bytes) {
        const size_t size = bytes > ARENA_BYTES ? bytes : ARENA_BYTES;
        a = calloc(1, sizeof *a + 16 + size);
        if (!a) return NULL;
        a->next = m->arena, a->size = size;
        m->arena = a;
    }
    void *at = (char *)a + ((sizeof *a + 15) & ~(size_t)15) + a->used;
    a->used += bytes;
    return at;
}

void ptx_fail(ptx_parser *p, const char *format, ...) {
    char what[ERROR_BYTES / 2];
    va_list list;
    if (p->failed) return;
    p->failed = true;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    snprintf(p->error, ERROR_BYTES, "PTX line %u: %s", p->x.token.line, what);
}

bool ptx_grow(ptx_parser *p, void **array, uint32_t count, uint32_t *room, size_t each) {
    if (count < *room) return !p->failed;
    const uint32_t more = *room ? 2 * *room : 64;
    void *grown = realloc(*array, more * each);
    if (!grown) {
        ptx_fail(p, "out of memory");
        return false;
    }
    *array = grown, *room = more;
    return !p->failed;
}

bool ptx_accept(ptx_parser *p, char punct) {
    if (!ptx_lex_is(&p->x, punct)) return false;
    ptx_lex_next(&p->x);
    return true;
}

void ptx_expect(ptx_parser *p, char punct) {
    const ptx_token t = p->x.token;
    if (p->failed || ptx_accept(p, punct)) return;
    ptx_fail(p, "'%c' was expected, not \"%.*s\"", punct, t.length > 40 ? 40 : (int)t.length,
             t.text);
}

bool ptx_token_is(const ptx_token *t, const char *word) {
    return t->kind == WORD && strlen(word) == t->length && memcmp(t->text, word, t->length) == 0;
}

bool ptx_word_is(const ptx_parser *p, const char *word) {
    return ptx_token_is(&p->x.token, word);
}

int64_t ptx_integer(ptx_parser *p) {
    uint64_t sum = 0;
    bool minus = false, any = false;
    while (!p->failed) {
        while (ptx_lex_is(&p->x, '+') || ptx_lex_is(&p->x, '-')) {
            minus ^= ptx_lex_is(&p->x, '-');
            ptx_lex_next(&p->x);
        }
        if (p->x.token.kind != NUMBER || p->x.token.real) break;
        sum += minus ? 0 - p->x.token.value : p->x.token.value;
        minus = false, any = true;
        ptx_lex_next(&p->x);
        if (!ptx_lex_is(&p->x, '+') && !ptx_lex_is(&p->x, '-')) return (int64_t)sum;
    }
    if (!any || minus) ptx_fail(p, "a number was expected");
    return (int64_t)sum;
}

int ptx_find_function(const ptx_parser *p, const char *name, size_t length) {
    for (uint32_t k = 0; k < p->m->function_count; k++)
        if (strncmp(p->m->functions[k].name, name, length) == 0 && !p->m->functions[k].name[length])
            return (int)k;
    return -1;
}

static ptx_function *new_function(ptx_parser *p, const ptx_token *name, bool entry) {
    ptx_module *m = p->m;
    char *text = ptx_keep(m, name->length + 1);
    if (!text || !ptx_grow(p, (void **)&m->functions, m->function_count, &p->function_room,
                           sizeof *m->functions)) {
        ptx_fail(p, "out of memory");
        return NULL;
    }
    memcpy(text, name->text, name->length);
    ptx_function *f = &m->functions[m->function_count++];
    *f = (ptx_function){.name = text, .entry = entry};
    return f;
}

/* Assigns offsets to the registers and the local memory of a function or kernel. No two functions
 * (.func) share a range of offsets, because a kernel may call all of them; recursion is not
 * supported. The range of a kernel must not overlap the ranges of functions, but two kernels never
 * run together and may have the same range. */
static void place_function(ptx_module *m, ptx_function *f) {
    const bool after_kernels = !f->entry && m->most_bytes > m->function_bytes;
    f->base = after_kernels ? m->most_bytes : m->function_bytes;
    f->pred_base = after_kernels ? m->most_preds : m->function_preds;
    f->local_base = after_kernels ? m->most_local : m->function_local;
    f->shared = f->own_shared = m->shared_bytes;
}

uint32_t ptx_static_shared(const ptx_module *m, const ptx_function *kernel) {
    const bool outer = kernel->uses_outer || (kernel->calls && m->functions_use_outer);
    return kernel->shared - (outer ? SHARED_BEGIN : kernel->own_shared);
}

static uint32_t greater(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

static void end_function(ptx_parser *p, ptx_function *f) {
    ptx_module *m = p->m;
    const uint32_t bytes = f->base + f->bytes, preds = f->pred_base + f->preds,
                   local = (f->local_base + f->local + 15) & ~15u;
    m->most_bytes = greater(m->most_bytes, bytes);
    m->most_preds = greater(m->most_preds, preds);
    m->most_local = greater(m->most_local, local);
    if (!f->entry) m->function_bytes = bytes, m->function_preds = preds, m->function_local = local;
    f->end = m->code_count;
    f->slots = ptx_keep(m, (p->slot_count + 1) * sizeof *f->slots);
    if (!f->slots) {
        ptx_fail(p, "out of memory");
        return;
    }
    f->slot_count = p->slot_count;
    if (p->slot_count) memcpy(f->slots, p->slots, p->slot_count * sizeof *f->slots);
}

static void read_triple(ptx_parser *p, uint32_t *to) {
    for (uint32_t d = 0; d < 3; d++)
        to[d] = 1;
    for (uint32_t d = 0; d < 3 && !p->failed; d++) {
        to[d] = (uint32_t)ptx_integer(p);
        if (!ptx_accept(p, ',')) break;
    }
}

/* Reads the properties between a kernel's parameters and its body, such as ".reqntid 128" or
 * ".maxnreg 255". */
static void read_properties(ptx_parser *p, ptx_function *f) {
    while (!p->failed && p->x.token.kind == WORD && p->x.token.text[0] == '.') {
        const ptx_token t = p->x.token;
        ptx_lex_next(&p->x);
        if (ptx_token_is(&t, ".reqntid"))
            read_triple(p, f->reqntid);
        else if (ptx_token_is(&t, ".maxntid"))
            read_triple(p, f->maxntid);
        else if (ptx_token_is(&t, ".reqnctapercluster"))
            read_triple(p, f->cluster);
        else if (p->x.token.kind == NUMBER)
            (void)ptx_integer(p);
        else if (p->x.token.kind == STRING)
            ptx_lex_next(&p->x);
    }
}

/* Advances the parser to the function's name. Returns the position of the list of results, which
 * precedes the name, or the position of the name if there is no list. */
static ptx_lexer skip_results(ptx_parser *p) {
    ptx_lex_next(&p->x);
    const ptx_lexer results = p->x;
    if (!ptx_lex_is(&p->x, '(')) return results;
    while (!ptx_lex_is(&p->x, ')') && p->x.token.kind != END)
        ptx_lex_next(&p->x);
    ptx_expect(p, ')');
    return results;
}

static void read_definition(ptx_parser *p, ptx_function *f) {
    if (p->m->functions[p->function].defined) ptx_fail(p, "function %s has two bodies", f->name);
    f->defined = true, f->first = p->m->code_count;
    p->f = f, p->slot_count = 0, p->file = p->source_line = 0;
    ptx_read_body(p);
    p->f = NULL;
    if (!p->failed) end_function(p, f);
}

/* Reads a function. The parameters of a declaration without a body are skipped, because the later
 * definition repeats them. */
static void read_function(ptx_parser *p, bool entry) {
    const ptx_lexer results = skip_results(p);
    const ptx_token name = p->x.token;
    if (name.kind != WORD) ptx_fail(p, "a function's name was expected");
    if (p->failed) return;
    ptx_lex_next(&p->x);
    const ptx_lexer here = p->x;
    const int known = ptx_find_function(p, name.text, name.length);
    if (known < 0 && !new_function(p, &name, entry)) return;
    p->function = known < 0 ? p->m->function_count - 1 : (uint32_t)known;
    ptx_function f = {.entry = entry, .name = p->m->functions[p->function].name};
    place_function(p->m, &f);
    ptx_open_scope(p);
    if (ptx_lex_is(&results, '(')) p->x = results, ptx_read_parameters(p, &f, true), p->x = here;
    if (!p->failed) ptx_read_parameters(p, &f, false);
    read_properties(p, &f);
    if (!p->failed && ptx_lex_is(&p->x, '{')) {
        read_definition(p, &f);
        free(p->m->functions[p->function].parameters);
        p->m->functions[p->function] = f;
    } else {
        ptx_accept(p, ';');
        free(f.parameters);
    }
    ptx_close_scope(p);
}

/* Reads the target of a module, e.g. "90a". The number is the compute capability times 10. The
 * optional letter restricts the code to some devices. */
static void read_target_name(ptx_module *m, const char *text, size_t length) {
    for (m->target = 0; length && *text >= '0' && *text <= '9' && m->target < 1000;
         text++, length--)
        m->target = 10 * m->target + (uint32_t)(*text - '0');
    m->feature = (char)(length ? *text : 0);
}

static void read_target(ptx_parser *p) {
    const uint32_t line = p->x.token.line;
    ptx_lex_next(&p->x);
    const ptx_token *t = &p->x.token;
    if (t->kind == WORD && t->length > 3 && strncmp(t->text, "sm_", 3) == 0)
        read_target_name(p->m, t->text + 3, t->length - 3);
    while (p->x.token.line == line && p->x.token.kind != END)
        ptx_lex_next(&p->x);
}

static void read_file(ptx_parser *p) {
    const uint32_t line = p->x.token.line;
    ptx_lex_next(&p->x);
    const uint64_t number = p->x.token.value;
    ptx_lex_next(&p->x);
    const ptx_token t = p->x.token;
    while (p->x.token.line == line && p->x.token.kind != END)
        ptx_lex_next(&p->x);
    if (t.kind != STRING || t.length < 2 || number > 1 << 16) return;
    while (p->m->file_count <= number) {
        if (!ptx_grow(p, (void **)&p->m->files, p->m->file_count, &p->file_room,
                      sizeof *p->m->files))
            return;
        p->m->files[p->m->file_count++] = NULL;
    }
    char *name = ptx_keep(p->m, t.length);
    if (name) memcpy(name, t.text + 1, t.length - 2), p->m->files[number] = name;
}

static void skip_braces(ptx_parser *p) {
    while (!ptx_lex_is(&p->x, '{') && p->x.token.kind != END)
        ptx_lex_next(&p->x);
    while (!ptx_lex_is(&p->x, '}') && p->x.token.kind != END)
        ptx_lex_next(&p->x);
    ptx_expect(p, '}');
}

static void skip_line(ptx_parser *p) {
    const uint32_t line = p->x.token.line;
    while (p->x.token.line == line && p->x.token.kind != END)
        ptx_lex_next(&p->x);
}

static void read_directive(ptx_parser *p) {
    bool is_extern = false;
    while (ptx_word_is(p, ".extern") || ptx_word_is(p, ".visible") || ptx_word_is(p, ".weak") ||
           ptx_word_is(p, ".common")) {
        is_extern |= ptx_word_is(p, ".extern");
        ptx_lex_next(&p->x);
    }
    if (ptx_word_is(p, ".entry") || ptx_word_is(p, ".func"))
        read_function(p, ptx_word_is(p, ".entry"));
    else if (ptx_word_is(p, ".target"))
        read_target(p);
    else if (ptx_word_is(p, ".file"))
        read_file(p);
    else if (ptx_word_is(p, ".section"))
        skip_braces(p);
    else if (ptx_word_is(p, ".version") || ptx_word_is(p, ".address_size") ||
             ptx_word_is(p, ".loc") || ptx_word_is(p, ".pragma"))
        skip_line(p);
    else if (!ptx_read_variable(p, is_extern))
        ptx_fail(p, "this is no directive: %.*s",
                 p->x.token.length > 40 ? 40 : (int)p->x.token.length, p->x.token.text);
}

static void free_parser(ptx_parser *p) {
    free(p->symbols), free(p->references), free(p->slots);
    free(p);
}

void ptx_module_unload(ptx_module *m) {
    if (!m) return;
    for (uint32_t k = 0; k < m->variable_count; k++)
        sim_memory_free((void *)(uintptr_t)m->variables[k].address);
    for (uint32_t k = 0; k < m->function_count; k++)
        free(m->functions[k].parameters);
    for (struct ptx_arena *a = m->arena, *next; a; a = next) {
        next = a->next;
        free(a);
    }
    free(m->variables), free(m->functions), free(m->code), free(m->files), free(m->opcodes);
    free(m->text), free(m);
}

/* Finds out whether the module has atomics. Their results depend on the order of the thread blocks,
 * so the simulator then runs the blocks in a fixed order. */
static void look_for_atomics(ptx_module *m) {
    for (uint32_t k = 0; k < m->opcode_count; k++)
        m->orders |= strncmp(m->opcodes[k]->text, "atom", 4) == 0 ||
                     strncmp(m->opcodes[k]->text, "cp.reduce", 9) == 0 ||
                     strncmp(m->opcodes[k]->text, "red.", 4) == 0;
}

static void read_module(ptx_parser *p) {
    ptx_lex_start(&p->x, p->m->text, p->m->size);
    if (!ptx_word_is(p, ".version")) ptx_fail(p, "a module begins with .version");
    p->m->shared_bytes = p->shared_most = SHARED_BEGIN;
    /* Predicates 0 and 1 are constants. Predicate 0 is true in no lane, and predicate 1 is true in
       all lanes. */
    p->m->function_preds = p->m->most_preds = 2;
    while (!p->failed && p->x.token.kind != END)
        read_directive(p);
    if (!p->failed && p->m->target == 0) ptx_fail(p, "the module has no .target");
    look_for_atomics(p->m);
}

ptx_module *ptx_module_load(const char *text, size_t size, char *error) {
    ptx_module *m = calloc(1, sizeof *m);
    ptx_parser *p = calloc(1, sizeof *p);
    char *copy = malloc(size + 1);
    if (!m || !p || !copy || size > 1u << 30) {
        free(m), free(p), free(copy);
        snprintf(error, ERROR_BYTES, "out of memory: a module of %zu bytes", size);
        return NULL;
    }
    memcpy(copy, text, size), copy[size] = 0;
    m->text = copy, m->size = size;
    p->m = m, p->error = error;
    read_module(p);
    const bool failed = p->failed;
    free_parser(p);
    if (!failed) return m;
    ptx_module_unload(m);
    return NULL;
}
