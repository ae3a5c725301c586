/* The kernel cpu_avx512_bf16dot_small_m multiplies few rows of A by weights of 4, 6 or 8 bits, or
 * in bf16. It reads the weights as they are stored, without packing them first. A may have any
 * format that is exact in bf16.
 *
 * The results are bitwise identical to those of cpu_avx512_bf16dot. In both kernels a lane is a
 * column of D, and each column is summed pair by pair along K in the same order. The kernels may
 * divide a row of B by different powers of two, but a power of two changes only exponents.
 * small_m_bf16dot.h lists the other files of this kernel. */
#include "cpu/pack/pack_bf16dot.h"
#include "cpu/small_m/small_m_bf16dot.h"
#include "cpu/small_m/small_m_kernel.h"
#include "cpu/small_m/small_m_tiny.h"

/* These limits are the largest numbers of rows of A for which this kernel is used. `stored` is for
 * weights as the caller stores them, and `compact` is for packed weights of the compact form.
 * - `most_rows` was measured on a Zen 4 (docs/notes/cpu-avx512.md).
 * - `most_rows_of_products` is for weights with e4m3 scales. Decoding such weights takes longer,
 *   because the loops multiply the elements by these scales.
 * - `most_rows_by_fma` is for Intel's processors, which execute all 512-bit instructions on the
 *   same two ports. On these processors the loops use FMAs. No more than 16 rows were measured
 *   there. */
static const bsmm_small_m_limit most_rows = {.stored = 48, .compact = 144},
                                most_rows_of_products = {.stored = 48, .compact = 96},
                                most_rows_by_fma = {.stored = 16, .compact = 16};

static bool goes_by_fma(void) {
    return bsmm_cpu_features() & BSMM_CPU_TWO_PORTS;
}

/* Returns true if the weights are bf16 without scales. */
static bool is_plain(const bsmm_product *p) {
    return p->b.m.format.elem == BSMM_ELEM_BF16;
}

#if defined(__x86_64__)

static const int64_t widths[] = {BSMM_SMALL_M_EACH_TILE(BSMM_SMALL_M_TILE_ROWS, 0)};

static void pack_a(const bsmm_product *p, int64_t width, int64_t row, int64_t rows,
                   bsmm_panel *to) {
    bsmm_bf16_pack(p, BSMM_BF16_A, width, row, rows, to);
}

static void pack_wide(const bsmm_product *p, int64_t width, int64_t row, int64_t rows,
                      bsmm_panel *to) {
    bsmm_bf16_pack(p, BSMM_BF16_A_WIDE, width, row, rows, to);
}

static void pack_b(const bsmm_product *p, int64_t row, int64_t rows, bsmm_panel *to) {
    bsmm_bf16_pack(p, BSMM_BF16_B, BSMM_SMALL_M_LANES, row, rows, to);
}

/* Returns a function table (bsmm_small_m_engine) for the loops with FMAs or for the loops with dot
 * products (vdpbf16ps). Only the members in which the two kinds of loops differ are set. */
static bsmm_small_m_engine form_of(bool by_fma) {
    if (by_fma)
        return (bsmm_small_m_engine){.make_context = bsmm_decode_tables_for_fmas,
                                     .pack_a = pack_wide,
                                     .prepare = bsmm_small_m_bf16_prepare};
    return (bsmm_small_m_engine){.make_context = bsmm_decode_tables_for_dots,
                                 .pack_a = pack_a,
                                 .prepare = bsmm_small_m_bf16_prepare_dots};
}

