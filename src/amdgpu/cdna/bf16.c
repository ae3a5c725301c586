/* This is a GEMM of any two operands on the bf16 matrix cores of CDNA3 and CDNA4. It is the
 * fallback for products that no specialised kernel supports.
 *
 * A workgroup of four waves computes a tile of D of 64 x 64. Each step of the main loop covers 32
 * elements of K. First, all threads decode the elements and scales of A and B and write the values
 * to LDS as bf16 planes. A plane holds one bf16 number of each value of a tile. A value is one bf16
 * number, or else the sum of three (gpu/bf16_product.h). A barrier waits until the planes are
 * written. Then each wave multiplies its 32 x 32 part of the tile. A second barrier waits until all
 * waves have read the planes, before the next step overwrites them.
 *
 * After the main loop, the waves write their sums to LDS, where the epilogue reads them. Each
 * thread of the epilogue stores one result at a time. A sum that may be inaccurate in fp32 is
 * computed again in double.
 *
 * LDS contains three parts. The first part holds the planes of A and B, and at the end the fp32
 * tile of sums. The second part has a 32-bit word for each of the 128 rows of A and B, which is
 * nonzero if the row has a nonzero value. The third part has an fp32 number for each of these rows,
 * the row's scale. Only the kernel bf16_1x1_scaled uses it, and multiplies sums by it. */
#include "amdgpu/cdna/bf16_params.h"
#include "amdgpu/cdna/kernel.h"
#include "gpu/bf16_values.h"

enum {
    TILE = BSMM_CDNA_BF16_TILE,
    THREADS = BSMM_CDNA_BF16_THREADS,
    PITCH = BSMM_CDNA_BF16_PITCH,
    PLANE = BSMM_CDNA_BF16_PLANE,
};

#define LDS __attribute__((address_space(3)))
extern LDS uint8_t launched[]; /* The size of this LDS array is set when the kernel is launched. */

typedef uint32_t words4 __attribute__((ext_vector_type(4)));
typedef float sums16 __attribute__((ext_vector_type(16)));
typedef short bf16x4 __attribute__((ext_vector_type(4)));
_Static_assert(TILE *BSMM_BF16_K / 8 == THREADS, "a thread decodes 8 values of each operand");

typedef struct tile_memory {
    /* `a` and `b` are the planes of A and of B. A plane holds one bf16 number of each value. */
    LDS uint8_t *a, *b;
    /* `nonzero` has one flag for each row of A, then one for each row of B. A flag is nonzero if
     * the row has a nonzero value. */
    LDS uint32_t *nonzero;
    LDS float *factors;
} tile_memory;

/* Decodes eight values of one row and stores them in all planes. A value is the sum of `parts` bf16
 * numbers, and plane i holds bf16 number i of each value. If a value is no such sum, NaN is stored
 * instead. All results of this row become NaN too and are computed again in double. */
BSMM_DEVICE void stage(const int parts, const bsmm_bf16_side *side, uint32_t first_row, uint32_t k,
                       uint32_t end, LDS uint8_t *to, LDS uint32_t *nonzero) {
    const uint32_t t = bsmm_thread(), row = side->by_rows ? t / 4 : t % TILE;
    const uint32_t eighth = side->by_rows ? t % 4 : t / TILE, from = k + eighth * 8;
    float values[8] = {0};
    uint32_t any = 0, words[3][4];
    if (first_row + row < side->rows && from < end)
        bf16_values(side, first_row + row, from, end, values);
    BSMM_UNROLL
    for (int i = 0; i < 4; i++) {
        uint32_t halves[3];
        bf16_split(parts, values[2 * i], values[2 * i + 1], halves, &any);
        BSMM_UNROLL
        for (int part = 0; part < parts; part++)
            words[part][i] = halves[part];
    }
    BSMM_UNROLL
    for (int part = 0; part < parts; part++)
        *(LDS words4 *)(to + part * PLANE + row * PITCH + eighth * 16) =
            (words4){words[part][0], words[part][1], words[part][2], words[part][3]};
    if (any & 0x7fffffffu) nonzero[row] = 1;
}

