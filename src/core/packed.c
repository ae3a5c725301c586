/* Implements the table of the forms of packed weights (the copies of B that bsmm_pack_b makes) and
 * their headers. It also finds the arrays of one matrix (panels, codes, scales) in packed
 * weights. */
#include "core/packed.h"
#include "core/panels.h"
#include "core/parts.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const bsmm_packed_form_info forms[] = {
    {sizeof forms[0], BSMM_PACKED_WIDE, "wide", 1, 0, "cpu cuda",
     "an engine's panels of decoded values, then B itself"},
    {sizeof forms[0], BSMM_PACKED_COMPACT, "compact", 1, 0, "cpu cuda hip",
     "codes, then scales, in one order for all kernels: strips of 16 rows on a cpu, rows on a GPU"},
};

const bsmm_packed_form_info *bsmm_packed_form_row(uint32_t form) {
    for (size_t i = 0; i < BSMM_COUNT(forms); i++)
        if (forms[i].form == form) return &forms[i];
    return NULL;
}

uint32_t bsmm_packed_form_named(const char *name, size_t size) {
    for (size_t i = 0; i < BSMM_COUNT(forms); i++)
        if (strncmp(forms[i].name, name, size) == 0) return forms[i].form;
    return BSMM_PACKED_NONE;
}

uint32_t bsmm_packed_form_of(const bsmm_product *p) {
    return p->packed_form ? p->packed_form : BSMM_PACKED_WIDE;
}

bsmm_status bsmm_packed_form_at(uint32_t index, bsmm_packed_form_info *info) {
    if (index >= BSMM_COUNT(forms))
        return bsmm_fail(BSMM_E_NOT_FOUND, "index: value is %u; there are %zu forms", index,
                         BSMM_COUNT(forms));
    return bsmm_give_struct(info, &forms[index], sizeof forms[index], "info");
}

static const char magic[8] = "bsmmpb2", older_magic[8] = "bsmmpb1";

enum { ALIGNMENT = 64 };

