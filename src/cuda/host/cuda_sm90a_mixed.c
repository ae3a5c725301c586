/* The kernel cuda_sm90a_mixed multiplies A by weights B as checkpoints store them (device code:
 * sm90a/mixed_kernels.h). cuda_sm90_small_m is faster for few rows of A, and a kernel that first
 * converts all of B to bf16 is faster for very many rows. cuda_sm90a_mixed refuses such products.
 *
 * An f16 A stays f16, and any other A is converted to bf16. Weights are decoded to the same type,
 * f16 or bf16. A column is one row of A. A thread block multiplies a tile of 32 to 128 columns by
 * 128 or 256 rows of B, or a tile of 256 columns by 128 rows of B. K is split into ranges of whole
 * steps of 128 elements. The accumulators of the ranges are added in an order that depends on the
 * column of D, but not on its row. */
#include "cuda/host/kernel.h"
#include "cuda/host/small_m_product.h"
#include "cuda/host/wgmma.h"
#include "cuda/sm90a/mixed_shape.h"

#include <math.h>

enum { COLUMN_CHOICES = 5 };
static const uint32_t columns_of[COLUMN_CHOICES] = {32, 64, 96, 128, 256};

/* Describes a kernel. `step` is the time in us in which a thread block computes one step of 128
 * elements along K. */
typedef struct mixed_kernel {
    bsmm_cuda_function function;
    double step;
} mixed_kernel;

/* CHOICE_OF(columns) is the index of `columns` in columns_of. */
#define CHOICE_OF(columns) ((columns) > 128 ? COLUMN_CHOICES - 1 : (columns) / 32 - 1)

