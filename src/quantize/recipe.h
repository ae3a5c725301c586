/* Recipes: rows of one table that share one pipeline.
 *
 *     tensor amax -> tensor scale -> block amax -> block scale -> element factor -> rounding
 *
 * Every step is fp32 arithmetic in its project's own order (the build turns contraction into fused
 * multiply-adds off), because the order decides bytes. docs/RECIPES.md tells the differences. */
#ifndef BSMM_QUANTIZE_RECIPE_H
#define BSMM_QUANTIZE_RECIPE_H

#include "core/kernel.h"
#include "format/scale_line.h"
#include "quantize/strip.h"

/* One tensor's numbers, as the steps see them. */
typedef struct bsmm_tensor_step {
    float max;              /* of the element format */
    int emax;               /* floor(log2(max)) */
    uint32_t mantissa_bits; /* of the element format */
    uint32_t source_elem;   /* format of the values: f32, f16 or bf16 */
    float multiplier;       /* the second level in both forms; 1 without one */
    float divisor;
    bool pow2; /* BSMM_QUANTIZE_POW2 */
} bsmm_tensor_step;

/* A strip's blocks. Aligned, for a register that is stored across two cache lines is read back only
 * after every store before it. */
typedef struct bsmm_strip_scales {
    _Alignas(64) uint32_t amax[BSMM_STRIP_BLOCKS]; /* as fp32 bits */
    uint32_t codes[BSMM_STRIP_BLOCKS];
    float factors[BSMM_STRIP_BLOCKS]; /* what the values meet */
} bsmm_strip_scales;

/* Codes and factors of the first n blocks from their amax. */
typedef void bsmm_block_rule(bsmm_strip_scales *scales, int64_t n, const bsmm_tensor_step *tensor);
typedef void bsmm_tensor_rule(float amax, bsmm_tensor_step *tensor);

/* One block's code and factor; rules are written so, and become loops without branches. */
typedef struct bsmm_block_step {
    uint32_t code;
    float factor;
} bsmm_block_step;
typedef bsmm_block_step bsmm_one_block(float amax, const bsmm_tensor_step *tensor);

static inline __attribute__((always_inline)) void bsmm_each_block(bsmm_one_block *rule,
                                                                  bsmm_strip_scales *scales,
                                                                  int64_t n,
                                                                  const bsmm_tensor_step *tensor) {
    const bsmm_tensor_step t = *tensor; /* which the stores below cannot change */
    for (int64_t i = 0; i < n; i++) {
        bsmm_block_step step = rule(bsmm_bits_float(scales->amax[i]), &t);
        scales->codes[i] = step.code;
        scales->factors[i] = step.factor;
    }
}

#define BSMM_ELEM_BIT(elem) (1u << (elem))
#define BSMM_ELEM_ANY       UINT32_MAX
#define BSMM_KIND_BIT(kind) (1u << (kind))

struct bsmm_recipe {
    bsmm_recipe_info info;
    uint32_t scale;           /* bsmm_scale that it writes */
    uint32_t elems;           /* BSMM_ELEM_BIT of the elements that it takes */
    uint32_t kinds;           /* BSMM_KIND_BIT of the forms of the second level that it stores */
    bsmm_tensor_rule *tensor; /* NULL: one level */
    bsmm_block_rule *block;   /* NULL: no scales */
    bsmm_element_step step;
    bool skips_nan; /* the block's amax ignores NaN */
    bsmm_ties ties;
    bsmm_zero_sign zero_sign;
};

/* " te compressed-tensors": the recipes for a format that store the second level in a form. */
void bsmm_recipe_list_kind(bsmm_format format, uint32_t kind, char *text, size_t size);

/* ---- rules for e8m0 scales (rules_e8m0.c) ---- */
bsmm_block_rule bsmm_e8m0_floor, bsmm_e8m0_ceil, bsmm_e8m0_even, bsmm_e8m0_rceil;
bsmm_block_rule bsmm_e8m0_torchao, bsmm_e8m0_te, bsmm_e8m0_modelopt, bsmm_e8m0_ggml;
bsmm_block_rule bsmm_e8m0_quark, bsmm_e8m0_compressed_tensors, bsmm_e8m0_deepgemm;

