/* The packing kernels share these loads, stores and reductions. Packing converts an operand to a
 * format that the tensor cores multiply (gpu/pack.h). */
#ifndef BSMM_CUDA_SM80_PACK_MEMORY_H
#define BSMM_CUDA_SM80_PACK_MEMORY_H

#include "cuda/sm80/gate.h"
#include "gpu/pack_lane.h"

enum { PACK_THREADS = 256, PACK_WARP = 32 };

/* Loads `bytes` bytes with the widest loads whose width divides `bytes`. `from` must be aligned to
 * the width of these loads. */
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
    } else { /* 8 elements of 6 bits take 6 bytes. */
        const uint16_t *halves = (const uint16_t *)from;
        raw[0] = __ldg(halves) | (uint32_t)__ldg(halves + 1) << 16;
        raw[1] = __ldg(halves + 2);
    }
}

/* Loads `bytes` bytes from an address of any alignment. Only the first `there` bytes exist. The
 * function sets the remaining bytes to 0. */
static __device__ __forceinline__ void load_some(int bytes, const uint8_t *from, uint32_t there,
                                                 uint32_t *raw) {
    for (int i = 0; i < bytes; i++) {
        uint32_t byte = (uint32_t)i < there ? from[i] : 0;
        raw[i / 4] = (i % 4 ? raw[i / 4] : 0) | byte << 8 * (i % 4);
    }
}

/* Spreads packed elements of 6 bits to one element per byte. */
static __device__ __forceinline__ void spread6(int count, const uint32_t *raw, uint32_t *codes) {
    /* Four elements of 6 bits take 3 bytes. The four elements of iteration i begin at byte 3 i. */
    for (int i = 0; i < count / 4; i++) {
        int word = 3 * i / 4, shift = 8 * (3 * i % 4);
        uint32_t high = shift > 8 ? raw[word + 1] : 0;
        codes[i] = bsmm_spread6(__funnelshift_r(raw[word], high, shift));
    }
}

/* Converts loaded bytes to the form in which the kernels process elements. Elements of 4 bits stay
 * packed. Elements of 6 and 8 bits are spread to one per byte. */
static __device__ __forceinline__ void item_codes(int bits, int count, const uint32_t *raw,
                                                  uint32_t *codes) {
    int words = bits == 4 ? count / 8 : count / 4;
    if (bits == 6)
        spread6(count, raw, codes);
    else
        for (int i = 0; i < words; i++)
            codes[i] = raw[i];
}

/* `codes` holds `count` adjacent elements of a row. Sets the elements from index n on to 0, because
 * they lie past the end of K. */
static __device__ __forceinline__ void item_cut(int bits, int count, uint32_t n, uint32_t *codes) {
    int width = bits == 4 ? 4 : 8, per_word = 32 / width;
    if (n >= (uint32_t)count) return;
    for (int i = 0; i < count / per_word; i++) {
        int left = max((int)n - i * per_word, 0);
        if (left < per_word) codes[i] &= (1u << left * width) - 1;
    }
}

/* Sets all bits of the words in `raw` to 0, except the first `count` bits. */
static __device__ __forceinline__ void cut_bits(uint32_t count, int words, uint32_t *raw) {
    for (int i = 0; i < words; i++) {
        int left = max((int)count - 32 * i, 0);
        if (left < 32) raw[i] &= (1u << left) - 1;
    }
}

/* Spreads 16 packed elements to one element per byte. Only the first n elements exist. The function
 * sets the remaining elements to 0. */
static __device__ __forceinline__ void spread_rows(int bits, const uint32_t *raw, uint32_t n,
                                                   uint32_t *codes) {
    for (int i = 0; i < 4; i++) {
        if (bits == 8) codes[i] = raw[i];
        if (bits == 4 && i % 2 == 0) bsmm_spread4(raw[i / 2], codes + i);
    }
    if (bits == 6) spread6(16, raw, codes);
    item_cut(8, 16, n, codes);
}

/* Loads the scale code of the block that contains an element. column_offset is the part of the
 * scale's offset that depends on the element's column. */
static __device__ __forceinline__ uint32_t load_scale(const bsmm_pack_job *job, bool bytes,
                                                      uint32_t row, uint64_t column_offset) {
    uint64_t at = bsmm_axis_at(&job->row_map, row) + column_offset;
    if (!bytes && job->scale == 3) return __ldg((const uint32_t *)job->scales + at);
    return __ldg(job->scales + at);
}

/* A thread packs elements in `items` rows: row0, row0 + row_stride and so on, and needs the scale
 * code of each row. job->scale_lanes adjacent threads have elements in the same scale blocks, so
 * they need the same codes. To save loads, each of them loads the codes of different rows to
 * mine[]. scale_of later exchanges the codes by shuffles. A shuffle at this place would have to
 * wait for the loads. */
