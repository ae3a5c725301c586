/* Validates a caller's matrix: it checks every field and computes the sizes of the buffers. */
#include "base/choices.h"
#include "format/format.h"

#include <math.h>

/* Checks that a field has one of the `count` values of its enum. */
static bsmm_status check_enum(const char *what, const char *field, uint32_t value, uint32_t count) {
    if (value < count) return BSMM_OK;
    return bsmm_fail(BSMM_E_INVALID, "%s.%s: value is %u; must be 0 to %u", what, field, value,
                     count - 1);
}

static bsmm_status check_unscaled(const bsmm_matrix *m, const char *what) {
    if (m->format.block_rows || m->format.block_cols)
        return bsmm_fail(BSMM_E_INVALID,
                         "%s.format.block: value is %ux%u; must be 0x0 when there is no scale",
                         what, m->format.block_rows, m->format.block_cols);
    if (m->scales || m->scale_bytes)
        return bsmm_fail(BSMM_E_INVALID,
                         "%s.scales: given, but %s.format.scale is none; must be NULL", what, what);
    if (m->scale_layout || m->scale_ld || m->scale_tile_rows || m->scale_tile_cols)
        return bsmm_fail(BSMM_E_INVALID,
                         "%s.scale_layout: value is %u; scale fields must be 0 when there is no "
                         "scale",
                         what, m->scale_layout);
    return BSMM_OK;
}

static bsmm_status check_block(const bsmm_matrix *m, const char *what) {
    static const uint32_t largest = 1u << 24;
    uint32_t group = bsmm_elem_group(m->format.elem);
    if (m->format.block_rows < 1 || m->format.block_rows > largest)
        return bsmm_fail(BSMM_E_INVALID, "%s.format.block_rows: value is %u; must be 1 to %u", what,
                         m->format.block_rows, largest);
    if (m->format.block_cols < 2 || m->format.block_cols > largest ||
        m->format.block_cols % group != 0)
        return bsmm_fail(BSMM_E_INVALID,
                         "%s.format.block_cols: value is %u; must be 2 to %u and a multiple of the "
                         "%u elements that are packed together",
                         what, m->format.block_cols, largest, group);
    return BSMM_OK;
}

static bsmm_status check_elem(const char *what, uint32_t elem) {
    if (elem < BSMM_ELEM_COUNT && bsmm_elem_traits_of[elem].in_matrices) return BSMM_OK;
    const bsmm_elem_info *info = bsmm_elem_row(elem);
    if (info)
        return bsmm_fail(BSMM_E_INVALID,
                         "%s.format.elem: value is %u (%s), which is for scales alone; must be an "
                         "element format of matrices",
                         what, elem, info->name);
    return bsmm_fail(BSMM_E_INVALID,
                     "%s.format.elem: value is %u; must be an element format, 1 to %d", what, elem,
                     BSMM_ELEM_COUNT - 1);
}

static bsmm_status check_format(const bsmm_matrix *m, const char *what) {
    BSMM_TRY(check_elem(what, m->format.elem));
    BSMM_TRY(check_enum(what, "format.scale", m->format.scale, BSMM_SCALE_COUNT));
    BSMM_TRY(check_enum(what, "order", m->order, BSMM_ORDER_COUNT));
    BSMM_TRY(check_enum(what, "global_kind", m->global_kind, BSMM_GLOBAL_COUNT));
    BSMM_TRY(check_enum(what, "scale_layout", m->scale_layout, BSMM_LAYOUT_COUNT));
    return m->format.scale == BSMM_SCALE_NONE ? check_unscaled(m, what) : check_block(m, what);
}

static bsmm_status check_extent(const char *what, const char *field, int64_t value) {
    if (value >= 0 && value <= INT64_MAX / 64) return BSMM_OK;
    return bsmm_fail(BSMM_E_INVALID, "%s.%s: value is %lld; must be 0 to %lld", what, field,
                     (long long)value, (long long)(INT64_MAX / 64));
}

/* Sets the leading dimension `ld` of a matrix to its default if it is 0, and computes `data_bytes`,
 * the size of its elements in bytes. */
static bsmm_status derive_data(bsmm_operand *o, const char *what) {
    bsmm_matrix *m = &o->m;
    bool by_rows = m->order == BSMM_ORDER_ROW;
    int64_t contiguous = by_rows ? m->cols : m->rows, lines = by_rows ? m->rows : m->cols;
    uint32_t group = bsmm_elem_group(m->format.elem);
    int64_t padded = bsmm_round_up(contiguous, group);
    if (m->ld && (m->ld < padded || m->ld % group))
        return bsmm_fail(BSMM_E_INVALID,
                         "%s.ld: value is %lld; must be 0 or at least %lld and a multiple of %u",
                         what, (long long)m->ld, (long long)padded, group);
    if (!m->ld) m->ld = padded;
    uint64_t elements = 0;
    bool fits = true;
    if (lines && contiguous)
        fits = bsmm_mul_u64((uint64_t)lines - 1, (uint64_t)m->ld, &elements) &&
               bsmm_add_u64(elements, (uint64_t)padded, &elements);
    if (!fits || !bsmm_elem_bytes(m->format.elem, elements, &o->data_bytes) ||
        o->data_bytes > INT64_MAX)
        return bsmm_fail(BSMM_E_INVALID, "%s.rows x cols: value is %lld x %lld; the size overflows",
                         what, (long long)m->rows, (long long)m->cols);
    if (m->data_bytes && m->data_bytes < o->data_bytes)
        return bsmm_fail(BSMM_E_INVALID, "%s.data_bytes: value is %llu; must be at least %llu",
                         what, (unsigned long long)m->data_bytes,
                         (unsigned long long)o->data_bytes);
    return BSMM_OK;
}

