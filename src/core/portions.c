/* Runs products with a block-scaled D on GPUs. The rows of D are divided into portions; a kernel
 * computes a portion's fp32 results, and another kernel quantizes them to D (portions.h). */
#include "core/portions.h"

enum {
    /* LINE: a portion is a range of D's rows. Each row of its fp32 results begins at a multiple of
     * 32 results, i.e. of 128 bytes. */
    LINE = 32,
    /* TILE: a portion has a multiple of 128 rows of D, so that a kernel's tiles of up to 128 rows
     * are full. */
    TILE = 128,
    /* SCALES: D's rows are divided into portions so that each portion begins at a multiple of 16
     * rows of the scale matrix of D. The scales of a portion are then aligned like those of the
     * whole matrix. */
    SCALES = 16,
    /* ALIGNMENT is the alignment in bytes of the kernel's workspace, which follows the fp32 results
     * in the workspace of the product. */
    ALIGNMENT = 256,
};

/* Returns the least common multiple of a and b, or `most` if the multiple is larger than `most`. */
static int64_t common_multiple(int64_t a, int64_t b, int64_t most) {
    int64_t divisor = a, rest = b;
    while (rest) {
        int64_t next = divisor % rest;
        divisor = rest;
        rest = next;
    }
    return a / divisor > most / b ? most : a / divisor * b;
}

/* A portion of an operand must have a multiple of a certain number of rows. Returns this number. It
 * is the least common multiple of 128 rows (a full tile) and, if the operand has scales, of two
 * further numbers: the rows that one tile of the scale layout covers, and the rows that 16 rows of
 * scales cover. If the number exceeds `most`, the function returns `most`. */
static int64_t unit_of(const bsmm_operand *o, int64_t most) {
    if (o->m.format.scale == BSMM_SCALE_NONE) return TILE;
    const int64_t block = o->m.format.block_rows,
                  scales = common_multiple(o->map.tile_rows, SCALES, most);
    return block > most / scales ? most : common_multiple(TILE, block * scales, most);
}

/* Limits an extent to 2^40, so that adding to it or rounding it up cannot overflow. No kernel
 * accepts an extent of 2^40. */
static int64_t bounded(int64_t extent) {
    return bsmm_min_i64(extent, INT64_C(1) << 40);
}

/* Returns the stride in floats between two rows of a portion's fp32 results. */
static int64_t pitch_of(const bsmm_product *p) {
    return bsmm_round_up(bounded(p->d.m.cols), LINE);
}

static uint64_t result_bytes(const bsmm_product *p, int64_t rows) {
    uint64_t elements, bytes;
    bool fits = bsmm_mul_u64((uint64_t)rows, (uint64_t)pitch_of(p), &elements) &&
                bsmm_mul_u64(elements, sizeof(float), &bytes) && bytes < INT64_MAX;
    return fits ? (uint64_t)bsmm_round_up((int64_t)bytes, ALIGNMENT) : UINT64_MAX;
}

static bsmm_portions portions_of(const bsmm_product *p) {
    const int64_t rows = p->d.m.rows, most = bsmm_round_up(bounded(rows) + 1, TILE);
    const int64_t unit = common_multiple(unit_of(&p->a, most), unit_of(&p->d, most), most);
    const uint64_t unit_bytes = result_bytes(p, unit);
    uint64_t units = unit_bytes ? bsmm_portion_most_bytes() / unit_bytes : 1;
    if (units < 1) units = 1;
    const bool whole = units >= (uint64_t)bsmm_ceil_div(rows, unit);
    bsmm_portions made = {.rows = whole ? rows : (int64_t)units * unit};
    made.last = rows ? rows - (rows - 1) / made.rows * made.rows : 0;
    made.result_bytes = result_bytes(p, made.rows);
    return made;
}

/* Sets *to to the description of a matrix of fp32 numbers at `memory`, which holds the results of
 * `rows` rows of D. */
static void describe_results(const bsmm_product *p, int64_t rows, void *memory, bsmm_operand *to) {
    *to = (bsmm_operand){.m = {.struct_size = sizeof to->m,
                               .format = {.elem = BSMM_ELEM_F32},
                               .rows = rows,
                               .cols = p->d.m.cols,
                               .ld = pitch_of(p),
                               .data = memory},
                         .data_bytes = result_bytes(p, rows)};
}

/* Sets *to to the description of a part of product p: the part computes rows [row, row + rows) of D
 * and stores them as an fp32 matrix in `memory`. */
static void take(const bsmm_product *p, int64_t row, int64_t rows, void *memory, bsmm_product *to) {
    *to = *p;
    to->recipe = NULL;
    describe_results(p, rows, memory, &to->d);
    bsmm_operand_keep_rows(&to->a, row, rows);
    if (p->has_c) bsmm_operand_keep_rows(&to->c, row, rows);
}