static __device__ __forceinline__ void load_scales(const bsmm_pack_job *job, bool bytes, int items,
                                                   uint32_t row0, uint32_t row_stride,
                                                   uint64_t column, bool wanted, uint32_t none,
                                                   uint32_t *mine) {
    uint32_t scale_lanes = job->scale_lanes, lane = threadIdx.x & (scale_lanes - 1);
#pragma unroll
    for (int i = 0; i < items; i++) {
        uint32_t row = row0 + (i * scale_lanes + lane) * row_stride;
        if (i * scale_lanes >= items) continue;
        mine[i] = wanted && row < job->rows ? load_scale(job, bytes, row, column) : none;
    }
}

/* Returns the scale code for row i of this thread. Adjacent threads whose elements share scale
 * blocks have divided the loads of these scales among them (load_scales). The code may therefore be
 * in another thread, from which a warp shuffle gets it. All threads of the warp must call this
 * function. */
static __device__ __forceinline__ uint32_t scale_of(const bsmm_pack_job *job, const uint32_t *mine,
                                                    int i) {
    uint32_t scale_lanes = job->scale_lanes, lane = threadIdx.x % PACK_WARP;
    uint32_t code = scale_lanes == 4 ? mine[i / 4] : scale_lanes == 2 ? mine[i / 2] : mine[i];
    return __shfl_sync(0xffffffffu, code, (lane & ~(scale_lanes - 1)) + (i & (scale_lanes - 1)));
}

/* Returns the maximum of the low 16-bit halves and the maximum of the high halves over `lanes`
 * adjacent lanes. `lanes` is a power of two. */
static __device__ __forceinline__ uint32_t max_over_lanes(uint32_t halves, int lanes) {
    for (int distance = 1; distance < lanes; distance *= 2)
        halves = bsmm_max_halves(halves, __shfl_xor_sync(0xffffffffu, halves, distance));
    return halves;
}

/* Writes zeros to the padding that follows the group scale of the operand's last row, if that row
 * is one of this thread's rows. A group is 128 elements along K, and k is its first element. */
static __device__ __forceinline__ void pad_group_scales(const bsmm_pack_job *job, uint32_t row0,
                                                        uint32_t row_stride, uint32_t items,
                                                        uint32_t k) {
    /* If row0 is past the last row, the difference wraps around to a large number, and the function
     * returns. */
    uint32_t rows_to_last = job->rows - 1 - row0;
    if ((rows_to_last & (row_stride - 1)) || rows_to_last >= items * row_stride) return;
    float *to = job->group_scales + k / BSMM_PACK_GROUP * job->group_pitch;
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

/* Updates the header of the packed operand by the flags and the range of values (`all`) that a
 * thread block has packed. All threads of the block call the function, and the first one updates
 * the header. To save atomic operations, this thread reads the header first, and skips each atomic
 * operation that would not change it. If it reads an old value, it at worst executes an unnecessary
 * one. */
static __device__ __forceinline__ void tell_header(bsmm_pack_header *header,
                                                   const bsmm_lane_group *all) {
    __shared__ uint4 warps[PACK_THREADS / PACK_WARP];
    uint32_t flags = __reduce_or_sync(0xffffffffu, all->flags);
    uint32_t high = __reduce_max_sync(0xffffffffu, all->high);
    uint32_t low = __reduce_max_sync(0xffffffffu, all->low);
    uint32_t inner = __reduce_max_sync(0xffffffffu, all->inner);
    if (threadIdx.x % PACK_WARP == 0)
        warps[threadIdx.x / PACK_WARP] = make_uint4(flags, high, low, inner);
    __syncthreads();
    if (threadIdx.x >= PACK_WARP) return;
    const uint4 one = warps[threadIdx.x % (PACK_THREADS / PACK_WARP)];
    flags = __reduce_or_sync(0xffffffffu, one.x);
    high = __reduce_max_sync(0xffffffffu, one.y);
    low = __reduce_max_sync(0xffffffffu, one.z);
    inner = __reduce_max_sync(0xffffffffu, one.w);
    if (threadIdx.x) return;
    bsmm_cuda_await_kernel_before();
    uint4 seen = __ldcg((const uint4 *)header);
    if (flags & ~seen.x) atomicOr(&header->flags, flags);
    if (high > seen.y) atomicMax(&header->high, high);
    if (low > seen.z) atomicMax(&header->low, low);
    if (inner > seen.w) atomicMax(&header->inner, inner);
}

#endif
