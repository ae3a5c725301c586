/* The small-M kernels share these GEMM loops. The kernels multiply few rows of A by B as it is
 * stored. Their speed is limited by reading B from memory.
 *
 * The rows of A are packed in tiles of `width` rows, as for the CPU kernels that pack both
 * operands. B is read in panels of 16 rows. Each of the 16 lanes of a vector belongs to one row of
 * the panel, and so to one column of D. First, a panel's scale codes are gathered in the order
 * [scale unit][16 rows], where a scale unit is a range of K with one gathered scale. Then the
 * panel's elements are read once, 32 elements of K at a time (a step), and decoded in registers.
 *
 * A panel is handled differently if it has a NaN scale, or scales so different that fp32 sums could
 * lose terms. The packer of the other kernels packs such a panel to scratch memory, and it is
 * multiplied from there.
 *
 * Results are bitwise identical to those of the kernels that pack both operands, because they are
 * summed in the same order with the same roundings. */
#ifndef BSMM_CPU_SMALL_M_H
#define BSMM_CPU_SMALL_M_H

#include "cpu/engine/engine_gemm.h"

enum {
    BSMM_SMALL_M_LANES = 16,
    /* BSMM_SMALL_M_STEP is the number of elements of K in a step, i.e. of the elements of a row
     * that are decoded at a time. */
    BSMM_SMALL_M_STEP = 32,
    /* BSMM_SMALL_M_GROUP is the number of steps (32 elements of K each) that are multiplied
     * together. */
    BSMM_SMALL_M_GROUP = 4,
    /* BSMM_SMALL_M_COLUMNS is the number of columns of D in a work unit. It is also the number of
     * floats in a row of accumulators. */
    BSMM_SMALL_M_COLUMNS = 128,
    BSMM_SMALL_M_WIDTH = 16, /* BSMM_SMALL_M_WIDTH is the largest number of rows in a tile of A. */
    /* BSMM_SMALL_M_PANELS is the largest number of panels of B that are multiplied side by side. */
    BSMM_SMALL_M_PANELS = 4,
    BSMM_SMALL_M_CONTEXT_BYTES = 320,
};

/* Holds the arguments of one call of a multiply function. The call multiplies a tile of A by a span
 * of B. A span is one to BSMM_SMALL_M_PANELS adjacent panels of B (16 rows each) in a range of K,
 * which has a whole number of steps of 32 elements. */
typedef struct bsmm_small_m_span {
    const uint8_t *a; /* `a` holds the packed elements and scales of the tile of A. */
    /* `b` is the address of the first row of B. The rows of all panels follow, each `pitch` bytes
     * after the row before. */
    const uint8_t *b;
    /* `compact` is true if b points to packed weights in compact order (format/compact.c), in which
     * the 16 rows of a panel are stored together. It is false unless the engine's flag
     * reads_compact is set. */
    bool compact;
    int64_t panel_pitch; /* `panel_pitch` is the distance in bytes between two panels of b. */
    /* `pitch` is the distance in bytes between two rows of b. If `compact` is true, 16 rows are
     * stored together, and `pitch` is the number of bytes that one row has in 4 steps of 32
     * elements of K. */
    int64_t pitch;
    /* `next` points to the rows that will be read after b. They are prefetched. */
    const uint8_t *next;
    int64_t lead; /* `lead` is the prefetch distance along a row of B in bytes. */
    /* `codes` holds the scale codes of B as the function `prepare` of the kernel's function table
     * (bsmm_small_m_engine) has written them. */
    const uint8_t *codes;
    /* `scales` holds B's fp32 scales of one panel in the order [segment of 128 elements of K][16
     * rows of B]. NULL means that B has no fp32 scales. */
    const float *scales;
    /* `scale_pitch` is the distance from the scales of one panel of B to those of the next panel.
     * Its unit is one element of `codes` or of `scales`. */
    int64_t scale_pitch;
    int64_t steps;
    /* `row_steps` is the number of steps from `b` to the end of the rows of B. It is at least
     * `steps`, the number of steps to multiply. A prefetch that would go past the end of the rows
     * goes to `next` instead. */
    int64_t row_steps;
    /* `chunk_steps` is the number of steps of a chunk, i.e. of a range of K that is summed by
     * itself. 0 means that the sum goes on over all of K. */
    int64_t chunk_steps;
    /* This range of K may begin in the middle of a chunk, i.e. of a range of K that is summed by
     * itself. `first` is the number of steps (32 elements of K) from the start of that chunk to the
     * start of this range. It is 0 if this range begins with a new chunk. */
    int64_t first;
    bool ends; /* `ends` is true if this range of K reaches the end of K. */
    /* `context` points to the tables that the function make_context of the kernel's function table
     * (bsmm_small_m_engine) has written. */
    const void *context;
    /* `acc` points to the accumulators of the tile of A. They have the order [row of
     * A][BSMM_SMALL_M_COLUMNS], and each panel of B (16 rows) takes 16 of the columns. The function
     * adds its results to them. If K is divided into ranges that are summed separately (chunks), it
     * sums each chunk from 0 and then adds the chunk's sum to `acc`. */
    float *acc;
    /* A chunk is a range of K that is summed by itself. The range of K of a call may end inside a
     * chunk. The call then leaves the incomplete sums of this chunk in `part`, in the order of
     * `acc`, and the next call continues them. */
    float *part;
} bsmm_small_m_span;

