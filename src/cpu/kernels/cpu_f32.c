/* The kernel cpu_f32 multiplies operands of any formats through fp32, in portable C. Each thread
 * takes one block of 128 x 128 results after another. For each block, a thread packs up to 512
 * elements of K of both operands at a time, multiplies them and adds in double. The order of
 * summation depends only on K and the formats, so results are bitwise identical for any number of
 * threads.
 *
 * Each thread's workspace holds the packed rows of A and B (256 KiB each), their scales and flags,
 * and the block's results (128 KiB). */
#include "base/threads.h"
#include "cpu/engine/engine_f32seg.h"

#include <string.h>

enum { MC = BSMM_F32SEG_MC, NC = BSMM_F32SEG_NC, KC = BSMM_F32SEG_KC };

/* `workspace` is the workspace of one thread. A thread decodes KC elements of K of MC rows of A and
 * NC rows of B at a time. A segment is a range of K in which no scale changes. The function
 * `refuse` ensures that segments have at least 2 elements, so a row has at most KC / 2 scales in KC
 * elements. */
typedef struct workspace {
    _Alignas(64) float a[MC * KC];
    float b[NC * KC];
    double a_scales[MC * KC / 2], b_scales[NC * KC / 2];
    double acc[MC * NC];
    uint8_t a_wide[MC * KC / 2], b_wide[NC * KC / 2];
} workspace;

/* Computes the results of `rows` rows of A and `cols` rows of B into acc, whose rows and columns
 * are padded to whole panels. Returns the row pitch of acc. */
static int64_t multiply(const bsmm_product *p, int64_t row, int64_t rows, int64_t col, int64_t cols,
                        workspace *w, double *acc) {
    bsmm_f32seg_block a = {w->a, w->a_scales, w->a_wide}, b = {w->b, w->b_scales, w->b_wide};
    int64_t padded_m = bsmm_round_up(rows, BSMM_F32SEG_MR);
    int64_t padded_n = bsmm_round_up(cols, BSMM_F32SEG_NR);
    int64_t segment = bsmm_f32seg_segment(&p->a, &p->b), k = p->a.m.cols;
    /* A segment is a run of elements along K with the same scales. `step` is the number of elements
     * of K that are packed and multiplied at a time. It is a multiple of the segment's length, so
     * that every step begins with a new segment. */
    int64_t step = KC / segment * segment;
    memset(acc, 0, sizeof(double) * (size_t)(padded_m * padded_n));
    for (int64_t k0 = 0; k0 < k; k0 += step) {
        int64_t part = bsmm_min_i64(step, k - k0);
        bsmm_f32seg_pack(&p->a, row, rows, padded_m, BSMM_F32SEG_MR, k0, part, segment, &a);
        bsmm_f32seg_pack(&p->b, col, cols, padded_n, BSMM_F32SEG_NR, k0, part, segment, &b);
        bsmm_f32seg_engine(&a, padded_m, &b, padded_n, part, segment, acc);
    }
    return padded_n;
}

/* Returns the number of D's columns in a cache block. It is half as large for a gated activation,
 * because two columns of A x B^T make one column of D. */
static int64_t block_cols(const bsmm_product *p) {
    return bsmm_is_gated(p) ? NC / 2 : NC;
}

static void multiply_block(const bsmm_product *p, int64_t row, int64_t col, workspace *w) {
    int64_t rows = bsmm_min_i64(MC, p->d.m.rows - row);
    int64_t cols = bsmm_min_i64(block_cols(p), p->d.m.cols - col);
    bsmm_sums sums = {.acc = w->acc, .step = 1};
    if (bsmm_is_gated(p) && p->epilogue->interleaved) {
        sums.step = 2;
        sums.up = 1;
        sums.pitch = multiply(p, row, rows, 2 * col, 2 * cols, w, w->acc);
    } else {
        sums.pitch = multiply(p, row, rows, col, cols, w, w->acc);
    }
    if (bsmm_is_gated(p) && !p->epilogue->interleaved) {
        sums.up = MC * NC / 2;
        multiply(p, row, rows, p->d.m.cols + col, cols, w, w->acc + sums.up);
    }
    bsmm_epilogue_store(p, row, rows, col, cols, &sums);
}

static int64_t count_blocks(const bsmm_product *p) {
    return bsmm_ceil_div(p->d.m.cols, block_cols(p)) * bsmm_ceil_div(p->d.m.rows, MC);
}

static int count_threads(const bsmm_product *p) {
    return (int)bsmm_min_i64(p->threads, count_blocks(p));
}

typedef struct blocks_run {
    const bsmm_product *p;
    workspace *workspaces; /* `workspaces` has one workspace for each worker thread. */
} blocks_run;

static void run_blocks(const void *context, int64_t first, int64_t end, int worker) {
    const blocks_run *x = context;
    int64_t wide = block_cols(x->p), across = bsmm_ceil_div(x->p->d.m.cols, wide);
    for (int64_t i = first; i < end; i++)
        multiply_block(x->p, i / across * MC, i % across * wide, &x->workspaces[worker]);
}

static bsmm_status run(const bsmm_product *p, const void *state, void *memory) {
    (void)state;
    const blocks_run x = {p, memory};
    const bsmm_loop loop = {.threads = count_threads(p),
                            .count = count_blocks(p),
                            .at_a_time = 1,
                            .body = run_blocks,
                            .context = &x};
    return bsmm_loop_run(&loop, &p->pool);
}

static uint64_t workspace_bytes(const bsmm_product *p, const void *state) {
    (void)state;
    return (uint64_t)count_threads(p) * sizeof(workspace);
}

/* Returns the error bound of a result as a multiple of sum |a * b|; engine_f32seg.c derives it. */
static double bound(const bsmm_product *p, const void *state) {
    (void)p, (void)state;
    return BSMM_F32SEG_SEGMENT * 0x1p-24;
}

/* The kernel sums segments of K in which no scale changes. The length of a segment is the greatest
 * common divisor of 128 and the block lengths of A and B along K. The kernel refuses operands with
 * segments of one element, because the workspace has no room for so many scales. It also refuses a
 * block-scaled D. */
static const char *refuse(const bsmm_product *p, void *state, char *why, size_t size) {
    (void)state;
    if (p->recipe)
        return bsmm_reason(why, size,
                           "D is block-scaled (%s); the kernel stores only unscaled formats",
                           bsmm_format_name(p->d.m.format));
    int64_t segment = bsmm_f32seg_segment(&p->a, &p->b);
    if (segment < 2)
        return bsmm_reason(why, size,
                           "the blocks along K are %u and %u; their greatest common divisor with "
                           "128 must be at least 2",
                           p->a.m.format.block_cols, p->b.m.format.block_cols);
    return NULL;
}

const bsmm_kernel bsmm_kernel_cpu_f32 = {
    .name = "cpu_f32",
    .device = "cpu",
    .refuse = refuse,
    .workspace_bytes = workspace_bytes,
    .bound = bound,
    .run = run,
    .features = BSMM_FEATURE_EPILOGUE | BSMM_FEATURE_INVARIANT | BSMM_FEATURE_COMPACT,
};
