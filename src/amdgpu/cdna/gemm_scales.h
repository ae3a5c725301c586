/* Moves e8m0 scales from memory to LDS. Each thread moves the scales of one row of A or B. A unit
 * is the 128 elements of K that one matrix instruction multiplies, and a step of the main loop has
 * one or two units (gemm_k).
 *
 * LDS has a ring buffer with room for eight units. Its two halves hold four units each. A half has
 * 16 bytes for each row, namely the scales of 16 blocks along K in the order of memory. A lane
 * reads one 32-bit word of a row, which has the scales of four blocks, and picks the bytes that it
 * needs. Rows of 16 bytes need no swizzle, because 16 neighbouring rows use 64 different banks.
 *
 * If a row's scales are contiguous in memory, one wide load brings the scales of four units
 * directly to the ring buffer. In a step whose first unit u is a multiple of four, or up to two
 * steps later, the thread loads the scales of the units u + 4 to u + 7. Other scales are loaded one
 * by one. In step t a thread loads the scales for step t + 2, each as a 32-bit word, to its tray, a
 * small buffer in LDS. In step t + 1 the thread moves these scales from the tray to the ring
 * buffer. After the barrier that ends step t + 1, all lanes may read them. */
#ifndef BSMM_AMDGPU_CDNA_GEMM_SCALES_H
#define BSMM_AMDGPU_CDNA_GEMM_SCALES_H

#include "amdgpu/cdna/gemm_stage.h"

enum {
    GEMM_SCALE_ONE = 127,
    GEMM_SCALED_BLOCK = 32,
    /* GEMM_UNIT_BLOCKS is the number of scales of a row in a unit, i.e. in 128 elements of K. */
    GEMM_UNIT_BLOCKS = BSMM_CDNA_K / GEMM_SCALED_BLOCK,
    /* GEMM_GROUP is the number of units (128 elements of K each) whose scales one wide load
     * fetches. */
    GEMM_GROUP = 4,
    /* GEMM_AHEAD is the number of steps of the main loop by which the scales of a step are loaded
     * ahead of their use. */
    GEMM_AHEAD = 2,
};

/* Holds the state of a thread that moves the scales of one row of A or B from memory to LDS. */
typedef struct gemm_carrier {
    bsmm_i32x4 buffer; /* `buffer` is the memory that holds the scales of A or of B. */
    /* `row` is the offset in bytes of the scales of the thread's row in `buffer`. */
    uint32_t row;
    /* These fields tell where the scale of a block b along K lies, relative to the scale of block 0
     * of the same row. The distance, in scales, is `at` of lane b % 8 plus b / 8 times `period`.
     * The wave thus keeps eight distances in one register, a different one in each lane, because
     * reading another lane's register takes less time than loading a kernel parameter. */
    uint32_t at, period;
    /* `blocks` is the number of scale blocks along K. It is 0 if this wave has no rows, because the
     * tile has fewer rows than the workgroup has threads. */
    uint32_t blocks;
    /* `low` is the least scale of the thread's row so far, as an e8m0 code: the smaller one of the
     * upper bytes of its two 16-bit halves (gemm_lower). */
    uint32_t low;
    /* `wide` is the number of units (128 elements of K each) whose scales come by wide loads. A
     * wide load loads the scales of four units at once. */
    uint32_t wide;
    /* `arrived` says which scales the previous step of the main loop has loaded: none, or those of
     * one step, or those of four units (128 elements of K each). The scales of one step are in the
     * thread's tray, i.e. its buffer in LDS. Those of four units are in the ring buffer. `unit` is
     * the first unit to which these scales belong. */
    enum { GEMM_NOTHING, GEMM_ONE_STEP, GEMM_FOUR_UNITS } arrived;
    uint32_t unit;
} gemm_carrier;

/* Returns the number of units of a step. A unit is 128 elements of K. */
BSMM_DEVICE uint32_t gemm_units(gemm_shape s) {
    return gemm_k(s.types[0]) / BSMM_CDNA_K;
}

BSMM_DEVICE uint32_t gemm_tiles(gemm_shape s, uint32_t side) {
    return side ? s.col_tiles : s.row_tiles;
}

/* The ring buffer in LDS for e8m0 scales has two halves. In each half, every row of A and of B has
 * GEMM_RING_ROW bytes: the scale codes of GEMM_GROUP units (128 elements of K each). */
