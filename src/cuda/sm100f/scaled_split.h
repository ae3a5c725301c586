/* This part of the sm_100f kernels for many rows of A adds the sums of several parts of K
 * (split-K). scaled_body.h includes this file.
 *
 * If D has too few tiles for all SMs, a cluster of several groups computes one tile. A group is one
 * thread block or a pair of them. Each group multiplies a part of K (p->parts parts in all), and
 * each of its thread blocks writes the sums of its 128 rows to its shared memory (keep_sums). Then
 * all thread blocks of the cluster wait for each other. The thread blocks with the same rank in
 * their groups have sums for the same rows. Group g adds them for the chunks g, g + parts and so on
 * of 32 columns, in ascending order of the parts, and stores the results:
 *
 *     time ------------------------------------------------------------------->
 *     group 0  products of part 0 of K | keep sums | wait | add, store chunk 0
 *     group 1  products of part 1 of K | keep sums | wait | add, store chunk 1
 *
 * The order of the additions does not depend on time, so the bits of D are the same in each run. */

enum {
    PARTS = 4, /* PARTS is the number of parts from which a thread loads sums at once. */
};
static_assert(TILE_M * TILE_N * 4 <= STAGES * (A_BYTES + B_BYTES), "shared memory of the sums");

/* Returns the address, in the shared memory of this thread block's counterpart in the group (a
 * thread block or a pair) that multiplies part number `part` of K, of the byte that has the address
 * `own` in this thread block's shared memory. */
static __device__ __forceinline__ uint32_t address_in(uint32_t own, uint32_t part) {
    return ptx_mapa(own, part * CTAS + group_rank());
}

/* Returns true if a group (one thread block or a pair) of the cluster has found a negative scale of
 * this thread block's rows of A or of the tile's rows of B. */
static __device__ __forceinline__ bool is_any_negative(const bsmm_scaled_params *p,
                                                       const shared *told) {
    uint32_t any = 0;
    for (uint32_t part = 0; SCALED_SIGNED && part < p->parts; part++)
        any |= ptx_grid_load_u32(address_in(ptx_shared_address(&told->negative[0]), part));
    return any;
}

/* Adds the sums of all parts of K, for this thread's row of the tile and for the 32 columns of a
 * chunk, and writes the totals to `total`. The sums of each part lie in the shared memory of the
 * thread block that multiplied it. `partials` is the address of these sums in each thread block's
 * own shared memory. A load from another thread block takes a few hundred cycles. The loads of
 * PARTS parts are therefore all started before the first of these parts is added. */
static __device__ __forceinline__ void add_parts(const bsmm_scaled_params *p, uint32_t partials,
                                                 uint32_t chunk, float *total) {
#pragma unroll
    for (uint32_t i = 0; i < CHUNK; i++)
        total[i] = 0;
    for (uint32_t part = 0; part < p->parts; part += PARTS) {
        float4 sums[PARTS][CHUNK / 4];
#pragma unroll
        for (uint32_t k = 0; k < PARTS; k++) {
            if (part + k >= p->parts) break;
            const uint32_t from = address_in(partials, part + k);
#pragma unroll
            for (uint32_t i = 0; i < CHUNK / 4; i++)
                sums[k][i] = ptx_grid_load_f32x4(from + partial_at(chunk, i, threadIdx.x));
        }
#pragma unroll
        for (uint32_t k = 0; k < PARTS; k++) {
            if (part + k >= p->parts) break;
#pragma unroll
            for (uint32_t i = 0; i < CHUNK / 4; i++) {
                total[4 * i] += sums[k][i].x, total[4 * i + 1] += sums[k][i].y;
                total[4 * i + 2] += sums[k][i].z, total[4 * i + 3] += sums[k][i].w;
            }
        }
    }
}

/* Stores the columns of a tile that this group of thread blocks stores with split-K. Each group of
 * the cluster has the sums of its own part of K for the whole tile. The groups take the chunks of
 * 32 columns in turn. For each of its chunks, a group adds the sums of all groups before it stores
 * the results. */
static __device__ __forceinline__ void epilogue_store_parts(const bsmm_scaled_params *p,
                                                            uint8_t *memory, uint32_t partials,
                                                            shared *told) {
    const corner at = tile_at(p, ptx_cluster_id());
    epilogue f = epilogue_make(p, memory, told);
    epilogue_begin(&f, at, is_any_negative(p, told));
    for (uint32_t chunk = part_of_block();
         chunk < p->tile_n / CHUNK && at.col + chunk * CHUNK < p->n; chunk += p->parts) {
        float total[CHUNK];
        uint32_t bits[CHUNK];
        add_parts(p, partials, chunk, total);
#pragma unroll
        for (uint32_t i = 0; i < CHUNK; i++)
            bits[i] = __float_as_uint(total[i]);
        epilogue_store_chunk(&f, bits, at.col + chunk * CHUNK);
    }
    if (f.lane == 0) PTX_TMA_WAIT(0);
}

/* A group is one thread block or a pair of them. If the groups of a cluster have divided the K of a
 * tile, each group holds partial sums in its shared memory. The function waits until all groups
 * have written them, adds the sums of all groups for this group's columns of the tile, and stores
 * these columns. All threads call it. At the end the thread blocks of the cluster wait for each
 * other again, because none may exit while another one reads its sums. If groups are pairs (CTAS is
 * 2), the caller does this last wait. */
static __device__ __forceinline__ void join_parts(const bsmm_scaled_params *p, uint8_t *memory,
                                                  uint32_t partials, shared *told) {
    if (p->parts == 1) return;
    ptx_cluster_arrive();
    ptx_cluster_wait();
    if (threadIdx.x < EPILOGUE_WARPS * 32) epilogue_store_parts(p, memory, partials, told);
    __syncwarp();
    if (CTAS > 1) return;
    ptx_cluster_arrive();
    ptx_cluster_wait();
}
