/* Predicts the times of the kernel cuda_sm90a_mixed and of the kernels that would compute the
 * product instead, and chooses the division of the GEMM among thread blocks by them. */
#include "cuda/host/mixed_choose.h"
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

static const bsmm_mixed_weights all_weights[] = {
    {{BSMM_ELEM_E2M1, BSMM_SCALE_E8M0, 1, 32}, SMALL_M_MXFP4},
    {{BSMM_ELEM_E2M1, BSMM_SCALE_E4M3, 1, 16}, SMALL_M_NVFP4},
    {{BSMM_ELEM_E4M3, BSMM_SCALE_E8M0, 1, 32}, SMALL_M_MXFP8},
    {{BSMM_ELEM_E2M3, BSMM_SCALE_E8M0, 1, 32}, SMALL_M_MXFP6_E2M3},
    {{BSMM_ELEM_E3M2, BSMM_SCALE_E8M0, 1, 32}, SMALL_M_MXFP6_E3M2},
};
/* These weights are e4m3 with one fp32 scale for each row of B. */
static const bsmm_mixed_weights row_scaled = {{BSMM_ELEM_E4M3, BSMM_SCALE_F32, 1, 0},
                                              SMALL_M_FP8_ROWS};
/* These weights are e4m3 with an fp32 scale for each 128 elements along K. */
static const bsmm_mixed_weights group_scaled = {{BSMM_ELEM_E4M3, BSMM_SCALE_F32, 1, BSMM_SMALL_M_K},
                                                SMALL_M_FP8_F32};

const bsmm_mixed_weights *bsmm_mixed_find_weights(const bsmm_operand *b) {
    const bsmm_format *f = &b->m.format;
    for (size_t i = 0; i < BSMM_COUNT(all_weights); i++)
        if (bsmm_format_equal(all_weights[i].format, *f)) return &all_weights[i];
    if (f->elem != BSMM_ELEM_E4M3 || f->scale != BSMM_SCALE_F32) return NULL;
    if (bsmm_small_m_has_row_floats(b)) return &row_scaled;
    return f->block_cols == BSMM_SMALL_M_K ? &group_scaled : NULL;
}

bool bsmm_mixed_is_half(const bsmm_product *p) {
    return p->a.m.format.elem == BSMM_ELEM_F16;
}

static const mixed_kernel *kernels_of(const bsmm_product *p, const bsmm_mixed_weights *w) {
    return all_kernels[w->kernels][bsmm_mixed_is_half(p)];
}

bool bsmm_mixed_has_rows(const bsmm_mixed_weights *w) {
    return w == &row_scaled;
}

bool bsmm_mixed_has_groups(const bsmm_mixed_weights *w) {
    return w == &group_scaled;
}

const bsmm_cuda_function *bsmm_mixed_function(const bsmm_product *p, const bsmm_mixed_weights *w,
                                              const bsmm_mixed_division *c) {
    return &kernels_of(p, w)[c->choice].function;
}

uint32_t bsmm_mixed_columns(const bsmm_mixed_division *c) {
    return columns_of[c->choice];
}

uint32_t bsmm_mixed_bits(const bsmm_mixed_weights *w) {
    return bsmm_elem_row(w->format.elem)->bits;
}

uint32_t bsmm_mixed_threads(const bsmm_mixed_division *c) {
    return BSMM_MIXED_THREADS(columns_of[c->choice]);
}

uint32_t bsmm_mixed_rows(const bsmm_mixed_division *c) {
    return bsmm_mixed_threads(c) / 2 / c->groups;
}

/* Returns true if many sums are likely to be exactly 0. This holds for elements of less than 8 bits
 * with e8m0 scales, because they are small multiples of powers of two. */
static bool sums_to_zero(const bsmm_product *p) {
    return p->a.m.format.scale == BSMM_SCALE_E8M0 && p->b.m.format.scale == BSMM_SCALE_E8M0 &&
           bsmm_elem_row(p->a.m.format.elem)->bits < 8 &&
           bsmm_elem_row(p->b.m.format.elem)->bits < 8;
}

/* Returns the number of results that a thread block stores. */
static double results_of(const bsmm_product *p, const bsmm_mixed_division *c) {
    return (double)p->a.m.rows / c->tiles * bsmm_mixed_rows(c) / c->splits;
}

