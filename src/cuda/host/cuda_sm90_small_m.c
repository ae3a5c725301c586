/* The kernel cuda_sm90_small_m multiplies few rows of A by weights B as checkpoints store them
 * (device code: sm90a/small_m_body.h). A may have up to 64 columns. A column is one row of A if its
 * elements have 8 bits or are bf16. An f16 row makes two columns and an f32 row makes three,
 * because their values are split into bf16 numbers. If A has more rows and B is large, the kernel
 * runs once for each band of A's rows.
 *
 * K is split into `ranges`, i.e. sequences of whole steps of 128 elements. The number of ranges
 * does not depend on M. A range of 8-bit weights is computed by one warp. A range of 4-bit weights
 * is computed by two warps, which take its steps alternately. The thread blocks of a cluster have
 * the same rows of B and different ranges. The accumulators of all warps are added in the order of
 * the ranges. A row of D is therefore bitwise identical for every M. */
#include "cuda/host/kernel.h"
#include "cuda/host/small_m_product.h"
#include "cuda/host/small_m_weights.h"

#include <math.h>

enum {
    WALKERS_4BIT = 2,
    /* MOST_BANDS is the largest number of bands (ranges of rows) into which A is divided.
     * MOST_ROWS_IN_BANDS is the largest number of rows of an A that is divided into bands. */
    MOST_BANDS = 4,
    MOST_ROWS_IN_BANDS = 128
};

/* Describes how a GEMM is divided among thread blocks and warps (tiles of D and split-K), and the
 * layout of a thread block's shared memory. Fields that end in _at are offsets in shared memory, in
 * bytes. */
typedef struct division {
    uint32_t splits, k_warps, walkers;
    uint32_t steps_each; /* `steps_each` is the largest number of steps of K per thread block. */
    uint32_t rows;       /* `rows` is the number of rows of B that a thread block computes. */
    uint32_t tiles_log2; /* `tiles_log2` is the log2 of the number of tiles of 8 columns. */
    /* `columns` is the number of rows of A, or of bf16 parts of its rows, in shared memory. */
    uint32_t columns;
    /* `scale_columns` is `columns` rounded up to a multiple of 4, so that the fp32 scales of all
     * columns take a multiple of 16 bytes. */
    uint32_t scale_columns;
    /* `step_scales` is the number of bytes of B's scales in shared memory per row and step (128
     * elements along K). 0 means that one fp32 scale applies to all of K. */
    uint32_t step_scales;
    /* Each warp with its own part of K reads A through a ring buffer in shared memory, which has
     * room for `a_slots` steps (128 elements along K). 0 means that there is no ring buffer,
     * because shared memory holds all of A that the thread block needs. */
    uint32_t a_slots;
    bool grouped, row_scaled;
    /* If `own` is true, each thread block converts A to bf16, else small_m_prepare converts it. */
    bool own;
    uint32_t scales_at, a_scales_at, ring_at, barriers_at, flags_at;
    uint32_t chunk_bytes, scale_stride, shared;
    double time; /* `time` is the predicted time in us, without the time to read A. */
} division;

/* Computes the layout of a thread block's shared memory: A, B's scales, A's fp32 scales, the ring
 * buffer of weights, and mbarriers. The epilogue reuses all of this memory for the accumulators of
 * all warps. Behind this memory are flags that say which rows of A are nonzero. Returns false if
 * shared memory is too small. */
static bool place(uint32_t a_slots, bool own, division *c) {
    uint32_t a_steps = a_slots ? c->k_warps * a_slots : c->steps_each;
    c->own = own;
    c->a_slots = a_slots;
    c->chunk_bytes = c->columns * 64 + (own ? 16 : 0);
    c->scales_at = a_steps * 4 * c->chunk_bytes;
    c->a_scales_at = c->scales_at + c->rows * c->scale_stride;
    c->ring_at = c->a_scales_at + (c->grouped ? c->steps_each * c->scale_columns * 4 : 0);
    c->barriers_at = c->ring_at + BSMM_SMALL_M_AHEAD * BSMM_SMALL_M_SLOT_BYTES;
    uint32_t sums = c->k_warps * (8u << c->tiles_log2) * (c->rows + 4) * 4;
    uint32_t all = c->barriers_at + (2 + 2 * c->k_warps * a_slots) * 8;
    c->flags_at = (uint32_t)bsmm_round_up(sums > all ? sums : all, 16);
    c->shared = c->flags_at + BSMM_SMALL_M_COLUMNS * 4;
    return c->shared <= BSMM_SMALL_M_MOST_SHARED;
}

