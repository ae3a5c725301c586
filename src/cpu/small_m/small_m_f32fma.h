/* The parts of cpu_avx2_f32_small_m: how a panel's rows become halves, how these are multiplied,
 * and what is asked of scales.
 *
 * Elements are spread as f16, exactly and at `1 << raw` of their values, for which shifts and one
 * table do: vcvtph2ps takes subnormals, and from memory costs one operation. 8 rows are the lanes
 * of a register. */
#ifndef BSMM_CPU_SMALL_M_F32FMA_H
#define BSMM_CPU_SMALL_M_F32FMA_H

#include "cpu/small_m/small_m.h"

/* How elements become halves. */
typedef struct bsmm_small_m_f32_halves {
    int raw;    /* halves are 2^-raw of elements */
    int top;    /* exponent of the largest half */
    int extent; /* binades from the smallest element to the largest */
    int shift;  /* of 6 and 8 bits: a code in the upper bits goes down by so many, */
    int mask;   /* and of what that leaves these bits stay */
} bsmm_small_m_f32_halves;

/* NULL for elements that it does not take. */
const bsmm_small_m_f32_halves *bsmm_small_m_f32_halves_of(uint32_t elem);

/* How scales come in. */
typedef enum bsmm_small_m_f32_scaling {
    BSMM_SMALL_M_F32_SUMS,     /* powers of two move the sum from scale to scale */
    BSMM_SMALL_M_F32_ELEMENTS, /* elements are multiplied */
    BSMM_SMALL_M_F32_NONE,     /* or not at all: unscaled, or fp32 scales of segments */
    BSMM_SMALL_M_F32_SCALINGS
} bsmm_small_m_f32_scaling;

bsmm_small_m_f32_scaling bsmm_small_m_f32_scaling_of(const bsmm_product *p);

/* bsmm_small_m_engine's prepare. */
bool bsmm_small_m_f32_prepare(const bsmm_small_m_scales *s);

#if defined(__x86_64__)

/* ---- rows into halves ---- */

enum { BSMM_SMALL_M_F32_GROUP = 8 }; /* rows in a register */

/* K of a batch, four runs (see below), and the halves of a group. */
#    define BSMM_SMALL_M_F32_BATCH(run) (4 * (run))
#    define BSMM_SMALL_M_F32_GROUP_BYTES(run)                                                      \
        (BSMM_SMALL_M_F32_BATCH(run) * BSMM_SMALL_M_F32_GROUP * 2)

/* The codes of 8 bits that were seen, byte by byte: the largest, and the largest as signed ones. */
typedef struct bsmm_small_m_f32_seen {
    _Alignas(32) uint8_t most[32];
    uint8_t most_signed[32];
} bsmm_small_m_f32_seen;

/* e4m3's NaN, 0x7f of either sign, would become finite; e5m2 has it there too. */
bool bsmm_small_m_f32_has_nan(const bsmm_small_m_f32_seen *codes);

/* A batch of 8 rows: words of them side by side, two runs along K in the lower and upper halves of
 * 32 bytes, and then two more. A run is 32 of 4 bits, 16 of more. */
typedef void bsmm_small_m_f32_spread(const uint8_t *b, int64_t pitch,
                                     const bsmm_small_m_f32_halves *h, uint8_t *to,
                                     bsmm_small_m_later *next, bsmm_small_m_f32_seen *codes);

bsmm_small_m_f32_spread *bsmm_small_m_f32_spread_of(uint32_t bits);

/* ---- products ---- */

/* bsmm_small_m_engine's make_context and multiply. */
void bsmm_small_m_f32_make(const bsmm_product *p, void *context);
uint32_t bsmm_small_m_f32_multiply(const bsmm_small_m_span *s);

/* The rows of a product's tile, and panels side by side for them. */
int64_t bsmm_small_m_f32_width(const bsmm_product *p);
int64_t bsmm_small_m_f32_panels(int64_t width);

/* bsmm_small_m_engine's multiply_packed: [by segment]. */
extern void (*const bsmm_small_m_f32_packed[2])(const uint8_t *a, const uint8_t *b, int64_t width,
                                                int64_t units, float *acc);

#endif

#endif
