/* The kernel cpu_avx512_int8dot_small_m multiplies few rows of A by weights. The elements of A and
 * of the weights are e2m1 or e2m3. The kernel reads the weights as they are stored, without packing
 * them first.
 *
 * Its results are bitwise identical to those of cpu_avx512_int8dot. small_m_int8dot.h gives the
 * reason and declares the functions that this kernel shares with the AVX2 kernel. */
#include "cpu/small_m/small_m_int8dot.h"
#include "cpu/small_m/small_m_kernel.h"
#include "cpu/small_m/small_m_tiny.h"

/* These limits are the largest numbers of rows of A for which this kernel is used. With more rows,
 * the kernel that packs B first is faster. The limits were measured on a Zen 4
 * (docs/notes/cpu-avx512.md). `stored` is for weights as the caller stores them, and `compact` is
 * for packed weights of the compact form. `most_rows_of_fours` is for 4-bit weights, and
 * `most_rows_of_sixes` is for 6-bit weights. With 17 and 18 rows of A (gap_first to gap_last), this
 * kernel would decode row-major 6-bit weights twice, so the kernel that packs B takes these rows
 * too. `most_rows_of_two_ports` is for Intel's processors, which execute all 512-bit instructions
 * on the same two ports. Only up to 16 rows were measured there. */
static const bsmm_small_m_limit most_rows_of_fours = {.stored = 64, .compact = 144},
                                most_rows_of_sixes = {.stored = 32,
                                                      .compact = 144,
                                                      .gap_first = 17,
                                                      .gap_last = 18},
                                most_rows_of_two_ports = {.stored = 16, .compact = 16};

static const bsmm_small_m_limit *most_rows(const bsmm_product *p) {
    if (bsmm_cpu_features() & BSMM_CPU_TWO_PORTS) return &most_rows_of_two_ports;
    return bsmm_small_m_int8_has_fours(p) ? &most_rows_of_fours : &most_rows_of_sixes;
}

#if defined(__x86_64__)

#    include "cpu/small_m/small_m_avx512.h"

#    include <string.h>

#    define TARGET                                                                                 \
        __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512vbmi")))
#    define INLINE static inline __attribute__((always_inline)) TARGET

enum { LANES = BSMM_SMALL_M_LANES, GROUPS = BSMM_SMALL_M_STEP / 4 };

/* Decodes 4-bit codes by table lookups. The table of 16 entries is repeated in the register, so the
 * bits above a code in its index byte do not matter. */
INLINE void decode_fours(const __m512i word[4], __m512i table, __m512i byte[GROUPS]) {
#    pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        byte[2 * i] = _mm512_permutexvar_epi8(word[i], table);
        byte[2 * i + 1] = _mm512_permutexvar_epi8(_mm512_srli_epi16(word[i], 4), table);
    }
}

INLINE void decode_sixes(const uint8_t *b, int64_t pitch, __m512i table, __m512i byte[GROUPS]) {
    const __m512i sixes = _mm512_set1_epi64(0x322c2620120c0600);
    __m512i word[GROUPS];
    bsmm_load_sixes(b, pitch, 0, word);
    bsmm_load_sixes(b + 8, pitch, 4, word + GROUPS / 2);
#    pragma GCC unroll 8
    for (int i = 0; i < GROUPS; i++)
        byte[i] = _mm512_permutexvar_epi8(_mm512_multishift_epi64_epi8(sixes, word[i]), table);
}

/* Decodes 32 elements of K of 16 rows of B to bytes. B is in compact order, in which these rows are
 * stored together in pieces of 3 bytes per row. The last load reads 16 bytes past its piece. That
 * is safe, because 64 more bytes follow each matrix in packed weights. */
INLINE void decode_strip_sixes(const uint8_t *b, __m512i table, __m512i byte[GROUPS]) {
    const __m512i sixes = _mm512_set1_epi64(0x322c2620120c0600);
#    pragma GCC unroll 8
    for (int i = 0; i < GROUPS; i++) {
        __m512i word = bsmm_load_threes(b + 48 * i);
        byte[i] = _mm512_permutexvar_epi8(_mm512_multishift_epi64_epi8(sixes, word), table);
    }
}

/* Converts e4m3 scales to fp32, multiplied by 2^-8. If the exponent and mantissa bits of an e4m3
 * code are moved to f16's positions, the f16 has 2^-8 times the code's value, also for
 * subnormals. */
