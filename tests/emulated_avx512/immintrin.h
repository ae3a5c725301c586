/* Emulates AVX-512 on processors with AVX2. The compiler includes this header, in place of its own
 * immintrin.h, before all sources. Intrinsics that the library SIMDe computes with correct rounding
 * are taken from SIMDe. All others are loops over lanes. Names and meanings follow Intel's
 * intrinsics guide. */
#ifndef BSMM_EMULATED_AVX512_H
#define BSMM_EMULATED_AVX512_H

#include_next <immintrin.h>

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>

#include <fenv.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* This macro removes target attributes, so that all functions are compiled for this machine's
 * processor. */
#define target(...)
/* src/base/cpu.c asks for features of the processor by this builtin. The macro reports each feature
 * as present. */
#define __builtin_cpu_supports(feature) 1

typedef union emu_512 {
    __m512i i;
    __m512 f;
    __m512d d;
    __m256i half_i[2];
    __m256 half_f[2];
    __m256d half_d[2];
    uint8_t u8[64];
    uint16_t u16[32];
    int16_t i16[32];
    uint32_t u32[16];
    int32_t i32[16];
    uint64_t u64[8];
    float f32[16];
    double f64[8];
} emu_512;

typedef union emu_256 {
    __m256i i;
    uint8_t u8[32];
    uint16_t u16[16];
    uint32_t u32[8];
} emu_256;

#define EMU         static inline __attribute__((always_inline, unused))
#define EMU_F(x)    ((emu_512){.f = (x)})
#define EMU_EACH(n) for (int lane = 0; lane < (n); lane++)

/* Emulates masked loads. The loop must not read the lanes outside the mask, because their memory
 * may be unmapped. */
#define EMU_LOAD(name, vector, member, mask_type, field, lanes)                                    \
    EMU vector emu_##name(mask_type mask, const void *from) {                                      \
        emu_##member r;                                                                            \
        memset(&r, 0, sizeof r);                                                                   \
        EMU_EACH(lanes)                                                                            \
        if (mask >> lane & 1)                                                                      \
            memcpy(&r.field[lane], (const char *)from + (size_t)lane * sizeof r.field[0],          \
                   sizeof r.field[0]);                                                             \
        return r.EMU_AS_##vector;                                                                  \
    }
#define EMU_STORE(name, vector, member, mask_type, field, lanes)                                   \
    EMU void emu_##name(void *to, mask_type mask, vector values) {                                 \
        emu_##member v = {.EMU_AS_##vector = values};                                              \
        EMU_EACH(lanes)                                                                            \
        if (mask >> lane & 1)                                                                      \
            memcpy((char *)to + (size_t)lane * sizeof v.field[0], &v.field[lane],                  \
                   sizeof v.field[0]);                                                             \
    }
#define EMU_AS___m512i i
#define EMU_AS___m512  f
#define EMU_AS___m512d d
#define EMU_AS___m256i i

EMU_LOAD(maskz_loadu_epi8, __m512i, 512, __mmask64, u8, 64)
EMU_LOAD(maskz_loadu_epi16, __m512i, 512, __mmask32, u16, 32)
EMU_LOAD(maskz_loadu_epi32, __m512i, 512, __mmask16, u32, 16)
EMU_LOAD(maskz_loadu_ps, __m512, 512, __mmask16, f32, 16)
EMU_LOAD(maskz_loadu_pd, __m512d, 512, __mmask8, f64, 8)
EMU_LOAD(maskz_loadu_256_epi16, __m256i, 256, __mmask16, u16, 16)
EMU_STORE(mask_storeu_epi8, __m512i, 512, __mmask64, u8, 64)
EMU_STORE(mask_storeu_ps, __m512, 512, __mmask16, f32, 16)
EMU_STORE(mask_storeu_256_epi16, __m256i, 256, __mmask16, u16, 16)
EMU_STORE(mask_storeu_256_epi32, __m256i, 256, __mmask8, u32, 8)
#define _mm512_maskz_loadu_epi8       emu_maskz_loadu_epi8
#define _mm512_maskz_loadu_epi16      emu_maskz_loadu_epi16
#define _mm512_maskz_loadu_epi32      emu_maskz_loadu_epi32
#define _mm512_maskz_loadu_ps         emu_maskz_loadu_ps
#define _mm512_maskz_loadu_pd         emu_maskz_loadu_pd
#define _mm256_maskz_loadu_epi16      emu_maskz_loadu_256_epi16
#define _mm512_mask_storeu_epi8       emu_mask_storeu_epi8
#define _mm512_mask_storeu_ps         emu_mask_storeu_ps
#define _mm256_mask_storeu_epi16      emu_mask_storeu_256_epi16
#define _mm256_mask_storeu_epi32      emu_mask_storeu_256_epi32
#define _mm512_stream_si512(to, line) _mm512_store_si512(to, line)

