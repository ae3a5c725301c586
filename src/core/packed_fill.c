/* Writes packed weights (the copy of B that bsmm_pack_b makes), and implements the public functions
 * that read packed weights without a plan. */
#include "core/packed.h"
#include "core/panels.h"
#include "core/parts.h"

#include <string.h>

/* `global_part` is the last of the four arrays that packed weights have for each matrix. It holds
 * the matrix's second-level scale, and zeros up to 64 bytes. */
typedef struct global_part {
    float value;
    uint32_t given; /* `given` is 1 if the matrix has a second-level scale, else 0. */
    uint8_t zero[56];
} global_part;
_Static_assert(sizeof(global_part) == 64, "a part ends at a multiple of 64");

static void clear_gap(uint8_t *at, uint64_t used, const uint8_t *end) {
    memset(at + used, 0, (size_t)(end - at) - used);
}

/* Writes one matrix of B in compact order, in which pieces of 16 rows are interleaved. Gaps between
 * the arrays of packed weights are filled with zeros. Without this, the gaps would keep the old
 * contents of the memory, and two files with the same packed weights could differ. */
static bsmm_status fill_in_host_memory(const bsmm_product *p, const bsmm_operand *view,
                                       const bsmm_packed_arrays *at) {
    bsmm_operand to = *view;
    const global_part global = {.value = p->b.m.global_scale ? *p->b.m.global_scale : 1,
                                .given = p->b.m.global_scale != NULL};
    to.m.data = at->codes;
    to.m.scales = at->scales;
    BSMM_TRY(bsmm_compact_pack(&p->b, &to, p->threads, &p->pool));
    clear_gap(at->codes, view->data_bytes, at->scales);
    clear_gap(at->scales, view->scale_bytes, at->global);
    memcpy(at->global, &global, sizeof global);
    return BSMM_OK;
}

static bsmm_status queue_gap(const bsmm_product *p, uint8_t *at, uint64_t used,
                             const uint8_t *end) {
    const uint64_t bytes = (uint64_t)(end - at) - used;
    return bytes ? p->backend->fill(p->device, p->stream, at + used, 0, bytes) : BSMM_OK;
}

/* Queues a copy of B's codes (its encoded elements) to packed weights, which store B row by row
 * without gaps. If the stored B has another order, or its rows end with padding, a kernel moves the
 * codes one by one. */
static bsmm_status queue_codes(const bsmm_recode *job, const bsmm_backend *backend) {
    if (job->dst.data_bytes == 0) return BSMM_OK;
    if (!bsmm_packed_same_codes(&job->src, &job->dst) || job->dst.m.ld != job->dst.m.cols)
        return backend->move_codes(job);
    return backend->copy(job->device, job->stream, job->dst.m.data, job->src.m.data,
                         job->dst.data_bytes);
}

/* Queues the kernels and copies that write one matrix of B to packed weights in device memory. `to`
 * describes the matrix at its place in the packed weights, and `at` points to its arrays. The bytes
 * between the arrays become zero, as in packed weights in host memory. */
static bsmm_status fill_on_device(const bsmm_product *p, const bsmm_operand *to,
                                  const bsmm_packed_arrays *at) {
    const bsmm_recode job = {.device = p->device, .stream = p->stream, .src = p->b, .dst = *to};
    const bsmm_backend *k = p->backend;
    const global_part global = {.value = 1, .given = p->b.m.global_scale != NULL};
    BSMM_TRY(queue_codes(&job, k));
    if (to->scale_bytes) BSMM_TRY(k->relayout(&job));
    BSMM_TRY(queue_gap(p, at->codes, to->data_bytes, at->scales));
    BSMM_TRY(queue_gap(p, at->scales, to->scale_bytes, at->global));
    BSMM_TRY(k->store(p->device, p->stream, at->global, &global, sizeof global));
    if (!global.given) return BSMM_OK;
    return k->copy(p->device, p->stream, at->global, p->b.m.global_scale, sizeof global.value);
}

/* Returns a copy of the product whose B is the matrix of group number `index`. */
static bsmm_product take_matrix(const bsmm_product *product, int64_t index) {
    bsmm_product p = *product;
    if (!p.groups) return p;
    bsmm_operand_move(&p.b, (uint64_t)index * p.groups->b.elements,
                      (uint64_t)index * p.groups->b.scales);
    if (p.groups->flags & BSMM_GROUP_EACH_B_GLOBAL && p.b.m.global_scale)
        p.b.m.global_scale += index;
    p.groups = NULL;
    return p;
}