/* Holds the values that one lane passes to matrix instructions for 32 elements of K, i.e. 16 values
 * of one row. Lanes 0 to 31 hold the first 16 of the 32 elements of their rows, and lanes 32 to 63
 * hold the last 16. The matrix instructions assign other elements of K to these lanes. That does no
 * harm, because A and B are permuted along K in the same way, so the sum has the same products. */
typedef struct fragment {
    words4 w[2];
} fragment;

BSMM_DEVICE fragment load_fragment(const LDS uint8_t *plane, uint32_t row) {
    const uint32_t lane = bsmm_device_lane();
    const LDS words4 *from =
        (const LDS words4 *)(plane + (row + lane % 32) * PITCH + lane / 32 * 32);
    return (fragment){{from[0], from[1]}};
}

BSMM_DEVICE bf16x4 four_of(const fragment *f, int i) {
    union {
        uint32_t words[2];
        bf16x4 values;
    } both = {{f->w[i / 2][i % 2 * 2], f->w[i / 2][i % 2 * 2 + 1]}};
    return both.values;
}

BSMM_DEVICE sums16 multiply(const fragment *a, const fragment *b, sums16 sums) {
    BSMM_UNROLL
    for (int i = 0; i < 4; i++)
        sums =
            __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(four_of(a, i), four_of(b, i), sums, 0, 0, 0);
    return sums;
}

/* Returns the row of sum number i of this lane, counted from the first row of the wave's 32 x 32
 * tile. The column is the lane's number modulo 32. */
BSMM_DEVICE uint32_t row_of(int i) {
    return (uint32_t)(i / 4 * 8 + i % 4) + bsmm_device_lane() / 32 * 4;
}

/* Multiplies one step (32 elements of K) of operands whose values are sums of up to three bf16
 * parts. Part 0 is the largest. The product of part 0 of A and part 0 of B is added to `sums`. The
 * products of part i of A and part j of B are added to `rest` if i + j is 1 or 2. A separate sum
 * for these small terms keeps their rounding errors small. Pairs with i + j > 2 are left out,
 * because they are below 2^-23 of the product of the two values. */
BSMM_DEVICE void step(const int a_parts, const int b_parts, const tile_memory *m, uint32_t row,
                      uint32_t col, sums16 *sums, sums16 *rest) {
    BSMM_UNROLL
    for (int i = 0; i < a_parts; i++) {
        const fragment a = load_fragment(m->a + i * PLANE, row);
        BSMM_UNROLL
        for (int j = 0; j < b_parts; j++) {
            if (i + j > 2) continue;
            const fragment b = load_fragment(m->b + j * PLANE, col);
            if (i + j == 0)
                *sums = multiply(&a, &b, *sums);
            else
                *rest = multiply(&a, &b, *rest);
        }
    }
}

/* Multiplies one step (32 elements of K) and adds the results to *sums. Each value of A and B must
 * be a single bf16 number. The matrix instructions first sum the products of this step alone. Each
 * of these sums is then multiplied by the fp32 scales of its row of A and of its row of B. */
BSMM_DEVICE void step_scaled(const tile_memory *m, uint32_t row, uint32_t col, sums16 *sums) {
    const fragment a = load_fragment(m->a, row), b = load_fragment(m->b, col);
    const sums16 part = multiply(&a, &b, (sums16)(0.0f));
    const float column = m->factors[TILE + col + bsmm_device_lane() % 32];
    BSMM_UNROLL
    for (int i = 0; i < 16; i++)
        (*sums)[i] = fmaf(part[i], m->factors[row + row_of(i)] * column, (*sums)[i]);
}

/* Returns the accurate sum of each lane of a wave. If `doubted` is true in a lane, all lanes of the
 * wave compute that lane's sum again in double. Otherwise the lane's result is `sum`. */
BSMM_DEVICE double repair(const bsmm_bf16_job *p, uint32_t row, uint32_t col, bool doubted,
                          double sum) {
    uint64_t left = __builtin_amdgcn_ballot_w64(doubted);
    while (left) {
        const uint32_t lane = (uint32_t)__builtin_ctzll(left);
        const double again = bsmm_gpu_epilogue_sum_again(
            &p->sides[0].o, &p->sides[1].o,
            (uint32_t)__builtin_amdgcn_readlane((int)row, (int)lane),
            (uint32_t)__builtin_amdgcn_readlane((int)col, (int)lane), p->k);
        if (bsmm_device_lane() == lane) sum = again;
        left &= left - 1;
    }
    return sum;
}