/* Describes the addresses in B that are prefetched during a multiplication, one cache line at a
 * time. `bytes` bytes of one row are prefetched before those of the next row. The hardware
 * prefetcher, which can follow only few rows at once, then recognizes the rows and fetches most of
 * the lines itself. */
typedef struct bsmm_small_m_later {
    const uint8_t *row;
    int64_t pitch, bytes, at;
} bsmm_small_m_later;

/* Describes the bytes of B to prefetch while the caller reads bytes [at, at + bytes) of each row.
 * The rows begin at s->b, and each has `end` bytes. The function describes the next `bytes` bytes
 * of the same rows. If the caller reads the last bytes of the rows, the function describes the
 * first `bytes` bytes of the rows at s->next instead. */
static inline bsmm_small_m_later bsmm_small_m_follow(const bsmm_small_m_span *s, int64_t at,
                                                     int64_t bytes, int64_t end) {
    const uint8_t *row = at + bytes < end ? s->b + at + bytes : s->next;
    return (bsmm_small_m_later){.row = row, .pitch = s->pitch, .bytes = bytes < end ? bytes : end};
}

/* Prefetches the next `lines` cache lines of the rows that *x describes, and goes to the next row
 * at the end of a row. */
static inline void bsmm_small_m_ask(bsmm_small_m_later *x, int lines) {
#pragma GCC unroll 12
    for (int i = 0; i < lines; i++)
        __builtin_prefetch(x->row + x->at + 64 * (int64_t)i, 0, 2);
    x->at += 64 * (int64_t)lines;
    if (x->at >= x->bytes) {
        x->at = 0;
        x->row += x->pitch;
    }
}

/* `bsmm_small_m_scales` holds the scales of one panel (16 rows of B), gathered into arrays. */
typedef struct bsmm_small_m_scales {
    const bsmm_product *p;
    /* The panel has the rows row to row + rows - 1 of B. If it has fewer rows than lanes, the other
     * lanes hold the scales of its last row too. */
    int64_t row, rows;
    /* `units` is the number of scale units (ranges of K with one gathered scale), padded to a
     * multiple of 128 elements of K. */
    int64_t units;
    /* `used` is the number of scale units (ranges of K with one scale) up to the end of K. */
    int64_t used;
    /* A chunk is a range of K that is summed by itself. `chunk` is the number of scale units
     * (ranges of K with one scale) in a chunk. */
    int64_t chunk;
    /* `codes` holds the scale codes in the order [range of K with one scale][16 rows]. */
    uint8_t *codes;
    /* If B has fp32 scales, `scales` holds them in the order [range of K with one scale][16
     * rows]. */
    float *scales;
    /* `factors` receives the factors by which the epilogue multiplies the results of the 16 rows of
     * B. The caller sets each of them to B's second-level scale, the one scale of the whole matrix.
     * If the scales of a row are divided by a power of two, the row's factor must be multiplied by
     * it. */
    double *factors;
    /* `wide` holds a number for each of the 16 rows, which is 0 at first. It tells how far the
     * row's scales are apart. If it is too large, fp32 sums of the row may be wrong
     * (engine_gemm.h). */
    uint8_t *wide;
    /* The number `wide` of a row tells how far the row's magnitudes are apart. `a_wide` is the
     * largest `wide` of A's rows. */
    int a_wide;
} bsmm_small_m_scales;