/* Writes one matrix of packed weights in host memory or in device memory. */
static bsmm_status fill_matrix(const bsmm_packed *packed, const bsmm_kernel *kernel,
                               const bsmm_product *p, const void *state,
                               const bsmm_packed_arrays *at) {
    if (p->backend->host_memory) {
        if (packed->panel_bytes) BSMM_TRY(kernel->pack_b(p, state, at->panels));
        return fill_in_host_memory(p, &packed->view, at);
    }
    bsmm_product from = *p;
    from.b = packed->view;
    bsmm_packed_set(at, false, &from.b);
    BSMM_TRY(fill_on_device(p, &from.b, at));
    return packed->panel_bytes ? kernel->pack_b(&from, state, at->panels) : BSMM_OK;
}

/* Writes the header and all matrices of packed weights. `kernel` packs the panels, and `state` is
 * its state. */
static bsmm_status fill_matrices(const bsmm_packed *packed, const bsmm_kernel *kernel,
                                 const bsmm_product *product, const void *state, void *to) {
    BSMM_TRY(product->backend->store(product->device, product->stream, to, &packed->header,
                                     sizeof packed->header));
    int64_t count = product->groups ? packed->header.groups : 1;
    for (int64_t i = 0; i < count; i++) {
        const bsmm_product p = take_matrix(product, i);
        const uint8_t *matrix =
            (uint8_t *)to + sizeof packed->header + (uint64_t)i * packed->matrix_bytes;
        const bsmm_packed_arrays at =
            bsmm_packed_arrays_of(&packed->view, matrix, packed->panel_bytes);
        BSMM_TRY(fill_matrix(packed, kernel, &p, state, &at));
    }
    return BSMM_OK;
}

/* Packs B for a plan whose runs do not read the panels (B's decoded values in the order in which a
 * kernel reads them). The panels are then those of the plain product, i.e. a one-row A times B
 * without C, bias, epilogue and groups (panels.h). The kernel of the plain product packs them. */
static bsmm_status fill_plain(const bsmm_packed *packed, const bsmm_product *product, void *to) {
    bsmm_panels plain;
    const bsmm_operand *const b = product->backend->host_memory ? &packed->stored : &packed->view;
    if (!bsmm_panels_find(product, b, NULL, packed->header.panels, &plain))
        return bsmm_fail(BSMM_E_UNSUPPORTED, "packed_b.panels: no kernel packs \"%s\"",
                         packed->header.panels);
    if (plain.kernel->make) BSMM_TRY(plain.kernel->make(&plain.product, plain.state));
    plain.product.b = product->b;
    plain.product.groups = product->groups;
    return fill_matrices(packed, plain.kernel, &plain.product, plain.state, to);
}

/* Panels are B's decoded values in the order in which a kernel reads them. If runs of the plan read
 * panels, the plan's kernel packs them, because `state` describes how these runs read B. If runs do
 * not read them, because no kernel with these panels accepts the product, the panels are packed for
 * the plain product (fill_plain). */
bsmm_status bsmm_packed_fill(const bsmm_packed *packed, const bsmm_kernel *kernel,
                             const bsmm_product *product, const void *state, void *to) {
    const bool has_panels = bsmm_packed_form_of(product) == BSMM_PACKED_WIDE;
    return has_panels && !product->b_packed ? fill_plain(packed, product, to)
                                            : fill_matrices(packed, kernel, product, state, to);
}

