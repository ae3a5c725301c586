/* Chooses reference codes for weights with e8m0 scales that a mixed-input kernel (mixed_kernels.h)
 * decodes to f16.
 *
 * f16 has a small range of exponents. It holds decoded weights exactly only if their scales lie in
 * a range of 22 to 30 neighboring powers of two, depending on the format (gpu/half_weights.h). The
 * kernel can place this range where it likes, and it does so separately for each row of B and each
 * range of K. The lowest scale code of the range is the row's reference code. To place the range,
 * the kernel looks at the scales of the first two or three steps of 128 elements. It puts the
 * largest of them into the upper half of the range, because the scales of a row usually differ by
 * much less than the range allows. Blocks of zeros often have other scales than the rest of their
 * row, so the kernel ignores them. After the last step, it multiplies the sums by a power of two
 * that follows from the reference code.
 *
 * The main loop leaves out blocks whose scale is outside of the range. After the main loop, a warp
 * that has met such a scale multiplies these blocks in fp32 and adds the products to the sums,
 * unless all elements of the block are zeros. A row with a NaN scale gets sums of NaN, and the
 * epilogue computes its results again in double. */
#ifndef BSMM_CUDA_SM90A_MIXED_HALF_H
#define BSMM_CUDA_SM90A_MIXED_HALF_H

#include "cuda/sm90a/mixed_weights.h"

/* f16 holds a row's weights exactly only if their scale codes lie in a short range. The kernel
 * chooses this range for each row of B, from the row's scales in the first steps of K. The lowest
 * code of the range is the row's reference code. MIXED_LOOKS is the largest number of these steps.
 * MIXED_STEP_BLOCKS is the number of scale blocks (32 elements) that a row has in one step. */
enum { MIXED_LOOKS = 3, MIXED_STEP_BLOCKS = BSMM_SMALL_M_K / 32 };

/* The kernel chooses the range of scales of a row of B from the largest scale code in the row's
 * first steps of K, without blocks of zeros. If all these blocks are zeros, there is no such code,
 * and the kernel uses MIXED_USUAL instead: the e8m0 code of the scale 2^-8. */
enum { MIXED_USUAL = 119 };

/* The mixed-input kernels (mixed_kernels.h) that decode e8m0-scaled weights to f16 keep their fp32
 * sums multiplied by 2^-MIXED_HALF_LOG2, and the epilogue multiplies results by 2^MIXED_HALF_LOG2.
 * The kernels that decode mxfp4 to bf16 use the same factor. The epilogue can therefore test the
 * sums of both for underflow and overflow by the same limits. */
enum { MIXED_HALF_LOG2 = 27 };

/* Names the two rows of B that the thread multiplies, `row` and `row` + 8, and its steps [begin,
 * end) of K (128 elements each). */
typedef struct mixed_rows {
    uint32_t row, begin, end;
} mixed_rows;

/* Some formats are decoded to f16 as a fraction 2^-n of the weights' values, so the sums are too
 * small by the same factor. Returns the factor 2^n by which the epilogue multiplies the sums to
 * correct this, or 1 for other formats. */
static __device__ __forceinline__ double mixed_half_unfold(const int format) {
    if (small_m_has_e8m0(format)) return (double)(1u << MIXED_HALF_LOG2);
    /* Decoded e2m1 elements are 2^-6 times as large as their values. */
    return format == SMALL_M_NVFP4 ? 0x1p6 : 1;
}

/* Returns a mask for 32-bit word number i of the elements of a scale block. The mask selects the
 * magnitudes: it is 0 at the sign bits of the elements and 1 at all other bits. Word 0 begins with
 * the first bit of an element. Elements of 6 bits do not begin at the same bits in each word. Their
 * mask therefore depends on i, and repeats after three words, i.e. 16 elements. */
static __device__ __forceinline__ uint32_t mixed_magnitudes(const int format, uint32_t i) {
    if (small_m_is_4bit(format)) return 0x77777777u;
    if (!small_m_is_6bit(format)) return 0x7f7f7f7fu;
    return i % 3 == 0 ? ~0x20820820u : i % 3 == 1 ? ~0x08208208u : ~0x82082082u;
}

/* Returns true if an element of block number `block` of a row of B is not zero. A block has 32
 * elements. With elements of n bits, it has n words of 32 bits. */
static __device__ __forceinline__ bool
mixed_has_values(const int format, const bsmm_small_m_params *p, uint32_t row, uint32_t block) {
    const uint32_t words = mixed_bits(format);
    const uint2 *from =
        (const uint2 *)(p->b.data + (uint64_t)row * p->b_pitch8 * 8 + (uint64_t)block * words * 4);
    uint32_t any = 0;
#pragma unroll
    for (uint32_t i = 0; i < words / 2; i++) {
        const uint2 two = from[i];
        any |= two.x & mixed_magnitudes(format, 2 * i);
        any |= two.y & mixed_magnitudes(format, 2 * i + 1);
    }
    return any != 0;
}

