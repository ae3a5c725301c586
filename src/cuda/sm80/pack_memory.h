/* What the packing kernels share of loads, stores, and maxima over threads. */
#ifndef BSMM_CUDA_PACK_MEMORY_H
#define BSMM_CUDA_PACK_MEMORY_H

#include "cuda/pack_lane.h"

enum { PACK_THREADS = 256, PACK_WARP = 32 };

/* `bytes` bytes at once, as wide as their count allows; `from` is aligned accordingly. */
static __device__ __forceinline__ void load_whole(int bytes, const uint8_t *from, uint32_t *raw) {
    if (bytes == 16) {
        uint4 v = __ldg((const uint4 *)from);
        raw[0] = v.x, raw[1] = v.y, raw[2] = v.z, raw[3] = v.w;
    } else if (bytes == 8) {
        uint2 v = __ldg((const uint2 *)from);
        raw[0] = v.x, raw[1] = v.y;
    } else if (bytes % 4 == 0) {
        for (int i = 0; i < bytes / 4; i++)
            raw[i] = __ldg((const uint32_t *)from + i);
    } else { /* 6 */
        const uint16_t *halves = (const uint16_t *)from;
        raw[0] = __ldg(halves) | (uint32_t)__ldg(halves + 1) << 16;
        raw[1] = __ldg(halves + 2);
    }
}

/* The same for any alignment, and with only the first `there` bytes in memory. */
static __device__ __forceinline__ void load_some(int bytes, const uint8_t *from, uint32_t there,
                                                 uint32_t *raw) {
    for (int i = 0; i < bytes; i++) {
        uint32_t byte = (uint32_t)i < there ? from[i] : 0;
        raw[i / 4] = (i % 4 ? raw[i / 4] : 0) | byte << 8 * (i % 4);
    }
}

/* Packed codes of `bits` bits to one per byte; the ones from n on become 0. */
static __device__ __forceinline__ void spread(int bits, int count, const uint32_t *raw, uint32_t n,
                                              uint32_t *codes) {
    for (int i = 0; i < count / 4; i++) {
        if (bits == 8) codes[i] = raw[i];
        if (bits == 4 && i % 2 == 0) bsmm_spread4(raw[i / 2], codes + i);
        if (bits == 6) { /* 3 bytes from byte 3 i on */
            int word = 3 * i / 4, shift = 8 * (3 * i % 4);
            uint32_t high = shift > 8 ? raw[word + 1] : 0;
            codes[i] = bsmm_spread6(__funnelshift_r(raw[word], high, shift));
        }
    }
    if (n >= (uint32_t)count) return;
    for (int i = 0; i < count / 4; i++)
        for (int j = 0; j < 4; j++)
            if (4 * i + j >= (int)n) codes[i] &= ~(0xffu << 8 * j);
}

/* The scale code of an element's block, given the column's part of the offset. */
static __device__ __forceinline__ uint32_t load_scale(const bsmm_pack_job *job, uint32_t row,
                                                      uint64_t column_offset) {
    uint64_t at = bsmm_axis_at(&job->row_map, row) + column_offset;
    return job->scale == 3 ? __ldg((const uint32_t *)job->scales + at) : __ldg(job->scales + at);
}

/* Maximum of both halves over `lanes` neighbours, a power of two. */
static __device__ __forceinline__ uint32_t max_over_lanes(uint32_t halves, int lanes) {
    for (int apart = 1; apart < lanes; apart *= 2)
        halves = bsmm_max_halves(halves, __shfl_xor_sync(0xffffffffu, halves, apart));
    return halves;
}

/* A group's scale, and behind the last row the padding. */
static __device__ __forceinline__ void store_group_scale(const bsmm_pack_job *job, uint32_t row,
                                                         uint32_t k, float scale) {
    float *to = job->group_scales + k / BSMM_PACK_GROUP * job->group_pitch;
    to[row] = scale;
    if (row + 1 == job->rows)
#pragma unroll 1
        for (uint64_t r = job->rows; r < job->group_pitch; r++)
            to[r] = 0;
}

static __device__ __forceinline__ void extend(bsmm_lane_group *all, const bsmm_lane_group *g) {
    all->flags |= g->flags;
    all->high = bsmm_max_u32(all->high, g->high);
    all->low = bsmm_max_u32(all->low, g->low);
    all->inner = bsmm_max_u32(all->inner, g->inner);
}

/* The header is read first, so that threads that tell nothing new cost no atomic operation; what is
 * read may be old, which only costs one. */
static __device__ __forceinline__ void tell_header(bsmm_pack_header *header,
                                                   const bsmm_lane_group *all) {
    uint32_t flags = __reduce_or_sync(0xffffffffu, all->flags);
    uint32_t high = __reduce_max_sync(0xffffffffu, all->high);
    uint32_t low = __reduce_max_sync(0xffffffffu, all->low);
    uint32_t inner = __reduce_max_sync(0xffffffffu, all->inner);
    if (threadIdx.x % PACK_WARP) return;
    uint4 seen = __ldcg((const uint4 *)header);
    if (flags & ~seen.x) atomicOr(&header->flags, flags);
    if (high > seen.y) atomicMax(&header->high, high);
    if (low > seen.z) atomicMax(&header->low, low);
    if (inner > seen.w) atomicMax(&header->inner, inner);
}

static __device__ __forceinline__ bool gate_closed(const uint32_t *gate, uint32_t mask) {
    return gate && !(__ldg(gate) & mask);
}

#endif