#define EMU_MASK(name, mask_type, field, lanes, test)                                              \
    EMU mask_type emu_##name(__m512i a, __m512i b) {                                               \
        emu_512 x = {.i = a}, y = {.i = b};                                                        \
        mask_type r = 0;                                                                           \
        EMU_EACH(lanes) r |= (mask_type)((mask_type)(x.field[lane] test y.field[lane]) << lane);   \
        return r;                                                                                  \
    }
EMU_MASK(cmplt_epu16, __mmask32, u16, 32, <)
EMU_MASK(cmplt_epi16, __mmask32, i16, 32, <)
EMU_MASK(cmpeq_epi16, __mmask32, u16, 32, ==)
EMU_MASK(cmpgt_epu32, __mmask16, u32, 16, >)
EMU_MASK(cmplt_epu32, __mmask16, u32, 16, <)
#define _mm512_cmplt_epu16_mask               emu_cmplt_epu16
#define _mm512_cmplt_epi16_mask               emu_cmplt_epi16
#define _mm512_cmpgt_epu32_mask               emu_cmpgt_epu32
#define _mm512_mask_cmpeq_epi16_mask(k, a, b) ((__mmask32)((k)&emu_cmpeq_epi16(a, b)))
#define _mm512_mask_cmpgt_epu32_mask(k, a, b) ((__mmask16)((k)&emu_cmpgt_epu32(a, b)))
#define _mm512_mask_cmplt_epu32_mask(k, a, b) ((__mmask16)((k)&emu_cmplt_epu32(a, b)))

#define EMU_TESTN(name, mask_type, field, lanes)                                                   \
    EMU mask_type emu_##name(__m512i a, __m512i b) {                                               \
        emu_512 x = {.i = a}, y = {.i = b};                                                        \
        mask_type r = 0;                                                                           \
        EMU_EACH(lanes)                                                                            \
        r |= (mask_type)((mask_type)((x.field[lane] & y.field[lane]) == 0) << lane);               \
        return r;                                                                                  \
    }
EMU_TESTN(testn_epi32, __mmask16, u32, 16)
EMU_TESTN(testn_epi16, __mmask32, u16, 32)
#define _mm512_testn_epi32_mask emu_testn_epi32
#define _mm512_testn_epi16_mask emu_testn_epi16

EMU __mmask32 emu_cmpgt_256_epu8(__m256i a, __m256i b) {
    emu_256 x = {.i = a}, y = {.i = b};
    __mmask32 r = 0;
    EMU_EACH(32) r |= (__mmask32)(x.u8[lane] > y.u8[lane]) << lane;
    return r;
}
#define _mm256_cmpgt_epu8_mask emu_cmpgt_256_epu8

EMU __m512i emu_shuffle_epi32(__m512i a, int order) {
    emu_512 x = {.i = a}, r;
    EMU_EACH(16) r.u32[lane] = x.u32[lane / 4 * 4 + (order >> lane % 4 * 2 & 3)];
    return r.i;
}
#define _mm512_shuffle_epi32 emu_shuffle_epi32

