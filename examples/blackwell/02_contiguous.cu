/* Implements step 2 of 7 of this series of GEMM kernels for Blackwell. The block scales of each k
 * block of a tile are contiguous in memory (layout tile_contiguous). All threads copy the scales
 * to shared memory, 16 bytes per thread. Each thread then reads the scales of its four rows there
 * and stores them to tensor memory. This step avoids the scattered loads of step 1, because a warp
 * now reads whole cache lines. A thread now needs few registers for the scales of a k block. It
 * therefore loads them while the products of the k block before still run. */
#ifdef __CUDACC__
#    define STAGES 1
#    define CTAS   1
#    include "device.h"

enum { THREADS = 128, MOST_CHUNKS = 3 * MOST_SCALE_TILES * SCALE_TILE / (THREADS * 16) };

/* Holds a thread's part of the scales of a k block, up to 48 bytes. */
typedef struct held_scales {
    uint4 chunks[MOST_CHUNKS];
} held_scales;

#    include "registers.h"

/* Loads the scales of 128 rows of A and 256 rows of B, which are contiguous for each k block. */
static __device__ void begin_scales(const ladder_params *p, uint32_t row, uint32_t col,
                                    uint32_t block, held_scales *held) {
    const uint32_t bytes =
        p->scale_tiles * SCALE_TILE; /* This is the number of bytes of the scales of 128 rows. */
    const uint8_t *const a = p->plain_scales[0] + (row / TILE_M * p->k_blocks + block) * bytes,
                         *const b =
                             p->plain_scales[1] + (col / TILE_N * p->k_blocks + block) * 2 * bytes;
#    pragma unroll
    for (uint32_t i = 0; i < MOST_CHUNKS; i++) {
        const uint32_t at = (threadIdx.x + i * THREADS) * 16;
        if (at < 3 * bytes)
            held->chunks[i] = *(const uint4 *)(at < bytes ? a + at : b + at - bytes);
    }
}

/* Stores the loaded scales to shared memory. */
static __device__ void store_bytes(const held_scales *held, uint32_t bytes, uint8_t *to) {
#    pragma unroll
    for (uint32_t i = 0; i < MOST_CHUNKS; i++) {
        const uint32_t at = (threadIdx.x + i * THREADS) * 16;
        if (at < bytes) *(uint4 *)(to + at) = held->chunks[i];
    }
}

/* Copies the scales of 128 rows of A and of 256 rows of B from shared memory to tensor memory. Part
 * 0 is the 128 rows of A, and parts 1 and 2 are the rows of B, 128 each. A thread starts all its
 * loads before its first store, so that their latencies overlap. */
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
                                   uint32_t block, const held_scales *held, uint32_t to) {
    uint8_t *const kept = memory + A_BYTES + B_BYTES(CTAS);
    (void)row, (void)col, (void)block;
    store_bytes(held, 3 * p->scale_tiles * SCALE_TILE, kept);
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
