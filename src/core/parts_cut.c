/* Makes one part of a product: the first rows of A and D that a run uses, or one group. A part is a
 * copy of the product with its own pointers and extents. */
#include "core/epilogue.h"
#include "core/parts.h"
#include "core/portions.h"

#include <string.h>

static void copy_product(const bsmm_product *product, bsmm_part *part) {
    part->product = *product;
    part->product.groups = NULL;
    part->product.any_rows = false;
    if (!product->epilogue) return;
    part->epilogue = *product->epilogue;
    part->product.epilogue = &part->epilogue;
}

void bsmm_part_widest(const bsmm_product *product, bsmm_product *part) {
    if (bsmm_has_portions(product)) {
        bsmm_portion_first(product, part);
        return;
    }
    *part = *product;
    if (!bsmm_has_parts(product)) return;
    part->groups = NULL;
    part->any_rows = false;
    if (product->groups && product->groups->flags & BSMM_GROUP_GATHER_A)
        part->a = product->groups->gathered;
}

/* Reduces D, C, the residual and the row factors to rows [row, row + rows). With of_a, the function
 * also reduces A. The caller passes false for of_a if A's rows are gathered, because A's row
 * numbers then differ from D's. */
static void keep_rows(bsmm_part *part, int64_t row, int64_t rows, bool of_a) {
    bsmm_product *p = &part->product;
    bsmm_product_epilogue *f = &part->epilogue;
    if (of_a) bsmm_operand_keep_rows(&p->a, row, rows);
    bsmm_operand_keep_rows(&p->d, row, rows);
    if (p->has_c) bsmm_operand_keep_rows(&p->c, row, rows);
    if (!p->epilogue) return;
    if (f->has_residual) bsmm_operand_keep_rows(&f->residual, row, rows);
    if (f->row_scale) f->row_scale += row;
}

void bsmm_part_take_rows(const bsmm_product *product, int64_t rows, bsmm_part *part) {
    copy_product(product, part);
    keep_rows(part, 0, rows, true);
}

static void step_to(bsmm_operand *o, const bsmm_group_step *step, uint64_t index) {
    if (step->elements) bsmm_operand_move(o, index * step->elements, index * step->scales);
}

static void take_matrices(const bsmm_groups *g, uint64_t index, bsmm_part *part) {
    step_to(&part->product.a, &g->a, index);
    step_to(&part->product.b, &g->b, index);
    step_to(&part->product.c, &g->c, index);
    step_to(&part->product.d, &g->d, index);
    if (part->product.epilogue) step_to(&part->epilogue.residual, &g->residual, index);
}

static void step_global(bsmm_operand *o, bool each, int64_t index) {
    if (each && o->m.global_scale) o->m.global_scale += index;
}

/* Sets the inputs that the caller may give separately for each group: second-level scales (one for
 * a group's whole matrix), alpha, bias, and the factors of D's rows and columns. */
static void take_values(const bsmm_groups *g, int64_t index, bsmm_part *part) {
    bsmm_product *p = &part->product;
    step_global(&p->a, g->flags & BSMM_GROUP_EACH_A_GLOBAL, index);
    step_global(&p->b, g->flags & BSMM_GROUP_EACH_B_GLOBAL, index);
    step_global(&p->d, g->flags & BSMM_GROUP_EACH_D_GLOBAL, index);
    if (g->flags & BSMM_GROUP_EACH_ALPHA) p->alpha *= (double)g->alpha[index];
    if (g->flags & BSMM_GROUP_EACH_BIAS)
        p->bias = (const uint8_t *)p->bias +
                  index * p->b.m.rows * (bsmm_elem_row(p->bias_elem)->bits / 8);
    if (!p->epilogue) return;
    if (g->flags & BSMM_GROUP_EACH_COL_SCALE) part->epilogue.col_scale += index * p->d.m.cols;
    if (part->epilogue.row_scale && g->kind != BSMM_GROUP_ROWS)
        part->epilogue.row_scale += index * p->d.m.rows;
}

static int64_t clamp(int64_t value, int64_t least, int64_t most) {
    return value < least ? least : bsmm_min_i64(value, most);
}

/* Returns the first row or column of group number `index` of a grouped product, and stores the
 * number of the group's rows or columns in *count. The groups divide `extent` rows or columns. A
 * group's end comes from g->sizes, an array that was not checked before, so it is clamped. */
static int64_t next_range(const bsmm_groups *g, int64_t index, int64_t extent,
                          bsmm_part_cursor *cursor, int64_t *count) {
    int64_t start = bsmm_min_i64(bsmm_round_up(cursor->end, g->align), extent);
    cursor->end = clamp(g->sizes[index], start, extent);
    *count = cursor->end - start;
    return start;
}

/* If groups store their scales separately, points the scales of `part`, the matrix of one group, to
 * the scales of this group. `offset` counts the scales of the groups before; the function adds the
 * number of this group's scales to the offset. */
static void take_own_scales(const bsmm_operand *whole, bsmm_operand *part, uint64_t *offset) {
    *offset += bsmm_operand_own_scales(part, whole, *offset);
}

