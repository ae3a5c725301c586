/* These kernels pack f32, f16 and bf16 (gpu/pack.h explains packing). Some of them pack elements to
 * bf16, if that is exact. The others pack each f16 element to two bf16 parts, or each f32 element
 * to three. The sum of the parts is the element. */
#include "cuda/sm80/pack_item.h"
#include "cuda/sm80/pack_parts.h"

/* Packs 8 elements of f32, f16 or bf16 to 8 bf16 numbers. Inf, NaN and values that are subnormal in
 * fp32 take the slow path, which can also choose a scale for the group of 128 elements. */
static __device__ __forceinline__ bsmm_lane_group item_wide(const bsmm_pack_job *job,
                                                            const float *values, bool there,
                                                            item_reach *reach, uint32_t *to) {
    bsmm_lane_group g = {0, 1, 0, 0, 0, 0};
    /* `least` is the minimum of magnitude - 1. For a magnitude of 0 this wraps around to the
     * largest number, so zeros are ignored. */
    uint32_t most = 0, least = UINT32_MAX, low_bits = 0;
    for (int i = 0; i < 8; i++) {
        uint32_t magnitude = __float_as_uint(values[i]) & 0x7fffffffu;
        most = max(most, magnitude);
        least = min(least, magnitude - 1);
        low_bits |= magnitude;
    }
    bool inexact = low_bits & 0xffff;
    if (__any_sync(0xffffffffu, most >= 0x7f800000u || least < 0x007fffffu)) {
        uint32_t maxima = max_over_lanes(bsmm_lane_look_wide(values, &inexact), 16);
        g = bsmm_lane_decide_wide(job, maxima, inexact);
        bsmm_lane_emit_wide(values, g.exponent, to);
        if (there) extend(&reach->told, &g);
        return g;
    }
    for (int i = 0; i < 4; i++)
        to[i] =
            __byte_perm(__float_as_uint(values[2 * i]), __float_as_uint(values[2 * i + 1]), 0x7632);
    if (inexact) reach->told.flags |= BSMM_PACK_WIDE;
    if (most) reach_out(reach, (int)(most >> 23) - 127, (int)((least + 1) >> 23) - 127);
    return g;
}

/* Packs the next bf16 part of each of 8 values, and subtracts the part from the value in
 * `values`. */
static __device__ __forceinline__ bsmm_lane_group item_part(float *values, bool there,
                                                            item_reach *reach, uint32_t *to) {
    bsmm_lane_group g = {0, 1, 0, 0, 0, 0};
    /* `least` is the minimum of magnitude - 1. For a magnitude of 0 this wraps around to the
     * largest number, so zeros are ignored. */
    uint32_t most = 0, least = UINT32_MAX, bits[8];
    for (int i = 0; i < 8; i++) {
        bits[i] = take_part(&values[i]);
        const uint32_t magnitude = bits[i] & 0x7fffffffu;
        if (magnitude < 0x7f800000u) most = max(most, magnitude);
        least = min(least, magnitude - 1);
    }
    for (int i = 0; i < 4; i++)
        to[i] = __byte_perm(bits[2 * i], bits[2 * i + 1], 0x7632);
    if (there && least < 0x007fffffu) reach->told.flags |= BSMM_PACK_WIDE;
    if (there && most) reach_out(reach, (int)(most >> 23) - 127, (int)((least + 1) >> 23) - 127);
    return g;
}

static __device__ __forceinline__ float from_f32(uint32_t bits) {
    return __uint_as_float(bits);
}

static __device__ __forceinline__ float from_bf16(uint16_t code) {
    return __uint_as_float((uint32_t)code << 16);
}

/* Loads 8 values of 16 bits. Only the first n exist. The function sets the remaining values to 0.
 */
static __device__ __forceinline__ void load_halves(const uint8_t *from, uint32_t n, uint32_t *raw) {
    const uint16_t *halves = (const uint16_t *)from;
    for (int i = 0; i < 8; i++) {
        uint32_t half = (uint32_t)i < n ? halves[i] : 0;
        raw[i / 2] = i % 2 ? raw[i / 2] | half << 16 : half;
    }
}

#define NAME    pack_rows_f32
#define TYPE    uint32_t
#define TO_F32  from_f32
#define BY_ROWS 1
#define HALVES  0
#define PARTS   1
#include "cuda/sm80/pack_wide_body.h"

#define NAME    pack_rows_f16
#define TYPE    uint16_t
#define TO_F32  bsmm_ptx_cvt_f32_f16
#define BY_ROWS 1
#define HALVES  1
#define PARTS   1
#include "cuda/sm80/pack_wide_body.h"

#define NAME    pack_rows_bf16
#define TYPE    uint16_t
#define TO_F32  from_bf16
#define BY_ROWS 1
#define HALVES  1
#define PARTS   1
#include "cuda/sm80/pack_wide_body.h"

#define NAME    pack_columns_f32
#define TYPE    uint32_t
#define TO_F32  from_f32
#define BY_ROWS 0
#define HALVES  0
#define PARTS   1
#include "cuda/sm80/pack_wide_body.h"

#define NAME    pack_columns_f16
#define TYPE    uint16_t
#define TO_F32  bsmm_ptx_cvt_f32_f16
#define BY_ROWS 0
#define HALVES  1
#define PARTS   1
#include "cuda/sm80/pack_wide_body.h"

#define NAME    pack_columns_bf16
#define TYPE    uint16_t
#define TO_F32  from_bf16
#define BY_ROWS 0
#define HALVES  1
#define PARTS   1
#include "cuda/sm80/pack_wide_body.h"

#define NAME    pack_rows_f16_parts
#define TYPE    uint16_t
#define TO_F32  bsmm_ptx_cvt_f32_f16
#define BY_ROWS 1
#define HALVES  1
#define PARTS   2
#include "cuda/sm80/pack_wide_body.h"

#define NAME    pack_rows_f32_parts
#define TYPE    uint32_t
#define TO_F32  from_f32
#define BY_ROWS 1
#define HALVES  0
#define PARTS   3
#include "cuda/sm80/pack_wide_body.h"

#define NAME    pack_columns_f16_parts
#define TYPE    uint16_t
#define TO_F32  bsmm_ptx_cvt_f32_f16
#define BY_ROWS 0
#define HALVES  1
#define PARTS   2
#include "cuda/sm80/pack_wide_body.h"

#define NAME    pack_columns_f32_parts
#define TYPE    uint32_t
#define TO_F32  from_f32
#define BY_ROWS 0
#define HALVES  0
#define PARTS   3
#include "cuda/sm80/pack_wide_body.h"