/* Returns true if an element in 16 bytes (12 bytes of 6-bit elements) is not zero. The bytes begin
 * with the first bit of an element. */
static __device__ __forceinline__ bool mixed_any(const int format, uint4 v) {
    uint32_t any = v.x & mixed_magnitudes(format, 0);
    any |= v.y & mixed_magnitudes(format, 1);
    any |= v.z & mixed_magnitudes(format, 2);
    if (!small_m_is_6bit(format)) any |= v.w & mixed_magnitudes(format, 0);
    return any != 0;
}

/* Computes the reference codes of the thread's two rows of B. The reference code of a row is the
 * lowest e8m0 scale code with which f16 holds the row's weights. It follows from the largest scale
 * of the row's first steps; blocks of zeros do not count. The function first waits for the copies
 * of the weights of these steps, which mixed_begin has started. Four threads share a row: each
 * looks at its own weights, and they exchange the largest scales. */
static __device__ __forceinline__ void
mixed_find_references(const int format, const uint32_t threads, const bsmm_small_m_params *p,
                      const mixed_scales *scales, mixed_stream *s) {
    const bsmm_half_range range = mixed_half_range(format);
    const uint32_t bits = mixed_bits(format);
    mixed_codes codes[MIXED_LOOKS];
#pragma unroll
    for (uint32_t i = 0; i < bsmm_mixed_ahead(bits) - 1; i++)
        mixed_load_codes(format, p, scales, s->step + i, &codes[i]);
    ptx_copy_wait(0);
    __syncwarp();
    uint32_t most[2] = {0, 0};
#pragma unroll
    for (uint32_t i = 0; i < bsmm_mixed_ahead(bits) - 1; i++)
#pragma unroll
        for (int half = 0; half < (small_m_is_4bit(format) ? 1 : 2); half++) {
            small_m_words words;
            mixed_take(format, threads, &s->lane, i * bsmm_mixed_slot_bytes(threads, bits), half,
                       &words);
#pragma unroll
            for (int row = 0; row < 2; row++) {
                const uint32_t code = codes[i].code[format == SMALL_M_MXFP8 ? half : 0][row];
                const bool counts = code != 255 && mixed_any(format, words.w[half][row]);
                most[row] = max(most[row], counts ? code + 1 : 0);
            }
        }
#pragma unroll
    for (int row = 0; row < 2; row++) {
        most[row] = max(most[row], __shfl_xor_sync(0xffffffffu, most[row], 1));
        most[row] = max(most[row], __shfl_xor_sync(0xffffffffu, most[row], 2));
        s->reference[row] = bsmm_half_reference(&range, most[row] ? most[row] - 1 : MIXED_USUAL);
    }
}

/* With e8m0 scales, weights that are decoded to f16 are divided by a power of two that follows from
 * the reference code of their row of B, i.e. from the lowest scale code with which f16 holds the
 * row's weights. This function multiplies the sums of the thread's two rows by these powers of two.
 * The multiplication is exact, unless the result is so small or so large that the epilogue
 * recomputes it. If mixed_add_left_out makes a rounded result large enough to be kept, the rounding
 * error is at most 2^-150, which does not matter. */
static __device__ __forceinline__ void mixed_apply_references(const int format, const int tiles,
                                                              const uint32_t reference[2],
                                                              float (*sums)[4]) {
    const bsmm_half_range range = mixed_half_range(format);
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const float by = bsmm_pow2(bsmm_half_exponent(&range, reference[i]) - MIXED_HALF_LOG2);
#pragma unroll
        for (int s = 0; s < tiles; s++)
            sums[s][2 * i] *= by, sums[s][2 * i + 1] *= by;
    }
}

/* Describes a warp's own sums of a tile, for mixed_add_left_out. They are the sums of 16 rows of B,
 * and a column of them belongs to one row of A. */
typedef struct mixed_sums {
    /* `sums` is the address in shared memory of the sum of the warp's first row of B and the
     * tile's first row of A. `pitch` is the number of floats from one column to the next. */
    float *sums;
    uint32_t pitch;
    /* Column c belongs to row `first` + c of A, for c below `count`. */
    uint32_t first, count;
} mixed_sums;

enum {
    /* MIXED_LEFT_COLUMNS is the number of columns to which mixed_add_block adds at once. */
    MIXED_LEFT_COLUMNS = 8,
    /* MIXED_LEFT_BLOCKS is the number of scale blocks of a row that one call of mixed_finds_far
     * checks: eight for each of the four lanes that share the row. */
    MIXED_LEFT_BLOCKS = 32,
};

/* Multiplies one scale block of a row of B by the tile's rows of A, and adds the products to the
 * row's sums `to`. Each lane multiplies one of the block's 32 elements. An f16 number times an
 * element is exact in fp32. Multiplying this by the scale and by 2^-MIXED_HALF_LOG2 is exact too,
 * except for underflow or overflow. The products are added in a fixed order. All lanes of a warp
 * call this function together. */
