/* The body that the small-M kernels share: few rows of A against B as it is stored, bound by the
 * bytes of B.
 *
 * A's rows are packed as the packed engines pack them, in tiles of `width` rows. B is taken in
 * panels of 16 rows, which are the lanes of a register: 16 columns of D. A panel's scale codes are
 * gathered first, [scale unit][16]; then its bytes are read once, in steps of 32 along K, and
 * decoded in registers. A panel whose scales are out of the ordinary (a wide row, NaN) is packed
 * into scratch by the packed engines' own packer and multiplied from there.
 *
 * A result has the bits that the packed engine gives: its sums run in the same order with the same
 * roundings. */
#ifndef BSMM_CPU_SMALL_M_H
#define BSMM_CPU_SMALL_M_H

#include "cpu/engine/engine_gemm.h"

enum {
    BSMM_SMALL_M_LANES = 16,
    BSMM_SMALL_M_STEP = 32,     /* K of a step */
    BSMM_SMALL_M_GROUP = 4,     /* spans are so many steps, or a multiple */
    BSMM_SMALL_M_COLUMNS = 128, /* what a thread takes at once; from row to row of sums */
    BSMM_SMALL_M_WIDTH = 16,    /* most rows of a tile of A */
    BSMM_SMALL_M_PANELS = 4,    /* most panels side by side */
    BSMM_SMALL_M_CONTEXT_BYTES = 320,
};

/* A run of steps of a few panels side by side times one tile. */
typedef struct bsmm_small_m_span {
    const uint8_t *a;     /* the tile's packed units */
    const uint8_t *b;     /* the first row's bytes; the panels' rows follow each other */
    int64_t pitch;        /* bytes from row to row of b */
    const uint8_t *next;  /* what is read after b: asked for ahead of time */
    int64_t lead;         /* by so many bytes along a row */
    const uint8_t *codes; /* scale codes, as the engine's prepare left them */
    const float *scales;  /* fp32 scales, [segment of 128][16]; NULL: none */
    int64_t scale_pitch;  /* codes or scales from panel to panel */
    int64_t steps;
    const void *context; /* what the engine made for the product */
    float *acc;          /* [width][BSMM_SMALL_M_COLUMNS], 16 for each panel: added to */
} bsmm_small_m_span;

/* What memory is asked for while a span is worked on, line by line: `bytes` of each row, so that
 * the processor's own prefetching, which follows few rows, brings most of it. */
typedef struct bsmm_small_m_later {
    const uint8_t *row;
    int64_t pitch, bytes, at;
} bsmm_small_m_later;

/* Of rows of `end` bytes, at whose byte `at` the next `bytes` begin: what follows these, and where
 * they reach the end what follows in the rows that come next. */
static inline bsmm_small_m_later bsmm_small_m_follow(const bsmm_small_m_span *s, int64_t at,
                                                     int64_t bytes, int64_t end) {
    const uint8_t *row = at + bytes < end ? s->b + at + bytes : s->next;
    return (bsmm_small_m_later){.row = row, .pitch = s->pitch, .bytes = bytes < end ? bytes : end};
}

/* Asks for so many lines of a row, or to its end. */
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

/* One panel's scales, gathered. */
typedef struct bsmm_small_m_scales {
    const bsmm_product *p;
    int64_t row, rows; /* of B; lanes beyond repeat the last row */
    int64_t units;     /* scale units, whole groups of steps */
    int64_t used;      /* of them, those that K fills */
    uint8_t *codes;    /* [units][16] */
    float *scales;     /* [units][16], of a B with fp32 scales */
    double *factors;   /* of the 16 rows; B's global scale to begin with */
    uint8_t *wide;     /* the same; 0 to begin with */
    int a_wide;        /* the widest row of A */
} bsmm_small_m_scales;

