/* This is the body that the small-M kernels share. They multiply few rows of A by B as it is
 * stored, and reading B from memory limits their speed.
 *
 * A's rows are packed as the packed engines pack them, in tiles of `width` rows. B is read in
 * panels. A panel is 16 rows of B, which are the lanes of a register and 16 columns of D. A panel's
 * scale codes are gathered first, as [scale unit][16]; a scale unit is a run of K with one gathered
 * scale. The panel's elements are then read once, in steps of 32 along K, and decoded in registers.
 * A panel with unusual scales (a wide row, see engine_gemm.h, or NaN) is packed into scratch memory
 * by the packed engines' own packer, and multiplied from there.
 *
 * A result is bitwise identical to the packed engine's: it is accumulated in the same order with
 * the same roundings. */
#ifndef BSMM_CPU_SMALL_M_H
#define BSMM_CPU_SMALL_M_H

#include "cpu/engine/engine_gemm.h"

enum {
    BSMM_SMALL_M_LANES = 16,
    BSMM_SMALL_M_STEP = 32, /* columns of K in a step */
    BSMM_SMALL_M_GROUP = 4, /* steps of K in a group; a span is a whole number of groups */
    /* Columns of D in a work unit; also floats per row of accumulators. */
    BSMM_SMALL_M_COLUMNS = 128,
    BSMM_SMALL_M_WIDTH = 16, /* largest number of rows of A in a tile */
    BSMM_SMALL_M_PANELS = 4, /* largest number of panels that are multiplied side by side */
    BSMM_SMALL_M_CONTEXT_BYTES = 320,
};

/* A span is a run of steps of one or a few panels side by side, which are multiplied by one tile of
 * A. */
typedef struct bsmm_small_m_span {
    const uint8_t *a; /* packed units of the tile of A */
    const uint8_t *b; /* bytes of B's first row; the rows of the panels follow one another */
    /* b is a strip of compact weights (format/compact.c), and the span has one panel. Only engines
     * with reads_compact get such spans. */
    bool compact;
    int64_t pitch;       /* distance between two rows of b; if compact, bytes of a row in a group */
    const uint8_t *next; /* the rows that are read after b, for prefetching */
    int64_t lead;        /* prefetch distance along a row, in bytes */
    const uint8_t *codes; /* scale codes, as the engine's prepare left them */
    const float *scales;  /* fp32 scales in the order [segment of 128 of K][16 rows]; NULL: none */
    int64_t scale_pitch;  /* distance between two panels, in codes or scales */
    int64_t steps;
    const void *context; /* the tables that the engine's make_context wrote */
    /* accumulators in the order [row of A][BSMM_SMALL_M_COLUMNS], 16 per panel; results are added
     */
    float *acc;
} bsmm_small_m_span;

/* Describes addresses that are prefetched while a span is multiplied, one cache line at a time.
 * `bytes` of one row are prefetched before those of the next row, so that the hardware prefetcher,
 * which can follow only few rows, brings most of the lines. */
typedef struct bsmm_small_m_later {
    const uint8_t *row;
    int64_t pitch, bytes, at;
} bsmm_small_m_later;

/* Returns the addresses to prefetch while bytes [at, at + bytes) of rows of `end` bytes are read.
 * They follow the bytes that are read. If these reach the end of the rows, the addresses begin at
 * the start of the next rows. */
static inline bsmm_small_m_later bsmm_small_m_follow(const bsmm_small_m_span *s, int64_t at,
                                                     int64_t bytes, int64_t end) {
    const uint8_t *row = at + bytes < end ? s->b + at + bytes : s->next;
    return (bsmm_small_m_later){.row = row, .pitch = s->pitch, .bytes = bytes < end ? bytes : end};
}

/* Prefetches `lines` cache lines of a row, or up to its end. */
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

/* Holds one panel's gathered scales. */
typedef struct bsmm_small_m_scales {
    const bsmm_product *p;
    int64_t row, rows; /* first row of B and number of rows; lanes past the last row repeat it */
    int64_t units;     /* scale units of whole groups of steps */
    int64_t used;      /* scale units that K fills */
    uint8_t *codes;    /* scale codes in the order [unit][16 rows] */
    float *scales;     /* fp32 scales in the order [unit][16 rows], if B has them */
    double *factors;   /* factors of the 16 rows; at first B's global scale */
    uint8_t *wide; /* range number (`wide` of engine_gemm.h) of each of the 16 rows; at first 0 */
    int a_wide;    /* largest `wide` of A's rows */
} bsmm_small_m_scales;

