/* This is the body that the packed CPU engines share. It packs both operands, multiplies tile by
 * tile, and runs the epilogue row by row.
 *
 * An operand is packed in panels. A panel is `width` packed rows (mr for A, nr for B). It holds K
 * in units, one after another. A unit is a run of K with one scale per row, in the layout that the
 * engine's multiply reads. Zero elements pad K to whole units. Rows of zeros pad the rows to whole
 * panels.
 *
 * Each row also has a factor, which was divided out of the row while packing, and a number `wide`,
 * which says how far its scales or elements span: in binades, or just 0 or 1, as the engine needs.
 * A pair of rows is wide if their two numbers add up to more than the engine's wide_limit: its
 * products would leave the range in which the engine's fp32 accumulators keep the error bound. The
 * result of a wide pair is summed in double from the operands themselves, so the bound holds on the
 * whole domain. A wide row is a row that forms a wide pair with any other row: its number alone
 * exceeds wide_limit. The choice of code path depends on the two rows alone. */
#ifndef BSMM_CPU_ENGINE_GEMM_H
#define BSMM_CPU_ENGINE_GEMM_H

#include "core/epilogue.h"
#include "cpu/epilogue/epilogue_loops.h"

typedef struct bsmm_engine bsmm_engine;

/* Points to the destination of packed panels of one operand, which follow one another. */
typedef struct bsmm_panel {
    uint8_t *units;
    double *factors; /* factors of the rows, in the order [panel][row]; 1 in padding rows */
    uint8_t *wide;   /* `wide` of each row, in the order [panel][row]; 0 in padding rows */
} bsmm_panel;

/* Points to memory that will be read soon. For each unit that it multiplies, an engine prefetches
 * the next `bytes` of it (whole cache lines). The loads from memory thus overlap with the
 * multiplication. */
typedef struct bsmm_ahead {
    const uint8_t *at;
    int64_t bytes;
} bsmm_ahead;

enum { BSMM_AHEAD_LINE = 64 };

/* Prefetch one cache line per unit. If `bytes` is 0, prefetch the same line again; that is cheaper
 * than a branch. */
static inline void bsmm_ask_ahead(bsmm_ahead *ahead) {
    __builtin_prefetch(ahead->at, 0, 2);
    for (int64_t i = BSMM_AHEAD_LINE; i < ahead->bytes; i += BSMM_AHEAD_LINE)
        __builtin_prefetch(ahead->at + i, 0, 2);
    ahead->at += ahead->bytes;
}

struct bsmm_engine {
    const char *values;    /* that panels hold: "int8"; part of their name in packed weights */
    int64_t mr, nr;        /* rows of A and of B in the register tile */
    int64_t unit;          /* columns of K in a unit */
    uint64_t a_unit_bytes; /* bytes of a unit of mr rows, a multiple of 64 */
    uint64_t b_unit_bytes; /* bytes of a unit of nr rows, a multiple of 64 */
    int64_t chunk;         /* approximate number of units that a cache block spans along K */
    int64_t mc, nc;        /* rows of A and B in a cache block: multiples of mr and nr */
    int wide_limit;        /* largest sum of two rows' `wide` that fp32 carries */
    uint64_t widened_unit_bytes; /* bytes of a unit of B after widen; 0: no widen */
    /* Packs rows [row, row + rows) of an operand over all of K, into as many panels as they
     * fill. */
    void (*pack)(const bsmm_product *p, bool is_b, int64_t row, int64_t rows, bsmm_panel *to);
    /* Expands B's packed elements to the type that multiply reads, once for all the panels of A
     * that are multiplied by them. NULL: multiply reads B as it is packed. */
    void (*widen)(const uint8_t *b, int64_t units, uint8_t *to);
    /* c[mr][nr] = (or += when add) the MMA of a and b over `units`. The row stride of c is `pitch`
     * floats. */
    void (*multiply)(const uint8_t *a, const uint8_t *b, int64_t units, float *c, int64_t pitch,
                     bool add, bsmm_ahead ahead);
    /* Like multiply, for a panel of B of which only `cols` columns are used, at most narrow_cols.
     * NULL if narrow_cols is 0. */
    void (*narrow)(const uint8_t *a, const uint8_t *b, int64_t units, float *c, int64_t pitch,
                   bool add, bsmm_ahead ahead, int64_t cols);
    int64_t narrow_cols;
};

