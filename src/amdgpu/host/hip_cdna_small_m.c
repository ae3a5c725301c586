/* This is the host code of the kernels for few rows of A on CDNA3 and CDNA4 (cdna/small_m_body.h).
 * A table lists the pairs of formats that they multiply. */
#include "amdgpu/cdna/small_m_params.h"
#include "amdgpu/host/kernel.h"
#include "gpu/params.h"

#include <string.h>

enum {
    MOST_ROWS = 64,
    /* WAVES is the number of waves that a compute unit runs at once. */
    WAVES = BSMM_CDNA_SMALL_M_MOST_WAVES,
    /* A_SIZES is the number of kernel sizes along A: for up to 16, 32 and 64 rows of A. */
    A_SIZES = 3,
    /* B_SIZES is the number of kernel sizes along B: for workgroups with 16, 32 or 48 rows of B. */
    B_SIZES = 3,
};

/* Describes the kernels for a pair of formats. Some entries also cover formats that they do not
 * name: an entry whose B has no scales covers a B with one fp32 scale per row or per several whole
 * rows; an entry whose A is e4m3 without scales covers an A with such scales; and an entry with
 * fp32 scales along K covers scale blocks of any number of rows of A, and of any multiple of 16
 * rows of B. */
typedef struct pair {
    bsmm_format a, b;
    bsmm_hip_function functions[B_SIZES][A_SIZES];
} pair;

/* clang-format off */
#define BF16       {BSMM_ELEM_BF16, BSMM_SCALE_NONE, 0, 0}
#define F16        {BSMM_ELEM_F16, BSMM_SCALE_NONE, 0, 0}
#define E4M3       {BSMM_ELEM_E4M3, BSMM_SCALE_NONE, 0, 0}
#define MXFP4      {BSMM_ELEM_E2M1, BSMM_SCALE_E8M0, 1, 32}
#define MXFP8      {BSMM_ELEM_E4M3, BSMM_SCALE_E8M0, 1, 32}
#define MXFP8_E5M2 {BSMM_ELEM_E5M2, BSMM_SCALE_E8M0, 1, 32}
#define MXFP6_E2M3 {BSMM_ELEM_E2M3, BSMM_SCALE_E8M0, 1, 32}
#define MXFP6_E3M2 {BSMM_ELEM_E3M2, BSMM_SCALE_E8M0, 1, 32}
#define NVFP4      {BSMM_ELEM_E2M1, BSMM_SCALE_E4M3, 1, 16}
#define FP8_FLOATS {BSMM_ELEM_E4M3, BSMM_SCALE_F32, 0, 0}
/* These macros list the kernels of a pair of formats, like those of the same names in
 * cdna/small_m_body.h. A name of NULL means that there is no such kernel. */
#define FUNCTIONS_WITH(module, name, with_48x32, with_48x64) \
    {{{module, name "_16x16", 0}, {module, name "_16x32", 0}, {module, name "_16x64", 0}}, \
     {{module, name "_32x16", 0}, {module, name "_32x32", 0}, {module, name "_32x64", 0}}, \
     {{module, NULL, 0}, {module, with_48x32, 0}, {module, with_48x64, 0}}}
#define FUNCTIONS(module, name) FUNCTIONS_WITH(module, name, NULL, NULL)
#define FUNCTIONS_TO_48x32(module, name) FUNCTIONS_WITH(module, name, name "_48x32", NULL)
#define FUNCTIONS_TO_48x64(module, name) FUNCTIONS_WITH(module, name, name "_48x32", name "_48x64")

/* Makes two entries for a pair of formats whose kernels for gfx942 and gfx950 are in different
 * modules. LIST is one of the macros above. */
#define BY_DEVICE(a, b, LIST, module, name) \
    {a, b, LIST("gfx942/small_m_" module, "small_m_" name)}, \
    {a, b, LIST("gfx950/small_m_" module, "small_m_" name)}

