/* These kernels multiply few rows of A (1 to 64) by weights as they are stored. Both operands
 * become bf16 in registers. An element of f16 becomes the sum of two bf16 numbers, and two matrix
 * instructions multiply them. The kernels are memory-bound: the time to read B limits their speed,
 * and each byte of B is read once.
 *
 * A workgroup computes the results of 16, 32 or 48 rows of B and all rows of A. Its waves divide K
 * among them in whole steps of 128 elements. In each step a wave decodes elements to bf16 in
 * registers and multiplies them. The matrix instructions multiply rows of B by rows of A, so that
 * a lane has results of neighbouring columns of D. No wave waits for another wave before the end of
 * K. After it follow barriers, and the sums of all waves are added in a fixed order.
 *
 * With up to 16 rows of A, each wave multiplies consecutive steps. With more rows, a step of each
 * other wave lies between two steps of a wave. Two waves then need the two halves of a cache line
 * of 4-bit elements at about the same time, so the line is requested once. The first steps of all
 * waves also need fewer lines of HBM, so that the multiplication begins earlier.
 *
 * If A is bf16 or f16, a wave writes its part of A to LDS and reads it back in the order of the
 * matrix instructions. Narrower elements of A are loaded and decoded as those of B.
 *
 * To hide the latency of memory, a wave loads operands some steps before it multiplies them.
 * Usually B is loaded three steps ahead. A is loaded three steps ahead too, or two if it is bf16 or
 * f16. With more than 32 rows of A, there are too few registers for this. A is then loaded one step
 * ahead. So is B if its elements have more than 4 bits and the workgroup has 32 rows of B, or if
 * the workgroup has 48 rows of B and more than 32 rows of A. Loads finish in the order of issue. If
 * A were loaded fewer steps ahead than B, a wait for A would therefore also wait for loads of B
 * that only a later step needs.
 *
 * If B has fp32 scales that do not cover whole rows, a lane multiplies the sum of each step by the
 * scales of A and B and adds the product to the sum over all of K. Results are multiplied by scales
 * of whole rows at the end. */
#ifndef BSMM_AMDGPU_CDNA_SMALL_M_BODY_H
#define BSMM_AMDGPU_CDNA_SMALL_M_BODY_H

#include "amdgpu/cdna/small_m_direct.h"

/* The size of this array is set when the kernel is launched. */
extern BSMM_IN_LDS uint8_t launched[];

/* Holds the addresses in LDS at which a lane writes and reads A. LDS holds one step of A, row by
 * row. A row consists of 16 pieces of eight elements along K. To avoid bank conflicts of writes and
 * of reads, the pieces of a row are permuted: piece 8 * x + 4 * y + z of row r (x, y < 2, z < 4)
 * lies at position (8 * x + 2 * z + y) XOR r % 16 of the row. */
typedef struct small_m_lds_addresses {
    BSMM_IN_LDS uint8_t *to, *from;
    uint32_t write, read;
} small_m_lds_addresses;

enum {
    PIECE = 16,
    ROW = SMALL_M_K * 2, /* ROW is the size in bytes of a row of A in LDS. */
    /* AHEAD is the largest number of steps (128 elements of K each) by which loads run ahead of the
     * multiplication. */
    AHEAD = 3,
    /* RING is the largest number of steps (128 elements of K each) of an operand that registers
     * hold. */
    RING = AHEAD + 1,
    XCDS = 8,   /* XCDS is the number of dies of the GPU. */
    LINE = 128, /* LINE is the size of a cache line in bytes. */
};

/* Holds A for several steps (128 elements of K each) in registers, because loads run ahead of the
 * multiplication. If A is bf16 or f16, `rows` holds what has been loaded and is written to LDS
 * later, and `stored` is not used. Otherwise `stored` holds the elements as they are in memory, and
 * `rows` is not used. */
typedef struct small_m_ring {
    small_m_rows rows[RING];
    small_m_stored stored[RING];
} small_m_ring;

BSMM_DEVICE small_m_lds_addresses find_addresses(BSMM_IN_LDS uint8_t *memory) {
    const uint32_t lane = bsmm_device_lane(), piece = lane % 16, row = lane / 16;
    const uint32_t chunk = (piece & 8) | (piece & 3) << 1 | (piece >> 2 & 1);
    const uint32_t group = lane / 16, first = (group & 2) << 2 | (group & 1);
    return (small_m_lds_addresses){.to = memory + row * ROW,
                                   .from = memory + piece * ROW,
                                   .write = (chunk ^ row) * PIECE,
                                   .read = (first ^ piece) * PIECE};
}

