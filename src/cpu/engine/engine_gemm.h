/* All CPU engines with packed operands share these GEMM loops. They pack both operands, multiply
 * register tile by register tile, and apply the epilogue row by row. An engine is the set of
 * functions that pack and multiply for one arithmetic, such as int8 dot products.
 *
 * An operand is packed in panels. A panel is `width` packed rows (mr rows for A, nr rows for B). A
 * panel consists of units, one after another along K. A unit is a range of K in which each row has
 * one scale, in the byte layout that the engine's multiply function reads. Zero elements pad K to
 * whole units, and rows of zeros pad the rows to whole panels.
 *
 * Packing divides a factor out of each row, and the epilogue multiplies the results by it. Packing
 * also computes a number `wide` for each row, which measures how far the row's magnitudes are
 * apart. In some engines the number counts powers of two; in others it is 0 or 1. A row of A and a
 * row of B form a wide pair if the sum of their two numbers exceeds the engine's wide_limit. Their
 * products could leave the range in which fp32 accumulators keep the documented error bound. The
 * result of a wide pair is therefore summed in double from the operands themselves. A row is called
 * wide if its number alone exceeds wide_limit. The choice depends only on the two rows, so results
 * do not depend on M, N or the number of threads. */
#ifndef BSMM_CPU_ENGINE_GEMM_H
#define BSMM_CPU_ENGINE_GEMM_H

#include "core/epilogue.h"
#include "cpu/epilogue/epilogue_loops.h"

typedef struct bsmm_engine bsmm_engine;

/* A panel is several rows that are packed together. This struct points to the memory into which
 * consecutive panels of one operand are packed. */
typedef struct bsmm_panel {
    uint8_t *units;
    /* `factors` holds the factors that packing has divided out of the rows, one for each row, in
     * the order [panel][row of the panel]. A panel is several rows that are packed together.
     * Padding rows have 1. */
    double *factors;
    /* `wide` holds one number for each row, in the order [panel][row of the panel]. The number
     * measures how far apart the magnitudes in the row are. If it is too large, fp32 sums may be
     * wrong (bsmm_engine.wide_limit). Padding rows have 0. A panel is several rows that are packed
     * together. */
    uint8_t *wide;
} bsmm_panel;

/* This struct describes memory that a later multiply will read. A multiply function prefetches the
 * next `bytes` bytes of it (whole cache lines) for each unit of K that it multiplies. The loads
 * from memory then overlap with the multiplication. */
typedef struct bsmm_ahead {
    const uint8_t *at;
    int64_t bytes;
} bsmm_ahead;

enum { BSMM_AHEAD_LINE = 64 };

/* Prefetches the next `bytes` bytes of the memory in *ahead, at least one cache line. If `bytes` is
 * 0, the function prefetches the same line again, because that costs less than a branch. */
static inline void bsmm_ask_ahead(bsmm_ahead *ahead) {
    __builtin_prefetch(ahead->at, 0, 2);
    for (int64_t i = BSMM_AHEAD_LINE; i < ahead->bytes; i += BSMM_AHEAD_LINE)
        __builtin_prefetch(ahead->at + i, 0, 2);
    ahead->at += ahead->bytes;
}