typedef struct bsmm_small_m_engine {
    int64_t width;         /* rows of a tile of A */
    int64_t panels;        /* taken side by side: independent sums, where a sum is slow */
    int64_t unit;          /* K of a packed unit */
    uint64_t a_unit_bytes; /* of width rows */
    uint64_t b_unit_bytes; /* of 16 rows, for panels that are packed after all */
    int64_t scale_unit;    /* K of a gathered scale */
    int wide_limit;        /* see bsmm_engine */
    /* Makes tables and the like, BSMM_SMALL_M_CONTEXT_BYTES; NULL: multiply needs none. */
    void (*make_context)(const bsmm_product *p, void *context);
    void (*pack_a)(const bsmm_product *p, int64_t width, int64_t row, int64_t rows, bsmm_panel *to);
    void (*pack_b)(const bsmm_product *p, int64_t row, int64_t rows, bsmm_panel *to);
    /* Checks a panel's scales and brings them into the form that multiply reads; false if the panel
     * has to be packed. */
    bool (*prepare)(const bsmm_small_m_scales *s);
    /* Bit p of the result: panel p has elements that have to be packed, and its sums are void. */
    uint32_t (*multiply)(const bsmm_small_m_span *span);
    /* acc [width][BSMM_SMALL_M_COLUMNS] += the product of packed units. */
    void (*multiply_packed)(const uint8_t *a, const uint8_t *b, int64_t width, int64_t units,
                            float *acc);
} bsmm_small_m_engine;

/* NULL if the shape and the orders are ones for few rows, else the reason. */
const char *bsmm_small_m_refuse(const bsmm_product *p, int64_t most_rows, char *why, size_t size);

/* K of a scale, of which blocks are multiples; fp32 scales are those of a segment. */
int64_t bsmm_small_m_scale_unit(uint32_t scale, int64_t segment);

/* NULL if weights of this format may stay as stored: elements that the engine takes, e4m3 scales
 * over e2m1 alone, blocks of whole scale units. Else the reason. */
const char *bsmm_small_m_refuse_weights(const bsmm_format *f, bool (*takes)(uint32_t elem),
                                        int64_t segment, char *why, size_t size);

/* The tile for a product: the narrowest of `widths` (ascending, `count` of them, the last 16) that
 * holds all rows of A, else the last; an index. */
int bsmm_small_m_choose_width(const bsmm_product *p, const int64_t *widths, int count);

/* How an engine takes a product: the state of the kernels that have one. */
typedef struct bsmm_small_m {
    _Alignas(64) uint8_t context[BSMM_SMALL_M_CONTEXT_BYTES]; /* what make_context made */
    bsmm_small_m_engine d;
    int64_t tiles; /* of A */
    int64_t steps, units, scale_units;
    int64_t step_bytes, row_bytes, pitch;
    uint64_t tile_bytes, packed_bytes, thread_bytes, workspace_bytes;
    int threads;
} bsmm_small_m;

void bsmm_small_m_make(const bsmm_small_m_engine *engine, const bsmm_product *p,
                       bsmm_small_m *made);
bsmm_status bsmm_small_m_run(const bsmm_small_m *made, const bsmm_product *p, void *workspace);

/* Gathers the codes of leading units, as many as come in whole runs of `run` (16 or 4 codes that
 * lie side by side); returns how many. row: where each lane's row has column offset 0. For kernels
 * that need AVX2 themselves (small_m_gather_avx512.c). */
int64_t bsmm_small_m_gather_runs(const uint8_t *const row[BSMM_SMALL_M_LANES],
                                 const uint64_t *columns, int64_t units, int64_t run,
                                 uint8_t *codes);

/* The same by 128-bit vectors (small_m_gather_avx2.c). */
int64_t bsmm_small_m_gather_avx2(const uint8_t *const row[BSMM_SMALL_M_LANES],
                                 const uint64_t *columns, int64_t units, int64_t run,
                                 uint8_t *codes);

/* Whether elements [k0, k0 + n) of a row, cut at K, are all zero. */
bool bsmm_small_m_is_empty(const bsmm_operand *o, int64_t row, int64_t k0, int64_t n);

#endif
