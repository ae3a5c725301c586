/* Moves e8m0 scales from memory to LDS. Each thread moves the scales of one row of A or B. A unit
 * is the 128 elements of K that one matrix instruction multiplies, and a step of the main loop has
 * one or two units (gemm_k). In LDS, the scales that a lane needs for one unit are neighbouring
 * bytes, one for each 16 x 16 tile of its wave. A lane therefore gets all scales of a unit with one
 * read for each operand, although the scales may have any layout in memory.
 *
 * LDS has a ring buffer with a slot for each of eight units. LDS also has a small buffer for each
 * thread, which the code calls the thread's tray. In step t a thread loads scales from memory to
 * its tray. In step t + 1 the thread moves the scales from the tray to the ring buffer. After the
 * barrier that ends step t + 1, all lanes may read them.
 *
 * If a row's scales are contiguous in memory, one wide load brings the scales of four units. In a
 * step whose first unit u is a multiple of four, the thread loads the scales of the units u + 4 to
 * u + 7. Scales that no wide load brings are loaded one by one, each as a 32-bit word. The thread
 * then loads the scales for step t + 2 in step t. */
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
    /* GEMM_AHEAD is the number of steps of the main loop between the load of scales and their
     * use. */
    GEMM_AHEAD = 2,
};

/* Holds the state of a thread that moves the scales of one row of A or B from memory to LDS. */
typedef struct gemm_carrier {
    bsmm_i32x4 buffer; /* `buffer` is the memory that holds the scales of A or of B. */
    /* `row` is the offset in bytes of the scales of the thread's row in `buffer`. */
    uint32_t row;
    /* `at` in lane l is the distance, in scales, from the scale of block 0 along K to the scale of
     * block l % 8 in the same row. After 8 blocks the distances grow by `period`. The kernel keeps
     * the distances in registers of different lanes, because reading another lane's register takes
     * less time than loading a kernel parameter. */
    uint32_t at, period;
    /* `to` is the offset of the scale of block 0 of the thread's row in a slot of the ring
     * buffer. */
    uint32_t to;
    /* `pitch` is the number of bytes, in a slot of the ring buffer, from the scale of one block
     * along K to the scale of the next. */
    uint32_t pitch;
    uint32_t blocks; /* `blocks` is the number of scale blocks along K. */
    uint32_t low;    /* `low` is the least scale of the thread's row so far, as an e8m0 code. */
    /* `wide` is the number of units (128 elements of K) whose scales wide loads bring, a multiple
     * of four. `units` is the number of all units. Both are 0 if this wave has no rows, because the
     * tile has fewer rows than the workgroup has threads. */
    uint32_t wide, units;
    /* `tray` says which scales are in the thread's tray in LDS: none, the scales of one step, or
     * the scales of four units. `unit` is the first unit to which these scales belong. */
    enum { GEMM_NOTHING, GEMM_ONE_STEP, GEMM_FOUR_UNITS } tray;
    uint32_t unit;
} gemm_carrier;

/* Returns the number of units of a step. A unit is 128 elements of K. */
BSMM_DEVICE uint32_t gemm_units(gemm_shape s) {
    return gemm_k(s.types[0]) / BSMM_CDNA_K;
}

BSMM_DEVICE uint32_t gemm_slot_bytes(gemm_shape s) {
    return GEMM_UNIT_BLOCKS * (gemm_rows(s, 0) + gemm_rows(s, 1));
}

BSMM_DEVICE uint32_t gemm_tiles(gemm_shape s, uint32_t side) {
    return side ? s.col_tiles : s.row_tiles;
}

/* Returns the offset in a slot of the ring buffer of the scale of block 0 of a row. `row` is the
 * row's number in LDS. A slot orders the scales of a wave's rows by block along K, then by row in a
 * 16 x 16 tile, then by tile. */
