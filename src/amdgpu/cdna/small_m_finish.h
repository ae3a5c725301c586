/* Adds the sums of all waves of a workgroup and stores results, for the kernels for few rows of A
 * (small_m_body.h). The waves have summed different parts of K. LDS has the sums of each wave in
 * tiles of 16 x 16 results, in the order [tile of B's rows][tile of A's rows][row of A in the
 * tile][row of B in the tile]. */
#ifndef BSMM_AMDGPU_CDNA_SMALL_M_FINISH_H
#define BSMM_AMDGPU_CDNA_SMALL_M_FINISH_H

#include "amdgpu/cdna/small_m_decode.h"

/* These are limits of the magnitude of an fp32 scale. With a bf16 or f16 A, it may be at most
 * SMALL_M_MOST_SCALE. With another type of A, a nonzero scale must be at least SMALL_M_LEAST_SCALE.
 * A scale beyond its limit makes results NaN, and they are then computed again in double. */
#define SMALL_M_MOST_SCALE  0x1p62f
#define SMALL_M_LEAST_SCALE 0x1p-50f

enum {
    /* SMALL_M_PITCH is the number of floats in LDS from the sums of one row of A to those of the
     * next row. SMALL_M_TILE is the number of floats from one tile of 16 x 16 sums to the next.
     * Rows have 4 floats of padding, so that the stores of a wave go to different banks. */
    SMALL_M_PITCH = SMALL_M_EDGE + 4,
    SMALL_M_TILE = SMALL_M_EDGE * SMALL_M_PITCH,
};

typedef bsmm_f32x4 small_m_sums[SMALL_M_MOST_TILES][SMALL_M_MOST_TILES];

/* Returns true if a row of A has only elements 0 and -0. All lanes of a wave call this function
 * together. */
BSMM_DEVICE bool small_m_is_zero(small_m_format f, const bsmm_cdna_small_m *p, uint32_t row) {
    const BSMM_GLOBAL uint8_t *from =
        (const BSMM_GLOBAL uint8_t *)p->a.data + (uint64_t)row * p->a.pitch;
    const uint32_t bytes = p->k / 8 * small_m_bits(f);
    uint32_t any = 0;
#pragma clang loop unroll(disable)
    for (uint32_t at = bsmm_device_lane() * 4; at < bytes; at += 4 * BSMM_LANES)
        any |= *(const BSMM_GLOBAL uint32_t *)(from + at) & small_m_magnitudes(f);
    return __builtin_amdgcn_ballot_w64(any) == 0;
}

/* Returns the smallest magnitude of a sum that is certainly accurate. The limit is 0 for an A of 8
 * bits or less, because the kernels refuse scales with which its products could underflow. With a
 * bf16 or f16 A, products below 2^-149 become 0 in fp32, and a smaller sum may lack too many of
 * them. If B has fp32 scales, the limit is higher, because the kernel multiplies such a sum, with
 * its error, by scales of up to 2^62. */
BSMM_DEVICE float small_m_least_sum(small_m_shape s) {
    if (!small_m_is_wide(s.a)) return 0;
    return small_m_has_floats(s.b) ? 0x1p-56f : 0x1p-118f;
}

/* Returns true if an fp32 sum may be inaccurate. A sum below small_m_least_sum may have lost terms
 * to underflow. A sum above 2^127, Inf or NaN may come from an overflow, or from a scale outside
 * the kernel's range. */
BSMM_DEVICE bool small_m_doubts(small_m_shape s, float sum) {
    const float size = __builtin_fabsf(sum);
    return !(size >= small_m_least_sum(s) && size <= 0x1p127f);
}

/* gfx942 decodes e4m3 elements to half of their values (small_m_correction). For operands with fp32
 * scales, the kernel corrects this in each step. Returns the factor by which a sum over K must be
 * multiplied to correct it for operands without scales. */
BSMM_DEVICE float small_m_correction_of_sum(small_m_shape s) {
    const float a = s.a.scale == BSMM_SCALE_NONE ? small_m_correction(s.a) : 1;
    const float b = s.b.scale == BSMM_SCALE_NONE ? small_m_correction(s.b) : 1;
    return a * b;
}

