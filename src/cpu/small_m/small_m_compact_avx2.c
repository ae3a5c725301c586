/* Copies weights from compact order, in which 16 rows of B are stored side by side in small pieces,
 * to row order for loops that read rows. */
#include "cpu/small_m/small_m.h"

#include <string.h>

enum { LANES = BSMM_SMALL_M_LANES };

/* Copies pieces of 3 bytes (four 6-bit codes) from compact order to rows. A copy of 4 bytes needs
 * fewer instructions than one of 3. The next piece overwrites the fourth byte. */
static void unpack_threes(const uint8_t *strip, int64_t pieces, uint8_t *to, int64_t pitch) {
    for (int64_t lane = 0; lane < LANES; lane++) {
        const uint8_t *from = strip + 3 * lane;
        uint8_t *row = to + lane * pitch;
        for (int64_t i = 0; i < pieces - 1; i++)
            memcpy(row + 3 * i, from + 3 * LANES * i, 4);
        if (pieces > 0) memcpy(row + 3 * (pieces - 1), from + 3 * LANES * (pieces - 1), 3);
    }
}

#if defined(__x86_64__)

#    include <immintrin.h>

#    define TARGET __attribute__((target("avx2")))
#    define INLINE static inline __attribute__((always_inline)) TARGET

enum { BLOCK = 8, PIECE = 4, LINE = LANES * PIECE };

INLINE void load_lines(const uint8_t *at, __m256i line[BLOCK]) {
    for (int i = 0; i < BLOCK; i++)
        line[i] = _mm256_loadu_si256((const __m256i *)(const void *)(at + (int64_t)i * LINE));
}

/* Transposes 8 x 8 words of 32 bits: out[i] gets word i of each register line[j]. */
INLINE void transpose(const __m256i line[BLOCK], __m256i out[BLOCK]) {
    __m256i pair[BLOCK], four[BLOCK];
    for (int i = 0; i < BLOCK; i += 2) {
        pair[i] = _mm256_unpacklo_epi32(line[i], line[i + 1]);
        pair[i + 1] = _mm256_unpackhi_epi32(line[i], line[i + 1]);
    }
    for (int i = 0; i < BLOCK; i += 4)
        for (int j = 0; j < 2; j++) {
            four[i + 2 * j] = _mm256_unpacklo_epi64(pair[i + j], pair[i + j + 2]);
            four[i + 2 * j + 1] = _mm256_unpackhi_epi64(pair[i + j], pair[i + j + 2]);
        }
    for (int i = 0; i < 4; i++) {
        out[i] = _mm256_permute2x128_si256(four[i], four[i + 4], 0x20);
        out[i + 4] = _mm256_permute2x128_si256(four[i], four[i + 4], 0x31);
    }
}

/* Copies 8 pieces (of 4 bytes each) of each of 16 rows from compact weights to row order. */
INLINE void unpack_block(const uint8_t *lines, uint8_t *to, int64_t pitch) {
    for (int half = 0; half < LANES / BLOCK; half++) {
        __m256i line[BLOCK], row[BLOCK];
        load_lines(lines + half * BLOCK * PIECE, line);
        transpose(line, row);
        for (int i = 0; i < BLOCK; i++)
            _mm256_storeu_si256((__m256i *)(void *)(to + (half * BLOCK + i) * pitch), row[i]);
    }
}

/* AHEAD is the prefetch distance in bytes. The hardware prefetcher follows 16 rows that are stored
 * together in compact order, but it stops at the end of each page. */
enum { AHEAD = 8192 };

TARGET static int64_t unpack_blocks(const uint8_t *strip, int64_t pieces, uint8_t *to,
                                    int64_t pitch) {
    int64_t i = 0;
    for (; i + BLOCK <= pieces; i += BLOCK) {
        for (int64_t j = 0; j < BLOCK; j++)
            __builtin_prefetch((const void *)((uintptr_t)(strip + (i + j) * LINE) + AHEAD), 0, 2);
        unpack_block(strip + i * LINE, to + i * PIECE, pitch);
    }
    return i;
}

static void unpack_fours(const uint8_t *strip, int64_t pieces, uint8_t *to, int64_t pitch) {
    for (int64_t i = unpack_blocks(strip, pieces, to, pitch); i < pieces; i++)
        for (int64_t lane = 0; lane < LANES; lane++)
            memcpy(to + lane * pitch + i * PIECE, strip + i * LINE + lane * PIECE, PIECE);
}

#else

/* This function is never called on other architectures than x86-64, because all kernels that call
 * it need AVX2. */
static void unpack_fours(const uint8_t *strip, int64_t pieces, uint8_t *to, int64_t pitch) {
    (void)strip, (void)pieces, (void)to, (void)pitch;
}

#endif

void bsmm_small_m_unpack(const uint8_t *strip, int64_t bytes, int64_t piece, uint8_t *to,
                         int64_t pitch) {
    if (piece == 3)
        unpack_threes(strip, bytes / 3, to, pitch);
    else
        unpack_fours(strip, bytes / 4, to, pitch);
}
