/* This is the kernel for block-scaled GEMMs on Blackwell (sm_100f). It computes
 * D = alpha * (A . scales) (B . scales)^T + beta * C + bias. The instruction tcgen05.mma multiplies
 * elements and block scales in their stored formats. The body also makes the kernels for bf16 and
 * f16 without block scales. Each entry of tiles.def becomes a file that defines these macros and
 * includes this body:
 *
 *     SCALED_NAME    the kernel's name
 *     SCALED_KIND    the kind of tcgen05.mma, as a string
 *     SCALED_BLOCK   the elements of K with the same scale, 16 or 32.
 *                    0: A and B have no block scales, and elements are bf16 or f16.
 *     SCALED_PACKED  1: elements have 4 bits, and shared memory holds them without gaps.
 *                    0: an element takes a byte of shared memory; elements of 4 and 6 bits are
 *                    spread by TMA.
 *     SCALED_SIGNED  1: scales are e4m3. tcgen05 ignores their sign, so a warp looks for signs.
 *     SCALED_CTAS    the thread blocks that compute a tile of D together: 1, or 2 for a pair
 *     SCALED_SMALL_M 1: the kernel is for few rows of A (scaled_small_m.h)
 *     SCALED_GROUPS  0, unless the kernel is for fp32 scales (scaled_promote.h). It is then the
 *                    number of bits of an element, 8 or 16, and SCALED_BLOCK is 0.
 *
 * Tiles. A group is one thread block, or a pair of thread blocks on two neighbouring SMs. Groups
 * are persistent: group g computes the tiles g, g + G, g + 2 G and so on, where G is the number of
 * groups. A tile of D has 128 rows for each thread block of the group. With block scales, it has up
 * to 192 columns, or up to 256 if the group is a pair. Each thread block loads its 128 rows of A.
 * The two blocks of a pair share B: each loads half of the tile's rows of B. The pair's leader is
 * the block with rank 0. It issues one instruction that multiplies the rows of both blocks. A k
 * block is the part of K that one stage holds, i.e. 128 bytes of each row. It takes four
 * tcgen05.mma instructions.
 *
 * Kernels without block scales (SCALED_BLOCK is 0). Such a kernel has no scales in shared memory
 * and in tensor memory, so that a tile of D can have 256 columns even in a single thread block. An
 * element of A or B may be the sum of several bf16 parts (gpu/pack.h). Each part of A is then
 * multiplied by each part of B, and every such product of 64 elements of K is a k block. If packing
 * A or B to 16 bits was not exact, the kernel computes nothing and sets a flag, and the host queues
 * another kernel, which reads the flag.
 *
 * The shared memory of a thread block has these parts, in bytes, for S stages and T tiles of scales
 * along K:
 *
 *     A         S x 16384        128 rows of 128 bytes, with TMA's swizzle of 128 bytes
 *     B         S x 24576        192 rows (a pair: S x 16384, 128 rows)
 *     staging   16384            4096 for each warp that stores D
 *     scales    S x 3 x T x 512  those of A's 128 rows, then those of 256 rows of B
 *
 * Tensor memory has 512 columns. In a single thread block, columns 0 to 191 and 192 to 383 are the
 * two accumulators, and two sets of scales of 12 T columns each follow. In a pair, an accumulator
 * has 256 columns. The first one begins at column 0, and the second one at column 224, 192 or 160
 * for T = 1, 2 or 4. The two accumulators share 32, 64 or 96 columns, because there is no room for
 * both besides the scales. The warps that store D read the shared columns first, so that the
 * products of the next tile can begin while these warps store the rest of D.
 *
 * Kernels for fp32 scales. Eight warps instead of four run the epilogue, and they also apply the
 * scales (scaled_promote.h). The roles below then belong to warps 0 to 7, 8 and 9. An accumulator
 * holds the products of 128 elements of K only, so that the barriers D and A are used for each of
 * them.
 *
 * If D has few tiles, several groups divide the K of each tile among them (scaled_split.h).
 *
 * In a kernel for few rows of A, a tile has at most 64 columns, so that a stage has 64 rows of B
 * and the scales of 128 rows of B. There is no staging. An accumulator has 64 columns of tensor
 * memory.
 *
 * Roles of a thread block's warps:
 *
 *     warps 0 to 3   epilogue: read accumulators from tensor memory, and store D
 *     warp 4         load: one thread issues TMA copies of elements and scales
 *     warp 5         multiply: one thread of the leader copies scales to tensor memory and issues
 *                    the products
 *     warp 6         only if SCALED_SIGNED: looks for scales with a sign
 *
 * Barriers, shown for a ring of four stages and two k blocks per tile. "load s" means that a thread
 * issues the copies to stage s. "mul s" means that a thread issues the copies of the stage's scales
 * to tensor memory and the stage's tcgen05.mma instructions:
 *
 *     time -------------------------------------------------------------------------------->
 *     load      load 0, 1, 2, 3 | wait E0   | load 0 | wait E1 | load 1 | ...
 *     copies    ~~~~~~ F0 ~~~~~ F1 ~~~~~ F2 ~~~~~ F3      ~~~~~~~~~~ F0
 *     multiply  wait F0 | mul 0 | wait F1 | mul 1 | wait F2 | mul 2 | wait F3 | mul 3 | wait A0
 *     products          ~~~~~~~~~ E0 ~~~~~~~~ E1, D0 ~~~~~~~~~~ E2 ~~~~~~~~~ E3, D1
 *     epilogue  wait D0                           | read D0, A0, store  | wait D1 | read D1, A1
 *
 *     F  "full" barrier of a stage: its elements and scales have arrived in all thread blocks of
 *        the group. The leader's loading thread announces the bytes of the group, the copies of the
 *        group count them at the leader's barrier, and the multiplying thread waits.
 *     E  "empty" barrier of a stage: the products have read the stage (tcgen05.commit). Each thread
 *        block of the group has one, on which its loading thread waits before it loads again.
 *     C  "copied" barrier of a set of scale columns, only if SCALED_SIGNED: the scales of a k block
 *        are in tensor memory (tcgen05.commit). Warp 6 of each thread block waits at its own.
 *     R  "read" barrier of a set of scale columns, only if SCALED_SIGNED: warp 6 of each thread
 *        block of the group has read them. The multiplying thread waits before it overwrites them.
 *     P  "step" barriers of a stage, only if TMA spreads elements to bytes: a product has read the
 *        stage (load_bursts). The loading thread of each thread block waits at its own.
 *     J  "judged" barrier of a tile, only if SCALED_SIGNED: warp 6 has read all scales of the tile.
 *        Warps 0 to 3 wait.
 *     D  "done" barrier of an accumulator: all products of the tile have completed. Warps 0 to 3 of
 *        each thread block wait at their own.
 *     A  "available" barrier of an accumulator: warps 0 to 3 of all thread blocks of the group have
 *        read it. The multiplying thread waits before it overwrites the accumulator. It meanwhile
 *        fills the other one. If the two accumulators share columns, A0 serves both. It then means
 *        that the warps have read the shared columns of the accumulator that was filled last.
 *
 * tcgen05.cp and the tcgen05.mma after it run in the order of issue, but a later tcgen05.cp may
 * overtake an earlier tcgen05.mma. The scales therefore alternate between two sets of columns, and
 * the multiplying thread waits until the products of the second-last k block have completed (E)
 * before it overwrites the columns of that k block's scales. If SCALED_SIGNED, it also waits until
 * warp 6 has read them (R).
 *
 * The order of this file is the path of a k block: constants, barriers, load
 * (scaled_load.h), multiply (scaled_multiply.h), store. The kernel comes last. */