/* Returns true if the kernel contains code that multiplies results by fp32 scales of whole rows. A
 * product uses this code only if the epilogue flags say that there are such scales. */
BSMM_DEVICE bool small_m_takes_row_scales(small_m_shape s) {
    return s.b.scale == BSMM_SCALE_NONE ||
           (s.a.elem == BSMM_ELEM_E4M3 && s.a.scale == BSMM_SCALE_NONE);
}

/* Returns the fp32 scale of a whole row, or 1 if the kernel does not multiply results by scales of
 * whole rows. */
BSMM_DEVICE float small_m_row_scale(const bsmm_cdna_small_m_side *o, bool has_scales,
                                    uint32_t row) {
    if (!has_scales) return 1;
    const uint32_t at = (small_m_least(row, o->rows - 1) >> o->scale_shift) * o->scale_pitch;
    return *(const BSMM_GLOBAL float *)(const BSMM_GLOBAL void *)((uintptr_t)o->scales + at);
}

/* Multiplies a sum by the fp32 scale of its row of A and by the fp32 scale of its row of B. The
 * result becomes NaN if it may be inaccurate, so that it is computed again in double. This is so if
 * the sum may be inaccurate, if the product of the two scales is below 2^-120, or if the result is
 * below 2^-118. A sum of 0 stays 0.
 *
 * `epilogue_flags` is the field of this name in bsmm_cdna_small_m. The function reads all other
 * parameters from memory here. If they were read earlier, they would take scalar registers
 * throughout the kernel. */
BSMM_DEVICE float small_m_scaled_sum(small_m_shape s, uint32_t epilogue_flags, uint32_t row,
                                     uint32_t col, float sum) {
    const bsmm_cdna_small_m *p = BSMM_PARAMETERS(bsmm_cdna_small_m);
    const float scale = small_m_row_scale(&p->a, epilogue_flags & BSMM_CDNA_SMALL_M_A_SCALES, row) *
                        small_m_row_scale(&p->b, epilogue_flags & BSMM_CDNA_SMALL_M_B_SCALES, col);
    const float total = sum * scale;
    const bool safe = __builtin_fabsf(sum) >= small_m_least_sum(s) &&
                      __builtin_fabsf(scale) >= 0x1p-120f && __builtin_fabsf(total) >= 0x1p-118f;
    return safe || sum == 0 ? total : bsmm_bits_float(0x7fc00000u);
}

/* Stores results of a wave by the general epilogue, one in each lane for which `wanted` is true. If
 * a sum may be inaccurate, the wave computes it again in double. */
BSMM_DEVICE void small_m_store_slowly(small_m_shape s, uint32_t row, uint32_t col, float stored,
                                      bool wanted) {
    const bsmm_cdna_small_m *p = BSMM_PARAMETERS(bsmm_cdna_small_m);
    double sum = (double)stored;
    uint64_t left = __builtin_amdgcn_ballot_w64(wanted && small_m_doubts(s, stored));
#pragma clang loop unroll(disable)
    for (; left; left &= left - 1) {
        const int lane = __builtin_ctzll(left);
        const uint32_t r = (uint32_t)__builtin_amdgcn_readlane((int)row, lane);
        const uint32_t c = (uint32_t)__builtin_amdgcn_readlane((int)col, lane);
        const uint32_t bits =
            (uint32_t)__builtin_amdgcn_readlane((int)bsmm_float_bits(stored), lane);
        if ((bits & 0x7fffffffu) == 0 && small_m_is_zero(s.a, p, r)) continue;
        const double again = bsmm_gpu_epilogue_sum_again(&p->a_operand, &p->b_operand, r, c, p->k);
        if ((int)bsmm_device_lane() == lane) sum = again;
    }
    const bsmm_gpu_epilogue_factors factors = bsmm_gpu_epilogue_begin(&p->epilogue);
    if (wanted) bsmm_gpu_epilogue_store(&p->epilogue, &factors, row, col, sum);
}

/* Returns the number of neighbouring results of a row of D that a lane adds and stores. With up to
 * 16 rows of A, a workgroup has too few results to give each lane more than one. */
BSMM_DEVICE uint32_t small_m_width(small_m_shape s) {
    return s.a_tiles > 1 ? 4 : 1;
}