static const pair pairs[] = {
    BY_DEVICE(F16, MXFP4, FUNCTIONS, "mxfp4", "f16_mxfp4"),
    BY_DEVICE(F16, MXFP8, FUNCTIONS, "mxfp8", "f16_mxfp8"),
    {F16, NVFP4, FUNCTIONS("cdna/small_m_nvfp4", "small_m_f16_nvfp4")},
    {F16, FP8_FLOATS, FUNCTIONS("cdna/small_m_fp8", "small_m_f16_fp8")},
    BY_DEVICE(F16, MXFP6_E2M3, FUNCTIONS, "mxfp6", "f16_mxfp6_e2m3"),
    BY_DEVICE(F16, MXFP6_E3M2, FUNCTIONS, "mxfp6", "f16_mxfp6_e3m2"),
    {BF16, MXFP8_E5M2, FUNCTIONS("cdna/small_m_mxfp8_e5m2", "small_m_bf16_mxfp8_e5m2")},
    {F16, MXFP8_E5M2, FUNCTIONS("cdna/small_m_mxfp8_e5m2", "small_m_f16_mxfp8_e5m2")},
    {MXFP8_E5M2, MXFP8_E5M2,
     FUNCTIONS("cdna/small_m_mxfp8_e5m2", "small_m_mxfp8_e5m2_mxfp8_e5m2")},
    BY_DEVICE(BF16, MXFP4, FUNCTIONS_TO_48x64, "mxfp4", "bf16_mxfp4"),
    BY_DEVICE(MXFP4, MXFP4, FUNCTIONS_TO_48x64, "mxfp4", "mxfp4_mxfp4"),
    BY_DEVICE(BF16, MXFP8, FUNCTIONS_TO_48x32, "mxfp8", "bf16_mxfp8"),
    BY_DEVICE(MXFP8, MXFP8, FUNCTIONS_TO_48x32, "mxfp8", "mxfp8_mxfp8"),
    BY_DEVICE(MXFP8, MXFP4, FUNCTIONS_TO_48x32, "mxfp4", "mxfp8_mxfp4"),
    BY_DEVICE(BF16, MXFP6_E2M3, FUNCTIONS, "mxfp6", "bf16_mxfp6_e2m3"),
    BY_DEVICE(BF16, MXFP6_E3M2, FUNCTIONS, "mxfp6", "bf16_mxfp6_e3m2"),
    BY_DEVICE(MXFP6_E2M3, MXFP6_E2M3, FUNCTIONS, "mxfp6", "mxfp6_e2m3_mxfp6_e2m3"),
    BY_DEVICE(MXFP6_E3M2, MXFP6_E3M2, FUNCTIONS, "mxfp6", "mxfp6_e3m2_mxfp6_e3m2"),
    BY_DEVICE(MXFP8, MXFP6_E2M3, FUNCTIONS, "mxfp6", "mxfp8_mxfp6_e2m3"),
    BY_DEVICE(MXFP8, MXFP6_E3M2, FUNCTIONS, "mxfp6", "mxfp8_mxfp6_e3m2"),
    {BF16, NVFP4, FUNCTIONS_TO_48x64("cdna/small_m_nvfp4", "small_m_bf16_nvfp4")},
    {BF16, FP8_FLOATS, FUNCTIONS("cdna/small_m_fp8", "small_m_bf16_fp8")},
    {FP8_FLOATS, FP8_FLOATS, FUNCTIONS("cdna/small_m_fp8", "small_m_fp8_fp8")},
    {BF16, E4M3, FUNCTIONS("cdna/small_m_e4m3", "small_m_bf16_e4m3")},
    {F16, E4M3, FUNCTIONS("cdna/small_m_e4m3", "small_m_f16_e4m3")},
    {E4M3, E4M3, FUNCTIONS("cdna/small_m_e4m3", "small_m_e4m3_e4m3")},
    BY_DEVICE(E4M3, MXFP4, FUNCTIONS, "mxfp4", "e4m3_mxfp4"),
    BY_DEVICE(E4M3, MXFP8, FUNCTIONS, "mxfp8", "e4m3_mxfp8"),
    {E4M3, MXFP8_E5M2, FUNCTIONS("cdna/small_m_mxfp8_e5m2", "small_m_e4m3_mxfp8_e5m2")},
    {E4M3, NVFP4, FUNCTIONS("cdna/small_m_nvfp4", "small_m_e4m3_nvfp4")},
    BY_DEVICE(E4M3, MXFP6_E2M3, FUNCTIONS, "mxfp6", "e4m3_mxfp6_e2m3"),
    BY_DEVICE(E4M3, MXFP6_E3M2, FUNCTIONS, "mxfp6", "e4m3_mxfp6_e3m2"),
};
/* clang-format on */