#include "cuda/ptx/address.h"
#include "cuda/ptx/cluster.h"
#include "cuda/ptx/grid.h"
#include "cuda/ptx/mbarrier.h"
#include "cuda/ptx/tma.h"
#include "cuda/sm100f/scaled_params.h"
#include "gpu/bands.h"

enum {
    CTAS = SCALED_CTAS,
    TILE_M = BSMM_SCALED_TILE_M, /* TILE_M is the number of rows of D per thread block. */
    /* TILE_N is the largest number of columns of a tile of D. */
    TILE_N = SCALED_SMALL_M ? BSMM_SCALED_SMALL_M : BSMM_SCALED_TILE_N(SCALED_BLOCK, SCALED_CTAS),
    ROW_BYTES = BSMM_SCALED_ROW_BYTES,
    /* STEPS is the number of tcgen05.mma instructions per k block (the elements of K that one stage
     * holds). Each instruction multiplies 32 bytes of each row. */
    STEPS = 4,
    /* A k block has BLOCK_K elements along K, and one tcgen05.mma multiplies STEP_K of them. */
    WIDE = SCALED_BLOCK == 0 && SCALED_GROUPS != 8, /* Elements have 16 bits. */
    BLOCK_K = WIDE            ? ROW_BYTES / 2
              : SCALED_PACKED ? 2 * ROW_BYTES
                              : ROW_BYTES,
    STEP_K = BLOCK_K / STEPS,
    STEP_SCALES = SCALED_BLOCK ? STEP_K / SCALED_BLOCK : 0,
    /* BLOCK_WIDTH is the extent of a k block along K in the tensor maps of A and B. It counts
     * bytes, or elements if these have 16 bits. */
    BLOCK_WIDTH = WIDE ? BLOCK_K : ROW_BYTES,
    SCALE_TILE = BSMM_SCALED_SCALE_TILE,
    SCALE_ROWS = BSMM_SCALED_SCALE_ROWS,
    /* A scale tile has 4 scales along K for each of 128 rows. SCALE_TILES is the number of scale
     * tiles that a stage holds for each 128 rows of A or B. */
    SCALE_TILES = BSMM_SCALED_SCALE_TILES(SCALED_BLOCK, SCALED_PACKED),
    STAGES = SCALED_SMALL_M  ? BSMM_SCALED_SMALL_M_STAGES(SCALE_TILES)
             : SCALED_GROUPS ? BSMM_SCALED_GROUPS_STAGES(CTAS)
                             : BSMM_SCALED_STAGES(SCALE_TILES, CTAS),
    /* SPLITS is 1 if several thread blocks, or several pairs of them, may divide the K of a tile
     * among them (split-K, scaled_split.h). */
    SPLITS = SCALED_BLOCK && !SCALED_SMALL_M,
    /* TMA can spread elements of 4 or 6 bits to bytes. A stage of such elements is loaded in BURSTS
     * bursts, i.e. groups of TMA copies. A single burst would occupy shared memory so long that the
     * tensor cores would have to wait (load_bursts). */
    BURSTS = SPLITS && !SCALED_PACKED ? 4 : 1,
    EPILOGUE_WARPS = SCALED_GROUPS ? 8 : 4,
    STAGING = SCALED_SMALL_M ? 0 : EPILOGUE_WARPS * BSMM_SCALED_STAGING / 4,
    A_BYTES = TILE_M * ROW_BYTES,
    B_BYTES = TILE_N / CTAS * ROW_BYTES,
    /* B_ROW_BLOCKS is the largest number of blocks of 128 rows that contain a tile's rows of B. In
     * the layout nv_128x4, such a block stores its scales together. A tile of 256 rows of B begins
     * at a multiple of 256. Other tiles have up to 192 rows of B and begin at a multiple of 64. So
     * each tile lies in at most two blocks. */
    B_ROW_BLOCKS = SCALED_SMALL_M ? 1 : 2,
    SCALE_PARTS = SCALED_BLOCK ? 1 + B_ROW_BLOCKS : 0,
    PART_BYTES = SCALE_TILES * SCALE_TILE,
    SCALE_BYTES = SCALE_PARTS * PART_BYTES,
    CHUNK = BSMM_SCALED_CHUNK,
    THREADS = BSMM_SCALED_KERNEL_THREADS(SCALED_SIGNED, SCALED_GROUPS),
    /* In kernels for fp32 scales, the warps that multiply sums by scales need many registers, and
     * the warps that load and issue products (producers) need few. All threads begin with 168
     * registers. Then setmaxnreg gives EPILOGUE_REGISTERS to the threads of the first kind and
     * PRODUCER_REGISTERS to the others. */
    EPILOGUE_REGISTERS = 232,
    PRODUCER_REGISTERS = 40,
    LOAD_WARP = EPILOGUE_WARPS,
    MULTIPLY_WARP,
    SIGN_WARP,
    /* COLUMNS is the number of columns of tensor memory that a thread block allocates. Usually it
     * is all 512 columns. Kernels for few rows of A allocate half of them, so that two thread
     * blocks fit on one SM. The columns hold two accumulators and, after them, the scales of two k
     * blocks. The scales of 128 rows by 4 scale blocks along K take four columns. */
    COLUMNS = SCALED_SMALL_M ? 256 : 512,
    A_SCALE_COLUMNS = 4 * SCALE_TILES,
    SCALE_COLUMNS = A_SCALE_COLUMNS * SCALE_PARTS,
    /* Tensor memory holds two accumulators and two sets of scales. FREE_COLUMNS is the number of
     * columns that one accumulator and two sets of scales leave free. SECOND_AT is the first column
     * of the second accumulator. If FREE_COLUMNS is less than TILE_N, there is no room for two
     * whole accumulators, and the second one begins before the first one ends. SHARED_COLUMNS is
     * the number of columns that both then share. */
    FREE_COLUMNS = (COLUMNS - 2 * SCALE_COLUMNS - TILE_N) / CHUNK * CHUNK,
    SECOND_AT = FREE_COLUMNS < TILE_N ? FREE_COLUMNS : TILE_N,
    SHARED_COLUMNS = TILE_N - SECOND_AT,
    SCALES_AT = SECOND_AT + TILE_N,
    /* SIGN_TILES is the number of the most recent tiles of D for which a thread block remembers
     * whether scales are negative. Warp 6, which finds negative scales, may be STAGES + 2 tiles
     * ahead of the warps that store D. */
    SIGN_TILES = 16,
};
static_assert(SCALES_AT + 2 * SCALE_COLUMNS <= COLUMNS, "tensor memory");
static_assert(SHARED_COLUMNS == 0 || !(SCALED_SMALL_M || SCALED_GROUPS), "columns of accumulators");
static_assert(4 * SCALE_TILES == STEPS * STEP_SCALES, "scales of a k block");
/* The size of the shared memory that the host reserves must be the size of the parts that this file
 * places in shared memory. */