INLINE __m512i scales_of_e4m3(__m128i codes) {
    __m256i half = _mm256_slli_epi16(_mm256_cvtepi8_epi16(codes), 7);
    half = _mm256_and_si256(half, _mm256_set1_epi16((short)0xbfff));
    return _mm512_castps_si512(_mm512_cvtph_ps(half));
}

INLINE __m512i load_scales(const uint8_t *codes, bool e4m3) {
    __m128i v = _mm_load_si128((const __m128i *)(const void *)codes);
    if (e4m3) return scales_of_e4m3(v);
    return _mm512_slli_epi32(_mm512_cvtepu8_epi32(v), 23);
}

INLINE __m512 scale_product(int32_t a, __m512i b, bool by_exponent) {
    __m512i bits = _mm512_set1_epi32(a);
    if (by_exponent) return _mm512_castsi512_ps(_mm512_add_epi32(bits, b));
    return _mm512_mul_ps(_mm512_castsi512_ps(bits), _mm512_castsi512_ps(b));
}

INLINE void add_unit(const uint8_t *a, const __m512i *byte, __m512i scales, int width, int unit,
                     bool by_exponent, __m512 *acc) {
    const int32_t *groups = (const int32_t *)(const void *)a;
    const int32_t *begin = groups + unit / 4 * width, *a_scales = begin + width;
#    pragma GCC unroll 16
    for (int r = 0; r < width; r++) {
        __m512i sum = _mm512_set1_epi32(begin[r]), odd = _mm512_setzero_si512();
#    pragma GCC unroll 4
        for (int g = 0; g < unit / 4; g += 2) {
            sum = _mm512_dpbusd_epi32(sum, byte[g], _mm512_set1_epi32(groups[g * width + r]));
            odd = _mm512_dpbusd_epi32(odd, byte[g + 1],
                                      _mm512_set1_epi32(groups[(g + 1) * width + r]));
        }
        sum = _mm512_add_epi32(sum, odd);
        acc[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum),
                                 scale_product(a_scales[r], scales, by_exponent), acc[r]);
    }
}

INLINE void add_step(const uint8_t *a, const uint8_t *codes, const __m512i byte[GROUPS], int width,
                     bool by_exponent, bool e4m3, __m512 *acc) {
    if (by_exponent) {
        add_unit(a, byte, load_scales(codes, false), width, 32, true, acc);
        return;
    }
    add_unit(a, byte, load_scales(codes, e4m3), width, 16, false, acc);
    a += BSMM_INT8_UNIT_BYTES(width, 16, BSMM_INT8_A);
    add_unit(a, byte + GROUPS / 2, load_scales(codes + LANES, e4m3), width, 16, false, acc);
}

/* Decodes one step (32 elements of K) of 16 rows of B to bytes. The main loop decodes four steps at
 * a time. If the number of steps is no multiple of four, this function decodes each of the
 * remaining steps. */
INLINE void decode_step(const uint8_t *b, const bsmm_small_m_span *s, __m512i table, bool fours,
                        __m512i byte[GROUPS]) {
    if (!fours && s->compact) {
        decode_strip_sixes(b, table, byte);
    } else if (!fours) {
        decode_sixes(b, s->pitch, table, byte);
    } else {
        __m512i word[4];
        if (s->compact) {
            bsmm_load_strip(b, 4, word);
        } else {
            __m512i row[4];
            bsmm_load_rows(b, s->pitch, row);
            bsmm_transpose(row, word);
        }
        decode_fours(word, table, byte);
    }
}

