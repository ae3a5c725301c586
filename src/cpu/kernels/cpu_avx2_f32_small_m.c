/* cpu_avx2_f32_small_m: few rows of anything that cpu_avx2_f32 takes against weights of 4, 6 and 8
 * bits as stored.
 *
 * The bits of cpu_avx2_f32: lanes are columns, and each column's sum runs along K, element by
 * element, with the same FMAs; powers of two that leave a row elsewhere change no bit.
 * small_m_f32fma.h says how the work is shared. */
#include "cpu/pack/pack_f32fma.h"
#include "cpu/small_m/small_m_f32fma.h"
#include "cpu/small_m/small_m_kernel.h"

#include <stdio.h>

/* Where decoding is faster than packing in the run: on a Zen 3, 4096 x 4096 weights from memory,
 * mxfp4 takes 0.17 of the time with 8 rows, 0.27 with 16, 0.46 with 32 and 0.65 with 48, mxfp8
 * 0.18, 0.3, 0.45 and 0.75. With a B packed ahead, which plans have to ask for, cpu_avx2_f32 is
 * faster from 16 on. */
static const int64_t most_rows = 32;

/* K of a scale, of which blocks are multiples. */
static int64_t scale_unit_of(uint32_t scale) {
    if (scale == BSMM_SCALE_F32) return BSMM_F32FMA_SEGMENT_UNIT;
    return scale == BSMM_SCALE_E4M3 ? BSMM_SMALL_M_STEP / 2 : BSMM_SMALL_M_STEP;
}

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
        .scale_unit = scale_unit_of(p->b.m.format.scale),
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

static const char *refuse_weights(const bsmm_format *f, char *why, size_t size) {
    if (!bsmm_small_m_f32_halves_of(f->elem)) {
        snprintf(why, size, "B has %s elements; it takes e2m1, e2m3, e3m2, e4m3 and e5m2",
                 bsmm_elem_row(f->elem)->name);
        return why;
    }
    if (f->scale == BSMM_SCALE_E4M3 && f->elem != BSMM_ELEM_E2M1) {
        snprintf(why, size, "B has e4m3 scales over %s elements; it takes them over e2m1",
                 bsmm_elem_row(f->elem)->name);
        return why;
    }
    int64_t multiple = scale_unit_of(f->scale);
    if (f->scale != BSMM_SCALE_NONE && f->block_cols % multiple != 0) {
        snprintf(why, size,
                 "B has blocks of %u along K; with these scales it takes multiples of %lld",
                 f->block_cols, (long long)multiple);
        return why;
    }
    return NULL;
}

static const char *refuse(const bsmm_product *p, void *state, char *why, size_t size) {
    if (!(bsmm_cpu_features() & BSMM_CPU_AVX2)) return "the processor has no AVX2";
    const char *reason = bsmm_f32fma_refuse(p, why, size);
    if (!reason) reason = refuse_weights(&p->b.m.format, why, size);
    return reason ? reason : take_small_m(p, most_rows, state, why, size);
}

const bsmm_kernel bsmm_kernel_cpu_avx2_f32_small_m = {
    BSMM_SMALL_M_KERNEL,
    .name = "cpu_avx2_f32_small_m",
    .refuse = refuse,
    .bound = bsmm_f32fma_bound,
};
