/* Implements step 1 of 7 of this series of GEMM kernels for Blackwell. Threads copy block scales
 * to tensor memory through registers. The kernel loads one k block (128 bytes of each row) at a
 * time. The scales are row-major, as quantizers write them. Lane l of tensor memory must hold the
 * scales of rows l, l + 32, l + 64 and l + 96, so each thread loads four bytes of each of these
 * rows. This step is slow, because it loads 4 bytes from rows that are far apart, and every thread
 * waits for every k block. */
#ifdef __CUDACC__
#    define STAGES 1
#    define CTAS   1
#    include "device.h"

/* This step loads no scales in advance. */
typedef struct held_scales {
    uint8_t none;
} held_scales;

#    include "registers.h"

static __device__ void begin_scales(const ladder_params *p, uint32_t row, uint32_t col,
                                    uint32_t block, held_scales *held) {
    (void)p, (void)row, (void)col, (void)block, (void)held;
}

/* Copies the scales of 128 rows, beginning with row `row`, to tensor memory. Each warp writes only
 * its 32 lanes of tensor memory, so every warp copies all scales. `step` is the number of columns
 * of tensor memory from one scale tile to the next along K. */
static __device__ void move_rows(const ladder_params *p, int side, uint32_t row, uint32_t block,
                                 uint32_t to, uint32_t step) {
    const uint32_t pitch = p->k_blocks * p->scale_tiles * 4, lane = threadIdx.x % 32;
    for (uint32_t t = 0; t < p->scale_tiles; t++) {
        const uint8_t *from =
            p->plain_scales[side] + (row + lane) * pitch + (block * p->scale_tiles + t) * 4;
        uint32_t words[4];
        for (uint32_t i = 0; i < 4; i++)
            words[i] = *(const uint32_t *)(from + i * 32 * pitch);
        store_words(to + step * t, words);
    }
}

static __device__ void move_scales(const ladder_params *p, uint32_t row, uint32_t col,
                                   uint32_t block, const held_scales *held, uint32_t to) {
    (void)held;
    move_rows(p, 0, row, block, to, 4);
    move_rows(p, 1, col, block, to + B_SCALES_AT, 8);
    move_rows(p, 1, col + SCALE_ROWS, block, to + B_SCALES_AT + 4, 8);
}
#else
#    include "host.h"

int main(int count, char **arguments) {
    const ladder_step step = {.layout = BSMM_LAYOUT_ROW_MAJOR, .stages = 1, .threads = 128};
    return ladder_run(&step, count, arguments);
}
#endif