/* Decides how a thread block gets A as bf16, and computes the layout of its shared memory. There
 * are three ways, and the first one that fits in shared memory is used. First, if `own` is set,
 * each thread block converts all of the A that it needs itself. Second, another kernel converts A,
 * and the thread block copies all of the A that it needs from the workspace. Third, another kernel
 * converts A, and the thread block copies A step by step, through a ring buffer that holds as many
 * steps as fit. Returns false if fewer than 2 steps fit. */
static bool place_a(bool own, division *c) {
    if (own && place(0, true, c)) return true;
    if (place(0, false, c)) return true;
    uint32_t slots = (uint32_t)bsmm_ceil_div(c->steps_each, c->k_warps);
    while (slots >= 2 && !place(slots, false, c))
        slots--;
    return slots >= 2;
}

/* Returns true if each thread block should convert A itself. A thread converts at most
 * BSMM_SMALL_M_OWN_CHUNKS chunks of 8 elements, which is enough for one or two rows of A. For more
 * rows, a separate kernel that converts A once is faster than conversions in all thread blocks. */
static bool can_make_own(const bsmm_product *p, const bsmm_small_m_weights *w, const division *c) {
    uint64_t chunks = (uint64_t)c->steps_each * (BSMM_SMALL_M_K / 8)
                      << bsmm_small_m_log2_up((uint32_t)p->a.m.rows);
    const bsmm_small_m_source source = bsmm_small_m_find_source(&p->a);
    if (source == BSMM_SMALL_M_ANY) return false;
    /* Only kernels for 4-bit weights without fp32 scales along K have code for an A in e2m1. */
    if (source == BSMM_SMALL_M_E2M1 && (bsmm_small_m_bits(w) != 4 || c->grouped)) return false;
    return c->tiles_log2 == 0 && chunks <= (uint64_t)BSMM_SMALL_M_OWN_CHUNKS * BSMM_SMALL_M_THREADS;
}

/* Divides a GEMM with `rows` rows of A among thread blocks, and describes the division in *c.
 * `splits` thread blocks split its K. A thread block has as many rows of B and warps as *speed
 * says. Returns false if the scales or A would need more shared memory than there is. */
static bool try_division(const bsmm_product *p, const bsmm_small_m_weights *w, int64_t rows,
                         const bsmm_small_m_speed *speed, uint32_t splits, division *c) {
    uint32_t columns = (uint32_t)rows * bsmm_small_m_count_parts(&p->a);
    *c = (division){.k_warps = speed->k_warps, .rows = speed->rows, .splits = splits};
    c->walkers = bsmm_small_m_bits(w) == 4 ? WALKERS_4BIT : 1;
    c->steps_each = bsmm_small_m_most_steps(bsmm_small_m_count_steps(p), splits);
    c->tiles_log2 = columns <= 8 ? 0 : columns <= 16 ? 1 : columns <= 32 ? 2 : 3;
    c->columns = c->tiles_log2 ? 8u << c->tiles_log2 : columns;
    c->scale_columns = (uint32_t)bsmm_round_up(c->columns, 4);
    c->grouped = bsmm_small_m_is_grouped(p);
    c->row_scaled = bsmm_small_m_has_row_floats(&p->a) && !c->grouped;
    c->step_scales = w->by_row && bsmm_small_m_has_row_floats(&p->b) ? 0 : w->step_scales;
    if ((uint64_t)c->steps_each * c->step_scales * c->rows > BSMM_SMALL_M_MOST_SHARED) return false;
    c->scale_stride =
        bsmm_small_m_scale_stride(p, c->step_scales, splits, splits * c->k_warps / c->walkers);
    return place_a(can_make_own(p, w, c), c);
}

/* Returns true if the warps of `splits` thread blocks of a cluster, `lanes` warps in total, may
 * divide K. If `splits` is larger than 1, each warp must have at least one step of 128 elements. */
