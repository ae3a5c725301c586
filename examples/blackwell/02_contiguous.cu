/* Implements step 2 of 7 of this series of GEMM kernels for Blackwell. The block scales of each k
 * block of a tile are contiguous in memory (layout tile_contiguous). All threads copy the scales
 * to shared memory, 16 bytes per thread. Each thread then reads the scales of its four rows there
 * and stores them to tensor memory. This step avoids the scattered loads of step 1, because a warp
 * now reads whole cache lines. */
#ifdef __CUDACC__
#    define STAGES 1
#    define CTAS   1
#    include "registers.h"

static __device__ void copy_bytes(const uint8_t *from, uint32_t bytes, uint8_t *to) {
    for (uint32_t at = threadIdx.x * 16; at < bytes; at += blockDim.x * 16)
        *(uint4 *)(to + at) = *(const uint4 *)(from + at);
}

/* Copies the scales of 128 rows from shared memory to tensor memory. `step` is the distance in
 * columns of two scale tiles along K. */
static __device__ void move_rows(const ladder_params *p, const uint8_t *from, uint32_t to,
                                 uint32_t step) {
    const uint32_t pitch = p->scale_tiles * 4, lane = threadIdx.x % 32;
    for (uint32_t t = 0; t < p->scale_tiles; t++) {
        uint32_t words[4];
        for (uint32_t i = 0; i < 4; i++)
            words[i] = *(const uint32_t *)(from + (lane + i * 32) * pitch + 4 * t);
        store_words(to + step * t, words);
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
    copy_bytes(a, bytes, kept);
    copy_bytes(b, 2 * bytes, kept + bytes);
    __syncthreads();
    move_rows(p, kept, to, 4);
    move_rows(p, kept + bytes, to + B_SCALES_AT, 8);
    move_rows(p, kept + 2 * bytes, to + B_SCALES_AT + 4, 8);
}
#else
#    include "host.h"

int main(int count, char **arguments) {
    const ladder_step step = {.layout = BSMM_LAYOUT_TILE_CONTIGUOUS, .stages = 1, .threads = 128};
    return ladder_run(&step, count, arguments);
}
#endif