static __device__ __forceinline__ void mixed_add_block(const bsmm_small_m_params *p,
                                                       const mixed_sums *own, uint32_t row,
                                                       uint32_t block, uint32_t code, float *to) {
    const uint32_t lane = threadIdx.x % 32, k = block * 32 + lane;
    const float element = k < p->k ? bsmm_gpu_elem(&p->b, bsmm_gpu_code(&p->b, row, k)) : 0;
    const float scale = bsmm_gpu_scale_value(BSMM_SCALE_E8M0, code);
    const uint16_t *const a = (const uint16_t *)p->a.data + min(k, p->k - 1) * p->a.col_step;
#pragma unroll 1
    for (uint32_t c = 0; c < own->count; c += MIXED_LEFT_COLUMNS) {
        float v[MIXED_LEFT_COLUMNS];
#pragma unroll
        for (uint32_t i = 0; i < MIXED_LEFT_COLUMNS; i++) {
            const uint32_t a_row = own->first + min(c + i, own->count - 1);
            v[i] = bsmm_gpu_f16_value(a[a_row * p->a.row_step]) * element * scale *
                   (1.0f / (float)(1u << MIXED_HALF_LOG2));
        }
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2)
#pragma unroll
            for (uint32_t i = 0; i < MIXED_LEFT_COLUMNS; i++)
                v[i] += __shfl_xor_sync(0xffffffffu, v[i], distance);
#pragma unroll
        for (uint32_t i = 0; i < MIXED_LEFT_COLUMNS; i++)
            if (lane == i && c + i < own->count) to[(c + i) * own->pitch] += v[i];
    }
}

/* Returns true if any lane of the warp finds a scale code below `reference` or above `reference` +
 * `span`. `codes` are the codes of the thread's row of B. The four lanes of a row check
 * MIXED_LEFT_BLOCKS codes from number `block` on, but none from number `end` on. All lanes of a
 * warp call this function together. */
static __device__ __forceinline__ bool mixed_finds_far(const uint8_t *codes, uint32_t block,
                                                       uint32_t end, uint32_t reference,
                                                       uint32_t span) {
    uint32_t most = 0;
#pragma unroll
    for (uint32_t i = threadIdx.x % 4; i < MIXED_LEFT_BLOCKS; i += 4)
        most = max(most, (uint32_t)codes[min(block + i, end - 1)] - reference);
    return __any_sync(0xffffffffu, most > span);
}

/* Adds to the warp's sums the products of the scale blocks that the main loop has left out: f16
 * cannot hold the weights of a block if its scale is outside the range of the row's reference code.
 * `first` and `second` are the reference codes of the thread's two rows of B, which are 8 rows
 * apart, and `rows` names these rows and the thread's steps of K. If a scale is NaN, the row's sums
 * become NaN, and the epilogue computes the results again in double. All lanes of a warp call this
 * function together. */
static __device__ __noinline__ void mixed_add_left_out(const int format,
                                                       const bsmm_small_m_params *p,
                                                       const mixed_rows rows, uint32_t first,
                                                       uint32_t second, const mixed_sums own) {
    const uint32_t span = mixed_half_range(format).span, lane = threadIdx.x % 32;
    const uint32_t end = min(rows.end * MIXED_STEP_BLOCKS, p->scale_count);
    __syncwarp(); /* Other lanes have stored sums that this lane changes. */
#pragma unroll 1
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t row = min(rows.row + i * 8, p->n - 1), reference = i ? second : first;
        const uint8_t *const codes = p->b.scales + row * p->b_scale_pitch;
#pragma unroll 1
        for (uint32_t at = rows.begin * MIXED_STEP_BLOCKS; at < end; at += 4) {
            /* If none of the next MIXED_LEFT_BLOCKS blocks was left out, skip them all. */
            while (at < end && !mixed_finds_far(codes, at, end, reference, span))
                at += MIXED_LEFT_BLOCKS;
            const uint32_t block = at + lane % 4, code = block < end ? codes[block] : 0;
            const bool far = block < end && code - reference > span &&
                             (code == 255 || mixed_has_values(format, p, row, block));
            uint32_t left = __ballot_sync(0xffffffffu, far);
#pragma unroll 1
            for (; left; left &= left - 1) {
                const int from = __ffs((int)left) - 1;
                const uint32_t its_code = __shfl_sync(0xffffffffu, code, from);
                float *const to = own.sums + from / 4 + i * 8;
                if (its_code != 255)
                    mixed_add_block(p, &own, __shfl_sync(0xffffffffu, row, from),
                                    at + (uint32_t)from % 4, its_code, to);
                for (uint32_t c = lane; its_code == 255 && c < own.count; c += 32)
                    to[c * own.pitch] = __uint_as_float(0x7fc00000u);
                __syncwarp();
            }
        }
    }
}

#endif
