/* This is the host code that all MFMA kernels (kernels for CDNA's matrix instructions) share. It
 * refuses products whose extents do not fit the kernels' offsets, estimates the time of a tile
 * size, and launches the kernel. */
#include "amdgpu/host/mfma.h"

#include "gpu/params.h"

#include <stdio.h>

BSMM_CHECK_STATE(bsmm_mfma_state);

/* MOST_PITCH is the largest distance in bytes between rows of A or B. A kernel addresses the 256
 * rows of a tile with 32-bit offsets, so 256 times this distance must stay below 2^32. */
enum { MOST_PITCH = 1 << 23 };

static uint64_t pitch_of(const bsmm_operand *o) {
    return (uint64_t)o->m.ld * bsmm_elem_row(o->m.format.elem)->bits / 8;
}

/* Returns true if the offsets of an operand's scales along K repeat after P = BSMM_CDNA_SCALES
 * blocks, i.e. if the offset of scale i + P is that of scale i plus a constant (bsmm_cdna_side).
 * The map from columns to offsets splits a column number into mixed-radix digits, of which the last
 * is the most significant (gpu/axis_map.h). Let E be the product of the extents of all digits but
 * the last. If P blocks together have a multiple of E columns, scale i and scale i + P differ only
 * in the last digit, and the offsets repeat. */
static bool repeats(const bsmm_gpu_operand *o, uint32_t block) {
    uint64_t extent = 1;
    for (uint32_t i = 0; i + 1 < o->col_map.count; i++)
        extent *= o->col_map.digits[i].extent;
    return (uint64_t)BSMM_CDNA_SCALES * block % extent == 0;
}

static const char *refuse_operand(const bsmm_operand *o, char name, char *why, size_t size) {
    const bsmm_gpu_operand on_device = bsmm_gpu_operand_of(o);
    if (!repeats(&on_device, o->m.format.block_cols))
        return bsmm_reason(
            why, size,
            "%c's scales have the layout %s; their order must repeat after %d blocks "
            "along K",
            name, bsmm_layout_name(o->m.scale_layout), BSMM_CDNA_SCALES);
    if (o->scale_bytes > INT32_MAX)
        return bsmm_reason(why, size, "%c has %llu bytes of scales; the kernel takes at most %d",
                           name, (unsigned long long)o->scale_bytes, INT32_MAX);
    if (pitch_of(o) <= MOST_PITCH) return NULL;
    return bsmm_reason(why, size,
                       "%c's rows (or columns) are %llu bytes apart; the kernel takes at most %d",
                       name, (unsigned long long)pitch_of(o), MOST_PITCH);
}

static int64_t count_tiles(const bsmm_product *p, const bsmm_mfma_tile *tile) {
    return bsmm_ceil_div(p->d.m.rows, tile->rows) * bsmm_ceil_div(p->d.m.cols, tile->cols);
}

const char *bsmm_mfma_refuse(const bsmm_product *p, const bsmm_mfma_tile *tile, char *why,
                             size_t size) {
    const bsmm_hip_device *device = p->device;
    const bsmm_gpu_image *image;
    if (bsmm_hip_image_find(device, tile->function.module, &image) != BSMM_OK) {
        snprintf(why, size, "%s", bsmm_error_message());
        return why;
    }
    if (!image) return bsmm_hip_no_image(device, tile->function.module, why, size);
    const char *reason = bsmm_gpu_refuse_extents(p, why, size);
    /* HIP counts the threads of a launch along x in 32 bits. */
    if (!reason)
        reason =
            bsmm_gpu_refuse_tiles(p, tile->rows, tile->cols, UINT32_MAX / tile->threads, why, size);
    if (!reason) reason = bsmm_gpu_refuse_elements(p, why, size);
    if (!reason) reason = refuse_operand(&p->a, 'A', why, size);
    return reason ? reason : refuse_operand(&p->b, 'B', why, size);
}

