/* The functions in this file choose the kernel that packs an operand (gpu/pack.h), and fill its
 * parameters. */
#include "cuda/host/pack_plan.h"

#include "cuda/host/kernel.h"

enum { THREADS = 256, TILE = 128 };

static uint32_t log2_of(uint32_t value) {
    return 31u - (uint32_t)__builtin_clz(value);
}

bsmm_pack_layout bsmm_pack_layout_of(int64_t rows, int64_t cols, bsmm_pack_route route) {
    uint64_t padded = (uint64_t)bsmm_round_up(cols, BSMM_PACK_GROUP);
    bsmm_pack_layout at = {.group_scales = 256,
                           .element_pitch =
                               padded * (bsmm_pack_is_bf16(route) ? 2 * bsmm_pack_parts(route) : 1),
                           .group_pitch = (uint64_t)bsmm_round_up(rows, 4)};
    uint64_t scales = padded / BSMM_PACK_GROUP * at.group_pitch * sizeof(float);
    at.elements = (uint64_t)bsmm_round_up((int64_t)(at.group_scales + scales), 1024);
    at.bytes = at.elements + (uint64_t)rows * at.element_pitch;
    return at;
}

/* Packing to e4m3 multiplies an element by a power of two 2^s, which depends on the scales of its
 * block and of its group. This table limits s for each element format. For elements of 4 and 6
 * bits, the product is exact in e4m3 if s is at least fold - window and at most fold, e.g. -8 to 6
 * for e2m1 (tests/unit/test_cuda_pack.c enumerates the exact cases). For elements of 8 bits the
 * product is rounded, and `window` limits the rounding error. */
static const struct {
    uint8_t fold, window; /* `window` is 0 if no kernel packs the format to 8 bits. */
} folds[BSMM_ELEM_COUNT] = {[BSMM_ELEM_E2M1] = {6, 14},
                            [BSMM_ELEM_E2M3] = {5, 11},
                            [BSMM_ELEM_E3M2] = {4, 9},
                            [BSMM_ELEM_E4M3] = {0, 8},
                            [BSMM_ELEM_E5M2] = {0, 8}};

static bool takes_format(const bsmm_format *f, bsmm_pack_route route) {
    bool e8m0 = f->scale == BSMM_SCALE_E8M0, fp8 = bsmm_cuda_is_fp8(f->elem);
    bool f32_or_none = f->scale == BSMM_SCALE_F32 || f->scale == BSMM_SCALE_NONE;
    if (route == BSMM_PACK_FAST) return fp8 && e8m0;
    if (route == BSMM_PACK_FP8) return fp8 ? f32_or_none : folds[f->elem].window > 0 && e8m0;
    if (route == BSMM_PACK_TWO_BF16) return f->elem == BSMM_ELEM_F16 && f->scale == BSMM_SCALE_NONE;
    if (route == BSMM_PACK_THREE_BF16)
        return f->elem == BSMM_ELEM_F32 && f->scale == BSMM_SCALE_NONE;
    return bsmm_elem_is_narrow(f->elem) || f->scale == BSMM_SCALE_NONE;
}

/* An operand can be packed only if the length of its scale blocks along K is a multiple of a number
 * of elements. Returns this number. For fp32 scales it is 128, because a packed operand has one
 * fp32 scale for each 128 elements. Scales of other types are multiplied into the elements, by
 * kernels that work on 16 elements at once (packing to bf16) or on 32 (packing to 8 bits). */
static uint32_t block_multiple(uint32_t scale, bsmm_pack_route route) {
    if (scale == BSMM_SCALE_NONE) return 1;
    return scale == BSMM_SCALE_F32 ? BSMM_PACK_GROUP : route == BSMM_PACK_BF16 ? 16 : 32;
}

/* Names each packing route, i.e. each format to which operands are packed (bsmm_pack_route).
 * `result` is the packed format, for messages. `name` is the name in the header of packed weights.
 */
