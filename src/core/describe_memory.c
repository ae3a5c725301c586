/* Validates the memory of a run. All buffers that the product needs must be given, aligned, and in
 * the memory of the product's device. A buffer that the run writes must not overlap another
 * buffer. */
#include "core/epilogue.h"
#include "core/groups.h"

#include <stddef.h>
#include <string.h>

/* These bits stand for the optional inputs of a product. If the description of a product has such
 * an input, the caller must pass a buffer for it to every run. */
typedef enum part {
    HAS_C = 1,
    HAS_BIAS = 2,
    HAS_RESIDUAL = 4,
    HAS_ROW_SCALE = 8,
    HAS_COL_SCALE = 16,
    HAS_SIZES = 32,
    HAS_GATHER = 64,
    HAS_ALPHA = 128
} part;

static const struct {
    uint32_t part;
    size_t at; /* `at` is the offset of the input's pointer in bsmm_buffers. */
    const char *field, *rule;
} part_fields[] = {
    {HAS_C, offsetof(bsmm_buffers, c), "c", "desc.beta is 0"},
    {HAS_BIAS, offsetof(bsmm_buffers, bias), "bias", "desc.bias_elem is 0"},
    {HAS_RESIDUAL, offsetof(bsmm_buffers, residual), "residual", "epilogue has no residual"},
    {HAS_ROW_SCALE, offsetof(bsmm_buffers, row_scale), "row_scale",
     "epilogue.scale_by has no BSMM_SCALE_BY_ROW"},
    {HAS_COL_SCALE, offsetof(bsmm_buffers, col_scale), "col_scale",
     "epilogue.scale_by has no BSMM_SCALE_BY_COL"},
    {HAS_SIZES, offsetof(bsmm_buffers, group_sizes), "group_sizes",
     "group.kind is none of ROWS, MASKED and K"},
    {HAS_GATHER, offsetof(bsmm_buffers, gather), "gather",
     "group.flags has no BSMM_GROUP_GATHER_A"},
    {HAS_ALPHA, offsetof(bsmm_buffers, group_alpha), "group_alpha",
     "group.flags has no BSMM_GROUP_EACH_ALPHA"},
};

static uint32_t when(bool condition, uint32_t value) {
    return condition ? value : 0;
}

static uint32_t parts_of(const bsmm_product *p) {
    uint32_t parts = when(p->has_c, HAS_C) | when(p->bias_elem, HAS_BIAS);
    if (p->epilogue)
        parts |= when(p->epilogue->has_residual, HAS_RESIDUAL) |
                 when(p->epilogue->scale_by & BSMM_SCALE_BY_ROW, HAS_ROW_SCALE) |
                 when(p->epilogue->scale_by & BSMM_SCALE_BY_COL, HAS_COL_SCALE);
    if (p->groups)
        parts |= when(p->groups->kind != BSMM_GROUP_BATCH, HAS_SIZES) |
                 when(p->groups->flags & BSMM_GROUP_GATHER_A, HAS_GATHER) |
                 when(p->groups->flags & BSMM_GROUP_EACH_ALPHA, HAS_ALPHA);
    return parts;
}

static uint32_t parts_given(const bsmm_buffers *b) {
    return when(b->c, HAS_C) | when(b->bias, HAS_BIAS) | when(b->residual, HAS_RESIDUAL) |
           when(b->row_scale, HAS_ROW_SCALE) | when(b->col_scale, HAS_COL_SCALE) |
           when(b->group_sizes, HAS_SIZES) | when(b->gather, HAS_GATHER) |
           when(b->group_alpha, HAS_ALPHA);
}

/* Returns true if the caller gives a buffer for any of the optional inputs, such as C, the bias or
 * the residual. */
static bool has_optional(const bsmm_buffers *b) {
    return (uintptr_t)b->c | (uintptr_t)b->bias | (uintptr_t)b->residual | (uintptr_t)b->row_scale |
           (uintptr_t)b->col_scale | (uintptr_t)b->group_sizes | (uintptr_t)b->gather |
           (uintptr_t)b->group_alpha;
}