struct bsmm_engine {
    /* `values` is the type of the packed values, such as "int8". The header of packed weights has a
     * name for the layout of the packed rows (panels), and this name begins with `values`. */
    const char *values;
    int64_t mr, nr; /* `mr` is the number of rows of A in a register tile, and `nr` is that of B. */
    /* `unit` is the number of elements of K in a unit, i.e. in a range in which each row has one
     * scale. */
    int64_t unit;
    /* `a_unit_bytes` is the size in bytes of a packed unit of A, i.e. of mr rows over a range of K
     * of fixed length. It is a multiple of 64. */
    uint64_t a_unit_bytes;
    /* `b_unit_bytes` is the number of bytes of a unit (range of K) of nr rows of B, a multiple of
     * 64. */
    uint64_t b_unit_bytes;
    /* A cache block is multiplied over one range of K after another. Such a range is called a
     * chunk. `longest_chunk` is the largest number of elements of K in a chunk (bsmm_gemm_chunk), a
     * multiple of BSMM_CHUNK_STEP. */
    int64_t longest_chunk;
    /* `mc` is the number of rows of A in a cache block, and `nc` is the number of rows of B in it.
     * A cache block consists of whole register tiles, so mc is a multiple of mr, and nc is a
     * multiple of nr. */
    int64_t mc, nc;
    /* Packing gives each row of A and of B a number `wide`, which measures how far apart the
     * magnitudes in the row are. If the numbers of a row of A and a row of B add up to more than
     * `wide_limit`, their fp32 sum may be wrong, and their result is summed in double. */
    int wide_limit;
    /* `widened_unit_bytes` is the size in bytes of a packed unit (a range of K) of nr rows of B
     * after the function `widen` has expanded it. It is 0 if widen is NULL. */
    uint64_t widened_unit_bytes;
    /* Packs rows [row, row + rows) of A or B over all of K into panels at `to`. */
    void (*pack)(const bsmm_product *p, bool is_b, int64_t row, int64_t rows, bsmm_panel *to);
    /* Some engines pack B with smaller elements than `multiply` reads. `widen` expands `units`
     * units of a panel of B to the type that `multiply` reads; a unit is a range of K with one
     * scale per row. The expanded panel is then multiplied by all panels of A of a cache block.
     * `widen` is NULL if `multiply` reads B as it is packed. */
    void (*widen)(const uint8_t *b, int64_t units, uint8_t *to);
    /* Multiplies a panel of A (mr packed rows) by a panel of B (nr packed rows) over `units` units
     * of K (ranges with one scale per row). The function stores the mr x nr results to c, or adds
     * them to c if `add` is true. A row of c has a stride of `pitch` floats. An engine whose panels
     * have no scales sums all units in registers and then adds the sum to c once. */
    void (*multiply)(const uint8_t *a, const uint8_t *b, int64_t units, float *c, int64_t pitch,
                     bool add, bsmm_ahead ahead);
    /* `narrow` replaces `multiply` if only the first `cols` of the nr rows of a panel of B are
     * needed. It computes only `cols` columns of c. cols is at most narrow_cols. `narrow` is NULL
     * if narrow_cols is 0. */
    void (*narrow)(const uint8_t *a, const uint8_t *b, int64_t units, float *c, int64_t pitch,
                   bool add, bsmm_ahead ahead, int64_t cols);
    int64_t narrow_cols;
};

/* The CPU kernels may divide K into chunks, which are summed separately. The length of a chunk is a
 * multiple of BSMM_CHUNK_STEP elements. A chunk therefore consists of whole units (ranges of K with
 * one scale per row) of every engine and of whole steps of the small-M kernels. */
enum { BSMM_CHUNK_STEP = 128 };

/* Returns the length of a chunk, i.e. of the range of K that is multiplied at a time, in elements.
 * `longest` is the largest length that the engine allows. All chunks of a product have about the
 * same length: a short last chunk would load and store all accumulators for little work. The length
 * depends on K alone, so the order of additions does too. Some engines multiply elements by their
 * scales when they pack them. In such engines each chunk is summed by itself, so that the rounding
 * errors of long sums stay small. */
static inline int64_t bsmm_gemm_chunk(int64_t longest, int64_t k) {
    int64_t pieces = bsmm_ceil_div(k, BSMM_CHUNK_STEP);
    int64_t chunks = bsmm_ceil_div(pieces, longest / BSMM_CHUNK_STEP);
    return chunks > 1 ? bsmm_ceil_div(pieces, chunks) * BSMM_CHUNK_STEP : pieces * BSMM_CHUNK_STEP;
}

/* Returns the largest number of roundings in a result, for the kernel's error bound. Each product
 * that is added to the sum of its chunk of K is one rounding, so this is at most one for each
 * element of a chunk. If there are several chunks, each chunk's sum that is added to the result is
 * one more. */
static inline double bsmm_gemm_terms(int64_t longest, int64_t k) {
    int64_t chunk = bsmm_gemm_chunk(longest, k);
    return (double)bsmm_min_i64(chunk, k) + (double)(k > chunk ? bsmm_ceil_div(k, chunk) : 0);
}