static const struct {
    const char *result, *name;
} routes[] = {
    [BSMM_PACK_BF16] = {"bf16", "bf16"},
    [BSMM_PACK_FP8] = {"fp8", "fp8"},
    [BSMM_PACK_FAST] = {"rescaled fp8", "fast"},
    [BSMM_PACK_TWO_BF16] = {"two bf16", "bf16x2"},
    [BSMM_PACK_THREE_BF16] = {"three bf16", "bf16x3"},
};
_Static_assert(BSMM_COUNT(routes) == BSMM_PACK_ROUTES, "every route has a row");

const char *bsmm_pack_route_name(bsmm_pack_route route) {
    return routes[route].name;
}

enum { MOST_COLS = 1 << 22 };

const char *bsmm_pack_refuse(const bsmm_operand *o, char name, bsmm_pack_route route, char *why,
                             size_t size) {
    const bsmm_format *f = &o->m.format;
    uint32_t multiple = block_multiple(f->scale, route);
    if (!takes_format(f, route))
        return bsmm_reason(why, size, "%c is %s, which cannot be packed to %s", name,
                           bsmm_format_name(*f), routes[route].result);
    const bool whole_rows = f->scale == BSMM_SCALE_F32 && f->block_cols >= o->m.cols;
    if (f->scale != BSMM_SCALE_NONE && f->block_cols % multiple != 0 && !whole_rows) {
        return bsmm_reason(why, size,
                           "%c has scales of %u columns; only multiples of %u can be packed", name,
                           f->block_cols, multiple);
    }
    if (o->m.rows <= INT32_MAX && o->m.cols <= MOST_COLS) return NULL;
    return bsmm_reason(why, size, "%c is %lld x %lld; at most %d x %d elements can be packed", name,
                       (long long)o->m.rows, (long long)o->m.cols, INT32_MAX, MOST_COLS);
}

#define WIDE(kernel)                                                                               \
    { .module = "sm80/pack_wide", .name = kernel }
#define NARROW(kernel)                                                                             \
    { .module = "sm80/pack_narrow", .name = kernel }
#define F16(kernel)                                                                                \
    { .module = "sm80/pack_f16", .name = kernel }
#define TO_FP8(kernel)                                                                             \
    { .module = "sm90a/pack_fp8", .name = kernel }
#define COLUMNS(...)
#define KERNEL(module, name, elem, bits, by_rows) [elem][!(by_rows)] = {"sm90a/" #module, #name, 0},
/* These kernels pack f32, f16 and bf16 elements to one bf16 number each. The first index is the
 * element format. The second index is 0 for row-major operands and 1 for column-major ones. */
static const bsmm_cuda_function wide_kernels[][2] = {
    [BSMM_ELEM_F32] = {WIDE("pack_rows_f32"), WIDE("pack_columns_f32")},
    [BSMM_ELEM_F16] = {WIDE("pack_rows_f16"), WIDE("pack_columns_f16")},
    [BSMM_ELEM_BF16] = {WIDE("pack_rows_bf16"), WIDE("pack_columns_bf16")},
};
/* These kernels pack f32 and f16 elements to sums of several bf16 numbers. The index is [element][0
 * for row-major operands, 1 for column-major ones]. */
static const bsmm_cuda_function part_kernels[][2] = {
    [BSMM_ELEM_F32] = {WIDE("pack_rows_f32_parts"), WIDE("pack_columns_f32_parts")},
    [BSMM_ELEM_F16] = {WIDE("pack_rows_f16_parts"), WIDE("pack_columns_f16_parts")},
};
/* These kernels pack elements of 4, 6 and 8 bits to bf16. The first index is half of the number of
 * bits of an element. The second index is 1 if the kernel is specialized for e8m0 scales, else 0.
 * The third index is 0 for row-major operands and 1 for column-major ones. */