static_assert(1024 + STAGES * (A_BYTES + B_BYTES + SCALE_BYTES) + STAGING ==
                  BSMM_SCALED_KERNEL_SHARED(SCALED_BLOCK, SCALED_PACKED, CTAS, SCALED_SMALL_M,
                                            SCALED_GROUPS),
              "shared memory");
static_assert(SCALED_SMALL_M || BSMM_SCALED_SHARED(SCALE_TILES, CTAS) <= 227 * 1024,
              "shared memory");
static_assert(!SCALED_GROUPS || (EPILOGUE_WARPS * EPILOGUE_REGISTERS +
                                 (THREADS / 32 - EPILOGUE_WARPS) * PRODUCER_REGISTERS) *
                                        32 <=
                                    65536,
              "registers");
static_assert(!SCALED_GROUPS || SCALED_BLOCK == 0, "a kernel applies scales of one kind");
static_assert(STAGES + 2 < SIGN_TILES, "tiles whose signs are known");

typedef struct shared {
    uint64_t full[STAGES], empty[STAGES], done[2], available[2], copied[2], read[2];
    /* A stage is loaded in several bursts of TMA copies. Before burst i + 1, the thread that loads
     * waits at the barriers steps[i]. */
    uint64_t steps[BURSTS > 1 ? BURSTS - 1 : 1][STAGES];
    uint64_t judged[SIGN_TILES];
    uint32_t columns; /* `columns` is the address of the allocated columns of tensor memory. */
    /* negative[n % SIGN_TILES] is nonzero if the thread block's tile number n has a negative scale.
     * The array has entries for the most recent tiles only. */
    uint32_t negative[SIGN_TILES];
    /* zero_columns[w][j] tells whether all elements of row j of B in the tile are 0: ZERO_UNKNOWN,
     * ZERO_YES or ZERO_NO. Each warp w that stores D keeps what it has found out so far. */
    uint8_t zero_columns[EPILOGUE_WARPS][TILE_N];
    /* zero_rows[i] tells whether all elements of row i of A in the tile are 0: ZERO_UNKNOWN,
     * ZERO_YES or ZERO_NO. Each warp that stores D uses the 32 entries of its own rows. */
    uint8_t zero_rows[EPILOGUE_WARPS * 32];
    bsmm_gpu_epilogue_factors factors[EPILOGUE_WARPS];
#if SCALED_GROUPS
    /* The two accumulator buffers in tensor memory take the sums by turns. column_factors[i] holds
     * the fp32 scales of the tile's columns, by which the sums in buffer i are multiplied. It is
     * aligned because a thread loads four scales at once. */
    alignas(16) float column_factors[2][TILE_N];
#endif
} shared;
#if SCALED_GROUPS
static_assert(sizeof(shared) <= 227 * 1024 - BSMM_SCALED_GROUPS_SHARED(CTAS), "shared memory");
#endif