/* Returns the largest size in bytes that a caller may declare for the scale buffer. If the caller
 * chose scale_ld, the buffer may extend to the end of the last row or column, past its last
 * scale. */
static uint64_t most_scale_bytes(const bsmm_operand *o, uint32_t bytes) {
    if (!o->m.scale_ld || !o->map.count) return o->scale_bytes;
    bool by_rows = o->m.scale_layout == BSMM_LAYOUT_ROW_MAJOR;
    int64_t contiguous = by_rows ? o->map.cols : o->map.rows;
    return o->scale_bytes + (uint64_t)(o->m.scale_ld - contiguous) * bytes;
}

static bsmm_status derive_scales(bsmm_operand *o, const char *what) {
    if (o->m.format.scale == BSMM_SCALE_NONE) return BSMM_OK;
    BSMM_TRY(bsmm_scale_map_make(&o->m, what, &o->map));
    uint32_t bytes = bsmm_scale_row_of(o->m.format.scale)->bytes;
    if (!bsmm_mul_u64(o->map.count, bytes, &o->scale_bytes) || o->scale_bytes > INT64_MAX)
        return bsmm_fail(BSMM_E_INVALID, "%s.rows x cols: the scales' size overflows", what);
    const char *layout = bsmm_layout_name(o->m.scale_layout);
    if (o->m.scale_bytes &&
        (o->m.scale_bytes < o->scale_bytes || o->m.scale_bytes > most_scale_bytes(o, bytes)))
        return bsmm_fail(BSMM_E_INVALID,
                         "%s.scale_bytes: value is %llu; the layout %s of %lld x %lld scales takes "
                         "%llu",
                         what, (unsigned long long)o->m.scale_bytes, layout, (long long)o->map.rows,
                         (long long)o->map.cols, (unsigned long long)o->scale_bytes);
    return BSMM_OK;
}

bsmm_status bsmm_operand_take(const bsmm_matrix *from, const char *what, bsmm_operand *to) {
    *to = (bsmm_operand){0};
    BSMM_TRY(bsmm_take_struct(&to->m, sizeof to->m, from, what));
    BSMM_TRY(check_format(&to->m, what));
    BSMM_TRY(check_extent(what, "rows", to->m.rows));
    BSMM_TRY(check_extent(what, "cols", to->m.cols));
    BSMM_TRY(check_extent(what, "ld", to->m.ld));
    BSMM_TRY(check_extent(what, "scale_ld", to->m.scale_ld));
    BSMM_TRY(derive_data(to, what));
    return derive_scales(to, what);
}

static bsmm_status check_pointer(const char *what, const char *field, const void *pointer,
                                 uint32_t alignment) {
    if (!pointer)
        return bsmm_fail(BSMM_E_INVALID, "%s.%s: value is NULL; must be given", what, field);
    if (!bsmm_is_aligned(pointer, alignment))
        return bsmm_fail(BSMM_E_INVALID, "%s.%s: value is %p; must be aligned to %u bytes", what,
                         field, pointer, alignment);
    return BSMM_OK;
}

bsmm_status bsmm_operand_check_memory(const bsmm_operand *o, const char *what) {
    uint32_t bits = bsmm_elem_row(o->m.format.elem)->bits;
    if (o->m.global_scale)
        BSMM_TRY(check_pointer(what, "global_scale", o->m.global_scale, _Alignof(float)));
    if (o->data_bytes == 0) return BSMM_OK;
    BSMM_TRY(check_pointer(what, "data", o->m.data, bits > 8 ? bits / 8 : 1));
    /* scale_bytes is 0 if the matrix is unscaled or empty, or if it is a stack of matrices for 0
     * groups. */
    if (o->scale_bytes == 0) return BSMM_OK;
    BSMM_TRY(
        check_pointer(what, "scales", o->m.scales, bsmm_scale_row_of(o->m.format.scale)->bytes));
    if (bsmm_layout_pads(o->m.scale_layout) && !o->m.scale_bytes)
        return bsmm_fail(
            BSMM_E_INVALID,
            "%s.scale_bytes: value is 0; the layout %s pads, so the buffer's size must "
            "be declared (it takes %llu)",
            what, bsmm_layout_name(o->m.scale_layout), (unsigned long long)o->scale_bytes);
    return BSMM_OK;
}

double bsmm_operand_global(const bsmm_operand *o) {
    if (!o->m.global_scale) return 1;
    double global = (double)*o->m.global_scale;
    return o->m.global_kind == BSMM_GLOBAL_DIVISOR ? 1 / global : global;
}

static bsmm_status size_of(const bsmm_matrix *matrix, uint64_t *bytes, bool scales) {
    bsmm_operand operand;
    BSMM_TRY(bsmm_operand_take(matrix, "matrix", &operand));
    if (!bytes) return bsmm_fail(BSMM_E_INVALID, "bytes: value is NULL; must be given");
    *bytes = scales ? operand.scale_bytes : operand.data_bytes;
    return BSMM_OK;
}

bsmm_status bsmm_data_bytes(const bsmm_matrix *matrix, uint64_t *bytes) {
    return size_of(matrix, bytes, false);
}

bsmm_status bsmm_scale_bytes(const bsmm_matrix *matrix, uint64_t *bytes) {
    return size_of(matrix, bytes, true);
}
