/* Defines the parameters of the kernels that convert matrices in device memory. These kernels
 * quantize, dequantize, move scales to another layout, and find the largest magnitude. */
#ifndef BSMM_GPU_RECODE_H
#define BSMM_GPU_RECODE_H

#include "gpu/axis_map.h"
#include "gpu/codec.h"
#include "gpu/pack.h"
#include "recipe/coder.h"

/* Holds the strides of a matrix. Element (r, c) lies at r * row_step + c * col_step, in elements.
 * One of the two strides is 1. */
typedef struct bsmm_recode_lines {
    uint64_t row_step, col_step;
} bsmm_recode_lines;

/* These are the fast paths for encoding the values of a block. A block takes a fast path only if
 * all of its values are finite and the factor of its block scale is a normal fp32 number. */
typedef enum bsmm_quantize_quick {
    BSMM_QUICK_NONE = 0,
    /* Multiplies (or divides) values by the block's factor. The instruction cvt converts the
     * results to e4m3. */
    BSMM_QUICK_E4M3_MULTIPLY = 1,
    BSMM_QUICK_E4M3_DIVIDE = 2,
    /* Multiplies values by the block's factor, rounds to nearest even and keeps the signs of zeros.
     */
    BSMM_QUICK_E2M1_MULTIPLY = 3,
    /* Multiplies two values at a time by a factor that is a power of two, rounds to nearest even
     * and keeps the signs of zeros. */
    BSMM_QUICK_E2M1_PAIRS = 4,
    /* Both paths round to nearest even and turn -0 into +0. PLUS multiplies values by the factor of
     * their block's scale, and PLUS_DIVIDE divides them by it. */
    BSMM_QUICK_E2M1_PLUS = 5,
    BSMM_QUICK_E2M1_PLUS_DIVIDE = 6,
    /* Multiplies values by the block's factor, rounds to nearest even and keeps the signs of zeros.
     */
    BSMM_QUICK_E2M3 = 7,
    BSMM_QUICK_E3M2 = 8
} bsmm_quantize_quick;

/* Holds the parameters for quantizing f32, f16 or bf16 to codes and scales. An item is 16
 * consecutive elements, which one thread converts at once. */
typedef struct bsmm_quantize_job {
    const uint8_t *src;
    uint8_t *dst, *scales;
    bsmm_recode_lines src_lines, dst_lines;
    uint32_t rows, cols;
    uint32_t block_rows, block_cols;
    /* `src_elem` is the element type of the source (enum bsmm_elem). `dst_bits` is the number of
     * bits of a code of the result. */
    uint32_t src_elem, dst_bits;
    uint32_t scale; /* `scale` is the type of the block scales, a value of the enum bsmm_scale. */
    /* `aligned_src` is nonzero if one instruction can always load a thread's 16 elements, and
     * `aligned_dst` if one instruction can always store them. */
    uint32_t aligned_src, aligned_dst;
    /* `lanes_log2` is the log2 of the number of adjacent threads that convert adjacent elements of
     * one row. */
    uint32_t lanes_log2;
    /* `block_lanes` is the number of adjacent threads whose elements lie in the same scale
     * block. */
    uint32_t block_lanes;
    /* `hardware` is the number of mantissa bits of the result if the instruction cvt makes the same
     * codes as the encoder `coder`. Otherwise it is 0. */
    uint32_t hardware;
    /* `pairs` is nonzero if the result is e2m1 and a fast path can encode two values at a time. The
     * fast path is for recipes that multiply the values by the factor of their block, round to
     * nearest even, and keep the signs of zeros. */
    uint32_t pairs;
    /* `quick` is the fast path of the encoder, a value of the enum bsmm_quantize_quick. */
    uint32_t quick;
    /* `tables` is nonzero if the function quick_e4m3 may compute the scale and the factor of each
     * block. This is a fast path for results in e2m1 with e4m3 scales. Instead of dividing, it
     * takes the factor from a table with one entry for each of the eight mantissas of a scale
     * (quantize_level.factors). */
    uint32_t tables;
    /* `columns` is the number of thread blocks along a row of the matrix, in kernels that quantize
     * to nvfp4 by the default rule for scales. In all other kernels it is 0. */
    uint32_t columns;
    uint32_t by_words;     /* `by_words` is nonzero if one instruction stores four scales. */
    bsmm_pack_words words; /* `words` tells where the uint32 words lie that hold four scales. */
    /* The offset of an element's scale is the sum of two numbers: the value of row_map for the
     * element's row, and the value of col_map for its column. */
    bsmm_axis_map row_map, col_map;
    bsmm_recipe_steps steps;
    /* These constants of the recipe (the rules for computing scales) are the same for all blocks
     * and do not depend on the second-level scale. */
    bsmm_tensor_step tensor;
    bsmm_coder coder;
    /* `amax` points to a number in device memory from which the second-level scale follows: the
     * tensor's largest magnitude, or the second-level scale itself if the caller chose it (the
     * rules BSMM_TENSOR_GIVEN and BSMM_TENSOR_GIVEN_DIVISOR of `steps`). It is NULL if the recipe
     * has no second-level scale. */
    const float *amax;
} bsmm_quantize_job;

