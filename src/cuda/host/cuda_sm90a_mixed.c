/* The kernel cuda_sm90a_mixed multiplies A by weights B as checkpoints store them (device code:
 * sm90a/mixed_kernels.h). cuda_sm90_small_m is faster for few rows of A, and a kernel that first
 * converts all of B to bf16 is faster for very many rows. cuda_sm90a_mixed refuses such products.
 *
 * An f16 A stays f16, and any other A is converted to bf16. Weights are decoded to the same type,
 * f16 or bf16. A column is one row of A. A thread block multiplies a tile of 32 to 128 columns by
 * 128 or 256 rows of B, or a tile of 256 columns by 128 rows of B. K is split into ranges of whole
 * steps of 128 elements. The accumulators of the ranges are added in an order that depends on the
 * column of D, but not on its row.
 *
 * Often the thread blocks of the last wave, i.e. those that start last, do not fill all SMs. A
 * second launch then computes the last columns of D, and divides K among more thread blocks. Its
 * thread blocks begin when those of the first launch leave SMs idle (mixed_body.h). */
#include "cuda/host/kernel.h"
#include "cuda/host/mixed_choose.h"
#include "cuda/host/small_m_product.h"
#include "cuda/sm90a/mixed_shape.h"

/* Lists the kernels that convert A, by the way in which they read it. */
static const bsmm_cuda_function prepare_a[] = {
    [BSMM_SMALL_M_ANY] = {"sm90a/mixed", "mixed_prepare_any", 0},
    [BSMM_SMALL_M_BF16] = {"sm90a/mixed", "mixed_prepare_bf16", 0},
    [BSMM_SMALL_M_F16] = {"sm90a/mixed", "mixed_prepare_f16", 0},
    [BSMM_SMALL_M_E4M3] = {"sm90a/mixed", "mixed_prepare_e4m3", 0},
    [BSMM_SMALL_M_E2M1] = {"sm90a/mixed", "mixed_prepare_e2m1", 0},
};

/* A 32-bit word of A's image (A in the order in which the GEMM kernel reads it) holds two elements
 * of a row of A. Returns their distance along K. It depends on the weights' format: at this
 * distance, two weights can be decoded together with the fewest instructions. */
static uint32_t pair_distance(const bsmm_product *p, uint32_t bits) {
    if (bits == 6) return 4;
    return (bits == 4 ? 4u : 2u) / (bsmm_mixed_is_half(p) ? 2 : 1);
}

/* Describes a launch of the kernel that multiplies. */
typedef struct mixed_launch {
    bsmm_small_m_params params;
    bsmm_cuda_ready ready;
} mixed_launch;

typedef struct made {
    const bsmm_mixed_weights *w;
    bsmm_mixed_launches launches;
    bsmm_cuda_ready prepare;
    mixed_launch multiply[BSMM_MIXED_MOST_LAUNCHES];
    /* A kernel that runs first converts A. It writes three arrays, with these sizes in bytes:
     * `image_bytes` for A in bf16 or f16, `least_bytes` for the smallest nonzero magnitude of each
     * row of A, and `scale_bytes` for the fp32 scales of A's rows (0 if A has no such scales). By
     * the smallest magnitudes, the epilogue decides whether a product may have underflowed. */
    uint64_t image_bytes, least_bytes, scale_bytes;
} made;

BSMM_CHECK_STATE(made);

static const char *refuse_a(const bsmm_operand *a, const bsmm_mixed_weights *w, char *why,
                            size_t size) {
    static const char rule[] = "the kernel takes bf16, f16, row-major mxfp8, mxfp4 and nvfp4, and, "
                               "by mxfp4 weights, e4m3 with f32 scales of rows";
    const bool half = a->m.format.elem == BSMM_ELEM_BF16 || a->m.format.elem == BSMM_ELEM_F16;
    const bool coded = a->m.format.scale == BSMM_SCALE_E8M0 || a->m.format.scale == BSMM_SCALE_E4M3;
    if (half && a->m.format.scale == BSMM_SCALE_NONE) return NULL;
    if ((!coded && !bsmm_mixed_has_row_scales(a, w)) ||
        bsmm_small_m_find_source(a) == BSMM_SMALL_M_ANY)
        return bsmm_gpu_refuse_format(a, 'A', rule, why, size);
    return NULL;
}