/* Returns true if an operand has fp32 scales, each of which covers whole rows. */
static bool has_row_scales(const bsmm_operand *o) {
    return o->m.format.scale == BSMM_SCALE_F32 && o->m.format.block_cols >= o->m.cols;
}

/* Returns true if an operand has the format `want`. If `rows` is true, fp32 scales of whole rows
 * count as no scales. */
static bool is_format(const bsmm_format *want, const bsmm_operand *o, bool rows) {
    const bsmm_format *f = &o->m.format;
    if (want->scale == BSMM_SCALE_NONE)
        return want->elem == f->elem &&
               (f->scale == BSMM_SCALE_NONE || (rows && has_row_scales(o)));
    if (want->scale == BSMM_SCALE_F32) return want->elem == f->elem && f->scale == BSMM_SCALE_F32;
    return bsmm_format_equal(*want, *f);
}

/* Returns true if the folder of a module is that of the device's processor, or of all
 * processors. */
static bool is_for(const char *module, const bsmm_hip_device *device) {
    return strncmp(module, "cdna/", 5) == 0 ||
           strncmp(module, device->arch, strlen(device->arch)) == 0;
}

/* Returns the first entry of `pairs` that has kernels for the device and the formats of A and B, or
 * NULL. The kernels may still refuse the product. Kernels with fp32 scales along K need blocks of a
 * multiple of 16 rows of B. If B has other blocks and one scale for each whole row, entries with
 * such scales are skipped. A later entry without scales may then fit, because its kernels multiply
 * the results by the scales of rows. */
static const pair *find_pair(const bsmm_product *p) {
    const bool uneven = p->b.m.format.block_rows % BSMM_CDNA_SMALL_M_EDGE != 0;
    const bool skip = uneven && has_row_scales(&p->b);
    for (size_t i = 0; i < BSMM_COUNT(pairs); i++) {
        const bool rows = pairs[i].b.scale == BSMM_SCALE_NONE;
        const bool a_rows = rows || pairs[i].a.elem == BSMM_ELEM_E4M3;
        if (skip && pairs[i].b.scale == BSMM_SCALE_F32) continue;
        if (!is_for(pairs[i].functions[0][0].module, p->device)) continue;
        if (is_format(&pairs[i].a, &p->a, a_rows) && is_format(&pairs[i].b, &p->b, rows))
            return &pairs[i];
    }
    return NULL;
}

/* Holds the state of a plan for this kernel. */
typedef struct small_m_state {
    const bsmm_hip_function *function;
    uint32_t groups;    /* `groups` is the number of workgroups. */
    uint32_t lds_bytes; /* `lds_bytes` is the number of bytes of LDS of a workgroup. */
    bsmm_cdna_small_m job;
} small_m_state;
BSMM_CHECK_STATE(small_m_state);

static uint64_t pitch_of(const bsmm_operand *o) {
    return (uint64_t)o->m.ld * bsmm_elem_row(o->m.format.elem)->bits / 8;
}

/* Returns the number of bytes from an operand's first element to its last one. */
static uint64_t bytes_of(const bsmm_operand *o) {
    return pitch_of(o) * (uint64_t)(o->m.rows - 1) +
           (uint64_t)o->m.cols * bsmm_elem_row(o->m.format.elem)->bits / 8;
}