enum { GEMM_RING_ROW = GEMM_GROUP * GEMM_UNIT_BLOCKS };

BSMM_DEVICE uint32_t gemm_ring_half(gemm_shape s) {
    return GEMM_RING_ROW * (gemm_rows(s, 0) + gemm_rows(s, 1));
}

/* For each unit (128 elements of K) the ring buffer has the scales of each row of the tile. Returns
 * the offset in bytes of the scales of unit `unit` for the tile's first row. */
BSMM_DEVICE uint32_t gemm_slot(gemm_shape s, uint32_t unit) {
    return unit / GEMM_GROUP % 2 * gemm_ring_half(s) + unit % GEMM_GROUP * GEMM_UNIT_BLOCKS;
}

/* A tray is a thread's buffer in LDS for scales on their way to the ring buffer. Returns the
 * address of the trays of this wave. A load brings one scale for each thread of the wave, as a
 * 32-bit word. The trays of a wave are therefore interleaved: they begin with one word for each
 * thread, for the first scale block along K. Then follow the words for the next block, and so
 * on. */
BSMM_DEVICE gemm_lds *gemm_trays(gemm_shape s, gemm_lds *ring) {
    return ring + 2 * gemm_ring_half(s) + gemm_wave() * GEMM_WAVE * BSMM_CDNA_TRAY;
}

/* Returns the operand whose scales this wave moves: 0 for A and 1 for B. */
BSMM_DEVICE uint32_t gemm_carrier_side(gemm_shape s) {
    return gemm_wave() * GEMM_WAVE >= gemm_rows(s, 0);
}

/* Returns the number of the row of operand `side` (0: A, 1: B) whose scales this thread moves. The
 * rows of the workgroup's tile are numbered as LDS holds them: first those of A, then those of B,
 * which LDS holds in another order (gemm_row_of). Thread t moves the scales of row t. `first` is
 * the number of the tile's first row in the operand, and `rows` is the operand's number of rows. If
 * the row lies past the operand's end, the function returns the last row of the operand. */
BSMM_DEVICE uint32_t gemm_carrier_row(gemm_shape s, uint32_t side, uint32_t first, uint32_t rows) {
    const uint32_t thread = gemm_thread_of_tile() - (side ? gemm_rows(s, 0) : 0);
    const uint32_t at = first + gemm_row_of(gemm_order(s, side), thread);
    return at < rows - 1 ? at : rows - 1;
}

/* Returns the value of the field gemm_carrier.at for this thread, whose wave moves scales of
 * operand `o`. Lane l gets the distance, in scales, from the scale of block 0 along K to that of
 * block l % 8 of the same row. */
BSMM_DEVICE uint32_t gemm_carrier_at(const bsmm_cdna_side *o) {
    return o->scale_at[gemm_thread_of_tile() % BSMM_CDNA_SCALES];
}

/* A carrier describes which scales this wave loads to LDS. Sets its field `at` again. Only kernels
 * with large tiles need this, because they have no register that keeps `at` during the plain steps
 * of the main loop (steps that load elements directly to LDS). */
BSMM_DEVICE void gemm_carrier_refresh(gemm_carrier *c, gemm_shape s) {
    if (gemm_scouts(s)) c->at = gemm_carrier_at(&gemm_params_here()->sides[gemm_carrier_side(s)]);
    /* This makes the wave wait for the load of `at` now. Otherwise the compiler would put the wait
     * ahead of the plain steps of the next tile (steps that load elements directly to LDS). There
     * the wave would have to wait for all other loads too. */
    bsmm_isa_stay(c->at);
}

BSMM_DEVICE gemm_carrier gemm_carrier_of(const bsmm_cdna_gemm *p, gemm_shape s,
                                         const uint32_t first[2]) {
    const uint32_t wave_row = gemm_wave() * GEMM_WAVE, side = gemm_carrier_side(s);
    const bsmm_cdna_side *o = &p->sides[side];
    const uint32_t length = gemm_part_length(p);
    const bool works = wave_row < gemm_rows(s, 0) + gemm_rows(s, 1);
    const uint32_t blocks = works ? (length + GEMM_SCALED_BLOCK - 1) / GEMM_SCALED_BLOCK : 0;
    return (gemm_carrier){
        .buffer = bsmm_isa_buffer(o->o.scales, UINT32_MAX),
        .row =
            (uint32_t)bsmm_axis_at(&o->o.row_map, gemm_carrier_row(s, side, first[side], o->rows)) +
            gemm_part_scale(p, side, GEMM_SCALED_BLOCK),
        .at = gemm_scouts(s) ? 0 : gemm_carrier_at(o),
        .period = o->scale_period,
        .blocks = blocks,
        .low = UINT32_MAX,
        .wide = o->scales_in_row ? blocks / (GEMM_GROUP * GEMM_UNIT_BLOCKS) * GEMM_GROUP : 0,
        .arrived = GEMM_NOTHING,
    };
}

