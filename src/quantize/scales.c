/* Writes the padding of scale layouts, and copies scales from one layout to another. */
#include "quantize/recipe.h"

/* `padded_size` holds the numbers of rows and columns of the scale matrix, including the padding of
 * the layout. */
typedef struct padded_size {
    int64_t rows, cols;
} padded_size;

static padded_size padded_size_of(const bsmm_operand *o) {
    const bsmm_scale_map *map = &o->map;
    padded_size size = {map->rows, map->cols};
    if (!bsmm_layout_pads(o->m.scale_layout) || map->count == 0) return size;
    size.rows = bsmm_round_up(map->rows, map->tile_rows);
    size.cols = bsmm_round_up(map->cols, map->tile_cols);
    /* If digit_count is 0, the layout has no tiles: it stores one row (or column) of scales after
     * another at a constant pitch. The padding behind a row (or column) fills all bytes up to the
     * next one. The padded length is therefore the pitch. */
    if (map->digit_count == 0 && map->tile_col_step == 1) size.cols = (int64_t)map->tile_row_step;
    if (map->digit_count == 0 && map->tile_row_step == 1) size.rows = (int64_t)map->tile_col_step;
    return size;
}

static void zero_scales(const bsmm_operand *o, int64_t r, int64_t c0, int64_t c1) {
    for (int64_t c = c0; c < c1; c++)
        bsmm_scale_store_code(o->m.format.scale, o->m.scales, bsmm_scale_map_at(&o->map, r, c), 0);
}

void bsmm_scales_pad(const bsmm_operand *dst, int64_t r0, int64_t r1) {
    padded_size size = padded_size_of(dst);
    for (int64_t r = r0; r < r1; r++)
        zero_scales(dst, r, dst->map.cols, size.cols);
    if (r1 < dst->map.rows) return;
    for (int64_t r = dst->map.rows; r < size.rows; r++)
        zero_scales(dst, r, 0, size.cols);
}

void bsmm_scales_move(const bsmm_operand *src, const bsmm_operand *dst) {
    uint32_t scale = src->m.format.scale;
    for (int64_t r = 0; r < src->map.rows; r++)
        for (int64_t c = 0; c < src->map.cols; c++) {
            uint32_t code =
                bsmm_scale_load_code(scale, src->m.scales, bsmm_scale_map_at(&src->map, r, c));
            bsmm_scale_store_code(scale, dst->m.scales, bsmm_scale_map_at(&dst->map, r, c), code);
        }
    bsmm_scales_pad(dst, 0, dst->map.rows);
}

/* Checks that src and dst have the same shape and format, and that the format has scales. */
static bsmm_status check_same(const bsmm_operand *src, const bsmm_operand *dst) {
    BSMM_TRY(bsmm_check_shape(src, dst));
    if (!bsmm_format_equal(src->m.format, dst->m.format))
        return bsmm_fail(BSMM_E_INVALID, "dst.format: value is %s; must be src's (%s)",
                         bsmm_format_name(dst->m.format), bsmm_format_name(src->m.format));
    if (src->m.format.scale == BSMM_SCALE_NONE)
        return bsmm_fail(BSMM_E_INVALID, "src.format.scale: value is none; must have scales");
    return BSMM_OK;
}

/* Reads the description of a matrix and checks the memory of its scales. The pointer to the
 * elements is not checked, because relayout does not touch the elements. */
static bsmm_status take_scales(const bsmm_place *place, const bsmm_matrix *matrix, const char *what,
                               bsmm_operand *to) {
    static const max_align_t unread;
    BSMM_TRY(bsmm_operand_take(matrix, what, to));
    bsmm_operand checked = *to;
    checked.m.data = (void *)&unread;
    to->m.global_scale = checked.m.global_scale = NULL;
    /* The pointer to the scales may be NULL if the matrix is empty. */
    BSMM_TRY(bsmm_operand_check_memory(&checked, what));
    bool present = to->data_bytes != 0;
    to->m.data = NULL;
    to->data_bytes = 0;
    return present ? bsmm_place_check(place, to, what, 0, NULL) : BSMM_OK;
}

bsmm_status bsmm_relayout_scales_on(const bsmm_exec *exec, const bsmm_matrix *src,
                                    const bsmm_matrix *dst) {
    bsmm_place place;
    bsmm_recode job = {0};
    BSMM_TRY(bsmm_place_take(exec, &place));
    BSMM_TRY(take_scales(&place, src, "src", &job.src));
    BSMM_TRY(take_scales(&place, dst, "dst", &job.dst));
    BSMM_TRY(check_same(&job.src, &job.dst));
    BSMM_TRY(bsmm_check_overlap(&job.src, &job.dst));
    if (!place.backend->host_memory)
        return bsmm_recode_on(&place, place.backend->relayout, &job, "moving of scales");
    bsmm_scales_move(&job.src, &job.dst);
    return BSMM_OK;
}

bsmm_status bsmm_relayout_scales(const bsmm_matrix *src, const bsmm_matrix *dst) {
    return bsmm_relayout_scales_on(NULL, src, dst);
}