/* Returns log2 of the number of rows of a scale block, or 31 if all rows share scales. */
static uint32_t scale_shift_of(const bsmm_operand *o) {
    const uint32_t rows = o->m.format.block_rows;
    return !rows || rows >= o->m.rows ? 31 : (uint32_t)__builtin_ctz(rows);
}

/* Returns true if the scales of an operand are fp32 and the kernels can use them. The kernels
 * require that elements of one row in one step of K share a scale, and that the scales are evenly
 * spaced along rows and along columns. */
static bool has_good_floats(const bsmm_operand *o) {
    const int64_t step = BSMM_CDNA_SMALL_M_K, cols = o->m.format.block_cols;
    const int64_t rows = o->m.format.block_rows;
    const bsmm_gpu_operand from = bsmm_gpu_operand_of(o);
    const bool steady = cols % step == 0 || cols >= o->m.cols;
    const bool shifts = (rows & (rows - 1)) == 0 || rows >= o->m.rows;
    return steady && shifts &&
           bsmm_axis_is_linear(&from.row_map, rows, bsmm_ceil_div(o->m.rows, rows)) &&
           bsmm_axis_is_linear(&from.col_map, step, bsmm_ceil_div(o->m.cols, step));
}

static bool has_wide_elements(const bsmm_operand *o) {
    return bsmm_elem_row(o->m.format.elem)->bits == 16;
}

static bool has_small_scales(const bsmm_operand *o) {
    return o->m.format.scale == BSMM_SCALE_E8M0 || o->m.format.scale == BSMM_SCALE_E4M3;
}

static const char *refuse_bytes(uint64_t bytes, char name, const char *what, char *why,
                                size_t size) {
    if (bytes <= BSMM_CDNA_SMALL_M_BYTES) return NULL;
    return bsmm_reason(why, size, "%c has %llu bytes of %s; the kernel takes at most %d", name,
                       (unsigned long long)bytes, what, BSMM_CDNA_SMALL_M_BYTES);
}

/* Returns NULL if the kernels can read an operand. Otherwise writes the reason to `why` and returns
 * it. The distance between two rows must be a multiple of `unit` elements. */
static const char *refuse_side(const bsmm_operand *o, char name, int64_t unit, char *why,
                               size_t size) {
    const char *reason = bsmm_gpu_refuse_order(o, name, why, size);
    if (reason) return reason;
    if (o->m.format.scale == BSMM_SCALE_F32 && !has_good_floats(o))
        return bsmm_gpu_refuse_format(
            o, name,
            "its f32 scales must be evenly spaced, for 128 columns or all and for 2^n rows or all",
            why, size);
    if (has_small_scales(o) && o->m.scale_layout != BSMM_LAYOUT_ROW_MAJOR)
        return bsmm_reason(why, size, "%c's scales have the layout %s; the kernel takes row_major",
                           name, bsmm_layout_name(o->m.scale_layout));
    reason = refuse_bytes(bytes_of(o), name, "elements", why, size);
    if (!reason) reason = refuse_bytes(o->scale_bytes, name, "scales", why, size);
    if (reason || (o->m.ld % unit == 0 && o->m.cols % 32 == 0)) return reason;
    return bsmm_reason(why, size,
                       "K is %lld and %c's ld is %lld; K must be a multiple of 32, and ld a "
                       "multiple of %lld",
                       (long long)o->m.cols, name, (long long)o->m.ld, (long long)unit);
}

/* Returns NULL if the kernels can read A and B. Otherwise writes the reason to `why` and returns
 * it. */
