/* Chooses the order in which the model of a kernel adds products on the CPU. Kernels that add in
 * the same order form a family. The rules are those of the host code of the kernels
 * (docs/NUMERICS.md, "Order of sums"). */
#include "level_sum.h"

uint32_t cli_level_bits_of(bsmm_format format) {
    bsmm_elem_info info = BSMM_INIT(bsmm_elem_info);
    for (uint32_t i = 0; !bsmm_elem_at(i, &info); i++)
        if (info.elem == format.elem) return info.bits;
    return 0;
}

bool cli_level_has_floats(bsmm_format format) {
    return format.scale == BSMM_SCALE_F32;
}

/* Returns true if an operand has fp32 scales that change along K. */
static bool has_scales_along_k(bsmm_format format, int64_t k) {
    return cli_level_has_floats(format) && format.block_cols < k;
}

static int64_t gcd(int64_t x, int64_t y) {
    return y ? gcd(y, x % y) : x;
}

/* Divides K into the fewest segments of at most `longest` elements whose lengths are multiples of
 * 128, and returns the length of all segments but the last. */
static int64_t even_segment(int64_t longest, int64_t k) {
    int64_t pieces = (k + 127) / 128, most = longest / 128, count = (pieces + most - 1) / most;
    return count > 1 ? (pieces + count - 1) / count * 128 : k;
}

/* Returns the length of all parts but the last if K is divided into `parts` parts of nearly equal
 * length. Lengths are multiples of 128 elements. */
static int64_t part_of(int64_t parts, int64_t k) {
    const int64_t steps = (k + 127) / 128;
    return (steps + parts - 1) / parts * 128;
}

/* Returns the length along K of a segment, i.e. of a range of K that the kernel sums by itself. If
 * the kernel multiplies such sums by scales, a segment ends where a scale changes. Otherwise a
 * segment is one of the chunks by which the kernel keeps rounding errors small. */
static int64_t segment_of(const bench_family_level *family, const bsmm_format formats[2],
                          int64_t k) {
    if (family->chunk && !cli_level_has_floats(formats[0]) && !cli_level_has_floats(formats[1]))
        return even_segment(cli_level_bits_of(formats[1]) <= 8 ? family->chunk : family->wide_chunk,
                            k);
    int64_t segment = family->segment;
    for (int i = 0; i < 2; i++) {
        const bool changes = has_scales_along_k(formats[i], k);
        if (changes || (family->ends_at_scales && formats[i].scale != BSMM_SCALE_NONE))
            segment = gcd(segment, formats[i].block_cols);
        if (family->scaled_segment && (changes || (i && cli_level_has_floats(formats[i]))))
            segment = gcd(segment, family->scaled_segment);
    }
    return segment ? segment : k;
}

/* Some matrix instructions add products from several runs of adjacent elements along K. Returns the
 * length of a run in elements, or 0 if all products of an instruction are adjacent. */
static int64_t run_of(const bench_family_level *family, const bsmm_format formats[2]) {
    if (!family->spread || family->run) return family->run;
    return cli_level_bits_of(formats[1]) < 8 ? 32 : 16;
}

static int64_t unit_of(const bench_family_level *family, const bsmm_format formats[2]) {
    bool e8m0 = formats[0].scale == BSMM_SCALE_E8M0 && formats[1].scale == BSMM_SCALE_E8M0;
    return family->unit ? family->unit : e8m0 ? 32 : 16;
}

/* Returns the number of bf16 numbers whose sum is an element of this type. */
static int count_bf16(uint32_t elem) {
    return elem == BSMM_ELEM_F32 ? 3 : elem == BSMM_ELEM_F16 ? 2 : 1;
}

/* Returns true if a kernel can multiply an operand of this format in f16: an unscaled f16 operand
 * as it is, or elements of at most 8 bits that it converts to f16. f16 may not have the range for
 * elements times e8m0 scales. `e8m0` is true if the kernel nevertheless multiplies such an operand
 * in f16. */
static bool may_be_f16(bsmm_format format, bool e8m0) {
    if (format.elem == BSMM_ELEM_F16) return format.scale == BSMM_SCALE_NONE;
    return cli_level_bits_of(format) <= 8 && (format.scale != BSMM_SCALE_E8M0 || e8m0);
}

static bool has_row_factors(bsmm_format format, int64_t k) {
    return format.scale == BSMM_SCALE_NONE ||
           (cli_level_has_floats(format) && format.block_cols >= k);
}