typedef struct bsmm_small_m_engine {
    int64_t width; /* rows of a tile of A */
    /* Panels that are multiplied side by side, which hides the latency of their accumulators. */
    int64_t panels;
    int64_t unit;          /* columns of K in a packed unit */
    uint64_t a_unit_bytes; /* bytes of a unit of `width` rows */
    uint64_t b_unit_bytes; /* bytes of a unit of 16 rows, for panels that have to be packed */
    int64_t scale_unit;    /* columns of K with one gathered scale */
    int wide_limit;        /* largest sum of two rows' `wide` that fp32 sums can hold */
    bool reads_compact;    /* multiply takes compact spans; else the caller copies B to row order */
    /* Writes tables for multiply, at most BSMM_SMALL_M_CONTEXT_BYTES. NULL: multiply needs none. */
    void (*make_context)(const bsmm_product *p, void *context);
    void (*pack_a)(const bsmm_product *p, int64_t width, int64_t row, int64_t rows, bsmm_panel *to);
    void (*pack_b)(const bsmm_product *p, int64_t row, int64_t rows, bsmm_panel *to);
    /* Checks a panel's scales and converts them to the form that multiply reads. Returns false if
     * the panel has to be packed. */
    bool (*prepare)(const bsmm_small_m_scales *s);
    /* Multiplies a span. Bit p of the result is set if panel p has elements that have to be packed;
     * its accumulators are then invalid. */
    uint32_t (*multiply)(const bsmm_small_m_span *span);
    /* Adds the MMA of packed units to acc, which has the order [row of A][BSMM_SMALL_M_COLUMNS]. */
    void (*multiply_packed)(const uint8_t *a, const uint8_t *b, int64_t width, int64_t units,
                            float *acc);
} bsmm_small_m_engine;

/* Returns NULL if the small-M kernels take the shape and the orders, else the reason. */
const char *bsmm_small_m_refuse(const bsmm_product *p, int64_t most_rows, char *why, size_t size);

/* Returns the length of a scale unit along K. Blocks must be multiples of it. For fp32 scales it is
 * `segment`. */
int64_t bsmm_small_m_scale_unit(uint32_t scale, int64_t segment);

/* Returns NULL if weights of this format can be multiplied as they are stored, else the reason. The
 * engine must take the elements, e4m3 scales are taken over e2m1 alone, and a block must be whole
 * scale units. */
const char *bsmm_small_m_refuse_weights(const bsmm_format *f, bool (*takes)(uint32_t elem),
                                        int64_t segment, char *why, size_t size);

/* Chooses the tile: the narrowest of `widths` that holds all rows of A, else the last. Returns its
 * index. There are `count` widths in ascending order, and the last is 16. */
int bsmm_small_m_choose_width(const bsmm_product *p, const int64_t *widths, int count);

/* Describes the blocking and the sizes that an engine uses for one GEMM. It is the state of the
 * small-M kernels. */
typedef struct bsmm_small_m {
    /* Tables for the engine, written by make_context. */
    _Alignas(64) uint8_t context[BSMM_SMALL_M_CONTEXT_BYTES];
    bsmm_small_m_engine d;
    int64_t tiles; /* number of tiles of A */
    int64_t steps, units, scale_units;
    int64_t step_bytes, row_bytes, pitch;
    uint64_t tile_bytes, packed_bytes, thread_bytes, workspace_bytes;
    int64_t cols;  /* columns of A x B^T that threads share: all, or the gates if is_split */
    bool is_split; /* see bsmm_gemm */
    int threads;
} bsmm_small_m;

void bsmm_small_m_make(const bsmm_small_m_engine *d, const bsmm_product *p, bsmm_small_m *m);
bsmm_status bsmm_small_m_run(const bsmm_small_m *made, const bsmm_product *p, void *workspace);

/* Gathers the codes of the first units, as many as form whole runs of `run` (16 or 4) adjacent
 * codes, and returns their number. `row` points to each lane's code at column offset 0. It is for
 * kernels that need AVX2 themselves (small_m_gather_avx512.c). */
int64_t bsmm_small_m_gather_runs(const uint8_t *const row[BSMM_SMALL_M_LANES],
                                 const uint64_t *columns, int64_t units, int64_t run,
                                 uint8_t *codes);

/* Gathers the scale codes by 128-bit vectors (small_m_gather_avx2.c). */
int64_t bsmm_small_m_gather_avx2(const uint8_t *const row[BSMM_SMALL_M_LANES],
                                 const uint64_t *columns, int64_t units, int64_t run,
                                 uint8_t *codes);

/* Copies `bytes` of each of 16 rows, whole pieces of `piece` bytes, from a strip of packed weights
 * in compact form into row order: rows are `pitch` bytes apart. */
void bsmm_small_m_unpack(const uint8_t *strip, int64_t bytes, int64_t piece, uint8_t *to,
                         int64_t pitch);

/* Returns true if elements [k0, k0 + n) of a row, up to the end of K, are all zero. */
bool bsmm_small_m_is_empty(const bsmm_operand *o, int64_t row, int64_t k0, int64_t n);

#endif