typedef struct bsmm_small_m_engine {
    int64_t width; /* `width` is the number of rows in a tile of A. */
    /* `panels` is the number of panels of B that are multiplied side by side. The accumulators of
     * several panels are independent, which hides the latency of additions. */
    int64_t panels;
    /* `multiply` works in steps of 32 elements of K. The number of steps that it gets in a call is
     * always a multiple of `group`. */
    int64_t group;
    /* `read_group` is the number of steps that `multiply` reads at once. If fewer steps are left,
     * it reads past the last one and ignores what it reads there. B is copied where such a read
     * would go past the end of a row. */
    int64_t read_group;
    /* `unit` is the number of elements of K in a packed unit, i.e. in a range with one scale per
     * row. */
    int64_t unit;
    /* `a_unit_bytes` is the number of bytes of a packed unit (a range of K) of `width` rows of
     * A. */
    uint64_t a_unit_bytes;
    /* Some panels (16 rows of B) must be packed, because the function `prepare` or `multiply`
     * cannot handle their scales or elements. `b_unit_bytes` is the number of bytes of one packed
     * unit of such a panel. A unit is a range of K with one scale per row. */
    uint64_t b_unit_bytes;
    /* `scale_unit` is the number of consecutive elements of K for which the array of gathered
     * scales has one entry per row. */
    int64_t scale_unit;
    /* `longest_chunk` is the largest number of elements of K in a chunk, i.e. in a range of K that
     * is summed by itself (bsmm_gemm_chunk). 0 means that the sum goes on over all of K. */
    int64_t longest_chunk;
    /* If the magnitudes in a row differ too much, fp32 sums of its products may lose terms. A
     * number `wide` measures this difference for each row of A and of B. If the sum of the two
     * numbers of a result's rows is larger than `wide_limit`, the result is summed in double. */
    int wide_limit;
    /* `reads_compact` is true if the function `multiply` reads B in compact order, in which pieces
     * of 16 rows are interleaved. Otherwise the caller copies B to row order. */
    bool reads_compact;
    /* `make_context` writes tables that the function `multiply` reads, at most
     * BSMM_SMALL_M_CONTEXT_BYTES bytes. It is NULL if `multiply` needs no tables. */
    void (*make_context)(const bsmm_product *p, void *context);
    void (*pack_a)(const bsmm_product *p, int64_t width, int64_t row, int64_t rows, bsmm_panel *to);
    void (*pack_b)(const bsmm_product *p, int64_t row, int64_t rows, bsmm_panel *to);
    /* Checks the gathered scales of a panel of 16 rows of B and converts them to the form that the
     * function `multiply` reads. Returns false if the panel must be packed instead, because scales
     * are, for example, NaN, negative or too far apart. */
    bool (*prepare)(const bsmm_small_m_scales *s);
    /* Multiplies one or a few panels of B (16 rows each) by a tile of A, over a range of K (a
     * span). A panel may contain elements that the function cannot decode, such as NaN. Bit p of
     * the result is then set for this panel, the p-th of the call. Its accumulators are invalid,
     * and the caller must pack the panel and multiply it again. */
    uint32_t (*multiply)(const bsmm_small_m_span *span);
    /* Multiplies a packed tile of A by a packed panel of B and adds the results to acc. The tile
     * has `width` rows, and the panel has 16 rows of B. `units` is the number of units of K in
     * both; a unit is a range of K in which each row has one scale. acc[r * BSMM_SMALL_M_COLUMNS +
     * c] is the accumulator of the tile's row r and the panel's row c. */
    void (*multiply_packed)(const uint8_t *a, const uint8_t *b, int64_t width, int64_t units,
                            float *acc);
    /* Computes the whole product if it is tiny (small_m_tiny.h). If the function cannot, it returns
     * false and leaves D unchanged. The other functions of this struct must then compute the
     * product. The pointer is NULL if the product is not tiny. */
    bool (*multiply_tiny)(const bsmm_product *p, const void *context);
} bsmm_small_m_engine;

/* Up to some number of rows of A, a small-M kernel is faster than the kernel that packs B in each
 * run. `bsmm_small_m_limit` holds this number for two ways to store B: `stored` for weights as the
 * caller stores them, and `compact` for packed weights of the form compact, in which 16 rows of B
 * are stored together. `compact` may be larger: from compact weights, the small-M kernels are
 * faster, and the packing of B is slower. */
