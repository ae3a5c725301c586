/* These are the constants of one GEMM kernel for sm_90a: features, tile sizes, the layout of shared
 * memory and register counts. They are computed from the macros of the kernel's entry in tiles.def.
 * gemm_body.h includes this file. */

#define GEMM_SCALES JOINED(GEMM_SCALES_OF_, GEMM_KIND)
/* SUM_COLS is the number of columns of D that a wgmma instruction computes. With block scales, a
 * thread has sums of one k block besides its totals over K. If the tile has 256 columns, a thread
 * has no room in its registers for 128 sums and 128 totals. A wgmma instruction then computes only
 * 128 columns. */
#if TILE_N == 256 && PARTIALS > 0
#    define SUM_COLS 128
#else
#    define SUM_COLS TILE_N
#endif
/* GEMM_WIDE is 1 if operand elements have 16 bits, and 0 if they have 8. */
#define GEMM_WIDE    (JOINED(BITS_OF_, GEMM_A) == 16)
#define BITS_OF_BF16 16
#define BITS_OF_F16  16
#define BITS_OF_E4M3 8
#define BITS_OF_E5M2 8
/* A_SCALED is 1 if A may have scales. f16 operands have none. */
#define A_SCALED         JOINED(A_SCALED_OF_, GEMM_A)
#define A_SCALED_OF_BF16 1
#define A_SCALED_OF_F16  0
#define A_SCALED_OF_E4M3 1
#define A_SCALED_OF_E5M2 1
#define IS_E4M3(elem)    JOINED(IS_E4M3_, elem)
#define IS_E4M3_BF16     0
#define IS_E4M3_F16      0
#define IS_E4M3_E4M3     1
#define IS_E4M3_E5M2     0
/* HALVES is 1 for kernels that multiply 16-bit elements without scales. Such a kernel splits an f16
 * A into bf16 parts only if f16 cannot hold the values of B. With HALVES 0, an f16 A would always
 * be split if B has e8m0 scales, and the kernel would need twice as many multiplications. The bf16
 * kernels contain this code too, although they never run it: an f16 kernel and a bf16 kernel with
 * the same code compress to the size of one kernel. With HALVES 0 in the bf16 kernels, the
 * compressed image of all kernels of tiles.def would have 346 instead of 322 KB. */
#define HALVES (GEMM_WIDE && GEMM_SCALES == GEMM_UNSCALED)
/* FALLS_BACK is 1 for kernels of the kind POW2, which run the fallback in gemm_otherwise.h if 8-bit
 * floats cannot hold the values of A or B. */
#define FALLS_BACK          JOINED(FALLS_BACK_OF_, GEMM_KIND)
#define FALLS_BACK_OF_BF16  0
#define FALLS_BACK_OF_BLOCK 0
#define FALLS_BACK_OF_ROW   0
#define FALLS_BACK_OF_POW2  1
/* EVENS is 1 for kernels of the kind POW2, and for 8-bit kernels of the kind ROW with tiles of 192
 * rows. If each row has one scale for all of K, such a kernel adds the sums of k blocks unscaled,
 * and multiplies only the total over K by the scales. If EVENS were 0, products of mxfp4 by mxfp4
 * with 1024 to 8192 rows would take 1.23 times as long on an H200. For the smaller tile of the kind
 * ROW it is 0. This tile is used with few rows of A, and if each row has one scale, other kernels
 * are faster there. */
#define EVENS (FALLS_BACK || (GEMM_SCALES == GEMM_ROW_ROW && !GEMM_WIDE && CONSUMERS == 3))

enum {
    /* CAREFUL is 1 for kernels of the kind ROW (A and B have one scale per 1 x 128 block). These
     * kernels test the product of each scale of A and each scale of B that they multiply, because
     * it may be too large or too small for fp32 (see AGAIN). */
    CAREFUL = GEMM_SCALES == GEMM_ROW_ROW && !FALLS_BACK,
    /* AGAIN is 1 if the kernel tests whether any product of a scale of A and a scale of B lies
     * outside the range from 2^-104 to 2^64. The kernel then recomputes in double the results that
     * use such a product. */
    AGAIN = GEMM_SCALES == GEMM_ROW_BLOCK || CAREFUL,