#include "cuda/sm100f/scaled_group.h"

/* These functions return addresses of buffers in dynamic shared memory. Buffers that TMA reads or
 * writes with a swizzle begin at multiples of 1024 bytes, as the swizzle requires. */
static __device__ __forceinline__ uint32_t a_of(uint32_t base, uint32_t stage) {
    return base + stage * A_BYTES;
}
static __device__ __forceinline__ uint32_t b_of(uint32_t base, uint32_t stage) {
    return base + STAGES * A_BYTES + stage * B_BYTES;
}
static __device__ __forceinline__ uint32_t staging_of(uint32_t base) {
    return base + STAGES * (A_BYTES + B_BYTES);
}
/* A stage holds the scales of A's rows, then the scales of B's first 128 rows, then the scales of
 * B's next 128 rows. */
static __device__ __forceinline__ uint32_t scales_of(uint32_t base, uint32_t stage) {
    return base + STAGES * (A_BYTES + B_BYTES) + STAGING + stage * SCALE_BYTES;
}

static __device__ __forceinline__ void wait_for(const uint64_t *barrier, uint32_t parity) {
    while (!ptx_mbarrier_try_wait(ptx_shared_address(barrier), parity)) {
    }
}

/* These functions return a parity for which a thread waits at a barrier of a stage. `count` is the
 * number of k blocks, or of tiles, that the thread block has begun before the current one.
 * filled_parity is the parity of the phase that belongs to the current k block, e.g. that its data
 * has arrived. emptied_parity is that of the phase before, e.g. that the stage's previous k block
 * has been read. If there was none, a wait for this phase returns at once. */