typedef struct bsmm_small_m_limit {
    int64_t stored, compact;
    /* The tiles of a small-M kernel fit some numbers of rows badly, e.g. 17 rows with tiles of 12
     * rows. If the number of rows of A is between gap_first and gap_last and the weights are not
     * packed, the kernel that packs B computes the product instead. gap_first is 0 if there are no
     * such numbers. */
    int64_t gap_first, gap_last;
} bsmm_small_m_limit;

/* Returns NULL if the small-M kernels accept the product's shape and the orders of its matrices,
 * else the reason for refusing it. */
const char *bsmm_small_m_refuse(const bsmm_product *p, const bsmm_small_m_limit *most, char *why,
                                size_t size);

/* Before B is multiplied, its scales are gathered in an array. A scale unit is a range of K in
 * which a row has one entry of this array. Returns the number of elements of K in a scale unit,
 * which is `segment` for fp32 scales. The length of B's scale blocks along K must be a multiple of
 * it. */
int64_t bsmm_small_m_scale_unit(uint32_t scale, int64_t segment);

/* Returns NULL if weights of this format can be multiplied as they are stored, else the reason.
 * `takes` tells whether the kernel accepts the element format. e4m3 scales are accepted only with
 * e2m1 elements. A scale unit is a range of K with one gathered scale (bsmm_small_m_scale_unit).
 * The length of a scale block along K must be a multiple of the length of a scale unit, or the
 * block must have an fp32 scale and span all of K. */
const char *bsmm_small_m_refuse_weights(const bsmm_operand *b, bool (*takes)(uint32_t elem),
                                        int64_t segment, char *why, size_t size);

/* Expands X(w, ...) for each number w of rows that a tile of A can have in the AVX-512 kernels, in
 * ascending order. If a tile has more rows than are left in A, the kernel also computes rows of
 * padding. More numbers in this list would save such rows, but each number needs code of its
 * own. */
#define BSMM_SMALL_M_EACH_TILE(X, ...)                                                             \
    X(1, __VA_ARGS__)                                                                              \
    X(2, __VA_ARGS__)                                                                              \
    X(3, __VA_ARGS__)                                                                              \
    X(4, __VA_ARGS__)                                                                              \
    X(5, __VA_ARGS__)                                                                              \
    X(6, __VA_ARGS__)                                                                              \
    X(7, __VA_ARGS__)                                                                              \
    X(8, __VA_ARGS__)                                                                              \
    X(9, __VA_ARGS__)                                                                              \
    X(10, __VA_ARGS__)                                                                             \
    X(12, __VA_ARGS__)                                                                             \
    X(14, __VA_ARGS__)                                                                             \
    X(16, __VA_ARGS__)
#define BSMM_SMALL_M_TILE_ONE(width, unused)  +1
#define BSMM_SMALL_M_TILE_ROWS(width, unused) width,
/* BSMM_SMALL_M_TILES is the number of tile heights of BSMM_SMALL_M_EACH_TILE. */
enum { BSMM_SMALL_M_TILES = 0 BSMM_SMALL_M_EACH_TILE(BSMM_SMALL_M_TILE_ONE, 0) };

/* Chooses the number of rows in a tile of A from `widths`, which has `count` numbers in ascending
 * order. Decoding B for a tile takes as long as multiplying B by `decoding` rows of A. The function
 * returns the index of the width with which all tiles of A take the least time. */
int bsmm_small_m_choose_width(const bsmm_product *p, const int64_t *widths, int count,
                              int64_t decoding);

/* `bsmm_small_m` holds the sizes of one GEMM and of its workspace. It is the state of the small-M
 * kernels. */
