#include "compare.h"

#include <stdlib.h>
#include <string.h>

static const char *layout_name(uint32_t layout) {
    bsmm_layout_info info = BSMM_INIT(bsmm_layout_info);
    for (uint32_t i = 0; !bsmm_layout_at(i, &info); i++)
        if (info.layout == layout) return info.name;
    return "?";
}

static void print_operand(const operand_shape *o, const char *name, FILE *to) {
    if (o->order) fprintf(to, " %s:col", name);
    if (o->layout) fprintf(to, " %s:%s", name, layout_name(o->layout));
    if (o->extra_ld) fprintf(to, " %s:ld+%lld", name, (long long)o->extra_ld);
    if (o->extra_scale_ld) fprintf(to, " %s:scale_ld+%lld", name, (long long)o->extra_scale_ld);
    if (o->global != 0)
        fprintf(to, " %s:%s%g", name, o->global_kind ? "1/" : "*", (double)o->global);
}

void shape_print(const product_shape *s, FILE *to) {
    fprintf(to, "%s x %s", bsmm_format_name(s->a.format), bsmm_format_name(s->b.format));
    fprintf(to, " -> %s %lldx%lldx%lld %s", bsmm_format_name(s->d.format), (long long)s->m,
            (long long)s->n, (long long)s->k, fill_names[s->how]);
    print_operand(&s->a, "a", to);
    print_operand(&s->b, "b", to);
    print_operand(&s->d, "d", to);
    if (s->alpha != 0) fprintf(to, " alpha=%g", (double)s->alpha);
    if (s->c_elem)
        fprintf(to, " c:%s*%g", bsmm_format_name((bsmm_format){.elem = s->c_elem}),
                (double)s->beta);
    if (s->bias_elem)
        fprintf(to, " bias:%s", bsmm_format_name((bsmm_format){.elem = s->bias_elem}));
    fprintf(to, "%s%s threads=%u", s->compute ? " fast" : "", s->b_packed ? " packed" : "",
            s->threads);
}

static int64_t blocks(int64_t count, uint32_t block) {
    return block ? (count + block - 1) / block : 0;
}

static bsmm_matrix describe(const operand_shape *o, int64_t rows, int64_t cols) {
    bsmm_matrix m = BSMM_INIT(bsmm_matrix);
    m.format = o->format, m.order = o->order, m.rows = rows, m.cols = cols;
    if (o->extra_ld) m.ld = ((o->order ? rows : cols) + 3) / 4 * 4 + o->extra_ld;
    m.global_kind = o->global_kind;
    if (!o->format.scale) return m;
    m.scale_layout = o->layout;
    if (o->layout == BSMM_LAYOUT_TILE_CONTIGUOUS) m.scale_tile_rows = 8, m.scale_tile_cols = 4;
    if (o->extra_scale_ld)
        m.scale_ld = o->extra_scale_ld + (o->layout == BSMM_LAYOUT_COL_MAJOR
                                              ? blocks(rows, o->format.block_rows)
                                              : blocks(cols, o->format.block_cols));
    return m;
}

static bool allocate(bsmm_matrix *m) {
    uint64_t data, scales = 0;
    if (bsmm_data_bytes(m, &data)) return false;
    if (m->format.scale && bsmm_scale_bytes(m, &scales)) return false;
    m->data_bytes = data, m->scale_bytes = scales;
    m->data = aligned_alloc(64, (data / 64 + 1) * 64);
    m->scales = scales ? aligned_alloc(64, (scales / 64 + 1) * 64) : NULL;
    return m->data && (m->scales || !scales);
}

/* Copies the memory of a host matrix to the device and returns the description of the copy. */
static bsmm_matrix put(session *s, const bsmm_matrix *host, float global) {
    bsmm_matrix there = *host;
    there.data = memory_new(s, host->data, host->data_bytes);
    there.scales = host->scales ? memory_new(s, host->scales, host->scale_bytes) : NULL;
    if (global != 0) there.global_scale = memory_new(s, &global, sizeof global);
    return there;
}

bool matrix_make(session *s, const operand_shape *o, int64_t rows, int64_t cols, fill how,
                 uint64_t *state, bsmm_matrix *host, bsmm_matrix *there) {
    *host = describe(o, rows, cols);
    if (!allocate(host)) return false;
    fill_matrix(host, how, state);
    *there = put(s, host, o->global);
    return true;
}