bsmm_status bsmm_check_surplus(const bsmm_product *p, const bsmm_buffers *buffers) {
    /* Most products have no optional inputs. This test avoids the full comparison below, which
     * takes a tenth of the time of all checks of a run. */
    if (!has_optional(buffers)) return BSMM_OK;
    uint32_t surplus = parts_given(buffers) & ~parts_of(p);
    if (!surplus) return BSMM_OK;
    size_t i = 0;
    while (!(surplus & part_fields[i].part))
        i++;
    const void *given;
    memcpy(&given, (const uint8_t *)buffers + part_fields[i].at, sizeof given);
    return bsmm_fail(BSMM_E_INVALID, "%s: value is %p; must be NULL, for the plan's %s",
                     part_fields[i].field, given, part_fields[i].rule);
}

static inline bool overlaps_parts(const bsmm_operand *o, const void *memory, uint64_t bytes) {
    return bsmm_overlap(o->m.data, o->data_bytes, memory, bytes) ||
           bsmm_overlap(o->m.scales, o->scale_bytes, memory, bytes);
}

/* Checks that the data and scales of D do not overlap memory that a run reads. */
static bsmm_status check_disjoint(const bsmm_operand *d, const void *read, uint64_t bytes,
                                  const char *what) {
    if (!overlaps_parts(d, read, bytes)) return BSMM_OK;
    return bsmm_fail(BSMM_E_INVALID, "d: its memory overlaps %s; must not", what);
}

/* Checks an array of `count` 4-byte values that a run reads. The array must be given, aligned and
 * in the device's memory, and it must not overlap D. */
static bsmm_status check_values(const bsmm_product *p, const void *values, int64_t count,
                                const char *what) {
    const uint64_t bytes = 4;
    if (count == 0) return BSMM_OK;
    if (!values)
        return bsmm_fail(BSMM_E_INVALID,
                         "%s: value is NULL; must be given, because the description uses it", what);
    if ((uintptr_t)values % bytes)
        return bsmm_fail(BSMM_E_INVALID, "%s: value is %p; must be aligned to %d bytes", what,
                         values, (int)bytes);
    BSMM_TRY(p->backend->check_pointer(p->device, values, what));
    return check_disjoint(&p->d, values, (uint64_t)count * bytes, what);
}

/* `value_array` describes an array of 4-byte values that a run reads. */
typedef struct value_array {
    const char *name;
    const void *values;
    int64_t count;
} value_array;

typedef struct value_arrays {
    value_array list[9];
    size_t count;
} value_arrays;

static void add_array(value_arrays *to, bool given, const char *name, const void *values,
                      int64_t count) {
    if (given) to->list[to->count++] = (value_array){name, values, count};
}

static void add_factors(const bsmm_product *p, value_arrays *to) {
    const bsmm_product_epilogue *f = p->epilogue;
    bool each = p->groups && p->groups->flags & BSMM_GROUP_EACH_COL_SCALE;
    add_array(to, f->scale_by & BSMM_SCALE_BY_ROW, "row_scale", f->row_scale, bsmm_groups_rows(p));
    add_array(to, f->scale_by & BSMM_SCALE_BY_COL, "col_scale", f->col_scale,
              p->d.m.cols * (each ? p->groups->count : 1));
}

static void add_groups(const bsmm_product *p, value_arrays *to) {
    const bsmm_groups *g = p->groups;
    add_array(to, g->kind != BSMM_GROUP_BATCH, "group_sizes", g->sizes, g->count);
    add_array(to, g->flags & BSMM_GROUP_GATHER_A, "gather", g->gather, bsmm_groups_rows(p));
    add_array(to, g->flags & BSMM_GROUP_EACH_ALPHA, "group_alpha", g->alpha, g->count);
    add_array(to, g->flags & BSMM_GROUP_EACH_A_GLOBAL, "a.global_scale", p->a.m.global_scale,
              g->count);
    add_array(to, g->flags & BSMM_GROUP_EACH_B_GLOBAL && !p->packed_form, "b.global_scale",
              p->b.m.global_scale, g->count);
    add_array(to, g->flags & BSMM_GROUP_EACH_D_GLOBAL, "d.global_scale", p->d.m.global_scale,
              g->count);
}

static value_arrays arrays_of(const bsmm_product *p) {
    value_arrays all;
    all.count = 0;
    if (p->epilogue) add_factors(p, &all);
    if (p->groups) add_groups(p, &all);
    add_array(&all, p->device_rows != NULL, "device_rows", p->device_rows, 1);
    return all;
}

