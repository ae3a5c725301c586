/* The host code of all small-M kernels (kernels for few rows of A) shares these functions. They
 * test operands, split K, and fill kernel parameters. */
#include "cuda/host/small_m_product.h"

#include "cuda/sm90a/fp8_small_m_shape.h"
#include "gpu/params.h"

#include <math.h>

bool bsmm_small_m_has_steady_floats(const bsmm_operand *o) {
    const bsmm_format *f = &o->m.format;
    return f->scale == BSMM_SCALE_F32 &&
           (f->block_cols % BSMM_SMALL_M_K == 0 || f->block_cols >= o->m.cols);
}

const char *bsmm_small_m_refuse_units(const bsmm_operand *o, char name, uint32_t unit,
                                      uint32_t bytes, char *why, size_t size) {
    if (o->m.cols % unit == 0 && o->m.ld % unit == 0) return NULL;
    return bsmm_reason(why, size,
                       "K is %lld and %c's ld is %lld; both must be multiples of %u, because rows "
                       "are read in units of %u bytes",
                       (long long)o->m.cols, name, (long long)o->m.ld, unit, bytes);
}

bool bsmm_small_m_has_tile_floats(const bsmm_operand *o) {
    return bsmm_small_m_has_steady_floats(o) && o->m.format.block_rows % 16 == 0;
}

bool bsmm_small_m_has_row_floats(const bsmm_operand *o) {
    return o->m.format.scale == BSMM_SCALE_F32 && o->m.format.block_cols >= o->m.cols;
}

uint32_t bsmm_small_m_count_parts(const bsmm_operand *a) {
    uint32_t elem = a->m.format.elem;
    return elem == BSMM_ELEM_F16 ? 2 : elem == BSMM_ELEM_F32 ? 3 : 1;
}

bsmm_small_m_source bsmm_small_m_find_source(const bsmm_operand *a) {
    const bsmm_format *f = &a->m.format;
    uint32_t bits = bsmm_elem_row(f->elem)->bits;
    if (a->m.order != BSMM_ORDER_ROW || (uint64_t)a->m.ld * bits / 8 % 16 || a->m.cols % 8)
        return BSMM_SMALL_M_ANY;
    if (f->elem == BSMM_ELEM_E4M3) {
        bool mx = f->scale == BSMM_SCALE_E8M0 && f->block_rows == 1 && f->block_cols == 32 &&
                  a->m.scale_layout == BSMM_LAYOUT_ROW_MAJOR;
        bool plain = f->scale == BSMM_SCALE_NONE || bsmm_small_m_has_steady_floats(a);
        return mx || plain ? BSMM_SMALL_M_E4M3 : BSMM_SMALL_M_ANY;
    }
    if (f->elem == BSMM_ELEM_E2M1) {
        const bool mx = f->scale == BSMM_SCALE_E8M0 && f->block_cols == 32,
                   nv = f->scale == BSMM_SCALE_E4M3 && f->block_cols == 16;
        return (mx || nv) && f->block_rows == 1 && a->m.scale_layout == BSMM_LAYOUT_ROW_MAJOR
                   ? BSMM_SMALL_M_E2M1
                   : BSMM_SMALL_M_ANY;
    }
    if (f->scale != BSMM_SCALE_NONE) return BSMM_SMALL_M_ANY;
    return f->elem == BSMM_ELEM_BF16  ? BSMM_SMALL_M_BF16
           : f->elem == BSMM_ELEM_F16 ? BSMM_SMALL_M_F16
                                      : BSMM_SMALL_M_ANY;
}

uint32_t bsmm_small_m_count_steps(const bsmm_product *p) {
    return (uint32_t)bsmm_ceil_div(p->a.m.cols, BSMM_SMALL_M_K);
}

/* Returns the first step of range number `range`, if K is split into `ranges` ranges of whole steps
 * (128 elements). The kernels use the same formula. */
static uint32_t begin_of(uint32_t steps, uint32_t range, uint32_t ranges) {
    return (uint32_t)((uint64_t)steps * range / ranges);
}

uint32_t bsmm_small_m_most_steps(uint32_t steps, uint32_t count) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t part = begin_of(steps, i + 1, count) - begin_of(steps, i, count);
        if (part > most) most = part;
    }
    return most;
}

