/* Loads block scales of one byte four at a time, as one uint32. Eight adjacent lanes have elements
 * in the same four scale blocks of up to eight rows. Each of these lanes therefore loads and tests
 * the scales of one row, and passes the result to the other lanes by a shuffle. */
#ifndef BSMM_CUDA_SM80_PACK_WORDS_H
#define BSMM_CUDA_SM80_PACK_WORDS_H

#include "cuda/sm80/pack_memory.h"

enum { WORD_LANES = 8 };

static __device__ __forceinline__ uint64_t column_at(const bsmm_pack_job *job, uint32_t block,
                                                     uint32_t k) {
    const bsmm_axis_map *map = &job->col_map;
    bool plain = map->count == 2 && map->digits[0].extent == block;
    return plain ? k / block * map->digits[1].stride : bsmm_axis_at(map, k);
}

/* Loads four scales from any layout. This is the slow path. The function is not inlined, so that
 * the code of the fast path stays together. */
static __device__ __noinline__ uint32_t scale_word_any(const bsmm_pack_job *job, uint32_t block,
                                                       uint32_t none, uint32_t row, uint32_t k) {
    uint32_t codes = none * 0x01010101u;
    if (row >= job->rows || k >= job->cols) return codes;
    uint64_t at = bsmm_axis_at(&job->row_map, row);
    if (job->fours)
        return __ldg((const uint32_t *)(job->scales + at + bsmm_axis_at(&job->col_map, k)));
#pragma unroll 1
    for (uint32_t i = 0; i < 4 && k + i * block < job->cols; i++) {
        uint32_t code = __ldg(job->scales + at + column_at(job, block, k + i * block));
        codes = (codes & ~(0xffu << 8 * i)) | code << 8 * i;
    }
    return codes;
}

/* Returns the offset in bytes of word number `word` of a row's scales. A word holds four scales. */
static __device__ __forceinline__ uint64_t word_at(const bsmm_pack_words *words, uint32_t row,
                                                   uint32_t word) {
    uint64_t far = row / 128 * words->high + word * words->across;
    return far + (row % 32 * words->low + row / 32 % 4 * words->middle);
}

/* Loads the scale codes of four consecutive blocks of a row, and returns them as the four bytes of
 * a word. A block has `block` elements, and the first of the four begins at element k. For blocks
 * past the end of K or past the last row, the byte is the code `none`. */
static __device__ __forceinline__ uint32_t scale_word(const bsmm_pack_job *job, uint32_t block,
                                                      uint32_t none, uint32_t row, uint32_t k) {
    if (job->fours != 2 || row >= job->rows || k >= job->cols)
        return scale_word_any(job, block, none, row, k);
    return __ldg((const uint32_t *)(job->scales + word_at(&job->words, row, k / (4 * block))));
}

/* Exchanges words among eight adjacent lanes, each of which handles another row. Lane i of the
 * eight passes its `value`. All lanes get the `value` of the lane with number `i` among their eight
 * lanes. */
static __device__ __forceinline__ uint32_t from_row(uint32_t value, int i) {
    return __shfl_sync(0xffffffffu, value, (threadIdx.x % PACK_WARP & ~(WORD_LANES - 1u)) + i);
}

/* Transposes a 4 x 4 matrix of bytes. Four lanes l, l + stride, l + 2 * stride and l + 3 * stride
 * hold its four rows, and `word` has the 4 bytes of the lane's row. After the call, the lane that
 * passed row i has column i: byte i of each of the four words, in the order of the rows. */
static __device__ __forceinline__ uint32_t transposed_bytes(uint32_t word, uint32_t stride) {
    const uint32_t lane = threadIdx.x;
    uint32_t other = __shfl_xor_sync(0xffffffffu, word, stride);
    word = __byte_perm(word, other, lane & stride ? 0x3715 : 0x6240);
    other = __shfl_xor_sync(0xffffffffu, word, 2 * stride);
    return __byte_perm(word, other, lane & 2 * stride ? 0x3276 : 0x5410);
}

/* Returns 0xff in each byte in which `codes` has 255, the e8m0 code of NaN. */
static __device__ __forceinline__ uint32_t nan_bytes(uint32_t codes) {
    uint32_t found = ((codes & 0x7f7f7f7fu) + 0x01010101u) & codes & 0x80808080u;
    return (found >> 7) * 0xff;
}

/* Returns the largest byte of a in the high half and the largest byte of b in the low half. */
static __device__ __forceinline__ uint32_t largest_bytes(uint32_t a, uint32_t b) {
    const uint32_t even = 0x00ff00ffu;
    a = __vmaxu2(a & even, a >> 8 & even);
    b = __vmaxu2(b & even, b >> 8 & even);
    return __vmaxu2(__byte_perm(b, a, 0x5410), __byte_perm(b, a, 0x7632));
}

#endif