static const bsmm_cuda_function narrow_kernels[][2][2] = {
    [2] = {{NARROW("pack_rows_4_bf16"), NARROW("pack_columns_4_bf16")},
           {NARROW("pack_rows_4_bf16_e8m0"), NARROW("pack_columns_4_bf16_e8m0")}},
    [3] = {{NARROW("pack_rows_6_bf16"), NARROW("pack_columns_6_bf16")},
           {NARROW("pack_rows_6_bf16_e8m0"), NARROW("pack_columns_6_bf16_e8m0")}},
    [4] = {{NARROW("pack_rows_8_bf16"), NARROW("pack_columns_8_bf16")},
           {NARROW("pack_rows_8_bf16_e8m0"), NARROW("pack_columns_8_bf16_e8m0")}},
};
static const bsmm_cuda_function nvfp4_kernel = NARROW("pack_rows_4_bf16_e4m3");
static const bsmm_cuda_function fp8_kernel = NARROW("pack_rows_8_bf16_f32");
/* These kernels pack row-major elements of 4, 6 and 8 bits to f16. The first index is half of the
 * number of bits of an element, and the second is the type of the scales. Combinations without a
 * name have no kernel. */
static const bsmm_cuda_function f16_kernels[][4] = {
    [2] = {[BSMM_SCALE_E8M0] = F16("pack_rows_4_f16_e8m0"),
           [BSMM_SCALE_E4M3] = F16("pack_rows_4_f16_e4m3")},
    [3] = {[BSMM_SCALE_E8M0] = F16("pack_rows_6_f16_e8m0")},
    [4] = {[BSMM_SCALE_NONE] = F16("pack_rows_8_f16"),
           [BSMM_SCALE_E8M0] = F16("pack_rows_8_f16_e8m0"),
           [BSMM_SCALE_F32] = F16("pack_rows_8_f16")},
};
/* fold_kernels[e][c] packs operands with elements of type e and e8m0 scales to 8-bit elements.
 * copy_kernels[c] copies 8-bit elements without changing them. c is 0 for row-major and 1 for
 * column-major operands. */
static const bsmm_cuda_function fold_kernels[][2] = {
#include "cuda/sm90a/pack_fp8.def"
};
static const bsmm_cuda_function copy_kernels[] = {TO_FP8("pack_rows_8_fp8"),
                                                  TO_FP8("pack_columns_8_fp8")};
static const bsmm_cuda_function scales_kernel = {.module = "sm80/pack_scales",
                                                 .name = "pack_scales"};

static bool is_wide(const bsmm_operand *o) {
    return bsmm_elem_is_wide(o->m.format.elem);
}

/* Returns the number of elements along K that one thread packs at once. */
static uint32_t item_codes(bsmm_pack_route route) {
    return bsmm_pack_is_bf16(route) ? 8 : 16;
}

/* Chooses a kernel that packs an operand to bf16. Some kernels for row-major operands are
 * specialized for one type of scales. The specialized kernels require that blocks of e8m0 scales
 * have a multiple of 32 elements (16 for e4m3 scales), and that elements are not in a fnuz
 * format. */
static const bsmm_cuda_function *bf16_kernel_of(const bsmm_operand *o, uint32_t half,
                                                bool columns) {
    const bsmm_format *f = &o->m.format;
    bool e8m0 = f->scale == BSMM_SCALE_E8M0, e4m3 = f->scale == BSMM_SCALE_E4M3;
    bool lone_nan = bsmm_elem_traits_of[f->elem].lone_nan;
    if (e4m3 && !columns && f->elem == BSMM_ELEM_E2M1) return &nvfp4_kernel;
    if (!e4m3 && !e8m0 && !columns && half == 4 && !lone_nan) return &fp8_kernel;
    bool made = e8m0 && (columns || (f->block_cols % 32 == 0 && !lone_nan));
    return &narrow_kernels[half][made][columns];
}

static const bsmm_cuda_function *kernel_of(const bsmm_operand *o, bsmm_pack_route route) {
    uint32_t half = bsmm_elem_row(o->m.format.elem)->bits / 2;
    bool columns = o->m.order == BSMM_ORDER_COL, e8m0 = o->m.format.scale == BSMM_SCALE_E8M0;
    if (bsmm_pack_parts(route) > 1) return &part_kernels[o->m.format.elem][columns];
    if (is_wide(o)) return &wide_kernels[o->m.format.elem][columns];
    if (route == BSMM_PACK_BF16) return bf16_kernel_of(o, half, columns);
    return e8m0 ? &fold_kernels[o->m.format.elem][columns] : &copy_kernels[columns];
}