/* Describes one packed operand. */
typedef struct bsmm_gemm_side {
    int64_t rows, panels, width;
    uint64_t panel_bytes;
    uint8_t *units; /* units, factors and wide are set in a run */
    double *factors;
    uint8_t *wide;
} bsmm_gemm_side;

/* Describes the blocking and the sizes that an engine uses for one GEMM. It is the state of the
 * kernels that have a packed engine. */
typedef struct bsmm_gemm {
    const bsmm_engine *engine;
    bsmm_gemm_side a, b;
    int64_t units; /* number of units along K */
    int64_t chunk; /* units that a cache block multiplies at a time */
    /* Rows of a cache block: the engine's, or less to fit L2 and to occupy all threads. */
    int64_t mc, nc;
    int64_t slab;     /* panels of B that are packed at a time: all, or whole blocks of nc rows */
    uint64_t b_bytes; /* memory of B's panels: packed_b_bytes, or less if slabs take turns in it */
    bool by_slabs;    /* each thread packs and multiplies slabs of its own, of one block each */
    uint64_t scratch_bytes, workspace_bytes, packed_b_bytes;
    int64_t cols;  /* columns of A x B^T that blocks walk: all, or the gates if is_split */
    bool is_split; /* a gated activation finds its ups in the second half of the columns. A block
                      multiplies nc gates, then their ups */
    int threads;
    bool by_rows; /* each thread computes its part of A's rows */
    /* The members below are set in a run. b then describes one slab, and counts from its first
     * row. */
    const bsmm_product *p;
    int64_t b_first;   /* the row of B, and column of D, that the slab begins with */
    bool is_direct;    /* result of bsmm_cpu_epilogue_is_direct */
    bool expects;      /* D's lines are prefetched, because D is larger than the caches hold */
    uint8_t *b_memory; /* where the slabs are packed, or B as it was packed in advance */
    uint8_t *scratch;  /* one scratch buffer per thread */
} bsmm_gemm;

bsmm_gemm bsmm_gemm_make(const bsmm_engine *engine, const bsmm_product *p);

/* Packs B in advance. It writes the same bytes that a run would write. */
bsmm_status bsmm_gemm_pack_b(const bsmm_gemm *made, const bsmm_product *p, void *packed);

bsmm_status bsmm_gemm_run(const bsmm_gemm *made, const bsmm_product *p, void *workspace);

/* Returns NULL if the engine's cache blocks hold whole scale blocks of a block-scaled D, else the
 * reason. */
const char *bsmm_gemm_refuse_output(const bsmm_engine *engine, const bsmm_product *p, char *why,
                                    size_t size);

/* Points to part of a row of accumulators, with the factors that were divided out of its row and
 * its columns while packing. */
typedef struct bsmm_gemm_row {
    int64_t r, col, cols;
    const float *acc;
    double factor;
    int wide, wide_limit;         /* `wide` of the row, and the engine's limit */
    const double *column_factors; /* factors and `wide` of the columns */
    const uint8_t *column_wide;
    const double *gates; /* [cols] of bsmm_gemm_sum_row, if the columns are ups of split halves */
} bsmm_gemm_row;

/* Returns true if a gated activation has all gates before all ups. */
static inline bool bsmm_gemm_is_split(const bsmm_product *p) {
    return bsmm_is_gated(p) && !p->finish->interleaved;
}

/* Describes a run of columns. */
typedef struct bsmm_gemm_columns {
    int64_t col, cols;
} bsmm_gemm_columns;

