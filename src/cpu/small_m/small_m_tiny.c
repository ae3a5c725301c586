/* Tells which products are tiny (small_m_tiny.h), and applies the epilogue to a panel, i.e. to 16
 * columns of D. */
#include "cpu/small_m/small_m_tiny.h"

#include "base/cpu.h"
#include "cpu/pack/pack.h"
#include "cpu/small_m/small_m_bf16dot.h"

#include <string.h>

enum { LANES = BSMM_SMALL_M_LANES, STEP = BSMM_SMALL_M_STEP };

/* Returns true if the scales of a row are adjacent, and those of the next row follow them. */
static bool has_dense_scales(const bsmm_operand *o) {
    return o->map.digit_count == 0 && o->map.tile_row_step == (uint64_t)o->map.cols &&
           (o->map.cols == 1 || o->map.tile_col_step == 1);
}

/* Returns true if the scales that 16 rows have for one block along K are adjacent, as in compact
 * weights. */
static bool has_column_tiles(const bsmm_operand *o) {
    return o->m.scale_layout == BSMM_LAYOUT_TILE_CONTIGUOUS && o->map.tile_cols == 1 &&
           o->map.tile_rows == bsmm_min_i64(LANES, o->map.rows);
}

/* Returns true if the functions for tiny products can load the operand's scales. There are two
 * conditions. First, the scales of a panel's 16 rows must be adjacent or have a constant stride.
 * Second, a block of 8-bit scales must have one row. A block of fp32 scales must have one row or a
 * multiple of 16 rows, and all of K. */
static bool has_usable_scales(const bsmm_operand *o) {
    const bsmm_format *f = &o->m.format;
    if (f->scale == BSMM_SCALE_NONE) return true;
    if (!has_dense_scales(o) && (o->m.order == BSMM_ORDER_ROW || !has_column_tiles(o)))
        return false;
    if (f->scale != BSMM_SCALE_F32) return f->block_rows == 1;
    bool whole_panels = f->block_rows == 1 || f->block_rows % LANES == 0;
    return o->map.cols == 1 && whole_panels &&
           (has_dense_scales(o) || o->map.tile_row_step == o->map.tile_rows);
}

bool bsmm_small_m_is_tiny(const bsmm_product *p) {
    const bsmm_operand *a = &p->a, *b = &p->b;
    return a->m.rows > 0 && a->m.rows <= BSMM_TINY_ROWS && b->m.rows > 0 &&
           b->m.rows <= BSMM_TINY_COLS && a->m.cols > 0 && a->m.cols % STEP == 0 &&
           a->m.cols <= BSMM_TINY_STEPS * STEP && a->m.order == BSMM_ORDER_ROW &&
           (b->m.order == BSMM_ORDER_ROW || b->m.order == BSMM_ORDER_COMPACT) &&
           !bsmm_is_gated(p) && !p->recipe && has_usable_scales(a) && has_usable_scales(b);
}

bool bsmm_small_m_tiny_is_plain(const bsmm_product *p) {
    uint32_t elem = p->d.m.format.elem;
    return p->alpha == 1 && !p->has_c && !p->bias_elem && !p->epilogue && !p->a.m.global_scale &&
           !p->b.m.global_scale && !p->d.m.global_scale && p->d.m.order == BSMM_ORDER_ROW &&
           (elem == BSMM_ELEM_F32 || elem == BSMM_ELEM_BF16);
}

void bsmm_small_m_tiny_store(const bsmm_product *p, const bsmm_tiny_panel *panel) {
    double row_factors[BSMM_TINY_ROWS], factors[LANES], values[LANES];
    static const uint8_t none_is_wide[LANES];
    const double a = bsmm_operand_global(&p->a), b = bsmm_operand_global(&p->b);
    for (int i = 0; i < LANES; i++) {
        row_factors[i] = a;
        factors[i] = b;
    }
    const bsmm_gemm_row row = {.col = panel->col,
                               .cols = panel->cols,
                               .acc = panel->acc[0],
                               .column_factors = factors,
                               .column_wide = none_is_wide};
    const bsmm_gemm_rows rows = {.rows = p->a.m.rows,
                                 .pitch = LANES,
                                 .factors = row_factors,
                                 .wide = none_is_wide,
                                 .are_direct = bsmm_cpu_epilogue_is_direct(p)};
    bsmm_gemm_store_rows(p, &row, &rows, values);
}

/* Returns true if this processor has the instructions that the functions for tiny products need,
 * and these functions are faster than the loops that multiply packed panels. For bf16 they are not
 * faster on processors with two vector ports for all instructions (BSMM_CPU_TWO_PORTS). There, the
 * loops for packed panels use FMAs, which are faster than the bf16 dot products of the functions
 * for tiny products. */
static bool is_supported(bool is_int8) {
    const uint32_t needed =
        BSMM_CPU_AVX512_VBMI | (is_int8 ? BSMM_CPU_AVX512_VNNI : BSMM_CPU_AVX512_BF16);
    const uint32_t features = bsmm_cpu_features();
    return (features & needed) == needed && (is_int8 || !(features & BSMM_CPU_TWO_PORTS));
}

void bsmm_small_m_tiny_make(const bsmm_product *p, bool is_int8, bsmm_tiny_gemm *to) {
    const uint32_t elem = p->b.m.format.elem;
    to->multiply = NULL;
    if (!p->b_packed || !is_supported(is_int8) || !bsmm_small_m_is_tiny(p)) return;
    if (is_int8 && bsmm_small_m_tiny_int8dot_takes(p)) {
        memcpy(to->context, bsmm_pack_table_of(elem)->b, sizeof bsmm_pack_table_of(elem)->b);
        to->multiply = bsmm_small_m_tiny_int8dot;
    } else if (!is_int8 && bsmm_small_m_tiny_bf16dot_takes(p)) {
        if (elem != BSMM_ELEM_BF16) bsmm_decode_tables_for_dots(p, to->context);
        to->multiply = bsmm_small_m_tiny_bf16dot;
    }
}

bsmm_status bsmm_small_m_tiny_run(const bsmm_product *p, const void *state, void *workspace) {
    const bsmm_tiny_gemm *made = state;
    if (made->multiply && made->multiply(p, made->context)) return BSMM_OK;
    return bsmm_gemm_run(&made->gemm, p, workspace);
}