/* Tells whether a product may read one of the arrays that arrays_of lists: scales of the epilogue,
 * sizes and factors of groups, gathered row numbers, or a row count in device memory. Most products
 * read none. Callers call has_arrays first, because arrays_of takes a hundredth of the time of a
 * small product. */
static bool has_arrays(const bsmm_product *p) {
    return p->epilogue || p->groups || p->device_rows;
}

static bsmm_status check_arrays(const bsmm_product *p) {
    if (!has_arrays(p)) return BSMM_OK;
    const value_arrays all = arrays_of(p);
    for (size_t i = 0; i < all.count; i++)
        BSMM_TRY(check_values(p, all.list[i].values, all.list[i].count, all.list[i].name));
    return BSMM_OK;
}

static bool same_place(const bsmm_operand *c, const bsmm_operand *d) {
    return c->m.data == d->m.data && c->m.order == d->m.order && c->m.ld == d->m.ld &&
           c->m.cols == d->m.cols && bsmm_format_equal(c->m.format, d->m.format);
}

/* C or the residual may be D itself, i.e. have the same memory and layout, because the kernel reads
 * each element before it overwrites it. Checks that the operand `o`, which is one of these two, is
 * D itself or does not overlap D. With groups, `step` is the distance in elements between the
 * operand's matrices of two groups, or 0 if all groups share one matrix. */
static bsmm_status check_addend_place(const bsmm_product *p, const bsmm_operand *o, uint64_t step,
                                      const char *what) {
    bool steps_alike = !p->groups || step == p->groups->d.elements;
    if (same_place(o, &p->d) && steps_alike) return BSMM_OK;
    if (!overlaps_parts(&p->d, o->m.data, o->data_bytes)) return BSMM_OK;
    return bsmm_fail(BSMM_E_INVALID,
                     "d: its memory overlaps %s, which must then be d itself; must not", what);
}

/* Checks that D does not overlap an operand's second-level scale, the one scale of the whole
 * matrix. */
static bsmm_status check_global(const bsmm_operand *d, const bsmm_operand *o, const char *what) {
    return check_disjoint(d, o->m.global_scale, sizeof *o->m.global_scale, what);
}

static bsmm_status check_d_disjoint(const bsmm_product *p) {
    const bsmm_operand *d = &p->d;
    BSMM_TRY(check_disjoint(d, p->a.m.data, p->a.data_bytes, "a"));
    BSMM_TRY(check_disjoint(d, p->a.m.scales, p->a.scale_bytes, "a's scales"));
    BSMM_TRY(check_disjoint(d, p->b.m.data, p->b.data_bytes, "b"));
    BSMM_TRY(check_disjoint(d, p->b.m.scales, p->b.scale_bytes, "b's scales"));
    BSMM_TRY(check_global(d, &p->a, "a.global_scale"));
    BSMM_TRY(check_global(d, &p->b, "b.global_scale"));
    BSMM_TRY(check_global(d, d, "d.global_scale"));
    if (bsmm_overlap(d->m.data, d->data_bytes, d->m.scales, d->scale_bytes))
        return bsmm_fail(BSMM_E_INVALID, "d.scales: overlaps d.data; must not");
    return p->has_c ? check_addend_place(p, &p->c, p->groups ? p->groups->c.elements : 0, "c")
                    : BSMM_OK;
}

/* Returns the size of the bias in bytes. The bias has one value for each row of B. With the flag
 * EACH_BIAS, each group has such an array of its own. */
static uint64_t bias_bytes(const bsmm_product *p) {
    bool each = p->groups && p->groups->flags & BSMM_GROUP_EACH_BIAS;
    uint64_t groups = each ? (uint64_t)p->groups->count : 1;
    if (p->bias_elem == BSMM_ELEM_NONE) return 0;
    return (uint64_t)p->b.m.rows * groups * bsmm_elem_row(p->bias_elem)->bits / 8;
}

static bsmm_status check_bias(const bsmm_product *p) {
    if (bias_bytes(p) == 0) return BSMM_OK;
    uint32_t bytes = bsmm_elem_row(p->bias_elem)->bits / 8;
    if (!p->bias)
        return bsmm_fail(BSMM_E_INVALID,
                         "bias: value is NULL; must be given, because bias_elem is set");
    if (!bsmm_is_aligned(p->bias, bytes))
        return bsmm_fail(BSMM_E_INVALID, "bias: value is %p; must be aligned to %u bytes", p->bias,
                         bytes);
    BSMM_TRY(p->backend->check_pointer(p->device, p->bias, "bias"));
    return check_disjoint(&p->d, p->bias, bias_bytes(p), "bias");
}