    TILE_M = GEMM_TILE_M(CONSUMERS),
    CLUSTER = CLUSTER_M * CLUSTER_N,
    CONSUMER_WARPS = 4 * CONSUMERS,
    /* ACCUMULATORS is the number of accumulators of a thread. The 128 threads of a consumer
     * warpgroup compute 64 rows x TILE_N columns of the tile. */
    ACCUMULATORS = TILE_N / 2,
    /* SUMS is the number of a thread's sums of one k block, which a wgmma instruction writes. The
     * columns of a tile are TURNS ranges of SUM_COLS columns. These ranges use the same registers
     * for their sums, one range after the other. */
    SUMS = SUM_COLS / 2,
    TURNS = TILE_N / SUM_COLS,
    /* BLOCK_THREADS is the number of threads of a thread block. Kernels of the kind POW2 have idle
     * warps besides the warps that load, multiply and store. The idle warps help in the fallback,
     * in which a thread block packs A and B to bf16 or computes D from the stored operands. */
    BLOCK_THREADS = FALLS_BACK ? 512 : 128 * (1 + CONSUMERS),

    K_BYTES = GEMM_K_BYTES,
    K_ELEMENTS = K_BYTES / (GEMM_WIDE ? 2 : 1),
    A_BYTES = TILE_M * K_BYTES,
    STAGE_BYTES = GEMM_STAGE_BYTES(TILE_M, TILE_N),
    /* SCALE_BYTES is the number of bytes of fp32 scales of rows in a stage (one k block). These are
     * one scale for each row of the A tile and, with GEMM_ROW_ROW, one for each row of the B tile.
     */
    SCALE_BYTES = GEMM_SCALE_BYTES(GEMM_SCALES, TILE_M, TILE_N),
    /* SCALE_BYTES_LOADED is the number of bytes of row scales that TMA loads per stage. */
    SCALE_BYTES_LOADED = A_SCALED ? SCALE_BYTES : 0,
    CHUNK_COLS = GEMM_CHUNK_COLS(TILE_N),
    CHUNK_BYTES = GEMM_CHUNK_BYTES(TILE_N),
    /* A consumer warpgroup writes its results to staging buffers in shared memory, from which its
     * writer thread stores them in D. A chunk is 64 rows x CHUNK_COLS columns of results.
     * BUFFER_CHUNKS is the number of chunks of a staging buffer. STAGING_BUFFERS is the number of
     * staging buffers, each of which is passed to the writer as soon as it is full. WHOLE_STAGED is
     * 1 if there is room for all chunks of a tile. They then form one staging buffer, so that the
     * warpgroup and the writer exchange one message for each tile: with a message for each chunk,
     * (128, 8192, 1024) takes 0.7 us longer on an H200. In a tile of 256 columns, one staging
     * buffer would spill registers. With GEMM_PING_PONG there is one buffer, which two warpgroups
     * use alternately, and a warpgroup passes all of its results of a tile at once. */
    WHOLE_STAGED = TILE_N == CHUNKS * CHUNK_COLS && TILE_N < 256,
    STAGING_BUFFERS = GEMM_PING_PONG || WHOLE_STAGED ? 1 : CHUNKS,
    BUFFER_CHUNKS = GEMM_PING_PONG ? CONSUMERS * CHUNKS
                    : WHOLE_STAGED ? CHUNKS
                                   : 1,

    STAGING_AT = GEMM_STAGING_AT(TILE_M, TILE_N, STAGES),
    SCALES_AT = GEMM_SCALES_AT(TILE_M, TILE_N, STAGES, CONSUMERS *CHUNKS),
    COLS_AT = GEMM_COLS_AT(GEMM_SCALES, TILE_M, TILE_N, STAGES, CONSUMERS *CHUNKS),
    BARRIERS_AT = GEMM_BARRIERS_AT(GEMM_SCALES, TILE_M, TILE_N, STAGES, CONSUMERS *CHUNKS),
    SHARED_BYTES = GEMM_SHARED_BYTES(GEMM_SCALES, TILE_M, TILE_N, STAGES, CONSUMERS *CHUNKS),

    /* BY_COLS is 1 if all elements are e4m3 and the kernel may multiply sums over all of K by one
     * scale for each row of B, i.e. for each column of D, instead of by scales of 128 x 128 blocks.
     * Before BY_COLS existed, products of e4m3 with a scale per row of A and of B took 1.18 to 1.67
     * times as long on an H200. */
    BY_COLS = GEMM_SCALES == GEMM_ROW_BLOCK && IS_E4M3(GEMM_A) && IS_E4M3(GEMM_B),