static const char *refuse_sides(const bsmm_product *p, char *why, size_t size) {
    const pair *formats = find_pair(p);
    const uint32_t block_rows = p->b.m.format.block_rows;
    const char *reason = bsmm_gpu_refuse_rows(p, MOST_ROWS, why, size);
    if (!formats)
        return bsmm_gpu_refuse_formats(p,
                                       "the kernel takes bf16 or f16 times mxfp4, mxfp6, mxfp8, "
                                       "nvfp4 or e4m3 with f32 scales or none, e4m3 with one scale "
                                       "a row or none times mxfp4, mxfp6, mxfp8 or nvfp4, mxfp8 "
                                       "times mxfp4 or mxfp6, and equal pairs of these but nvfp4",
                                       why, size);
    if (!reason) reason = refuse_side(&p->a, 'A', has_wide_elements(&p->a) ? 8 : 32, why, size);
    if (!reason) reason = refuse_side(&p->b, 'B', 32, why, size);
    if (!reason && formats->b.scale == BSMM_SCALE_F32 && block_rows % BSMM_CDNA_SMALL_M_EDGE)
        reason = bsmm_reason(why, size, "B has block_rows %u; the kernel takes multiples of %d",
                             block_rows, BSMM_CDNA_SMALL_M_EDGE);
    return reason;
}

/* Returns the number of tiles of 16 rows of B of a workgroup. Workgroups with more rows read A
 * fewer times, but there are fewer of them.
 *
 * With up to 16 rows of A, the function returns 2 if workgroups with 16 rows would be so many that
 * each could have only one wave, because a compute unit runs at most WAVES waves at once. With more
 * rows of A, it estimates the work of the busiest compute unit: a workgroup reads its tiles of B,
 * and A, which takes about as long as one such tile for each 32 rows of A. */
static uint32_t choose_b_tiles(const bsmm_product *p, const bsmm_hip_function (*functions)[A_SIZES],
                               uint32_t a_size, int64_t units) {
    const int64_t tiles = bsmm_ceil_div(p->d.m.cols, BSMM_CDNA_SMALL_M_EDGE);
    if (a_size == 0) return tiles > units * WAVES / 2 ? 2 : 1;
    int64_t best = 1, least = INT64_MAX;
    for (int64_t each = 1; each <= B_SIZES; each++) {
        const int64_t work = bsmm_ceil_div(bsmm_ceil_div(tiles, each), units) * (each + a_size);
        if (functions[each - 1][a_size].name && work <= least) best = each, least = work;
    }
    return (uint32_t)best;
}

/* Chooses the number of waves of a workgroup. The waves of a workgroup divide K. LDS and the limit
 * WAVES allow a certain number of waves on a compute unit, which its workgroups share, so that all
 * workgroups run at once if possible. With more than 16 rows of A, two waves share a place for sums
 * in LDS if more waves fit then. */
static void choose_waves(const bsmm_product *p, small_m_state *s, uint32_t b_tiles,
                         uint32_t a_tiles, int64_t units) {
    const int64_t each = bsmm_min_i64(bsmm_ceil_div(s->groups, units), WAVES);
    const int64_t room = ((const bsmm_hip_device *)p->device)->lds_bytes;
    const bool wide = has_wide_elements(&p->a);
    for (s->job.waves = (uint32_t)(WAVES / each);; s->job.waves--)
        for (uint32_t shared = 0; shared <= (a_tiles > 1); shared++) {
            s->job.places = shared ? (s->job.waves + 1) / 2 : s->job.waves;
            s->lds_bytes =
                bsmm_cdna_small_m_lds_bytes(wide, a_tiles, b_tiles, s->job.waves, s->job.places);
            if (s->job.waves == 1 || each * s->lds_bytes <= room) return;
        }
}

static void choose(const bsmm_product *p, small_m_state *s) {
    const bsmm_hip_device *device = p->device;
    const int64_t units = device->compute_units > 0 ? device->compute_units : 1;
    const int64_t edge = BSMM_CDNA_SMALL_M_EDGE, rows = p->d.m.rows;
    const uint32_t a_size = rows <= edge ? 0 : rows <= 2 * edge ? 1 : 2;
    const pair *formats = find_pair(p);
    const uint32_t b_tiles = choose_b_tiles(p, formats->functions, a_size, units);
    s->function = &formats->functions[b_tiles - 1][a_size];
    s->groups = (uint32_t)bsmm_ceil_div(p->d.m.cols, b_tiles * edge);
    choose_waves(p, s, b_tiles, 1u << a_size, units);
}