/* Returns the reason why the kernel refuses an A with few rows, for which cuda_sm90_small_m is
 * faster, or NULL if A has enough rows. */
static const char *refuse_few(const bsmm_operand *a, char *why, size_t size) {
    const int64_t least = BSMM_SMALL_M_COLUMNS / 2 / bsmm_small_m_count_parts(a) + 1;
    if (a->m.rows >= least) return NULL;
    return bsmm_reason(why, size, "A has %lld rows; the kernel takes at least %lld of this format",
                       (long long)a->m.rows, (long long)least);
}

#define WEIGHTS_RULE                                                                               \
    "the kernel takes mxfp4, nvfp4, mxfp6, mxfp8, and e4m3 with f32 scales of 128 columns or rows"

/* Returns NULL if the kernel can read B, else the reason why not. `half` is true if weights are
 * decoded to f16. With e8m0 scales, the kernel may then read whole blocks of B (32 elements) to
 * find out whether they are zeros, so K must be a multiple of 32. */
static const char *refuse_b(const bsmm_operand *b, const bsmm_mixed_weights *w, bool half,
                            char *why, size_t size) {
    if (b->m.scale_layout != BSMM_LAYOUT_ROW_MAJOR && !bsmm_mixed_has_rows(w))
        return bsmm_reason(why, size, "B's scale_layout is %s; the kernel takes row_major scales",
                           bsmm_layout_name(b->m.scale_layout));
    const char *reason = bsmm_gpu_refuse_order(b, 'B', why, size);
    const bool whole = half && w->format.scale == BSMM_SCALE_E8M0;
    const uint32_t unit = bsmm_mixed_bits(w) == 8 && !whole ? 16 : 32;
    return reason
               ? reason
               : bsmm_small_m_refuse_units(b, 'B', unit, unit * bsmm_mixed_bits(w) / 8, why, size);
}

static uint32_t blocks_per_row(const bsmm_product *p) {
    return (uint32_t)bsmm_ceil_div(bsmm_small_m_count_steps(p), BSMM_MIXED_PREPARE_STEPS);
}

/* Refuses a K for which the grid of the kernel mixed_prepare would have more thread blocks along y
 * than a grid may have. */
static const char *refuse_long(const bsmm_product *p, char *why, size_t size) {
    const int64_t most = (int64_t)UINT16_MAX * BSMM_MIXED_PREPARE_STEPS * BSMM_SMALL_M_K;
    if (p->a.m.cols <= most) return NULL;
    return bsmm_reason(why, size, "K is %lld; the kernel takes at most %lld",
                       (long long)p->a.m.cols, (long long)most);
}

static const char *refuse(const bsmm_product *p, void *state, char *why, size_t size) {
    made *m = state;
    const bsmm_mixed_weights *w = bsmm_mixed_find_weights(&p->b);
    const char *reason = bsmm_cuda_refuse(p, &prepare_a[BSMM_SMALL_M_ANY], why, size);
    if (!w) return reason ? reason : bsmm_gpu_refuse_format(&p->b, 'B', WEIGHTS_RULE, why, size);
    if (!reason) reason = refuse_a(&p->a, w, why, size);
    if (!reason) reason = refuse_few(&p->a, why, size);
    if (!reason) reason = refuse_b(&p->b, w, bsmm_mixed_is_half(p), why, size);
    if (!reason) reason = bsmm_gpu_refuse_extents(p, why, size);
    if (!reason) reason = refuse_long(p, why, size);
    if (reason) return reason;
    m->w = w;
    m->launches = bsmm_mixed_divide(p, w);
    if (!bsmm_mixed_is_fastest(p, w, m->launches.time))
        return bsmm_reason(why, size,
                           "A has %lld rows and B has %lld x %lld elements; another kernel is "
                           "predicted to be faster",
                           (long long)p->a.m.rows, (long long)p->b.m.rows, (long long)p->b.m.cols);
    const bsmm_mixed_division *c = &m->launches.c[0];
    const uint64_t columns = (uint64_t)c->tiles * bsmm_mixed_columns(c);
    m->image_bytes = columns * bsmm_small_m_count_steps(p) * BSMM_SMALL_M_K * 2;
    m->least_bytes = (uint64_t)p->a.m.rows * blocks_per_row(p) * sizeof(uint32_t);
    m->scale_bytes =
        bsmm_mixed_has_row_scales(&p->a, w) ? (uint64_t)p->a.m.rows * sizeof(float) : 0;
    return NULL;
}