static bsmm_status take_header(const void *packed, uint64_t bytes, bsmm_packed_header *h) {
    if (!packed) return bsmm_fail(BSMM_E_INVALID, "packed_b: value is NULL; must be given");
    if (bytes < sizeof *h)
        return bsmm_fail(BSMM_E_INVALID, "packed_b_bytes: value is %llu; must be at least %zu",
                         (unsigned long long)bytes, sizeof *h);
    BSMM_TRY(bsmm_packed_check_magic(packed));
    memcpy(h, packed, sizeof *h);
    h->form[sizeof h->form - 1] = h->device[sizeof h->device - 1] = 0;
    h->panels[sizeof h->panels - 1] = 0;
    const bsmm_packed_form_info *form =
        bsmm_packed_form_row(bsmm_packed_form_named(h->form, sizeof h->form));
    if (!form)
        return bsmm_fail(
            BSMM_E_INVALID,
            "packed_b.form: value is \"%s\"; must be the name of a form of this library", h->form);
    if (h->version != form->version)
        return bsmm_fail(BSMM_E_INVALID, "packed_b.version: value is %u; must be %u for form %s",
                         h->version, form->version, form->name);
    if (h->bytes <= bytes) return BSMM_OK;
    return bsmm_fail(BSMM_E_INVALID, "packed_b_bytes: value is %llu; must be at least %llu",
                     (unsigned long long)bytes, (unsigned long long)h->bytes);
}

bsmm_status bsmm_packed_give_info(const bsmm_packed_header *h, bsmm_packed_info *info) {
    bsmm_packed_info result = {.form = bsmm_packed_form_named(h->form, sizeof h->form),
                               .version = h->version,
                               .global_kind = h->global_kind,
                               .format = h->format,
                               .rows = h->rows,
                               .cols = h->cols,
                               .groups = h->groups,
                               .bytes = h->bytes};
    memcpy(result.device, h->device, sizeof result.device);
    memcpy(result.panels, h->panels, sizeof result.panels);
    return bsmm_give_struct(info, &result, sizeof result, "info");
}

bsmm_status bsmm_packed_describe(const void *packed, uint64_t bytes, bsmm_packed_info *info) {
    bsmm_packed_header h = {.bytes = 0};
    BSMM_TRY(take_header(packed, bytes, &h));
    return bsmm_packed_give_info(&h, info);
}

/* Describes one matrix of packed weights in *view and stores the number of matrices in *count. The
 * header may come from a damaged file, so all of its fields are checked. */
static bsmm_status view_of(const bsmm_packed_header *h, bsmm_operand *view, int64_t *count) {
    const bsmm_matrix m = {.struct_size = sizeof m,
                           .format = h->format,
                           .rows = h->rows,
                           .cols = h->cols,
                           .global_kind = h->global_kind};
    const bsmm_backend *backend = bsmm_backend_of(h->device);
    bsmm_operand stored;
    *count = h->groups ? h->groups : 1;
    if (!backend || strcmp(backend->name, h->device) != 0)
        return bsmm_fail(
            BSMM_E_UNSUPPORTED,
            "packed_b.device: value is \"%s\"; must be a kind of device of this library",
            h->device);
    BSMM_TRY(bsmm_operand_take(&m, "packed_b", &stored));
    BSMM_TRY(bsmm_packed_view(backend->host_memory, &stored, view));
    if (h->groups >= 0) return BSMM_OK;
    return bsmm_fail(BSMM_E_INVALID, "packed_b.groups: value is %lld; must be 0 or more",
                     (long long)h->groups);
}

static bsmm_status find_matrix(const void *packed, const bsmm_packed_header *h, int64_t index,
                               bsmm_operand *view) {
    int64_t count;
    BSMM_TRY(view_of(h, view, &count));
    if (index < 0 || index >= count)
        return bsmm_fail(BSMM_E_INVALID, "index: value is %lld; must be 0 to %lld",
                         (long long)index, (long long)count - 1);
    uint64_t all = h->bytes - sizeof *h, each = all / (uint64_t)count;
    uint64_t least = bsmm_packed_matrix_bytes(view, 0);
    if (h->bytes < sizeof *h || all % (uint64_t)count || each < least || each % 64)
        return bsmm_fail(BSMM_E_INVALID,
                         "packed_b.bytes: value is %llu; must be %zu and %lld times a matrix of at "
                         "least %llu",
                         (unsigned long long)h->bytes, sizeof *h, (long long)count,
                         (unsigned long long)least);
    const uint8_t *matrix = (const uint8_t *)packed + sizeof *h + (uint64_t)index * each;
    const bsmm_packed_arrays at = bsmm_packed_arrays_of(view, matrix, each - least);
    bsmm_packed_set(&at, true, view);
    return BSMM_OK;
}

