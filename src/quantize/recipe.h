/* Recipes: rows of one table that share one pipeline. The steps of the pipeline are in
 * src/recipe. */
#ifndef BSMM_QUANTIZE_RECIPE_H
#define BSMM_QUANTIZE_RECIPE_H

#include "core/kernel.h"
#include "format/scale_line.h"
#include "quantize/strip.h"
#include "recipe/step.h"

/* The scales of a strip (up to BSMM_STRIP_BLOCKS adjacent blocks). The arrays are aligned, because
 * a register that was stored across two cache lines is reloaded only after all stores before it. */
typedef struct bsmm_strip_scales {
    /* Largest magnitude of each block, as fp32 bits. */
    _Alignas(64) uint32_t amax[BSMM_STRIP_BLOCKS];
    uint32_t codes[BSMM_STRIP_BLOCKS];
    float factors[BSMM_STRIP_BLOCKS]; /* factor of each block's values */
} bsmm_strip_scales;

/* Computes the scale codes and factors of the first n blocks from their largest magnitudes. */
typedef void bsmm_strip_rule(bsmm_strip_scales *scales, int64_t n, const bsmm_tensor_step *tensor);

/* Returns the strip function of a block rule, for the vectors that the processor has, or NULL for
 * BSMM_BLOCK_NONE. */
bsmm_strip_rule *bsmm_strip_rule_of(bsmm_block_rule rule);

enum { BSMM_E4M3_CODES = 128 }; /* number of e4m3 codes without a sign */

/* The fast form of a rule for e4m3 scales under one tensor scale. It is valid for blocks with a
 * moderate amax ("tame" blocks), and replaces divisions by a table of factors. */
typedef struct bsmm_tame_rule {
    bsmm_strip_rule *codes; /* computes the codes alone; NULL: there is no fast form */
    void (*look_up)(const float *table, const uint32_t *codes, int64_t n, float *factors);
    float factors[BSMM_E4M3_CODES];
} bsmm_tame_rule;
void bsmm_tame_rule_make(bsmm_block_rule rule, const bsmm_tensor_step *tensor,
                         bsmm_tame_rule *made);

/* Computes what the rule's strip function would compute. Returns false if the blocks are not tame.
 * `rule` may be NULL. */
bool bsmm_tame_rule_apply(const bsmm_tame_rule *rule, bsmm_strip_scales *scales, int64_t n,
                          const bsmm_tensor_step *tensor);

/* A test of fp32 bits: all n values must lie within [least, most] or equal `also`. */
typedef struct bsmm_bits_range {
    uint32_t least, most, also;
} bsmm_bits_range;
bool bsmm_strip_within(const void *values, int64_t n, bsmm_bits_range range);

#define BSMM_ELEM_BIT(elem) (1u << (elem))
#define BSMM_ELEM_ANY       UINT32_MAX
#define BSMM_KIND_BIT(kind) (1u << (kind))

struct bsmm_recipe {
    bsmm_recipe_info info;
    uint32_t scale; /* scale format that it writes, a bsmm_scale */
    uint32_t elems; /* elements that it writes, as BSMM_ELEM_BIT */
    uint32_t kinds; /* forms of the second level that it stores, as BSMM_KIND_BIT */
    bsmm_recipe_steps steps;
};

/* Lists the recipes for a format that store the second level in the form `kind`, for messages, such
 * as " te compressed-tensors". */
void bsmm_recipe_list_kind(bsmm_format format, uint32_t kind, char *text, size_t size);

/* ---- the pipeline (store.c) ---- */

/* A recipe with all constants for one destination. */
typedef struct bsmm_recipe_run {
    const bsmm_recipe *recipe;
    const bsmm_operand *dst;
    bsmm_tensor_step tensor;
    bsmm_coder coder;
    bsmm_scale_line line;
    const bsmm_strip_ops *ops;
    bsmm_strip_rule *rule;
    const bsmm_tame_rule *tame; /* fast form of the recipe's rule; NULL: there is none */
} bsmm_recipe_run;

/* Prepares a recipe for a destination, without the second-level scale. source_elem is the format of
 * the values. */
bsmm_recipe_run bsmm_recipe_start(const bsmm_recipe *recipe, const bsmm_operand *dst,
                                  uint32_t source_elem, uint32_t flags);

/* Quantizes and stores rows x cols values at (row, col). The range must start at a block and
 * consist of whole blocks. */
void bsmm_recipe_store_part(const bsmm_recipe_run *run, int64_t row, int64_t rows, int64_t col,
                            int64_t cols, const bsmm_plain *values);

/* ---- scales in memory (scales.c) ---- */

/* Writes 0 to the padding that belongs to block rows [r0, r1), including the padded rows after the
 * last. Gaps that a caller's scale_ld leaves are not padding and are not written. */
void bsmm_scales_pad(const bsmm_operand *dst, int64_t r0, int64_t r1);

/* Copies all scale codes from src's layout to dst's and writes the padding. */
void bsmm_scales_move(const bsmm_operand *src, const bsmm_operand *dst);

/* ---- functions that several calls share (check.c, amax.c, compare.c) ---- */

/* Passes a job to one of a backend's conversions. UNSUPPORTED if the backend does not have it. */
bsmm_status bsmm_recode_on(const bsmm_place *place, bsmm_status (*conversion)(const bsmm_recode *),
                           bsmm_recode *job, const char *what);

/* Refuses a place whose memory is not the host's, as UNSUPPORTED; `what` names the work. */
bsmm_status bsmm_check_host(const bsmm_place *place, const char *what);

/* Checks that no buffer that dst writes overlaps one that src reads; otherwise INVALID. */
bsmm_status bsmm_check_overlap(const bsmm_operand *src, const bsmm_operand *dst);

/* Checks that src and dst have the same rows and cols. */
bsmm_status bsmm_check_shape(const bsmm_operand *src, const bsmm_operand *dst);

/* Sets the rows to 0 if there are no columns. There may be 2^57 empty rows, and walking through
 * them would take forever. */
void bsmm_drop_empty_rows(bsmm_operand *operand);

/* Checks that the operand is unscaled f32, f16 or bf16, without a second-level scale. */
bsmm_status bsmm_check_plain(const bsmm_operand *operand, const char *what);

/* Returns the number of rows that one thread takes at a time: about 2^16 elements, in whole blocks
 * of both matrices and whole byte groups. */
int64_t bsmm_rows_per_task(const bsmm_operand *a, const bsmm_operand *b);

/* Computes max |x| as fp32 bits. A result above 0x7f800000 means that there is a NaN. */
bsmm_status bsmm_amax_bits(const bsmm_operand *src, const bsmm_place *place, uint32_t *bits);

/* Computes the report of src against quantized, whose memory was checked. `lines` has one entry for
 * each row of src and keeps the sums of that row. The entries are added in order at the end, so
 * that the report does not depend on the number of threads. */
typedef struct bsmm_report_line {
    double signal, noise, max_error;
    int64_t clipped, underflowed;
} bsmm_report_line;
bsmm_status bsmm_report_make(const bsmm_operand *src, const bsmm_operand *quantized,
                             const bsmm_place *place, bsmm_report_line *lines,
                             bsmm_quantize_report *report);

#endif
