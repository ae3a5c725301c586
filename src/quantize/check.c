/* Checks the arguments that all conversions have, and divides a conversion into tasks for
 * threads. */
#include "quantize/recipe.h"

bsmm_status bsmm_check_shape(const bsmm_operand *src, const bsmm_operand *dst) {
    if (src->m.rows != dst->m.rows)
        return bsmm_fail(BSMM_E_INVALID, "dst.rows: value is %lld; must equal src.rows (%lld)",
                         (long long)dst->m.rows, (long long)src->m.rows);
    if (src->m.cols != dst->m.cols)
        return bsmm_fail(BSMM_E_INVALID, "dst.cols: value is %lld; must equal src.cols (%lld)",
                         (long long)dst->m.cols, (long long)src->m.cols);
    return BSMM_OK;
}

void bsmm_drop_empty_rows(bsmm_operand *operand) {
    if (operand->m.cols == 0) operand->m.rows = operand->map.rows = 0;
}

bsmm_status bsmm_check_plain(const bsmm_operand *operand, const char *what) {
    const bsmm_format *f = &operand->m.format;
    if (!bsmm_elem_is_wide(f->elem) || f->scale != BSMM_SCALE_NONE)
        return bsmm_fail(BSMM_E_INVALID, "%s.format: value is %s; must be f32, f16 or bf16", what,
                         bsmm_format_name(*f));
    if (operand->m.global_scale)
        return bsmm_fail(BSMM_E_INVALID, "%s.global_scale: given; must be NULL for %s", what,
                         bsmm_format_name(*f));
    return BSMM_OK;
}

typedef struct memory_range {
    const char *field;
    uintptr_t begin;
    uint64_t bytes;
} memory_range;

enum { RANGES = 3 };

static void ranges_of(const bsmm_operand *o, memory_range ranges[RANGES]) {
    ranges[0] = (memory_range){"data", (uintptr_t)o->m.data, o->data_bytes};
    ranges[1] = (memory_range){"scales", (uintptr_t)o->m.scales, o->scale_bytes};
    ranges[2] = (memory_range){"global_scale", (uintptr_t)o->m.global_scale,
                               o->m.global_scale ? sizeof(float) : 0};
}

static bool overlaps(const memory_range *a, const memory_range *b) {
    return a->bytes && b->bytes && a->begin < b->begin + b->bytes && b->begin < a->begin + a->bytes;
}

static bsmm_status check_ranges(const char *what, const memory_range *dst, const char *other,
                                const memory_range *ranges, int count) {
    for (int i = 0; i < count; i++)
        if (overlaps(dst, &ranges[i]))
            return bsmm_fail(BSMM_E_INVALID, "%s.%s: overlaps %s.%s; the buffers must be apart",
                             what, dst->field, other, ranges[i].field);
    return BSMM_OK;
}

bsmm_status bsmm_check_overlap(const bsmm_operand *src, const bsmm_operand *dst) {
    memory_range from[RANGES], to[RANGES];
    ranges_of(src, from);
    ranges_of(dst, to);
    for (int i = 0; i < RANGES; i++) {
        BSMM_TRY(check_ranges("dst", &to[i], "src", from, RANGES));
        BSMM_TRY(check_ranges("dst", &to[i], "dst", to, i));
    }
    return BSMM_OK;
}

static bsmm_status fail_absent(const bsmm_place *place, const char *what) {
    return bsmm_fail(BSMM_E_UNSUPPORTED, "device: there is no %s on %s devices", what,
                     place->backend->name);
}

bsmm_status bsmm_check_host(const bsmm_place *place, const char *what) {
    return place->backend->host_memory ? BSMM_OK : fail_absent(place, what);
}

bsmm_status bsmm_recode_on(const bsmm_place *place, bsmm_status (*conversion)(const bsmm_recode *),
                           bsmm_recode *job, const char *what) {
    if (!conversion) return fail_absent(place, what);
    job->device = place->device;
    job->stream = place->stream;
    return conversion(job);
}

static int64_t least_common_multiple(int64_t a, int64_t b) {
    int64_t x = a, y = b;
    while (y) {
        int64_t rest = x % y;
        x = y;
        y = rest;
    }
    return a / x * b;
}

/* Returns the number of rows that must belong to the same task: all rows of a block, and in a
 * column-major matrix all rows whose elements share a byte. */
static int64_t rows_together(const bsmm_operand *o) {
    int64_t group = o->m.order == BSMM_ORDER_COL ? bsmm_elem_group(o->m.format.elem) : 1;
    return least_common_multiple(o->m.format.block_rows ? o->m.format.block_rows : 1, group);
}

int64_t bsmm_rows_per_task(const bsmm_operand *a, const bsmm_operand *b) {
    static const int64_t elements = 1 << 16;
    int64_t unit = least_common_multiple(rows_together(a), rows_together(b));
    int64_t cols = a->m.cols ? a->m.cols : 1;
    int64_t rows = elements / cols / unit * unit;
    return rows ? rows : unit;
}
