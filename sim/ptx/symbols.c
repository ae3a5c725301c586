/* Implements the table of names in a PTX module, a hash table with nested scopes. */
#include "parse.h"
#include <stdlib.h>
#include <string.h>

static uint32_t bucket_of(const char *name, size_t length) {
    uint32_t h = 2166136261u;
    for (size_t k = 0; k < length; k++)
        h = (h ^ (uint8_t)name[k]) * 16777619u;
    return h % BUCKETS;
}

static const ptx_symbol *find(const ptx_parser *p, const char *name, size_t length, int kind) {
    for (uint32_t n = p->bucket[bucket_of(name, length)]; n; n = p->symbols[n - 1].next) {
        const ptx_symbol *s = &p->symbols[n - 1];
        if (s->length == length && memcmp(s->name, name, length) == 0 &&
            (kind < 0 ? s->kind != SYM_RANGE : s->kind == kind))
            return s;
    }
    return NULL;
}

/* Finds the symbol of a name. The declaration "%r<n>" makes one symbol for the registers %r0 to
 * %r(n - 1), so the name "%r12" may belong to it. */
const ptx_symbol *ptx_lookup(const ptx_parser *p, const char *name, size_t length) {
    const ptx_symbol *s = find(p, name, length, -1);
    size_t digits = 0;
    if (s) return s;
    while (digits < length && digits < 9 && name[length - 1 - digits] >= '0' &&
           name[length - 1 - digits] <= '9')
        digits++;
    uint32_t number = 0;
    for (size_t k = length - digits; k < length; k++)
        number = 10 * number + (uint32_t)(name[k] - '0');
    s = digits ? find(p, name, length - digits, SYM_RANGE) : NULL;
    return s && number < s->count ? s : NULL;
}

ptx_symbol *ptx_define(ptx_parser *p, const ptx_token *name, int kind) {
    if (!ptx_grow(p, (void **)&p->symbols, p->symbol_count, &p->symbol_room, sizeof *p->symbols))
        return NULL;
    const uint32_t b = bucket_of(name->text, name->length);
    ptx_symbol *s = &p->symbols[p->symbol_count++];
    *s = (ptx_symbol){
        .name = name->text, .length = name->length, .kind = (uint8_t)kind, .next = p->bucket[b]};
    p->bucket[b] = p->symbol_count;
    return s;
}

void ptx_open_scope(ptx_parser *p) {
    if (p->depth >= MOST_SCOPES) {
        ptx_fail(p, "blocks are nested more than %d deep", MOST_SCOPES);
        return;
    }
    p->scopes[p->depth].symbols = p->symbol_count;
    p->scopes[p->depth++].references = p->reference_count;
}

/* Writes the addresses of labels to the branches of a scope that ends. A branch to an unknown label
 * waits until the enclosing scope ends. */
static void resolve(ptx_parser *p) {
    uint32_t kept = p->scopes[p->depth].references;
    for (uint32_t k = kept; k < p->reference_count; k++) {
        const ptx_reference *r = &p->references[k];
        const ptx_symbol *s = find(p, r->name, r->length, SYM_LABEL);
        if (s)
            *r->to = (int64_t)s->value;
        else
            p->references[kept++] = *r;
    }
    p->reference_count = kept;
}

void ptx_close_scope(ptx_parser *p) {
    if (p->depth == 0) return;
    p->depth--;
    resolve(p);
    while (p->symbol_count > p->scopes[p->depth].symbols) {
        const ptx_symbol *s = &p->symbols[--p->symbol_count];
        p->bucket[bucket_of(s->name, s->length)] = s->next;
    }
    if (p->depth == 0 && p->reference_count) {
        const ptx_reference *r = &p->references[0];
        ptx_fail(p, "line %u: label %.*s is not defined", r->line, (int)r->length, r->name);
        p->reference_count = 0;
    }
}

void ptx_refer(ptx_parser *p, const ptx_token *name, int64_t *to) {
    if (!ptx_grow(p, (void **)&p->references, p->reference_count, &p->reference_room,
                  sizeof *p->references))
        return;
    p->references[p->reference_count++] = (ptx_reference){name->text, name->length, to, name->line};
}
