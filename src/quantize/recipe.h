/* Recipes: rows of one table that share one pipeline, made of the steps in src/recipe. */
#ifndef BSMM_QUANTIZE_RECIPE_H
#define BSMM_QUANTIZE_RECIPE_H

#include "core/kernel.h"
#include "format/scale_line.h"
#include "quantize/strip.h"
#include "recipe/step.h"

/* A strip's blocks. Aligned, for a register that is stored across two cache lines is read back only
 * after every store before it. */
typedef struct bsmm_strip_scales {
    _Alignas(64) uint32_t amax[BSMM_STRIP_BLOCKS]; /* as fp32 bits */
    uint32_t codes[BSMM_STRIP_BLOCKS];
    float factors[BSMM_STRIP_BLOCKS]; /* what the values meet */
} bsmm_strip_scales;

/* Codes and factors of the first n blocks from their amax. */
typedef void bsmm_strip_rule(bsmm_strip_scales *scales, int64_t n, const bsmm_tensor_step *tensor);

/* The strip's form of a rule, for the vectors that the processor has; NULL for BSMM_BLOCK_NONE. */
bsmm_strip_rule *bsmm_strip_rule_of(bsmm_block_rule rule);

enum { BSMM_E4M3_CODES = 128 }; /* without a sign */

/* A rule for e4m3 scales under one tensor's scale, for blocks whose amax is moderate. */
typedef struct bsmm_tame_rule {
    bsmm_strip_rule *codes; /* codes alone; NULL: there is none */
    void (*look_up)(const float *table, const uint32_t *codes, int64_t n, float *factors);
    float factors[BSMM_E4M3_CODES];
} bsmm_tame_rule;
void bsmm_tame_rule_make(bsmm_block_rule rule, const bsmm_tensor_step *tensor,
                         bsmm_tame_rule *made);

/* What the rule's strip form gives, or false: not for these. `rule` may be NULL. */
bool bsmm_tame_rule_apply(const bsmm_tame_rule *rule, bsmm_strip_scales *scales, int64_t n,
                          const bsmm_tensor_step *tensor);

/* The bits of all n fp32 values are within [least, most] or are `also`. */
typedef struct bsmm_bits_range {
    uint32_t least, most, also;
} bsmm_bits_range;
bool bsmm_strip_within(const void *values, int64_t n, bsmm_bits_range range);

#define BSMM_ELEM_BIT(elem) (1u << (elem))
#define BSMM_ELEM_ANY       UINT32_MAX
#define BSMM_KIND_BIT(kind) (1u << (kind))

struct bsmm_recipe {
    bsmm_recipe_info info;
    uint32_t scale; /* bsmm_scale that it writes */
    uint32_t elems; /* BSMM_ELEM_BIT of the elements that it takes */
    uint32_t kinds; /* BSMM_KIND_BIT of the forms of the second level that it stores */
    bsmm_recipe_steps steps;
};

/* " te compressed-tensors": the recipes for a format that store the second level in a form. */
void bsmm_recipe_list_kind(bsmm_format format, uint32_t kind, char *text, size_t size);

/* ---- the pipeline (store.c) ---- */

/* A recipe at work on one destination. */
typedef struct bsmm_recipe_run {
    const bsmm_recipe *recipe;
    const bsmm_operand *dst;
    bsmm_tensor_step tensor;
    bsmm_coder coder;
    bsmm_scale_line line;
    const bsmm_strip_ops *ops;
    bsmm_strip_rule *rule;
    const bsmm_tame_rule *tame; /* NULL: none */
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

/* Rows without columns, of which there may be 2^57, are nothing to walk through. */
void bsmm_drop_empty_rows(bsmm_operand *operand);

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