static int64_t take_rows(const bsmm_product *product, int64_t index, bsmm_part_cursor *cursor,
                         bsmm_part *part) {
    const bsmm_groups *g = product->groups;
    bool gathers = g->flags & BSMM_GROUP_GATHER_A;
    int64_t count, start = next_range(g, index, product->d.m.rows, cursor, &count);
    keep_rows(part, start, count, !gathers);
    if (!(g->flags & BSMM_GROUP_SCALES_APART)) return start;
    if (!gathers) take_own_scales(&product->a, &part->product.a, &cursor->scales[0]);
    take_own_scales(&product->d, &part->product.d, &cursor->scales[1]);
    return start;
}

static void take_cols(const bsmm_product *product, int64_t index, bsmm_part_cursor *cursor,
                      bsmm_part *part) {
    const bsmm_groups *g = product->groups;
    int64_t count, start = next_range(g, index, product->a.m.cols, cursor, &count);
    bsmm_operand_keep_cols(&part->product.a, start, count);
    bsmm_operand_keep_cols(&part->product.b, start, count);
    if (!(g->flags & BSMM_GROUP_SCALES_APART)) return;
    take_own_scales(&product->a, &part->product.a, &cursor->scales[0]);
    take_own_scales(&product->b, &part->product.b, &cursor->scales[1]);
}

int64_t bsmm_part_take_group(const bsmm_product *product, int64_t index, bsmm_part_cursor *cursor,
                             bsmm_part *part) {
    const bsmm_groups *g = product->groups;
    copy_product(product, part);
    take_matrices(g, (uint64_t)index, part);
    take_values(g, index, part);
    if (g->kind == BSMM_GROUP_ROWS) return take_rows(product, index, cursor, part);
    if (g->kind == BSMM_GROUP_K) take_cols(product, index, cursor, part);
    if (g->kind == BSMM_GROUP_MASKED)
        keep_rows(part, 0, clamp(g->sizes[index], 0, product->d.m.rows),
                  !(g->flags & BSMM_GROUP_GATHER_A));
    return index * product->d.m.rows;
}

uint64_t bsmm_part_gathered_bytes(const bsmm_groups *g) {
    if (!(g->flags & BSMM_GROUP_GATHER_A)) return 0;
    return bsmm_align64(g->gathered.data_bytes) + bsmm_align64(g->gathered.scale_bytes);
}

static void copy_elements(const bsmm_operand *from, int64_t r, bsmm_operand *to, int64_t i) {
    uint32_t elem = from->m.format.elem;
    for (int64_t c = 0; c < from->m.cols; c++)
        bsmm_elem_store(elem, to->m.data, bsmm_operand_index(to, i, c),
                        bsmm_elem_load(elem, from->m.data, bsmm_operand_index(from, r, c)));
}

static void copy_row(const bsmm_operand *from, int64_t r, bsmm_operand *to, int64_t i) {
    uint64_t bits = bsmm_elem_row(from->m.format.elem)->bits, row = (uint64_t)to->m.ld * bits / 8;
    uint32_t scale = from->m.format.scale;
    if (from->m.order == BSMM_ORDER_ROW && from->m.cols == to->m.ld)
        memcpy((uint8_t *)to->m.data + (uint64_t)i * row,
               (const uint8_t *)from->m.data + (uint64_t)r * (uint64_t)from->m.ld * bits / 8, row);
    else
        copy_elements(from, r, to, i);
    for (int64_t c = 0; c < to->map.cols; c++)
        bsmm_scale_store_code(
            scale, to->m.scales, bsmm_scale_map_at(&to->map, i, c),
            bsmm_scale_load_code(scale, from->m.scales, bsmm_scale_map_at(&from->map, r, c)));
}

static void clear_rows(bsmm_operand *o) {
    uint64_t rows = (uint64_t)o->m.rows, bits = bsmm_elem_row(o->m.format.elem)->bits;
    memset(o->m.data, 0, rows * ((uint64_t)o->m.ld * bits / 8));
    if (o->m.format.scale != BSMM_SCALE_NONE)
        memset(o->m.scales, 0,
               rows * o->map.tile_row_step * bsmm_scale_row_of(o->m.format.scale)->bytes);
}

/* Copies the selected rows of A. An index outside A selects a row of zeros, whose bytes are all 0.
 * Code 0 is +0 in every element format, and stays +0 under any scale with code 0. */
void bsmm_part_gather(const bsmm_groups *g, const int32_t *rows, void *memory, bsmm_product *part) {
    const bsmm_operand from = part->a;
    part->a = g->gathered;
    part->a.m.data = memory;
    part->a.m.scales = (uint8_t *)memory + bsmm_align64(g->gathered.data_bytes);
    part->a.m.global_scale = from.m.global_scale;
    bsmm_operand_keep_rows(&part->a, 0, part->d.m.rows);
    clear_rows(&part->a);
    for (int64_t i = 0; i < part->d.m.rows; i++)
        if (rows[i] >= 0 && rows[i] < from.m.rows) copy_row(&from, rows[i], &part->a, i);
}