/* Returns the alignment in bytes that an operand needs for the widest loads of a thread. It is the
 * largest power of two, up to 16, that divides the number of bytes of a thread's elements. These
 * are item_codes(route) elements of a row. If the operand is column-major with elements of up to 8
 * bits, they are 16 elements of a column instead. */
static uint64_t alignment_of(const bsmm_operand *o, bsmm_pack_route route) {
    uint32_t codes = o->m.order == BSMM_ORDER_COL && !is_wide(o) ? 16 : item_codes(route);
    uint64_t bytes = (uint64_t)bsmm_elem_row(o->m.format.elem)->bits * codes / 8;
    uint64_t alignment = bytes & (~bytes + 1);
    return alignment > 16 ? 16 : alignment;
}

static uint64_t line_bytes_of(const bsmm_operand *o) {
    return (uint64_t)o->m.ld * bsmm_elem_row(o->m.format.elem)->bits / 8;
}

/* Four scales of one byte can be loaded as one 32-bit word. The kernels that do so support only one
 * length of scale blocks along K for each type of scale: 32 elements for e8m0 and 16 for e4m3.
 * Returns this length, or 0 if scales of the format's type do not have one byte. */
static uint32_t word_block(const bsmm_format *f) {
    return f->scale == BSMM_SCALE_E8M0 ? 32 : f->scale == BSMM_SCALE_E4M3 ? 16 : 0;
}

static void set_words(const bsmm_operand *o, bsmm_pack_job *job) {
    uint32_t block = word_block(&o->m.format);
    if (block == 0 || o->m.format.block_cols != block || job->cols % (4 * block) != 0 ||
        !bsmm_axis_fours(job->scales, &job->row_map, &job->col_map, 1))
        return;
    job->fours = bsmm_words_of(&job->row_map, &job->col_map, &job->words) ? 2 : 1;
}

/* Returns the number of elements along K that share one scale. If one fp32 scale covers a whole
 * row, it also covers the elements with which packing pads K. */
static uint32_t block_cols_of(const bsmm_operand *o) {
    const bsmm_format *f = &o->m.format;
    if (f->scale != BSMM_SCALE_F32 || f->block_cols < o->m.cols) return f->block_cols;
    return (uint32_t)bsmm_round_up(o->m.cols, BSMM_PACK_GROUP);
}

static void set_source(const bsmm_operand *o, bsmm_pack_route route, bsmm_pack_job *job) {
    const bsmm_format *f = &o->m.format;
    uint64_t alignment = alignment_of(o, route);
    job->data = o->m.data;
    job->scales = o->m.scales;
    job->line_bytes = line_bytes_of(o);
    job->rows = (uint32_t)o->m.rows;
    job->cols = (uint32_t)o->m.cols;
    job->scale = f->scale;
    job->route = route;
    job->aligned = ((uintptr_t)o->m.data | job->line_bytes) % alignment == 0;
    job->row_map = bsmm_axis_map_of(&o->map, 0, f->block_rows);
    job->col_map = bsmm_axis_map_of(&o->map, 1, block_cols_of(o));
    set_words(o, job);
    if (is_wide(o)) {
        job->codec.high = 1; /* A value with exponent e is below 2^(e + 1). */
        return;
    }
    job->codec = bsmm_narrow_codec_of(f->elem);
    job->to = bsmm_elem_row(f->elem)->bits == 8 ? job->codec : bsmm_narrow_codec_of(BSMM_ELEM_E4M3);
    job->pair = bsmm_pair_codec_of(f->elem, route == BSMM_PACK_BF16);
    job->fit_low = -126 - job->codec.low;
    job->fit_high = 127 - job->codec.high;
    job->fold = folds[f->elem].fold;
    job->window = folds[f->elem].window;
}

static void set_result(const bsmm_pack_layout *at, bool with_scales, void *packed,
                       bsmm_pack_job *job) {
    uint8_t *to = packed;
    job->header = packed;
    job->group_scales = with_scales ? (float *)(void *)(to + at->group_scales) : NULL;
    job->group_pitch = at->group_pitch;
    job->elements = to + at->elements;
    job->element_pitch = at->element_pitch;
}