/* Loads the scales of four units (128 elements of K each) to the ring buffer. `unit` is the first
 * of the four units. */
BSMM_DEVICE void gemm_load_group(const gemm_carrier *c, gemm_shape s, const gemm_lds *ring,
                                 uint32_t unit) {
    const uint32_t to = gemm_slot(s, unit) + gemm_wave() * GEMM_WAVE * GEMM_RING_ROW;
    bsmm_isa_load_to_lds(c->buffer, (uint32_t)(uintptr_t)ring + to, c->row, unit * GEMM_UNIT_BLOCKS,
                         GEMM_RING_ROW);
}

#if defined(__gfx950__)
/* Does the same as gemm_load_group, unless `skip` is nonzero: loads the scales of four units (128
 * elements of K each), from `unit` on, by a wide load. To need no branch, the function also
 * executes the load if `unit` lies past the last units that have wide loads. It then loads the
 * scales of these last units again, into the half of the ring buffer that no step reads. */
BSMM_DEVICE void gemm_load_group_unless(uint32_t skip, const gemm_carrier *c, gemm_shape s,
                                        const gemm_lds *ring, uint32_t wave, uint32_t unit) {
    const uint32_t to = gemm_slot(s, unit) + wave * GEMM_WAVE * GEMM_RING_ROW;
    const uint32_t last = c->wide - GEMM_GROUP;
    bsmm_isa_load_to_lds_unless(skip, c->buffer, (uint32_t)(uintptr_t)ring + to, c->row,
                                (unit < last ? unit : last) * GEMM_UNIT_BLOCKS);
}
#endif

BSMM_DEVICE void gemm_load_step(gemm_carrier *c, gemm_shape s, gemm_lds *trays, uint32_t unit) {
    c->arrived = GEMM_ONE_STEP, c->unit = unit;
#pragma unroll
    for (uint32_t b = 0; b < gemm_units(s) * GEMM_UNIT_BLOCKS; b++) {
        const uint32_t block = unit * GEMM_UNIT_BLOCKS + b;
        const uint32_t at = (uint32_t)__builtin_amdgcn_readlane(
            (int32_t)c->at, (int32_t)(block % BSMM_CDNA_SCALES));
        if (block < c->blocks)
            bsmm_isa_load_to_lds(c->buffer, (uint32_t)(uintptr_t)trays + b * GEMM_WAVE * 4, c->row,
                                 at + block / BSMM_CDNA_SCALES * c->period, 1);
    }
}

/* Loads the scales that step `step` of the main loop must load. If the scales of a row are
 * contiguous in memory, one wide load serves several steps, so most steps load none.
 * __builtin_expect tells the compiler to make this case fast. */
BSMM_DEVICE void gemm_load_scales(gemm_carrier *c, gemm_shape s, gemm_lds *ring, uint32_t step) {
    const uint32_t unit = step * gemm_units(s), next = unit + GEMM_AHEAD * gemm_units(s);
    c->arrived = GEMM_NOTHING;
    if (__builtin_expect(unit % GEMM_GROUP != 0 && next < c->wide, 1)) return;
    if (next >= c->wide) {
        if (next * GEMM_UNIT_BLOCKS < c->blocks) gemm_load_step(c, s, gemm_trays(s, ring), next);
    } else if (unit % GEMM_GROUP == 0 && unit + GEMM_GROUP < c->wide) {
        c->arrived = GEMM_FOUR_UNITS, c->unit = unit + GEMM_GROUP;
        gemm_load_group(c, s, ring, c->unit);
    }
}

/* Updates c->low, the running minima of the row's e8m0 scale codes, by the four codes of a unit
 * (128 elements of K), which are the bytes of `word`. c->low is a pair of 16-bit numbers. Only
 * their upper bytes are minima of codes; their lower bytes do not matter. The function works with
 * 16-bit minima, because AMD GPUs have no minimum of bytes. It first takes the minima with bytes 1
 * and 3 of the word. Then it shifts the word by 8 bits, and takes the minima with bytes 0 and 2. */