/* Lists the speeds of thread blocks by their shape, as {k_warps, rows, fixed, step}. A thread block
 * multiplies `rows` rows of B, and k_warps of its warps split K among them. It takes `fixed`
 * microseconds, plus `step` microseconds for each 128 elements of K that one of its warps
 * multiplies. These times are fitted to measured times for one row of A on an H200. The times for
 * 4-bit weights are fitted to the GEMMs in tests/golden/data/small_m_cuts.txt. With them, the
 * chosen division of each of these GEMMs among thread blocks takes at most 1.12 times as long as
 * the best division. The times for 8-bit weights with 64 rows of B are fitted to GEMMs with K =
 * 8192. The times for 8-bit weights with 128 rows of B are not measured but scaled from those of
 * 4-bit weights. */
const bsmm_small_m_speed bsmm_small_m_speeds[][BSMM_SMALL_M_SPEEDS] = {
    [BSMM_SMALL_M_4BIT] = {{8, 64, 5.6, 0.80}, {4, 128, 6.5, 0.93}, {2, 256, 7.5, 0.98}},
    [BSMM_SMALL_M_8BIT] = {{4, 64, 4.4, 0.96}, {2, 128, 5.8, 1.22}},
    [BSMM_SMALL_M_FP8] = {{BSMM_FP8_SMALL_M_GROUPS, BSMM_FP8_SMALL_M_ROWS, 4.2, 0.89}},
};

/* Returns the number of waves in which the clusters of a launch run: the number of clusters divided
 * by the number of clusters that run at once, rounded up. */
static double count_waves(const bsmm_product *p, const bsmm_small_m_speed *speed, uint32_t splits) {
    const int64_t clusters = bsmm_ceil_div(p->b.m.rows, speed->rows);
    return (double)bsmm_ceil_div(clusters, bsmm_cuda_clusters_at_once(p->device, splits));
}

double bsmm_small_m_predict_a(const bsmm_product *p, const bsmm_small_m_speed *speed,
                              uint32_t splits) {
    /* `step` is the time in us in which an SM reads one step of K of A in bf16 from L2, if the tile
     * has the largest number of columns (rows of A, or bf16 parts of them). An SM of an H200 reads
     * about 42e3 bytes per us if all SMs read. */
    const double step = BSMM_SMALL_M_MOST_COLUMNS * BSMM_SMALL_M_K * 2 / 42e3;
    const uint32_t steps = bsmm_small_m_most_steps(bsmm_small_m_count_steps(p), splits);
    return count_waves(p, speed, splits) * step * (double)steps;
}

double bsmm_small_m_predict(const bsmm_product *p, const bsmm_small_m_speed *speed,
                            uint32_t splits) {
    const uint32_t steps = bsmm_small_m_most_steps(bsmm_small_m_count_steps(p), splits);
    return count_waves(p, speed, splits) *
           (speed->fixed + speed->step * (double)bsmm_ceil_div(steps, speed->k_warps));
}

bool bsmm_small_m_has_row_codes(const bsmm_operand *b) {
    /* Kernels read two e4m3 scale codes by one load of 2 bytes. Each row of scales must therefore
     * begin an even number of bytes after the row before it. */
    const bool is_even = b->m.format.scale != BSMM_SCALE_E4M3 || b->map.tile_row_step % 2 == 0;
    return is_even && b->m.format.scale != BSMM_SCALE_F32 &&
           b->m.scale_layout == BSMM_LAYOUT_ROW_MAJOR;
}

