/* This is the host code of the kernels for few rows of A on CDNA3 and CDNA4 (cdna/small_m.c). A is
 * bf16, and B has weights as checkpoints store them. */
#include "amdgpu/cdna/small_m_params.h"
#include "amdgpu/host/kernel.h"
#include "gpu/params.h"

#include <stdio.h>

enum {
    MOST_ROWS = 64,
    /* WAVES is the number of waves that a compute unit runs at once. */
    WAVES = BSMM_CDNA_SMALL_M_MOST_WAVES,
    /* A_SIZES counts the kernels for up to 16, 32 and 64 rows of A. */
    A_SIZES = 3,
    /* B_SIZES counts the kernels whose workgroups have 16 or 32 rows of B. */
    B_SIZES = 2,
};

/* The last member is the bytes of LDS that each wave needs. They hold the elements of `a_rows` rows
 * of A for one step of the main loop. */
#define FUNCTION(b_rows, a_rows)                                                                   \
    {                                                                                              \
        "cdna/small_m", "small_m_mxfp4_" #b_rows "x" #a_rows,                                      \
            a_rows / BSMM_CDNA_SMALL_M_EDGE *BSMM_CDNA_SMALL_M_WAVE_BYTES                          \
    }
#define FUNCTIONS(b_rows)                                                                          \
    { FUNCTION(b_rows, 16), FUNCTION(b_rows, 32), FUNCTION(b_rows, 64) }

static const bsmm_hip_function functions[B_SIZES][A_SIZES] = {FUNCTIONS(16), FUNCTIONS(32)};

/* Holds the state of a plan for this kernel. */
typedef struct small_m_state {
    const bsmm_hip_function *function;
    uint32_t groups;     /* `groups` is the number of workgroups. */
    uint32_t wave_bytes; /* `wave_bytes` is the number of bytes of LDS of a wave. */
    bsmm_cdna_small_m job;
} small_m_state;
BSMM_CHECK_STATE(small_m_state);

static uint64_t pitch_of(const bsmm_operand *o) {
    return (uint64_t)o->m.ld * bsmm_elem_row(o->m.format.elem)->bits / 8;
}

/* Returns the bytes of an operand's elements, from the first one to the last one. */
static uint64_t bytes_of(const bsmm_operand *o) {
    return pitch_of(o) * (uint64_t)(o->m.rows - 1) +
           (uint64_t)o->m.cols * bsmm_elem_row(o->m.format.elem)->bits / 8;
}

static const char *refuse_a(const bsmm_operand *a, char *why, size_t size) {
    if (a->m.format.elem != BSMM_ELEM_BF16 || a->m.format.scale != BSMM_SCALE_NONE)
        return "A is not bf16 without scales";
    if (a->m.order != BSMM_ORDER_ROW) return "A is not ORDER_ROW: its rows are read along K";
    if (a->m.rows > MOST_ROWS) {
        snprintf(why, size, "A has %lld rows; takes up to %d", (long long)a->m.rows, MOST_ROWS);
        return why;
    }
    if (a->m.ld % 8) return "A's ld is not a multiple of 8: rows are read in units of 16 bytes";
    return bytes_of(a) > BSMM_CDNA_SMALL_M_BYTES ? "A has 2 GB and more" : NULL;
}

static const char *refuse_b(const bsmm_operand *b) {
    const bsmm_format *f = &b->m.format;
    if (f->elem != BSMM_ELEM_E2M1 || f->scale != BSMM_SCALE_E8M0 || f->block_rows != 1 ||
        f->block_cols != 32)
        return "B is not mxfp4";
    if (b->m.order != BSMM_ORDER_ROW) return "B is not ORDER_ROW: its rows are read along K";
    if (b->m.scale_layout != BSMM_LAYOUT_ROW_MAJOR) return "B's scales are not row-major";
    if (b->m.cols % 32 || b->m.ld % 32)
        return "K or B's ld is not a multiple of 32: rows are read in units of 16 bytes";
    return bytes_of(b) > BSMM_CDNA_SMALL_M_BYTES ? "B has 2 GB and more" : NULL;
}

/* Returns true if a workgroup computes 32 rows of B instead of 16. A is then read fewer times. For
 * up to 16 rows of A this is so only if workgroups with 16 rows of B would be so many that each
 * could have only one wave. For more rows of A it is so if all compute units then have work. */
static bool is_wide(const bsmm_product *p, int64_t units) {
    const int64_t edge = BSMM_CDNA_SMALL_M_EDGE, tiles = bsmm_ceil_div(p->d.m.cols, edge);
    return p->d.m.rows <= edge ? tiles > units * WAVES / 2 : bsmm_ceil_div(tiles, 2) >= units;
}

/* Chooses the kernel and the number of waves of a workgroup. All workgroups run at once if
 * possible. */