/* Returns the number of clusters divided by the number that runs at once. Rounded up, this is the
 * number of waves. */
static double load_of(const bsmm_product *p, const bsmm_mixed_division *c) {
    const int64_t clusters = bsmm_ceil_div(c->rows, bsmm_mixed_rows(c)) * c->tiles;
    return (double)clusters / (double)bsmm_cuda_clusters_at_once(p->device, c->splits);
}

/* Returns the estimated number of bytes that the kernel mixed_prepare reads and writes. */
static double converted_of(const bsmm_product *p) {
    return (double)p->a.m.rows * (double)p->a.m.cols * 4;
}

/* Lists the numbers of thread blocks of a cluster that the host considers. Clusters of six or seven
 * thread blocks were no faster than the others for the products that were measured. */
static const uint32_t all_splits[] = {1, 2, 3, 4, 5, 8};

/* Returns the estimated time in us of adding the partial sums of a tile. K is divided among the
 * `splits` thread blocks of a cluster, and in each thread block among `groups` groups of warps. The
 * time grows with the number of groups, with the columns of the tile that rows of A fill, and with
 * log2(splits), rounded up. Rounding up is right on an H200: clusters of three thread blocks take
 * about as long as clusters of four, and clusters of five about as long as clusters of eight. */
static double adding_of(const bsmm_product *p, const bsmm_mixed_division *c) {
    const double filled = (double)p->a.m.rows / c->tiles;
    return 0.16 * (c->groups - 1) +
           fmax(0, 0.022 * filled - 0.35) * bsmm_small_m_log2_up(c->splits);
}

/* Predicts the time in us of a launch with tiles of 256 columns. `step` is the time of a step (128
 * elements along K) of a thread block that runs alone. A step takes up to 17% longer if all SMs
 * work, since the power limit then lowers the clock. The constants here and in predict_fixed are
 * fitted to 200 GEMMs of 192 to 4096 rows of A. Each of them was measured on an H200 with all of K
 * in one thread block, and with K split between two. The root mean square of the error is 2.5%. If
 * many results are 0, `zeros` is the time in which the epilogue checks them; it was estimated from
 * 30 GEMMs of mxfp4 by mxfp4. */
static double predict_wide(const bsmm_product *p, const bsmm_mixed_division *c, double step) {
    const uint32_t steps = bsmm_small_m_most_steps(bsmm_small_m_count_steps(p), c->splits);
    const double filled = (double)p->a.m.rows / c->tiles, load = load_of(p, c);
    const double zeros = sums_to_zero(p) ? 0.2e-3 * results_of(p, c) : 0;
    return ceil(load) * (5.5 + zeros + 0.0093 * filled * bsmm_small_m_log2_up(c->splits) +
                         step * (1 + 0.17 * fmin(1, load)) * (double)steps);
}

/* With more than 512 rows of A, the thread blocks of a wave take longer to begin and to end. With
 * narrow tiles, the prediction therefore adds 7 us instead of 4.1 us for each wave. It also adds 0
 * us instead of 2.1 us for the launch. The numbers 7 and 0 are not fitted. They are set so that
 * this kernel is not chosen for most measured products for which another kernel is faster. */
static bool has_many_rows(const bsmm_product *p) {
    return p->a.m.rows > 512;
}

/* Predicts the part of the time in us that does not depend on the division of the GEMM, except on
 * the width of the tiles. If each row of B has an fp32 scale, the epilogue takes 1.1 us longer. */
static double predict_fixed(const bsmm_product *p, const bsmm_mixed_weights *w, uint32_t choice) {
    if (columns_of[choice] > 128) return 2.4 + converted_of(p) * 0.22e-6;
    return (has_many_rows(p) ? 0 : 2.1) + (w == &row_scaled ? 1.1 : 0) + converted_of(p) * 0.17e-6;
}

/* Predicts the time in us of a launch, without the time of predict_fixed. It is the number of waves
 * of clusters times the time of a thread block. The constants are fitted to 714 times of products
 * of 9 to 512 rows of A that were measured on an H200 with two earlier forms of the kernel that
 * converts A, with an error of 7% (root mean square). The division that is predicted to be fastest
 * took 1.005 times as long as the fastest measured one (geometric mean). */