/* Rounds a sum to D's format, which is f32, f16 or bf16, and stores it. */
BSMM_DEVICE void small_m_store_plain(const bsmm_gpu_epilogue *e, uint32_t row, uint32_t col,
                                     float sum) {
    const uint64_t at = row * e->d_row + col * e->d_col;
    const _Float16 half = (_Float16)sum;
    if (e->d_elem == BSMM_ELEM_F32)
        ((BSMM_GLOBAL float *)e->d)[at] = sum;
    else if (e->d_elem == BSMM_ELEM_F16)
        ((BSMM_GLOBAL _Float16 *)e->d)[at] = half;
    else
        ((BSMM_GLOBAL uint16_t *)e->d)[at] = (uint16_t)bsmm_gpu_epilogue_bf16(sum);
}

/* Rounds the sums of four neighbouring columns to D's format, which is f32, f16 or bf16, and stores
 * them at once. D may begin at any address, but its columns must be neighbours in memory. */
BSMM_DEVICE void small_m_store_four(const bsmm_gpu_epilogue *e, uint32_t row, uint32_t col,
                                    bsmm_f32x4 sums) {
    typedef bsmm_f32x4 floats __attribute__((aligned(4)));
    typedef _Float16 halves __attribute__((vector_size(8), aligned(2)));
    typedef uint16_t codes __attribute__((vector_size(8), aligned(2)));
    const uint64_t at = row * e->d_row + col;
    if (e->d_elem == BSMM_ELEM_F32) {
        *(BSMM_GLOBAL floats *)((BSMM_GLOBAL float *)e->d + at) = sums;
    } else if (e->d_elem == BSMM_ELEM_F16) {
        *(BSMM_GLOBAL halves *)((BSMM_GLOBAL _Float16 *)e->d + at) =
            (halves){(_Float16)sums[0], (_Float16)sums[1], (_Float16)sums[2], (_Float16)sums[3]};
    } else {
        codes rounded;
#pragma unroll
        for (uint32_t i = 0; i < 4; i++)
            rounded[i] = (uint16_t)bsmm_gpu_epilogue_bf16(sums[i]);
        *(BSMM_GLOBAL codes *)((BSMM_GLOBAL uint16_t *)e->d + at) = rounded;
    }
}

/* Returns where a lane's sums of a tile lie in LDS, counted in floats from the wave's sums. A lane
 * holds the sums of one row of A and four neighbouring rows of B. */
BSMM_DEVICE uint32_t small_m_place(small_m_shape s, uint32_t lane, uint32_t b_tile,
                                   uint32_t a_tile) {
    return (b_tile * s.a_tiles + a_tile) * SMALL_M_TILE + lane % 16 * SMALL_M_PITCH + lane / 16 * 4;
}

/* Writes the sums of a wave to LDS. */
BSMM_DEVICE void small_m_write_sums(small_m_shape s, const small_m_sums sums,
                                    BSMM_IN_LDS float *to) {
    const uint32_t lane = bsmm_device_lane();
#pragma unroll
    for (uint32_t i = 0; i < s.b_tiles; i++)
#pragma unroll
        for (uint32_t j = 0; j < s.a_tiles; j++)
            *(BSMM_IN_LDS bsmm_f32x4 *)(to + small_m_place(s, lane, i, j)) = sums[i][j];
}

/* Adds the sums that another wave has written to LDS to those of this wave. */
BSMM_DEVICE void small_m_add_sums(small_m_shape s, small_m_sums sums,
                                  const BSMM_IN_LDS float *from) {
    const uint32_t lane = bsmm_device_lane();
#pragma unroll
    for (uint32_t i = 0; i < s.b_tiles; i++)
#pragma unroll
        for (uint32_t j = 0; j < s.a_tiles; j++)
            sums[i][j] += *(const BSMM_IN_LDS bsmm_f32x4 *)(from + small_m_place(s, lane, i, j));
}

/* Adds the partial sums of a result in the order of the places, and returns the total. All reads of
 * LDS start before the first addition. */