static bool has_steps(const bsmm_product *p, uint32_t lanes, uint32_t splits) {
    return splits == 1 || lanes <= bsmm_small_m_count_steps(p);
}

/* Returns the predicted time in which the thread blocks read A, converted to bf16. The more rows of
 * B a thread block multiplies, the fewer thread blocks read A, and the shorter is this time. A row
 * of A takes one column, or one for each bf16 part into which its elements are split. For up to
 * BSMM_SMALL_M_COLUMNS columns the result is 0, because the time then does not change which shape
 * of thread block is fastest. */
static double time_of_a(const bsmm_product *p, const bsmm_small_m_speed *speed, uint32_t splits,
                        int64_t rows) {
    const int64_t columns = rows * bsmm_small_m_count_parts(&p->a);
    return columns > BSMM_SMALL_M_COLUMNS ? bsmm_small_m_predict_a(p, speed, splits) : 0;
}

/* Finds the division of the GEMM with the least predicted time for `rows` rows of A. If `lanes` is
 * nonzero, the function tries only divisions in which `lanes` warps of a cluster split K. Returns
 * false if shared memory is too small for all divisions. */
static bool find_fastest(const bsmm_product *p, const bsmm_small_m_weights *w, int64_t rows,
                         uint32_t lanes, division *best) {
    const bsmm_small_m_speed *speeds =
        bsmm_small_m_speeds[bsmm_small_m_bits(w) == 4 ? BSMM_SMALL_M_4BIT : BSMM_SMALL_M_8BIT];
    double least = INFINITY;
    for (uint32_t i = 0; i < BSMM_SMALL_M_SPEEDS && speeds[i].k_warps; i++)
        for (uint32_t splits = 1; splits <= BSMM_SMALL_M_MOST_SPLITS; splits *= 2) {
            const uint32_t all = splits * speeds[i].k_warps;
            if ((lanes && all != lanes) || !has_steps(p, all, splits)) continue;
            const double time = bsmm_small_m_predict(p, &speeds[i], splits),
                         with_a = time + time_of_a(p, &speeds[i], splits, rows);
            division c;
            if (with_a < least && try_division(p, w, rows, &speeds[i], splits, &c))
                *best = c, best->time = time, least = with_a;
        }
    return least < (double)INFINITY;
}

/* Finds the division of the GEMM that the kernel uses. The number of warps along K fixes the order
 * of additions, so this number must not depend on M. The function therefore takes the number that
 * is fastest for the most rows of A that one launch takes. Among the divisions with this number of
 * warps, it takes the fastest one for the product's own M. Returns false if shared memory is too
 * small for such a division. */
static bool find_division(const bsmm_product *p, const bsmm_small_m_weights *w, division *c) {
    const int64_t most = BSMM_SMALL_M_COLUMNS / bsmm_small_m_count_parts(&p->a);
    return find_fastest(p, w, most, 0, c) &&
           find_fastest(p, w, p->a.m.rows, c->k_warps * c->splits, c);
}

typedef struct made {
    const bsmm_small_m_weights *w;
    /* If A has more rows than the kernels take, A is divided into `bands` bands of `rows` rows, and
     * the kernels run once for each band. The last band overlaps the one before if the bands have
     * more rows together than A. Some rows of D are then computed twice, with the same bits. */
    uint32_t bands;
    int64_t rows;
    division c;
    bsmm_small_m_params params;
    bsmm_cuda_ready prepare, multiply;
    /* `image_bytes` is the size in bytes of A converted to bf16. `flag_bytes` is the size of the
     * flags that say which rows of A are nonzero. `workspace_bytes` is the size of the workspace,
     * which is used only if a separate kernel converts A. */
    uint64_t image_bytes, flag_bytes, workspace_bytes;
} made;

BSMM_CHECK_STATE(made);

/* Returns an array of four kernels for the formats and scales of the product. They are for up to 8,
 * 16, 32 and 64 columns. A column is one row of A, or one of the bf16 parts into which a row is
 * split. */
static const bsmm_cuda_function *find_kernels(const bsmm_product *p,
                                              const bsmm_small_m_weights *w) {
    const bsmm_cuda_function(*functions)[4] = w->functions[bsmm_small_m_generation(p)];
    return functions[bsmm_small_m_is_grouped(p)];
}

