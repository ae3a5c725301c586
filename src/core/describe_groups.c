/* Validates a bsmm_group, which describes several products that run as one plan (docs/GROUPS.md):
 * first its own fields, then how it fits the matrices. Each of these products is a group. In a
 * stack, each group has a matrix of its own. In a divided matrix, each group owns a range of the
 * rows or columns of one matrix. */
#include "base/choices.h"
#include "core/epilogue.h"
#include "core/groups.h"

static const char *const kinds[] = {"none", "batch", "rows", "masked", "k"};

static bool divides_extent(uint32_t kind) {
    return kind == BSMM_GROUP_ROWS || kind == BSMM_GROUP_K;
}

static bsmm_status check_flags(const bsmm_group *g) {
    bool gathers = g->flags & BSMM_GROUP_GATHER_A, separate = g->flags & BSMM_GROUP_SCALES_APART;
    if (g->flags & ~(uint32_t)BSMM_ALL_GROUP_FLAGS)
        return bsmm_fail(BSMM_E_INVALID,
                         "group.flags: value is %u; must be a sum of bsmm_group_flags", g->flags);
    if (gathers && g->kind != BSMM_GROUP_ROWS && g->kind != BSMM_GROUP_MASKED)
        return bsmm_fail(BSMM_E_INVALID,
                         "group.flags: value is %u; GATHER_A is for kinds rows and masked",
                         g->flags);
    if (separate && !divides_extent(g->kind))
        return bsmm_fail(BSMM_E_INVALID,
                         "group.flags: value is %u; SCALES_APART is for kinds rows and k",
                         g->flags);
    return BSMM_OK;
}

static bsmm_status check_number(const char *field, int64_t value, int64_t most) {
    if (value >= 0 && value <= most) return BSMM_OK;
    return bsmm_fail(BSMM_E_INVALID, "group.%s: value is %lld; must be 0 to %lld", field,
                     (long long)value, (long long)most);
}

static bsmm_status check_fields(const bsmm_group *g) {
    if (g->kind >= BSMM_COUNT(kinds))
        return bsmm_fail(BSMM_E_INVALID, "group.kind: value is %u; must be 0 to %zu", g->kind,
                         BSMM_COUNT(kinds) - 1);
    if (g->reserved)
        return bsmm_fail(BSMM_E_INVALID, "group.reserved: value is %u; must be 0", g->reserved);
    BSMM_TRY(check_flags(g));
    BSMM_TRY(check_number("count", g->count, INT32_MAX));
    BSMM_TRY(check_number("expected_rows", g->expected_rows, INT64_MAX));
    return check_number("align", g->align, divides_extent(g->kind) ? INT32_MAX : 0);
}

bsmm_status bsmm_groups_take(const bsmm_group *from, bsmm_group *copy, bsmm_groups *to) {
    BSMM_TRY(bsmm_take_struct(copy, sizeof *copy, from, "group"));
    BSMM_TRY(check_fields(copy));
    *to = (bsmm_groups){.kind = copy->kind,
                        .flags = copy->flags,
                        .count = copy->count,
                        .align = copy->align ? copy->align : 1,
                        .expected_rows = copy->expected_rows,
                        .sizes = copy->sizes,
                        .gather = copy->gather,
                        .alpha = copy->alpha};
    return BSMM_OK;
}

/* The groups divide the rows of an operand (or the columns, if `by_cols` is true). A group may only
 * begin at a row (column) that is a multiple of the number that this function returns. At such a
 * row, three things begin anew: a byte of codes, a scale block, and a tile of the scale layout,
 * i.e. a rectangle of scales that are adjacent in memory. If the scales of each group are an array
 * of their own (`separate`), only the byte of codes matters. */
static int64_t grain_of(const bsmm_operand *o, bool by_cols, bool separate) {
    bool contiguous = by_cols == (o->m.order == BSMM_ORDER_ROW);
    int64_t grain = contiguous ? bsmm_elem_group(o->m.format.elem) : 1;
    if (separate || o->m.format.scale == BSMM_SCALE_NONE) return grain;
    int64_t block = by_cols ? o->m.format.block_cols : o->m.format.block_rows;
    int64_t scales = block * (by_cols ? o->map.tile_cols : o->map.tile_rows);
    return scales % grain == 0 ? scales : scales * grain;
}