BSMM_DEVICE void write_rows(uint32_t tiles, const small_m_lds_addresses *at,
                            const small_m_rows *rows) {
#pragma unroll
    for (uint32_t i = 0; i < tiles * SMALL_M_LOADS; i++)
        *(BSMM_IN_LDS bsmm_u32x4 *)(at->to + i * 4 * ROW + (at->write ^ i % 4 * 4 * PIECE)) =
            rows->pieces[i];
}

/* Reads eight consecutive elements of row lane % 16 of a tile of A. The first of them is element
 * number 32 * (lane / 16) + 8 * quarter of the step (128 elements of K). */
BSMM_DEVICE bsmm_u32x4 read_row(const small_m_lds_addresses *at, uint32_t tile, uint32_t quarter) {
    return *(const BSMM_IN_LDS bsmm_u32x4 *)(at->from + tile * SMALL_M_EDGE * ROW +
                                             (at->read ^ quarter * 2 * PIECE));
}

/* Returns the number of steps (128 elements of K each) by which loads of A run ahead of the
 * multiplication. A larger number would take too many registers. A row of bf16 or f16 is written
 * from registers to LDS at the beginning of its step. From then on, the same registers can take the
 * load of a later step. */
BSMM_DEVICE uint32_t ahead_a(small_m_shape s) {
    if (s.a_tiles > 2) return 1;
    return small_m_is_wide(s.a) ? AHEAD - 1 : AHEAD;
}

/* Returns the number of steps (128 elements of K each) by which loads of B run ahead of the
 * multiplication. */
BSMM_DEVICE uint32_t ahead_b(small_m_shape s) {
    if (s.a_tiles * s.b_tiles > 2 * SMALL_M_MOST_TILES) return 1;
    return s.a_tiles * s.b_tiles > SMALL_M_MOST_TILES && small_m_bits(s.b) > 4 ? 1 : AHEAD;
}

/* Returns the index in small_m_ring, a ring buffer in registers, of step number `i` of A. A step is
 * 128 elements of K. */
BSMM_DEVICE uint32_t slot_a(small_m_shape s, uint32_t i) {
    return i % (small_m_is_wide(s.a) ? ahead_a(s) : ahead_a(s) + 1);
}

BSMM_DEVICE void load_a(small_m_shape s, small_m_source *from, uint32_t step, uint32_t end,
                        small_m_ring *ring, uint32_t i) {
    if (small_m_is_wide(s.a))
        small_m_load_rows(s.a_tiles, from, step, end, &ring->rows[slot_a(s, i)]);
    else
        small_m_load(s, s.a, s.a_tiles, from, step, end, &ring->stored[slot_a(s, i)]);
}

/* Computes the sums of a step (128 elements of K). If B has fp32 scales, the sums begin at 0 in
 * each step, because the scales of the step multiply them. Otherwise the products are added to the
 * sums of the earlier steps. */
BSMM_DEVICE void multiply(small_m_shape s, const small_m_lds_addresses *at, const small_m_stored *a,
                          const small_m_stored *b, small_m_sums sums) {
    const bool is_f16 = s.a.elem == BSMM_ELEM_F16;
    small_m_factor of_a[SMALL_M_MOST_TILES], of_b[SMALL_M_MOST_TILES];
#pragma unroll
    for (uint32_t i = 0; i < s.b_tiles; i++)
        of_b[i] = small_m_factor_of(s, s.b, b->scales[i], b->words[i]);
#pragma unroll
    for (uint32_t j = 0; j < s.a_tiles && !small_m_is_wide(s.a); j++)
        of_a[j] = small_m_factor_of(s, s.a, a->scales[j], a->words[j]);
#pragma unroll
    for (uint32_t q = 0; q < 4; q++) {
        bsmm_u32x4 rows[SMALL_M_MOST_TILES], rests[SMALL_M_MOST_TILES];
#pragma unroll
        for (uint32_t j = 0; j < s.a_tiles; j++) {
            rows[j] = small_m_is_wide(s.a) ? read_row(at, j, q)
                                           : small_m_decode(s.a, &of_a[j], a->words[j], q);
            if (is_f16) small_m_split(rows[j], &rows[j], &rests[j]);
        }
#pragma unroll
        for (uint32_t i = 0; i < s.b_tiles; i++) {
            const bsmm_u32x4 weights = small_m_decode(s.b, &of_b[i], b->words[i], q);
#pragma unroll
            for (uint32_t j = 0; j < s.a_tiles; j++)
                sums[i][j] = bsmm_isa_mfma_bf16_16(weights, rows[j], sums[i][j]);
#pragma unroll
            for (uint32_t j = 0; j < s.a_tiles && is_f16; j++)
                sums[i][j] = bsmm_isa_mfma_bf16_16(weights, rests[j], sums[i][j]);
        }
        /* Decoding far ahead of the matrix instructions would take too many registers. */
        if (s.b_tiles > 2) __builtin_amdgcn_sched_barrier(0);
    }
}