static bsmm_status check_same(const bsmm_operand *from, const bsmm_operand *to) {
    const bsmm_matrix *a = &from->m, *b = &to->m;
    if (!bsmm_format_equal(a->format, b->format))
        return bsmm_fail(BSMM_E_INVALID, "b.format: value is %s; must be packed_b's, %s",
                         bsmm_format_name(b->format), bsmm_format_name(a->format));
    if (a->rows != b->rows || a->cols != b->cols)
        return bsmm_fail(BSMM_E_INVALID, "b.rows x cols: value is %lld x %lld; must be %lld x %lld",
                         (long long)b->rows, (long long)b->cols, (long long)a->rows,
                         (long long)a->cols);
    if (a->global_scale && (!b->global_scale || a->global_kind != b->global_kind))
        return bsmm_fail(BSMM_E_INVALID,
                         "b.global_scale: packed_b has one of kind %u; must be given, of that kind",
                         a->global_kind);
    return BSMM_OK;
}

bsmm_status bsmm_unpack_b(const void *packed, uint64_t packed_bytes, int64_t index,
                          const bsmm_matrix *b) {
    bsmm_packed_header h = {.bytes = 0};
    bsmm_operand from = {.data_bytes = 0}, to;
    BSMM_TRY(take_header(packed, packed_bytes, &h));
    BSMM_TRY(find_matrix(packed, &h, index, &from));
    BSMM_TRY(bsmm_operand_take(b, "b", &to));
    BSMM_TRY(bsmm_operand_check_memory(&to, "b"));
    BSMM_TRY(check_same(&from, &to));
    bsmm_compact_unpack(&from, &to);
    /* The scale is copied as bytes, because packed weights that are a tensor of a file may lie at
     * any address. */
    const float one = 1;
    if (to.m.global_scale)
        memcpy(to.m.global_scale, from.m.global_scale ? (const void *)from.m.global_scale : &one,
               sizeof one);
    return BSMM_OK;
}

/* Computes the size of packed weights from a product whose A has one row. Packed weights do not
 * depend on the number of rows, and every kernel that packs B accepts any number of rows. */
static bsmm_status measure(const bsmm_matmul_desc *desc, bsmm_packed *packed) {
    _Alignas(BSMM_STATE_ALIGNMENT) uint8_t state[BSMM_STATE_BYTES];
    bsmm_request request;
    bsmm_operand stored;
    const bsmm_kernel *kernel;
    BSMM_TRY(bsmm_describe(desc, &request));
    BSMM_TRY(bsmm_packed_take(&request, &stored));
    BSMM_TRY(bsmm_kernel_choose(&request, state, &kernel));
    return bsmm_packed_make(kernel, &request, &stored, state, packed);
}

bsmm_status bsmm_packed_bytes(const char *device, uint32_t form, const bsmm_matrix *b,
                              int64_t groups, const bsmm_format *a, uint64_t *bytes) {
    bsmm_operand stored;
    bsmm_packed packed;
    if (!bytes) return bsmm_fail(BSMM_E_INVALID, "bytes: value is NULL; must be given");
    if (!bsmm_packed_form_row(form))
        return bsmm_fail(BSMM_E_INVALID, "form: value is %u; must be a form of bsmm_packed_form_at",
                         form);
    if (form == BSMM_PACKED_WIDE && !a)
        return bsmm_fail(BSMM_E_INVALID, "a: value is NULL; must be given for form wide");
    if (groups < 0)
        return bsmm_fail(BSMM_E_INVALID, "groups: value is %lld; must be 0 or more",
                         (long long)groups);
    BSMM_TRY(bsmm_operand_take(b, "b", &stored));
    const bsmm_format f32 = {.elem = BSMM_ELEM_F32};
    const bsmm_group group = {
        .struct_size = sizeof group, .kind = BSMM_GROUP_BATCH, .count = groups};
    bsmm_matrix of_a = {sizeof of_a, .format = a ? *a : f32, .rows = 1, .cols = stored.m.cols};
    const bsmm_matrix of_d = {sizeof of_d, .format = f32, .rows = 1, .cols = stored.m.rows};
    const bsmm_matmul_desc desc = {.struct_size = sizeof desc,
                                   .a = &of_a,
                                   .b = b,
                                   .d = &of_d,
                                   .device = device,
                                   .b_packed = form,
                                   .group = groups ? &group : NULL};
    BSMM_TRY(measure(&desc, &packed));
    *bytes = packed.header.bytes;
    return BSMM_OK;
}