static __device__ __forceinline__ uint32_t filled_parity(uint32_t count) {
    return count / STAGES & 1;
}
static __device__ __forceinline__ uint32_t emptied_parity(uint32_t count) {
    return ~(count / STAGES) & 1;
}

static __device__ __forceinline__ void set_up(shared *told) {
    for (int i = 0; i < STAGES; i++) {
        ptx_mbarrier_init(ptx_shared_address(&told->full[i]), 1);
        ptx_mbarrier_init(ptx_shared_address(&told->empty[i]), 1);
        for (int burst = 1; burst < BURSTS; burst++)
            ptx_mbarrier_init(ptx_shared_address(&told->steps[burst - 1][i]), 1);
    }
    for (int i = 0; i < 2; i++) {
        ptx_mbarrier_init(ptx_shared_address(&told->done[i]), 1);
        ptx_mbarrier_init(ptx_shared_address(&told->available[i]), CTAS * EPILOGUE_WARPS);
        ptx_mbarrier_init(ptx_shared_address(&told->copied[i]), 1);
        ptx_mbarrier_init(ptx_shared_address(&told->read[i]), CTAS);
    }
    for (int i = 0; SCALED_SIGNED && i < SIGN_TILES; i++)
        ptx_mbarrier_init(ptx_shared_address(&told->judged[i]), 1);
    ptx_fence_mbarrier_init();
}