uint32_t bsmm_lanes_log2(int64_t items, uint32_t least) {
    uint32_t lanes = THREADS;
    while (lanes > least && items % lanes != 0)
        lanes /= 2;
    return log2_of(lanes);
}

static uint32_t scale_lanes_of(const bsmm_operand *o, bsmm_pack_route route) {
    uint32_t items = block_cols_of(o) / item_codes(route);
    return items % 4 == 0 ? 4 : items % 2 == 0 ? 2 : 1;
}

/* Returns the number of rows of the tile that one thread block packs from a column-major operand.
 */
static int64_t tile_rows(const bsmm_operand *o) {
    if (!is_wide(o)) return TILE;
    return o->m.format.elem == BSMM_ELEM_F32 ? TILE / 4 : TILE / 2;
}

static void set_grid(const bsmm_operand *o, bsmm_pack_route route, bsmm_pack_launch *launch) {
    int64_t padded = bsmm_round_up(o->m.cols, BSMM_PACK_GROUP), items = padded / item_codes(route);
    int64_t rows = tile_rows(o), columns = padded / TILE;
    bool many = !is_wide(o) && (route == BSMM_PACK_BF16 || o->m.format.scale == BSMM_SCALE_E8M0);
    int64_t row_items = many ? 8 : 4;
    launch->job.scale_lanes = scale_lanes_of(o, route);
    if (o->m.order == BSMM_ORDER_ROW) {
        launch->job.lanes_log2 = bsmm_lanes_log2(items, BSMM_PACK_GROUP / item_codes(route));
        rows = (THREADS >> launch->job.lanes_log2) * row_items;
        columns = items >> launch->job.lanes_log2;
    }
    launch->block = THREADS;
    launch->grid[0] = (uint32_t)bsmm_ceil_div(o->m.rows, rows);
    launch->grid[1] = (uint32_t)columns;
}

bsmm_pack_launch bsmm_pack_launch_of(const bsmm_operand *o, bsmm_pack_route route, bool with_scales,
                                     void *packed) {
    bsmm_pack_launch launch = {.function = kernel_of(o, route),
                               .at = bsmm_pack_layout_of(o->m.rows, o->m.cols, route),
                               .with_scales = with_scales};
    set_source(o, route, &launch.job);
    set_result(&launch.at, with_scales, packed, &launch.job);
    set_grid(o, route, &launch);
    return launch;
}

void bsmm_pack_bind(const bsmm_operand *o, void *packed, bsmm_pack_launch *launch) {
    launch->job.data = o->m.data;
    launch->job.scales = o->m.scales;
    set_result(&launch->at, launch->with_scales, packed, &launch->job);
}

bsmm_pack_plain bsmm_pack_plain_of(const bsmm_operand *o, void *packed) {
    const bsmm_pack_launch launch = bsmm_pack_launch_of(o, BSMM_PACK_BF16, false, packed);
    return (bsmm_pack_plain){
        .job = launch.job,
        .bits = bsmm_elem_row(o->m.format.elem)->bits,
        .by_rows = o->m.order == BSMM_ORDER_ROW,
        .columns = launch.grid[1],
        .parts = launch.grid[0] * launch.grid[1],
    };
}

void bsmm_pack_plain_bind(const bsmm_operand *o, void *packed, bsmm_pack_plain *plain) {
    bsmm_pack_layout at = bsmm_pack_layout_of(o->m.rows, o->m.cols, BSMM_PACK_BF16);
    plain->job.data = o->m.data;
    plain->job.scales = o->m.scales;
    set_result(&at, false, packed, &plain->job);
}

/* A scale may cover several groups of 128 elements. Returns how many groups it covers along one
 * dimension (rows or columns). `block` is the length of a scale block along this dimension, and
 * `extent` is the operand's extent along it. The groups past the operand's end do not count. */
static uint32_t groups_of(uint32_t block, int64_t extent) {
    if (block < extent) return block / BSMM_PACK_GROUP;
    return (uint32_t)bsmm_ceil_div(extent, BSMM_PACK_GROUP);
}

