/* Implements step 3 of 7 of this series of GEMM kernels for Blackwell. The block scales have the
 * layout nv_128x4. A scale tile of 128 rows by 4 blocks holds the rows in the order of tensor
 * memory, with 16 bytes for each lane. A thread loads 16 bytes, which are the four registers that
 * it stores by tcgen05.st. Unlike step 2, this step does not copy the scales through shared memory.
 */
#ifdef __CUDACC__
#    define STAGES 1
#    define CTAS   1
#    include "device.h"

/* Holds a thread's scales of a k block: 16 bytes of each scale tile of A's 128 rows and of each
 * half of B's 256 rows. */
typedef struct held_scales {
    uint4 words[3][MOST_SCALE_TILES];
} held_scales;

#    include "registers.h"

/* Loads this thread's scales of 128 rows, beginning with row `row`: 16 bytes of each scale tile. */
static __device__ void load_rows(const ladder_params *p, int side, uint32_t row, uint32_t block,
                                 uint4 *words) {
    const uint32_t first = (row / SCALE_ROWS * p->k_blocks + block) * p->scale_tiles;
#    pragma unroll
    for (uint32_t t = 0; t < MOST_SCALE_TILES; t++)
        if (t < p->scale_tiles)
            words[t] = *(const uint4 *)(p->plain_scales[side] + (first + t) * SCALE_TILE +
                                        threadIdx.x % 32 * 16);
}

/* Stores the scales of 128 rows to tensor memory, one scale tile (128 rows x 4 scales along K)
 * after another. `step` is the distance in columns of tensor memory from one scale tile to the next
 * one along K. */
static __device__ void store_rows_of_scales(const ladder_params *p, const uint4 *words, uint32_t to,
                                            uint32_t step) {
#    pragma unroll
    for (uint32_t t = 0; t < MOST_SCALE_TILES; t++) {
        const uint32_t four[4] = {words[t].x, words[t].y, words[t].z, words[t].w};
        if (t < p->scale_tiles) store_words(to + step * t, four);
    }
}

static __device__ void begin_scales(const ladder_params *p, uint32_t row, uint32_t col,
                                    uint32_t block, held_scales *held) {
    load_rows(p, 0, row, block, held->words[0]);
    load_rows(p, 1, col, block, held->words[1]);
    load_rows(p, 1, col + SCALE_ROWS, block, held->words[2]);
}

static __device__ void move_scales(const ladder_params *p, uint32_t row, uint32_t col,
                                   uint32_t block, const held_scales *held, uint32_t to) {
    (void)row, (void)col, (void)block;
    store_rows_of_scales(p, held->words[0], to, 4);
    store_rows_of_scales(p, held->words[1], to + B_SCALES_AT, 8);
    store_rows_of_scales(p, held->words[2], to + B_SCALES_AT + 4, 8);
}
#else
#    include "host.h"

int main(int count, char **arguments) {
    const ladder_step step = {.layout = BSMM_LAYOUT_NV_128X4, .stages = 1, .threads = 128};
    return ladder_run(&step, count, arguments);
}
#endif