/* Dequantizing computes the value of an element of at most 8 bits by one of these methods. */
typedef enum bsmm_dequantize_way {
    /* BSMM_WAY_EXACT: the kernel multiplies an element by its block scale. The product is exact in
     * fp32. */
    BSMM_WAY_EXACT = 0,
    /* BSMM_WAY_MULTIPLY: the kernel multiplies an exact number by an fp32 factor and rounds once.
     * The exact number is an element, or the product of an element and its e4m3 scale. */
    BSMM_WAY_MULTIPLY = 1,
    BSMM_WAY_DIVIDE = 2, /* BSMM_WAY_DIVIDE: the kernel divides an exact number by an fp32 factor
                            and rounds once. */
    BSMM_WAY_DOUBLE =
        3 /* BSMM_WAY_DOUBLE: the kernel computes in double, which is the slow path. */
} bsmm_dequantize_way;

/* Holds the parameters for dequantizing codes and scales of any format to f32, f16 or bf16. */
typedef struct bsmm_dequantize_job {
    const uint8_t *src, *scales;
    uint8_t *dst;
    bsmm_recode_lines src_lines, dst_lines;
    uint32_t rows, cols;
    uint32_t src_elem, src_bits, dst_elem, scale;
    uint32_t aligned_src, aligned_dst;
    uint32_t lanes_log2;
    /* A thread converts an item, i.e. 8 consecutive elements, at once. A scale block of 16 or 32
     * elements has 2 or 4 items. `scale_lanes` is the number of adjacent threads (1, 2 or 4) whose
     * items lie in the same scale block. */
    uint32_t scale_lanes;
    uint32_t by_divisor;
    /* `way` tells how values are computed. It is a value of the enum bsmm_dequantize_way. */
    uint32_t way;
    /* `hardware` is the number of mantissa bits of the elements if they are 8-bit floats that the
     * instruction cvt can convert. Otherwise it is 0. */
    uint32_t hardware;
    bsmm_axis_map row_map, col_map;
    bsmm_narrow_codec codec;
    bsmm_pair_codec pair; /* `pair` decodes two elements at a time to bf16. */
    bsmm_coder coder;     /* `coder` encodes the result. It is unused if the result is f32. */
    /* `global` points to the second-level scale in device memory, or NULL if it is 1. */
    const float *global;
} bsmm_dequantize_job;

enum {
    /* BSMM_MOVED_ROWS is the number of rows of scales that one thread of the kernel move_scales
     * copies. */
    BSMM_MOVED_ROWS = 4,
    /* BSMM_DEQUANTIZED_ROWS is the number of rows of one thread in the dequantizing kernels that
     * support every type of scale. */
    BSMM_DEQUANTIZED_ROWS = 4,
    /* BSMM_DEQUANTIZED_ROWS_MADE is the number of rows that one thread converts in the dequantizing
     * kernels that support one type of scale. */
    BSMM_DEQUANTIZED_ROWS_MADE = 8,
};

/* Holds the parameters for copying scale codes from one layout to another. The destination has rows
 * x cols codes including its padding. The first known_rows x known_cols codes are scales, and the
 * padding becomes 0. */
typedef struct bsmm_relayout_job {
    const uint8_t *from;
    uint8_t *to;
    uint32_t rows, cols, known_rows, known_cols;
    uint32_t wide; /* `wide` tells the size of a code: 4 bytes if nonzero, 1 byte if 0. */
    /* `by_words` is 0 if a thread copies one code at a time. Otherwise a thread copies four
     * consecutive codes and stores them as one aligned uint32. `by_words` is then the number of
     * loads for the four codes: 1 load of a uint32, 2 of a uint16 or 4 of a byte, all aligned. The
     * codes of a load are either all scales, or all padding. */
    uint32_t by_words;
    /* `lanes_log2` is the log2 of the number of adjacent threads that copy adjacent codes of one
     * row. */
    uint32_t lanes_log2;
    bsmm_axis_map from_row_map, from_col_map, to_row_map, to_col_map;
} bsmm_relayout_job;

/* Holds the parameters for copying the elements of a matrix of any order to a row-major matrix.
 * `pitch` is the stride of the result's rows in bytes, and `bits` is the size of an element. */
typedef struct bsmm_codes_job {
    const uint8_t *from;
    uint8_t *to;
    bsmm_recode_lines lines; /* `lines` holds the strides of the source. */
    uint64_t pitch;
    uint32_t rows, cols, bits;
} bsmm_codes_job;

/* Holds the parameters for finding the largest magnitude of an f32, f16 or bf16 matrix. A line is a
 * row, or a column if the matrix is column-major. */
typedef struct bsmm_amax_job {
    const uint8_t *src;
    /* `line_bytes` is the stride of lines in bytes, `lines` is their number, and `count` is the
     * number of elements per line (row or column). */
    uint64_t line_bytes, lines, count;
    uint32_t src_elem, aligned;
    /* `result` gets the fp32 bits of the largest magnitude. Thread blocks update it by an atomic
     * maximum. */
    uint32_t *result;
} bsmm_amax_job;

/* Holds the parameters for computing the second-level scale from the largest magnitude of a tensor.
 */
typedef struct bsmm_level_job {
    bsmm_recipe_steps steps;
    bsmm_tensor_step tensor;
    /* `amax` points to the tensor's largest magnitude in device memory, or NULL if the second-level
     * scale is 1. */
    const float *amax;
    float *level;
    uint32_t by_divisor;
} bsmm_level_job;

#endif
