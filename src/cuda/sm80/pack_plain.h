/* Packs elements of 4, 6 and 8 bits with e8m0 scales to bf16, for operands whose values bf16 holds
 * without group scales (gpu/pack.h explains packing). The thread blocks of any kernel can call
 * pack_plain. It writes no header.
 *
 * The operand is divided into parts. A part is as large as the work of one thread block of a
 * packing kernel, and 256 threads pack it. A larger thread block packs several parts at a time.
 * Row-major operands with elements of 4 and 6 bits have a fast path. The code for all other
 * operands is short rather than fast. */
#ifndef BSMM_CUDA_SM80_PACK_PLAIN_H
#define BSMM_CUDA_SM80_PACK_PLAIN_H

#include "cuda/sm80/pack_item.h"
#include "gpu/operand.h"

enum { PLAIN_CODES = 8, PLAIN_ROWS = 8 };

/* Returns the position of a thread's elements in part number `part` of the operand: 8 elements
 * along K in each of several rows. A part is as large as the work of one thread block of a packing
 * kernel. Parts are numbered along K first. A part past the last one has no rows. */
static __device__ __forceinline__ pack_position plain_position(const bsmm_pack_plain *p,
                                                               uint32_t part) {
    uint32_t lanes = 1u << p->job.lanes_log2, thread = threadIdx.x % PACK_THREADS;
    pack_position at;
    at.row_stride = PACK_THREADS >> p->job.lanes_log2;
    at.row0 = part / p->columns * at.row_stride * PLAIN_ROWS + (thread >> p->job.lanes_log2);
    at.k = (part % p->columns * lanes + (thread & (lanes - 1))) * PLAIN_CODES;
    at.n = at.k < p->job.cols ? min(p->job.cols - at.k, PLAIN_CODES) : 0;
    return at;
}

static __device__ __forceinline__ uint4 *plain_target(const bsmm_pack_job *job, uint32_t row,
                                                      uint32_t k) {
    return (uint4 *)((uint8_t *)job->elements + row * job->element_pitch + (uint64_t)k * 2);
}

/* Packs eight elements along K to bf16, one at a time. Elements past the end of K become 0. */
static __device__ __forceinline__ void plain_define(const bsmm_gpu_operand *o, uint32_t row,
                                                    uint32_t k, uint32_t n, uint4 *to) {
    uint4 w = make_uint4(0, 0, 0, 0);
#pragma unroll 1
    for (uint32_t i = 0; i < PLAIN_CODES; i++) {
        uint32_t bits = i < n ? bsmm_lane_bf16((float)bsmm_gpu_value(o, row, k + i)) : 0;
        w.x = w.x >> 16 | w.y << 16;
        w.y = w.y >> 16 | w.z << 16;
        w.z = w.z >> 16 | w.w << 16;
        w.w = w.w >> 16 | (bits & 0xffff0000u);
    }
    *to = w;
}

/* Packs one part of a row-major operand with elements of 4 or 6 bits to bf16. Callers pass a
 * constant for `bits`. A scale of NaN becomes NaN in bf16, so the elements of its block become NaN.
 * A scale that is too small for a normal bf16 number occurs only in blocks of zeros, which stay 0
 * with any finite scale. */
static __device__ __forceinline__ void plain_rows(const int bits, const bsmm_pack_plain *p,
                                                  const bsmm_gpu_operand *o, uint32_t part) {
    const int words = bits == 4 ? 1 : 2;
    const bsmm_pack_job *job = &p->job;
    const pack_position at = plain_position(p, part);
    uint32_t scales[PLAIN_ROWS], raw[2 * PLAIN_ROWS], codes[2], out[4];
    uint64_t column = bsmm_axis_at(&job->col_map, min(at.k, job->cols - 1));
    bool within = (at.k & ~(job->scale_lanes * PLAIN_CODES - 1)) < job->cols;
    bool last = at.row0 + (PLAIN_ROWS - 1) * at.row_stride >= job->rows;
    bool whole = job->aligned && at.n == PLAIN_CODES && !last;
    load_scales(job, true, PLAIN_ROWS, at.row0, at.row_stride, column, within, 127, scales);
    if (whole) load_rows_whole(job, bits, PLAIN_CODES, PLAIN_ROWS, &at, raw);
#pragma unroll
    for (int i = 0; i < PLAIN_ROWS; i++) {
        uint32_t code = scale_of(job, scales, i);
        if (!whole) continue;
        item_codes(bits, PLAIN_CODES, raw + i * words, codes);
        emit_bf16(job, bits, codes, factor_bf16x2(1, code), out);
        *plain_target(job, at.row0 + i * at.row_stride, at.k) =
            make_uint4(out[0], out[1], out[2], out[3]);
    }
    uint32_t row = at.row0;
#pragma unroll 1
    for (int i = 0; i < PLAIN_ROWS && !whole; i++, row += at.row_stride)
        if (row < job->rows) plain_define(o, row, at.k, at.n, plain_target(job, row, at.k));
}

/* Packs a whole operand with elements of any width and in any order to bf16, eight elements along K
 * at a time. Adjacent threads have elements that are adjacent in memory, so that accesses coalesce.
 */
static __device__ __noinline__ void plain_all(const bsmm_pack_plain *p, const bsmm_gpu_operand *o) {
    const bsmm_pack_job *job = &p->job;
    const uint32_t chunks = (job->cols + PLAIN_CODES - 1) / PLAIN_CODES;
    const uint64_t items = (uint64_t)job->rows * chunks, step = (uint64_t)gridDim.x * blockDim.x;
#pragma unroll 1
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < items; i += step) {
        uint32_t by = p->by_rows ? chunks : job->rows, slow = (uint32_t)(i / by);
        uint32_t fast = (uint32_t)(i - (uint64_t)slow * by);
        uint32_t row = p->by_rows ? slow : fast, k = (p->by_rows ? fast : slow) * PLAIN_CODES;
        plain_define(o, row, k, min(job->cols - k, PLAIN_CODES), plain_target(job, row, k));
    }
}

/* Packs an operand to bf16. All threads of all thread blocks call this function. `o` and p->job
 * describe the same operand. */
static __device__ __forceinline__ void pack_plain(const bsmm_pack_plain *p,
                                                  const bsmm_gpu_operand *o) {
    const uint32_t mine = threadIdx.x / PACK_THREADS, at_once = blockDim.x / PACK_THREADS;
    if (!p->by_rows || p->bits == 8) {
        plain_all(p, o);
        return;
    }
#pragma unroll 1
    for (uint32_t part = blockIdx.x * at_once; part < p->parts; part += gridDim.x * at_once)
        if (p->bits == 4)
            plain_rows(4, p, o, part + mine);
        else
            plain_rows(6, p, o, part + mine);
}

#endif