/* Refuses scale layouts in which the scales of consecutive rows are adjacent and padding follows
 * the last row, as in cublas_vec128. If groups divided the rows of such a layout, the padding of
 * one group would overlap the scales of the next group or lie past the end of the buffer. */
static bsmm_status check_pitch(const bsmm_operand *o, const char *what) {
    bool by_pitch = o->map.digit_count == 0 && o->map.tile_row_step == 1;
    if (!by_pitch || !bsmm_layout_pads(o->m.scale_layout)) return BSMM_OK;
    return bsmm_fail(
        BSMM_E_INVALID,
        "%s.scale_layout: value is %s; its padding follows the last row, so groups that "
        "divide rows need SCALES_APART",
        what, bsmm_layout_name(o->m.scale_layout));
}

static bsmm_status check_shared_out(const bsmm_groups *g, const bsmm_operand *o, const char *what) {
    bool by_cols = g->kind == BSMM_GROUP_K, separate = g->flags & BSMM_GROUP_SCALES_APART;
    int64_t extent = by_cols ? o->m.cols : o->m.rows, grain = grain_of(o, by_cols, separate);
    if (extent > INT32_MAX)
        return bsmm_fail(BSMM_E_INVALID, "%s.%s: value is %lld; groups divide at most %d", what,
                         by_cols ? "cols" : "rows", (long long)extent, INT32_MAX);
    if (g->count > 1 && g->align % grain != 0)
        return bsmm_fail(BSMM_E_INVALID,
                         "group.align: value is %lld; must be a multiple of %lld, where bytes and "
                         "scales of %s begin",
                         (long long)g->align, (long long)grain, what);
    if (separate && o->m.scale_ld)
        return bsmm_fail(BSMM_E_INVALID, "%s.scale_ld: value is %lld; must be 0 with SCALES_APART",
                         what, (long long)o->m.scale_ld);
    return separate ? BSMM_OK : check_pitch(o, what);
}

/* Each of `count` groups stores its scales in whole tiles of the scale layout. A tile covers `tile`
 * rows (or columns), and a group begins a new tile. Returns the largest number of tiles that the
 * groups can need together if they have `extent` rows in all. In the worst case, each group has one
 * row more than a multiple of `tile`, so its last tile is almost empty. */
static uint64_t most_grains(int64_t extent, int64_t tile, int64_t count) {
    int64_t parts = bsmm_min_i64(count, extent), rest = extent % tile;
    int64_t grains = extent / tile + parts;
    return (uint64_t)(parts > rest ? grains - bsmm_ceil_div(parts - rest, tile) : grains);
}

/* Computes the largest number of bytes that the scales of a matrix can need if each group owns a
 * range of its rows or columns and stores its scales separately. The sizes of the groups are known
 * only when the plan runs. */
static bsmm_status measure_separate(const bsmm_groups *g, const char *what, bsmm_operand *o) {
    bool by_cols = g->kind == BSMM_GROUP_K;
    int64_t extent = by_cols ? o->m.cols : o->m.rows;
    int64_t tile = by_cols ? o->map.tile_cols : o->map.tile_rows;
    bsmm_operand grain = *o;
    uint64_t bytes = bsmm_scale_row_of(o->m.format.scale)->bytes;
    o->scale_bytes = 0;
    if (extent == 0 || g->count == 0 || o->map.count == 0) return BSMM_OK;
    /* Padded layouts without tiles round the stride between their rows or columns of scales up to a
     * multiple of 4 scales. */
    if (o->map.digit_count == 0 && bsmm_layout_pads(o->m.scale_layout)) tile = 4;
    tile *= by_cols ? o->m.format.block_cols : o->m.format.block_rows;
    *(by_cols ? &grain.m.cols : &grain.m.rows) = tile;
    uint64_t scales = bsmm_operand_own_scales(&grain, o, 0);
    if (bsmm_mul_u64(scales, most_grains(extent, tile, g->count), &scales) &&
        bsmm_mul_u64(scales, bytes, &o->scale_bytes) && o->scale_bytes <= INT64_MAX)
        return BSMM_OK;
    return bsmm_fail(BSMM_E_INVALID, "%s.rows x cols: the scales' size overflows", what);
}