BSMM_DEVICE void clear(small_m_shape s, small_m_sums sums) {
#pragma unroll
    for (uint32_t i = 0; i < s.b_tiles; i++)
#pragma unroll
        for (uint32_t j = 0; j < s.a_tiles; j++)
            sums[i][j] = (bsmm_f32x4){0, 0, 0, 0};
}

/* Returns the fp32 scale by which the sums of a row are multiplied in each step, or 1 if the
 * operand has no such scales. If fp32 sums may be wrong with this scale, the function returns NaN
 * instead, so that the results are computed again in double. With a bf16 or f16 A, this happens for
 * large scales: products may have underflowed before the scale made them large again. With other
 * formats of A, it happens for small scales: the product of two small scales may make a sum
 * underflow. The operators & and | keep the compiler from making branches. */
BSMM_DEVICE float scale_of(small_m_shape s, small_m_format f, const small_m_stored *stored,
                           uint32_t tile) {
    if (!small_m_has_floats(f)) return 1;
    const float scale = bsmm_bits_float(stored->scales[tile]) * small_m_correction(f);
    const float size = __builtin_fabsf(scale);
    const uint32_t large = size > SMALL_M_MOST_SCALE, nonzero = size > 0;
    const uint32_t small = size < SMALL_M_LEAST_SCALE;
    const bool safe = !(small_m_is_wide(s.a) ? large : small & nonzero);
    return safe ? scale : bsmm_bits_float(0x7fc00000u);
}

/* Multiplies the sums of a step (128 elements of K) by the fp32 scales of A and B, and adds them to
 * the totals, i.e. to the sums over K. A lane needs only one scale of B for each tile of 16 rows of
 * B, because these rows have the same scale. */
BSMM_DEVICE void promote(small_m_shape s, const small_m_stored *a, const small_m_stored *b,
                         const small_m_sums sums, small_m_sums totals) {
#pragma unroll
    for (uint32_t i = 0; i < s.b_tiles; i++)
#pragma unroll
        for (uint32_t j = 0; j < s.a_tiles; j++) {
            const float factor = scale_of(s, s.b, b, i) * scale_of(s, s.a, a, j);
#pragma unroll
            for (uint32_t e = 0; e < 4; e++)
                totals[i][j][e] = fmaf(sums[i][j][e], factor, totals[i][j][e]);
        }
}

/* Multiplies A by B for one step (128 elements of K) and adds the products to the sums. */
BSMM_DEVICE void add_products(small_m_shape s, const small_m_lds_addresses *at,
                              const small_m_stored *a, const small_m_stored *b, small_m_sums sums) {
    if (small_m_is_fp8(s))
        small_m_multiply_fp8(s, a, b, sums);
    else
        multiply(s, at, a, b, sums);
}

BSMM_DEVICE void compute(small_m_shape s, const small_m_lds_addresses *at, const small_m_stored *a,
                         const small_m_stored *b, small_m_sums totals) {
    if (small_m_is_scaled(s)) {
        small_m_multiply_scaled(s, a, b, totals);
    } else if (!small_m_has_floats(s.b)) {
        add_products(s, at, a, b, totals);
    } else {
        small_m_sums sums;
        clear(s, sums);
        add_products(s, at, a, b, sums);
        promote(s, a, b, sums, totals);
    }
}

/* Describes the memory from which a wave loads A and B. `stride` is the distance between two steps
 * of the wave, in steps. `end` is the end of the wave's part of K, or of K if other waves multiply
 * the steps between two steps of the wave. */
typedef struct small_m_sources {
    small_m_source a, b;
    uint32_t stride, end;
} small_m_sources;

/* Does one step of the main loop, which is 128 elements of K. It first starts the loads of A and B
 * for later steps, and then multiplies step number `step`, whose loads have been started in earlier
 * steps. If `step` is `last` or more, there is nothing to multiply. `i` is `step` modulo RING. */