void matrix_free(bsmm_matrix *host) {
    free(host->data);
    free(host->scales);
}

static void *make_bias(session *s, const product_shape *shape, uint64_t *state) {
    operand_shape row = {.format = {.elem = shape->bias_elem}};
    bsmm_matrix host = describe(&row, 1, shape->n);
    if (!allocate(&host)) return NULL;
    fill_matrix(&host, shape->how, state);
    void *bias = memory_new(s, host.data, host.data_bytes);
    free(host.data);
    return bias;
}

static bsmm_matmul_desc desc_of(const session *s, const product *p) {
    const product_shape *shape = p->shape;
    bsmm_matmul_desc desc = BSMM_INIT(bsmm_matmul_desc);
    desc.a = &p->there[0], desc.b = &p->there[1], desc.d = &p->there[3];
    if (shape->c_elem) desc.c = &p->there[2], desc.beta = &shape->beta;
    if (shape->alpha != 0) desc.alpha = &shape->alpha;
    desc.bias = p->bias, desc.bias_elem = shape->bias_elem;
    desc.compute = shape->compute, desc.threads = shape->threads;
    desc.device = s->options->device, desc.b_packed = shape->b_packed;
    return desc;
}

bool product_make(session *s, const product_shape *shape, product *p) {
    uint64_t state = shape->seed;
    *p = (product){.shape = shape};
    bool made =
        matrix_make(s, &shape->a, shape->m, shape->k, shape->how, &state, &p->a, &p->there[0]) &&
        matrix_make(s, &shape->b, shape->n, shape->k, shape->how, &state, &p->b, &p->there[1]) &&
        matrix_make(s, &shape->d, shape->m, shape->n, FILL_ORDINARY, &state, &p->d, &p->there[3]);
    operand_shape c = {.format = {.elem = shape->c_elem}, .order = shape->d.order};
    if (made && shape->c_elem)
        made = matrix_make(s, &c, shape->m, shape->n, shape->how, &state, &p->c, &p->there[2]);
    if (made && shape->bias_elem) p->bias = make_bias(s, shape, &state);
    p->desc = desc_of(s, p);
    return made;
}

void product_free(session *s, product *p) {
    bsmm_matrix *all[] = {&p->a, &p->b, &p->c, &p->d};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        matrix_free(all[i]);
    bench_device_reset(s->device);
}

static bsmm_buffers buffers_of(session *s, const product *p) {
    const bsmm_matrix *a = &p->there[0], *b = &p->there[1], *d = &p->there[3];
    bsmm_buffers buffers = BSMM_INIT(bsmm_buffers);
    buffers.a = a->data, buffers.a_scales = a->scales, buffers.a_global = a->global_scale;
    buffers.b = b->data, buffers.b_scales = b->scales, buffers.b_global = b->global_scale;
    buffers.c = p->there[2].data, buffers.bias = p->bias;
    buffers.d = d->data, buffers.d_scales = d->scales, buffers.d_global = d->global_scale;
    buffers.stream = bench_device_stream(s->device);
    return buffers;
}

static bsmm_status pack(session *s, prepared *r) {
    uint64_t bytes = r->build->plan_packed_b_bytes(r->plan);
    void *packed = memory_new(s, NULL, bytes);
    bsmm_status status = r->build->pack_b(r->plan, &r->buffers, packed, bytes);
    r->buffers.packed_b = packed;
    r->buffers.packed_b_bytes = bytes;
    return status;
}

bsmm_status product_prepare(session *s, product *p, int build, const char *kernel, prepared *r) {
    *r = (prepared){.build = &s->builds[build]};
    p->desc.kernel = kernel;
    bsmm_status status = r->build->plan_create(&p->desc, &r->plan);
    if (status) return status;
    snprintf(r->kernel, sizeof r->kernel, "%s", r->build->plan_kernel(r->plan));
    r->buffers = buffers_of(s, p);
    r->buffers.workspace_bytes = r->build->plan_workspace_bytes(r->plan);
    r->buffers.workspace = memory_new(s, NULL, r->buffers.workspace_bytes + 64);
    return p->shape->b_packed ? pack(s, r) : BSMM_OK;
}

void prepared_free(prepared *r) {
    r->build->plan_destroy(r->plan);
}