/* Returns the largest number of columns for which this kernel is used. (A column of the kernel's
 * tile is one row of A or one bf16 part of a row.) With more columns, the kernels for many rows of
 * A are faster. The number is smaller in two cases. If A and B are FP8 with fp32 scales, the kernel
 * for the FP8 tensor cores is already faster with fewer columns. If A has elements of less than 8
 * bits, many sums are exactly 0, and recomputing them in double takes time. */
static uint32_t most_columns(const bsmm_product *p, const bsmm_small_m_weights *w) {
    const uint32_t elem = p->a.m.format.elem;
    const bool fp8 = bsmm_cuda_is_fp8(elem) && bsmm_cuda_has_groups(&p->a);
    const bool few = (fp8 && bsmm_cuda_has_groups(&p->b)) || bsmm_elem_row(elem)->bits < 8;
    const bsmm_cuda_function *kernels = find_kernels(p, w);
    uint32_t i = few ? 2 : 3;
    while (i > 0 && !kernels[i].name)
        i--;
    return 8u << i;
}

/* Returns true if an operand can be divided between any two rows. This requires that no scale
 * belongs to several rows, and that no tile of the scale layout has several rows. */
static bool has_single_rows(const bsmm_operand *o) {
    if (o->m.format.scale == BSMM_SCALE_NONE) return true;
    return o->m.format.block_rows == 1 && o->map.digit_count == 0 && o->map.tile_rows == 1;
}

/* Returns true if A's rows may be divided into bands, i.e. ranges of rows with one launch each.
 * Bands may overlap, and a row of D in two bands is computed twice. With a C this would be wrong,
 * because C may be the memory of D. A row of an f16 or f32 A takes two or three columns of a tile,
 * so such an A would have so many bands that other kernels are faster. */
static bool has_bands(const bsmm_product *p) {
    return !p->has_c && bsmm_small_m_count_parts(&p->a) == 1 && has_single_rows(&p->a) &&
           bsmm_small_m_generation(p) == BSMM_SMALL_M_HOPPER;
}

/* Returns the largest number of rows of A for which this kernel is used. One launch computes at
 * most `each` rows. More rows are divided into bands. Each band has a launch that reads all of B,
 * so bands are used only where small_m_choose.c expects them to be faster than other kernels. */
static int64_t most_rows(const bsmm_product *p, const bsmm_small_m_weights *w, int64_t each) {
    if (!has_bands(p) || most_columns(p, w) < BSMM_SMALL_M_MOST_COLUMNS) return each;
    if (!bsmm_small_m_prefers_bands(p, bsmm_small_m_bits(w))) return each;
    return bsmm_min_i64(each * MOST_BANDS, MOST_ROWS_IN_BANDS);
}

/* Divides the rows of A into bands (ranges) of equal size. */
static const char *find_bands(const bsmm_product *p, const bsmm_small_m_weights *w, made *m,
                              char *why, size_t size) {
    const int64_t each = most_columns(p, w) / bsmm_small_m_count_parts(&p->a);
    const int64_t rows = p->a.m.rows, most = most_rows(p, w, each);
    if (rows > most)
        return bsmm_reason(why, size,
                           "A has %lld rows; the kernel takes at most %lld of these formats",
                           (long long)rows, (long long)most);
    m->bands = rows > each ? (uint32_t)bsmm_ceil_div(rows, each) : 1;
    m->rows = bsmm_ceil_div(rows, m->bands);
    return NULL;
}

/* Returns the GEMM of band number `band`, i.e. of a range of A's rows that one launch computes. */
static bsmm_product band_of(const bsmm_product *p, const made *m, uint32_t band) {
    bsmm_product part = *p;
    const int64_t row = bsmm_min_i64(band * m->rows, p->a.m.rows - m->rows);
    bsmm_operand_keep_rows(&part.a, row, m->rows);
    bsmm_operand_keep_rows(&part.d, row, m->rows);
    return part;
}

#define WIDE_RULE "with f32 scales along K the kernel takes elements of at most 8 bits"
#define WEIGHTS_RULE                                                                               \
    "the kernel takes mxfp4, nvfp4, mxfp6, mxfp8, and e4m3 with f32 scales of multiples of 128 "   \
    "columns or all of K"