INLINE void multiply(const bsmm_small_m_span *s, int width, bool fours, bool by_exponent,
                     bool e4m3) {
    const int64_t step_bytes = fours ? 16 : 24;
    /* `stride` is the distance in bytes from one step (32 elements of K) of a row of B to its next
     * step. In row order, the steps of a row are adjacent. In compact order, a step of all 16 rows
     * of the panel comes before the next step. */
    const int64_t stride = s->compact ? LANES * step_bytes : step_bytes;
    const int64_t a_bytes = by_exponent ? BSMM_INT8_UNIT_BYTES(width, 32, BSMM_INT8_A)
                                        : 2 * BSMM_INT8_UNIT_BYTES(width, 16, BSMM_INT8_A);
    const int64_t code_bytes = by_exponent ? LANES : 2 * LANES;
    const __m512i table = _mm512_load_si512(s->context);
    __m512 acc[BSMM_SMALL_M_WIDTH];
#    pragma GCC unroll 16
    for (int r = 0; r < width; r++)
        acc[r] = _mm512_loadu_ps(s->acc + r * BSMM_SMALL_M_COLUMNS);
    int64_t i = 0;
    for (; i + BSMM_SMALL_M_GROUP <= s->steps; i += BSMM_SMALL_M_GROUP) {
        const uint8_t *b = s->b + i * stride;
        const uint8_t *ahead = bsmm_small_m_ahead(s, i * stride, s->steps * stride);
        __m512i word[16];
        if (fours && s->compact)
            bsmm_load_strip(b, 16, word);
        else if (fours)
            bsmm_transpose_lines(b, s->pitch, word);
        for (int64_t j = 0; j < BSMM_SMALL_M_GROUP; j++) {
            if (s->compact)
                bsmm_prefetch_strip(ahead, j, stride);
            else
                bsmm_prefetch_rows(ahead, s->pitch, j, BSMM_SMALL_M_GROUP * step_bytes);
            __m512i byte[GROUPS];
            if (fours)
                decode_fours(word + 4 * j, table, byte);
            else if (s->compact)
                decode_strip_sixes(b + j * stride, table, byte);
            else
                decode_sixes(b + j * step_bytes, s->pitch, table, byte);
            add_step(s->a + (i + j) * a_bytes, s->codes + (i + j) * code_bytes, byte, width,
                     by_exponent, e4m3, acc);
        }
    }
    for (; i < s->steps; i++) {
        __m512i byte[GROUPS];
        if (s->compact)
            bsmm_prefetch_strip(bsmm_small_m_ahead(s, i * stride, s->steps * stride), 0, stride);
        decode_step(s->b + i * stride, s, table, fours, byte);
        add_step(s->a + i * a_bytes, s->codes + i * code_bytes, byte, width, by_exponent, e4m3,
                 acc);
    }
#    pragma GCC unroll 16
    for (int r = 0; r < width; r++)
        _mm512_storeu_ps(s->acc + r * BSMM_SMALL_M_COLUMNS, acc[r]);
}

static const int64_t widths[] = {BSMM_SMALL_M_EACH_TILE(BSMM_SMALL_M_TILE_ROWS, 0)};

#    define VARIANT(width, name, e2m1, exponent, e4m3)                                             \
        TARGET static uint32_t multiply_##name##_##width(const bsmm_small_m_span *s) {             \
            multiply(s, width, e2m1, exponent, e4m3);                                              \
            return 0;                                                                              \
        }
#    define VARIANTS(name, e2m1, exponent, e4m3)                                                   \
        BSMM_SMALL_M_EACH_TILE(VARIANT, name, e2m1, exponent, e4m3)
#    define MULTIPLY(width, name) multiply_##name##_##width,
#    define ROW(name)                                                                              \
        { BSMM_SMALL_M_EACH_TILE(MULTIPLY, name) }

VARIANTS(e2m1_exponent, true, true, false)
VARIANTS(e2m1_e8m0, true, false, false)
VARIANTS(e2m1_e4m3, true, false, true)
VARIANTS(e2m3_exponent, false, true, false)
VARIANTS(e2m3_e8m0, false, false, false)
VARIANTS(e2m3_e4m3, false, false, true)

static uint32_t (*const multiplies[2][BSMM_INT8_SCALINGS][BSMM_COUNT(widths)])(
    const bsmm_small_m_span *) = {
    {ROW(e2m3_exponent), ROW(e2m3_e8m0), ROW(e2m3_e4m3)},
    {ROW(e2m1_exponent), ROW(e2m1_e8m0), ROW(e2m1_e4m3)},
};

INLINE void add_packed_unit(const uint8_t *a, const uint8_t *b, int64_t width, int64_t unit,
                            bool by_exponent, float *acc) {
    const int32_t *groups = (const int32_t *)(const void *)a;
    const int32_t *begin = groups + unit / 4 * width, *a_scales = begin + width;
    __m512i scales = _mm512_loadu_si512(b + LANES * unit);
    for (int64_t r = 0; r < width; r++, acc += BSMM_SMALL_M_COLUMNS) {
        __m512i sum = _mm512_set1_epi32(begin[r]);
        for (int64_t g = 0; g < unit / 4; g++)
            sum = _mm512_dpbusd_epi32(sum, _mm512_loadu_si512(b + g * LANES * 4),
                                      _mm512_set1_epi32(groups[g * width + r]));
        __m512 scale = scale_product(a_scales[r], scales, by_exponent);
        _mm512_storeu_ps(acc,
                         _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), scale, _mm512_loadu_ps(acc)));
    }
}