static void choose(const bsmm_product *p, small_m_state *s) {
    const bsmm_hip_device *device = p->device;
    const int64_t units = device->compute_units > 0 ? device->compute_units : 1;
    const int64_t edge = BSMM_CDNA_SMALL_M_EDGE, rows = p->d.m.rows;
    const bool wide = is_wide(p, units);
    s->function = &functions[wide][rows <= edge ? 0 : rows <= 2 * edge ? 1 : 2];
    s->groups = (uint32_t)bsmm_ceil_div(p->d.m.cols, wide ? 2 * edge : edge);
    s->wave_bytes = s->function->shared_bytes;
    const int64_t room = device->lds_bytes / s->wave_bytes;
    const int64_t each = bsmm_min_i64(WAVES, room) / bsmm_ceil_div(s->groups, units);
    s->job.waves = each > 1 ? (uint32_t)each : 1;
}

/* Returns true if the epilogue only rounds sums, unless a run has global scales. */
static bool is_plain(const bsmm_product *p) {
    const uint32_t elem = p->d.m.format.elem;
    const bool known = elem == BSMM_ELEM_F32 || elem == BSMM_ELEM_F16 || elem == BSMM_ELEM_BF16;
    return known && p->alpha == 1 && !p->has_c && !p->bias_elem;
}

static void fill(const bsmm_product *p, small_m_state *s) {
    const uint32_t steps = (uint32_t)bsmm_ceil_div(p->a.m.cols, BSMM_CDNA_SMALL_M_K);
    s->job = (bsmm_cdna_small_m){
        .a_bytes = (uint32_t)bytes_of(&p->a),
        .b_bytes = (uint32_t)bytes_of(&p->b),
        .scale_bytes = (uint32_t)p->b.scale_bytes,
        .a_pitch = (uint32_t)pitch_of(&p->a),
        .b_pitch = (uint32_t)pitch_of(&p->b),
        .scale_pitch = (uint32_t)p->b.map.tile_row_step,
        .m = (uint32_t)p->d.m.rows,
        .n = (uint32_t)p->d.m.cols,
        .k = (uint32_t)p->a.m.cols,
        .plain = is_plain(p),
        .a = bsmm_gpu_operand_of(&p->a),
        .b = bsmm_gpu_operand_of(&p->b),
        .epilogue = bsmm_gpu_epilogue_of(p),
    };
    choose(p, s);
    s->job.steps_each = steps / s->job.waves;
    s->job.longer = steps % s->job.waves;
}

/* The limits on the rows of A and on the bytes of A and B keep every extent below 2^31. */
static const char *refuse(const bsmm_product *p, void *state, char *why, size_t size) {
    const char *reason = bsmm_hip_refuse(p, &functions[0][0], why, size);
    if (!reason) reason = refuse_a(&p->a, why, size);
    if (!reason) reason = refuse_b(&p->b);
    if (!reason && (!p->a.m.cols || !p->d.m.rows || !p->d.m.cols)) reason = "an extent is 0";
    if (reason) return reason;
    fill(p, state);
    return NULL;
}

static uint64_t workspace_bytes(const bsmm_product *p, const void *state) {
    (void)p, (void)state;
    return 0;
}

/* Returns the error bound, relative to the sum of the magnitudes of all products. A matrix
 * instruction adds 16 products to a sum (32 on gfx950) and may truncate each of these terms 23 bits
 * below the largest. Then the sums of up to eight waves are added. */
static double bound(const bsmm_product *p, const void *state) {
    (void)state;
    return (2.2 * ((double)p->a.m.cols + 32) + BSMM_CDNA_SMALL_M_MOST_WAVES) * 0x1p-24;
}

static bsmm_status make(const bsmm_product *p, void *state) {
    return bsmm_hip_load(p->device, ((const small_m_state *)state)->function, NULL);
}

static bsmm_status run(const bsmm_product *p, const void *state, void *workspace) {
    const small_m_state *s = state;
    bsmm_cdna_small_m job = s->job;
    (void)workspace;
    job.a_data = p->a.m.data;
    job.b_data = p->b.m.data;
    job.scales = p->b.m.scales;
    bsmm_gpu_operand_bind(&p->a, &job.a);
    bsmm_gpu_operand_bind(&p->b, &job.b);
    bsmm_gpu_epilogue_bind(p, &job.epilogue);
    if (p->a.m.global_scale || p->b.m.global_scale || p->d.m.global_scale) job.plain = 0;
    return bsmm_hip_launch(p->device, &(bsmm_hip_launch_desc){
                                          .function = s->function,
                                          .grid = {s->groups},
                                          .block = {job.waves * BSMM_HIP_WAVE},
                                          .shared_bytes = job.waves * s->wave_bytes,
                                          .stream = p->stream,
                                          .arguments = BSMM_HIP_ARGUMENTS(&job),
                                      });
}

const bsmm_kernel bsmm_kernel_hip_cdna_small_m = {
    .name = "hip_cdna_small_m",
    .device = "hip",
    .state_bytes = sizeof(small_m_state),
    .refuse = refuse,
    .workspace_bytes = workspace_bytes,
    .bound = bound,
    .make = make,
    .run = run,
    /* The kernel sets no `alignment`, because buffer loads of CDNA read at any address. */
};