/* ---- rules for e4m3 scales (rules_e4m3.c) ---- */
bsmm_tensor_rule bsmm_tensor_torchao, bsmm_tensor_te, bsmm_tensor_modelopt;
bsmm_tensor_rule bsmm_tensor_compressed_tensors;
bsmm_block_rule bsmm_e4m3_torchao, bsmm_e4m3_te, bsmm_e4m3_modelopt;
bsmm_block_rule bsmm_e4m3_compressed_tensors, bsmm_e4m3_ggml;

/* ---- rules for f32 scales (rules_f32.c) ---- */
bsmm_block_rule bsmm_f32_deepseek, bsmm_f32_deepgemm, bsmm_f32_te;

/* DeepGEMM's ceil_to_ue8m0: the power of two >= scale as fp32, from 2^-126 to 2^127. */
float bsmm_ceil_to_ue8m0(float scale);

/* The least power of two >= a positive finite value, found in the exponent field: log2 in fp32
 * rounds to an integer just beside powers of two. Values of 2^-127 and less have field 0. Inf and
 * NaN give 255 and more. */
static inline uint32_t bsmm_ceil_exponent(float value) {
    uint32_t bits = bsmm_float_bits(value), exponent = bits >> 23, mantissa = bits & 0x7fffff;
    if (exponent == 0) return mantissa > 0x400000;
    return exponent + (mantissa != 0);
}

/* log2 in fp32, correctly rounded, which is what torch's and glibc's give where it matters here:
 * beside a power of two it is an integer, so that floor and ceil of it are off by one. */
float bsmm_log2_fp32(float value);

/* The value rounded to an unscaled format, and to fp32 again. */
float bsmm_round_to(uint32_t elem, float value);

/* ---- the pipeline (store.c) ---- */

/* A recipe at work on one destination. */
typedef struct bsmm_recipe_run {
    const bsmm_recipe *recipe;
    const bsmm_operand *dst;
    bsmm_tensor_step tensor;
    bsmm_coder coder;
    bsmm_scale_line line;
    const bsmm_strip_ops *ops;
} bsmm_recipe_run;

/* Without the second level, for values that came from format source_elem. */
bsmm_recipe_run bsmm_recipe_start(const bsmm_recipe *recipe, const bsmm_operand *dst,
                                  uint32_t source_elem, uint32_t flags);

/* Stores rows x cols values at (row, col), whole blocks from there. */
void bsmm_recipe_store_part(const bsmm_recipe_run *run, int64_t row, int64_t rows, int64_t col,
                            int64_t cols, const bsmm_plain *values);

/* ---- scales in memory (scales.c) ---- */

/* Writes 0 to the padding that belongs to block rows [r0, r1), the rows below the last included.
 * What a caller's scale_ld skips is not padding. */
void bsmm_scales_pad(const bsmm_operand *dst, int64_t r0, int64_t r1);

/* Copies every scale code from src's layout to dst's, and pads. */
void bsmm_scales_move(const bsmm_operand *src, const bsmm_operand *dst);

/* ---- what the calls share (check.c, amax.c, compare.c) ---- */

/* Hands a job to one of a backend's conversions. UNSUPPORTED where the backend has none. */
bsmm_status bsmm_recode_on(const bsmm_place *place, bsmm_status (*conversion)(const bsmm_recode *),
                           bsmm_recode *job, const char *what);

/* INVALID when a buffer that dst writes overlaps one that src reads. */
bsmm_status bsmm_check_overlap(const bsmm_operand *src, const bsmm_operand *dst);

/* src and dst have the same rows and cols. */
bsmm_status bsmm_check_shape(const bsmm_operand *src, const bsmm_operand *dst);

/* The operand is an unscaled f32, f16 or bf16 without a second level. */
bsmm_status bsmm_check_plain(const bsmm_operand *operand, const char *what);

/* Rows that one thread takes at a time: whole blocks of both, whole groups of packed rows, and
 * about 2^16 elements. */
int64_t bsmm_rows_per_task(const bsmm_operand *a, const bsmm_operand *b);

/* max |x| as fp32 bits (above 0x7f800000: there is a NaN). */
uint32_t bsmm_amax_bits(const bsmm_operand *src, int threads);

/* The report of src against quantized, whose memory has been checked. `lines` has src's count of
 * rows; a row's sums lie there until the last are added up in order, so that the report does not
 * depend on the number of threads. */
typedef struct bsmm_report_line {
    double signal, noise, max_error;
    int64_t clipped, underflowed;
} bsmm_report_line;
bsmm_quantize_report bsmm_report_make(const bsmm_operand *src, const bsmm_operand *quantized,
                                      int threads, bsmm_report_line *lines);

#endif