INLINE void multiply_packed(const uint8_t *a, const uint8_t *b, int64_t width, int64_t units,
                            int64_t unit, float *acc) {
    for (int64_t u = 0; u < units; u++) {
        add_packed_unit(a, b, width, unit, unit == BSMM_INT8_EXPONENT_UNIT, acc);
        a += BSMM_INT8_UNIT_BYTES(width, unit, BSMM_INT8_A);
        b += BSMM_INT8_UNIT_BYTES(LANES, unit, BSMM_INT8_B);
    }
}

TARGET static void multiply_packed_exponent(const uint8_t *a, const uint8_t *b, int64_t width,
                                            int64_t units, float *acc) {
    multiply_packed(a, b, width, units, BSMM_INT8_EXPONENT_UNIT, acc);
}

TARGET static void multiply_packed_value(const uint8_t *a, const uint8_t *b, int64_t width,
                                         int64_t units, float *acc) {
    multiply_packed(a, b, width, units, BSMM_INT8_MULTIPLY_UNIT, acc);
}

TARGET static uint64_t find_unusual(const uint8_t *codes, bool e4m3) {
    __m512i v = _mm512_loadu_si512(codes);
    if (e4m3)
        return _mm512_cmpeq_epi8_mask(_mm512_and_si512(v, _mm512_set1_epi8(0x7f)),
                                      _mm512_set1_epi8(0x7f));
    return _mm512_cmpgt_epu8_mask(_mm512_sub_epi8(v, _mm512_set1_epi8(127 - 50)),
                                  _mm512_set1_epi8(100));
}

static bool prepare(const bsmm_small_m_scales *s) {
    return bsmm_small_m_int8_prepare(s, find_unusual);
}

/* Copies the table of the unsigned integers for B's codes. The table of a 4-bit format contains its
 * 16 entries four times. */
static void make_table(const bsmm_product *p, void *context) {
    memcpy(context, bsmm_pack_table_of(p->b.m.format.elem)->b, sizeof(__m512i));
}

/* Returns the number of rows of A for which the multiplication takes as long as decoding B. */
static int64_t decoding_rows(const bsmm_product *p) {
    bool is_slow = !bsmm_small_m_int8_has_fours(p) && p->b.m.order != BSMM_ORDER_COMPACT;
    return is_slow ? 6 : 3;
}

static bsmm_small_m_engine engine_of(const bsmm_product *p) {
    int tile = bsmm_small_m_choose_width(p, widths, BSMM_COUNT(widths), decoding_rows(p));
    bsmm_small_m_engine d = bsmm_small_m_int8_engine_of(p, widths[tile]);
    d.group = d.read_group = 1;
    d.reads_compact = true;
    d.make_context = make_table;
    d.prepare = prepare;
    d.multiply = multiplies[bsmm_small_m_int8_has_fours(p)][bsmm_int8_scaling_of(p)][tile];
    d.multiply_packed = bsmm_int8_by_exponent(p) ? multiply_packed_exponent : multiply_packed_value;
    if (bsmm_small_m_is_tiny(p) && bsmm_small_m_tiny_int8dot_takes(p))
        d.multiply_tiny = bsmm_small_m_tiny_int8dot;
    return d;
}

#endif

static bool is_supported(void) {
    uint32_t needed = BSMM_CPU_AVX512_VNNI | BSMM_CPU_AVX512_VBMI;
    return (bsmm_cpu_features() & needed) == needed;
}

static const char *refuse(const bsmm_product *p, void *state, char *why, size_t size) {
    if (!is_supported()) return "the processor has no AVX-512 VNNI and VBMI";
    const char *reason = bsmm_small_m_int8_refuse(p, why, size);
    return reason ? reason : take_small_m(p, most_rows(p), state, why, size);
}

const bsmm_kernel bsmm_kernel_cpu_avx512_int8dot_small_m = {
    BSMM_SMALL_M_KERNEL,
    .name = "cpu_avx512_int8dot_small_m",
    .refuse = refuse,
    .bound = bsmm_int8_bound,
};