/* Several groups may compute one tile of D, each by multiplying a part of K. A group is one thread
 * block or a pair of thread blocks. Returns the number of groups of a tile, which is also the
 * number of parts of K. */
static __device__ __forceinline__ uint32_t parts_of(const bsmm_scaled_params *p) {
    return SPLITS || SCALED_SMALL_M ? p->parts : 1;
}

/* Loops over the tiles of D that this thread block's cluster computes. A group is one thread block,
 * or a pair of them. If several groups divide the K of a tile among them, they form a cluster.
 * Otherwise each group is a cluster. */
#define FOR_TILES(p, tile)                                                                         \
    for (uint32_t tile = ptx_cluster_id(); tile < (p)->tiles; tile += ptx_cluster_count())

/* With split-K, K is divided into parts of whole k blocks. Returns the index of the first k block
 * of part number `part`. Every part has at least one k block. */
static __device__ __forceinline__ uint32_t first_of_part(const bsmm_scaled_params *p,
                                                         uint32_t part) {
    return (uint32_t)((uint64_t)p->k_blocks * part / p->parts);
}

/* A group is the one or two thread blocks that compute a tile together. The groups of a cluster
 * divide K. Returns the number of the part of K that this thread block's group multiplies. */
static __device__ __forceinline__ uint32_t part_of_block(void) {
    return ptx_grid_cluster_rank() / CTAS;
}

/* Holds the range of k blocks that this thread block multiplies: k blocks `first` to `end` - 1. */
typedef struct k_range {
    uint32_t first, end;
} k_range;

static __device__ __forceinline__ k_range k_range_of(const bsmm_scaled_params *p) {
    const uint32_t part = part_of_block();
    if (parts_of(p) == 1) return (k_range){0, p->k_blocks};
    return (k_range){first_of_part(p, part), first_of_part(p, part + 1)};
}

/* Holds the first row and the first column of this thread block's part of a tile of D. */
typedef struct corner {
    uint32_t row, col;
} corner;

static __device__ __forceinline__ corner tile_at(const bsmm_scaled_params *p, uint32_t tile) {
    const bsmm_gpu_tile at = bsmm_gpu_tile_at(tile, p->group_m, p->tiles_m, p->tiles_n);
    const uint32_t rank = group_rank();
    return (corner){(at.m * CTAS + rank) * TILE_M, at.n * p->tile_n};
}

/* Says where the elements of a k block begin. `a` is the offset of A's elements in a row of A, and
 * `b` is the offset of B's elements in a row of B, both in units of BLOCK_WIDTH. The two may differ
 * if an element is the sum of several bf16 numbers. `k` is the index of the first element along K,
 * in units of BLOCK_K. */
typedef struct block_position {
    uint32_t a, b, k;
} block_position;

/* Returns where the elements of k block number `block` lie in the rows of A and B. If elements of A
 * or B are sums of several bf16 parts, each part of A must be multiplied by each part of B, and
 * each such pair of parts has its own k block. A packed row holds the first parts of BLOCK_K
 * elements of K, then their second parts, then their third parts, and then the parts of the next
 * BLOCK_K elements. */
static __device__ __forceinline__ block_position block_position_of(const bsmm_scaled_params *p,
                                                                   uint32_t block) {
    if (!WIDE || p->b_parts * p->a_parts == 1) return (block_position){block, block, block};
    const uint32_t pairs = p->a_parts * p->b_parts, unit = block / pairs, pair = block % pairs;
    return (block_position){unit * p->a_parts + pair / p->b_parts,
                            unit * p->b_parts + pair % p->b_parts, unit};
}

/* Returns the number of scale tiles along K in a k block. A scale tile has 4 scales along K. The
 * last k block may have fewer scale tiles than the k blocks before it. */
static __device__ __forceinline__ uint32_t scale_tiles_of(const bsmm_scaled_params *p,
                                                          uint32_t block) {
    return min((uint32_t)SCALE_TILES, p->scale_tiles - block * SCALE_TILES);
}

