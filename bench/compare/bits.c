/* Compares the bytes that two builds of the library write for the same operands. */
#include "compare.h"

#include <stdlib.h>
#include <string.h>

static size_t count_different(const uint8_t *a, const uint8_t *b, uint64_t bytes, uint64_t *first) {
    size_t count = 0;
    for (uint64_t i = 0; i < bytes; i++)
        if (a[i] != b[i] && count++ == 0) *first = i;
    return count;
}

void expect_same(session *s, const void *old, const void *new, uint64_t bytes, const char *what,
                 void (*print)(const void *context, FILE *to), const void *context) {
    uint64_t first = 0;
    size_t count = bytes ? count_different(old, new, bytes, &first) : 0;
    s->compared++;
    if (count == 0) return;
    s->different++;
    printf("DIFFERENT: %s: %zu of %llu bytes, the first at %llu: ", what, count,
           (unsigned long long)bytes, (unsigned long long)first);
    printf("%02x, now %02x: ", ((const uint8_t *)old)[first], ((const uint8_t *)new)[first]);
    print(context, stdout);
    printf("\n");
}

typedef struct output {
    bsmm_status status;
    char kernel[64], message[240];
    uint8_t *bytes; /* `bytes` holds the elements of a result, followed by its scales. */
} output;

static uint64_t output_bytes(const product *p) {
    return p->d.data_bytes + p->d.scale_bytes;
}

static void poison(session *s, const product *p, uint8_t *scratch) {
    memset(scratch, 0xA5, output_bytes(p));
    memory_write(s, p->there[3].data, scratch, p->d.data_bytes);
    memory_write(s, p->there[3].scales, scratch, p->d.scale_bytes);
}

static output run(session *s, product *p, int build, const char *kernel) {
    output o = {.bytes = malloc(output_bytes(p) + 1)};
    prepared r;
    if (!o.bytes) exit(2);
    poison(s, p, o.bytes);
    o.status = product_prepare(s, p, build, kernel, &r);
    if (!o.status) o.status = r.build->plan_run(r.plan, &r.buffers);
    if (o.status) snprintf(o.message, sizeof o.message, "%s", r.build->error_message());
    memcpy(o.kernel, r.kernel, sizeof o.kernel);
    memory_read(s, o.bytes, p->there[3].data, p->d.data_bytes);
    memory_read(s, o.bytes + p->d.data_bytes, p->there[3].scales, p->d.scale_bytes);
    prepared_free(&r);
    return o;
}

static void print_shape(const void *context, FILE *to) {
    shape_print(context, to);
}

static void compare_outputs(session *s, const product *p, const output *old, const output *new) {
    char what[160];
    bool renamed = *old->kernel && *new->kernel &&strcmp(old->kernel, new->kernel) != 0;
    snprintf(what, sizeof what, "%s%s%s", *old->kernel ? old->kernel : new->kernel,
             renamed ? " / " : "", renamed ? new->kernel : "");
    if (old->status && new->status) {
        s->refused++;
        return;
    }
    if (old->status == new->status) {
        expect_same(s, old->bytes, new->bytes, output_bytes(p), what, print_shape, p->shape);
        return;
    }
    s->different++;
    printf("DIFFERENT: %s: status %d, now %d (%s): ", what, old->status, new->status,
           old->status ? old->message : new->message);
    shape_print(p->shape, stdout);
    printf("\n");
}

static void compare_runs(session *s, product *p, const char *const kernels[BUILDS]) {
    output old = run(s, p, OLD, kernels ? kernels[OLD] : NULL);
    output new = run(s, p, NEW, kernels ? kernels[NEW] : NULL);
    compare_outputs(s, p, &old, &new);
    free(old.bytes);
    free(new.bytes);
}

static bool accepts(const session *s, product *p, int build, const char *kernel) {
    bsmm_explanation e = BSMM_INIT(bsmm_explanation);
    p->desc.kernel = NULL;
    for (uint32_t i = 0; kernel && !s->builds[build].explain(&p->desc, i, &e); i++)
        if (strcmp(e.kernel, kernel) == 0) return e.accepts;
    return false;
}

/* Returns true if `kernel` is the reference kernel and would take too long for this GEMM. Small
 * GEMMs already show differences between the two builds' reference kernels. */
static bool is_too_long(const product_shape *shape, const char *kernel) {
    enum { REFERENCE_OPERATIONS = 1 << 19 };
    return strcmp(kernel, "ref") == 0 && shape->m * shape->n * shape->k > REFERENCE_OPERATIONS;
}

static void compare_kernel(session *s, product *p, const char *const kernels[BUILDS]) {
    bool takes[BUILDS];
    for (int i = 0; i < BUILDS; i++)
        takes[i] = accepts(s, p, i, kernels[i]);
    if (takes[OLD] && takes[NEW]) {
        if (!is_too_long(p->shape, kernels[OLD])) compare_runs(s, p, kernels);
    } else if (takes[OLD] != takes[NEW] && kernels[OLD] && kernels[NEW]) {
        s->choices++;
        printf("choice: %s %s: ", kernels[NEW], takes[NEW] ? "takes" : "no longer takes");
        shape_print(p->shape, stdout);
        printf("\n");
    }
}

static void compare_product(session *s, const product_shape *shape) {
    product p;
    if (s->turn++ % s->options->every != 0) return;
    if (product_make(s, shape, &p)) {
        compare_runs(s, &p, NULL);
        for (size_t i = 0; i < s->kernel_count; i++)
            compare_kernel(s, &p, s->kernels[i]);
    }
    product_free(s, &p);
}

void compare_products(session *s) {
    products_each(s, compare_product);
}