BSMM_DEVICE uint32_t gemm_scale_place(gemm_shape s, uint32_t side, uint32_t row) {
    const uint32_t tiles = gemm_tiles(s, side), wave_rows = tiles * BSMM_CDNA_EDGE;
    const uint32_t first = side ? gemm_rows(s, 0) * GEMM_UNIT_BLOCKS : 0;
    return first + row / wave_rows * wave_rows * GEMM_UNIT_BLOCKS + row % BSMM_CDNA_EDGE * tiles +
           row / BSMM_CDNA_EDGE % tiles;
}

BSMM_DEVICE uint32_t gemm_slot(gemm_shape s, uint32_t unit) {
    return unit % BSMM_CDNA_SCALE_UNITS * gemm_slot_bytes(s);
}

/* Returns the address of the trays of the wave's threads. A tray is a thread's buffer in LDS for
 * scales on their way to the ring buffer. A wide load writes 16 bytes for each thread. Other loads
 * write one word for each thread and block, block by block. */
BSMM_DEVICE gemm_lds *gemm_trays(gemm_shape s, gemm_lds *ring) {
    return ring + BSMM_CDNA_SCALE_UNITS * gemm_slot_bytes(s) +
           gemm_wave() * GEMM_WAVE * 16 * gemm_units(s);
}

BSMM_DEVICE gemm_carrier gemm_carrier_of(const bsmm_cdna_gemm *p, gemm_shape s,
                                         const uint32_t first[2]) {
    const uint32_t wave_row = gemm_wave() * GEMM_WAVE, side = wave_row >= gemm_rows(s, 0);
    const uint32_t thread = gemm_thread_of_tile(), row = thread - (side ? gemm_rows(s, 0) : 0);
    const bsmm_cdna_side *o = &p->sides[side];
    const uint32_t at = first[side] + row, last = o->rows - 1;
    const uint32_t length = gemm_part_length(p);
    const uint32_t blocks = (length + GEMM_SCALED_BLOCK - 1) / GEMM_SCALED_BLOCK;
    const bool works = wave_row < gemm_rows(s, 0) + gemm_rows(s, 1);
    return (gemm_carrier){
        .buffer = bsmm_isa_buffer(o->o.scales, UINT32_MAX),
        .row = (uint32_t)bsmm_axis_at(&o->o.row_map, at < last ? at : last) +
               gemm_part_scale(p, side, GEMM_SCALED_BLOCK),
        .at = o->scale_at[thread % BSMM_CDNA_SCALES],
        .period = o->scale_period,
        .to = gemm_scale_place(s, side, gemm_row_in_lds(gemm_order(s, side), row)),
        .pitch = BSMM_CDNA_EDGE * gemm_tiles(s, side),
        .blocks = blocks,
        .low = 255,
        .wide = works && o->scales_in_row ? blocks / (4 * GEMM_UNIT_BLOCKS) * 4 : 0,
        .units = works ? (length + BSMM_CDNA_K - 1) / BSMM_CDNA_K : 0,
        .tray = GEMM_NOTHING,
    };
}

BSMM_DEVICE void gemm_load_group(gemm_carrier *c, gemm_lds *trays, uint32_t unit) {
    c->tray = GEMM_FOUR_UNITS, c->unit = unit;
    bsmm_isa_load_to_lds(c->buffer, (uint32_t)(uintptr_t)trays, c->row, unit * GEMM_UNIT_BLOCKS,
                         16);
}