/* `bsmm_gemm_side` describes the packed panels of one operand, A or B: `panels` panels of `width`
 * rows and `panel_bytes` bytes each. It also points to two arrays with one entry for each row
 * (bsmm_panel): the factors that packing has divided out of the rows, and the numbers `wide`, which
 * measure the dynamic ranges of the rows. */
typedef struct bsmm_gemm_side {
    int64_t rows, panels, width;
    uint64_t panel_bytes;
    /* `units` points to the memory of the packed panels. Each run sets the members units, factors
     * and wide. */
    uint8_t *units;
    double *factors;
    uint8_t *wide;
} bsmm_gemm_side;

/* `bsmm_gemm` holds the cache blocking of one GEMM, its threads and the sizes of its memory. It is
 * the state of all kernels that pack both operands. The first members are computed once per
 * plan. */
typedef struct bsmm_gemm {
    const bsmm_engine *engine;
    bsmm_gemm_side a, b;
    /* `units` is the number of units along K. A unit is a range of K with one scale per row. */
    int64_t units;
    /* `chunk` is the length in units of a chunk, i.e. of the range of K that a cache block
     * multiplies at a time. */
    int64_t chunk;
    /* `mc` and `nc` are the numbers of rows of A and of B in a cache block. They are the engine's
     * mc and nc, or fewer so that a block fits L2 and every thread gets work. */
    int64_t mc, nc;
    /* A slab is the panels of B that are packed at a time: all panels of B, or those of several
     * cache blocks. `slab` is the number of panels in a slab. If is_split is true, the rows of B
     * are the gates and the ups of a gated activation. If there are then several slabs, each slab
     * has `slab` panels of gates and as many panels of ups. */
    int64_t slab;
    /* `b_bytes` is the size in bytes of the memory for packed panels of B. It is packed_b_bytes if
     * all of B is packed at once, and less if parts of B (slabs) are packed into the same memory
     * one after another. */
    uint64_t b_bytes;
    /* A slab is the rows of B that are packed at a time. If `by_slabs` is true, each thread takes
     * one slab after another, and packs and multiplies it alone. A slab is then as wide as one
     * cache block of D. */
    bool by_slabs;
    /* `gate_bytes` is the number of bytes of one thread's scratch memory for the values of gates,
     * i.e. of the first inputs of a gated activation f(gate) * up. */
    uint64_t gate_bytes;
    uint64_t scratch_bytes, workspace_bytes, packed_b_bytes;
    /* `cols` is the number of columns of A x B^T that are divided into cache blocks. These are all
     * columns or, if is_split is true, only the first half, which holds the gates of a gated
     * activation. */
    int64_t cols;
    /* `is_split` is true if the activation is gated, f(gate) * up, and the ups are the second half
     * of the columns of A x B^T. A cache block multiplies its gates first and then the ups that
     * belong to them. */
    bool is_split;
    int threads;
    bool by_rows; /* `by_rows` is true if each thread computes an equal part of A's rows. */
    /* The members below are set in each run. A slab is the part of B (some panels) that is packed
     * at a time. During the run, `b` describes the current slab, and row numbers in `b` count from
     * the slab's first row. */
    const bsmm_product *p;
    /* A panel is several rows of B that are packed together, and a slab is the panels that are
     * packed at a time. `b_first` is the number in B of the current slab's first row. */
    int64_t b_first;
    /* If is_split is true, the first rows of the slab are gates, and the later rows, beginning with
     * row number `ups`, are the ups that belong to them. Row r of the slab is row r + b_first of B
     * if it is a gate, and row r + up_shift of B if it is an up. If gates and ups are one
     * contiguous range of B's rows, b_first and up_shift are equal. */
    int64_t ups, up_shift;
    /* `is_direct` is true if the whole epilogue runs in one pass over the accumulators
     * (bsmm_cpu_epilogue_is_direct). */
    bool is_direct;
    /* `expects` is true if the code prefetches D's cache lines before it writes them. It does so if
     * the epilogue runs in one pass and D is larger than a quarter of the L2 cache. */
    bool expects;
    /* `b_memory` is the memory for those panels of B (a panel is some packed rows) that are packed
     * at a time. If B was packed in advance, it is the address of the panels in the packed
     * weights. */
    uint8_t *b_memory;
    uint8_t *scratch; /* `scratch` has one scratch buffer per thread. */
} bsmm_gemm;

