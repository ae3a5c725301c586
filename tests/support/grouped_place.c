/* Finds the elements and scales of each group in the matrices of a grouped call. */
#include "grouped.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { G = GROUPED_COUNT, N = GROUPED_N };

bool grouped_has(const grouped_case *c, uint32_t flag) {
    return c->group.flags & flag;
}

bool grouped_is_stack(const grouped_case *c, char matrix) {
    switch (c->group.kind) {
    case BSMM_GROUP_ROWS:
        return matrix == 'b';
    case BSMM_GROUP_K:
        return matrix != 'a' && matrix != 'b';
    default:
        return matrix != 'a' || !grouped_has(c, BSMM_GROUP_GATHER_A);
    }
}

static int64_t align_of(const grouped_case *c) {
    return c->group.align ? c->group.align : 1;
}

int64_t grouped_starts(const grouped_case *c, int64_t starts[G]) {
    int64_t end = 0;
    for (int g = 0; g < G; g++) {
        starts[g] = (end + align_of(c) - 1) / align_of(c) * align_of(c);
        end = starts[g] + c->extents[g];
    }
    return end;
}

int64_t grouped_d_cols(const grouped_case *c) {
    return c->gated ? N / 2 : N;
}

static bsmm_operand operand_of(const bsmm_matrix *m) {
    bsmm_matrix plain = *m;
    bsmm_operand o;
    /* With a scale_bytes of 0, bsmm_operand_take does not check the size of the buffer of scales.
     * If the scales of the groups are separate arrays (BSMM_GROUP_SCALES_APART), scale_bytes is the
     * size of all these arrays, and the check, which expects one array, would fail. */
    plain.scale_bytes = 0;
    assert_int_equal(bsmm_operand_take(&plain, "m", &o), BSMM_OK);
    return o;
}

uint64_t grouped_element_at(const bsmm_matrix *m, int64_t r, int64_t c) {
    bsmm_operand o = operand_of(m);
    return bsmm_operand_index(&o, r, c);
}

uint64_t grouped_scale_at(const bsmm_matrix *m, int64_t i, int64_t j) {
    bsmm_operand o = operand_of(m);
    return bsmm_scale_map_at(&o.map, i, j);
}

uint64_t grouped_scale_step(const bsmm_operand *o, int64_t given) {
    if (given) return (uint64_t)given;
    if (!o->m.scale_ld) return o->map.count;
    const bool by_rows = o->m.scale_layout == BSMM_LAYOUT_ROW_MAJOR;
    return (uint64_t)(o->m.scale_ld * (by_rows ? o->map.rows : o->map.cols));
}

/* Says where the matrix of one group lies in the matrix of the whole grouped product. Its first
 * element is at row `row` and column `col`. If own_scales is true, the scales of each group are a
 * separate array, and scale_base is the index of the group's first scale in the scale buffer. */
typedef struct placement {
    int64_t row, col;
    uint64_t element_base, scale_base;
    bool own_scales;
} placement;

static void visit_part(const test_matrix *part, const test_matrix *all, const placement *p,
                       grouped_visitor *f) {
    const bsmm_format *format = &part->m.format;
    const bsmm_operand from = operand_of(&part->m), to = operand_of(&all->m);
    for (int64_t r = 0; r < part->m.rows; r++)
        for (int64_t c = 0; c < part->m.cols; c++)
            f(format->elem, part->m.data, bsmm_operand_index(&from, r, c), all->m.data,
              p->element_base + bsmm_operand_index(&to, p->row + r, p->col + c));
    if (!part->m.scales || part->m.rows == 0 || part->m.cols == 0) return;
    uint32_t scale_elem = bsmm_scale_row_of(format->scale)->elem;
    int64_t row = p->row / format->block_rows, col = p->col / format->block_cols;
    for (int64_t i = 0; i < from.map.rows; i++)
        for (int64_t j = 0; j < from.map.cols; j++) {
            uint64_t at = bsmm_scale_map_at(&from.map, i, j), there = at;
            if (!p->own_scales) there = bsmm_scale_map_at(&to.map, row + i, col + j);
            f(scale_elem, part->m.scales, at, all->m.scales, p->scale_base + there);
        }
}

/* Returns where group g's matrix lies in a matrix of the grouped call. If each group has scales of
 * its own, *scales is the number of the group's first scale, and the function adds the group's
 * number of scales to *scales. */
static placement place_of(const grouped_case *c, char matrix, int g, const test_matrix *part,
                          const test_matrix *all, int64_t step, int64_t scale_step,
                          uint64_t *scales) {
    int64_t starts[G];
    grouped_starts(c, starts);
    if (grouped_is_stack(c, matrix)) {
        bsmm_operand o;
        assert_int_equal(bsmm_operand_take(&all->m, "all", &o), BSMM_OK);
        int64_t lines = o.m.order == BSMM_ORDER_ROW ? o.m.rows : o.m.cols;
        uint64_t elements = step ? (uint64_t)step : (uint64_t)(lines * o.m.ld);
        uint64_t codes = grouped_scale_step(&o, scale_step);
        if (step == BSMM_GROUP_SHARED) elements = codes = 0;
        return (placement){.element_base = (uint64_t)g * elements,
                           .scale_base = (uint64_t)g * codes};
    }
    placement p = {.row = c->group.kind == BSMM_GROUP_K ? 0 : starts[g],
                   .col = c->group.kind == BSMM_GROUP_K ? starts[g] : 0};
    if (!grouped_has(c, BSMM_GROUP_SCALES_APART) || !all->m.scales) return p;
    p.own_scales = true;
    p.scale_base = *scales;
    *scales += part->scale_bytes / bsmm_scale_row_of(part->m.format.scale)->bytes;
    return p;
}

void grouped_visit(const grouped_case *c, char matrix, size_t member, grouped_part *parts,
                   const test_matrix *all, int64_t step, int64_t scale_step, grouped_visitor *f) {
    uint64_t scales = 0;
    for (int g = 0; g < G; g++) {
        const test_matrix *part = (const test_matrix *)(const void *)((char *)&parts[g] + member);
        placement p = place_of(c, matrix, g, part, all, step, scale_step, &scales);
        visit_part(part, all, &p, f);
    }
}