    /* COL_BLOCKS is used in kernels with GEMM_ROW_BLOCK. It is the number of 128 x 128 blocks of B
     * in which the columns of a tile of D may lie. It is 2 if the tile's width does not divide 128,
     * because such a tile may cross the border between two blocks. The border then lies at a
     * multiple of COL_GROUP columns of the tile. */
    COL_BLOCKS = GEMM_SCALES == GEMM_ROW_BLOCK && 128 % TILE_N ? 2 : 1,
    COL_GROUP = COL_BLOCKS == 1 ? TILE_N
                : TILE_N % 64   ? 32
                                : 64,
    /* SCALES_WARP is 1 if a separate warp, instead of the producer, loads B's block scales.
     * Otherwise the latency of these loads would delay the producer: a GEMM with (M, N, K) = (1024,
     * 1536, 7168) would take 7% longer on an H200. With three consumers no warp is free for this
     * work. */
    SCALES_WARP = GEMM_SCALES == GEMM_ROW_BLOCK && CONSUMERS < 3,
    /* COL_BYTES is the number of bytes of B's scales that st.async adds to the byte count of a
     * stage's full barrier. Only clusters use st.async. Without clusters, plain stores write B's
     * scales, and the warp that loads the scales arrives at the full barrier itself. */
    COL_BYTES = GEMM_SCALES == GEMM_ROW_BLOCK && CLUSTER > 1 ? 4 * COL_BLOCKS : 0,
    FULL_ARRIVALS = CLUSTER == 1 && SCALES_WARP ? 2 : 1,
    /* EMPTY_ARRIVALS is the number of lanes of a consumer warp that arrive at a stage's empty
     * barrier after the warp has read the stage. One lane would suffice. But if another warp writes
     * B's scales to the stage by plain stores, compute-sanitizer's racecheck would then report a
     * false hazard between these stores and the reads of the other lanes. All 32 lanes arrive in
     * this case, which costs no time. */
    EMPTY_ARRIVALS = CLUSTER == 1 && GEMM_SCALES == GEMM_ROW_BLOCK ? 32 : 1,

    /* These are the registers of each thread after setmaxnreg has moved registers from some
     * warpgroups to others. Before, a thread has 168 registers in a block of 384 threads, else 128.
     * The producer's warpgroup and warpgroups without work (SPARE) give up registers. The consumer
     * warpgroups (MATH), which hold the accumulators, receive them. */
    PRODUCER_REGISTERS = BLOCK_THREADS == 512 ? 32 : 40,
    SPARE_REGISTERS = 24,
    MATH_REGISTERS = CONSUMERS == 3         ? 160
                     : CONSUMERS == 1       ? 216
                     : BLOCK_THREADS == 512 ? 224
                                            : 232,
};

static_assert(CONSUMERS >= 1 && CONSUMERS <= 3, "register shares are known for these");
static_assert(128 * PRODUCER_REGISTERS + 128 * CONSUMERS * MATH_REGISTERS +
                      (BLOCK_THREADS - 128 * (1 + CONSUMERS)) * SPARE_REGISTERS <=
                  BLOCK_THREADS * (BLOCK_THREADS == 384 ? 168 : 128),
              "a block waits forever for registers that it does not have");
static_assert(COL_BLOCKS == 1 ||
                  (TILE_N % COL_GROUP == 0 && (TILE_N <= 128 + COL_GROUP || TILE_N == 256)),
              "a tile's columns lie in two blocks of B");
static_assert(!GEMM_SHORT || (GEMM_SCALES == GEMM_ROW_BLOCK && PARTIALS == 1),
              "other loops know a stage's addresses");
static_assert(TILE_N / CHUNK_COLS % CHUNKS == 0, "each tile begins with the oldest chunk");
static_assert(!GEMM_PING_PONG || (CONSUMERS == 2 && TILE_N == BUFFER_CHUNKS * CHUNK_COLS),
              "with ping-pong, a warpgroup stores its part of a tile at once");
static_assert(!GEMM_PING_PONG || !AGAIN,
              "rows that are made again wait for staging buffers out of turn");
static_assert(A_SCALED || GEMM_SCALES != GEMM_ROW_ROW, "B's scales lie behind those of A");
static_assert(SHARED_BYTES <= 232448, "an SM has 227 KiB of shared memory for a thread block");