static void set_scales_shape(const bsmm_operand *o, bool by_row, bsmm_pack_scales_job *job) {
    const bsmm_format *f = &o->m.format;
    int64_t columns = bsmm_ceil_div(o->m.cols, BSMM_PACK_GROUP);
    int64_t rows = by_row ? o->m.rows : bsmm_ceil_div(o->m.rows, BSMM_PACK_GROUP);
    int64_t padded = by_row ? bsmm_round_up(rows, 4) : rows;
    job->rows = (uint32_t)padded;
    job->cols = job->known_cols = (uint32_t)columns;
    job->known_rows = (uint32_t)rows;
    job->row_pitch = by_row ? 1 : (uint64_t)columns;
    job->col_pitch = by_row ? (uint64_t)padded : 1;
    uint32_t block_rows = by_row ? f->block_rows : groups_of(f->block_rows, o->m.rows);
    job->row_map = bsmm_axis_map_of(&o->map, 0, block_rows);
    job->col_map = bsmm_axis_map_of(&o->map, 1, groups_of(f->block_cols, o->m.cols));
}

bsmm_pack_scales_launch bsmm_pack_scales_launch_of(const bsmm_operand *o, bool by_row, float *to) {
    bsmm_pack_scales_launch launch = {.function = &scales_kernel};
    launch.job = (bsmm_pack_scales_job){.scales = o->m.scales, .to = to};
    set_scales_shape(o, by_row, &launch.job);
    launch.block = THREADS;
    launch.grid[0] = (uint32_t)bsmm_ceil_div(launch.job.rows, THREADS);
    launch.grid[1] = launch.job.cols;
    return launch;
}

/* ---- packing to f16 ---- */

/* Returns the kernel that packs an operand to f16 in one pass, or NULL if there is none. The
 * kernels require that blocks of e8m0 scales have a multiple of 32 elements, and that elements are
 * not in a fnuz format. */
static const bsmm_cuda_function *f16_kernel_of(const bsmm_operand *o) {
    const bsmm_format *f = &o->m.format;
    if (is_wide(o) || o->m.order != BSMM_ORDER_ROW || bsmm_elem_traits_of[f->elem].lone_nan)
        return NULL;
    if (f->scale == BSMM_SCALE_E8M0 && f->block_cols % 32 != 0) return NULL;
    const bsmm_cuda_function *kernel = &f16_kernels[bsmm_elem_row(f->elem)->bits / 2][f->scale];
    return kernel->name ? kernel : NULL;
}

bool bsmm_pack_has_f16(const bsmm_operand *o) {
    return f16_kernel_of(o) != NULL;
}

bool bsmm_pack_f16_clears(const bsmm_operand *o) {
    return f16_kernel_of(o) == &f16_kernels[4][BSMM_SCALE_F32];
}

bsmm_pack_launch bsmm_pack_f16_launch_of(const bsmm_operand *o, bool with_scales, uint32_t shift) {
    bsmm_pack_launch launch = bsmm_pack_launch_of(o, BSMM_PACK_BF16, with_scales, NULL);
    launch.function = f16_kernel_of(o);
    launch.job.pair = bsmm_pair_codec_of(o->m.format.elem, false);
    launch.job.fold = (int32_t)shift;
    /* The fast path of packing to f16 requires that block scales times 2^shift are normal f16
     * numbers. */
    launch.job.fit_low = -14 - (int32_t)shift;
    launch.job.fit_high = 15 - (int32_t)shift;
    return launch;
}

bsmm_pack_half_launch bsmm_pack_half_launch_of(const bsmm_operand *o, uint32_t shift) {
    enum { QUADS_OF_THREAD = 8 };
    const bsmm_pack_layout at = bsmm_pack_layout_of(o->m.rows, o->m.cols, BSMM_PACK_BF16);
    const uint64_t quads = (uint64_t)o->m.rows * at.element_pitch / 16;
    const int64_t blocks = bsmm_ceil_div((int64_t)quads, (int64_t)THREADS * QUADS_OF_THREAD);
    return (bsmm_pack_half_launch){
        .grid = (uint32_t)bsmm_min_i64(blocks, INT32_MAX),
        .job = {.quads = quads, .shift = shift},
    };
}