BSMM_DEVICE void store(const bsmm_bf16_job *p, const LDS float *strip, const LDS uint32_t *nonzero,
                       uint32_t a_base, uint32_t b_base) {
    const bsmm_gpu_epilogue_factors factors = bsmm_gpu_epilogue_begin(&p->epilogue);
#pragma clang loop unroll(disable)
    for (uint32_t i = bsmm_thread(); i < TILE * TILE; i += THREADS) {
        const uint32_t r = i / TILE, c = i % TILE, row = a_base + r, col = b_base + c;
        const bool wanted = row < p->sides[0].rows && col < p->sides[1].rows;
        const bool doubted = wanted && bf16_doubts(strip[i], !nonzero[r] || !nonzero[TILE + c]);
        const double sum = repair(p, row, col, doubted, (double)strip[i]);
        if (wanted) bsmm_gpu_epilogue_store(&p->epilogue, &factors, row, col, sum);
    }
}

BSMM_DEVICE void barrier(void) {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup", "local");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup", "local");
}

/* Computes tiles of D: the tile with the number of this workgroup, and every `groups`-th tile after
 * it. `groups` is the number of workgroups in the launch. */
BSMM_DEVICE void multiply_tiles(const int a_parts, const int b_parts, const bool scaled,
                                const bsmm_bf16_job *p, uint32_t groups) {
    const int planes = (a_parts + b_parts) * PLANE;
    const int end = planes > BSMM_CDNA_BF16_STRIP ? planes : BSMM_CDNA_BF16_STRIP;
    const tile_memory m = {launched, launched + a_parts * PLANE, (LDS uint32_t *)(launched + end),
                           (LDS float *)(launched + end + 2 * TILE * 4)};
    const uint32_t t = bsmm_thread(), wave = t / BSMM_LANES;
    const uint32_t row = wave / 2 * 32, col = wave % 2 * 32;
#pragma clang loop unroll(disable)
    for (uint32_t tile = bsmm_group_x(); tile < p->tiles; tile += groups) {
        const uint32_t a_base = tile / p->b_tiles * TILE, b_base = tile % p->b_tiles * TILE;
        sums16 sums = (sums16)(0.0f), rest = sums;
        if (t < 2 * TILE) m.nonzero[t] = 0;
        barrier();
#pragma clang loop unroll(disable)
        for (uint32_t k = 0; k < p->k; k += BSMM_BF16_K) {
            stage(a_parts, &p->sides[0], a_base, k, p->k, m.a, m.nonzero);
            stage(b_parts, &p->sides[1], b_base, k, p->k, m.b, m.nonzero + TILE);
            if (scaled && t < 2 * TILE)
                m.factors[t] =
                    bf16_factor(&p->sides[t / TILE], (t < TILE ? a_base : b_base - TILE) + t, k);
            barrier(); /* Now all waves have written the planes. */
            if (scaled)
                step_scaled(&m, row, col, &sums);
            else
                step(a_parts, b_parts, &m, row, col, &sums, &rest);
            barrier(); /* Now all waves have read the planes. */
        }
        LDS float *strip = (LDS float *)launched;
        BSMM_UNROLL
        for (int i = 0; i < 16; i++)
            strip[(row + row_of(i)) * TILE + col + bsmm_device_lane() % 32] = sums[i] + rest[i];
        barrier();
        store(p, strip, m.nonzero, a_base, b_base);
        barrier(); /* Now all waves have read the sums, and the next tile may overwrite them. */
    }
}

#define KERNEL(id, name, a_parts, b_parts, scaled)                                                 \
    BSMM_KERNEL(THREADS) name(bsmm_bf16_job job, uint32_t groups) {                                \
        (void)job;                                                                                 \
        multiply_tiles(a_parts, b_parts, scaled, BSMM_PARAMETERS(bsmm_bf16_job), groups);          \
    }
#include "gpu/bf16_kernels.def"