bsmm_status bsmm_groups_take_operand(const bsmm_groups *g, const bsmm_matrix *from,
                                     const char *what, bsmm_operand *to) {
    bsmm_matrix matrix;
    bool has_scales = from && (g->flags & BSMM_GROUP_SCALES_APART);
    if (!has_scales) return bsmm_operand_take(from, what, to);
    BSMM_TRY(bsmm_take_struct(&matrix, sizeof matrix, from, what));
    uint64_t declared = matrix.scale_bytes;
    matrix.struct_size = sizeof matrix;
    matrix.scale_bytes = 0;
    BSMM_TRY(bsmm_operand_take(&matrix, what, to));
    if (to->m.format.scale == BSMM_SCALE_NONE) return BSMM_OK;
    BSMM_TRY(measure_separate(g, what, to));
    to->m.scale_bytes = declared;
    if (declared >= to->scale_bytes) return BSMM_OK;
    return bsmm_fail(
        BSMM_E_INVALID,
        "%s.scale_bytes: value is %llu; must be at least bsmm_group_scale_bytes (%llu)", what,
        (unsigned long long)declared, (unsigned long long)to->scale_bytes);
}

static bsmm_status check_step(const char *field, int64_t step, bool shared, int64_t multiple) {
    if (step == BSMM_GROUP_SHARED && shared) return BSMM_OK;
    if (step >= 0 && step <= INT64_MAX / 64 && step % multiple == 0) return BSMM_OK;
    return bsmm_fail(BSMM_E_INVALID, "group.%s: value is %lld; must be %s0 or a multiple of %lld",
                     field, (long long)step, shared ? "BSMM_GROUP_SHARED, " : "",
                     (long long)multiple);
}

/* packed_elements and packed_scales return the default distance from one group's matrix to the next
 * group's matrix, in elements and in scales. The default applies if the caller gave no distance.
 * The matrices then follow each other without gaps. */
static uint64_t packed_elements(const bsmm_operand *o) {
    int64_t lines = o->m.order == BSMM_ORDER_ROW ? o->m.rows : o->m.cols;
    uint64_t elements;
    return bsmm_mul_u64((uint64_t)lines, (uint64_t)o->m.ld, &elements) ? elements : UINT64_MAX;
}
static uint64_t packed_scales(const bsmm_operand *o) {
    bool by_rows = o->m.scale_layout == BSMM_LAYOUT_ROW_MAJOR;
    if (!o->m.scale_ld) return o->map.count;
    return (uint64_t)((by_rows ? o->map.rows : o->map.cols) * o->m.scale_ld);
}

static uint64_t resolve(int64_t given, uint64_t packed) {
    return given == BSMM_GROUP_SHARED ? 0 : given ? (uint64_t)given : packed;
}

/* Sets o->data_bytes and o->scale_bytes, which are the sizes of one matrix, to the total sizes of
 * the matrices of all `count` groups. Later checks of the operand's memory then cover all of these
 * matrices. */
static bsmm_status widen(bsmm_operand *o, const char *what, int64_t count, bsmm_group_step step) {
    uint64_t data, scales, more = count > 0 ? (uint64_t)count - 1 : 0;
    uint64_t scale_size =
        o->m.format.scale == BSMM_SCALE_NONE ? 0 : bsmm_scale_row_of(o->m.format.scale)->bytes;
    if (bsmm_mul_u64(more, step.elements, &data) &&
        bsmm_elem_bytes(o->m.format.elem, data, &data) &&
        bsmm_add_u64(data, o->data_bytes, &data) && bsmm_mul_u64(more, step.scales, &scales) &&
        bsmm_mul_u64(scales, scale_size, &scales) &&
        bsmm_add_u64(scales, o->scale_bytes, &scales) && data <= INT64_MAX && scales <= INT64_MAX) {
        o->data_bytes = o->data_bytes && count ? data : 0;
        o->scale_bytes = o->scale_bytes && count ? scales : 0;
        return BSMM_OK;
    }
    return bsmm_fail(BSMM_E_INVALID, "group.count: value is %lld; the size of %s overflows",
                     (long long)count, what);
}

/* `stack` is an operand with one matrix for each group (a stack). `given` and `scales_given` are
 * the strides between these matrices as the caller gave them, in elements and in scales; 0 means
 * without gaps. place_stack stores the validated strides in *to. */
typedef struct stack {
    bsmm_operand *o;
    const char *what, *field, *scale_field;
    int64_t given, scales_given;
    bsmm_group_step *to;
    bool is_stack, is_written;
} stack;

/* Tells whether the rows of the matrices of `count` groups are interleaved in memory without
 * overlap: row r of all matrices, then row r + 1 of all matrices. This is so if a tensor (M, G, N)
 * is described as G matrices of M x N. `step` is the stride between matrices in elements. */