/* Emulates vfpclassps. Each bit of the immediate `classes` selects a class of floats, such as quiet
 * NaN or zero. The result has a bit for each lane whose float is in a selected class. */
EMU __mmask16 emu_fpclass_ps(__m512 a, int classes) {
    emu_512 v = {.f = a};
    __mmask16 r = 0;
    EMU_EACH(16) {
        float x = v.f32[lane];
        bool minus = v.u32[lane] >> 31, quiet = v.u32[lane] >> 22 & 1;
        bool is[] = {isnan(x) && quiet,    x == 0 && !minus,  x == 0 && minus,
                     isinf(x) && !minus,   isinf(x) && minus, fpclassify(x) == FP_SUBNORMAL,
                     isfinite(x) && x < 0, isnan(x) && !quiet};
        bool any = false;
        for (int c = 0; c < 8; c++)
            any |= is[c] && classes >> c & 1;
        r |= (__mmask16)(any << lane);
    }
    return r;
}
#define _mm512_fpclass_ps_mask emu_fpclass_ps

#define EMU_CONVERT(name, to_vector, to, from_vector, from_member, from, lanes)                    \
    EMU to_vector emu_##name(from_vector a) {                                                      \
        emu_##from_member x = {.EMU_AS_##from_vector = a};                                         \
        emu_512 r;                                                                                 \
        EMU_EACH(lanes) r.to[lane] = x.from[lane];                                                 \
        return r.EMU_AS_##to_vector;                                                               \
    }
EMU_CONVERT(cvtepu16_epi32, __m512i, u32, __m256i, 256, u16, 16)
EMU_CONVERT(cvtepu8_epi16, __m512i, u16, __m256i, 256, u8, 32)
#define _mm512_cvtepu16_epi32 emu_cvtepu16_epi32
#define _mm512_cvtepu8_epi16  emu_cvtepu8_epi16
EMU __m512i emu_cvtepu8_epi32(__m128i a) {
    return emu_cvtepu16_epi32(_mm256_cvtepu8_epi16(a));
}
#define _mm512_cvtepu8_epi32 emu_cvtepu8_epi32
EMU __m256i emu_cvtepi32_epi16(__m512i a) {
    emu_512 x = {.i = a};
    emu_256 r;
    EMU_EACH(16) r.u16[lane] = (uint16_t)x.u32[lane];
    return r.i;
}
#define _mm512_cvtepi32_epi16 emu_cvtepi32_epi16
EMU __m512 emu_cvtepi32_ps(__m512i a) {
    emu_512 x = {.i = a}, r;
    for (int h = 0; h < 2; h++)
        r.half_f[h] = _mm256_cvtepi32_ps(x.half_i[h]);
    return r.f;
}
#define _mm512_cvtepi32_ps emu_cvtepi32_ps
EMU __m512 emu_cvtph_ps(__m256i a) {
    emu_512 r;
    r.half_f[0] = _mm256_cvtph_ps(_mm256_castsi256_si128(a));
    r.half_f[1] = _mm256_cvtph_ps(_mm256_extracti128_si256(a, 1));
    return r.f;
}
#define _mm512_cvtph_ps emu_cvtph_ps
#define _mm512_cvtps_ph(a, rounding)                                                               \
    _mm256_set_m128i(_mm256_cvtps_ph(EMU_F(a).half_f[1], (rounding)&7),                            \
                     _mm256_cvtps_ph(EMU_F(a).half_f[0], (rounding)&7))
EMU __m512d emu_cvtps_pd(__m256 a) {
    emu_512 r;
    r.half_d[0] = _mm256_cvtps_pd(_mm256_castps256_ps128(a));
    r.half_d[1] = _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1));
    return r.d;
}
#define _mm512_cvtps_pd emu_cvtps_pd
EMU __m256 emu_cvtpd_ps(__m512d a) {
    emu_512 x = {.d = a};
    return _mm256_set_m128(_mm256_cvtpd_ps(x.half_d[1]), _mm256_cvtpd_ps(x.half_d[0]));
}
#define _mm512_cvtpd_ps emu_cvtpd_ps

