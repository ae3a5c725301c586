/* Declares recipes, i.e. named rules that choose scales and round values. Each recipe is an entry
 * of a table. This header declares the pipeline that runs any recipe on the CPU. src/recipe has the
 * single steps of the pipeline, which GPU kernels share. */
#ifndef BSMM_QUANTIZE_RECIPE_H
#define BSMM_QUANTIZE_RECIPE_H

#include "core/kernel.h"
#include "format/scale_line.h"
#include "quantize/strip.h"
#include "recipe/step.h"

/* `bsmm_strip_scales` holds the scales of a strip, i.e. of up to BSMM_STRIP_BLOCKS adjacent blocks.
 * The arrays are aligned to cache lines, so that no vector store crosses a cache line. A load could
 * not get its data from a store that does (store forwarding). It would wait until all earlier
 * stores are done. */
typedef struct bsmm_strip_scales {
    /* `amax` is the largest magnitude of each block, as fp32 bits. */
    _Alignas(64) uint32_t amax[BSMM_STRIP_BLOCKS];
    uint32_t codes[BSMM_STRIP_BLOCKS];
    /* `factors` has the factor by which the values of each block are multiplied or divided. */
    float factors[BSMM_STRIP_BLOCKS];
} bsmm_strip_scales;

/* Computes the scale codes and factors of n adjacent blocks (a strip) from the largest magnitudes
 * of the blocks. The values of a block are multiplied or divided by its factor before they are
 * encoded. */
typedef void bsmm_strip_rule(bsmm_strip_scales *scales, int64_t n, const bsmm_tensor_step *tensor);

/* Returns the function that computes the scales of adjacent blocks (a strip) by a block rule,
 * compiled for the best vectors of the processor. Returns NULL for BSMM_BLOCK_NONE. */
bsmm_strip_rule *bsmm_strip_rule_of(bsmm_block_rule rule);

enum { BSMM_E4M3_CODES = 128 }; /* BSMM_E4M3_CODES is the number of e4m3 codes without a sign. */

/* `bsmm_tame_rule` is the fast path of a rule for e4m3 scales, prepared for one tensor scale. It
 * looks up factors in a table instead of dividing. It is valid only for "tame" blocks, i.e. blocks
 * whose largest magnitude (amax) is 0 or between 2^-60 and 2^60. */
typedef struct bsmm_tame_rule {
    /* `codes` computes the codes of blocks' scales but not the factors. It is NULL if the rule has
     * no fast path. */
    bsmm_strip_rule *codes;
    void (*look_up)(const float *table, const uint32_t *codes, int64_t n, float *factors);
    float factors[BSMM_E4M3_CODES];
} bsmm_tame_rule;
void bsmm_tame_rule_make(bsmm_block_rule rule, const bsmm_tensor_step *tensor,
                         bsmm_tame_rule *made);

/* Computes the scales of n blocks by the fast path of a rule. They are the same as those of the
 * rule's bsmm_strip_rule, i.e. of the slow path. Returns false if the caller must use the slow
 * path: if `rule` is NULL, or if the amax (largest magnitude) of a block is too large or too small.
 * The contents of *scales are then undefined. */
bool bsmm_tame_rule_apply(const bsmm_tame_rule *rule, bsmm_strip_scales *scales, int64_t n,
                          const bsmm_tensor_step *tensor);

/* `bsmm_bits_range` describes a test of fp32 bits: each of n values must lie within [least, most]
 * or equal `also`. */
typedef struct bsmm_bits_range {
    uint32_t least, most, also;
} bsmm_bits_range;
bool bsmm_strip_within(const void *values, int64_t n, bsmm_bits_range range);

#define BSMM_ELEM_BIT(elem) (1u << (elem))
#define BSMM_ELEM_ANY       UINT32_MAX
#define BSMM_KIND_BIT(kind) (1u << (kind))

struct bsmm_recipe {
    bsmm_recipe_info info;
    uint32_t scale; /* `scale` is the scale format that the recipe writes, a bsmm_scale. */
    /* `elems` tells which element formats the recipe writes. It is the sum of BSMM_ELEM_BIT of
     * these formats. */
    uint32_t elems;
    /* `kinds` is a sum of BSMM_KIND_BIT: the forms (multiplier, divisor) in which the recipe can
     * write the second-level scale, i.e. the scale of the whole tensor. */
    uint32_t kinds;
    bsmm_recipe_steps steps;
};

/* The second-level scale of a tensor is stored either as a multiplier or as a divisor (`kind`).
 * Lists in `text` the names of the recipes that can write `format` with a second-level scale of
 * this kind. Each name follows a space, such as " te compressed-tensors". Error messages use the
 * list. */
