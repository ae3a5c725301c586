/* These functions load the weights (matrix B) and their scales in a mixed-input kernel
 * (mixed_kernels.h). A thread copies its weights of a step (128 elements along K) from global
 * memory to its own part of a ring buffer in shared memory, several steps before it multiplies
 * them. It loads scales one step ahead, into registers. */
#ifndef BSMM_CUDA_SM90A_MIXED_WEIGHTS_H
#define BSMM_CUDA_SM90A_MIXED_WEIGHTS_H

#include "cuda/sm90a/mixed_shape.h"
#include "cuda/sm90a/small_m_multiply.h"
#include "gpu/half_weights.h"

/* Returns the number of bits of a weight. */
static __device__ __forceinline__ uint32_t mixed_bits(const int format) {
    return small_m_is_4bit(format) ? 4 : small_m_is_6bit(format) ? 6 : 8;
}

static __device__ __forceinline__ bsmm_half_range mixed_half_range(const int format) {
    return bsmm_half_range_of(mixed_bits(format), format == SMALL_M_MXFP6_E3M2 ? 2 : 3);
}

/* Starts the copy of the thread's weights of one step to the slot at the address `to`. The thread
 * copies 16 bytes at a time, from two rows that are 8 rows apart. If weights have 6 bits, the warp
 * copies 8 bytes at a time instead. The function writes zeros past the end of a row, and it writes
 * only zeros if `wanted` is false. */
static __device__ __forceinline__ void mixed_fetch(const int format, const uint32_t threads,
                                                   const small_m_lane *lane, uint32_t to,
                                                   bool wanted) {
    const int32_t left = wanted ? lane->left : 0;
    if (small_m_is_6bit(format)) {
        small_m_lane six = *lane;
        six.left = left;
        small_m_fetch_six(&six, to);
        return;
    }
#pragma unroll
    for (int i = 0; i < (small_m_is_4bit(format) ? 2 : 4); i++) {
        const int along = i / 2 * 64;
        ptx_copy16_once(to + i * (threads * 16), lane->weights[i % 2] + along,
                        left > along ? 16 : 0);
    }
}

/* Advances the addresses from which the thread copies weights by one step (128 elements of K). */
static __device__ __forceinline__ void mixed_go_on(const int format, small_m_lane *lane) {
    const int bytes = small_m_is_4bit(format)   ? 64
                      : small_m_is_6bit(format) ? SMALL_M_SIX_ROW
                                                : 128;
#pragma unroll
    for (int i = 0; i < (small_m_is_6bit(format) ? 1 : 2); i++)
        lane->weights[i] += bytes;
    lane->left -= bytes;
}

/* Loads a part of the thread's weights of a step from the ring buffer in shared memory to
 * registers. A thread multiplies 32 weights of each of two rows of B in a step. With 4-bit weights,
 * one call with `half` = 0 loads all of them. With 6-bit or 8-bit weights, a call loads only half
 * number `half` (0 or 1), i.e. 16 weights of each row. `slot` is the offset of the step's slot in
 * the ring buffer, in bytes. */
static __device__ __forceinline__ void mixed_take(const int format, const uint32_t threads,
                                                  const small_m_lane *lane, uint32_t slot,
                                                  const int half, small_m_words *to) {
    const uint8_t *from = (const uint8_t *)__cvta_shared_to_generic(lane->own + slot);
#pragma unroll
    for (int row = 0; row < 2; row++) {
        if (!small_m_is_6bit(format)) {
            to->w[half][row] = *(const uint4 *)(from + (2 * half + row) * (threads * 16));
            continue;
        }
        /* In shared memory, the thread's 24 bytes of a row begin at a multiple of 8 bytes. Half 0
         * is the first 12 of them, half 1 the last 12; each has 16 weights of 6 bits. Half 0 is
         * loaded as 8 bytes and then 4 bytes. Half 1 begins 12 bytes later, at no multiple of 8, so
         * it is loaded as 4 bytes and then 8 bytes. */
        const uint8_t *const here = from + row * 8 * SMALL_M_SIX_ROW + half * 12;
        const uint2 two = *(const uint2 *)(here + 4 * half);
        const uint32_t one = *(const uint32_t *)(here + 8 * (1 - half));
        to->w[half][row] =
            half ? make_uint4(one, two.x, two.y, 0) : make_uint4(two.x, two.y, one, 0);
    }
}