BSMM_DEVICE void run_step(small_m_shape s, small_m_sources *from, uint32_t step, uint32_t last,
                          uint32_t i, const small_m_lds_addresses *at, small_m_ring *a,
                          small_m_stored b[RING], small_m_sums totals) {
    if (small_m_is_wide(s.a)) write_rows(s.a_tiles, at, &a->rows[slot_a(s, i)]);
    load_a(s, &from->a, step + ahead_a(s) * from->stride, from->end, a, i + ahead_a(s));
    small_m_load(s, s.b, s.b_tiles, &from->b, step + ahead_b(s) * from->stride, from->end,
                 &b[(i + ahead_b(s)) % (ahead_b(s) + 1)]);
    __builtin_amdgcn_sched_barrier(0);
    if (step < last) compute(s, at, &a->stored[slot_a(s, i)], &b[i % (ahead_b(s) + 1)], totals);
    __builtin_amdgcn_sched_barrier(0);
}

/* Adds the sums of all waves of the workgroup and stores the results. If two waves share a place in
 * LDS, the later half of the waves first hands its sums to the earlier half. */
BSMM_DEVICE void finish(small_m_shape s, const bsmm_cdna_small_m *p, uint32_t wave,
                        uint32_t first_row, small_m_sums totals) {
    const bool shares = s.a_tiles > 1 && p->places < p->waves;
    const uint32_t places = shares ? p->places : p->waves;
    const uint32_t stride =
        bsmm_cdna_small_m_place_bytes(small_m_is_wide(s.a), s.a_tiles, s.b_tiles, shares) / 4;
    BSMM_IN_LDS float *sums = (BSMM_IN_LDS float *)launched;
    if (shares) {
        bsmm_isa_barrier(); /* Other waves may still read A from LDS. */
        if (wave >= places) small_m_write_sums(s, totals, sums + (wave - places) * stride);
        bsmm_isa_barrier();
        if (wave + places < p->waves) small_m_add_sums(s, totals, sums + wave * stride);
    }
    if (!shares || wave < places) small_m_write_sums(s, totals, sums + wave * stride);
    bsmm_isa_barrier();
    small_m_epilogue_store(s, p, first_row, sums, stride, places);
}

/* Requests cache lines of A for L2, before the workgroups request B. Requests to HBM are answered
 * in order, so loads of A would otherwise wait for the many loads of B that were requested earlier.
 * Workgroup n runs on die (XCD) n % XCDS, and each die has an L2. The lanes of all workgroups of a
 * die request one line each. Returns a word of the line; the caller must wait for it. */
BSMM_DEVICE uint32_t prefetch_a(const bsmm_cdna_small_m *p) {
    const uint32_t groups = (p->groups + XCDS - 1) / XCDS;
    const uint32_t line = bsmm_thread() * groups + bsmm_group_x() / XCDS;
    const uint32_t at = small_m_least(line, BSMM_CDNA_SMALL_M_BYTES / LINE) * LINE;
    return __builtin_amdgcn_raw_buffer_load_b32(small_m_buffer(p->a.data, p->a.bytes), (int32_t)at,
                                                0, 0);
}

/* Returns true for pairs of formats whose kernels need nearly all registers. */
BSMM_DEVICE bool is_tight(small_m_shape s) {
    return small_m_is_scaled(s) || (s.a.elem == BSMM_ELEM_F16 && small_m_has_floats(s.b));
}

