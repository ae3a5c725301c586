/* Finds the largest magnitude of a matrix (its amax). */
#include "quantize/recipe.h"

#include "base/threads.h"

/* Returns a view of the matrix in which rows are contiguous in memory: a column-major matrix is
 * seen as its transpose. The transposition does not change the largest magnitude. */
static bsmm_operand along_memory(const bsmm_operand *src) {
    bsmm_operand view = *src;
    if (src->m.order == BSMM_ORDER_ROW) return view;
    view.m.order = BSMM_ORDER_ROW;
    view.m.rows = src->m.cols;
    view.m.cols = src->m.rows;
    return view;
}

typedef struct amax_run {
    bsmm_plain all;
    int64_t cols;
    const bsmm_strip_ops *ops;
    _Atomic uint32_t *amax;
} amax_run;

static void raise_to(_Atomic uint32_t *most, uint32_t value) {
    uint32_t seen = atomic_load(most);
    while (seen < value && !atomic_compare_exchange_weak(most, &seen, value))
        continue;
}

/* values_at_once is the largest number of values that one call of the vector loop searches for
 * their largest magnitude. The loop divides a row into ranges and reads these side by side. It does
 * not prefetch the first cache lines of each range, so short ranges are slow. If there are no gaps
 * between rows, several rows are therefore searched as one long row, which may have up to
 * values_at_once values. */
static const int64_t values_at_once = 1 << 19;

/* Returns the number of rows, from row `first` on, that one call of the vector loop searches
 * together for their largest magnitude. */
static int64_t rows_at_once(const amax_run *x, int64_t first, int64_t end) {
    if (x->all.pitch != x->cols || x->cols > values_at_once) return 1;
    return bsmm_min_i64(end - first, values_at_once / x->cols);
}

static void amax_of_rows(const void *context, int64_t first, int64_t end, int worker) {
    const amax_run *x = context;
    uint32_t amax = 0;
    (void)worker;
    for (int64_t r = first, rows; r < end; r += rows) {
        uint32_t of_rows[BSMM_STRIP_BLOCKS];
        bsmm_plain row = bsmm_plain_at(&x->all, r, 0);
        rows = rows_at_once(x, r, end);
        x->ops->amax(&row, 1, rows * x->cols, rows * x->cols, false, of_rows);
        amax = of_rows[0] > amax ? of_rows[0] : amax;
    }
    raise_to(x->amax, amax);
}

bsmm_status bsmm_amax_bits(const bsmm_operand *src, const bsmm_place *place, uint32_t *bits) {
    bsmm_operand view = along_memory(src);
    _Atomic uint32_t amax = 0;
    const amax_run x = {.all = {view.m.format.elem, view.m.data, view.m.ld},
                        .cols = view.m.cols,
                        .ops = bsmm_strip_ops_best(),
                        .amax = &amax};
    const bsmm_loop loop = {
        .threads = place->threads, .count = view.m.rows, .body = amax_of_rows, .context = &x};
    if (view.m.cols) BSMM_TRY(bsmm_loop_run(&loop, &place->pool));
    *bits = atomic_load(&amax);
    return BSMM_OK;
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
    uint32_t bits;
    BSMM_TRY(bsmm_amax_bits(&job.src, &place, &bits));
    *amax = bsmm_bits_float(bits);
    return BSMM_OK;
}

bsmm_status bsmm_amax(const bsmm_matrix *src, float *amax) {
    return bsmm_amax_on(NULL, src, amax);
}
