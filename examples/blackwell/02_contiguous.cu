/* Implements step 2 of 7 of this series of GEMM kernels for Blackwell. The block scales of each k
 * block of a tile are contiguous in memory (layout tile_contiguous). All threads copy the scales
 * to shared memory, 16 bytes per thread. Each thread then reads the scales of its four rows there
 * and stores them to tensor memory. This step avoids the scattered loads of step 1, because a warp
 * now reads whole cache lines. */
#ifdef __CUDACC__
#    define STAGES 1
#    define CTAS   1
#    include "registers.h"

enum { THREADS = 128, MOST_CHUNKS = 3 * MOST_SCALE_TILES * SCALE_TILE / (THREADS * 16) };

/* Copies the `bytes` bytes of A's scales and the 2 * `bytes` bytes of B's scales to shared memory.
 * A thread begins all of its loads before it needs the result of the first one. */
static __device__ void copy_bytes(const uint8_t *a, const uint8_t *b, uint32_t bytes, uint8_t *to) {
    uint4 chunks[MOST_CHUNKS];
#    pragma unroll
    for (uint32_t i = 0; i < MOST_CHUNKS; i++) {
        const uint32_t at = (threadIdx.x + i * THREADS) * 16;
        if (at < 3 * bytes) chunks[i] = *(const uint4 *)(at < bytes ? a + at : b + at - bytes);
    }
#    pragma unroll
    for (uint32_t i = 0; i < MOST_CHUNKS; i++) {
        const uint32_t at = (threadIdx.x + i * THREADS) * 16;
        if (at < 3 * bytes) *(uint4 *)(to + at) = chunks[i];
    }
}

/* Copies the scales of all rows from shared memory to tensor memory. A thread begins its reads of
 * all rows before it stores. Part 0 belongs to A, and parts 1 and 2 belong to B. */
static __device__ void move_rows(const ladder_params *p, const uint8_t *from, uint32_t to) {
    const uint32_t pitch = p->scale_tiles * 4, lane = threadIdx.x % 32;
    uint32_t words[3][MOST_SCALE_TILES][4];
#    pragma unroll
    for (uint32_t i = 0; i < 12 * MOST_SCALE_TILES; i++) {
        const uint32_t part = i / 4 % 3, t = i / 12;
        if (t < p->scale_tiles)
            words[part][t][i % 4] =
                *(const uint32_t *)(from + (part * SCALE_ROWS + lane + i % 4 * 32) * pitch + 4 * t);
    }
#    pragma unroll
    for (uint32_t i = 0; i < 3 * MOST_SCALE_TILES; i++) {
        const uint32_t part = i % 3, t = i / 3;
        if (t < p->scale_tiles)
            store_words(part == 0 ? to + 4 * t : to + B_SCALES_AT + 8 * t + 4 * (part - 1),
                        words[part][t]);
    }
}

static __device__ void move_scales(const ladder_params *p, uint32_t row, uint32_t col,
                                   uint32_t block, uint32_t to) {
    const uint32_t bytes =
        p->scale_tiles * SCALE_TILE; /* This is the number of bytes of the scales of 128 rows. */
    const uint8_t *const a = p->plain_scales[0] + (row / TILE_M * p->k_blocks + block) * bytes,
                         *const b =
                             p->plain_scales[1] + (col / TILE_N * p->k_blocks + block) * 2 * bytes;
    uint8_t *const kept = memory + A_BYTES + B_BYTES(CTAS);
    copy_bytes(a, b, bytes, kept);
    __syncthreads();
    move_rows(p, kept, to);
}
#else
#    include "host.h"

int main(int count, char **arguments) {
    const ladder_step step = {.layout = BSMM_LAYOUT_TILE_CONTIGUOUS, .stages = 1, .threads = 128};
    return ladder_run(&step, count, arguments);
}
#endif