static void take_last(const bsmm_product *p, const bsmm_portions *all, bsmm_product *to) {
    take(p, p->d.m.rows - all->last, all->last, NULL, to);
}

void bsmm_portion_first(const bsmm_product *p, bsmm_product *portion) {
    const bsmm_portions all = portions_of(p);
    take(p, 0, all.rows, NULL, portion);
}

const char *bsmm_portions_refuse(const bsmm_kernel *kernel, const bsmm_product *p, void *state,
                                 char *why, size_t size) {
    _Alignas(BSMM_STATE_ALIGNMENT) uint8_t last_state[BSMM_STATE_BYTES];
    const bsmm_portions all = portions_of(p);
    bsmm_product portion;
    if (p->any_rows)
        return "D is block-scaled; a run then has the rows of the description (flags: ANY_ROWS)";
    if (p->groups) return "D is block-scaled; the kernel then runs one product, not groups";
    if (p->epilogue) return "D is block-scaled; the epilogue then has only alpha, beta and bias";
    if (!p->backend->run_quantizer) return "D is block-scaled; the device cannot quantize";
    take_last(p, &all, &portion);
    const char *reason = kernel->refuse(&portion, last_state, why, size);
    if (reason) return reason;
    bsmm_portion_first(p, &portion);
    return kernel->refuse(&portion, state, why, size);
}

/* A GPU computes a block-scaled D in portions (ranges of rows): a kernel writes the fp32 results of
 * a portion, and a conversion quantizes them to D. Sets *job to the description of this conversion
 * for rows [row, row + rows) of D. */
static void describe_quantization(const bsmm_product *p, int64_t row, int64_t rows, void *results,
                                  bsmm_recode *job) {
    *job = (bsmm_recode){.device = p->device,
                         .stream = p->stream,
                         .dst = p->d,
                         .given_level = true,
                         .keeps_padding = row > 0};
    describe_results(p, rows, results, &job->src);
    bsmm_operand_keep_rows(&job->dst, row, rows);
    bsmm_recipe_set(p->recipe, job);
}

static bsmm_status make_quantizer(const bsmm_product *p, int64_t row, int64_t rows,
                                  void *quantizer) {
    bsmm_recode job;
    describe_quantization(p, row, rows, NULL, &job);
    return p->backend->make_quantizer(&job, quantizer);
}

bsmm_status bsmm_portions_make(const bsmm_kernel *kernel, const bsmm_product *p, const void *state,
                               void *last_state, uint64_t *workspace_bytes) {
    const bsmm_portions all = portions_of(p);
    bsmm_product first, last;
    char why[200];
    bsmm_portion_first(p, &first);
    take_last(p, &all, &last);
    const char *reason = kernel->refuse(&last, last_state, why, sizeof why);
    if (reason)
        return bsmm_fail(BSMM_E_UNSUPPORTED, "kernel: %s refuses: %s", kernel->name, reason);
    const uint64_t of_first = kernel->workspace_bytes(&first, state),
                   of_last = kernel->workspace_bytes(&last, last_state);
    if (!bsmm_add_u64(all.result_bytes, of_first > of_last ? of_first : of_last, workspace_bytes))
        *workspace_bytes = UINT64_MAX;
    return BSMM_OK;
}

bsmm_status bsmm_portions_load(const bsmm_kernel *kernel, const bsmm_product *p, void *state,
                               void *last_state, bsmm_portion_quantizers *quantizers) {
    const bsmm_portions all = portions_of(p);
    bsmm_product first, last;
    bsmm_portion_first(p, &first);
    take_last(p, &all, &last);
    if (kernel->make) BSMM_TRY(kernel->make(&first, state));
    if (kernel->make) BSMM_TRY(kernel->make(&last, last_state));
    BSMM_TRY(make_quantizer(p, 0, all.rows, quantizers->first));
    return make_quantizer(p, p->d.m.rows - all.last, all.last, quantizers->last);
}

bsmm_status bsmm_portions_run(const bsmm_kernel *kernel, const bsmm_product *p, const void *state,
                              const void *last_state, const bsmm_portion_quantizers *quantizers,
                              void *workspace) {
    const bsmm_portions all = portions_of(p);
    uint8_t *kernel_workspace = (uint8_t *)workspace + all.result_bytes;
    for (int64_t row = 0; row < p->d.m.rows; row += all.rows) {
        const int64_t left = p->d.m.rows - row, rows = bsmm_min_i64(all.rows, left);
        const bool is_last = left <= all.rows;
        bsmm_product portion;
        bsmm_recode job;
        take(p, row, rows, workspace, &portion);
        BSMM_TRY(kernel->run(&portion, is_last ? last_state : state, kernel_workspace));
        describe_quantization(p, row, rows, workspace, &job);
        BSMM_TRY(p->backend->run_quantizer(&job, is_last ? quantizers->last : quantizers->first));
    }
    return BSMM_OK;
}