uint32_t bsmm_small_m_scale_stride(const bsmm_product *p, uint32_t step_scales, uint32_t splits,
                                   uint32_t ranges) {
    const uint32_t steps = bsmm_small_m_count_steps(p),
                   bytes = bsmm_small_m_most_steps(steps, splits) * step_scales;
    /* Lanes of a warp read the scales of 8 rows at the same time. If the distance between the
     * scales of two rows is an odd multiple of 16 bytes, these reads go to different banks of
     * shared memory. */
    const uint32_t aligned = 16 * ((bytes + 15) / 16 | 1);
    if (!bsmm_small_m_has_row_codes(&p->b)) return aligned;
    const uint64_t pitch = p->b.map.tile_row_step;
    uint64_t all = pitch;
    for (uint32_t i = 1; i <= splits; i++)
        all |= (uint64_t)step_scales * begin_of(steps, i * (ranges / splits), ranges);
    if (all % 16 == 0) return aligned;
    /* The scales of a row of B are copied to shared memory in units of 16 bytes. The copies write
     * up to 15 bytes before the row's first code and up to 15 bytes behind its last code, so the
     * distance between two rows includes 30 more bytes. */
    const uint32_t rest = (uint32_t)(pitch % 16);
    return 16 * ((bytes + 30 - rest + 15) / 16 | 1) + rest;
}

uint32_t bsmm_small_m_scale_lanes_log2(uint32_t bytes) {
    const uint32_t log2 = bsmm_small_m_log2_up((bytes + 30 + 15) / 16);
    return log2 < 5 ? log2 : 5;
}

uint32_t bsmm_small_m_log2(uint32_t power) {
    return (uint32_t)__builtin_ctz(power);
}

uint32_t bsmm_small_m_log2_up(uint32_t count) {
    return 31 - (uint32_t)__builtin_clz(2 * count - 1);
}

static uint64_t pitch_of(const bsmm_operand *o) {
    return (uint64_t)o->m.ld * bsmm_elem_row(o->m.format.elem)->bits / 8;
}

/* Returns true if the epilogue multiplies accumulators only by scales: alpha is 1, there is no C or
 * bias, and D's elements have more than 8 bits. */
static bool is_plain(const bsmm_product *p) {
    return bsmm_elem_row(p->d.m.format.elem)->bits > 8 && p->alpha == 1 && !p->has_c &&
           !p->bias_elem;
}

bsmm_small_m_params bsmm_small_m_params_of(const bsmm_product *p) {
    return (bsmm_small_m_params){
        .a = bsmm_gpu_operand_of(&p->a),
        .b = bsmm_gpu_operand_of(&p->b),
        .epilogue = bsmm_gpu_epilogue_of(p),
        .m = (uint32_t)p->d.m.rows,
        .n = (uint32_t)p->d.m.cols,
        .k = (uint32_t)p->a.m.cols,
        .steps = bsmm_small_m_count_steps(p),
        .plain = is_plain(p) ? BSMM_SMALL_M_PLAIN : BSMM_SMALL_M_GENERAL,
        .parts = bsmm_small_m_count_parts(&p->a),
        .m_log2 = bsmm_small_m_log2_up((uint32_t)p->d.m.rows),
        .a_pitch = pitch_of(&p->a),
        /* The kernels use the two strides a_scale_pitch and b_scale_pitch only if the scales are
         * row-major. */
        .a_scale_pitch = p->a.map.tile_row_step,
        .b_pitch8 = (uint32_t)(pitch_of(&p->b) / 8),
        .b_scale_pitch = p->b.map.tile_row_step,
        .b_bytes = (uint32_t)((uint64_t)p->b.m.cols * bsmm_elem_row(p->b.m.format.elem)->bits / 8),
    };
}

void bsmm_small_m_params_bind(const bsmm_product *p, bsmm_small_m_params *params) {
    bsmm_gpu_operand_bind(&p->a, &params->a);
    bsmm_gpu_operand_bind(&p->b, &params->b);
    bsmm_gpu_epilogue_bind(p, &params->epilogue);
    if (!params->plain) return;
    if (p->a.m.global_scale || p->b.m.global_scale) params->plain = BSMM_SMALL_M_PLAIN_IF_ONE;
    if (p->d.m.global_scale) params->plain = BSMM_SMALL_M_GENERAL;
}

uint32_t bsmm_small_m_count_code_scales(const bsmm_operand *o) {
    const bsmm_format *f = &o->m.format;
    const bool bytes = f->scale == BSMM_SCALE_E8M0 || f->scale == BSMM_SCALE_E4M3;
    if (!bytes || f->block_rows != 1 || o->m.scale_layout != BSMM_LAYOUT_ROW_MAJOR) return 0;
    return (uint32_t)bsmm_ceil_div(o->m.cols, f->block_cols);
}