static bool lie_side_by_side(const bsmm_operand *o, uint64_t step, int64_t count) {
    uint64_t line = (uint64_t)(o->m.order == BSMM_ORDER_ROW ? o->m.cols : o->m.rows);
    uint64_t pitch = (uint64_t)o->m.ld;
    return step >= line && line > 0 && (uint64_t)count - 1 <= (pitch - line) / step;
}

static bsmm_status check_written(const stack *s, int64_t count) {
    const bsmm_operand *o = s->o;
    uint64_t step = s->to->elements, bytes;
    if (count < 2 || o->data_bytes == 0) return BSMM_OK;
    bool separate = !bsmm_elem_bytes(o->m.format.elem, step, &bytes) || bytes >= o->data_bytes;
    if (!separate && !lie_side_by_side(o, step, count))
        return bsmm_fail(BSMM_E_INVALID,
                         "group.%s: value is %lld; matrices of %llu bytes would overlap", s->field,
                         (long long)s->given, (unsigned long long)o->data_bytes);
    if (s->to->scales >= o->map.count) return BSMM_OK;
    return bsmm_fail(BSMM_E_INVALID,
                     "group.%s: value is %lld; matrices of %llu scales would overlap",
                     s->scale_field, (long long)s->scales_given, (unsigned long long)o->map.count);
}

static bsmm_status place_stack(const bsmm_groups *g, const stack *s) {
    if (!s->is_stack && (s->given || s->scales_given))
        return bsmm_fail(BSMM_E_INVALID,
                         "group.%s: value is %lld; must be 0, because %s is no stack with kind %s",
                         s->given ? s->field : s->scale_field,
                         (long long)(s->given ? s->given : s->scales_given), s->what,
                         kinds[g->kind]);
    if (!s->is_stack) return BSMM_OK;
    int64_t multiple = bsmm_elem_group(s->o->m.format.elem);
    BSMM_TRY(check_step(s->field, s->given, !s->is_written, multiple));
    BSMM_TRY(check_step(s->scale_field, s->scales_given, !s->is_written, 1));
    bool shared = s->given == BSMM_GROUP_SHARED;
    if (shared && s->scales_given > 0)
        return bsmm_fail(BSMM_E_INVALID,
                         "group.%s: value is %lld; must be 0 or BSMM_GROUP_SHARED, as group.%s is "
                         "BSMM_GROUP_SHARED",
                         s->scale_field, (long long)s->scales_given, s->field);
    *s->to = (bsmm_group_step){resolve(s->given, packed_elements(s->o)),
                               shared ? 0 : resolve(s->scales_given, packed_scales(s->o))};
    if (s->is_written) BSMM_TRY(check_written(s, g->count));
    return widen(s->o, s->what, g->count, *s->to);
}

static bsmm_status place_stacks(const bsmm_group *from, bsmm_groups *g, bsmm_product *p,
                                bsmm_operand *residual) {
    static bsmm_operand none;
    bool k = g->kind == BSMM_GROUP_K, rows = g->kind == BSMM_GROUP_ROWS;
    bool gathers = g->flags & BSMM_GROUP_GATHER_A;
    const stack stacks[] = {
        {&p->a, "a", "a_step", "a_scale_step", from->a_step, from->a_scale_step, &g->a,
         !k && !rows && !gathers, false},
        {&p->b, "b", "b_step", "b_scale_step", from->b_step, from->b_scale_step, &g->b, !k, false},
        {&p->c, "c", "c_step", "", from->c_step, 0, &g->c, !rows && p->has_c, false},
        {&p->d, "d", "d_step", "d_scale_step", from->d_step, from->d_scale_step, &g->d, !rows,
         true},
        {residual ? residual : &none, "residual", "residual_step", "", from->residual_step, 0,
         &g->residual, !rows && residual, false},
    };
    for (size_t i = 0; i < BSMM_COUNT(stacks); i++)
        BSMM_TRY(place_stack(g, &stacks[i]));
    return BSMM_OK;
}

/* Describes the buffer into which the rows of A that a group selects are copied before a CPU kernel
 * multiplies them. The copy has no gaps between rows, and its scales are in row-major order. */