/* Holds the codes of the scales of a thread's weights in one step. The second index of `code`
 * selects one of the thread's two rows of B, which are 8 rows apart. The first index depends on the
 * format. With mxfp8, code[0] belongs to the first half of the thread's weights in the row and
 * code[1] to the second half. With nvfp4, code[0] belongs to the first 16 and code[1] to the last
 * 16 of the 32 weights. Other formats use only code[0]. */
typedef struct mixed_codes {
    uint32_t code[2][2];
} mixed_codes;

/* Tells where the scales of a thread's two rows of B lie. `first` is the address of the scales of
 * the first row. The second row is 8 rows below, and its scales begin `to_second` bytes after
 * `first`. */
typedef struct mixed_scales {
    const uint8_t *first;
    uint32_t to_second;
} mixed_scales;

static __device__ __forceinline__ mixed_scales mixed_find_scales(const bsmm_small_m_params *p,
                                                                 uint32_t row) {
    mixed_scales scales;
    const uint32_t first = min(row, p->n - 1), second = min(row + 8, p->n - 1);
    scales.first = p->b.scales + first * p->b_scale_pitch;
    scales.to_second = (second - first) * (uint32_t)p->b_scale_pitch;
    return scales;
}

/* Loads the codes of the thread's scales of step `step`. Past the end of K it loads the last code
 * of the row. This code multiplies zeros. If it is NaN, the row's results are NaN in any case,
 * because the code also belongs to elements before the end of K. */
static __device__ __forceinline__ void mixed_load_codes(const int format,
                                                        const bsmm_small_m_params *p,
                                                        const mixed_scales *scales, uint32_t step,
                                                        mixed_codes *to) {
    if (small_m_has_floats(format)) return;
    const bool nv = format == SMALL_M_NVFP4, mx8 = format == SMALL_M_MXFP8;
    const uint32_t t = threadIdx.x % 4, last = p->scale_count - 1;
    const uint32_t one = nv ? step * 8 + t * 2 : step * 4 + (mx8 ? t / 2 : t);
    const uint8_t *const at = scales->first + min(one, last);
    const uint8_t *const next = scales->first + min(one + (nv ? 1 : 2), last);
    to->code[0][0] = *at;
    to->code[0][1] = at[scales->to_second];
    if (!nv && !mx8) return;
    to->code[1][0] = *next;
    to->code[1][1] = next[scales->to_second];
}

/* Converts codes of scales to the f16 factors by which decoded weights are multiplied. For e8m0,
 * reference[i] is the reference code of row i of the thread's two rows, i.e. the lowest code that
 * f16 allows for this row (mixed_half.h). The factor depends on n, the code minus the reference
 * code. A code below the reference code makes n wrap around to a large number. *most is the largest
 * n so far, which tells whether a code lies outside of its row's range. The factor of such codes is
 * 0, so that the main loop leaves out their blocks (mixed_add_left_out). */
static __device__ __forceinline__ void mixed_half_factors(const int format,
                                                          const mixed_codes *codes,
                                                          const uint32_t reference[2],
                                                          small_m_factors *to, uint32_t *most) {
    const bsmm_half_range range = mixed_half_range(format);
#pragma unroll
    for (int row = 0; row < 2; row++) {
        if (format == SMALL_M_NVFP4) {
            const uint32_t two =
                ptx_f16x2_of_e4m3x2(codes->code[0][row] | codes->code[1][row] << 8);
            to->f[0][row][0] = __byte_perm(two, 0, 0x1010);
            to->f[0][row][1] = __byte_perm(two, 0, 0x3232);
        }
        for (int half = 0; half < (format == SMALL_M_MXFP8 ? 2 : 1); half++) {
            if (!small_m_has_e8m0(format)) continue;
            const uint32_t n = codes->code[half][row] - reference[row];
            *most = max(*most, n);
            to->f[half][row][0] = n > range.span ? 0 : bsmm_half_factor(&range, n);
        }
    }
}

/* Converts codes of scales to the bf16 factors by which decoded weights are multiplied. *most is
 * the running maximum of e8m0 codes, as bsmm_e8m0_most returns it. */
static __device__ __forceinline__ void mixed_factors(const int format, const mixed_codes *codes,
                                                     small_m_factors *to, uint32_t *most) {
#pragma unroll
    for (int row = 0; row < 2; row++) {
        if (format == SMALL_M_NVFP4)
            small_m_nv_factors(codes->code[0][row] | codes->code[1][row] << 8, to->f[0][row]);
        for (int half = 0; half < 2; half++) {
            uint32_t *f = to->f[half][row];
            /* The factor 2^120 in both bf16 halves corrects the exponent bias of decoded e4m3. */
            if (small_m_has_floats(format)) f[0] = f[1] = 0x7b807b80u;
            if (!small_m_has_e8m0(format) || (half == 1 && format != SMALL_M_MXFP8)) continue;
            f[0] = f[1] = bsmm_e8m0_factor(codes->code[half][row]);
            *most = bsmm_e8m0_most(*most, codes->code[half][row]);
        }
    }
}

