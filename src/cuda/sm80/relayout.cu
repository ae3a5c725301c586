/* The kernels in this file copy block scales from one layout to another (relayout_params.h). A
 * thread block of the kernel move_regions copies one region of the scales. It loads the region's
 * bytes in the order of the source, writes them to shared memory, and stores them from there in the
 * order of the destination. Threads can thus both load and store up to 16 consecutive bytes at
 * once. move_regions does not support all layouts and sizes; the kernel move_scales
 * (sm80/recode.cu) copies the scales of all others. The kernel move_both makes two copies in one
 * launch, each as one of these two kernels would make it. */
#include "cuda/sm80/relayout_params.h"
#include "cuda/sm80/relayout_scales.h"

/* Returns the position of the first byte that this thread copies in the first step of `walk`. */
static __device__ __forceinline__ bsmm_region_spot first_spot(const bsmm_region_walk *walk) {
    bsmm_region_spot at = {0, 0, 0, 0};
#pragma unroll
    for (int i = 0; i < BSMM_REGION_THREAD_BITS; i++) {
        const bsmm_region_spot *bit = &walk->of_bits[i];
        if (!(threadIdx.x >> i & 1)) continue;
        at.step += bit->step;
        at.place ^= bit->place;
        at.row += bit->row;
        at.col += bit->col;
    }
    return at;
}

static __device__ __forceinline__ uint4 load_bytes(uint32_t log2, const uint8_t *from, bool known) {
    uint4 v = make_uint4(0, 0, 0, 0);
    if (!known) return v;
    if (log2 == 4) return __ldg((const uint4 *)from);
    v.x = log2 == 2 ? __ldg((const uint32_t *)from) : __ldg(from);
    return v;
}

static __device__ __forceinline__ void store_bytes(uint32_t log2, uint8_t *to,
                                                   const uint8_t *from) {
    if (log2 == 4)
        *(uint4 *)to = *(const uint4 *)from;
    else if (log2 == 2)
        *(uint32_t *)to = *(const uint32_t *)from;
    else
        *to = *from;
}

/* A thread holds 2^loaded bytes in `v`. Writes them to shared memory, 2^p->place_log2 at a time. */
static __device__ __forceinline__ void place_bytes(const bsmm_relayout_regions *p, uint32_t loaded,
                                                   uint8_t *tile, uint32_t place, uint4 v) {
    const uint32_t log2 = p->place_log2;
    const uint32_t words[4] = {v.x, v.y, v.z, v.w};
    if (log2 == 4) {
        *(uint4 *)(tile + place) = v;
        return;
    }
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) {
        if (i > 0 && loaded < 4) return;
        const uint32_t word = place ^ (i & 1 ? p->places[2] : 0) ^ (i & 2 ? p->places[3] : 0);
        if (log2 == 2) {
            *(uint32_t *)(tile + word) = words[i];
            continue;
        }
#pragma unroll
        for (uint32_t j = 0; j < 4; j++) {
            if (j > 0 && loaded < 2) return;
            tile[word ^ (j & 1 ? p->places[0] : 0) ^ (j & 2 ? p->places[1] : 0)] =
                (uint8_t)(words[i] >> 8 * j);
        }
    }
}

/* Loads a region (a part of the scale matrix), whose first scale is at `from`, and writes it to
 * shared memory. A thread issues the loads of `batch` steps before it needs their results. */
static __device__ __forceinline__ void
load_region(const bsmm_relayout_regions *p, uint32_t log2, uint32_t batch, uint8_t *tile,
            const bsmm_region_spot *first, const uint8_t *from, uint32_t row, uint32_t col) {
    const bsmm_relayout_job *job = &p->job;
    for (uint32_t i = 0; i < BSMM_REGION_MOST_STEPS >> log2; i += batch) {
        const bsmm_region_spot *steps = &p->load.of_steps[i];
        uint4 v[4];
#pragma unroll
        for (uint32_t j = 0; j < batch; j++) {
            const bool known = row + first->row + steps[j].row < job->known_rows &&
                               col + first->col + steps[j].col < job->known_cols;
            v[j] = load_bytes(log2, from + first->step + steps[j].step, known);
        }
#pragma unroll
        for (uint32_t j = 0; j < batch; j++)
            place_bytes(p, log2, tile, first->place ^ steps[j].place, v[j]);
    }
}

static __device__ __forceinline__ void store_region(const bsmm_relayout_regions *p, uint32_t log2,
                                                    const uint8_t *tile,
                                                    const bsmm_region_spot *first, uint8_t *to,
                                                    uint32_t row, uint32_t col) {
    const bsmm_relayout_job *job = &p->job;
#pragma unroll 2
    for (uint32_t i = 0; i < BSMM_REGION_MOST_STEPS >> log2; i++) {
        const bsmm_region_spot *step = &p->store.of_steps[i];
        if (row + first->row + step->row < job->rows && col + first->col + step->col < job->cols)
            store_bytes(log2, to + first->step + step->step, tile + (first->place ^ step->place));
    }
}

/* Copies region number `index`. */
static __device__ __forceinline__ void move_region(const bsmm_relayout_regions *p, uint32_t index) {
    __shared__ uint4 memory[(1 << BSMM_REGION_BITS) / sizeof(uint4)];
    const bsmm_relayout_job *job = &p->job;
    uint8_t *tile = (uint8_t *)memory;
    const bsmm_region_spot load = first_spot(&p->load);
    const uint32_t size = job->wide ? 4 : 1;
    const uint32_t row = index / p->across << p->rows_log2;
    const uint32_t col = index % p->across << p->cols_log2;
    const uint8_t *from = job->from + size * (bsmm_axis_at(&job->from_row_map, row) +
                                              bsmm_axis_at(&job->from_col_map, col));
    uint8_t *to = job->to + size * (bsmm_axis_at(&job->to_row_map, row) +
                                    bsmm_axis_at(&job->to_col_map, col));
    if (p->load.log2 == 4)
        load_region(p, 4, 2, tile, &load, from, row, col);
    else if (p->load.log2 == 2)
        load_region(p, 2, 4, tile, &load, from, row, col);
    else
        load_region(p, 0, 4, tile, &load, from, row, col);
    __syncthreads();
    const bsmm_region_spot store = first_spot(&p->store);
    if (p->store.log2 == 4)
        store_region(p, 4, tile, &store, to, row, col);
    else if (p->store.log2 == 2)
        store_region(p, 2, tile, &store, to, row, col);
    else
        store_region(p, 0, tile, &store, to, row, col);
}

extern "C" __global__ void __launch_bounds__(BSMM_REGION_THREADS, 8)
    move_regions(const __grid_constant__ bsmm_relayout_regions params) {
    move_region(&params, blockIdx.x);
}

/* Copies the scales of two matrices. The layouts and sizes of the two copies may differ. */
extern "C" __global__ void __launch_bounds__(BSMM_REGION_THREADS)
    move_both(const __grid_constant__ bsmm_relayout_both both) {
    const uint32_t first = both.copies[0].regions.count, second = blockIdx.x >= first,
                   index = second ? blockIdx.x - first : blockIdx.x;
    const bsmm_relayout_copy *copy = &both.copies[second];
    const uint32_t across = copy->regions.across;
    if (copy->by_regions)
        move_region(&copy->regions, index);
    else
        move_block(&copy->regions.job, BSMM_REGION_THREADS, index % across, index / across);
}