static double predict(const bsmm_product *p, const bsmm_mixed_weights *w,
                      const bsmm_mixed_division *c) {
    const double step = kernels_of(p, w)[c->choice].step;
    if (columns_of[c->choice] > 128) return predict_wide(p, c, step);
    const uint32_t steps =
        bsmm_small_m_most_steps(bsmm_small_m_count_steps(p), c->splits * c->groups);
    /* `zeros` is the additional time in us if many sums are likely to be exactly 0, because the
     * epilogue loads scales for each such sum to find out whether products have underflowed. */
    const double zeros = sums_to_zero(p) ? 0.1e-3 * results_of(p, c) : 0;
    return ceil(load_of(p, c)) *
           ((has_many_rows(p) ? 7 : 4.1) + adding_of(p, c) + zeros + step * (double)steps);
}

/* Returns true if A is e4m3 with one fp32 scale per row, and the weights are mxfp4. Only the kernel
 * for mxfp4 takes such an A: the epilogues for other weights have no code that multiplies by scales
 * of A. For nvfp4 such code would be useless. nvfp4 weights usually have a second-level scale, and
 * the fast path of the epilogue can multiply by only one fp32 number that is not a power of two.
 * With both kinds of scales, all results would take the slow path. */
bool bsmm_mixed_has_row_scales(const bsmm_operand *a, const bsmm_mixed_weights *w) {
    return bsmm_mixed_bits(w) == 4 && w->format.scale == BSMM_SCALE_E8M0 &&
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
 * rows of A. The number `of_cycle` of `bf16` was set later, by 34 products of 858 to 8192 rows of
 * A. */
static packed packed_of(const bsmm_product *p, const bsmm_mixed_weights *w) {
    static const packed even = {BSMM_WGMMA_POW2, BSMM_ELEM_E4M3, 1, 8.7, 0.37e-6, 0.45e-3},
                        fp8 = {BSMM_WGMMA_POW2, BSMM_ELEM_E4M3, 1, 11.6, 0.38e-6, 0.57e-3},
                        bf16 = {BSMM_WGMMA_BF16, BSMM_ELEM_BF16, 2, 8.3, 0.13e-6, 0.67e-3},
                        f16 = {BSMM_WGMMA_BF16, BSMM_ELEM_F16, 2, 8.1, 0.27e-6, 0.62e-3};
    const bool rows = bsmm_mixed_has_row_scales(&p->a, w);
    const bool narrow = p->a.m.format.elem == BSMM_ELEM_E2M1 && w->format.elem == BSMM_ELEM_E2M1;
    if (p->a.m.rows > 256 && (rows || (narrow && folds(p)))) return even;
    packed k = folds(p) ? fp8 : p->a.m.format.elem == BSMM_ELEM_F16 ? f16 : bf16;
    if (rows) k.kind = BSMM_WGMMA_ROW;
    if (w == &group_scaled && k.elem == BSMM_ELEM_BF16) k.kind = BSMM_WGMMA_BLOCK;
    return k;
}

/* Predicts the time in us of a kernel that first converts all of B to bf16, f16 or FP8. */
static double predict_packed(const bsmm_product *p, const bsmm_mixed_weights *w) {
    const packed k = packed_of(p, w);
    const bsmm_wgmma_tile *tile = bsmm_wgmma_choose(p, k.kind, k.elem, k.elem);
    const double count = (double)p->b.m.rows * (double)p->b.m.cols;
    return k.fixed + k.of_byte * count * (k.bytes + bsmm_mixed_bits(w) / 8.0) +
           k.of_cycle * bsmm_wgmma_tile_cycles(p, tile);
}

/* The other kernels are those that pack B first and, for few rows of A, cuda_sm90_small_m. (The
 * latter takes up to 128 rows of A, but is slower if A has more than BSMM_SMALL_M_MOST_COLUMNS
 * rows, counted once for each bf16 part of a row.) */
bool bsmm_mixed_is_fastest(const bsmm_product *p, const bsmm_mixed_weights *w, double time) {
    if (!bsmm_small_m_prefers_mixed(time, predict_packed(p, w))) return false;
    if (p->a.m.rows * bsmm_small_m_count_parts(&p->a) > BSMM_SMALL_M_MOST_COLUMNS) return true;
    return bsmm_small_m_prefers_mixed(time, bsmm_small_m_predict_rows(p));
}

/* MOST_DIVISIONS is the largest number of divisions of the columns and of K. */
enum { MOST_DIVISIONS = BSMM_COUNT(all_splits) * BSMM_MIXED_MOST_GROUPS * COLUMN_CHOICES };

/* Lists the ways to divide the columns and K among thread blocks. Returns their number. */
static size_t list_divisions(const bsmm_product *p, const bsmm_mixed_weights *w,
                             bsmm_mixed_division to[MOST_DIVISIONS]) {
    const uint32_t steps = bsmm_small_m_count_steps(p);
    const mixed_kernel *kernels = kernels_of(p, w);
    size_t count = 0;
    for (uint32_t i = 0; i < COLUMN_CHOICES; i++)
        for (uint32_t groups = 1; groups <= BSMM_MIXED_MOST_GROUPS; groups *= 2)
            for (size_t s = 0; s < BSMM_COUNT(all_splits); s++) {
                const uint32_t splits = all_splits[s];
                /* In tiles of 256 columns, both warpgroups multiply every step of K, each of them
                 * for its own 64 rows of B, so there is only one group. */
                if (!kernels[i].function.name || (columns_of[i] > 128 && groups > 1) ||
                    !bsmm_small_m_divides_mixed(columns_of[i], groups, splits, steps))
                    continue;
                to[count++] = (bsmm_mixed_division){
                    .choice = i,
                    .rows = p->b.m.rows,
                    .groups = groups,
                    .splits = splits,
                    .tiles = (uint32_t)bsmm_ceil_div(p->a.m.rows, columns_of[i]),
                };
            }
    return count;
}

/* A launch whose last wave is not full leaves SMs idle. Two launches may then be faster: the first
 * one computes `waves` full waves with the division `c`, and the second one computes the remaining
 * rows of B with another division, which divides K among more thread blocks. Changes *best if the
 * two launches are predicted to be faster. `all` lists all divisions of all rows of B.
 *
 * The predicted time is multiplied by 1.03. On an H200, 60 GEMMs by two launches took 1.03 times as
 * long as predicted without this factor (geometric mean), because the division with the shortest
 * prediction is more often one whose prediction is too short. With more than 512 rows of A the
 * factor is 1.08, because the predictions of other kernels are less exact there. */
static void try_two(const bsmm_product *p, const bsmm_mixed_weights *w,
                    const bsmm_mixed_division *c, int64_t waves, const bsmm_mixed_division *all,
                    size_t count, bsmm_mixed_launches *best) {
    const int64_t clusters = waves * bsmm_cuda_clusters_at_once(p->device, c->splits);
    bsmm_mixed_division first = *c;
    first.rows = clusters / c->tiles * bsmm_mixed_rows(c);
    if (first.rows <= 0 || first.rows >= p->b.m.rows) return;
    const double factor = has_many_rows(p) ? 1.08 : 1.03;
    const double begun = predict_fixed(p, w, c->choice) + predict(p, w, &first);
    for (size_t i = 0; i < count && factor * begun < best->time; i++) {
        if (all[i].choice != c->choice) continue;
        bsmm_mixed_division rest = all[i];
        rest.first = first.rows;
        rest.rows -= first.rows;
        const double time = factor * (begun + predict(p, w, &rest));
        if (time < best->time) *best = (bsmm_mixed_launches){{first, rest}, 2, time};
    }
}

bsmm_mixed_launches bsmm_mixed_divide(const bsmm_product *p, const bsmm_mixed_weights *w) {
    bsmm_mixed_division all[MOST_DIVISIONS];
    const size_t count = list_divisions(p, w, all);
    bsmm_mixed_launches best = {.time = INFINITY};
    for (size_t i = 0; i < count && bsmm_small_m_launches_mixed(1); i++) {
        const double time = predict_fixed(p, w, all[i].choice) + predict(p, w, &all[i]);
        if (time < best.time) best = (bsmm_mixed_launches){{all[i]}, 1, time};
    }
    for (size_t i = 0; i < count && bsmm_small_m_launches_mixed(2); i++) {
        const int64_t waves = (int64_t)load_of(p, &all[i]);
        for (int64_t n = waves; n >= 1 && n + 1 >= waves; n--)
            try_two(p, w, &all[i], n, all, count, &best);
    }
    return best;
}