static const char *refuse_a(const bsmm_operand *a, char *why, size_t size) {
    if (a->m.format.scale == BSMM_SCALE_F32 && !bsmm_small_m_has_steady_floats(a))
        return bsmm_gpu_refuse_format(a, 'A', BSMM_SMALL_M_FLOATS_RULE, why, size);
    /* If A's elements have more than 8 bits, the fp32 sum of a step (128 elements of K) may
     * underflow before a large fp32 scale multiplies it, so such an A is refused. */
    if (a->m.format.scale == BSMM_SCALE_F32 && !bsmm_small_m_has_row_floats(a) &&
        bsmm_elem_row(a->m.format.elem)->bits > 8)
        return bsmm_gpu_refuse_format(a, 'A', WIDE_RULE, why, size);
    return NULL;
}

static const char *refuse_b(const bsmm_operand *b, const bsmm_small_m_weights *w, char *why,
                            size_t size) {
    if (!w) return bsmm_gpu_refuse_format(b, 'B', WEIGHTS_RULE, why, size);
    const uint32_t unit = bsmm_small_m_bits(w) == 8 ? 16 : 32,
                   bytes = unit * bsmm_small_m_bits(w) / 8;
    const char *reason = bsmm_gpu_refuse_order(b, 'B', why, size);
    return reason ? reason : bsmm_small_m_refuse_units(b, 'B', unit, bytes, why, size);
}

/* Returns the size in bytes of the bf16 copy of A in the workspace, without A's scales. */
static uint64_t image_bytes(const bsmm_product *p, const division *c) {
    return (uint64_t)bsmm_small_m_count_steps(p) * c->columns * BSMM_SMALL_M_K * 2;
}

/* Returns the number of thread blocks per row of A in the kernel that converts A to bf16. Each
 * thread of the kernel converts a chunk of 8 elements along K. */
static uint32_t blocks_per_row(const bsmm_product *p) {
    return (uint32_t)bsmm_ceil_div((int64_t)bsmm_small_m_count_steps(p) * 16,
                                   BSMM_SMALL_M_PREPARE_THREADS);
}

static uint64_t flag_bytes(const bsmm_product *p) {
    return ((uint64_t)p->a.m.rows * blocks_per_row(p) * sizeof(uint32_t) + 15) / 16 * 16;
}

static void measure(const bsmm_product *p, made *m) {
    m->image_bytes = image_bytes(p, &m->c);
    m->flag_bytes = flag_bytes(p);
    m->workspace_bytes = 0;
    if (m->c.own) return;
    m->workspace_bytes = m->image_bytes + m->flag_bytes +
                         (uint64_t)bsmm_small_m_count_steps(p) * m->c.scale_columns * sizeof(float);
}

/* Halves the bands (a band is a range of A's rows that one launch computes) if a band has more than
 * 32 rows and the predicted time is then shorter. A fixed number of warps splits K. With fewer rows
 * of A, these warps need less shared memory, so they may fit in a cluster of fewer thread blocks.
 * The GPU can run more of such clusters at once. */
static void halve_bands(const bsmm_product *p, made *m) {
    if (m->c.columns <= BSMM_SMALL_M_COLUMNS || !has_bands(p)) return;
    made half = *m;
    half.bands = 2 * m->bands;
    half.rows = bsmm_ceil_div(p->a.m.rows, half.bands);
    const bsmm_product band = band_of(p, &half, 0);
    if (find_division(&band, m->w, &half.c) && half.bands * half.c.time < m->bands * m->c.time)
        *m = half;
}