BSMM_DEVICE void gemm_lower(gemm_carrier *c, uint32_t word) {
    typedef uint16_t pair __attribute__((vector_size(4)));
    const pair odd = __builtin_elementwise_min((pair)c->low, (pair)word);
    c->low = (uint32_t)__builtin_elementwise_min(odd, (pair)(word << 8));
}

/* Moves the scales of one step of the main loop from the thread's tray (a small buffer in LDS) to
 * the ring buffer in LDS. Blocks past the end of K get the scale 1. Their elements are 0, and with
 * a scale of NaN the products would be NaN. */
BSMM_DEVICE void gemm_store_step(gemm_carrier *c, gemm_shape s, gemm_lds *ring) {
    const BSMM_IN_LDS uint32_t *words =
        (const BSMM_IN_LDS uint32_t *)gemm_trays(s, ring) + gemm_thread_of_tile() % GEMM_WAVE;
    gemm_lds *row = ring + gemm_thread_of_tile() * GEMM_RING_ROW;
#pragma unroll
    for (uint32_t u = 0; u < gemm_units(s); u++) {
        uint32_t four = 0;
#pragma unroll
        for (uint32_t b = 0; b < GEMM_UNIT_BLOCKS; b++) {
            const bool inside = (c->unit + u) * GEMM_UNIT_BLOCKS + b < c->blocks;
            const uint32_t code =
                inside ? words[(u * GEMM_UNIT_BLOCKS + b) * GEMM_WAVE] : GEMM_SCALE_ONE;
            four |= code << 8 * b;
        }
        gemm_lower(c, four);
        *(BSMM_IN_LDS uint32_t *)(row + gemm_slot(s, c->unit + u)) = four;
    }
}

/* Updates c->low, the running minima of the row's scale codes, by the codes of four units (128
 * elements of K each) from unit `unit` on. The codes of the four units are adjacent in the ring
 * buffer in LDS, because one load of 16 bytes has moved them there. */
BSMM_DEVICE void gemm_lower_group(gemm_carrier *c, gemm_shape s, const gemm_lds *ring,
                                  uint32_t unit) {
    const bsmm_i32x4 words =
        *(const BSMM_IN_LDS bsmm_i32x4 *)(ring + gemm_slot(s, unit) +
                                          gemm_thread_of_tile() * GEMM_RING_ROW);
#pragma unroll
    for (uint32_t i = 0; i < 4; i++)
        gemm_lower(c, (uint32_t)words[i]);
}

/* Moves scales from registers to LDS. The previous step has loaded them to the registers, and these
 * loads must have finished. */
BSMM_DEVICE void gemm_store_scales(gemm_carrier *c, gemm_shape s, gemm_lds *ring) {
    if (__builtin_expect(c->arrived == GEMM_NOTHING, 1)) return;
    if (c->arrived == GEMM_ONE_STEP) gemm_store_step(c, s, ring);
    if (c->arrived == GEMM_FOUR_UNITS && !gemm_scouts(s)) gemm_lower_group(c, s, ring, c->unit);
}

/* Before the main loop, starts to load the scales of the first four units (128 elements of K each)
 * by one wide load per row. Does nothing if wide loads are not possible (c->wide is 0). */
BSMM_DEVICE void gemm_request_scales(const gemm_carrier *c, gemm_shape s, gemm_lds *ring) {
    if (c->wide) gemm_load_group(c, s, ring, 0);
}

/* Moves the scales of the first steps to the ring buffer in LDS, before the main loop. The loads
 * that gemm_request_scales has started must have finished. In large tiles with wide loads there is
 * nothing to do: the loads have moved the scales directly to the ring buffer, and each step of the
 * main loop later finds the smallest of its own scales. */