static bsmm_status check_operand(const bsmm_product *p, const bsmm_kernel *kernel,
                                 const bsmm_operand *o, const char *name) {
    const bsmm_place place = {.backend = p->backend, .device = p->device};
    return bsmm_place_check(&place, o, name, kernel->alignment, kernel->name);
}

bsmm_status bsmm_check_rows(const bsmm_product *p) {
    int64_t most = p->d.m.rows;
    if (!p->device_rows && (p->rows < 0 || p->rows > most))
        return bsmm_fail(BSMM_E_INVALID, "rows: value is %lld; must be 0 to d.rows (%lld)",
                         (long long)p->rows, (long long)most);
    return BSMM_OK;
}

static bsmm_status check_residual(const bsmm_product *p, const bsmm_kernel *kernel) {
    const bsmm_operand *residual = &p->epilogue->residual;
    BSMM_TRY(check_operand(p, kernel, residual, "residual"));
    return check_addend_place(p, residual, p->groups ? p->groups->residual.elements : 0,
                              "residual");
}

bsmm_status bsmm_check_b(const bsmm_product *p, const bsmm_kernel *kernel) {
    return check_operand(p, kernel, &p->b, "b");
}

/* Returns true if the data and scales of an operand are given and all of its buffers are aligned to
 * 4 bytes, which is enough for every format. If the function returns false, the operand may still
 * be valid, and the caller makes the full checks. */
static inline bool is_simple_operand(const bsmm_operand *o) {
    bool has_scales = o->m.format.scale != BSMM_SCALE_NONE;
    return o->data_bytes && o->m.data && bsmm_is_aligned(o->m.data, 4) &&
           bsmm_is_aligned(o->m.global_scale, 4) &&
           (!has_scales || (o->m.scales && bsmm_is_aligned(o->m.scales, 4) &&
                            (o->m.scale_bytes || o->m.scale_layout == BSMM_LAYOUT_ROW_MAJOR)));
}

static inline bool touches(const bsmm_operand *o, const void *memory, uint64_t bytes) {
    return bsmm_overlap(o->m.data, o->data_bytes, memory, bytes) ||
           bsmm_overlap(o->m.scales, o->scale_bytes, memory, bytes) ||
           bsmm_overlap(o->m.global_scale, sizeof *o->m.global_scale, memory, bytes);
}

/* Returns true if two ranges of memory do not overlap. For an empty range, it may return false,
 * although an empty range never overlaps. bsmm_overlap is exact, but needs more instructions. */
static inline bool are_disjoint(const void *a, uint64_t a_bytes, const void *b, uint64_t b_bytes) {
    return (uintptr_t)a + a_bytes <= (uintptr_t)b || (uintptr_t)b + b_bytes <= (uintptr_t)a;
}

/* Returns true if it is certain that no buffer of an operand overlaps a range of memory. A result
 * of false does not mean that a buffer overlaps the range: the caller must then check exactly. */
static inline bool is_clear_of(const bsmm_operand *o, const void *memory, uint64_t bytes) {
    return are_disjoint(o->m.data, o->data_bytes, memory, bytes) &&
           are_disjoint(o->m.scales, o->scale_bytes, memory, bytes) &&
           are_disjoint(o->m.global_scale, sizeof *o->m.global_scale, memory, bytes);
}

/* Returns true if C and the bias are absent, or given and aligned to 4 bytes. */
static inline bool are_addends_simple(const bsmm_product *p) {
    return (!p->has_c || is_simple_operand(&p->c)) &&
           (!p->bias_elem || (p->bias && bsmm_is_aligned(p->bias, 4)));
}

/* `range` is the data or the scales of D. Returns true if it is certain that A, B, C and the bias
 * do not overlap it. C may be the same matrix as D. If the function returns false, an overlap is
 * only possible, and the caller must check exactly. */
static inline bool are_inputs_clear_of(const bsmm_product *p, const void *range, uint64_t bytes) {
    return is_clear_of(&p->a, range, bytes) && is_clear_of(&p->b, range, bytes) &&
           (!p->has_c || same_place(&p->c, &p->d) || is_clear_of(&p->c, range, bytes)) &&
           (!p->bias_elem || are_disjoint(p->bias, bias_bytes(p), range, bytes));
}

