/* Loads elements of at most 8 bits for the packing kernels. Threads load elements of row-major
 * operands directly. Elements of column-major operands pass through a tile in shared memory, which
 * transposes them. */
#ifndef BSMM_CUDA_SM80_PACK_LOAD_H
#define BSMM_CUDA_SM80_PACK_LOAD_H

#include "cuda/sm80/pack_memory.h"

/* A tile in shared memory has TILE_SIDE rows and TILE_SIDE columns of elements, which take
 * TILE_WORDS words of 4 bytes. Each element takes one byte. */
enum { TILE_SIDE = 128, TILE_WORDS = TILE_SIDE * 32 };

/* Describes which elements of the operand a thread packs: 8 or 16 consecutive elements along K,
 * beginning at element `k`, in each of several rows. Its rows are row0, row0 + row_stride, row0 + 2
 * * row_stride and so on. `n` is the number of its elements in a row that lie before the end of K.
 */
typedef struct pack_position {
    uint32_t row0, row_stride, k, n;
} pack_position;

static __device__ __forceinline__ const uint8_t *row_address(const bsmm_pack_job *job, int bits,
                                                             const pack_position *p) {
    return job->data + p->row0 * job->line_bytes + (uint64_t)p->k / 8 * bits;
}

/* Loads a thread's elements of every row that the thread packs. The elements must be aligned and
 * lie wholly inside the operand. */
static __device__ __forceinline__ void load_rows_whole(const bsmm_pack_job *job, int bits,
                                                       int count, int items, const pack_position *p,
                                                       uint32_t *raw) {
    int bytes = bits * count / 8, words = (bytes + 3) / 4;
    const uint8_t *from = row_address(job, bits, p);
    uint64_t step = p->row_stride * job->line_bytes;
#pragma unroll
    for (int i = 0; i < items; i++)
        load_whole(bytes, from + i * step, raw + i * words);
}

/* Loads n elements from an address of any alignment, byte by byte. This is the slow path. The
 * function is not inlined, so that the code of the fast path stays together. */
static __device__ __noinline__ uint4 load_slow(int bits, const uint8_t *from, uint32_t n) {
    uint32_t raw[4] = {0, 0, 0, 0};
#pragma unroll 1
    for (uint32_t i = (n * bits + 7) / 8; i-- > 0;) {
        raw[3] = raw[3] << 8 | raw[2] >> 24;
        raw[2] = raw[2] << 8 | raw[1] >> 24;
        raw[1] = raw[1] << 8 | raw[0] >> 24;
        raw[0] = raw[0] << 8 | from[i];
    }
    cut_bits(n * bits, 4, raw);
    return make_uint4(raw[0], raw[1], raw[2], raw[3]);
}

/* Loads a thread's `count` elements in each of `items` rows to `raw`, which needs (bits * count / 8
 * + 3) / 4 words for each row. All loads are issued before the first result is used, so that their
 * latencies overlap. */
static __device__ __forceinline__ void load_rows(const bsmm_pack_job *job, int bits, int count,
                                                 int items, const pack_position *p, uint32_t *raw) {
    int bytes = bits * count / 8, words = (bytes + 3) / 4;
    const uint8_t *from = row_address(job, bits, p);
    uint64_t step = p->row_stride * job->line_bytes;
    bool whole = p->n == (uint32_t)count && p->row0 + (items - 1) * p->row_stride < job->rows;
    if (job->aligned && whole) {
        load_rows_whole(job, bits, count, items, p, raw);
        return;
    }
#pragma unroll
    for (int i = 0; i < items; i++) {
        bool there = p->row0 + i * p->row_stride < job->rows;
        uint4 loaded = load_slow(bits, from + i * step, there ? p->n : 0);
        const uint32_t all[] = {loaded.x, loaded.y, loaded.z, loaded.w};
        for (int j = 0; j < words; j++)
            raw[i * words + j] = all[j];
    }
}

/* Loads only a thread's elements of row i, or zeros if the row does not exist. Elements of 4 bits
 * stay packed. Elements of 6 and 8 bits become one per byte. */