BSMM_DEVICE void run(small_m_shape s, const bsmm_cdna_small_m *p) {
    const bool spread = s.a_tiles > 1; /* The steps of a wave are not consecutive. */
    const uint32_t word = spread ? prefetch_a(p) : 0;
    const uint32_t wave = (uint32_t)__builtin_amdgcn_readfirstlane((int)bsmm_thread()) / BSMM_LANES;
    const uint32_t first_row = bsmm_group_x() * s.b_tiles * SMALL_M_EDGE;
    const uint32_t stride = spread ? p->waves : 1;
    const uint32_t first = spread ? wave : wave * p->steps_each + small_m_least(wave, p->longer);
    const uint32_t last = first + (p->steps_each + (wave < p->longer)) * stride;
    small_m_sources from = {
        .a = small_m_source_of(s, s.a, s.a_tiles, &p->a, 0),
        .b = small_m_source_of(s, s.b, s.b_tiles, &p->b, first_row),
        .stride = stride,
        .end = spread ? p->k : small_m_least(last * SMALL_M_K, p->k),
    };
    const small_m_lds_addresses at = find_addresses(
        launched + wave * bsmm_cdna_small_m_row_bytes(small_m_is_wide(s.a), s.a_tiles));
    small_m_sums totals;
    small_m_ring a;
    small_m_stored b[RING];
    clear(s, totals);
#pragma unroll
    for (uint32_t i = 0; i < AHEAD; i++) {
        if (i < ahead_a(s)) load_a(s, &from.a, first + i * stride, from.end, &a, i);
        if (i < ahead_b(s))
            small_m_load(s, s.b, s.b_tiles, &from.b, first + i * stride, from.end, &b[i]);
        __builtin_amdgcn_sched_barrier(0);
    }
    if (spread) __asm__ volatile("" : : "v"(word)); /* This waits for the prefetch of A. */
#pragma clang loop unroll(disable)
    for (uint32_t step = first; step < last;)
#pragma unroll
        for (uint32_t i = 0; i < RING; i++, step += stride) {
            /* The compiler would otherwise keep multiples of `stride` in registers, of which some
             * kernels have too few. */
            if (spread && is_tight(s)) __asm__ volatile("" : "+s"(step));
            run_step(s, &from, step, last, i, &at, &a, b, totals);
        }
    finish(s, p, wave, first_row, totals);
}

/* Declares a kernel whose workgroups have up to eight waves. The compiler limits the registers so
 * that two waves fit on a SIMD at once. */
#define KERNEL                                                                                     \
    __attribute__((amdgpu_kernel, amdgpu_waves_per_eu(2),                                          \
                   amdgpu_flat_work_group_size(64, 64 * BSMM_CDNA_SMALL_M_MOST_WAVES))) void

#define FUNCTION(name, a, b, b_tiles, a_tiles)                                                     \
    KERNEL name(bsmm_cdna_small_m p) {                                                             \
        run((small_m_shape){a, b, b_tiles, a_tiles}, &p);                                          \
    }

/* Defines the kernels that multiply an A of format `a` by a B of format `b`. Their names end in the
 * size of a workgroup's tile: "32x64" means 32 rows of B by up to 64 rows of A. */
#define FUNCTIONS(name, a, b)                                                                      \
    FUNCTION(small_m_##name##_16x16, a, b, 1, 1)                                                   \
    FUNCTION(small_m_##name##_16x32, a, b, 1, 2)                                                   \
    FUNCTION(small_m_##name##_16x64, a, b, 1, 4)                                                   \
    FUNCTION(small_m_##name##_32x16, a, b, 2, 1)                                                   \
    FUNCTION(small_m_##name##_32x32, a, b, 2, 2)                                                   \
    FUNCTION(small_m_##name##_32x64, a, b, 2, 4)

/* These macros also define kernels for 48 rows of B, of pairs of formats for which such kernels
 * have enough registers. */
#define FUNCTIONS_TO_48x32(name, a, b)                                                             \
    FUNCTIONS(name, a, b)                                                                          \
    FUNCTION(small_m_##name##_48x32, a, b, 3, 2)
#define FUNCTIONS_TO_48x64(name, a, b)                                                             \
    FUNCTIONS_TO_48x32(name, a, b) FUNCTION(small_m_##name##_48x64, a, b, 3, 4)

/* clang-format off */
#define BF16       ((small_m_format){BSMM_ELEM_BF16, BSMM_SCALE_NONE})
#define F16        ((small_m_format){BSMM_ELEM_F16, BSMM_SCALE_NONE})
#define E4M3       ((small_m_format){BSMM_ELEM_E4M3, BSMM_SCALE_NONE})
#define MXFP4      ((small_m_format){BSMM_ELEM_E2M1, BSMM_SCALE_E8M0})
#define MXFP8      ((small_m_format){BSMM_ELEM_E4M3, BSMM_SCALE_E8M0})
#define MXFP8_E5M2 ((small_m_format){BSMM_ELEM_E5M2, BSMM_SCALE_E8M0})
#define MXFP6_E2M3 ((small_m_format){BSMM_ELEM_E2M3, BSMM_SCALE_E8M0})
#define MXFP6_E3M2 ((small_m_format){BSMM_ELEM_E3M2, BSMM_SCALE_E8M0})
#define NVFP4      ((small_m_format){BSMM_ELEM_E2M1, BSMM_SCALE_E4M3})
#define FP8_FLOATS ((small_m_format){BSMM_ELEM_E4M3, BSMM_SCALE_F32})
/* clang-format on */

#endif
