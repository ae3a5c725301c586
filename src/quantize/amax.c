/* Finds the largest magnitude of a matrix. */
#include "quantize/recipe.h"

/* Returns a view of the matrix whose rows are contiguous in memory; a column-major matrix is
 * transposed. The largest magnitude does not depend on the order. */
static bsmm_operand along_memory(const bsmm_operand *src) {
    bsmm_operand view = *src;
    if (src->m.order == BSMM_ORDER_ROW) return view;
    view.m.order = BSMM_ORDER_ROW;
    view.m.rows = src->m.cols;
    view.m.cols = src->m.rows;
    return view;
}

uint32_t bsmm_amax_bits(const bsmm_operand *src, int threads) {
    bsmm_operand view = along_memory(src);
    const bsmm_plain all = {view.m.format.elem, view.m.data, view.m.ld};
    const bsmm_strip_ops *ops = bsmm_strip_ops_best();
    uint32_t amax = 0;
    if (view.m.cols == 0) return 0;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(max : amax)
    for (int64_t r = 0; r < view.m.rows; r++) {
        uint32_t of_row[BSMM_STRIP_BLOCKS];
        bsmm_plain row = bsmm_plain_at(&all, r, 0);
        ops->amax(&row, 1, view.m.cols, view.m.cols, false, of_row);
        amax = of_row[0] > amax ? of_row[0] : amax;
    }
    return amax;
}

static bsmm_status check_result(const bsmm_place *place, const float *amax) {
    if (!amax) return bsmm_fail(BSMM_E_INVALID, "amax: value is NULL; must be given");
    return place->backend->check_pointer(place->device, amax, "amax");
}

bsmm_status bsmm_amax_on(const bsmm_exec *exec, const bsmm_matrix *src, float *amax) {
    bsmm_place place;
    bsmm_recode job = {.result = amax};
    BSMM_TRY(bsmm_place_take(exec, &place));
    BSMM_TRY(bsmm_operand_take(src, "src", &job.src));
    BSMM_TRY(bsmm_check_plain(&job.src, "src"));
    BSMM_TRY(bsmm_place_check(&place, &job.src, "src", 0, NULL));
    BSMM_TRY(check_result(&place, amax));
    if (!place.backend->host_memory)
        return bsmm_recode_on(&place, place.backend->amax, &job, "amax");
    *amax = bsmm_bits_float(bsmm_amax_bits(&job.src, place.threads));
    return BSMM_OK;
}

bsmm_status bsmm_amax(const bsmm_matrix *src, float *amax) {
    return bsmm_amax_on(NULL, src, amax);
}