/* Holds the state of a thread's copies of weights from global memory to its slots of the ring
 * buffer. */
typedef struct mixed_stream {
    small_m_lane lane;
    /* `codes` holds the scale codes of step number `step`, the next step to be multiplied. They are
     * loaded in advance: the loads start when the multiplication of the previous step begins, so
     * that the codes have arrived when it ends. */
    mixed_codes codes;
    /* `slot` is the offset in the ring buffer of the slot from which mixed_next has loaded weights
     * last. */
    uint32_t slot;
    /* `step` is the step that mixed_next loads next. The thread multiplies steps below `end`. */
    uint32_t step, end;
    /* `reference` is used if weights with e8m0 scales are decoded to f16. f16 can hold the weights
     * of a row of B only if all of the row's scale codes lie in a range. The reference code of a
     * row is the lowest code of this range. reference[i] is that of the thread's row i. */
    uint32_t reference[2];
} mixed_stream;

/* Returns the offset in bytes of the last slot of the ring buffer of weights. */
static __device__ __forceinline__ uint32_t mixed_last_slot(const int format,
                                                           const uint32_t threads) {
    return (bsmm_mixed_ahead(mixed_bits(format)) - 1) *
           bsmm_mixed_slot_bytes(threads, mixed_bits(format));
}

/* Starts the copies of the thread's weights for the first steps, one step fewer than the ring
 * buffer has slots. Also loads the scales of the first step. */
static __device__ __forceinline__ void mixed_begin(const int format, const uint32_t threads,
                                                   const bsmm_small_m_params *p,
                                                   const mixed_scales *scales, mixed_stream *s) {
#pragma unroll
    for (uint32_t i = 0; i < bsmm_mixed_ahead(mixed_bits(format)) - 1; i++) {
        mixed_fetch(format, threads, &s->lane,
                    s->lane.ring + i * bsmm_mixed_slot_bytes(threads, mixed_bits(format)),
                    s->step + i < s->end);
        mixed_go_on(format, &s->lane);
        ptx_copy_commit();
    }
    mixed_load_codes(format, p, scales, s->step, &s->codes);
}

/* Goes on to the next step of K. Loads this step's weights (or the first half of them) from the
 * ring buffer into *words, and converts the step's scales to *factors. Then it starts the copy of
 * the weights of a later step from global memory to the slot of the ring buffer that held the
 * previous step. Past the last step, the loaded weights are zeros. */
static __device__ __forceinline__ void mixed_next(const int format, const uint32_t threads,
                                                  const bool half, mixed_stream *s,
                                                  small_m_words *words, small_m_factors *factors,
                                                  uint32_t *most) {
    const uint32_t ahead = bsmm_mixed_ahead(mixed_bits(format)),
                   bytes = bsmm_mixed_slot_bytes(threads, mixed_bits(format));
    const uint32_t last = s->slot;
    s->slot = last == mixed_last_slot(format, threads) ? 0 : last + bytes;
    if (small_m_is_4bit(format))
        ptx_copy_wait(2);
    else
        ptx_copy_wait(1);
    /* Other lanes of the warp have copied a part of this thread's 6-bit weights, and may still read
     * the slot of the ring buffer that is refilled now. */
    if (small_m_is_6bit(format)) __syncwarp();
    mixed_take(format, threads, &s->lane, s->slot, 0, words);
    if (half)
        mixed_half_factors(format, &s->codes, s->reference, factors, most);
    else
        mixed_factors(format, &s->codes, factors, most);
    mixed_fetch(format, threads, &s->lane, s->lane.ring + last, s->step + ahead - 1 < s->end);
    mixed_go_on(format, &s->lane);
    ptx_copy_commit();
    s->step++;
}

/* Loads the second half of the weights of a step. mixed_next has loaded the first half. */
static __device__ __forceinline__ void mixed_second_half(const int format, const uint32_t threads,
                                                         mixed_stream *s, small_m_words *words) {
    if (!small_m_is_4bit(format)) mixed_take(format, threads, &s->lane, s->slot, 1, words);
}

#endif