static const char *refuse(const bsmm_product *p, void *state, char *why, size_t size) {
    made *m = state;
    const bsmm_small_m_weights *w = bsmm_small_m_find_weights(&p->b);
    const bsmm_small_m_weights *any = w ? w : bsmm_small_m_any_weights();
    const char *reason =
        bsmm_cuda_refuse(p, &any->functions[bsmm_small_m_generation(p)][1][0], why, size);
    if (!reason) reason = refuse_a(&p->a, why, size);
    if (!reason) reason = refuse_b(&p->b, w, why, size);
    if (reason || !w) return reason; /* refuse_b refuses B if `w` is NULL. */
    reason = find_bands(p, w, m, why, size);
    if (!reason) reason = bsmm_gpu_refuse_extents(p, why, size);
    if (reason) return reason;
    m->w = w;
    bsmm_product band = band_of(p, m, 0);
    if (!find_division(&band, w, &m->c))
        return bsmm_reason(why, size, "K is %lld; with %lld rows of A it must fit in shared memory",
                           (long long)p->a.m.cols, (long long)m->rows);
    halve_bands(p, m);
    band = band_of(p, m, 0);
    measure(&band, m);
    return NULL;
}

double bsmm_small_m_predict_rows(const bsmm_product *p) {
    made m = {0};
    char why[256];
    if (refuse(p, &m, why, sizeof why)) return INFINITY;
    return m.bands * bsmm_small_m_with_columns(m.c.time, m.c.columns, bsmm_small_m_bits(m.w));
}

static uint64_t workspace_bytes(const bsmm_product *p, const void *state) {
    (void)p;
    const made *m = state;
    return m->bands * m->workspace_bytes;
}

/* Returns the kernel's error bound. The tensor cores add 16 products and an accumulator at once and
 * truncate each of these 17 terms 23 bits below the largest term. The bound for 16 elements of K is
 * therefore 17 * 2^-23. f16 and f32 values are split into 2 and 3 bf16 numbers, so K has 2 or 3
 * times as many products. With fp32 scales that change along K, only sums over 128 elements of K
 * have this error. Each of these sums is then multiplied by its two scales, which takes one FMA and
 * the rounding of a product of scales. */
static double bound(const bsmm_product *p, const void *state) {
    (void)state;
    double k = (double)p->a.m.cols, parts = bsmm_small_m_count_parts(&p->a);
    double sums = bsmm_small_m_is_grouped(p) ? 2.2 * (BSMM_SMALL_M_K + 16) + k / BSMM_SMALL_M_K
                                             : 2.2 * (k + 16);
    return (parts * sums + 64) * 0x1p-24;
}

/* Sets the parameters with which the epilogue recognizes that a sum of 0 is exact, i.e. that no
 * product has underflowed. In two cases the parameters stay 0, and the epilogue then recomputes
 * every sum of 0. The first case is that the elements of A have more than 8 bits, because sums of
 * such elements are rarely 0. The second case is that fp32 scales multiply partial sums, because
 * the scaled sums may underflow. */
static void set_zeros(const bsmm_product *p, bsmm_small_m_params *params) {
    const bsmm_format *a = &p->a.m.format, *b = &p->b.m.format;
    if (bsmm_small_m_is_grouped(p) || bsmm_elem_row(a->elem)->bits > 8) return;
    const bool blocks = a->scale == BSMM_SCALE_E8M0 || a->scale == BSMM_SCALE_E4M3;
    params->zero_block = blocks && a->block_cols < b->block_cols ? a->block_cols : b->block_cols;
    params->zero_least =
        (float)(bsmm_elem_row(a->elem)->min_subnormal * bsmm_elem_row(b->elem)->min_subnormal);
    params->zero_a_scales = bsmm_small_m_count_code_scales(&p->a);
    params->zero_b_scales = bsmm_small_m_count_code_scales(&p->b);
}

static bsmm_small_m_params params_of(const bsmm_product *p, const bsmm_small_m_weights *w,
                                     const division *c) {
    const uint32_t ranges = c->splits * c->k_warps / c->walkers;
    bsmm_small_m_params params = bsmm_small_m_params_of(p);
    params.ranges_log2 = bsmm_small_m_log2(ranges);
    params.splits_log2 = bsmm_small_m_log2(c->splits);
    params.k_warps_log2 = bsmm_small_m_log2(c->k_warps);
    params.source = bsmm_small_m_find_source(&p->a);
    params.row_scaled = c->row_scaled;
    params.a_slots = c->a_slots;
    params.scale_columns = c->scale_columns;
    params.narrow = bsmm_small_m_bits(w) < 8;
    params.blocks_per_row = blocks_per_row(p);
    params.columns = c->columns;
    params.chunk_bytes = c->chunk_bytes;
    params.for_wgmma = bsmm_small_m_generation(p) == BSMM_SMALL_M_HOPPER &&
                       c->columns >= BSMM_SMALL_M_WGMMA_COLUMNS;
    params.scale_stride = c->scale_stride;
    params.scale_step = c->step_scales;
    params.scale_vector = bsmm_small_m_has_row_codes(&p->b);
    params.scale_count = (uint32_t)bsmm_ceil_div(p->b.m.cols, BSMM_SMALL_M_K / w->step_scales);
    params.scale_lanes_log2 = bsmm_small_m_scale_lanes_log2(c->steps_each * c->step_scales);
    params.scales_at = c->scales_at;
    params.a_scales_at = c->a_scales_at;
    params.ring_at = c->ring_at;
    params.barriers_at = c->barriers_at;
    params.flags_at = c->flags_at;
    set_zeros(p, &params);
    return params;
}