static void choose_k_blocks(const bsmm_format formats[2], cli_level_order *o) {
    const bench_family_level *family = o->family;
    const bool any = formats[0].elem == BSMM_ELEM_F16 || formats[1].elem == BSMM_ELEM_F16;
    const bool as_f16 = family->takes_f16 && any && may_be_f16(formats[0], false) &&
                        may_be_f16(formats[1], family->shifts_e8m0);
    for (int i = 0; i < 2; i++)
        o->bf16_parts[i] =
            as_f16 || formats[i].scale != BSMM_SCALE_NONE ? 1 : count_bf16(formats[i].elem);
    if (!cli_level_has_floats(formats[0]) && !cli_level_has_floats(formats[1])) return;
    const bool at_end = cli_level_has_floats(formats[1]) && has_row_factors(formats[0], o->k) &&
                        has_row_factors(formats[1], o->k);
    if (family->group)
        o->promoted = family->group / CLI_LEVEL_K_BLOCK * o->bf16_parts[0] * o->bf16_parts[1];
    else
        o->promoted = at_end ? 0 : 1;
}

/* Returns true if one bf16 number holds each element, and fp32 scales, if there are any, change
 * only between steps of the generic GEMM. */
static bool is_one_bf16(bsmm_format format, int64_t k) {
    if (format.elem == BSMM_ELEM_BF16) {
        if (format.scale == BSMM_SCALE_E4M3) return false;
    } else if (cli_level_bits_of(format) > 8) {
        return false;
    }
    return !cli_level_has_floats(format) || format.block_cols % CLI_LEVEL_STEP == 0 ||
           format.block_cols >= k;
}

static void choose_steps(const bsmm_format formats[2], cli_level_order *o) {
    const bool scaled = cli_level_has_floats(formats[0]) || cli_level_has_floats(formats[1]);
    const bool vanish =
        scaled && formats[0].elem == BSMM_ELEM_BF16 && formats[1].elem == BSMM_ELEM_BF16;
    if (is_one_bf16(formats[0], o->k) && is_one_bf16(formats[1], o->k) && !vanish) {
        if (scaled) o->segment = CLI_LEVEL_STEP;
        return;
    }
    o->by_elements = scaled;
    for (int i = 0; i < 2; i++)
        o->bf16_parts[i] =
            is_one_bf16(formats[i], o->k) && !cli_level_has_floats(formats[i]) ? 1 : 3;
    if (o->bf16_parts[0] == 1 && o->bf16_parts[1] == 1) o->bf16_parts[0] = 3;
}

static void choose_columns(const bsmm_format formats[2], cli_level_order *o) {
    o->bf16_parts[0] = count_bf16(formats[0].elem);
}

/* Fills o->places, the order in which the kernel's instructions take the elements of a range of K.
 * The range consists of o->runs runs, each of o->run adjacent elements. An instruction multiplies
 * o->unit elements: the next unit / runs elements of each run. places[i] is the position in the
 * range of the element that is taken as number i. */
static void set_places(cli_level_order *o) {
    const int64_t each = o->unit / o->runs;
    for (int64_t i = 0; o->run && i < o->runs * o->run; i++)
        o->places[i] =
            (uint8_t)(i % o->unit / each * o->run + i / o->unit * each + i % o->unit % each);
}

cli_level_order cli_level_order_of(const bench_family_level *family, const bsmm_format formats[2],
                                   int64_t parts, int64_t k) {
    static void (*const choose[])(const bsmm_format formats[2], cli_level_order *o) = {
        [BENCH_IN_K_BLOCKS] = choose_k_blocks,
        [BENCH_IN_STEPS] = choose_steps,
        [BENCH_IN_COLUMNS] = choose_columns,
    };
    cli_level_order o = {
        .family = family,
        .k = k,
        .parts = family->k_parts ? parts : 1,
        .part = family->k_parts ? part_of(parts, k) : k,
        .segment = segment_of(family, formats, k),
        .block = family->block ? family->block : k,
        .unit = unit_of(family, formats),
        .run = run_of(family, formats),
        .runs = family->runs ? family->runs : 4,
        .bf16_parts = {1, 1},
        .splits_f16 = family->splits_f16 && formats[0].elem == BSMM_ELEM_F16,
    };
    o.scales_last = family->row_scales_last && !has_scales_along_k(formats[0], k) &&
                    !has_scales_along_k(formats[1], k);
    set_places(&o);
    if (o.splits_f16) o.unit *= family->splits_f16;
    if (choose[family->way]) choose[family->way](formats, &o);
    return o;
}
