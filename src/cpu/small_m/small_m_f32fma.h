/* This file declares the parts of cpu_avx2_f32_small_m: how a panel's rows are decoded to f16, how
 * they are multiplied, and which scales they support.
 *
 * Elements are decoded to f16, called halves here, exactly and at 2^-raw of their values. Shifts
 * and one table suffice for that. vcvtph2ps then converts them to fp32: it handles subnormals, and
 * with a memory operand it costs one operation. The lanes of a register are 8 rows. */
#ifndef BSMM_CPU_SMALL_M_F32FMA_H
#define BSMM_CPU_SMALL_M_F32FMA_H

#include "cpu/small_m/small_m.h"

/* Describes how an element format is decoded to "halves", which are f16 values that may differ from
 * the elements by a power of two. */
typedef struct bsmm_small_m_f32_halves {
    int raw;    /* a half is its element times 2^-raw */
    int top;    /* exponent of the largest half (f16 value) */
    int extent; /* binades from the smallest element to the largest */
    int shift;  /* 6 and 8 bits: right shift for a code at the top of a uint16 */
    int mask;   /* 6 and 8 bits: the bits of the uint16 to keep after the shift */
} bsmm_small_m_f32_halves;

/* Returns NULL for elements that the kernel does not take. */
const bsmm_small_m_f32_halves *bsmm_small_m_f32_halves_of(uint32_t elem);

/* The way in which the scales of B are applied. */
typedef enum bsmm_small_m_f32_scaling {
    /* Scales that are powers of two multiply the accumulators when the scale changes. */
    BSMM_SMALL_M_F32_SUMS,
    BSMM_SMALL_M_F32_ELEMENTS, /* scales multiply the elements */
    BSMM_SMALL_M_F32_NONE,     /* no scales, or fp32 scales of segments */
    BSMM_SMALL_M_F32_SCALINGS
} bsmm_small_m_f32_scaling;

bsmm_small_m_f32_scaling bsmm_small_m_f32_scaling_of(const bsmm_product *p);

/* Implements `prepare` of bsmm_small_m_engine. */
bool bsmm_small_m_f32_prepare(const bsmm_small_m_scales *s);

#if defined(__x86_64__)

/* ---- decoding rows to f16 values ---- */

enum { BSMM_SMALL_M_F32_GROUP = 8 }; /* number of rows of B in a register */

/* These macros count the columns of K of a batch, which is four runs (see below), and the bytes of
 * a group's halves. */
#    define BSMM_SMALL_M_F32_BATCH(run) (4 * (run))
#    define BSMM_SMALL_M_F32_GROUP_BYTES(run)                                                      \
        (BSMM_SMALL_M_F32_BATCH(run) * BSMM_SMALL_M_F32_GROUP * 2)

/* Holds the largest 8-bit codes so far, at each byte position, compared as unsigned and as signed
 * bytes. */
typedef struct bsmm_small_m_f32_seen {
    _Alignas(32) uint8_t most[32];
    uint8_t most_signed[32];
} bsmm_small_m_f32_seen;

/* Returns true if a code was 0x7f or 0xff, which is e4m3's NaN; decoding would make it finite.
 * These codes are NaN in e5m2, too. */
bool bsmm_small_m_f32_has_nan(const bsmm_small_m_f32_seen *codes);

/* Decodes a batch of 8 rows. The halves of the 8 rows at one k are side by side. The lower and
 * upper 16 bytes of each 32 bytes belong to two runs along K; two more runs follow. A run is 32 of
 * K for 4-bit codes, else 16. */
typedef void bsmm_small_m_f32_spread(const uint8_t *b, int64_t pitch,
                                     const bsmm_small_m_f32_halves *h, uint8_t *to,
                                     bsmm_small_m_later *next, bsmm_small_m_f32_seen *codes);

bsmm_small_m_f32_spread *bsmm_small_m_f32_spread_of(uint32_t bits);

/* ---- multiplying ---- */

/* These functions implement `make_context` and `multiply` of bsmm_small_m_engine. */
void bsmm_small_m_f32_make(const bsmm_product *p, void *context);
uint32_t bsmm_small_m_f32_multiply(const bsmm_small_m_span *s);

/* These functions return the rows of a GEMM's tile of A, and the number of panels to multiply side
 * by side with such a tile. */
int64_t bsmm_small_m_f32_width(const bsmm_product *p);
int64_t bsmm_small_m_f32_panels(int64_t width);

/* These implement `multiply_packed` of bsmm_small_m_engine. The index tells whether K is cut into
 * segments. */
extern void (*const bsmm_small_m_f32_packed[2])(const uint8_t *a, const uint8_t *b, int64_t width,
                                                int64_t units, float *acc);

#endif

#endif