BSMM_DEVICE float small_m_add(const BSMM_IN_LDS float *from, uint32_t stride, uint32_t places) {
    float sums[BSMM_CDNA_SMALL_M_MOST_WAVES];
#pragma unroll
    for (uint32_t w = 0; w < BSMM_CDNA_SMALL_M_MOST_WAVES; w++)
        sums[w] = from[small_m_least(w, places - 1) * stride];
#pragma unroll
    for (uint32_t w = 1; w < BSMM_CDNA_SMALL_M_MOST_WAVES; w++)
        sums[0] = w < places ? sums[0] + sums[w] : sums[0];
    return sums[0];
}

/* Does the same for four neighbouring results of a row of D. */
BSMM_DEVICE bsmm_f32x4 small_m_add_four(const BSMM_IN_LDS float *from, uint32_t stride,
                                        uint32_t places) {
    bsmm_f32x4 sums[BSMM_CDNA_SMALL_M_MOST_WAVES];
#pragma unroll
    for (uint32_t w = 0; w < BSMM_CDNA_SMALL_M_MOST_WAVES; w++)
        sums[w] = *(const BSMM_IN_LDS bsmm_f32x4 *)(from + small_m_least(w, places - 1) * stride);
#pragma unroll
    for (uint32_t w = 1; w < BSMM_CDNA_SMALL_M_MOST_WAVES; w++)
        sums[0] = w < places ? sums[0] + sums[w] : sums[0];
    return sums[0];
}

/* Adds the partial sums in LDS, in the order of their places, and stores the results. `from` points
 * to the sums in place 0, and those in each place begin `stride` floats after those in the place
 * before it. Neighbouring lanes store neighbouring results. */
BSMM_DEVICE void small_m_epilogue_store(small_m_shape s, const bsmm_cdna_small_m *p,
                                        uint32_t first_row, const BSMM_IN_LDS float *from,
                                        uint32_t stride, uint32_t places) {
    const uint32_t width = small_m_width(s), in_tile = SMALL_M_EDGE / width;
    const uint32_t in_row = s.b_tiles * in_tile;
#pragma clang loop unroll(disable)
    for (uint32_t i = bsmm_thread(); i < s.a_tiles * SMALL_M_EDGE * in_row;
         i += p->waves * BSMM_LANES) {
        const uint32_t row = i / in_row, across = i % in_row, col = first_row + across * width;
        const uint32_t tile = across / in_tile * s.a_tiles + row / SMALL_M_EDGE;
        const BSMM_IN_LDS float *at = from + tile * SMALL_M_TILE +
                                      row % SMALL_M_EDGE * SMALL_M_PITCH + across % in_tile * width;
        bsmm_f32x4 sums = {0};
        if (width == 1)
            sums[0] = small_m_add(at, stride, places);
        else
            sums = small_m_add_four(at, stride, places);
        const uint32_t left = col < p->b.rows ? p->b.rows - col : 0;
        const uint32_t count = row < p->a.rows ? small_m_least(left, width) : 0;
        const bool scales = small_m_takes_row_scales(s);
        /* Four results are stored at once only if D has room for all of them. */
        bool slow = width > 1 && count % width > 0;
#pragma unroll
        for (uint32_t e = 0; e < width; e++) {
            sums[e] *= small_m_correction_of_sum(s);
            if (scales && p->epilogue_flags > BSMM_CDNA_SMALL_M_PLAIN)
                sums[e] = small_m_scaled_sum(s, p->epilogue_flags, row, col + e, sums[e]);
            slow |= (e < count) & small_m_doubts(s, sums[e]);
        }
        const bool plain = scales ? p->epilogue_flags & BSMM_CDNA_SMALL_M_PLAIN : p->epilogue_flags;
        if (!plain || (width > 1 && p->epilogue.d_col != 1) || __builtin_amdgcn_ballot_w64(slow)) {
#pragma clang loop unroll(disable)
            for (uint32_t e = 0; e < width; e++)
                small_m_store_slowly(s, row, col + e, sums[e], e < count);
        } else if (count > 0 && width > 1) {
            small_m_store_four(&p->epilogue, row, col, sums);
        } else if (count > 0) {
            small_m_store_plain(&p->epilogue, row, col, sums[0]);
        }
    }
}

#endif