static __device__ __forceinline__ void load_row_again(const bsmm_pack_job *job, int bits, int count,
                                                      int i, const pack_position *p,
                                                      uint32_t *codes) {
    uint32_t raw[4];
    bool there = p->row0 + i * p->row_stride < job->rows;
    const uint8_t *from = row_address(job, bits, p) + i * (p->row_stride * job->line_bytes);
    load_some(bits * count / 8, from, there ? (p->n * bits + 7) / 8 : 0, raw);
    cut_bits(p->n * bits, (bits * count / 8 + 3) / 4, raw);
    item_codes(bits, count, raw, codes);
}

/* Loads a tile of 128 rows x 128 elements of K from a column-major operand to shared memory, with
 * one byte per element and K contiguous. Each thread loads 16 rows of 4 adjacent columns,
 * transposes 4 x 4 bytes at a time in registers, and writes words that have 4 elements of one row.
 * A row of the tile has 32 words. Word w of row r is stored in place of word w ^ 4 * (r / 16 % 8)
 * of the row. This swizzle avoids bank conflicts: 8 adjacent lanes write to rows that are 16 rows
 * apart, i.e. to the same bank without a swizzle. Later, each thread reads 16 bytes along a row. */
static __device__ __forceinline__ void
fill_tile(const bsmm_pack_job *job, int bits, uint32_t tile_row, uint32_t tile_k, uint32_t *tile) {
    uint32_t raw[4][4], rows16[4][4], strip = threadIdx.x % 8, quad = threadIdx.x / 8;
    uint32_t row = tile_row + strip * 16, first_k = tile_k + quad * 4;
    uint32_t there = row < job->rows ? min(job->rows - row, 16) : 0;
    const uint8_t *from = job->data + first_k * job->line_bytes + (uint64_t)row / 8 * bits;
    if (job->aligned && there == 16 && first_k + 3 < job->cols) {
#pragma unroll
        for (int j = 0; j < 4; j++)
            load_whole(2 * bits, from + j * job->line_bytes, raw[j]);
    } else {
#pragma unroll
        for (int j = 0; j < 4; j++)
            load_some(2 * bits, from + j * job->line_bytes,
                      first_k + j < job->cols ? (there * bits + 7) / 8 : 0, raw[j]);
    }
#pragma unroll
    for (int j = 0; j < 4; j++)
        spread_rows(bits, raw[j], there, rows16[j]);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        uint32_t a = bsmm_pick_bytes(rows16[0][i], rows16[1][i], 0x5140);
        uint32_t b = bsmm_pick_bytes(rows16[0][i], rows16[1][i], 0x7362);
        uint32_t c = bsmm_pick_bytes(rows16[2][i], rows16[3][i], 0x5140);
        uint32_t d = bsmm_pick_bytes(rows16[2][i], rows16[3][i], 0x7362);
        uint32_t *to = tile + (strip * 16 + i * 4) * 32 + (quad ^ strip * 4);
        to[0] = bsmm_pick_bytes(a, c, 0x5410);
        to[32] = bsmm_pick_bytes(a, c, 0x7632);
        to[64] = bsmm_pick_bytes(b, d, 0x5410);
        to[96] = bsmm_pick_bytes(b, d, 0x7632);
    }
}

/* Packs eight elements of 4 bits, which arrive one per byte, into one word. */
static __device__ __forceinline__ uint32_t nibbles(uint32_t low, uint32_t high) {
    return __byte_perm(low | low >> 4, high | high >> 4, 0x6420);
}

/* Reads `count` elements of a row from the tile in shared memory, beginning with element chunk *
 * count. */
static __device__ __forceinline__ void tile_codes(int bits, int count, const uint32_t *tile,
                                                  uint32_t row, uint32_t chunk, uint32_t *codes) {
    const uint32_t *words = tile + row * 32 + (chunk * (count / 4) ^ row / 16 % 8 * 4);
    for (int i = 0; i < count / 4; i++)
        if (bits != 4)
            codes[i] = words[i];
        else if (i % 2 == 0)
            codes[i / 2] = nibbles(words[i], words[i + 1]);
}

#endif
