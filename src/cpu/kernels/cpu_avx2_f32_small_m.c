/* The kernel cpu_avx2_f32_small_m multiplies few rows of A by weights of 4, 6 or 8 bits, or in f32,
 * bf16 or f16 without scales. It reads the weights as they are stored, without packing them first.
 * A may have any format that cpu_avx2_f32 accepts.
 *
 * The results are bitwise identical to those of cpu_avx2_f32. In both kernels a lane is a column of
 * D, and each column is summed element by element along K with the same FMAs. The kernels divide
 * the rows of B by different powers of two, but a power of two changes only exponents.
 * small_m_f32fma.h lists the other files of this kernel. */
#include "cpu/pack/pack_f32fma.h"
#include "cpu/small_m/small_m_f32fma.h"
#include "cpu/small_m/small_m_kernel.h"
#include "cpu/small_m/small_m_tiny.h"

/* `most_rows` has the largest numbers of rows of A for which this kernel is used: `stored` for
 * weights as the caller stores them, and `compact` for packed weights of the form compact (codes in
 * another order, not decoded). With more rows, cpu_avx2_f32 is faster, although it must decode B in
 * each run (docs/notes/cpu-avx2.md). In packed weights of the form wide, B is already decoded. With
 * them, cpu_avx2_f32 is faster from 16 rows on. */
static const bsmm_small_m_limit most_rows = {.stored = 48, .compact = 48};

/* These limits are for compact weights of 16 and 32 bits, which the kernel reads without a copy. */
static const bsmm_small_m_limit most_rows_of_plain = {.stored = 48, .compact = 96};

/* Returns true for elements that only the loop for weights without scales multiplies. */
static bool is_plain_element(uint32_t elem) {
    return elem == BSMM_ELEM_F32 || elem == BSMM_ELEM_BF16;
}

/* Returns true if the loop for weights without scales multiplies B. For f16 weights as the caller
 * stores them, the loop that also decodes weights of 4 to 8 bits is faster. */
static bool is_plain(const bsmm_product *p) {
    const bsmm_matrix *b = &p->b.m;
    bool is_compact_f16 = b->format.elem == BSMM_ELEM_F16 && b->order == BSMM_ORDER_COMPACT;
    return b->format.scale == BSMM_SCALE_NONE &&
           (is_compact_f16 || is_plain_element(b->format.elem));
}

#if defined(__x86_64__)

static void pack_a(const bsmm_product *p, int64_t width, int64_t row, int64_t rows,
                   bsmm_panel *to) {
    bsmm_f32fma_pack(p, false, width, row, rows, to);
}

static void pack_b(const bsmm_product *p, int64_t row, int64_t rows, bsmm_panel *to) {
    bsmm_f32fma_pack(p, true, BSMM_SMALL_M_LANES, row, rows, to);
}

/* Sets the members of an engine (set of multiply functions) for weights without scales. The loop
 * for them takes single steps (32 elements of K), unless A has an fp32 scale for each 128 elements
 * of K. */
static void use_plain_loop(bool by_segment, bsmm_small_m_engine *d) {
    d->group = d->read_group = by_segment ? BSMM_SMALL_M_GROUP : 1;
    d->reads_compact = true;
    d->make_context = bsmm_small_m_f32fma_plain_make;
    d->multiply = bsmm_small_m_f32fma_plain;
}

/* Returns true if the processor can run the function for tiny products. */
static bool has_vbmi(void) {
    const uint32_t needed = BSMM_CPU_AVX512 | BSMM_CPU_AVX512_VBMI;
    return (bsmm_cpu_features() & needed) == needed;
}

static bsmm_small_m_engine engine_of(const bsmm_product *p) {
    bool by_segment = bsmm_f32fma_by_segment(p);
    int64_t unit = by_segment ? BSMM_F32FMA_SEGMENT_UNIT : BSMM_F32FMA_FOLDED_UNIT;
    bool plain = is_plain(p);
    int64_t width = plain ? bsmm_small_m_f32fma_plain_width(p) : bsmm_small_m_f32fma_width(p);
    bsmm_small_m_engine d = {
        .width = width,
        .group = BSMM_SMALL_M_GROUP,
        .read_group = BSMM_SMALL_M_GROUP,
        .panels = plain ? bsmm_small_m_f32fma_plain_panels(p) : bsmm_small_m_f32fma_panels(width),
        .unit = unit,
        .a_unit_bytes = (uint64_t)BSMM_F32FMA_UNIT_BYTES(width, unit),
        .b_unit_bytes = (uint64_t)BSMM_F32FMA_UNIT_BYTES(BSMM_SMALL_M_LANES, unit),
        .scale_unit = bsmm_small_m_scale_unit(p->b.m.format.scale, BSMM_F32FMA_SEGMENT_UNIT),
        .longest_chunk = by_segment ? 0 : bsmm_f32fma_longest_chunk(p),
        .wide_limit = BSMM_F32FMA_SPAN_LIMIT,
        .make_context = bsmm_small_m_f32fma_make,
        .pack_a = pack_a,
        .pack_b = pack_b,
        .prepare = bsmm_small_m_f32fma_prepare,
        .multiply = bsmm_small_m_f32fma_multiply,
        .multiply_packed = bsmm_small_m_f32fma_packed[by_segment],
    };
    if (plain) use_plain_loop(by_segment, &d);
    if (has_vbmi() && bsmm_small_m_is_tiny(p) && bsmm_small_m_tiny_f32fma_takes(p))
        d.multiply_tiny = bsmm_small_m_tiny_f32fma;
    return d;
}

#endif

static bool takes_element(uint32_t elem) {
    return bsmm_small_m_f32fma_halves_of(elem) != NULL;
}

static const char *refuse(const bsmm_product *p, void *state, char *why, size_t size) {
    if (!(bsmm_cpu_features() & BSMM_CPU_AVX2)) return "the processor has no AVX2";
    const char *reason = bsmm_pack_refuse(p, bsmm_f32fma_refuse, why, size);
    if (!reason && is_plain_element(p->b.m.format.elem) && !is_plain(p))
        return "B has f32 or bf16 elements with scales; the kernel takes them only without";
    if (!reason)
        reason =
            bsmm_small_m_refuse_weights(&p->b, takes_element, BSMM_F32FMA_SEGMENT_UNIT, why, size);
    if (reason) return reason;
    return take_small_m(p, is_plain(p) ? &most_rows_of_plain : &most_rows, state, why, size);
}

const bsmm_kernel bsmm_kernel_cpu_avx2_f32_small_m = {
    BSMM_SMALL_M_KERNEL,
    .name = "cpu_avx2_f32_small_m",
    .refuse = refuse,
    .bound = bsmm_f32fma_bound,
};