/* Returns the columns of D that columns [col, col + cols) of A x B^T make; of split halves, these
 * are ups. */
bsmm_gemm_columns bsmm_gemm_columns_of_d(const bsmm_product *p, int64_t col, int64_t cols);

/* Returns the largest of n rows' `wide`. */
int bsmm_gemm_widest(const uint8_t *wide, int64_t n);

/* Turns accumulators into x, to which an activation is applied: applies the factors, replaces the
 * results of wide pairs, applies alpha, C and bias. */
void bsmm_gemm_sum_row(const bsmm_product *p, const bsmm_gemm_row *row, double *values);

/* Turns accumulators into the values that the last rounding reads, one for each of D's columns. */
void bsmm_gemm_finish_row(const bsmm_product *p, const bsmm_gemm_row *row, double *values);

/* Computes the values as bsmm_gemm_finish_row does and rounds them into an unscaled D. For all
 * three functions, `values` has room for cols values. */
void bsmm_gemm_store_row(const bsmm_product *p, const bsmm_gemm_row *row, double *values);

/* Describes rows that follow a first one, in accumulators that are `pitch` floats apart. */
typedef struct bsmm_gemm_rows {
    int64_t rows, pitch;
    const double *factors; /* `factor` of each row */
    const uint8_t *wide;   /* `wide` of each row */
    bool are_direct;       /* the value of bsmm_cpu_epilogue_is_direct */
} bsmm_gemm_rows;

/* Does the work of bsmm_gemm_store_row for several rows, which `first` describes apart from its
 * factor and its `wide`. */
void bsmm_gemm_store_rows(const bsmm_product *p, const bsmm_gemm_row *first,
                          const bsmm_gemm_rows *rows, double *values);

/* ---- the epilogue (epilogue.c) ---- */

/* values[i] = acc[i] * row_factor * factors[i]; a zero result is +0. */
void bsmm_cpu_epilogue_scale(const float *acc, double row_factor, const double *factors,
                             int64_t cols, double *values);

/* Applies alpha, C and bias to the values of row `row`, columns [col, col + cols), in place. */
void bsmm_cpu_epilogue_add(const bsmm_product *p, int64_t row, int64_t col, int64_t cols,
                           double *values);

/* values[i] = the gated activation of gates[i * step] and ups[i * step], for cols columns of D.
 * `values` may be `gates` or `ups`. */
void bsmm_cpu_epilogue_gate(const bsmm_product *p, const double *gates, const double *ups,
                            int64_t step, int64_t cols, double *values);

/* Applies an activation that is not gated, then the residual and the factors, to the values of row
 * `row`, columns [col, col + cols) of D, in place. */
void bsmm_cpu_epilogue_finish(const bsmm_product *p, int64_t row, int64_t col, int64_t cols,
                              double *values);

/* Divides by the second-level scale of an unscaled D. */
void bsmm_cpu_epilogue_divide(const bsmm_product *p, int64_t cols, double *values);

/* Returns true if one loop does the whole epilogue in a single pass. D is then unscaled. */
bool bsmm_cpu_epilogue_is_direct(const bsmm_product *p);

/* Runs that loop on accumulators that begin at (row, col) of D and hold no wide pair. It fills in
 * the tile's alpha and destination. It returns the number of rows that are done. If that is less
 * than the tile's, the next row needs the slow path. */
int64_t bsmm_cpu_epilogue_direct(const bsmm_product *p, int64_t row, int64_t col,
                                 bsmm_cpu_epilogue_tile tile);

/* Prefetches the lines of D that bsmm_cpu_epilogue_direct will store to, and the lines of C that it
 * will read. */
void bsmm_cpu_epilogue_expect(const bsmm_product *p, int64_t row, int64_t rows, int64_t col,
                              int64_t cols);

/* Rounds values into an unscaled D. */
void bsmm_cpu_epilogue_store(const bsmm_product *p, int64_t row, int64_t col, int64_t cols,
                             const double *values);

#endif
