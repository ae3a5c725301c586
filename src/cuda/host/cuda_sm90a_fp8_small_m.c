/* The kernel cuda_sm90a_fp8_small_m multiplies up to 32 rows of e4m3 A by e4m3 weights B with fp32
 * scales, as checkpoints store them, on Hopper's FP8 tensor cores (device code:
 * sm90a/fp8_small_m_kernels.h). With BSMM_COMPUTE_EXACT it takes the formats that cuda_sm90a_fp8
 * takes for more rows. With BSMM_COMPUTE_FAST it also takes fp32 scales with other block sizes, and
 * an A without scales.
 *
 * A thread block multiplies all rows of A by 64 rows of B. The thread blocks of a cluster have the
 * same rows of B and split K. The split does not depend on M. */
#include "cuda/host/kernel.h"
#include "cuda/host/small_m_product.h"
#include "cuda/sm90a/fp8_small_m_shape.h"

/* The kernel reads 16 bytes of a row at a time, so K and ld must be multiples of UNIT elements of 1
 * byte. */
enum { MOST_ROWS = 32, UNIT = 16 };

#define COLUMNS(...)
#define KERNEL(module, name, columns, scale_rows)                                                  \
    [(scale_rows) == 1][(columns) / 16] = {"sm90a/" #module, #name, BSMM_SMALL_M_MOST_SHARED},

/* Lists the kernels. functions[0] has those for a B in which each 16 rows share their scales.
 * functions[1] has those for a B whose scales may change from row to row. The second index is 0, 1
 * and 2 for the kernels that take up to 8, 16 and 32 rows of A. */
static const bsmm_cuda_function functions[][3] = {
#include "cuda/sm90a/fp8_small_m.def"
};

/* Describes how a GEMM is divided among thread blocks, and the layout of a thread block's shared
 * memory. Fields that end in _at are offsets in shared memory, in bytes. */
typedef struct division {
    uint32_t splits, columns;
    bool by_row; /* `by_row` is true if scales may change from row to row of B. */
    /* `scale_step` is the number of bytes of B's scales in shared memory per row and step (128
     * elements along K). 0 means that one scale applies to all of K. */
    uint32_t scale_step;
    uint32_t scale_stride, scales_at, a_scales_at, barriers_at, flags_at, shared;
} division;

/* Returns the number of thread blocks per cluster that gives the least predicted time. The thread
 * blocks of a cluster split K. */
static uint32_t choose_splits(const bsmm_product *p) {
    const bsmm_small_m_speed *speed = &bsmm_small_m_speeds[BSMM_SMALL_M_FP8][0];
    uint32_t best = 1;
    for (uint32_t splits = 2; splits <= BSMM_SMALL_M_MOST_SPLITS; splits *= 2)
        if (splits * BSMM_FP8_SMALL_M_GROUPS <= bsmm_small_m_count_steps(p) &&
            bsmm_small_m_predict(p, speed, splits) < bsmm_small_m_predict(p, speed, best))
            best = splits;
    return best;
}

/* Computes the layout of B's scales in shared memory and returns their size in bytes. A line of
 * scales serves 16 rows of B, or one row if scales change from row to row (by_row). A line has one
 * fp32 number for each step of K (128 elements), or a single one for all of K. With by_row, the
 * stride between lines is an odd multiple of 16 bytes, so that the scales of 8 rows lie in
 * different banks. */
static uint32_t place_scales(const bsmm_product *p, uint32_t steps, division *c) {
    c->by_row = !bsmm_small_m_has_tile_floats(&p->b);
    c->scale_step = c->by_row && bsmm_small_m_has_row_floats(&p->b) ? 0 : sizeof(float);
    const uint32_t line = (uint32_t)bsmm_ceil_div((int64_t)steps * c->scale_step, 16);
    c->scale_stride = 16 * (c->by_row ? line | 1 : line);
    return (c->by_row ? BSMM_FP8_SMALL_M_ROWS : BSMM_FP8_SMALL_M_ROWS / 16) * c->scale_stride;
}

/* Divides the GEMM among thread blocks, and computes the layout of shared memory for up to `rows`
 * rows of A. Besides B's scales, shared memory holds one fp32 scale of each row of A for each step
 * of K (128 elements). */
static division find_division(const bsmm_product *p, int64_t rows) {
    division c = {.columns = rows <= 8 ? 8 : rows <= 16 ? 16 : 32};
    c.splits = choose_splits(p);
    const uint32_t steps = bsmm_small_m_most_steps(bsmm_small_m_count_steps(p), c.splits);
    c.scales_at = BSMM_FP8_SMALL_M_ALIGNMENT + BSMM_FP8_SMALL_M_GROUPS * BSMM_FP8_SMALL_M_SLOTS *
                                                   BSMM_FP8_SMALL_M_SLOT_BYTES(c.columns);
    c.a_scales_at = c.scales_at + place_scales(p, steps, &c);
    c.barriers_at = c.a_scales_at + steps * c.columns * 4;
    const uint32_t end = c.barriers_at + BSMM_FP8_SMALL_M_GROUPS * 8;
    const uint32_t sums = BSMM_FP8_SMALL_M_GROUPS * c.columns * (BSMM_FP8_SMALL_M_ROWS + 4) * 4;
    c.flags_at = end > sums ? end : sums;
    c.shared = c.flags_at + BSMM_SMALL_M_COLUMNS * 4;
    return c;
}

typedef struct made {
    bsmm_small_m_params params;
    bsmm_cuda_ready ready;
} made;

BSMM_CHECK_STATE(made);

/* Returns NULL if the kernel can read the operand. Otherwise writes the reason to `why` and returns
 * it. `name` is 'A' or 'B'. */
static const char *refuse_operand(const bsmm_operand *o, char name, char *why, size_t size) {
    if (o->m.format.elem != BSMM_ELEM_E4M3)
        return bsmm_gpu_refuse_format(o, name, "the kernel takes e4m3", why, size);
    const char *reason = bsmm_gpu_refuse_order(o, name, why, size);
    return reason ? reason : bsmm_small_m_refuse_units(o, name, UNIT, UNIT, why, size);
}

static const char *refuse_a(const bsmm_operand *a, char *why, size_t size) {
    if (a->m.format.scale != BSMM_SCALE_NONE && !bsmm_small_m_has_steady_floats(a))
        return bsmm_gpu_refuse_format(a, 'A', BSMM_SMALL_M_FLOATS_RULE ", or no scales", why, size);
    return refuse_operand(a, 'A', why, size);
}

static const char *refuse_b(const bsmm_operand *b, char *why, size_t size) {
    if (!bsmm_small_m_has_steady_floats(b))
        return bsmm_gpu_refuse_format(b, 'B', BSMM_SMALL_M_FLOATS_RULE, why, size);
    return refuse_operand(b, 'B', why, size);
}

static const char *refuse(const bsmm_product *p, void *state, char *why, size_t size) {
    (void)state;
    const char *reason = bsmm_cuda_refuse(p, &functions[0][0], why, size);
    if (!reason) reason = bsmm_gpu_refuse_rows(p, MOST_ROWS, why, size);
    if (!reason) reason = refuse_a(&p->a, why, size);
    if (!reason) reason = refuse_b(&p->b, why, size);
    if (!reason) reason = bsmm_gpu_refuse_extents(p, why, size);
    if (reason) return reason;
    /* FP8 tensor cores round sums. With BSMM_COMPUTE_EXACT this is allowed only for the formats
     * that cuda_sm90a_fp8 takes, so this kernel takes no other formats. cuda_sm90a_fp8 computes the
     * same products with more rows of A. The error bound of a product therefore does not depend on
     * M. */
    const bool groups = bsmm_cuda_has_groups(&p->a) && bsmm_cuda_has_groups(&p->b);
    if (p->compute != BSMM_COMPUTE_FAST && !groups)
        return bsmm_gpu_refuse_formats(p,
                                       "FP8 tensor cores round sums, so without compute FAST the "
                                       "kernel takes only f32 scales",
                                       why, size);
    /* Refuses a K that is too long for shared memory. The second condition decides. It assumes
     * MOST_ROWS rows of A, whatever the product's number of rows, so that the answer does not
     * depend on M. The first condition only protects find_division, whose 32-bit arithmetic would
     * overflow for an extremely long K. It refuses numbers of steps that are far too large for
     * shared memory in any case. */
    if (p->a.m.cols / BSMM_SMALL_M_K > BSMM_SMALL_M_MOST_SHARED ||
        find_division(p, MOST_ROWS).shared > BSMM_SMALL_M_MOST_SHARED)
        return bsmm_reason(why, size, "K is %lld; it must fit in shared memory",
                           (long long)p->a.m.cols);
    return NULL;
}

static const bsmm_cuda_function *find_function(const division *c) {
    return &functions[c->by_row][c->columns / 16];
}

static uint64_t workspace_bytes(const bsmm_product *p, const void *state) {
    (void)p, (void)state;
    return 0;
}

/* Returns the kernel's error bound. For each 32 elements of K the tensor cores add 32 products and
 * an accumulator at once and truncate each of these 33 terms 13 bits below the largest term. Four
 * such additions cover 128 elements of K, i.e. a step. Each step also adds the rounding errors of a
 * product of two scales and of an FMA. At the end, the addition of the accumulators of all
 * warpgroups and thread blocks adds rounding errors. */
static double bound(const bsmm_product *p, const void *state) {
    (void)state;
    return 132 * 0x1p-13 + ((double)p->a.m.cols / BSMM_SMALL_M_K + 40) * 0x1p-24;
}

/* Returns true if the scales of the operand do not change along K, or if it has no scales. */
static bool is_steady(const bsmm_operand *o) {
    return !o->m.format.scale || bsmm_small_m_has_row_floats(o);
}

/* Sets the parameters with which the epilogue recognizes that a result of 0 need not be computed
 * again. Sums of products of e4m3 are multiples of the least product. If this product times the
 * least scales of the row of A and of the row of B is far above the smallest fp32 number, no sum
 * has lost bits to underflow. FP8 tensor cores truncate terms, which may also leave a sum of 0, but
 * the error bound allows this. */
static void set_zeros(const bsmm_product *p, bsmm_small_m_params *params) {
    const double least = bsmm_elem_row(BSMM_ELEM_E4M3)->min_subnormal;
    const bool steady = is_steady(&p->a) && is_steady(&p->b);
    params->zero_block = steady ? (uint32_t)p->a.m.cols : BSMM_SMALL_M_K;
    params->zero_least = (float)(least * least);
}

static bsmm_small_m_params params_of(const bsmm_product *p, const division *c) {
    bsmm_small_m_params params = bsmm_small_m_params_of(p);
    params.ranges_log2 = params.splits_log2 = bsmm_small_m_log2(c->splits);
    params.k_warps_log2 = bsmm_small_m_log2(BSMM_FP8_SMALL_M_GROUPS);
    params.columns = c->columns;
    params.scale_stride = c->scale_stride;
    params.scale_step = c->scale_step;
    params.scales_at = c->scales_at;
    params.a_scales_at = c->a_scales_at;
    params.barriers_at = c->barriers_at;
    params.flags_at = c->flags_at;
    set_zeros(p, &params);
    return params;
}

static bsmm_status make(const bsmm_product *p, void *state) {
    made *m = state;
    const division c = find_division(p, p->a.m.rows);
    m->params = params_of(p, &c);
    const bsmm_cuda_launch_desc launch = {
        .function = find_function(&c),
        .grid = {(uint32_t)bsmm_ceil_div(p->d.m.cols, BSMM_FP8_SMALL_M_ROWS) * c.splits},
        .block = {BSMM_SMALL_M_THREADS},
        .cluster = {c.splits},
        .shared_bytes = c.shared,
        .overlap = true,
    };
    return bsmm_cuda_ready_make(p->device, &launch, &m->ready);
}

static bsmm_status run(const bsmm_product *p, const void *state, void *workspace) {
    const made *m = state;
    bsmm_small_m_params params = m->params;
    (void)workspace;
    bsmm_small_m_params_bind(p, &params);
    BSMM_CUDA_RETURN_INSIDE(p->device, bsmm_cuda_ready_launch(p->device, &m->ready, p->stream,
                                                              BSMM_CUDA_ARGUMENTS(&params)));
}

/* Returns the number of parts of K. Each warpgroup of each thread block of a cluster sums one part.
 */
static uint32_t k_parts(const bsmm_product *p, const void *state) {
    (void)state;
    return choose_splits(p) * BSMM_FP8_SMALL_M_GROUPS;
}

const bsmm_kernel bsmm_kernel_cuda_sm90a_fp8_small_m = {
    .name = "cuda_sm90a_fp8_small_m",
    .device = "cuda",
    .state_bytes = sizeof(made),
    .refuse = refuse,
    .workspace_bytes = workspace_bytes,
    .bound = bound,
    .k_parts = k_parts,
    .make = make,
    .run = run,
    .alignment = UNIT,
};
