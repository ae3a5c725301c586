/* cpu_avx2_f32_small_m: few rows of anything that cpu_avx2_f32 takes against weights of 4, 6 and 8
 * bits as stored.
 *
 * The bits of cpu_avx2_f32: lanes are columns, and each column's sum runs along K, element by
 * element, with the same FMAs; powers of two that leave a row elsewhere change no bit.
 * small_m_f32fma.h says how the work is shared. */
#include "cpu/pack/pack_f32fma.h"
#include "cpu/small_m/small_m_f32fma.h"
#include "cpu/small_m/small_m_kernel.h"

/* Where decoding is faster than packing in the run: on a Zen 3, 4096 x 4096 weights from memory,
 * mxfp4 takes 0.17 of the time with 8 rows, 0.27 with 16, 0.46 with 32 and 0.65 with 48, mxfp8
 * 0.18, 0.3, 0.45 and 0.75. With a B packed ahead, which plans have to ask for, cpu_avx2_f32 is
 * faster from 16 on. */
static const int64_t most_rows = 32;

#if defined(__x86_64__)

static void pack_a(const bsmm_product *p, int64_t width, int64_t row, int64_t rows,
                   bsmm_panel *to) {
    bsmm_f32fma_pack(p, false, width, row, rows, to);
}

static void pack_b(const bsmm_product *p, int64_t row, int64_t rows, bsmm_panel *to) {
    bsmm_f32fma_pack(p, true, BSMM_SMALL_M_LANES, row, rows, to);
}

static bsmm_small_m_engine engine_of(const bsmm_product *p) {
    bool by_segment = bsmm_f32fma_by_segment(p);
    int64_t unit = by_segment ? BSMM_F32FMA_SEGMENT_UNIT : BSMM_F32FMA_FOLDED_UNIT;
    int64_t width = bsmm_small_m_f32_width(p);
    return (bsmm_small_m_engine){
        .width = width,
        .panels = bsmm_small_m_f32_panels(width),
        .unit = unit,
        .a_unit_bytes = (uint64_t)BSMM_F32FMA_UNIT_BYTES(width, unit),
        .b_unit_bytes = (uint64_t)BSMM_F32FMA_UNIT_BYTES(BSMM_SMALL_M_LANES, unit),
        .scale_unit = bsmm_small_m_scale_unit(p->b.m.format.scale, BSMM_F32FMA_SEGMENT_UNIT),
        .wide_limit = BSMM_F32FMA_SPAN_LIMIT,
        .make_context = bsmm_small_m_f32_make,
        .pack_a = pack_a,
        .pack_b = pack_b,
        .prepare = bsmm_small_m_f32_prepare,
        .multiply = bsmm_small_m_f32_multiply,
        .multiply_packed = bsmm_small_m_f32_packed[by_segment],
    };
}

#endif

static bool takes_element(uint32_t elem) {
    return bsmm_small_m_f32_halves_of(elem) != NULL;
}

static const char *refuse(const bsmm_product *p, void *state, char *why, size_t size) {
    if (!(bsmm_cpu_features() & BSMM_CPU_AVX2)) return "the processor has no AVX2";
    const char *reason = bsmm_f32fma_refuse(p, why, size);
    if (!reason)
        reason = bsmm_small_m_refuse_weights(&p->b.m.format, takes_element,
                                             BSMM_F32FMA_SEGMENT_UNIT, why, size);
    return reason ? reason : take_small_m(p, most_rows, state, why, size);
}

const bsmm_kernel bsmm_kernel_cpu_avx2_f32_small_m = {
    BSMM_SMALL_M_KERNEL,
    .name = "cpu_avx2_f32_small_m",
    .refuse = refuse,
    .bound = bsmm_f32fma_bound,
};