/* Returns true if the epilogue only rounds sums to D's format. The function ignores global scales
 * (second-level scales), which are known only when the plan runs. */
static bool is_plain(const bsmm_product *p) {
    const uint32_t elem = p->d.m.format.elem;
    const bool known = elem == BSMM_ELEM_F32 || elem == BSMM_ELEM_F16 || elem == BSMM_ELEM_BF16;
    return known && p->alpha == 1 && !p->has_c && !p->bias_elem;
}

/* `map` maps the rows or the columns of the operand to positions of scales. Returns the distance in
 * bytes from the scale of row (or column) 0 to that of row (or column) `index`. */
static uint32_t scale_distance(const bsmm_operand *o, const bsmm_axis_map *map, int64_t index) {
    return (uint32_t)(bsmm_axis_at(map, (uint32_t)index) *
                      bsmm_scale_row_of(o->m.format.scale)->bytes);
}

static bsmm_cdna_small_m_side side_of(const bsmm_operand *o) {
    const bsmm_gpu_operand from = bsmm_gpu_operand_of(o);
    const uint32_t shift = scale_shift_of(o);
    return (bsmm_cdna_small_m_side){
        .bytes = (uint32_t)bytes_of(o),
        .scale_bytes = (uint32_t)o->scale_bytes,
        .rows = (uint32_t)o->m.rows,
        .pitch = (uint32_t)pitch_of(o),
        .scale_step = scale_distance(o, &from.col_map, BSMM_CDNA_SMALL_M_K),
        .scale_pitch = shift == 31 ? 0 : scale_distance(o, &from.row_map, (int64_t)1 << shift),
        .scale_shift = shift,
    };
}

/* Returns the flags BSMM_CDNA_SMALL_M_A_SCALES and _B_SCALES. If the fp32 scales of an operand
 * cover whole rows, the kernel may read it as an operand without scales, and multiply the complete
 * sums by its scales at the end. The flag of the operand is then set. */
static uint32_t scales_at_end(const bsmm_product *p) {
    const pair *formats = find_pair(p);
    const bool a = has_row_scales(&p->a) && formats->a.scale == BSMM_SCALE_NONE;
    const bool b = has_row_scales(&p->b) && formats->b.scale == BSMM_SCALE_NONE;
    return (a ? BSMM_CDNA_SMALL_M_A_SCALES : 0u) | (b ? BSMM_CDNA_SMALL_M_B_SCALES : 0u);
}

static void fill(const bsmm_product *p, small_m_state *s) {
    const uint32_t steps = (uint32_t)bsmm_ceil_div(p->a.m.cols, BSMM_CDNA_SMALL_M_K);
    s->job = (bsmm_cdna_small_m){
        .a = side_of(&p->a),
        .b = side_of(&p->b),
        .k = (uint32_t)p->a.m.cols,
        .epilogue_flags = (is_plain(p) ? BSMM_CDNA_SMALL_M_PLAIN : 0u) | scales_at_end(p),
        .a_operand = bsmm_gpu_operand_of(&p->a),
        .b_operand = bsmm_gpu_operand_of(&p->b),
        .epilogue = bsmm_gpu_epilogue_of(p),
    };
    choose(p, s);
    s->job.steps_each = steps / s->job.waves;
    s->job.groups = s->groups;
    s->job.longer = steps % s->job.waves;
}

/* Returns NULL and fills the state of a plan if the kernels can compute the product. Otherwise
 * returns the reason why not. */