BSMM_DEVICE void gemm_begin_scales(gemm_carrier *c, gemm_shape s, gemm_lds *ring) {
    const uint32_t last = (c->wide ? 1 : GEMM_AHEAD) * gemm_units(s);
    c->arrived = GEMM_NOTHING;
    if (gemm_scouts(s) && c->wide) return;
    gemm_carrier_refresh(c, s);
    c->arrived = GEMM_FOUR_UNITS, c->unit = 0;
#pragma clang loop unroll(disable)
    for (uint32_t unit = 0; unit < last && unit * GEMM_UNIT_BLOCKS < c->blocks;
         unit += gemm_units(s)) {
        if (!c->wide) {
            gemm_load_step(c, s, gemm_trays(s, ring), unit);
            bsmm_isa_wait_loads(0);
        }
        gemm_store_scales(c, s, ring);
    }
    c->arrived = GEMM_NOTHING;
}

enum { GEMM_MOST_UNITS = 2, GEMM_MOST_SCALE_WORDS = GEMM_MOST_ROW_TILES * GEMM_MOST_UNITS / 4 };

/* Holds the e8m0 scales of A (sides[0]) and of B (sides[1]) that a lane needs in one step. A step
 * has `units` units (gemm_units) of 128 elements of K, and a lane needs one scale for each of its
 * 16 x 16 tiles and each unit. The scale of tile i for unit u is byte i * units + u.
 * gemm_scaled_tile reads it. */
typedef struct gemm_scales {
    uint32_t sides[2][GEMM_MOST_SCALE_WORDS];
} gemm_scales;

/* Holds what a lane needs to read scales from the ring buffer in LDS. A unit of this buffer has the
 * scales of 128 elements of K. In a unit, the four scales of a row are a 32-bit word. at[0] and
 * at[1] are the offsets in a unit of the word for the lane's row in the wave's first tile of A and
 * of B. `select` is the selector with which v_perm_b32 picks the scales that the lane needs. */
typedef struct gemm_scale_reader {
    uint32_t at[2], select;
} gemm_scale_reader;

/* Finds the words with scales that this lane reads, and the bytes of them that it needs. A 32-bit
 * word of the ring buffer has the four scales of a row in one unit (128 elements of K). A wave's 64
 * lanes form four groups of 16. Lane i of each group multiplies the same row, at another range of
 * K. If a step has one unit, lane i of all four groups reads the same word, and each group needs
 * one of the word's four scales. If a step has two units, two of the groups read the word of the
 * first unit, and the other two read that of the second. Each of these groups needs two of the
 * word's scales, one for each of two matrix instructions (gemm_piece_of). */
BSMM_DEVICE gemm_scale_reader gemm_scale_reader_of(gemm_shape s, const uint32_t rows[2]) {
    const uint32_t lane = gemm_thread_of_tile() % GEMM_WAVE, group = lane / BSMM_CDNA_EDGE;
    const bool two = gemm_units(s) == 2;
    const uint32_t word = lane % BSMM_CDNA_EDGE * GEMM_RING_ROW + (two ? group / 2 * 4 : 0);
    const uint32_t select =
        two ? 0x06040200u + group % 2 * 0x01010101u : 0x04000400u + group * 0x01010101u;
    return (gemm_scale_reader){
        {rows[0] * GEMM_RING_ROW + word, (gemm_rows(s, 0) + rows[1]) * GEMM_RING_ROW + word},
        select};
}

/* Holds the words with a lane's scales for one step, one for each of the wave's tiles. */
typedef struct gemm_scale_words {
    uint32_t sides[2][GEMM_MOST_ROW_TILES];
} gemm_scale_words;

/* Reads this lane's 32-bit words with the scales of operand `side` (0 for A, 1 for B) for step
 * `step` from the ring buffer. */
BSMM_DEVICE void gemm_read_scales(gemm_shape s, const gemm_lds *ring, gemm_scale_reader r,
                                  uint32_t step, uint32_t side, gemm_scale_words *to) {
    const gemm_lds *from = ring + gemm_slot(s, step * gemm_units(s)) + r.at[side];
#pragma unroll
    for (uint32_t i = 0; i < gemm_tiles(s, side); i++)
        to->sides[side][i] =
            *(const BSMM_IN_LDS uint32_t *)(from + i * BSMM_CDNA_EDGE * GEMM_RING_ROW);
}

/* A lane has read one 32-bit word with scales for each of its tiles. Picks from these words the
 * bytes that its matrix instructions need, and joins four of them in a word of the result. If a
 * step has two units (128 elements of K each), the word has two scales of each of two tiles. If a
 * step has one unit, the word has one scale of each of four tiles. */