/* Returns true if the scales of a block-scaled D overlap neither its data nor an input. */
static bool are_scales_disjoint(const bsmm_product *p) {
    const bsmm_matrix *d = &p->d.m;
    return are_inputs_clear_of(p, d->scales, p->d.scale_bytes) &&
           are_disjoint(d->data, p->d.data_bytes, d->scales, p->d.scale_bytes) &&
           are_disjoint(d->global_scale, sizeof *d->global_scale, d->scales, p->d.scale_bytes);
}

/* This is a quick test before the full checks of a product's memory, which would take a fifth of
 * the time of a tiny product. It knows only simple products: they lie in host memory, and read only
 * A, B, C and a bias. Returns true if the memory of such a product is certainly valid; the full
 * checks are then not needed. Returns false if the full checks must decide. */
static bool is_valid_simple(const bsmm_product *p, const bsmm_kernel *kernel) {
    const bsmm_operand *d = &p->d;
    bool is_simple = p->backend->host_memory && !kernel->alignment && !has_arrays(p);
    return is_simple && is_simple_operand(&p->a) && (p->packed_form || is_simple_operand(&p->b)) &&
           is_simple_operand(d) && are_addends_simple(p) &&
           are_inputs_clear_of(p, d->m.data, d->data_bytes) &&
           are_disjoint(d->m.global_scale, sizeof *d->m.global_scale, d->m.data, d->data_bytes) &&
           (d->m.format.scale == BSMM_SCALE_NONE || are_scales_disjoint(p));
}

bsmm_status bsmm_check_memory(const bsmm_product *p, const bsmm_kernel *kernel) {
    if (is_valid_simple(p, kernel)) return BSMM_OK;
    BSMM_TRY(check_operand(p, kernel, &p->a, "a"));
    if (!p->packed_form) BSMM_TRY(check_operand(p, kernel, &p->b, "b"));
    BSMM_TRY(check_operand(p, kernel, &p->d, "d"));
    if (p->has_c) BSMM_TRY(check_operand(p, kernel, &p->c, "c"));
    BSMM_TRY(check_bias(p));
    if (p->epilogue && p->epilogue->has_residual) BSMM_TRY(check_residual(p, kernel));
    BSMM_TRY(check_arrays(p));
    return check_d_disjoint(p);
}

static bsmm_status fail_overlap(const char *what, const char *with) {
    return bsmm_fail(BSMM_E_INVALID, "%s: its memory overlaps %s's; must not", what, with);
}

/* Returns true if a range of memory certainly overlaps no buffer of a product. If the function
 * returns false, the full checks decide. */
static bool is_room_simple(const bsmm_product *p, const void *memory, uint64_t bytes) {
    return !has_arrays(p) && is_clear_of(&p->a, memory, bytes) &&
           is_clear_of(&p->b, memory, bytes) && is_clear_of(&p->d, memory, bytes) &&
           (!p->has_c || is_clear_of(&p->c, memory, bytes)) &&
           (!p->bias || are_disjoint(p->bias, bias_bytes(p), memory, bytes));
}

bsmm_status bsmm_check_room(const bsmm_product *p, const void *memory, uint64_t bytes,
                            const char *what) {
    if (is_room_simple(p, memory, bytes)) return BSMM_OK;
    if (touches(&p->a, memory, bytes)) return fail_overlap(what, "a");
    if (touches(&p->b, memory, bytes)) return fail_overlap(what, "b");
    if (p->has_c && touches(&p->c, memory, bytes)) return fail_overlap(what, "c");
    if (touches(&p->d, memory, bytes)) return fail_overlap(what, "d");
    if (p->epilogue && p->epilogue->has_residual && touches(&p->epilogue->residual, memory, bytes))
        return fail_overlap(what, "the residual");
    if (p->bias && bsmm_overlap(p->bias, bias_bytes(p), memory, bytes))
        return fail_overlap(what, "the bias");
    if (!has_arrays(p)) return BSMM_OK;
    const value_arrays all = arrays_of(p);
    for (size_t i = 0; i < all.count; i++)
        if (bsmm_overlap(all.list[i].values, (uint64_t)all.list[i].count * 4, memory, bytes))
            return fail_overlap(what, all.list[i].name);
    return BSMM_OK;
}
