/* Copies weights from compact order, in which 16 rows of B are stored side by side in small pieces,
 * to a buffer in which each row is contiguous, for loops that read rows. A piece has 3 bytes (four
 * 6-bit codes) or 4 bytes. */
#include "cpu/small_m/small_m.h"

#include <string.h>

enum { LANES = BSMM_SMALL_M_LANES };

/* In compact order, a row is cut into pieces of `piece` bytes, and 16 rows are stored together.
 * Copies `pieces` pieces of each of the 16 rows, from piece number `first` on. In the copy, the
 * pieces of a row are contiguous. Callers pass a constant `piece`, so that compilers make no calls
 * of memcpy. */
static inline void copy_pieces(const uint8_t *strip, int64_t first, int64_t pieces, int64_t piece,
                               uint8_t *to, int64_t pitch) {
    for (int64_t i = first; i < pieces; i++)
        for (int64_t lane = 0; lane < LANES; lane++)
            memcpy(to + lane * pitch + i * piece, strip + (i * LANES + lane) * piece,
                   (size_t)piece);
}

#if defined(__x86_64__)

#    include <immintrin.h>

#    define TARGET __attribute__((target("avx2")))
#    define INLINE static inline __attribute__((always_inline)) TARGET

enum { BLOCK = 8 };

/* Loads four pieces of 3 bytes, each to a word of 32 bits. Reads 4 bytes past them. That is safe,
 * because 64 more bytes follow each matrix in packed weights. */
INLINE __m128i load_four_threes(const uint8_t *at) {
    const __m128i spread = _mm_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1);
    return _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)at), spread);
}

/* Loads 8 pieces of each of 8 rows of compact weights. A piece is `piece` bytes (3 or 4) of a row's
 * codes. Compact weights hold 16 rows together: first piece 0 of all 16 rows, then piece 1 of all
 * 16 rows, and so on. `at` is the address of the first row's first piece. Lane r (32 bits) of
 * line[i] receives piece i of row r. */
INLINE void load_lines(const uint8_t *at, int64_t piece, __m256i line[BLOCK]) {
    for (int i = 0; i < BLOCK; i++, at += LANES * piece)
        line[i] = piece == 4 ? _mm256_loadu_si256((const __m256i *)(const void *)at)
                             : _mm256_set_m128i(load_four_threes(at + 12), load_four_threes(at));
}

/* Stores the pieces of a row. A piece has `piece` bytes (3 or 4), and each 32-bit word of the
 * register holds one piece. */
INLINE void store_row(__m256i row, int64_t piece, uint8_t *to) {
    const __m256i pack = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1));
    if (piece == 4) {
        _mm256_storeu_si256((__m256i *)(void *)to, row);
        return;
    }
    row = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(row, pack),
                                      _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 7, 7));
    _mm_storeu_si128((__m128i *)(void *)to, _mm256_castsi256_si128(row));
    _mm_storel_epi64((__m128i *)(void *)(to + 16), _mm256_extracti128_si256(row, 1));
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

/* A piece is 3 or 4 bytes of codes of one row. Copies BLOCK pieces of each of 16 rows from compact
 * weights. In the copy, the pieces of a row are contiguous. */
INLINE void unpack_block(const uint8_t *lines, int64_t piece, uint8_t *to, int64_t pitch) {
    for (int half = 0; half < LANES / BLOCK; half++) {
        __m256i line[BLOCK], row[BLOCK];
        load_lines(lines + half * BLOCK * piece, piece, line);
        transpose(line, row);
        for (int i = 0; i < BLOCK; i++)
            store_row(row[i], piece, to + (half * BLOCK + i) * pitch);
    }
}

/* AHEAD is the prefetch distance in bytes. The hardware prefetcher follows 16 rows that are stored
 * together in compact order, but it stops at the end of each page. */
enum { AHEAD = 8192 };

/* Copies codes of 16 rows from compact weights at `strip` to row order at `to`, BLOCK pieces of
 * each row at a time. A piece is `piece` bytes (3 or 4) of codes of a row, and each row has
 * `pieces` of them. Returns the number of pieces of a row that were copied. The caller must copy
 * the remaining ones, which are fewer than BLOCK. */
INLINE int64_t unpack_blocks(const uint8_t *strip, int64_t pieces, int64_t piece, uint8_t *to,
                             int64_t pitch) {
    const int64_t line = LANES * piece;
    int64_t i = 0;
    for (; i + BLOCK <= pieces; i += BLOCK) {
        for (int64_t j = 0; j < BLOCK; j++)
            __builtin_prefetch((const void *)((uintptr_t)(strip + (i + j) * line) + AHEAD), 0, 2);
        unpack_block(strip + i * line, piece, to + i * piece, pitch);
    }
    return i;
}

TARGET static int64_t unpack_threes(const uint8_t *strip, int64_t pieces, uint8_t *to,
                                    int64_t pitch) {
    return unpack_blocks(strip, pieces, 3, to, pitch);
}

TARGET static int64_t unpack_fours(const uint8_t *strip, int64_t pieces, uint8_t *to,
                                   int64_t pitch) {
    return unpack_blocks(strip, pieces, 4, to, pitch);
}

#else

/* These functions are never called on other architectures than x86-64, because all kernels that
 * call them need AVX2. */
static int64_t unpack_threes(const uint8_t *strip, int64_t pieces, uint8_t *to, int64_t pitch) {
    (void)strip, (void)pieces, (void)to, (void)pitch;
    return 0;
}

static int64_t unpack_fours(const uint8_t *strip, int64_t pieces, uint8_t *to, int64_t pitch) {
    return unpack_threes(strip, pieces, to, pitch);
}

#endif

void bsmm_small_m_unpack(const uint8_t *strip, int64_t bytes, int64_t piece, uint8_t *to,
                         int64_t pitch) {
    int64_t pieces = bytes / piece;
    if (piece == 3)
        copy_pieces(strip, unpack_threes(strip, pieces, to, pitch), pieces, 3, to, pitch);
    else
        copy_pieces(strip, unpack_fours(strip, pieces, to, pitch), pieces, 4, to, pitch);
}