/* A kernel whose tile has `aligned` set loads 16 bytes at a time of row-major operands and 4 bytes
 * at a time of column-major operands. Such a kernel addresses all bytes of a column-major operand
 * with 31-bit offsets. */
enum { ALIGNED_WORD = 4, ALIGNED_PIECE = 16 };

static bool is_aligned(const bsmm_operand *o) {
    if (o->m.order == BSMM_ORDER_ROW) return pitch_of(o) % ALIGNED_PIECE == 0;
    return pitch_of(o) % ALIGNED_PIECE == 0 && o->m.rows % ALIGNED_WORD == 0 &&
           pitch_of(o) * (uint64_t)o->m.cols <= INT32_MAX;
}

bool bsmm_mfma_fits(const bsmm_product *p, const bsmm_mfma_tile *tile) {
    const bsmm_gpu_image *image;
    if (!tile->function.name) return false;
    if (bsmm_hip_image_find(p->device, tile->function.module, &image) != BSMM_OK || !image)
        return false;
    return !tile->aligned ||
           (p->a.m.cols % BSMM_CDNA_K == 0 && is_aligned(&p->a) && is_aligned(&p->b));
}

static int64_t count_units(const bsmm_product *p) {
    const bsmm_hip_device *device = p->device;
    return device->compute_units > 0 ? device->compute_units : 1;
}

/* For split-K, K is divided into parts. Returns a number of elements of which the length of each
 * part must be a multiple. There are two reasons for it. First, the offsets of a part's scales,
 * relative to the part's first scale, must be the same in each part. Second, a wide load of e8m0
 * scales must be able to begin at the part's first scale (cdna/gemm_scales.h). */
static int64_t part_unit(const bsmm_product *p) {
    const int64_t repeat = BSMM_CDNA_SCALES * (int64_t)p->a.m.format.block_cols;
    const int64_t wide = 4 * (int64_t)BSMM_CDNA_K;
    return repeat > wide ? repeat : wide;
}

/* Returns the number of elements of K in each part of K but the last, if K is divided into `parts`
 * parts. */
static int64_t part_k(const bsmm_product *p, uint32_t parts) {
    const int64_t unit = part_unit(p);
    return bsmm_ceil_div(bsmm_ceil_div(p->a.m.cols, unit), parts) * unit;
}

uint32_t bsmm_mfma_most_parts(const bsmm_product *p, const bsmm_mfma_tile *tile) {
    const int64_t tiles = count_tiles(p, tile), room = tiles ? count_units(p) / tiles : 1;
    const int64_t pieces = bsmm_ceil_div(p->a.m.cols, part_unit(p));
    const int64_t most = bsmm_min_i64(room, pieces);
    return p->invariant || most < 1 ? 1 : (uint32_t)most;
}

/* Returns the estimated cycles of a product whose K is divided into `parts` parts. With several
 * parts, the parts write their sums to memory, and a second kernel reads and adds them.
 * ADDING_CYCLES is the time to launch this kernel and to wait for its loads. BYTES_PER_CYCLE is the
 * rate at which the sums are written and read. */
double bsmm_mfma_estimate(const bsmm_product *p, const bsmm_mfma_tile *tile, uint32_t parts) {
    enum { ADDING_CYCLES = 10000, BYTES_PER_CYCLE = 1900 };
    const int64_t tiles = count_tiles(p, tile);
    const double stages = (double)bsmm_ceil_div(part_k(p, parts), BSMM_CDNA_K);
    const double busy = (double)bsmm_ceil_div(tiles * parts, count_units(p)) * tile->busy;
    const double multiplying = stages * (busy > tile->alone ? busy : tile->alone);
    if (parts == 1) return multiplying;
    const double bytes = 2.0 * sizeof(float) * parts * (double)tiles * tile->rows * tile->cols;
    return multiplying + ADDING_CYCLES + bytes / BYTES_PER_CYCLE;
}