/* Sets the members of an engine (set of multiply functions) that depend on the format of B. */
static void choose_loop(const bsmm_product *p, bool by_fma, bool by_segment, int tile,
                        bsmm_small_m_engine *d) {
    const bsmm_small_m_bf16_form *form = by_fma ? &bsmm_small_m_bf16_fmas : &bsmm_small_m_bf16_dots;
    if (is_plain(p)) {
        d->panels = bsmm_small_m_bf16_plain.panels[tile];
        d->multiply = bsmm_small_m_bf16_plain.multiply[by_fma][tile];
        d->group = d->read_group = 1;
        d->reads_compact = true;
        d->make_context = NULL;
        return;
    }
    bsmm_weights weights = bsmm_weights_of(&p->b.m.format);
    d->panels = form->panels[weights][tile];
    d->multiply = form->multiply[weights][by_segment][tile];
    d->group = by_fma || by_segment ? BSMM_SMALL_M_GROUP : 1;
    d->reads_compact = !by_fma;
    /* In compact order, 16 rows of one step (32 elements of K) are contiguous, so the loop can read
     * single steps. In row order it reads BSMM_SMALL_M_GROUP steps at a time. */
    d->read_group = p->b.m.order == BSMM_ORDER_COMPACT && !by_fma ? d->group : BSMM_SMALL_M_GROUP;
}

static bsmm_small_m_engine engine_of(const bsmm_product *p) {
    bool by_fma = goes_by_fma(), by_segment = bsmm_bf16_by_segment(p);
    int tile = bsmm_small_m_choose_width(p, widths, BSMM_COUNT(widths), 2);
    int64_t width = widths[tile];
    int64_t unit = by_segment ? BSMM_BF16_SEGMENT_UNIT : BSMM_BF16_FOLDED_UNIT;
    bsmm_small_m_engine d = form_of(by_fma);
    d.width = width;
    d.unit = unit;
    d.a_unit_bytes = (uint64_t)(by_fma ? BSMM_BF16_WIDE_UNIT_BYTES(width, unit)
                                       : BSMM_BF16_UNIT_BYTES(width, unit));
    d.b_unit_bytes = (uint64_t)BSMM_BF16_UNIT_BYTES(BSMM_SMALL_M_LANES, unit);
    d.scale_unit = bsmm_small_m_scale_unit(p->b.m.format.scale, BSMM_BF16_SEGMENT_UNIT);
    d.longest_chunk = by_segment ? 0 : BSMM_BF16_CHUNK;
    d.pack_b = pack_b;
    d.multiply_packed = bsmm_small_m_bf16_packed[by_fma][by_segment];
    choose_loop(p, by_fma, by_segment, tile, &d);
    if (!by_fma && bsmm_small_m_is_tiny(p) && bsmm_small_m_tiny_bf16dot_takes(p))
        d.multiply_tiny = bsmm_small_m_tiny_bf16dot;
    return d;
}

#endif

/* Returns true for element formats in which the top bit is only the sign. In fnuz formats the code
 * with only the top bit set is NaN. */
static bool takes_element(uint32_t elem) {
    return bsmm_elem_is_narrow(elem) && !bsmm_elem_traits_of[elem].lone_nan;
}

static bool is_supported(void) {
    uint32_t needed = BSMM_CPU_AVX512_BF16 | BSMM_CPU_AVX512_VBMI;
    return (bsmm_cpu_features() & needed) == needed;
}

static const bsmm_small_m_limit *limit_of(const bsmm_product *p) {
    if (goes_by_fma()) return &most_rows_by_fma;
    return p->b.m.format.scale == BSMM_SCALE_E4M3 ? &most_rows_of_products : &most_rows;
}

static const char *refuse(const bsmm_product *p, void *state, char *why, size_t size) {
    if (!is_supported()) return "the processor has no AVX-512 BF16 and VBMI";
    const char *reason = bsmm_pack_refuse(p, bsmm_bf16_refuse, why, size);
    if (!reason && is_plain(p) && bsmm_bf16_by_segment(p))
        return "B has bf16 elements; with f32 scales of A the kernel takes at most 8 bits";
    if (!reason && !is_plain(p))
        reason =
            bsmm_small_m_refuse_weights(&p->b, takes_element, BSMM_BF16_SEGMENT_UNIT, why, size);
    return reason ? reason : take_small_m(p, limit_of(p), state, why, size);
}

const bsmm_kernel bsmm_kernel_cpu_avx512_bf16dot_small_m = {
    BSMM_SMALL_M_KERNEL,
    .name = "cpu_avx512_bf16dot_small_m",
    .refuse = refuse,
    .bound = bsmm_bf16_bound,
};
