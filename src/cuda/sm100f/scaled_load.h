/* These functions load the elements and scales of the sm_100f kernels by TMA. One thread of each
 * thread block calls load_tiles. scaled_body.h includes this file. */

/* Loads the scales of a k block. A copy always has SCALE_TILES scale tiles (4 scales along K of 128
 * rows). In the last k block, the copy may also bring scale tiles past the end of K. Those scale
 * tiles belong to other rows, and no product reads them. */
static __device__ __forceinline__ void load_scales(const bsmm_scaled_params *p, uint32_t to,
                                                   corner at, uint32_t block, uint32_t barrier) {
    const uint32_t rows = SCALE_TILE / BSMM_SCALED_SCALE_BOX;
#pragma unroll
    for (int i = 0; i < SCALE_PARTS; i++)
        group_load(to + i * PART_BYTES, &p->scales[i > 0], 0,
                   rows * (scale_rows_of(at, (uint32_t)i) * p->scale_tiles + block * SCALE_TILES),
                   barrier);
}

/* Tells the mbarriers of a stage how many bytes the copies of a k block will write, so that the
 * barriers complete when all bytes have arrived. A group is one thread block or a pair, and its
 * first thread block is called the leader. The leader's "full" barrier expects the bytes of the
 * whole group. */
static __device__ __forceinline__ void announce(const bsmm_scaled_params *p, shared *told,
                                                uint32_t stage) {
    if (group_rank() == LEADER)
        ptx_mbarrier_arrive_expect(ptx_shared_address(&told->full[stage]),
                                   CTAS * (p->element_bytes + SCALE_BYTES));
}

/* Loads 128 bytes of each of `rows` rows of A or B. `y` is the first row in the tensor map, and `x`
 * is the first element of each row in the tensor map. */
static __device__ __forceinline__ void load_rows(uint32_t to, const void *map, uint32_t x,
                                                 uint32_t y, uint32_t rows, uint32_t barrier) {
    for (uint32_t row = 0; row < rows; row += BSMM_SCALED_LOAD_ROWS)
        group_load(to + row * ROW_BYTES, map, x, y + row, barrier);
}

/* Loads a stage in BURSTS bursts of TMA copies. It is used if TMA spreads elements of 4 or 6 bits
 * to bytes. `first` holds the first row of A and the first row of B that the stage holds, and
 * `count` is the number of k blocks that the thread block has loaded before.
 *
 * L2 delivers 64 bytes a cycle to an SM. Spread to bytes, these become up to 128 bytes a cycle,
 * which is all that shared memory can write. If TMA loaded a whole stage at once, the tensor cores
 * could not read shared memory meanwhile, and would be idle for the time of half a stage. The
 * function therefore issues only a part of the copies at a time. It issues burst 0 when the stage
 * is empty. It issues burst i when the tensor cores have completed the first i products of the next
 * stage in the ring. */
static __device__ __forceinline__ void load_bursts(const bsmm_scaled_params *p, uint32_t base,
                                                   shared *told, corner first, uint32_t block,
                                                   uint32_t count) {
    enum {
        A_ROWS = TILE_M / BURSTS,
        LOADS = (TILE_N / CTAS + BSMM_SCALED_LOAD_ROWS - 1) / BSMM_SCALED_LOAD_ROWS,
        B_ROWS = (LOADS + BURSTS - 1) / BURSTS * BSMM_SCALED_LOAD_ROWS,
    };
    const uint32_t stage = count % STAGES, full = leaders(&told->full[stage]),
                   following = count + 1 - STAGES, b_rows = p->tile_n / CTAS;
#pragma unroll
    for (uint32_t burst = 0; burst < BURSTS; burst++) {
        const uint32_t a = burst * A_ROWS, b = burst * B_ROWS;
        if (burst > 0 && count + 1 >= STAGES)
            wait_for(&told->steps[burst - 1][following % STAGES], filled_parity(following));
        load_rows(a_of(base, stage) + a * ROW_BYTES, &p->a, block * BLOCK_WIDTH, first.row + a,
                  A_ROWS, full);
        if (b < b_rows)
            load_rows(b_of(base, stage) + b * ROW_BYTES, &p->b, block * BLOCK_WIDTH, first.col + b,
                      min((uint32_t)B_ROWS, b_rows - b), full);
    }
}

static __device__ __forceinline__ void load_tiles(const bsmm_scaled_params *p, uint32_t base,
                                                  shared *told) {
    const uint32_t rank = group_rank(), b_rows = p->tile_n / CTAS;
    const k_range range = k_range_of(p);
    uint32_t count = 0;
    FOR_TILES(p, tile) {
        const corner at = tile_at(p, tile);
        for (uint32_t block = range.first; block < range.end; block++, count++) {
            const uint32_t stage = count % STAGES, full = leaders(&told->full[stage]);
            const block_position from = block_position_of(p, block);
            wait_for(&told->empty[stage], emptied_parity(count));
            announce(p, told, stage);
            if (BURSTS > 1 && p->spreads) {
                load_bursts(p, base, told, (corner){at.row, at.col + rank * b_rows}, block, count);
            } else {
                load_rows(a_of(base, stage), &p->a, from.a * BLOCK_WIDTH, at.row, TILE_M, full);
                load_rows(b_of(base, stage), &p->b, from.b * BLOCK_WIDTH, at.col + rank * b_rows,
                          b_rows, full);
            }
            load_scales(p, scales_of(base, stage), at, block, full);
        }
    }
}