static uint64_t workspace_bytes(const bsmm_product *p, const void *state) {
    (void)p;
    const made *m = state;
    return m->image_bytes + m->least_bytes + m->scale_bytes;
}

/* Returns the kernel's error bound relative to the sum of |a * b|. The tensor cores add 16 products
 * and an accumulator at once and truncate each of these 17 terms 23 bits below the largest term.
 * Each 16 elements of K therefore add 17 * 2^-23 to the bound. Scaling the sums in the epilogue
 * adds a few roundings. */
static double bound(const bsmm_product *p, const void *state) {
    const made *m = state;
    const double k = (double)p->a.m.cols;
    const double quotients = bsmm_mixed_has_groups(m->w) ? 3 * k / BSMM_SMALL_M_K : 0;
    return (2.2 * (k + 16) + quotients + 64) * 0x1p-24;
}

static bsmm_small_m_params params_of(const bsmm_product *p, const made *m,
                                     const bsmm_mixed_division *c) {
    const uint32_t columns = bsmm_mixed_columns(c);
    bsmm_small_m_params params = bsmm_small_m_params_of(p);
    params.first_row = (uint32_t)c->first;
    params.splits = c->splits;
    params.splits_log2 = bsmm_small_m_log2_up(c->splits);
    params.k_warps_log2 = bsmm_small_m_log2(c->groups);
    params.range_inverse =
        (uint32_t)bsmm_ceil_div((int64_t)1 << 31, (int64_t)c->splits * c->groups);
    params.run_width = (uint32_t)bsmm_ceil_div(bsmm_mixed_rows(c) / BSMM_MIXED_RUN, c->splits);
    params.run_step = bsmm_mixed_threads(c) / params.run_width;
    params.run_inverse = (1u << 16) / params.run_width + 1;
    params.source = bsmm_small_m_find_source(&p->a);
    params.narrow = bsmm_mixed_bits(m->w) < 8;
    params.row_scaled = bsmm_mixed_has_row_scales(&p->a, m->w);
    params.parts = 1;
    params.half = bsmm_mixed_is_half(p);
    params.pair_distance = pair_distance(p, bsmm_mixed_bits(m->w));
    params.blocks_per_row = blocks_per_row(p);
    params.columns = columns;
    params.column_tiles = c->tiles;
    params.scale_count =
        (uint32_t)bsmm_ceil_div(p->b.m.cols, m->w->format.block_cols ? m->w->format.block_cols : 1);
    params.zero_block = m->w->format.block_cols;
    params.zero_least = (float)bsmm_elem_row(m->w->format.elem)->min_subnormal;
    params.zero_b_scales = bsmm_small_m_count_code_scales(&p->b);
    params.ring_at =
        BSMM_MIXED_SLOTS * columns * BSMM_SMALL_M_K * 2 / BSMM_MIXED_STEP_SLOTS(columns);
    params.barriers_at =
        params.ring_at + bsmm_mixed_ahead(bsmm_mixed_bits(m->w)) *
                             bsmm_mixed_slot_bytes(bsmm_mixed_threads(c), bsmm_mixed_bits(m->w));
    return params;
}

/* Returns the bytes of shared memory of a thread block. The epilogue reuses the memory of the ring
 * buffers for the accumulators of all warpgroups. */