#define COLUMNS(...)
#define KERNEL(module, name, format, columns, half, step_ns)                                       \
    [format][half][CHOICE_OF(columns)] = {{"sm90a/" #module, #name, BSMM_SMALL_M_MOST_SHARED},     \
                                          (step_ns)*1e-3},

/* Lists the kernels. The first index is the format of the weights. The second index is 1 for
 * kernels that decode weights to f16, because A is f16, and 0 for bf16. The third index is that of
 * columns_of; a column is a row of A. If there is no kernel for these indices, function.name is
 * NULL. */
static const mixed_kernel all_kernels[SMALL_M_FORMATS][2][COLUMN_CHOICES] = {
#include "cuda/sm90a/mixed.def"
};

/* Describes a format of B. all_kernels[kernels] has the kernels for this format. */
typedef struct weights {
    bsmm_format format;
    uint32_t kernels;
} weights;

static const weights all_weights[] = {
    {{BSMM_ELEM_E2M1, BSMM_SCALE_E8M0, 1, 32}, SMALL_M_MXFP4},
    {{BSMM_ELEM_E2M1, BSMM_SCALE_E4M3, 1, 16}, SMALL_M_NVFP4},
    {{BSMM_ELEM_E4M3, BSMM_SCALE_E8M0, 1, 32}, SMALL_M_MXFP8},
    {{BSMM_ELEM_E2M3, BSMM_SCALE_E8M0, 1, 32}, SMALL_M_MXFP6_E2M3},
    {{BSMM_ELEM_E3M2, BSMM_SCALE_E8M0, 1, 32}, SMALL_M_MXFP6_E3M2},
};
/* These weights are e4m3 with one fp32 scale for each row of B. */
static const weights row_scaled = {{BSMM_ELEM_E4M3, BSMM_SCALE_F32, 1, 0}, SMALL_M_FP8_ROWS};
/* These weights are e4m3 with an fp32 scale for each 128 elements along K. */
static const weights group_scaled = {{BSMM_ELEM_E4M3, BSMM_SCALE_F32, 1, BSMM_SMALL_M_K},
                                     SMALL_M_FP8_F32};

/* Lists the kernels that convert A, by the way in which they read it. */
static const bsmm_cuda_function prepare_a[] = {
    [BSMM_SMALL_M_ANY] = {"sm90a/mixed", "mixed_prepare_any", 0},
    [BSMM_SMALL_M_BF16] = {"sm90a/mixed", "mixed_prepare_bf16", 0},
    [BSMM_SMALL_M_F16] = {"sm90a/mixed", "mixed_prepare_f16", 0},
    [BSMM_SMALL_M_E4M3] = {"sm90a/mixed", "mixed_prepare_e4m3", 0},
    [BSMM_SMALL_M_E2M1] = {"sm90a/mixed", "mixed_prepare_e2m1", 0},
};

static const weights *find_weights(const bsmm_operand *b) {
    const bsmm_format *f = &b->m.format;
    for (size_t i = 0; i < BSMM_COUNT(all_weights); i++)
        if (bsmm_format_equal(all_weights[i].format, *f)) return &all_weights[i];
    if (f->elem != BSMM_ELEM_E4M3 || f->scale != BSMM_SCALE_F32) return NULL;
    if (bsmm_small_m_has_row_floats(b)) return &row_scaled;
    return f->block_cols == BSMM_SMALL_M_K ? &group_scaled : NULL;
}

/* Returns true if the kernel decodes weights to f16, because A is f16. */
static bool is_half(const bsmm_product *p) {
    return p->a.m.format.elem == BSMM_ELEM_F16;
}

static const mixed_kernel *kernels_of(const bsmm_product *p, const weights *w) {
    return all_kernels[w->kernels][is_half(p)];
}

/* A 32-bit word of A's image (A in the order in which the GEMM kernel reads it) holds two elements
 * of a row of A. Returns their distance along K. It depends on the weights' format: at this
 * distance, two weights can be decoded together with the fewest instructions. */
static uint32_t pair_distance(const bsmm_product *p, uint32_t bits) {
    if (bits == 6) return 4;
    return (bits == 4 ? 4u : 2u) / (is_half(p) ? 2 : 1);
}

static uint32_t bits_of(const weights *w) {
    return bsmm_elem_row(w->format.elem)->bits;
}

/* Describes how a GEMM is divided among thread blocks. */
typedef struct division {
    uint32_t choice; /* `choice` is the index of the tile's width in columns_of. */
    /* K is split twice. The `splits` thread blocks of a cluster each take one part of K. In each
     * thread block, the warpgroups form `groups` groups, which split the thread block's part of K
     * further. */
    uint32_t groups, splits;
    uint32_t tiles; /* The columns of A (its rows as bf16) are divided into `tiles` tiles. */
    double time;    /* `time` is the predicted time in us. */
} division;

typedef struct made {
    const weights *w;
    division c;
    bsmm_small_m_params params;
    bsmm_cuda_ready prepare, multiply;
    /* A kernel that runs first converts A. It writes three arrays, with these sizes in bytes:
     * `image_bytes` for A in bf16 or f16, `least_bytes` for the smallest nonzero magnitude of each
     * row of A, and `scale_bytes` for the fp32 scales of A's rows (0 if A has no such scales). By
     * the smallest magnitudes, the epilogue decides whether a product may have underflowed. */
    uint64_t image_bytes, least_bytes, scale_bytes;
} made;

BSMM_CHECK_STATE(made);

static uint32_t threads_of(const division *c) {
    return BSMM_MIXED_THREADS(columns_of[c->choice]);
}

static uint32_t rows_of(const division *c) {
    return threads_of(c) / 2 / c->groups;
}

/* Returns true if many sums are likely to be exactly 0. This holds for elements of less than 8 bits
 * with e8m0 scales, because they are small multiples of powers of two. */
static bool sums_to_zero(const bsmm_product *p) {
    return p->a.m.format.scale == BSMM_SCALE_E8M0 && p->b.m.format.scale == BSMM_SCALE_E8M0 &&
           bsmm_elem_row(p->a.m.format.elem)->bits < 8 &&
           bsmm_elem_row(p->b.m.format.elem)->bits < 8;
}

/* Returns the number of results that a thread block stores. */
static double results_of(const bsmm_product *p, const division *c) {
    return (double)p->a.m.rows / c->tiles * rows_of(c) / c->splits;
}

/* Returns the number of waves of clusters. */
static double waves_of(const bsmm_product *p, const division *c) {
    const int64_t clusters = bsmm_ceil_div(p->b.m.rows, rows_of(c)) * c->tiles;
    return (double)bsmm_ceil_div(clusters, bsmm_cuda_clusters_at_once(p->device, c->splits));
}

/* Lists the numbers of thread blocks of a cluster that the host considers. Clusters of six or seven
 * thread blocks were no faster than the others for the products that were measured. */
static const uint32_t all_splits[] = {1, 2, 3, 4, 5, 8};

/* Returns the estimated time in us of adding the partial sums of a tile. K is divided among the
 * `splits` thread blocks of a cluster, and in each thread block among `groups` groups of warps. The
 * time grows with the number of groups, with the columns of the tile that rows of A fill, and with
 * log2(splits), rounded up. Rounding up is right on an H200: clusters of three thread blocks take
 * about as long as clusters of four, and clusters of five about as long as clusters of eight. */
static double adding_of(const bsmm_product *p, const division *c) {
    const double filled = (double)p->a.m.rows / c->tiles;
    return 0.16 * (c->groups - 1) +
           fmax(0, 0.022 * filled - 0.35) * bsmm_small_m_log2_up(c->splits);
}

/* Predicts the time in us of a division of the GEMM into tiles of 256 columns. `step` is the time
 * of a step (128 elements along K) of a thread block that runs alone. A step takes up to 17% longer
 * if all SMs work, since the power limit then lowers the clock. The constants are fitted to 200
 * GEMMs of 192 to 4096 rows of A. Each of them was measured on an H200 with all of K in one thread
 * block, and with K split between two. The root mean square of the error is 2.5%. If many results
 * are 0, `zeros` is the time in which the epilogue checks them; it was estimated from 30 GEMMs of
 * mxfp4 by mxfp4. */
static double predict_wide(const bsmm_product *p, const division *c, double step) {
    const double blocks = (double)bsmm_ceil_div(p->b.m.rows, rows_of(c)) * c->tiles * c->splits;
    const double most = (double)bsmm_cuda_clusters_at_once(p->device, c->splits) * c->splits;
    const uint32_t steps = bsmm_small_m_most_steps(bsmm_small_m_count_steps(p), c->splits);
    const double filled = (double)p->a.m.rows / c->tiles;
    const double converted = (double)p->a.m.rows * (double)p->a.m.cols * 4;
    const double zeros = sums_to_zero(p) ? 0.2e-3 * results_of(p, c) : 0;
    return 2.4 + converted * 0.22e-6 +
           waves_of(p, c) * (5.5 + zeros + 0.0093 * filled * bsmm_small_m_log2_up(c->splits) +
                             step * (1 + 0.17 * fmin(1, blocks / most)) * (double)steps);
}

/* Predicts the time in us of a division of the GEMM among thread blocks. It is the number of waves
 * of clusters times the time of a thread block, plus fixed times. The constants are fitted to 714
 * times of products of 9 to 512 rows of A that were measured on an H200 with two earlier forms of
 * the kernel that converts A, with an error of 7% (root mean square). The division that is
 * predicted to be fastest took 1.005 times as long as the fastest measured one (geometric mean). */
static double predict(const bsmm_product *p, const weights *w, const division *c) {
    const double step = kernels_of(p, w)[c->choice].step;
    if (columns_of[c->choice] > 128) return predict_wide(p, c, step);
    const uint32_t steps =
        bsmm_small_m_most_steps(bsmm_small_m_count_steps(p), c->splits * c->groups);
    /* `zeros` is the additional time in us if many sums are likely to be exactly 0, because the
     * epilogue loads scales for each such sum to find out whether products have underflowed. */
    const double zeros = sums_to_zero(p) ? 0.1e-3 * results_of(p, c) : 0;
    /* If each row of B has an fp32 scale, the epilogue takes `more` microseconds longer. */
    const double more = w == &row_scaled ? 1.1 : 0;
    /* `converted` estimates the number of bytes that the kernel mixed_prepare reads and writes. */
    const double converted = (double)p->a.m.rows * (double)p->a.m.cols * 4;
    /* With more than 512 rows of A, the thread blocks of a wave take longer to begin and to end.
     * The prediction therefore adds 7 us instead of 4.1 us for each wave. It also adds 0 us instead
     * of 2.1 us for the launch. The numbers 7 and 0 are not fitted. They are set so that this
     * kernel is not chosen for most measured products for which another kernel is faster. */
    const bool many = p->a.m.rows > 512;
    return (many ? 0 : 2.1) + more + converted * 0.17e-6 +
           waves_of(p, c) * ((many ? 7 : 4.1) + adding_of(p, c) + zeros + step * (double)steps);
}

/* Returns true if A is e4m3 with one fp32 scale per row, and the weights are mxfp4. Only the kernel
 * for mxfp4 takes such an A: the epilogues for other weights have no code that multiplies by scales
 * of A. For nvfp4 such code would be useless. nvfp4 weights usually have a second-level scale, and
 * the fast path of the epilogue can multiply by only one fp32 number that is not a power of two.
 * With both kinds of scales, all results would take the slow path. */
static bool has_row_scales(const bsmm_operand *a, const weights *w) {
    return bits_of(w) == 4 && w->format.scale == BSMM_SCALE_E8M0 &&
           a->m.format.elem == BSMM_ELEM_E4M3 && bsmm_small_m_has_row_floats(a);
}

/* Returns true if cuda_sm90a_fold multiplies A and B in FP8, which takes half as long as in bf16.
 */
static bool folds(const bsmm_product *p) {
    const bsmm_format *a = &p->a.m.format, *b = &p->b.m.format;
    if (b->scale != BSMM_SCALE_E8M0) return false;
    if (a->scale == BSMM_SCALE_F32)
        return bsmm_elem_row(b->elem)->bits < 8 && a->elem == BSMM_ELEM_E4M3;
    return sums_to_zero(p) || (a->scale == BSMM_SCALE_E8M0 && p->compute == BSMM_COMPUTE_FAST);
}

/* Describes a kernel that packs all of B before it multiplies, and that would compute the product
 * if cuda_sm90a_mixed did not. `kind` and `elem` tell how its tensor cores multiply. Its time in us
 * is predicted as the sum of three times: `fixed`; `of_byte` for each byte of B that packing reads
 * or writes; and `of_cycle` for each estimated cycle of its GEMM kernel. */
typedef struct packed {
    bsmm_wgmma_kind kind;
    uint32_t elem;  /* `elem` is the type of the elements that the tensor cores multiply. */
    uint32_t bytes; /* `bytes` is the number of bytes of such an element. */
    double fixed, of_byte, of_cycle;
} packed;

/* Returns the kernel that would compute the product if cuda_sm90a_mixed does not, with the
 * constants that predict its time. The constants were fitted to products that were measured on an
 * H200: the constants `even` to 51 products of FP8 in which each row has one scale, and the other
 * constants to 74 products. To estimate the error of such predictions, the constants were also
 * fitted to every second product only. Those constants predict the remaining products with an error
 * of 10% for `even`, 12% for other FP8 and bf16, and 19% for f16 (root mean square). Packing
 * mxfp4 multiplies most block scales into the elements, so that a packed row usually has only one
 * scale. Therefore mxfp4 uses `even` too. With up to 256 rows of A and few
 * rows of B, the times predicted by `even` are too short, so `even` is used only for more than 256
 * rows of A. */
static packed packed_of(const bsmm_product *p, const weights *w) {
    static const packed even = {BSMM_WGMMA_POW2, BSMM_ELEM_E4M3, 1, 8.7, 0.37e-6, 0.45e-3},
                        fp8 = {BSMM_WGMMA_POW2, BSMM_ELEM_E4M3, 1, 11.6, 0.38e-6, 0.57e-3},
                        bf16 = {BSMM_WGMMA_BF16, BSMM_ELEM_BF16, 2, 8.3, 0.13e-6, 0.70e-3},
                        f16 = {BSMM_WGMMA_BF16, BSMM_ELEM_F16, 2, 8.1, 0.27e-6, 0.62e-3};
    const bool rows = has_row_scales(&p->a, w);
    const bool narrow = p->a.m.format.elem == BSMM_ELEM_E2M1 && w->format.elem == BSMM_ELEM_E2M1;
    if (p->a.m.rows > 256 && (rows || (narrow && folds(p)))) return even;
    packed k = folds(p) ? fp8 : p->a.m.format.elem == BSMM_ELEM_F16 ? f16 : bf16;
    if (rows) k.kind = BSMM_WGMMA_ROW;
    if (w == &group_scaled && k.elem == BSMM_ELEM_BF16) k.kind = BSMM_WGMMA_BLOCK;
    return k;
}

/* Predicts the time in us of a kernel that first converts all of B to bf16, f16 or FP8. */
static double predict_packed(const bsmm_product *p, const weights *w) {
    const packed k = packed_of(p, w);
    const bsmm_wgmma_tile *tile = bsmm_wgmma_choose(p, k.kind, k.elem, k.elem);
    const double count = (double)p->b.m.rows * (double)p->b.m.cols;
    return k.fixed + k.of_byte * count * (k.bytes + bits_of(w) / 8.0) +
           k.of_cycle * bsmm_wgmma_tile_cycles(p, tile);
}

/* Returns true if no other kernel is predicted to be faster than this one with the division `c`.
 * The other kernels are those that pack B first and, for few rows of A, cuda_sm90_small_m. (The
 * latter takes up to 128 rows of A, but is slower if A has more than BSMM_SMALL_M_MOST_COLUMNS
 * rows, counted once for each bf16 part of a row.) */
static bool is_fastest(const bsmm_product *p, const weights *w, const division *c) {
    if (!bsmm_small_m_prefers_mixed(c->time, predict_packed(p, w))) return false;
    if (p->a.m.rows * bsmm_small_m_count_parts(&p->a) > BSMM_SMALL_M_MOST_COLUMNS) return true;
    return bsmm_small_m_prefers_mixed(c->time, bsmm_small_m_predict_rows(p));
}

/* Finds the division of the GEMM with the least predicted time. */
static division find_division(const bsmm_product *p, const weights *w) {
    const uint32_t steps = bsmm_small_m_count_steps(p);
    const mixed_kernel *kernels = kernels_of(p, w);
    division best = {.time = INFINITY};
    for (uint32_t i = 0; i < COLUMN_CHOICES; i++)
        for (uint32_t groups = 1; groups <= BSMM_MIXED_MOST_GROUPS; groups *= 2)
            for (size_t s = 0; s < BSMM_COUNT(all_splits); s++) {
                const uint32_t splits = all_splits[s];
                /* In tiles of 256 columns, both warpgroups multiply every step of K, each of them
                 * for its own 64 rows of B, so there is only one group. */
                if (!kernels[i].function.name || (columns_of[i] > 128 && groups > 1) ||
                    !bsmm_small_m_divides_mixed(columns_of[i], groups, splits, steps))
                    continue;
                division c = {.choice = i, .groups = groups, .splits = splits};
                c.tiles = (uint32_t)bsmm_ceil_div(p->a.m.rows, columns_of[i]);
                c.time = predict(p, w, &c);
                if (c.time < best.time) best = c;
            }
    return best;
}

static const char *refuse_a(const bsmm_operand *a, const weights *w, char *why, size_t size) {
    static const char rule[] = "the kernel takes bf16, f16, row-major mxfp8, mxfp4 and nvfp4, and, "
                               "by mxfp4 weights, e4m3 with f32 scales of rows";
    const bool half = a->m.format.elem == BSMM_ELEM_BF16 || a->m.format.elem == BSMM_ELEM_F16;
    const bool coded = a->m.format.scale == BSMM_SCALE_E8M0 || a->m.format.scale == BSMM_SCALE_E4M3;
    if (half && a->m.format.scale == BSMM_SCALE_NONE) return NULL;
    if ((!coded && !has_row_scales(a, w)) || bsmm_small_m_find_source(a) == BSMM_SMALL_M_ANY)
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
static const char *refuse_b(const bsmm_operand *b, const weights *w, bool half, char *why,
                            size_t size) {
    if (b->m.scale_layout != BSMM_LAYOUT_ROW_MAJOR && w != &row_scaled)
        return bsmm_reason(why, size, "B's scale_layout is %s; the kernel takes row_major scales",
                           bsmm_layout_name(b->m.scale_layout));
    const char *reason = bsmm_gpu_refuse_order(b, 'B', why, size);
    const bool whole = half && w->format.scale == BSMM_SCALE_E8M0;
    const uint32_t unit = bits_of(w) == 8 && !whole ? 16 : 32;
    return reason ? reason
                  : bsmm_small_m_refuse_units(b, 'B', unit, unit * bits_of(w) / 8, why, size);
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
    const weights *w = find_weights(&p->b);
    const char *reason = bsmm_cuda_refuse(p, &all_kernels[SMALL_M_MXFP4][0][0].function, why, size);
    if (!w) return reason ? reason : bsmm_gpu_refuse_format(&p->b, 'B', WEIGHTS_RULE, why, size);
    if (!reason) reason = refuse_a(&p->a, w, why, size);
    if (!reason) reason = refuse_few(&p->a, why, size);
    if (!reason) reason = refuse_b(&p->b, w, is_half(p), why, size);
    if (!reason) reason = bsmm_gpu_refuse_extents(p, why, size);
    if (!reason) reason = refuse_long(p, why, size);
    if (reason) return reason;
    m->w = w;
    m->c = find_division(p, w);
    if (!is_fastest(p, w, &m->c))
        return bsmm_reason(why, size,
                           "A has %lld rows and B has %lld x %lld elements; another kernel is "
                           "predicted to be faster",
                           (long long)p->a.m.rows, (long long)p->b.m.rows, (long long)p->b.m.cols);
    const uint64_t columns = (uint64_t)m->c.tiles * columns_of[m->c.choice];
    m->image_bytes = columns * bsmm_small_m_count_steps(p) * BSMM_SMALL_M_K * 2;
    m->least_bytes = (uint64_t)p->a.m.rows * blocks_per_row(p) * sizeof(uint32_t);
    m->scale_bytes = has_row_scales(&p->a, w) ? (uint64_t)p->a.m.rows * sizeof(float) : 0;
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
    const double quotients = m->w == &group_scaled ? 3 * k / BSMM_SMALL_M_K : 0;
    return (2.2 * (k + 16) + quotients + 64) * 0x1p-24;
}

static bsmm_small_m_params params_of(const bsmm_product *p, const made *m) {
    const division *c = &m->c;
    const uint32_t columns = columns_of[c->choice];
    bsmm_small_m_params params = bsmm_small_m_params_of(p);
    params.splits = c->splits;
    params.splits_log2 = bsmm_small_m_log2_up(c->splits);
    params.k_warps_log2 = bsmm_small_m_log2(c->groups);
    params.range_inverse =
        (uint32_t)bsmm_ceil_div((int64_t)1 << 31, (int64_t)c->splits * c->groups);
    params.run_width = (uint32_t)bsmm_ceil_div(rows_of(c) / BSMM_MIXED_RUN, c->splits);
    params.run_step = threads_of(c) / params.run_width;
    params.run_inverse = (1u << 16) / params.run_width + 1;
    params.source = bsmm_small_m_find_source(&p->a);
    params.narrow = bits_of(m->w) < 8;
    params.row_scaled = has_row_scales(&p->a, m->w);
    params.parts = 1;
    params.half = is_half(p);
    params.pair_distance = pair_distance(p, bits_of(m->w));
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
    params.barriers_at = params.ring_at + bsmm_mixed_ahead(bits_of(m->w)) *
                                              bsmm_mixed_slot_bytes(threads_of(c), bits_of(m->w));
    return params;
}

/* Returns the bytes of shared memory of a thread block. The epilogue reuses the memory of the ring
 * buffers for the accumulators of all warpgroups. */
static uint32_t shared_bytes(const made *m) {
    const division *c = &m->c;
    const uint32_t loop = m->params.barriers_at + 2 * BSMM_MIXED_SLOTS * 8;
    const uint32_t sums = c->groups * columns_of[c->choice] * (rows_of(c) + 4) * 4;
    return loop > sums ? loop : sums;
}

static bsmm_status make(const bsmm_product *p, void *state) {
    made *m = state;
    const division *c = &m->c;
    m->params = params_of(p, m);
    const bsmm_cuda_launch_desc prepare = {
        .function = &prepare_a[m->params.source],
        .grid = {(uint32_t)bsmm_ceil_div(p->a.m.rows, BSMM_MIXED_PREPARE_ROWS), blocks_per_row(p)},
        .block = {BSMM_SMALL_M_PREPARE_THREADS},
        .overlap = true,
    };
    const bsmm_cuda_launch_desc multiply = {
        .function = &kernels_of(p, m->w)[c->choice].function,
        .grid = {(uint32_t)bsmm_ceil_div(p->d.m.cols, rows_of(c)) * c->tiles * c->splits},
        .block = {threads_of(c)},
        .cluster = {c->splits},
        .shared_bytes = shared_bytes(m),
        .overlap = true,
    };
    BSMM_TRY(bsmm_cuda_ready_make(p->device, &prepare, &m->prepare));
    return bsmm_cuda_ready_make(p->device, &multiply, &m->multiply);
}

static bsmm_status run_in_context(const bsmm_product *p, const made *m, void *workspace) {
    bsmm_small_m_params params = m->params;
    bsmm_small_m_params_bind(p, &params);
    params.a_image = workspace;
    params.a_image_any = (uint32_t *)(void *)(params.a_image + m->image_bytes);
    params.a_image_scales = (float *)(void *)(params.a_image + m->image_bytes + m->least_bytes);
    BSMM_TRY(
        bsmm_cuda_ready_launch(p->device, &m->prepare, p->stream, BSMM_CUDA_ARGUMENTS(&params)));
    return bsmm_cuda_ready_launch(p->device, &m->multiply, p->stream, BSMM_CUDA_ARGUMENTS(&params));
}

static bsmm_status run(const bsmm_product *p, const void *state, void *workspace) {
    BSMM_CUDA_RETURN_INSIDE(p->device, run_in_context(p, state, workspace));
}

static uint32_t k_parts(const bsmm_product *p, const void *state) {
    (void)p;
    const made *m = state;
    return m->c.splits * m->c.groups;
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