static bsmm_status make(const bsmm_product *p, void *state) {
    made *m = state;
    const division *c = &m->c;
    const bsmm_product band = band_of(p, m, 0);
    m->params = params_of(&band, m->w, c);
    const bsmm_cuda_launch_desc prepare = {
        .function = &bsmm_small_m_prepare_a[bsmm_small_m_generation(p)],
        .grid = {m->params.m * m->params.blocks_per_row},
        .block = {BSMM_SMALL_M_PREPARE_THREADS},
        .overlap = true,
    };
    const bsmm_cuda_launch_desc multiply = {
        .function = &find_kernels(p, m->w)[c->tiles_log2],
        .grid = {(uint32_t)bsmm_ceil_div(p->d.m.cols, c->rows) * c->splits},
        .block = {BSMM_SMALL_M_THREADS},
        .cluster = {c->splits},
        .shared_bytes = c->shared,
        .overlap = true,
    };
    BSMM_TRY(bsmm_cuda_ready_make(p->device, &prepare, &m->prepare));
    return bsmm_cuda_ready_make(p->device, &multiply, &m->multiply);
}

/* Returns the kernels' parameters for one band, i.e. range of rows, of A. `image` is memory for
 * this band of A, converted to bf16 in the order in which the GEMM kernel reads it. */
static bsmm_small_m_params params_of_band(const bsmm_product *band, const made *m, uint8_t *image) {
    bsmm_small_m_params params = m->params;
    bsmm_small_m_params_bind(band, &params);
    if (m->c.own) return params;
    uint8_t *image_end = image + m->image_bytes;
    params.a_image = image;
    params.a_image_any = (uint32_t *)(void *)image_end;
    if (m->c.grouped) params.a_image_scales = (float *)(void *)(image_end + m->flag_bytes);
    return params;
}

/* Queues one kernel for each band (range) of A's rows. */
static bsmm_status launch_each(const bsmm_product *p, const made *m, const bsmm_cuda_ready *kernel,
                               uint8_t *workspace) {
    for (uint32_t i = 0; i < m->bands; i++) {
        const bsmm_product band = band_of(p, m, i);
        bsmm_small_m_params params = params_of_band(&band, m, workspace + i * m->workspace_bytes);
        BSMM_TRY(
            bsmm_cuda_ready_launch(p->device, kernel, p->stream, BSMM_CUDA_ARGUMENTS(&params)));
    }
    return BSMM_OK;
}

/* Queues small_m_prepare for all bands (ranges) of A's rows, then the GEMM kernel for all bands. A
 * band's GEMM kernel can then load weights while the previous band's GEMM kernel still runs. */
static bsmm_status run_in_context(const bsmm_product *p, const made *m, void *workspace) {
    if (!m->c.own) BSMM_TRY(launch_each(p, m, &m->prepare, workspace));
    return launch_each(p, m, &m->multiply, workspace);
}

static bsmm_status run(const bsmm_product *p, const void *state, void *workspace) {
    BSMM_CUDA_RETURN_INSIDE(p->device, run_in_context(p, state, workspace));
}

static uint32_t k_parts(const bsmm_product *p, const void *state) {
    (void)p;
    const made *m = state;
    return m->c.splits * m->c.k_warps;
}

const bsmm_kernel bsmm_kernel_cuda_sm90_small_m = {
    .name = "cuda_sm90_small_m",
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
