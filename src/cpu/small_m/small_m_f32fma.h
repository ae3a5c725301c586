/* This header declares the functions of the kernel cpu_avx2_f32_small_m, which reads weights as
 * they are stored. The functions decode rows of weights, check whether their scales are supported,
 * and multiply the rows. Elements are decoded in two steps. First, shifts or one table lookup turn
 * a code into an f16 number (a half), which is exactly 2^-raw times the element. Then the
 * instruction vcvtph2ps converts halves to fp32. It also handles subnormals, and it can read its
 * operand from memory. The 8 lanes of a vector are 8 rows of B. */
#ifndef BSMM_CPU_SMALL_M_F32FMA_H
#define BSMM_CPU_SMALL_M_F32FMA_H

#include "cpu/small_m/small_m.h"

/* Tells how an element format is decoded to halves, i.e. to f16 values that are the element times a
 * power of two. */
typedef struct bsmm_small_m_f32fma_halves {
    int raw; /* A half is its element times 2^-raw. */
    int top; /* `top` is the exponent of the largest decoded element (half). */
    /* `extent` is the difference between the exponents of the largest and the smallest nonzero
     * value of the element format. */
    int extent;
    /* For formats of 6 and 8 bits, the decoder puts a code into the top bits of a 16-bit lane and
     * shifts it right by `shift` bits, so that the code's exponent and mantissa reach their places
     * in f16. */
    int shift;
    int mask; /* For formats of 6 and 8 bits, `mask` has the bits that are kept after the shift. */
} bsmm_small_m_f32fma_halves;

/* Returns how elements of a format are decoded, or NULL if the kernel does not support the
 * format. */
const bsmm_small_m_f32fma_halves *bsmm_small_m_f32fma_halves_of(uint32_t elem);

/* Weights in f32 and bf16 are multiplied as they are only if each element is 0 or has a magnitude
 * from 2^SMALLEST to below 2^LARGEST (small_m_f32fma_plain_avx2.c). */
enum { BSMM_SMALL_M_F32FMA_SMALLEST = -48, BSMM_SMALL_M_F32FMA_LARGEST = 16 };

/* Tells how the multiply loops apply the scales of B. */
typedef enum bsmm_small_m_f32fma_scaling {
    /* B has e8m0 scales. The accumulators are multiplied by a power of two where the scale changes
     * along K. */
    BSMM_SMALL_M_F32FMA_SUMS,
    BSMM_SMALL_M_F32FMA_ELEMENTS, /* Scales of B multiply the elements of B. */
    /* B has no scales, or fp32 scales that multiply the sums of 128 elements of K. */
    BSMM_SMALL_M_F32FMA_NONE,
    BSMM_SMALL_M_F32FMA_SCALINGS
} bsmm_small_m_f32fma_scaling;

bsmm_small_m_f32fma_scaling bsmm_small_m_f32fma_scaling_of(const bsmm_product *p);

/* Implements the member `prepare` of bsmm_small_m_engine, which checks and converts the gathered
 * scales of a panel (16 rows of B). */
bool bsmm_small_m_f32fma_prepare(const bsmm_small_m_scales *s);

#if defined(__x86_64__)

/* BSMM_SMALL_M_F32FMA_GROUP is the number of rows of B in a vector. */
enum { BSMM_SMALL_M_F32FMA_GROUP = 8 };

/* B is decoded in batches. A batch is a range of K that consists of four runs of `run` elements.
 * BSMM_SMALL_M_F32FMA_BATCH is the number of elements of K in a batch.
 * BSMM_SMALL_M_F32FMA_GROUP_BYTES is the size in bytes of the f16 values of a batch of 8 rows of B.
 */
#    define BSMM_SMALL_M_F32FMA_BATCH(run) (4 * (run))
#    define BSMM_SMALL_M_F32FMA_GROUP_BYTES(run)                                                   \
        (BSMM_SMALL_M_F32FMA_BATCH(run) * BSMM_SMALL_M_F32FMA_GROUP * 2)

/* Codes are decoded in vectors of 32 bytes. For each byte of a vector, this struct holds the
 * largest 8-bit code that was decoded there: `most` compares codes as unsigned bytes, and
 * `most_signed` compares them as signed bytes. */
typedef struct bsmm_small_m_f32fma_seen {
    _Alignas(32) uint8_t most[32];
    uint8_t most_signed[32];
} bsmm_small_m_f32fma_seen;

/* Returns true if one of the decoded codes was 0x7f or 0xff. Both codes are NaN in e4m3 and in
 * e5m2. The decoded value of e5m2's NaN is NaN, but that of e4m3's NaN is finite. */
bool bsmm_small_m_f32fma_has_nan(const bsmm_small_m_f32fma_seen *codes);

/* Decodes a batch of 8 rows of B to f16 values. A batch is four runs of consecutive elements of K;
 * a run has 32 elements for 4-bit codes and 16 for other codes. The output consists of units of 32
 * bytes. The lower 16 bytes of a unit are the 8 rows' values for an element of one run, and the
 * upper 16 bytes are those for the element with the same index in the next run. The first two runs
 * come first, then the other two runs. */
typedef void bsmm_small_m_f32fma_spread(const uint8_t *b, int64_t pitch,
                                        const bsmm_small_m_f32fma_halves *h, uint8_t *to,
                                        bsmm_small_m_later *next, bsmm_small_m_f32fma_seen *codes);

bsmm_small_m_f32fma_spread *bsmm_small_m_f32fma_spread_of(uint32_t bits);

/* These functions implement the members `make_context` and `multiply` of bsmm_small_m_engine. */
void bsmm_small_m_f32fma_make(const bsmm_product *p, void *context);
uint32_t bsmm_small_m_f32fma_multiply(const bsmm_small_m_span *s);

/* These functions implement the same members for weights in f32, bf16 and f16, which have no
 * scales. */
void bsmm_small_m_f32fma_plain_make(const bsmm_product *p, void *context);
uint32_t bsmm_small_m_f32fma_plain(const bsmm_small_m_span *s);

/* These functions return the number of rows in the tiles of A, and the number of panels of B that
 * are multiplied side by side, for weights in f32, bf16 and f16 without scales. */
int64_t bsmm_small_m_f32fma_plain_width(const bsmm_product *p);
int64_t bsmm_small_m_f32fma_plain_panels(const bsmm_product *p);

/* These functions return the number of rows in the tiles of A, and the number of panels of B that
 * are multiplied side by side with a tile of `width` rows, for all other weights. */
int64_t bsmm_small_m_f32fma_width(const bsmm_product *p);
int64_t bsmm_small_m_f32fma_panels(int64_t width);

/* These functions implement the member `multiply_packed` of bsmm_small_m_engine. They multiply
 * panels (16 rows of B each) that the kernel could not read as they are stored and has packed,
 * because elements are NaN, or because scales are NaN, negative or too far apart. The function at
 * index 1 is for fp32 scales that multiply the sum of each 128 elements of K. The function at index
 * 0 is for all other operands. */
extern void (*const bsmm_small_m_f32fma_packed[2])(const uint8_t *a, const uint8_t *b,
                                                   int64_t width, int64_t units, float *acc);

#endif

#endif