/* Returns true if all of B is packed at once, in a single slab. */
static inline bool bsmm_gemm_is_one_slab(const bsmm_gemm *g) {
    return g->b_bytes == g->packed_b_bytes;
}

bsmm_gemm bsmm_gemm_make(const bsmm_engine *engine, const bsmm_product *p);

/* Packs B into packed weights. The panels (several packed rows each) have the same bytes as those
 * that a run packs. */
bsmm_status bsmm_gemm_pack_b(const bsmm_gemm *made, const bsmm_product *p, void *packed);

bsmm_status bsmm_gemm_run(const bsmm_gemm *made, const bsmm_product *p, void *workspace);

/* Checks a block-scaled D, which can only be stored in whole scale blocks. Returns NULL if cache
 * blocks consist of whole scale blocks of D, or if D has no scales. Otherwise it returns the reason
 * for refusing the product. */
const char *bsmm_gemm_refuse_output(const bsmm_engine *engine, const bsmm_product *p, char *why,
                                    size_t size);

/* This struct is a part of one row of accumulators, with the factors by which the epilogue
 * multiplies it. Packing has divided `factor` out of the row of A, and column_factors out of the
 * rows of B. */
typedef struct bsmm_gemm_row {
    int64_t r, col, cols;
    const float *acc;
    double factor;
    /* `wide` measures the dynamic range of the magnitudes in the row of A, and column_wide measures
     * that of each row of B. If the sum of both numbers for a row of A and a row of B is above
     * `wide_limit`, fp32 might not hold all of their products. The result of these two rows is then
     * summed again in double. */
    int wide, wide_limit;
    /* These arrays have one entry for each of the `cols` columns. A column belongs to a row of B.
     * `column_factors` holds the factor that packing has divided out of this row. `column_wide`
     * holds a number that measures the row's dynamic range, as `wide` does for the row of A. */
    const double *column_factors;
    const uint8_t *column_wide;
    /* `gates` is NULL unless the columns are the ups of a gated activation, f(gate) * up, whose
     * gates are the first half of the columns of A x B^T. For the ups, `gates` holds the values of
     * the gates. */
    const double *gates;
} bsmm_gemm_row;

/* Returns true if the product has a gated activation, f(gate) * up, with the gates and the ups in
 * two halves: the gates are the first half of the columns of A x B^T. */
static inline bool bsmm_gemm_is_split(const bsmm_product *p) {
    return bsmm_is_gated(p) && !p->epilogue->interleaved;
}

/* This struct is a range of columns: `cols` columns from `col` on. */
typedef struct bsmm_gemm_columns {
    int64_t col, cols;
} bsmm_gemm_columns;

/* Returns the columns of D whose results follow from columns [col, col + cols) of A x B^T. The
 * column numbers in D differ from those in A x B^T if the activation is gated, f(gate) * up,
 * because two columns of A x B^T then give one column of D. If all gates come before all ups, the
 * given columns must be ups. */
bsmm_gemm_columns bsmm_gemm_columns_of_d(const bsmm_product *p, int64_t col, int64_t cols);

/* Returns the largest of n numbers `wide`, each of which measures the dynamic range of the
 * magnitudes in a row. */
int bsmm_gemm_widest(const uint8_t *wide, int64_t n);

/* Computes `values`, the inputs of the activation, from a row of accumulators. It multiplies each
 * accumulator by the factors that packing has divided out of its rows of A and B. If the fp32 sum
 * of a row of A and a row of B may be wrong, because their dynamic ranges are too wide, it replaces
 * the result by a sum in double. Then it applies alpha, C and bias. */
void bsmm_gemm_sum_row(const bsmm_product *p, const bsmm_gemm_row *row, double *values);

/* Applies the whole epilogue to a row of accumulators except for the last rounding. It writes one
 * double for each column of D. */