/* Rounds a size in bytes up to a multiple of ALIGNMENT. On overflow it returns UINT64_MAX. */
static uint64_t align(uint64_t bytes) {
    return bytes > INT64_MAX ? UINT64_MAX : (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static uint64_t sum(uint64_t a, uint64_t b) {
    uint64_t result;
    return bsmm_add_u64(a, b, &result) ? result : UINT64_MAX;
}

uint64_t bsmm_packed_matrix_bytes(const bsmm_operand *view, uint64_t panel_bytes) {
    uint64_t b = sum(align(view->data_bytes), align(view->scale_bytes));
    return sum(sum(panel_bytes, b), ALIGNMENT);
}

bsmm_status bsmm_packed_view(bool host_memory, const bsmm_operand *stored, bsmm_operand *view) {
    if (host_memory) return bsmm_compact_view(stored, view);
    const bsmm_matrix rows = {.struct_size = sizeof rows,
                              .format = stored->m.format,
                              .rows = stored->m.rows,
                              .cols = stored->m.cols,
                              .global_kind = stored->m.global_kind};
    return bsmm_operand_take(&rows, "b", view);
}

bool bsmm_packed_same_codes(const bsmm_operand *a, const bsmm_operand *b) {
    return a->m.order == b->m.order && a->m.ld == b->m.ld;
}

/* Tells whether two operands of one format and shape store their codes and scales at the same
 * offsets. The operand `rows` has ORDER_ROW and row-major scales without gaps. */
static bool same_arrays(const bsmm_operand *o, const bsmm_operand *rows) {
    return bsmm_packed_same_codes(o, rows) && o->m.scale_layout == rows->m.scale_layout &&
           o->map.tile_row_step == rows->map.tile_row_step;
}

bsmm_status bsmm_packed_take(bsmm_request *request, bsmm_operand *stored) {
    bsmm_product *p = &request->product;
    const bsmm_backend *backend = bsmm_backend_of(request->device);
    const bool host_memory = !backend || backend->host_memory;
    *stored = p->b;
    /* A CPU kernel makes bitwise identical panels (packed values of B) from a row-major and from a
     * column-major B, so it reads B as the caller stores it. A GPU kernel makes its panels from the
     * row-major copy of B that packed weights also contain. */
    if (!p->packed_form || (host_memory && p->packed_form == BSMM_PACKED_WIDE)) return BSMM_OK;
    return bsmm_packed_view(host_memory, stored, &p->b);
}

/* Returns the kind of device that the header of packed weights names. A simulated GPU shares packed
 * weights with the GPU whose kernels it runs. */
static const char *device_kind(const bsmm_backend *backend) {
    return backend->kernels ? backend->kernels : backend->name;
}

/* Copies text into to[size], which the caller has filled with zeros. Longer text is truncated so
 * that a NUL follows it. */
static void put_text(char *to, size_t size, const char *text) {
    size_t length = strlen(text);
    memcpy(to, text, length < size ? length : size - 1);
}

static bsmm_packed_header header_of(const bsmm_packed *packed, const bsmm_product *p,
                                    const char *panels) {
    const bsmm_packed_form_info *form = bsmm_packed_form_row(bsmm_packed_form_of(p));
    const bsmm_matrix *b = &packed->stored.m;
    bsmm_packed_header h = {.version = form->version,
                            .global_kind = b->global_kind,
                            .format = b->format,
                            .rows = b->rows,
                            .cols = b->cols,
                            .groups = p->groups ? bsmm_parts_b_count(p) : 0};
    memcpy(h.magic, magic, sizeof h.magic);
    put_text(h.form, sizeof h.form, form->name);
    put_text(h.device, sizeof h.device, device_kind(p->backend));
    put_text(h.panels, sizeof h.panels, panels);
    uint64_t bytes, count = p->groups ? (uint64_t)h.groups : 1;
    bool fits = bsmm_mul_u64(count, packed->matrix_bytes, &bytes) &&
                bsmm_add_u64(bytes, sizeof h, &h.bytes) && h.bytes <= INT64_MAX;
    if (!fits) h.bytes = UINT64_MAX;
    return h;
}

/* Finds the size and the name of the panels of one matrix B, i.e. of B's decoded values in the
 * order in which a kernel reads them. There are two cases. If runs of the plan read the panels, the
 * plan's kernel chooses their order. If runs read the copy of B behind the panels instead, the
 * order is that of the plain product (panels.h), which has no C, epilogue or flags. Returns false
 * if no kernel packs panels for the plain product. */
static bool find_panels(const bsmm_kernel *kernel, const bsmm_request *request, const void *state,
                        bsmm_packed *packed, char *name) {
    const bsmm_product *p = &request->product;
    bsmm_panels plain;
    bsmm_product part;
    if (p->b_packed) {
        bsmm_part_widest(p, &part);
        packed->panel_bytes = align(kernel->packed_b_bytes(&part, state));
        kernel->name_panels(&part, state, name, BSMM_PANELS_NAME_BYTES);
        return true;
    }
    const char *const wanted = request->settled_panels[0] ? request->settled_panels : NULL;
    const bsmm_operand *const b = p->backend->host_memory ? &packed->stored : &packed->view;
    if (!bsmm_panels_find(p, b, request->kernel, wanted, &plain)) return false;
    packed->panel_bytes = align(plain.kernel->packed_b_bytes(&plain.product, plain.state));
    memcpy(name, plain.name, sizeof plain.name);
    return true;
}

bsmm_status bsmm_packed_make(const bsmm_kernel *kernel, const bsmm_request *request,
                             const bsmm_operand *stored, const void *state, bsmm_packed *packed) {
    const bsmm_product *p = &request->product;
    bool wide = bsmm_packed_form_of(p) == BSMM_PACKED_WIDE;
    char panels[sizeof packed->header.panels] = "";
    packed->header.bytes = packed->panel_bytes = 0;
    if (!p->packed_form && !kernel->pack_b) return BSMM_OK;
    /* With groups of kind K, each group owns a range of B's columns, so no group's B is a whole
     * matrix. Such a B cannot be packed, and header.bytes stays 0. */
    if (p->groups && p->groups->kind == BSMM_GROUP_K) return BSMM_OK;
    packed->stored = *stored;
    bsmm_status status = bsmm_packed_view(p->backend->host_memory, stored, &packed->view);
    if (status != BSMM_OK) return p->packed_form ? status : BSMM_OK;
    /* A plan whose runs do not read packed weights can pack B on a GPU only if the caller stores
     * elements and scales of B in the same order as packed weights do
     * (bsmm_plan_packed_b_bytes). */
    if (!p->packed_form && !p->backend->host_memory && !same_arrays(stored, &packed->view))
        return BSMM_OK;
    if (wide && !find_panels(kernel, request, state, packed, panels)) return BSMM_OK;
    packed->matrix_bytes = bsmm_packed_matrix_bytes(&packed->view, packed->panel_bytes);
    packed->header = header_of(packed, p, panels);
    if (packed->header.bytes <= INT64_MAX) return BSMM_OK;
    packed->header.bytes = 0;
    if (!p->packed_form) return BSMM_OK;
    return bsmm_fail(BSMM_E_INVALID, "b.rows x cols: value is %lld x %lld; packed_b overflows",
                     (long long)stored->m.rows, (long long)stored->m.cols);
}

bsmm_packed_arrays bsmm_packed_arrays_of(const bsmm_operand *view, const void *matrix,
                                         uint64_t panel_bytes) {
    bsmm_packed_arrays at = {.panels = (uint8_t *)(uintptr_t)matrix};
    at.codes = at.panels + panel_bytes;
    at.scales = at.codes + align(view->data_bytes);
    at.global = at.scales + align(view->scale_bytes);
    return at;
}

void bsmm_packed_set(const bsmm_packed_arrays *at, bool host_memory, bsmm_operand *b) {
    b->m.data = at->codes;
    if (b->m.format.scale != BSMM_SCALE_NONE) b->m.scales = at->scales;
    b->m.global_scale = (float *)(void *)at->global;
    if (!host_memory) return;
    uint32_t given;
    memcpy(&given, at->global + sizeof(float), sizeof given);
    if (!given) b->m.global_scale = NULL;
}

void bsmm_packed_bind(const bsmm_packed *packed, const void *given, int64_t index,
                      bsmm_product *p) {
    const uint8_t *matrix =
        (const uint8_t *)given + sizeof packed->header + (uint64_t)index * packed->matrix_bytes;
    const bsmm_packed_arrays at = bsmm_packed_arrays_of(&packed->view, matrix, packed->panel_bytes);
    p->packed_b = matrix;
    bsmm_packed_set(&at, p->backend->host_memory, &p->b);
}

typedef struct header_field {
    const char *name;
    /* `offset` and `bytes` are the offset and the size of the field in bytes. A number has 4 or 8
     * bytes, and text has 8 or 16. */
    uint32_t offset, bytes;
    bool text;
} header_field;

#define FIELD(field, is_text)                                                                      \
    {                                                                                              \
#        field, offsetof(bsmm_packed_header, field),                                               \
            sizeof(((const bsmm_packed_header *)NULL)->field), is_text                             \
    }

/* `fields` holds the fields of the header in the order in which they are compared. */
static const header_field fields[] = {
    FIELD(form, true),
    FIELD(version, false),
    FIELD(device, true),
    FIELD(panels, true),
    FIELD(format.elem, false),
    FIELD(format.scale, false),
    FIELD(format.block_rows, false),
    FIELD(format.block_cols, false),
    FIELD(global_kind, false),
    FIELD(rows, false),
    FIELD(cols, false),
    FIELD(groups, false),
    FIELD(bytes, false),
};

/* Copies text from a header into a message. The header may come from a damaged file, so characters
 * that cannot be printed become '?'. */
static void copy_text(const uint8_t *from, size_t size, char *to) {
    size_t i = 0;
    for (; i < size && from[i]; i++)
        to[i] = (char)(from[i] < ' ' || from[i] > '~' ? '?' : from[i]);
    to[i] = 0;
}

static void describe_field(const header_field *f, const void *header, char *to, size_t size) {
    const uint8_t *at = (const uint8_t *)header + f->offset;
    char text[32];
    if (f->text) {
        copy_text(at, f->bytes, text);
        snprintf(to, size, "\"%s\"", text);
        return;
    }
    uint32_t word;
    uint64_t number;
    memcpy(&word, at, sizeof word);
    memcpy(&number, at, f->bytes == sizeof number ? sizeof number : sizeof word);
    snprintf(to, size, "%llu", (unsigned long long)(f->bytes == sizeof word ? word : number));
}

bsmm_status bsmm_packed_check_magic(const void *given) {
    char text[32];
    if (memcmp(given, magic, sizeof magic) == 0) return BSMM_OK;
    if (memcmp(given, older_magic, sizeof older_magic) == 0)
        return bsmm_fail(
            BSMM_E_INVALID,
            "packed_b.magic: value is \"%s\", which an older library wrote; must be \"%s\" "
            "(pack B again)",
            older_magic, magic);
    copy_text(given, sizeof magic, text);
    return bsmm_fail(BSMM_E_INVALID, "packed_b.magic: value is \"%s\"; must be \"%s\"", text,
                     magic);
}

/* Compares the header of packed weights with the expected header, field by field, and fails with a
 * message about the first field that differs. */
static bsmm_status explain_header(const bsmm_packed_header *wanted, const void *given) {
    char is[48], must_be[48];
    BSMM_TRY(bsmm_packed_check_magic(given));
    for (size_t i = 0; i < BSMM_COUNT(fields); i++) {
        const header_field *f = &fields[i];
        if (memcmp((const uint8_t *)wanted + f->offset, (const uint8_t *)given + f->offset,
                   f->bytes) == 0)
            continue;
        describe_field(f, given, is, sizeof is);
        describe_field(f, wanted, must_be, sizeof must_be);
        return bsmm_fail(BSMM_E_INVALID, "packed_b.%s: value is %s; must be %s for this plan",
                         f->name, is, must_be);
    }
    return bsmm_fail(BSMM_E_INVALID, "packed_b.zero: a byte is not 0; must be 0");
}

bsmm_status bsmm_packed_check(const bsmm_packed *packed, const bsmm_product *p, const void *given) {
    if (!p->backend->host_memory || memcmp(given, &packed->header, sizeof packed->header) == 0)
        return BSMM_OK;
    return explain_header(&packed->header, given);
}