typedef struct bsmm_small_m {
    /* `context` has the tables that the engine's function make_context has written. */
    _Alignas(64) uint8_t context[BSMM_SMALL_M_CONTEXT_BYTES];
    bsmm_small_m_engine d;
    int64_t tiles; /* `tiles` is the number of tiles into which A's rows are divided. */
    int64_t steps, units, scale_units;
    /* `used_steps` is the number of steps (32 elements of K) that are multiplied: all steps up to
     * the end of K, rounded up to a multiple of the engine's `group`. */
    int64_t used_steps;
    /* `chunk_steps` is the number of steps in a chunk, i.e. in a range of K that is summed by
     * itself. */
    int64_t chunk_steps;
    int64_t step_bytes, row_bytes, pitch;
    /* The plan keeps these numbers, because computing them takes divisions, which take long in a
     * tiny product. `multiply` reads steps in groups of read_group. `whole_steps` is the number of
     * steps in complete groups; the steps after them must be copied first. A scale unit is a range
     * of K with one scale. `used_scales` is the number of scale units up to the end of K, and
     * `chunk_scales` is that of a chunk (a range of K that is summed by itself). `strips_ahead` is
     * the prefetch distance along B's rows, counted in groups of panels that are multiplied side by
     * side. */
    int64_t whole_steps, used_scales, chunk_scales, strips_ahead;
    uint64_t tile_bytes, packed_bytes, thread_bytes, workspace_bytes;
    /* `cols` is the number of columns of A x B^T that the threads divide among them. These are all
     * columns or, if is_split is true, only the first half, which holds the gates of a gated
     * activation. */
    int64_t cols;
    /* `is_split` is true for a gated activation f(gate) * up whose ups are the second half of the
     * columns. */
    bool is_split;
    int threads;
} bsmm_small_m;

void bsmm_small_m_make(const bsmm_small_m_engine *d, const bsmm_product *p, bsmm_small_m *m);
bsmm_status bsmm_small_m_run(const bsmm_small_m *made, const bsmm_product *p, void *workspace);

/* Computes for each of `units` scale units (ranges of K with one gathered scale) the part of its
 * scale's offset that depends on the column. In every layout, the offset of a scale is the sum of a
 * part that depends on its row and a part that depends on its column. Returns the number of
 * consecutive scale units whose codes are adjacent in memory: 16, 4 or 1. */
int64_t bsmm_small_m_find_columns(const bsmm_product *p, int64_t scale_unit, int64_t units,
                                  uint64_t *columns);

/* Gathers the scales of one panel of B into s->codes or s->scales. `columns` and `run` are results
 * of bsmm_small_m_find_columns for B. */
void bsmm_small_m_gather(const bsmm_small_m_scales *s, const uint64_t *columns, int64_t run);

/* Gathers the scale codes of 16 rows of B, so that the 16 codes of each scale unit (a range of K
 * with one scale per row) become adjacent. In memory, the code of unit u of row r is at row[r] +
 * columns[u], and the codes of `run` (16 or 4) consecutive units of a row are adjacent. The
 * function gathers such a run at once, and may leave out the last run if it is incomplete.
 *
 * Returns the number of units that were gathered, counted from the first unit. With AVX-512 these
 * may include up to three units of padding, whose entries in `columns` are those of the last unit.
 * The function needs AVX2, and uses AVX-512 if the processor has it (small_m_gather_avx512.c). */
int64_t bsmm_small_m_gather_runs(const uint8_t *const row[BSMM_SMALL_M_LANES],
                                 const uint64_t *columns, int64_t units, int64_t run,
                                 uint8_t *codes);

/* Gathers scale codes as bsmm_small_m_gather_runs describes, by 128-bit vectors
 * (small_m_gather_avx2.c). */
int64_t bsmm_small_m_gather_avx2(const uint8_t *const row[BSMM_SMALL_M_LANES],
                                 const uint64_t *columns, int64_t units, int64_t run,
                                 uint8_t *codes);

/* Copies `bytes` bytes of each of 16 rows of B from compact weights to row order. In compact
 * weights, `piece` bytes of row 0 are followed by `piece` bytes of each of the rows 1 to 15, then
 * by the next `piece` bytes of row 0, and so on. `bytes` must be a multiple of `piece`. In the
 * copy, rows are `pitch` bytes apart. */
void bsmm_small_m_unpack(const uint8_t *strip, int64_t bytes, int64_t piece, uint8_t *to,
                         int64_t pitch);

/* Copies bytes [from, from + bytes) of each of 16 rows of B, beginning with row `row`. In the copy,
 * the bytes of a row are contiguous, and rows are `pitch` bytes apart. Rows past the last row of B
 * are copies of the last row. */
void bsmm_small_m_copy_panel(const bsmm_operand *b, int64_t row, int64_t from, int64_t bytes,
                             uint8_t *to, int64_t pitch);

/* Returns true if elements [k0, k0 + n) of a row are all zero. Elements past the end of K are
 * ignored. */
bool bsmm_small_m_is_empty(const bsmm_operand *o, int64_t row, int64_t k0, int64_t n);

#endif