void bsmm_gemm_apply_epilogue(const bsmm_product *p, const bsmm_gemm_row *row, double *values);

/* Applies the whole epilogue to a row of accumulators, rounds, and stores to D, which must have no
 * scales. `values` is scratch memory for `cols` doubles. */
void bsmm_gemm_store_row(const bsmm_product *p, const bsmm_gemm_row *row, double *values);

/* This struct is several rows of accumulators for one call of the epilogue. The stride of the rows
 * is `pitch` floats. */
typedef struct bsmm_gemm_rows {
    int64_t rows, pitch;
    /* `factors` holds the factor that packing has divided out of each row of A. */
    const double *factors;
    const uint8_t *wide; /* `wide` measures the dynamic range of each row of A. */
    /* `are_direct` is true if one loop can apply the whole epilogue in one pass
     * (bsmm_cpu_epilogue_is_direct). */
    bool are_direct;
} bsmm_gemm_rows;

/* Applies the whole epilogue to several rows of accumulators, rounds, and stores to D, which must
 * have no scales. *first describes the first row of accumulators, and *rows says how many rows
 * follow at which stride. Each row has a factor and a number `wide` of its own in the arrays of
 * *rows, so first->factor and first->wide are not used. */
void bsmm_gemm_store_rows(const bsmm_product *p, const bsmm_gemm_row *first,
                          const bsmm_gemm_rows *rows, double *values);

/* Computes values[i] = acc[i] * row_factor * factors[i]. A zero result is +0. */
void bsmm_cpu_epilogue_scale(const float *acc, double row_factor, const double *factors,
                             int64_t cols, double *values);

/* Applies alpha, C and bias in place. `values` are the results in row `row` and columns [col, col +
 * cols) of A x B^T. */
void bsmm_cpu_epilogue_add(const bsmm_product *p, int64_t row, int64_t col, int64_t cols,
                           double *values);

/* Stores in values[i] the gated activation f(gates[i * step]) * ups[i * step], for i from 0 to cols
 * - 1. `values` may be the same array as `gates` or `ups`. */
void bsmm_cpu_epilogue_gate(const bsmm_product *p, const double *gates, const double *ups,
                            int64_t step, int64_t cols, double *values);

/* Applies the last steps of the epilogue in place to the values of row `row`, columns [col, col +
 * cols) of D. The steps are an activation without gates, the residual, and then the row and column
 * factors. */
void bsmm_cpu_epilogue_apply(const bsmm_product *p, int64_t row, int64_t col, int64_t cols,
                             double *values);

/* Divides the values by D's second-level scale (one scale for the whole matrix) if D has no block
 * scales. For a block-scaled D, the recipe divides the values. */
void bsmm_cpu_epilogue_divide(const bsmm_product *p, int64_t cols, double *values);

/* Returns true if one loop can apply the whole epilogue in a single pass (the direct loop). D then
 * has no scales. */
bool bsmm_cpu_epilogue_is_direct(const bsmm_product *p);

/* Runs the direct loop, which applies the whole epilogue in one pass, on a tile of accumulators.
 * The tile's first element is element (row, col) of D. The caller must make sure that no result of
 * the tile has to be summed in double. The function sets the fields of `tile` for alpha, for the
 * operands to add and for the destination itself.
 *
 * Returns the number of rows that it has stored, counted from the first one. If these are fewer
 * than all rows of the tile, only the slow path can round the next row correctly. The caller must
 * then store this row by the slow path, and may call the function again for the rest. */
int64_t bsmm_cpu_epilogue_direct(const bsmm_product *p, int64_t row, int64_t col,
                                 bsmm_cpu_epilogue_tile tile);

/* Prefetches the cache lines of D that bsmm_cpu_epilogue_direct will store to, and the lines of C
 * that it will read. */
void bsmm_cpu_epilogue_expect(const bsmm_product *p, int64_t row, int64_t rows, int64_t col,
                              int64_t cols);

/* Rounds a row of values once and stores them to D, which must have no scales. */
void bsmm_cpu_epilogue_store(const bsmm_product *p, int64_t row, int64_t col, int64_t cols,
                             const double *values);

#endif