BSMM_DEVICE void gemm_load_step(gemm_carrier *c, gemm_shape s, gemm_lds *trays, uint32_t unit) {
    c->tray = GEMM_ONE_STEP, c->unit = unit;
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

/* Loads the scales that are due in step `step` of the main loop to the trays, i.e. to the threads'
 * buffers in LDS. If the scales of a row are contiguous in memory, no scales are due in most steps.
 * __builtin_expect tells the compiler to make this case fast. */
BSMM_DEVICE void gemm_load_scales(gemm_carrier *c, gemm_shape s, gemm_lds *trays, uint32_t step) {
    const uint32_t unit = step * gemm_units(s), next = unit + GEMM_AHEAD * gemm_units(s);
    c->tray = GEMM_NOTHING;
    if (__builtin_expect(unit % GEMM_GROUP != 0 && next < c->wide, 1)) return;
    if (next < c->wide) {
        if (unit % GEMM_GROUP == 0 && unit + GEMM_GROUP < c->wide)
            gemm_load_group(c, trays, unit + GEMM_GROUP);
    } else if (next < c->units) {
        gemm_load_step(c, s, trays, next);
    }
}

BSMM_DEVICE void gemm_store_scale(gemm_carrier *c, gemm_lds *slot, uint32_t block, uint32_t code) {
    slot[c->to + block * c->pitch] = (uint8_t)code;
    c->low = code < c->low ? code : c->low;
}

/* Moves the scales of one step of the main loop from the trays (the threads' buffers in LDS) to the
 * ring buffer in LDS. Elements beyond K are 0. Their scales must not be NaN, because 0 times NaN is
 * NaN. */
BSMM_DEVICE void gemm_store_step(gemm_carrier *c, gemm_shape s, gemm_lds *ring,
                                 const gemm_lds *trays) {
    const BSMM_IN_LDS uint32_t *words = (const BSMM_IN_LDS uint32_t *)trays;
#pragma unroll
    for (uint32_t b = 0; b < gemm_units(s) * GEMM_UNIT_BLOCKS; b++) {
        const bool inside = c->unit * GEMM_UNIT_BLOCKS + b < c->blocks;
        gemm_store_scale(c, ring + gemm_slot(s, c->unit + b / GEMM_UNIT_BLOCKS),
                         b % GEMM_UNIT_BLOCKS,
                         inside ? words[b * GEMM_WAVE + gemm_lane()] : GEMM_SCALE_ONE);
    }
}

/* Moves the scales of four units (128 elements of K each) from the trays (the threads' buffers in
 * LDS) to the ring buffer in LDS. */
BSMM_DEVICE void gemm_store_group(gemm_carrier *c, gemm_shape s, gemm_lds *ring,
                                  const gemm_lds *trays) {
    const bsmm_i32x4 words = ((const BSMM_IN_LDS bsmm_i32x4 *)trays)[gemm_lane()];
#pragma unroll
    for (uint32_t i = 0; i < GEMM_GROUP; i++)
#pragma unroll
        for (uint32_t b = 0; b < GEMM_UNIT_BLOCKS; b++)
            gemm_store_scale(c, ring + gemm_slot(s, c->unit + i), b,
                             (uint32_t)words[i] >> 8 * b & 0xff);
}

/* Moves the scales that have arrived in the trays (the threads' buffers in LDS) to the ring buffer
 * in LDS. The loads of these scales must have finished. */
BSMM_DEVICE void gemm_store_scales(gemm_carrier *c, gemm_shape s, gemm_lds *ring) {
    if (__builtin_expect(c->tray == GEMM_NOTHING, 1)) return;
    if (c->tray == GEMM_ONE_STEP) gemm_store_step(c, s, ring, gemm_trays(s, ring));
    if (c->tray == GEMM_FOUR_UNITS) gemm_store_group(c, s, ring, gemm_trays(s, ring));
}

/* Loads the scales of the first four units (128 elements of K each) to the trays, if a wide load
 * can load them. */
BSMM_DEVICE void gemm_request_scales(const gemm_carrier *c, gemm_shape s, gemm_lds *ring) {
    gemm_carrier first = *c;
    if (c->wide) gemm_load_group(&first, gemm_trays(s, ring), 0);
}

/* Moves the scales of the first steps to the ring buffer in LDS, before the main loop.
 * gemm_request_scales must have been called before. */
BSMM_DEVICE void gemm_begin_scales(gemm_carrier *c, gemm_shape s, gemm_lds *ring) {
    const uint32_t last = (c->wide ? 1 : GEMM_AHEAD) * gemm_units(s);
    c->tray = GEMM_FOUR_UNITS, c->unit = 0;
#pragma clang loop unroll(disable)
    for (uint32_t unit = 0; unit < last && unit < c->units; unit += gemm_units(s)) {
        if (!c->wide) gemm_load_step(c, s, gemm_trays(s, ring), unit);
        bsmm_isa_wait_loads(0);
        gemm_store_scales(c, s, ring);
    }
    c->tray = GEMM_NOTHING;
}

/* Holds a lane's e8m0 scales for one unit (128 elements of K). There is one byte for each of the
 * wave's 16 x 16 tiles, and the first tile has the lowest byte. */
typedef struct gemm_scales {
    uint32_t rows[GEMM_MOST_ROW_TILES / 4], cols;
} gemm_scales;

/* Reads this lane's scales for one unit (128 elements of K) from the slot `slot` of the ring
 * buffer. `offsets` are the results of gemm_scale_place for the wave's first row of A and of B. */
BSMM_DEVICE gemm_scales gemm_read_scales(gemm_shape s, const gemm_lds *slot,
                                         const uint32_t offsets[2]) {
    typedef uint32_t pair __attribute__((vector_size(8)));
    const gemm_lds *rows = slot + offsets[0] + gemm_lane() * s.row_tiles;
    const gemm_lds *cols = slot + offsets[1] + gemm_lane() * s.col_tiles;
    gemm_scales scales = {{0}, 0};
    if (s.row_tiles == 8) {
        const pair both = *(const BSMM_IN_LDS pair *)rows;
        scales.rows[0] = both[0], scales.rows[1] = both[1];
    } else {
        scales.rows[0] = *(const BSMM_IN_LDS uint16_t *)rows;
    }
    scales.cols = s.col_tiles == 4 ? *(const BSMM_IN_LDS uint32_t *)cols
                                   : *(const BSMM_IN_LDS uint16_t *)cols;
    return scales;
}

BSMM_DEVICE uint32_t gemm_wave_least(uint32_t value) {
    const int32_t lane = (int32_t)(gemm_thread_of_tile() % GEMM_WAVE);
    for (int distance = GEMM_WAVE / 2; distance > 0; distance /= 2) {
        const uint32_t other =
            (uint32_t)__builtin_amdgcn_ds_bpermute(4 * (lane ^ distance), (int32_t)value);
        value = other < value ? other : value;
    }
    return value;
}

/* Returns which sums are accurate. The least product of two nonzero elements is 2^-32 (two e5m2
 * subnormals), and all products of elements are multiples of 2^-32. All terms of a sum are
 * therefore multiples of a power of two, namely 2^-32 times the least scale of A and the least
 * scale of B. If this power is GEMM_LEAST_SUM or more, no term loses bits to underflow. If it is
 * 2^-149 (the least positive fp32 number) or more, no term becomes 0. Each wave writes its least
 * scale to the last slot of the ring buffer in LDS, so no wave may need this slot any more. */
BSMM_DEVICE gemm_trust gemm_trust_of(const gemm_carrier *c, gemm_shape s, gemm_lds *ring) {
    BSMM_IN_LDS uint32_t *lows =
        (BSMM_IN_LDS uint32_t *)(ring + gemm_slot(s, BSMM_CDNA_SCALE_UNITS - 1));
    /* The empty assembly hides the address from the compiler, which would otherwise keep the
     * address of each word in a scalar register throughout the main loop. */
    __asm__ volatile("" : "+v"(lows));
    uint32_t least[2] = {255, 255};
    lows[gemm_wave()] = gemm_wave_least(c->low);
    bsmm_isa_wait_barrier();
    for (uint32_t w = 0; w < gemm_threads(s) / GEMM_WAVE; w++) {
        const uint32_t side = w * GEMM_WAVE >= gemm_rows(s, 0);
        least[side] = lows[w] < least[side] ? lows[w] : least[side];
    }
    /* The power of two is 2^(least[0] + least[1] - 254 - 32), i.e. 2^(both - 286). */
    const uint32_t both = least[0] + least[1];
    return both >= 286 - 118   ? GEMM_TRUST_ALL
           : both >= 286 - 149 ? GEMM_TRUST_ZERO
                               : GEMM_TRUST_LARGE;
}

#endif