BSMM_DEVICE void gemm_pick_scales(gemm_shape s, const gemm_scale_words *from, uint32_t select,
                                  uint32_t side, gemm_scales *to) {
    const uint32_t tiles = gemm_tiles(s, side), *words = from->sides[side];
    uint32_t pairs[GEMM_MOST_ROW_TILES / 2];
#pragma unroll
    for (uint32_t i = 0; i < tiles / 2; i++)
        pairs[i] = __builtin_amdgcn_perm(words[2 * i + 1], words[2 * i], select);
#pragma unroll
    for (uint32_t i = 0; i < tiles / 2; i++)
        if (gemm_units(s) == 2)
            to->sides[side][i] = pairs[i];
        else if (i % 2 == 0)
            to->sides[side][i / 2] =
                i + 1 < tiles / 2 ? (pairs[i] & 0xffff) | (pairs[i + 1] & 0xffff0000u) : pairs[i];
}

/* Returns the minimum of `value` over all lanes of the wave. The code uses DPP, by which a lane
 * reads another lane's register without LDS. The first four steps give the last lane of each row of
 * 16 lanes the minimum of its row. The last two give it to the next row, and to the upper half of
 * the wave. A lane without such a neighbour keeps its value. */
BSMM_DEVICE uint32_t gemm_wave_least(uint32_t value) {
#define LOWER(control)                                                                             \
    do {                                                                                           \
        const uint32_t other = (uint32_t)__builtin_amdgcn_update_dpp(                              \
            (int32_t)value, (int32_t)value, control, 0xf, 0xf, false);                             \
        value = other < value ? other : value;                                                     \
    } while (0)
    enum { ROW_SHR = 0x110, ROW_BCAST_15 = 0x142, ROW_BCAST_31 = 0x143 };
    LOWER(ROW_SHR + 1);
    LOWER(ROW_SHR + 2);
    LOWER(ROW_SHR + 4);
    LOWER(ROW_SHR + 8);
    LOWER(ROW_BCAST_15);
    LOWER(ROW_BCAST_31);
#undef LOWER
    return (uint32_t)__builtin_amdgcn_readlane((int32_t)value, GEMM_WAVE - 1);
}

/* Returns which sums are certainly accurate. A term of a sum is a product of two elements, times a
 * scale of A, times a scale of B. The least product of two nonzero elements is 2^-32 (two e5m2
 * subnormals), and all products of elements are multiples of 2^-32. All terms are therefore
 * multiples of T = 2^-32 * least scale of A * least scale of B, which is a power of two. If T is
 * GEMM_LEAST_SUM or more, no term loses bits to underflow. If T is 2^-149 (the least positive fp32
 * number) or more, no term becomes 0.
 *
 * To find the least scales of the workgroup's rows, each wave writes the least scale of its own
 * rows to the second half of the ring buffer in LDS. No wave may still need the scales in this
 * half. */
BSMM_DEVICE gemm_trust gemm_trust_of(uint32_t low, gemm_shape s, gemm_lds *ring) {
    /* The empty assembly hides the address from the compiler, which would otherwise keep the
     * address of each word in a register throughout the main loop. */
    __asm__ volatile("" : "+s"(ring));
    BSMM_IN_LDS uint32_t *lows = (BSMM_IN_LDS uint32_t *)(ring + gemm_ring_half(s));
    uint32_t least[2] = {255, 255};
    const uint32_t odd = low >> 24, even = low >> 8 & 255;
    lows[gemm_wave()] = gemm_wave_least(odd < even ? odd : even);
    bsmm_isa_barrier();
    for (uint32_t w = 0; w < gemm_threads(s) / GEMM_WAVE; w++) {
        const uint32_t side = w * GEMM_WAVE >= gemm_rows(s, 0);
        least[side] = lows[w] < least[side] ? lows[w] : least[side];
    }
    /* This finds out which fp32 sums the kernel can trust. least[0] and least[1] are the smallest
     * e8m0 codes of A and of B, and `both` is their sum. A code c means 2^(c - 127), so the product
     * of two scales is at least 2^(both - 254). The product of two elements is a multiple of 2^-32.
     * All terms of a sum are therefore multiples of 2^(both - 286). */
    const uint32_t both = (uint32_t)__builtin_amdgcn_readfirstlane((int)(least[0] + least[1]));
    return both >= 286 - 118   ? GEMM_TRUST_ALL
           : both >= 286 - 149 ? GEMM_TRUST_ZERO
                               : GEMM_TRUST_LARGE;
}

#endif