EMU __m512i emu_zextsi256(__m256i a) {
    emu_512 r = {.half_i = {a, _mm256_setzero_si256()}};
    return r.i;
}
#define _mm512_zextsi256_si512          emu_zextsi256
#define _mm512_extractf32x8_ps(a, half) (EMU_F(a).half_f[half])
EMU __m512i emu_shuffle_i64x2(__m512i a, __m512i b, int quarters) {
    emu_512 x = {.i = a}, y = {.i = b}, r;
    EMU_EACH(8) {
        int quarter = quarters >> lane / 2 * 2 & 3;
        r.u64[lane] = (lane < 4 ? x : y).u64[quarter * 2 + lane % 2];
    }
    return r.i;
}
#define _mm512_shuffle_i64x2 emu_shuffle_i64x2

EMU int emu_rounding(int immediate) {
    static const int modes[] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};
    return modes[immediate & 3];
}

/* This function is not inlined. The compiler could otherwise move computations across the changes
 * of the rounding mode. */
static __attribute__((noinline, unused)) __m512 emu_fma_round(__m512 a, __m512 b, __m512 c,
                                                              int immediate) {
    int before = fegetround();
    fesetround(emu_rounding(immediate));
    volatile emu_512 x = {.f = a}, y = {.f = b}, z = {.f = c}, r;
    EMU_EACH(16) r.f32[lane] = fmaf(x.f32[lane], y.f32[lane], z.f32[lane]);
    fesetround(before);
    emu_512 result;
    EMU_EACH(16) result.f32[lane] = r.f32[lane];
    return result.f;
}
static __attribute__((noinline, unused)) __m512 emu_mul_round(__m512 a, __m512 b, int immediate) {
    int before = fegetround();
    fesetround(emu_rounding(immediate));
    volatile emu_512 x = {.f = a}, y = {.f = b}, r;
    EMU_EACH(16) r.f32[lane] = x.f32[lane] * y.f32[lane];
    fesetround(before);
    emu_512 result;
    EMU_EACH(16) result.f32[lane] = r.f32[lane];
    return result.f;
}
#define _mm512_mul_round_ps                  emu_mul_round
#define _mm512_fmsub_round_ps(a, b, c, mode) emu_fma_round(a, b, -(c), mode)

EMU __m512i emu_madd_epi16(__m512i a, __m512i b) {
    emu_512 x = {.i = a}, y = {.i = b}, r;
    for (int h = 0; h < 2; h++)
        r.half_i[h] = _mm256_madd_epi16(x.half_i[h], y.half_i[h]);
    return r.i;
}
#undef _mm512_madd_epi16
#define _mm512_madd_epi16 emu_madd_epi16

/* Emulates vdpbf16ps. It adds the product of the odd elements first and then that of the even
 * elements, each with one rounding. Subnormals count as zero. */
EMU float emu_flush(float x) {
    return fpclassify(x) == FP_SUBNORMAL ? copysignf(0, x) : x;
}
EMU float emu_bf16(uint16_t code) {
    uint32_t bits = (uint32_t)code << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return emu_flush(value);
}
EMU __m512 emu_dpbf16(__m512 sum, __m512bh a, __m512bh b) {
    emu_512 r = {.f = sum}, x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    EMU_EACH(16) {
        float odd = fmaf(emu_bf16(x.u16[2 * lane + 1]), emu_bf16(y.u16[2 * lane + 1]),
                         emu_flush(r.f32[lane]));
        r.f32[lane] =
            emu_flush(fmaf(emu_bf16(x.u16[2 * lane]), emu_bf16(y.u16[2 * lane]), emu_flush(odd)));
    }
    return r.f;
}
#undef _mm512_dpbf16_ps
#define _mm512_dpbf16_ps emu_dpbf16

#endif
