/* The kernel cpu_avx2_int8dot_small_m multiplies few rows of A by weights, both in e2m1 or e2m3. It
 * reads the weights as they are stored, without packing them first.
 *
 * Its results are bitwise identical to those of cpu_avx2_int8dot (small_m_int8dot.h gives the
 * reason). For up to 4 rows of A and e2m1 weights, the lanes of a vector are consecutive elements
 * of K (small_m_int8dot_row_avx2.c). In all other cases the lanes are columns of D
 * (small_m_int8dot_columns_avx2.c). */
#include "cpu/small_m/small_m_int8dot_avx2.h"
#include "cpu/small_m/small_m_kernel.h"

/* These are the largest numbers of rows of A for which this kernel is used: most_rows_of_fours for
 * 4-bit weights and most_rows_of_sixes for 6-bit weights. With more rows, it is faster to pack B in
 * each run and to use cpu_avx2_int8dot (docs/notes/cpu-avx2.md). If B is packed in advance,
 * cpu_avx2_int8dot is faster with 4 or more rows. */
static const bsmm_small_m_limit most_rows_of_fours = {.stored = 32, .compact = 32},
                                most_rows_of_sixes = {.stored = 16, .compact = 16};

#if defined(__x86_64__)

#    include "cpu/engine/engine_int8dot_avx2.h"

#    include <string.h>

#    define TARGET __attribute__((target("avx2")))

enum {
    MOST_PART_BYTES = BSMM_INT8_PART_BYTES(BSMM_SMALL_M_WIDTH, BSMM_INT8_MULTIPLY_UNIT),
};

static bool goes_by_rows(const bsmm_product *p) {
    return bsmm_small_m_int8_has_fours(p) && p->a.m.rows <= BSMM_INT8_SINGLE;
}

/* Returns the number of rows of A in a tile. If A has more rows than fit in one tile, all tiles
 * have about the same number of rows. */
static int64_t width_of(const bsmm_product *p) {
    int64_t rows = p->a.m.rows < 1 ? 1 : p->a.m.rows;
    if (goes_by_rows(p)) return rows;
    int64_t tiles = bsmm_ceil_div(rows, BSMM_SMALL_M_WIDTH);
    return bsmm_round_up(bsmm_ceil_div(rows, tiles), BSMM_INT8_MR);
}

/* Packed A is divided along K into parts of BSMM_INT8_PART elements (small_m_int8dot_avx2.h). In a
 * part, the elements of a row of A are contiguous. They consist of units of `unit` elements with
 * one scale, and a unit consists of groups of 4 elements. Returns the offset in bytes of group g of
 * unit u from the beginning of the row. If `parted` is false, groups are in the order of K. If it
 * is true (B is e2m1), all even groups of the part come first and then all odd groups. */
static int64_t place_of(int64_t u, int64_t g, int64_t unit, bool parted) {
    return parted ? u * unit / 2 + g / 2 * 4 + g % 2 * (BSMM_INT8_PART / 2) : u * unit + 4 * g;
}

/* Reorders a part of packed A, i.e. BSMM_INT8_PART elements of K of `width` rows. Packing has
 * stored 4 elements of the first row, 4 elements of the second row, and so on, and then the next 4
 * elements of the first row. After the function, all elements of a row are contiguous, in the order
 * that place_of gives. Behind the elements of a row are its start values of sums and its scales. */
static void arrange(uint8_t *part, int64_t width, int64_t unit, bool parted) {
    uint32_t units[MOST_PART_BYTES / 4];
    const int64_t count = BSMM_INT8_PART_UNITS(unit), row_bytes = BSMM_INT8_ROW_BYTES(unit);
    const int64_t unit_words = BSMM_INT8_UNIT_BYTES(width, unit, BSMM_INT8_A) / 4;
    memcpy(units, part, (size_t)(count * unit_words * 4));
    for (int64_t u = 0; u < count; u++)
        for (int64_t r = 0; r < width; r++) {
            const uint32_t *from = units + u * unit_words + r;
            uint8_t *to = part + r * row_bytes, *begin = to + BSMM_INT8_PART + 4 * u;
            for (int64_t g = 0; g < unit / 4; g++, from += width)
                memcpy(to + place_of(u, g, unit, parted), from, sizeof *from);
            memcpy(begin, from, sizeof *from);
            /* In the rearranged part of packed A, the elements of a row come first. They are
             * followed by the integers at which the sums of all units (ranges of K with one scale)
             * begin. The scales of all units come last. */
            memcpy(begin + 4 * count, from + width, sizeof *from);
        }
}

static void pack_a(const bsmm_product *p, int64_t width, int64_t row, int64_t rows,
                   bsmm_panel *to) {
    const int64_t unit = bsmm_int8_unit(p), bytes = BSMM_INT8_PART_BYTES(width, unit);
    bsmm_small_m_int8_pack_a(p, width, row, rows, to);
    for (int64_t k = 0; k < p->a.m.cols; k += BSMM_INT8_PART)
        arrange(to->units + k / BSMM_INT8_PART * bytes, width, unit,
                bsmm_small_m_int8_has_fours(p));
}

TARGET static uint64_t find_unusual(const uint8_t *codes, bool e4m3) {
    const __m256i nan = _mm256_set1_epi8(0x7f), most = _mm256_set1_epi8(100);
    uint64_t unusual = 0;
    for (int i = 0; i < 64; i += 32) {
        __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)(codes + i));
        __m256i biased = _mm256_sub_epi8(v, _mm256_set1_epi8(127 - 50));
        uint32_t found =
            e4m3 ? (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_and_si256(v, nan), nan))
                 : ~(uint32_t)_mm256_movemask_epi8(
                       _mm256_cmpeq_epi8(_mm256_max_epu8(biased, most), most));
        unusual |= (uint64_t)found << i;
    }
    return unusual;
}

static bool prepare(const bsmm_small_m_scales *s) {
    return bsmm_small_m_int8_prepare(s, find_unusual);
}

static void make_tables(const bsmm_product *p, void *context) {
    bsmm_int8_tables t = {bsmm_pack_table_of(p->b.m.format.elem)->b, width_of(p)};
    memcpy(context, &t, sizeof t);
}

static bsmm_small_m_engine engine_of(const bsmm_product *p) {
    bsmm_int8_scaling scaling = bsmm_int8_scaling_of(p);
    bsmm_small_m_engine d = bsmm_small_m_int8_engine_of(p, width_of(p));
    d.make_context = make_tables;
    d.pack_a = pack_a;
    d.prepare = prepare;
    d.multiply =
        goes_by_rows(p) ? bsmm_int8_row_loop(d.width, scaling) : bsmm_int8_column_loop(p, scaling);
    d.multiply_packed = bsmm_int8_packed_loop_of(p);
    return d;
}

#endif

static const char *refuse(const bsmm_product *p, void *state, char *why, size_t size) {
    if (!(bsmm_cpu_features() & BSMM_CPU_AVX2)) return "the processor has no AVX2";
    const char *reason = bsmm_small_m_int8_refuse(p, why, size);
    if (reason) return reason;
    const bsmm_small_m_limit *most =
        bsmm_small_m_int8_has_fours(p) ? &most_rows_of_fours : &most_rows_of_sixes;
    return take_small_m(p, most, state, why, size);
}

const bsmm_kernel bsmm_kernel_cpu_avx2_int8dot_small_m = {
    BSMM_SMALL_M_KERNEL,
    .name = "cpu_avx2_int8dot_small_m",
    .refuse = refuse,
    .bound = bsmm_int8_bound,
};