void bsmm_recipe_list_kind(bsmm_format format, uint32_t kind, char *text, size_t size);

/* The functions from here on are in store.c. They quantize blocks. */

/* This struct holds a recipe and all constants that it needs to quantize into one destination
 * matrix. */
typedef struct bsmm_recipe_run {
    const bsmm_recipe *recipe;
    const bsmm_operand *dst;
    bsmm_tensor_step tensor;
    bsmm_coder coder;
    bsmm_scale_line line;
    const bsmm_strip_ops *ops;
    bsmm_strip_rule *rule;
    /* `tame` is the fast path of the recipe's rule, for blocks with a moderate largest magnitude.
     * NULL means that there is none. */
    const bsmm_tame_rule *tame;
} bsmm_recipe_run;

/* Prepares a recipe for a destination. The tensor's scale (second-level scale) is 1; a caller that
 * needs another scale sets it in the result. source_elem is the format of the values. */
bsmm_recipe_run bsmm_recipe_start(const bsmm_recipe *recipe, const bsmm_operand *dst,
                                  uint32_t source_elem, uint32_t flags);

/* Quantizes rows x cols values and stores them in a rectangle of the destination that begins at
 * element (row, col). The rectangle must consist of whole scale blocks. */
void bsmm_recipe_store_part(const bsmm_recipe_run *run, int64_t row, int64_t rows, int64_t col,
                            int64_t cols, const bsmm_plain *values);

/* The functions from here on are in scales.c. They write scales to memory. */

/* Writes 0 to the padding of the scale layout in block rows [r0, r1). If block row r1 - 1 is the
 * last one, the function also writes the rows of padding after it. Gaps that a caller's scale_ld
 * leaves are not padding and are not written. */
void bsmm_scales_pad(const bsmm_operand *dst, int64_t r0, int64_t r1);

/* Copies all scale codes of src to dst, which may have another scale layout, and writes dst's
 * padding. */
void bsmm_scales_move(const bsmm_operand *src, const bsmm_operand *dst);

/* Several public calls share the functions from here on (check.c, amax.c, compare.c). */

/* Runs a conversion on the backend of a device. Returns UNSUPPORTED if the backend does not have
 * this conversion. `what` names the conversion in the message. */
bsmm_status bsmm_recode_on(const bsmm_place *place, bsmm_status (*conversion)(const bsmm_recode *),
                           bsmm_recode *job, const char *what);

/* Fails with UNSUPPORTED if the memory of the device is not host memory. `what` names the work in
 * the message. */
bsmm_status bsmm_check_host(const bsmm_place *place, const char *what);

/* Checks that no buffer that dst writes overlaps a buffer that src reads. Fails with INVALID. */
bsmm_status bsmm_check_overlap(const bsmm_operand *src, const bsmm_operand *dst);

/* Checks that src and dst have the same numbers of rows and of columns. */
bsmm_status bsmm_check_shape(const bsmm_operand *src, const bsmm_operand *dst);

/* Sets the number of rows to 0 if there are no columns. A matrix may have 2^57 empty rows, and a
 * loop over them would not end in a lifetime. */
void bsmm_drop_empty_rows(bsmm_operand *operand);

/* Checks that the operand is unscaled f32, f16 or bf16, without a second-level scale. */
bsmm_status bsmm_check_plain(const bsmm_operand *operand, const char *what);

/* Returns the number of rows that one task converts. These rows have about 2^16 elements. They are
 * whole scale blocks of both matrices, and no byte holds elements of two tasks. */
int64_t bsmm_rows_per_task(const bsmm_operand *a, const bsmm_operand *b);

/* Computes max |x| as fp32 bits. A result above 0x7f800000 means that there is a NaN. */
bsmm_status bsmm_amax_bits(const bsmm_operand *src, const bsmm_place *place, uint32_t *bits);

/* bsmm_report_make computes the error report of `quantized` against the values `src`. The caller
 * has checked the memory of src and quantized. `lines` has one entry for each row of src, which
 * holds the sums of that row. The entries are added in order at the end, so that the report does
 * not depend on the number of threads. */
typedef struct bsmm_report_line {
    double signal, noise, max_error;
    int64_t clipped, underflowed;
} bsmm_report_line;
bsmm_status bsmm_report_make(const bsmm_operand *src, const bsmm_operand *quantized,
                             const bsmm_place *place, bsmm_report_line *lines,
                             bsmm_quantize_report *report);

#endif