/* Returns 1 if loads from memory directly to LDS can read the operand, else 0. Such loads read 16
 * bytes at addresses that are multiples of 16 or, for 6-bit elements, 12 bytes at multiples of
 * 4. */
static uint32_t is_direct(const bsmm_operand *o) {
    const uint32_t alignment = bsmm_elem_row(o->m.format.elem)->bits == 6 ? 4 : 16;
    return ((uintptr_t)o->m.data | pitch_of(o)) % alignment == 0;
}

static bsmm_cdna_side side_of(const bsmm_operand *o) {
    const uint32_t block = o->m.format.block_cols;
    bsmm_cdna_side side = {.o = bsmm_gpu_operand_of(o),
                           .pitch = pitch_of(o),
                           .rows = (uint32_t)o->m.rows,
                           .scales_in_row = 1};
    for (uint32_t i = 0; i <= BSMM_CDNA_SCALES; i++) {
        const uint32_t offset = (uint32_t)bsmm_axis_at(&side.o.col_map, i * block);
        side.scales_in_row &= offset == i;
        if (i < BSMM_CDNA_SCALES)
            side.scale_at[i] = offset;
        else
            side.scale_period = offset;
    }
    return side;
}

/* Writes the tile to the plan's state, together with the numbers of rows and columns of tiles into
 * which D is divided. */
static void set_tile(const bsmm_product *p, const bsmm_mfma_tile *tile, bsmm_mfma_state *state) {
    state->tile = tile;
    state->job.row_tiles = (uint32_t)bsmm_ceil_div(p->d.m.rows, tile->rows);
    state->job.col_tiles = (uint32_t)bsmm_ceil_div(p->d.m.cols, tile->cols);
    state->job.groups = bsmm_mfma_choose_groups(
        p, tile, state->job.row_tiles * state->job.col_tiles, state->job.parts);
    state->job.tiles_reciprocal =
        state->job.parts > 1 ? UINT32_MAX / (uint64_t)count_tiles(p, tile) + 1 : 0;
}

void bsmm_mfma_begin(const bsmm_product *p, const bsmm_mfma_tile *tile, float factor,
                     bsmm_mfma_state *state) {
    const bsmm_operand *operands[2] = {&p->a, &p->b};
    *state = (bsmm_mfma_state){
        .job = {.epilogue = bsmm_gpu_epilogue_of(p), .k = (uint32_t)p->a.m.cols, .factor = factor},
    };
    const uint32_t parts = bsmm_mfma_choose_parts(p, tile);
    state->job.part_k = (uint32_t)part_k(p, parts);
    state->job.parts = (uint32_t)bsmm_ceil_div(p->a.m.cols, state->job.part_k);
    set_tile(p, tile, state);
    for (int i = 0; i < 2; i++)
        state->job.sides[i] = side_of(operands[i]);
}

/* ADDING_BYTES is the number of bytes of LDS that a workgroup of the kernel add_parts needs. The
 * kernel adds the sums of the parts of K. Each wave has a buffer for its sums, with four floats of
 * padding in each of 16 rows. */
#define ADDING_BYTES                                                                               \
    (BSMM_CDNA_PART_WAVES * BSMM_CDNA_EDGE * (BSMM_CDNA_PART_COLS + 4) * (uint32_t)sizeof(float))
static const bsmm_hip_function add_parts = {"cdna/gemm_parts", "add_parts", ADDING_BYTES};

/* Returns the number of parts into which every run of the plan divides K. If the operands of a run
 * are not aligned, the run uses a smaller tile than the plan has chosen, but the same number of
 * parts. Such a run needs no more workspace than the plan reports. */
uint32_t bsmm_mfma_k_parts(const bsmm_product *p, const void *state) {
    (void)p;
    return ((const bsmm_mfma_state *)state)->job.parts;
}