static bsmm_status describe_gathered(bsmm_groups *g, const bsmm_product *p) {
    if (!(g->flags & BSMM_GROUP_GATHER_A)) return BSMM_OK;
    if (p->a.m.format.scale != BSMM_SCALE_NONE && p->a.m.format.block_rows != 1)
        return bsmm_fail(BSMM_E_INVALID,
                         "a.format.block_rows: value is %u; must be 1 with GATHER_A",
                         p->a.m.format.block_rows);
    const bsmm_matrix m = {.struct_size = sizeof m,
                           .format = p->a.m.format,
                           .rows = p->d.m.rows,
                           .cols = p->a.m.cols,
                           .global_kind = p->a.m.global_kind};
    return bsmm_operand_take(&m, "a, gathered", &g->gathered);
}

static bsmm_status check_each(const bsmm_groups *g, const bsmm_product *p) {
    bool scales_cols = p->epilogue && p->epilogue->scale_by & BSMM_SCALE_BY_COL;
    if (g->flags & BSMM_GROUP_EACH_BIAS && p->bias_elem == BSMM_ELEM_NONE)
        return bsmm_fail(BSMM_E_INVALID, "group.flags: value is %u; EACH_BIAS needs a bias",
                         g->flags);
    if (g->flags & BSMM_GROUP_EACH_COL_SCALE && !scales_cols)
        return bsmm_fail(BSMM_E_INVALID,
                         "group.flags: value is %u; EACH_COL_SCALE needs BSMM_SCALE_BY_COL",
                         g->flags);
    if (g->kind == BSMM_GROUP_K && p->packed_form)
        return bsmm_fail(BSMM_E_INVALID,
                         "b_packed: value is %u; must be 0, because groups of kind k divide B",
                         p->packed_form);
    if (p->any_rows)
        return bsmm_fail(BSMM_E_INVALID, "flags: value is %d; groups give row counts themselves",
                         BSMM_MATMUL_ANY_ROWS);
    return BSMM_OK;
}

bsmm_status bsmm_groups_place(const bsmm_group *from, bsmm_groups *g, bsmm_product *p,
                              bsmm_product_epilogue *epilogue) {
    bsmm_operand *residual = epilogue && epilogue->has_residual ? &epilogue->residual : NULL;
    BSMM_TRY(check_each(g, p));
    if (g->kind == BSMM_GROUP_ROWS) {
        if (!(g->flags & BSMM_GROUP_GATHER_A)) BSMM_TRY(check_shared_out(g, &p->a, "a"));
        BSMM_TRY(check_shared_out(g, &p->d, "d"));
    }
    if (g->kind == BSMM_GROUP_K) {
        BSMM_TRY(check_shared_out(g, &p->a, "a"));
        BSMM_TRY(check_shared_out(g, &p->b, "b"));
    }
    if (p->d.m.rows > INT32_MAX && g->kind == BSMM_GROUP_MASKED)
        return bsmm_fail(BSMM_E_INVALID, "d.rows: value is %lld; groups take at most %d",
                         (long long)p->d.m.rows, INT32_MAX);
    BSMM_TRY(place_stacks(from, g, p, residual));
    return describe_gathered(g, p);
}

/* Returns the total number of rows of D over all groups. Arrays with one value per row have this
 * length. */
int64_t bsmm_groups_rows(const bsmm_product *p) {
    bool one = !p->groups || p->groups->kind == BSMM_GROUP_ROWS;
    return one ? p->d.m.rows : p->d.m.rows * p->groups->count;
}

bsmm_status bsmm_group_scale_bytes(const bsmm_group *group, const bsmm_matrix *matrix,
                                   uint64_t *bytes) {
    bsmm_group copy;
    bsmm_groups g;
    bsmm_operand o;
    BSMM_TRY(bsmm_groups_take(group, &copy, &g));
    if (!(g.flags & BSMM_GROUP_SCALES_APART))
        return bsmm_fail(BSMM_E_INVALID, "group.flags: value is %u; must hold SCALES_APART",
                         g.flags);
    if (!bytes) return bsmm_fail(BSMM_E_INVALID, "bytes: value is NULL; must be given");
    bsmm_matrix m;
    BSMM_TRY(bsmm_take_struct(&m, sizeof m, matrix, "matrix"));
    m.struct_size = sizeof m;
    m.scale_bytes = UINT64_MAX;
    if (m.format.scale == BSMM_SCALE_NONE) m.scale_bytes = 0;
    BSMM_TRY(bsmm_groups_take_operand(&g, &m, "matrix", &o));
    *bytes = o.scale_bytes;
    return BSMM_OK;
}
