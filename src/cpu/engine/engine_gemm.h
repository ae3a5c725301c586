/* The body that the packed CPU engines share: pack both operands, multiply tile by tile, finish
 * rows.
 *
 * An operand is packed in panels of `width` rows (mr for A, nr for B). A panel holds K in units,
 * one after another; a unit is a run of K with one scale per row, laid out as the engine's multiply
 * reads it. K is padded with zero elements to whole units, rows with zero rows to whole panels.
 *
 * Beside the panels each row has a factor, taken out of it while packing, and says how `wide` it
 * is: how far its scales or elements span. Where two rows span more than the engine's fp32 sums
 * carry, their result is summed in double from the operands themselves, so the whole domain keeps
 * the bound; which way a result takes depends on its two rows alone. */
#ifndef BSMM_CPU_ENGINE_GEMM_H
#define BSMM_CPU_ENGINE_GEMM_H

#include "core/kernel.h"
#include "cpu/epilogue/epilogue_loops.h"

typedef struct bsmm_engine bsmm_engine;

/* Where panels of one operand are packed, one after another. */
typedef struct bsmm_panel {
    uint8_t *units;
    double *factors; /* width of them in each; 1 in padding rows */
    uint8_t *wide;   /* the same; 0 in padding rows */
} bsmm_panel;

/* What is read soon, of which an engine asks for `bytes` (whole lines) at each unit: memory then
 * brings it while it multiplies, instead of all at once when it waits for it. */
typedef struct bsmm_ahead {
    const uint8_t *at;
    int64_t bytes;
} bsmm_ahead;

enum { BSMM_AHEAD_LINE = 64 };

/* One line as a rule, without a branch around it: where bytes is 0 the same one again. */
static inline void bsmm_ask_ahead(bsmm_ahead *ahead) {
    __builtin_prefetch(ahead->at, 0, 2);
    for (int64_t i = BSMM_AHEAD_LINE; i < ahead->bytes; i += BSMM_AHEAD_LINE)
        __builtin_prefetch(ahead->at + i, 0, 2);
    ahead->at += ahead->bytes;
}

struct bsmm_engine {
    int64_t mr, nr;              /* the register tile */
    int64_t unit;                /* K of a unit */
    uint64_t a_unit_bytes;       /* of mr rows */
    uint64_t b_unit_bytes;       /* of nr rows; both multiples of 64 */
    int64_t chunk;               /* units that a cache block spans along K, about */
    int64_t mc, nc;              /* rows of A and B in a cache block: multiples of mr and nr */
    int wide_limit;              /* how wide two rows may be together, wide added to wide */
    uint64_t widened_unit_bytes; /* of B, as widen leaves it; 0: multiply takes B as it is packed */
    /* Packs rows [row, row + rows) of an operand over all of K, into as many panels as they take.
     */
    void (*pack)(const bsmm_product *p, bool is_b, int64_t row, int64_t rows, bsmm_panel *to);
    /* Takes the elements of B's units apart, once for all the panels of A that they meet. */
    void (*widen)(const uint8_t *b, int64_t units, uint8_t *to);
    /* c[mr][nr], `pitch` floats from row to row: = (or += when add) the product over `units`. */
    void (*multiply)(const uint8_t *a, const uint8_t *b, int64_t units, float *c, int64_t pitch,
                     bool add, bsmm_ahead ahead);
    /* The same for a panel that ends after `cols` columns, at most narrow_cols; NULL: multiply. */
    void (*narrow)(const uint8_t *a, const uint8_t *b, int64_t units, float *c, int64_t pitch,
                   bool add, bsmm_ahead ahead, int64_t cols);
    int64_t narrow_cols;
};

/* One operand, packed. */
typedef struct bsmm_gemm_side {
    int64_t rows, panels, width;
    uint64_t panel_bytes;
    uint8_t *units; /* these three are known in a run */
    double *factors;
    uint8_t *wide;
} bsmm_gemm_side;

/* How an engine takes a product: the state of the kernels that have one. */
typedef struct bsmm_gemm {
    const bsmm_engine *engine;
    bsmm_gemm_side a, b;
    int64_t units;  /* along K */
    int64_t chunk;  /* of them at a time */
    int64_t mc, nc; /* the engine's, or smaller where there are few blocks for the threads */
    uint64_t scratch_bytes, workspace_bytes, packed_b_bytes;
    int threads;
    bool by_rows; /* each thread takes its part of A's rows */
    /* Of a run. */
    const bsmm_product *p;
    bool is_direct;   /* bsmm_cpu_epilogue_is_direct */
    bool expects;     /* D's lines are prefetched: caches do not hold it */
    uint8_t *scratch; /* one per thread */
} bsmm_gemm;

bsmm_gemm bsmm_gemm_make(const bsmm_engine *engine, const bsmm_product *p);

/* Packs B ahead: the same bytes that a run would make. */
void bsmm_gemm_pack_b(const bsmm_gemm *made, const bsmm_product *p, void *packed);

bsmm_status bsmm_gemm_run(const bsmm_gemm *made, const bsmm_product *p, void *workspace);

/* NULL if the engine's cache blocks hold whole blocks of a block-scaled D, else the reason. */
const char *bsmm_gemm_refuse_output(const bsmm_engine *engine, const bsmm_product *p, char *why,
                                    size_t size);

/* Part of a row of sums, and what its row and its columns had taken out of them. */
typedef struct bsmm_gemm_row {
    int64_t r, col, cols;
    const float *acc;
    double factor;
    int wide, wide_limit;         /* see bsmm_engine */
    const double *column_factors; /* cols of them, as of column_wide */
    const uint8_t *column_wide;
} bsmm_gemm_row;

/* The largest of n. */
int bsmm_gemm_widest(const uint8_t *wide, int64_t n);

/* From sums to what the last rounding takes: factors, wide rows' sums, alpha, C and bias. */
void bsmm_gemm_finish_row(const bsmm_product *p, const bsmm_gemm_row *row, double *values);

/* The same and the last rounding, into an unscaled D; values: room for cols of them. */
void bsmm_gemm_store_row(const bsmm_product *p, const bsmm_gemm_row *row, double *values);

/* ---- finishing rows (epilogue.c) ---- */

/* values[i] = acc[i] * row_factor * factors[i], a zero being +0. */
void bsmm_cpu_epilogue_scale(const float *acc, double row_factor, const double *factors,
                             int64_t cols, double *values);

/* alpha, C and bias on values of row `row`, columns [col, col + cols), in place. */
void bsmm_cpu_epilogue_add(const bsmm_product *p, int64_t row, int64_t col, int64_t cols,
                           double *values);

/* Whether there is a loop that does all of it at once: into an unscaled D. */
bool bsmm_cpu_epilogue_is_direct(const bsmm_product *p);

/* Does so with sums of which none is wide, from (row, col) of D on; the tile's alpha and where it
 * goes are filled in. Returns the rows that are done: the next one is to take the other loops. */
int64_t bsmm_cpu_epilogue_direct(const bsmm_product *p, int64_t row, int64_t col,
                                 bsmm_cpu_epilogue_tile tile);

/* Asks for the lines of D that it will store to, and of C, where it does. */
void bsmm_cpu_epilogue_expect(const bsmm_product *p, int64_t row, int64_t rows, int64_t col,
                              int64_t cols);

/* The last rounding into an unscaled D. */
void bsmm_cpu_epilogue_store(const bsmm_product *p, int64_t row, int64_t col, int64_t cols,
                             const double *values);

#endif
