#include "gpu/refuse.h"

#include <stdio.h>
#include <string.h>

enum { FORMAT_TEXT = 64 };

/* Describes a format by its preset's name or, if it has none, by its elements and scales. */
static const char *describe_format(const bsmm_operand *o, char text[FORMAT_TEXT]) {
    const bsmm_format *f = &o->m.format;
    const char *name = bsmm_format_name(*f);
    if (strcmp(name, "custom") != 0) return name;
    snprintf(text, FORMAT_TEXT, "%s with %s scales of %u x %u", bsmm_elem_row(f->elem)->name,
             bsmm_elem_row(bsmm_scale_row_of(f->scale)->elem)->name, f->block_rows, f->block_cols);
    return text;
}

static const char *refuse_extents(const bsmm_product *p, int64_t least, char *why, size_t size) {
    const int64_t extents[] = {p->d.m.rows, p->d.m.cols, p->a.m.cols};
    for (size_t i = 0; i < BSMM_COUNT(extents); i++)
        if (extents[i] < least || extents[i] > INT32_MAX)
            return bsmm_reason(why, size, "%c is %lld; the kernel takes %lld to %d", "MNK"[i],
                               (long long)extents[i], (long long)least, INT32_MAX);
    return NULL;
}

const char *bsmm_gpu_refuse_large(const bsmm_product *p, char *why, size_t size) {
    return refuse_extents(p, 0, why, size);
}

const char *bsmm_gpu_refuse_extents(const bsmm_product *p, char *why, size_t size) {
    return refuse_extents(p, 1, why, size);
}

const char *bsmm_gpu_refuse_format(const bsmm_operand *o, char name, const char *rule, char *why,
                                   size_t size) {
    char text[FORMAT_TEXT];
    return bsmm_reason(why, size, "%c is %s; %s", name, describe_format(o, text), rule);
}

const char *bsmm_gpu_refuse_formats(const bsmm_product *p, const char *rule, char *why,
                                    size_t size) {
    char a[FORMAT_TEXT], b[FORMAT_TEXT];
    return bsmm_reason(why, size, "A is %s and B is %s; %s", describe_format(&p->a, a),
                       describe_format(&p->b, b), rule);
}

const char *bsmm_gpu_refuse_order(const bsmm_operand *o, char name, char *why, size_t size) {
    if (o->m.order == BSMM_ORDER_ROW) return NULL;
    return bsmm_reason(why, size, "%c is ORDER_COL; the kernel takes only ORDER_ROW", name);
}

const char *bsmm_gpu_refuse_orders(const bsmm_product *p, char *why, size_t size) {
    const char *reason = bsmm_gpu_refuse_order(&p->a, 'A', why, size);
    return reason ? reason : bsmm_gpu_refuse_order(&p->b, 'B', why, size);
}

const char *bsmm_gpu_refuse_tiles(const bsmm_product *p, int64_t rows, int64_t cols, int64_t most,
                                  char *why, size_t size) {
    const int64_t tiles = bsmm_ceil_div(p->d.m.rows, rows) * bsmm_ceil_div(p->d.m.cols, cols);
    if (tiles <= most) return NULL;
    return bsmm_reason(why, size, "D has %lld tiles of %lld x %lld; the kernel takes at most %lld",
                       (long long)tiles, (long long)rows, (long long)cols, (long long)most);
}

const char *bsmm_gpu_refuse_rows(const bsmm_product *p, int64_t most, char *why, size_t size) {
    if (p->a.m.rows <= most) return NULL;
    return bsmm_reason(why, size, "A has %lld rows; the kernel takes at most %lld",
                       (long long)p->a.m.rows, (long long)most);
}