uint64_t bsmm_mfma_workspace_bytes(const bsmm_product *p, const void *state) {
    const bsmm_mfma_state *s = state;
    const uint64_t sums = (uint64_t)s->tile->rows * s->tile->cols * sizeof(float);
    return s->job.parts > 1 ? s->job.parts * (uint64_t)count_tiles(p, s->tile) * sums : 0;
}

bsmm_status bsmm_mfma_make(const bsmm_product *p, void *state) {
    const bsmm_mfma_state *s = state;
    if (s->job.parts > 1) BSMM_TRY(bsmm_hip_load(p->device, &add_parts, NULL));
    BSMM_TRY(bsmm_hip_load(p->device, &s->tile->function, NULL));
    return s->tile->aligned ? bsmm_hip_load(p->device, &s->tile[-1].function, NULL) : BSMM_OK;
}

static bsmm_status multiply(const bsmm_product *p, const bsmm_mfma_state *s) {
    bsmm_cdna_gemm job = s->job;
    return bsmm_hip_launch(p->device, &(bsmm_hip_launch_desc){
                                          .function = &s->tile->function,
                                          .grid = {job.groups},
                                          .block = {s->tile->threads},
                                          .shared_bytes = s->tile->function.shared_bytes,
                                          .stream = p->stream,
                                          .arguments = BSMM_HIP_ARGUMENTS(&job),
                                      });
}

static bsmm_status add(const bsmm_product *p, const bsmm_mfma_state *s) {
    bsmm_cdna_gemm job = s->job;
    uint32_t rows = job.row_tiles * s->tile->rows, cols = job.col_tiles * s->tile->cols;
    const int64_t waves = bsmm_ceil_div(p->d.m.rows, BSMM_CDNA_EDGE) *
                          bsmm_ceil_div(p->d.m.cols, BSMM_CDNA_PART_COLS);
    return bsmm_hip_launch(p->device,
                           &(bsmm_hip_launch_desc){
                               .function = &add_parts,
                               .grid = {(uint32_t)bsmm_ceil_div(waves, BSMM_CDNA_PART_WAVES)},
                               .block = {BSMM_CDNA_PART_WAVES * BSMM_HIP_WAVE},
                               .shared_bytes = add_parts.shared_bytes,
                               .stream = p->stream,
                               .arguments = BSMM_HIP_ARGUMENTS(&job, &rows, &cols),
                           });
}

/* Returns 1 if the epilogue only rounds sums to D's format (provided that all global scales are 1),
 * and the rows of D consist of adjacent elements and begin at multiples of 16 bytes. Otherwise
 * returns 0. */
static uint32_t only_rounds(const bsmm_gpu_epilogue *e) {
    const uint32_t bytes = e->d_elem == BSMM_ELEM_F32 ? 4 : 2;
    const bool known = bytes == 4 || e->d_elem == BSMM_ELEM_F16 || e->d_elem == BSMM_ELEM_BF16;
    return known && e->alpha == 1 && !e->c && !e->bias && e->d_col == 1 &&
           ((uintptr_t)e->d | e->d_row * bytes) % 16 == 0;
}

bsmm_status bsmm_mfma_run(const bsmm_product *p, const void *state, void *workspace) {
    bsmm_mfma_state s = *(const bsmm_mfma_state *)state;
    const bsmm_operand *operands[2] = {&p->a, &p->b};
    for (int i = 0; i < 2; i++) {
        bsmm_gpu_operand_bind(operands[i], &s.job.sides[i].o);
        s.job.sides[i].direct = is_direct(operands[i]);
    }
    if (s.tile->aligned && !(s.job.sides[0].direct && s.job.sides[1].direct))
        set_tile(p, s.tile - 1, &s);
    bsmm_gpu_epilogue_bind(p, &s.job.epilogue);
    s.job.only_rounds = only_rounds(&s.job.epilogue);
    s.job.sums = workspace;
    BSMM_TRY(multiply(p, &s));
    return s.job.parts > 1 ? add(p, &s) : BSMM_OK;
}