/* A stage holds the scales of three groups of 128 rows. Part 0 has rows of A, and parts 1 and 2
 * have rows of B, because a tile has 128 rows of A and up to 256 rows of B. Returns the number of
 * the group in A or in B, counted from the operand's first row, that is loaded to part `i`. */
static __device__ __forceinline__ uint32_t scale_rows_of(corner at, uint32_t i) {
    return i == 0 ? at.row / SCALE_ROWS : at.col / SCALE_ROWS + i - 1;
}

#include "cuda/sm100f/scaled_load.h"
#include "cuda/sm100f/scaled_multiply.h"
#include "cuda/sm100f/scaled_signs.h"
#if SCALED_SMALL_M
#    include "cuda/sm100f/scaled_small_m.h"
#elif SCALED_GROUPS
#    include "cuda/sm100f/scaled_promote.h"
#else
#    include "cuda/sm100f/scaled_finish.h"
#endif
#if SCALED_BLOCK && !SCALED_SMALL_M
#    include "cuda/sm100f/scaled_split.h"
#endif

/* Returns true if the packed operands have exactly the values of A and B, as their headers tell. A
 * header is NULL if its operand is not packed, or if packing it is always exact. Packing may have
 * divided an operand's values by scales of its own. The kernel can multiply by such scales only if
 * the operand has fp32 scales. Otherwise, scales other than 1 count as not exact. */
static __device__ __forceinline__ bool is_exact(const bsmm_scaled_params *p) {
    uint32_t bad = 0;
    for (int i = 0; i < 2; i++)
        if (p->headers[i])
            bad |= p->headers[i]->flags &
                   (SCALED_GROUPS && p->has_factors[i] ? BSMM_PACK_WIDE
                                                       : BSMM_PACK_WIDE | BSMM_PACK_SCALED);
    return !bad;
}

/* Tells the next kernel in the stream that this kernel computes nothing. */
static __device__ __forceinline__ void refuse(const bsmm_scaled_params *p) {
    if (blockIdx.x == 0 && threadIdx.x == 0) *p->refused = 1;
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    SCALED_NAME(const __grid_constant__ bsmm_scaled_params params) {
    extern __shared__ uint8_t memory[];
    __shared__ shared told;
    const bsmm_scaled_params *p = &params;
    const uint32_t warp = threadIdx.x / 32, base = (ptx_shared_address(memory) + 1023) & ~1023u,
                   rank = group_rank();
    uint8_t *const aligned = memory + (base - ptx_shared_address(memory));
    if (threadIdx.x == 0) set_up(&told);
    if (warp == MULTIPLY_WARP) group_alloc(ptx_shared_address(&told.columns), COLUMNS);
    group_sync();
    /* The code before this line reads no memory that earlier kernels write, so it overlaps with the
     * end of the previous kernel. */
    ptx_grid_wait();
    ptx_grid_release_next();
    if (WIDE && !is_exact(p)) {
        refuse(p);
    } else if (warp < EPILOGUE_WARPS) {
        epilogue_store_tiles(p, aligned, &told);
    } else {
        if (SCALED_GROUPS) PTX_REGISTERS_LESS(PRODUCER_REGISTERS);
        if (warp == LOAD_WARP && ptx_elect())
            load_tiles(p, base, &told);
        else if (warp == MULTIPLY_WARP && rank == LEADER && ptx_elect())
            multiply_tiles(p, base, &told);
#if SCALED_SIGNED
        else if (warp == SIGN_WARP)
            find_signs(p, &told);
#endif
    }
    __syncwarp();
#if SCALED_SMALL_M
    join_parts(p, base, &told);
#elif SCALED_BLOCK
    join_parts(p, aligned, base, &told);
#endif
    /* The two thread blocks of a pair arrive at barriers in each other's shared memory. If a thread
     * block ended before the last arrival at its barriers, this arrival would access shared memory
     * that no longer belongs to it. The thread blocks therefore wait for each other here. */
    group_sync();
    if (warp == MULTIPLY_WARP) group_dealloc(told.columns, COLUMNS);
}