static uint32_t shared_bytes(const bsmm_small_m_params *params, const bsmm_mixed_division *c) {
    const uint32_t loop = params->barriers_at + 2 * BSMM_MIXED_SLOTS * 8;
    const uint32_t sums = c->groups * bsmm_mixed_columns(c) * (bsmm_mixed_rows(c) + 4) * 4;
    return loop > sums ? loop : sums;
}

static bsmm_status make_launch(const bsmm_product *p, const made *m, const bsmm_mixed_division *c,
                               mixed_launch *to) {
    to->params = params_of(p, m, c);
    const bsmm_cuda_launch_desc multiply = {
        .function = bsmm_mixed_function(p, m->w, c),
        .grid = {(uint32_t)bsmm_ceil_div(c->rows, bsmm_mixed_rows(c)) * c->tiles * c->splits},
        .block = {bsmm_mixed_threads(c)},
        .cluster = {c->splits},
        .shared_bytes = shared_bytes(&to->params, c),
        .overlap = true,
    };
    return bsmm_cuda_ready_make(p->device, &multiply, &to->ready);
}

static bsmm_status make(const bsmm_product *p, void *state) {
    made *m = state;
    for (uint32_t i = 0; i < m->launches.count; i++)
        BSMM_TRY(make_launch(p, m, &m->launches.c[i], &m->multiply[i]));
    const bsmm_cuda_launch_desc prepare = {
        .function = &prepare_a[m->multiply[0].params.source],
        .grid = {(uint32_t)bsmm_ceil_div(p->a.m.rows, BSMM_MIXED_PREPARE_ROWS), blocks_per_row(p)},
        .block = {BSMM_SMALL_M_PREPARE_THREADS},
        .overlap = true,
    };
    return bsmm_cuda_ready_make(p->device, &prepare, &m->prepare);
}

/* Queues the launch, and before it `prepare` if that is not NULL. */
static bsmm_status run_launch(const bsmm_product *p, const made *m, const bsmm_cuda_ready *prepare,
                              const mixed_launch *launch, uint8_t *workspace) {
    bsmm_small_m_params params = launch->params;
    bsmm_small_m_params_bind(p, &params);
    params.a_image = workspace;
    params.a_image_any = (uint32_t *)(void *)(workspace + m->image_bytes);
    params.a_image_scales = (float *)(void *)(workspace + m->image_bytes + m->least_bytes);
    if (prepare)
        BSMM_TRY(
            bsmm_cuda_ready_launch(p->device, prepare, p->stream, BSMM_CUDA_ARGUMENTS(&params)));
    return bsmm_cuda_ready_launch(p->device, &launch->ready, p->stream,
                                  BSMM_CUDA_ARGUMENTS(&params));
}

static bsmm_status run_in_context(const bsmm_product *p, const made *m, void *workspace) {
    for (uint32_t i = 0; i < m->launches.count; i++)
        BSMM_TRY(run_launch(p, m, i == 0 ? &m->prepare : NULL, &m->multiply[i], workspace));
    return BSMM_OK;
}

static bsmm_status run(const bsmm_product *p, const void *state, void *workspace) {
    BSMM_CUDA_RETURN_INSIDE(p->device, run_in_context(p, state, workspace));
}

static uint32_t k_parts(const bsmm_product *p, const void *state) {
    (void)p;
    const bsmm_mixed_launches *all = &((const made *)state)->launches;
    const uint32_t parts = all->c[0].splits * all->c[0].groups;
    for (uint32_t i = 1; i < all->count; i++)
        if (all->c[i].splits * all->c[i].groups != parts) return 1;
    return parts;
}

const bsmm_kernel bsmm_kernel_cuda_sm90a_mixed = {
    .name = "cuda_sm90a_mixed",
    .device = "cuda",
    .state_bytes = sizeof(made),
    .refuse = refuse,
    .workspace_bytes = workspace_bytes,
    .bound = bound,
    .k_parts = k_parts,
    .make = make,
    .run = run,
    .alignment = 16,
};