static const char *refuse(const bsmm_product *p, void *state, char *why, size_t size) {
    const char *reason = refuse_sides(p, why, size);
    if (!reason) reason = bsmm_hip_refuse(p, &find_pair(p)->functions[0][0], why, size);
    if (!reason) reason = bsmm_gpu_refuse_extents(p, why, size);
    if (reason) return reason;
    fill(p, state);
    return NULL;
}

static uint64_t workspace_bytes(const bsmm_product *p, const void *state) {
    (void)p, (void)state;
    return 0;
}

/* Returns the error bound, relative to the sum of the magnitudes of all products. A matrix
 * instruction adds up to 32 products to a sum, or 128 if B has e8m0 scales and A has at most 8
 * bits. It may truncate each of these terms 23 bits below the largest. In the end, the sums of up
 * to eight waves are added.
 *
 * Three cases have further errors:
 *
 * - An f16 element becomes two bf16 numbers of its own sign, so twice as many products are added.
 * - If A or B has fp32 scales for parts of rows, the matrix instructions sum only the products of
 *   one step (128 elements of K). For each step, the bound allows one rounding for the product of
 *   two scales, and one for adding the scaled sum to the sum over all of K.
 * - If scales cover whole rows, a result is multiplied by them at the end, with three roundings. */
static double bound(const bsmm_product *p, const void *state) {
    (void)state;
    const double k = (double)p->a.m.cols, waves = BSMM_CDNA_SMALL_M_MOST_WAVES;
    const bool is_scaled = p->b.m.format.scale == BSMM_SCALE_E8M0 && !has_wide_elements(&p->a);
    const double once = is_scaled ? 128 : 32;
    const double parts = p->a.m.format.elem == BSMM_ELEM_F16 ? 2 : 1;
    const double at_end = scales_at_end(p) ? 3 : 0;
    const double steps = k / BSMM_CDNA_SMALL_M_K + 2;
    if (find_pair(p)->b.scale == BSMM_SCALE_F32)
        return (2.2 * parts * (BSMM_CDNA_SMALL_M_K + once) + steps + waves + at_end) * 0x1p-24;
    return (2.2 * parts * (k + once) + waves + at_end) * 0x1p-24;
}

static bsmm_status make(const bsmm_product *p, void *state) {
    return bsmm_hip_load(p->device, ((const small_m_state *)state)->function, NULL);
}

static bsmm_status run(const bsmm_product *p, const void *state, void *workspace) {
    const small_m_state *s = state;
    bsmm_cdna_small_m job = s->job;
    (void)workspace;
    job.a.data = p->a.m.data, job.a.scales = p->a.m.scales;
    job.b.data = p->b.m.data, job.b.scales = p->b.m.scales;
    bsmm_gpu_operand_bind(&p->a, &job.a_operand);
    bsmm_gpu_operand_bind(&p->b, &job.b_operand);
    bsmm_gpu_epilogue_bind(p, &job.epilogue);
    if (p->a.m.global_scale || p->b.m.global_scale || p->d.m.global_scale)
        job.epilogue_flags &= ~(uint32_t)BSMM_CDNA_SMALL_M_PLAIN;
    return bsmm_hip_launch(p->device, &(bsmm_hip_launch_desc){
                                          .function = s->function,
                                          .grid = {s->groups},
                                          .block = {job.waves * BSMM_HIP_WAVE},
                                          .shared_bytes = s->lds_bytes,
                                          .stream = p->stream,
                                          .arguments = BSMM_HIP_ARGUMENTS(&job),
                                      });
}

static uint32_t k_parts(const bsmm_product *p, const void *state) {
    (void)p;
    return ((const small_m_state *)state)->job.waves;
}

const bsmm_kernel bsmm_kernel_hip_cdna_small_m = {
    .name = "hip_cdna_small_m",
    .device = "hip",
    .state_bytes = sizeof(small_m_state),
    .refuse = refuse,
    .workspace_bytes = workspace_bytes,
    .bound = bound,
    .k_parts = k_parts,
    .make = make,
    .run = run,
    /* The kernel sets no `alignment`, because buffer loads of CDNA read at any address. */
};
