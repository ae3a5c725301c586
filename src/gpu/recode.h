/* Conversions of device memory: quantize, dequantize, moving scales, the largest magnitude. The
 * parameters of their kernels, and the host's calls (bsmm_backend's hooks). */
#ifndef BSMM_GPU_RECODE_H
#define BSMM_GPU_RECODE_H

#include "gpu/axis_map.h"
#include "gpu/codec.h"
#include "gpu/pack.h"
#include "recipe/coder.h"

/* How elements lie: (r, c) at r * row_step + c * col_step, counted in elements; one step is 1. */
typedef struct bsmm_recode_lines {
    uint64_t row_step, col_step;
} bsmm_recode_lines;

/* What kernels have straight lines for; their blocks are tame: finite, and their factors normal. */
typedef enum bsmm_quantize_quick {
    BSMM_QUICK_NONE = 0,
    BSMM_QUICK_E4M3_MULTIPLY = 1, /* by cvt */
    BSMM_QUICK_E4M3_DIVIDE = 2,
    BSMM_QUICK_E2M1_MULTIPLY = 3, /* nearest even, zeros with their signs */
    BSMM_QUICK_E2M1_PAIRS = 4,    /* and factors that are powers of two */
    BSMM_QUICK_E2M1_PLUS = 5,     /* as MULTIPLY, but -0 becomes 0 */
    BSMM_QUICK_E2M1_PLUS_DIVIDE = 6
} bsmm_quantize_quick;

/* f32, f16 or bf16 to codes and scales. */
typedef struct bsmm_quantize_job {
    const uint8_t *src;
    uint8_t *dst, *scales;
    bsmm_recode_lines src_lines, dst_lines;
    uint32_t rows, cols;
    uint32_t block_rows, block_cols;
    uint32_t src_elem, dst_bits;       /* bsmm_elem; bits of a code */
    uint32_t scale;                    /* bsmm_scale */
    uint32_t aligned_src, aligned_dst; /* whole items of 16 elements may be moved at once */
    uint32_t lanes_log2;               /* threads side by side along a row */
    uint32_t block_lanes;              /* of which so many share a block */
    uint32_t hardware;              /* mantissa bits, where cvt gives the coder's codes; else 0 */
    uint32_t pairs;                 /* e2m1, nearest even, by multiplying, zeros with their signs */
    uint32_t quick;                 /* bsmm_quantize_quick */
    uint32_t tables;                /* e2m1 by a rule that quick_e4m3 (sm80/quantize_scale.h) has */
    uint32_t columns;               /* nvfp4 by the default rule: blocks of threads along a row */
    uint32_t by_words;              /* scales are stored four at a time: */
    bsmm_pack_words words;          /* where */
    bsmm_axis_map row_map, col_map; /* of elements */
    bsmm_recipe_steps steps;
    bsmm_tensor_step tensor; /* without the second level */
    bsmm_coder coder;
    const float *amax; /* of the tensor, two levels; else NULL */
} bsmm_quantize_job;

/* How a value is made of an element of 8 bits and fewer. */
typedef enum bsmm_dequantize_way {
    BSMM_WAY_EXACT = 0,    /* element * scale, exact in fp32 */
    BSMM_WAY_MULTIPLY = 1, /* exact element (or element * e4m3 scale) times fp32, rounded once */
    BSMM_WAY_DIVIDE = 2,   /* the same divided by fp32 */
    BSMM_WAY_DOUBLE = 3    /* in double */
} bsmm_dequantize_way;

/* Any codes and scales to f32, f16 or bf16. */
typedef struct bsmm_dequantize_job {
    const uint8_t *src, *scales;
    uint8_t *dst;
    bsmm_recode_lines src_lines, dst_lines;
    uint32_t rows, cols;
    uint32_t src_elem, src_bits, dst_elem, scale;
    uint32_t aligned_src, aligned_dst;
    uint32_t lanes_log2;
    uint32_t share; /* neighbours whose items of 8 have one block: 1, 2 or 4 */
    uint32_t by_divisor;
    uint32_t way;      /* bsmm_dequantize_way */
    uint32_t hardware; /* mantissa bits of 8-bit floats that cvt knows; else 0 */
    bsmm_axis_map row_map, col_map;
    bsmm_narrow_codec codec;
    bsmm_pair_codec pair; /* to bf16 */
    bsmm_coder coder;     /* of the result; none for f32 */
    const float *global;  /* NULL: 1 */
} bsmm_dequantize_job;

enum {
    BSMM_MOVED_ROWS = 4,            /* of a thread of move_scales */
    BSMM_DEQUANTIZED_ROWS = 4,      /* of one that dequantizes rows */
    BSMM_DEQUANTIZED_ROWS_MADE = 8, /* where it is made for one kind of scales */
};

/* Scale codes from one layout to another, with the second one's padding: rows x cols of `to`, of
 * which known_rows x known_cols are scales and the rest is 0. */
typedef struct bsmm_relayout_job {
    const uint8_t *from;
    uint8_t *to;
    uint32_t rows, cols, known_rows, known_cols;
    uint32_t wide;       /* codes of 4 bytes, else 1 */
    uint32_t by_words;   /* four codes are an aligned word in both, and are all scales or none */
    uint32_t lanes_log2; /* threads side by side along a row */
    bsmm_axis_map from_row_map, from_col_map, to_row_map, to_col_map;
} bsmm_relayout_job;

/* Lines of f32, f16 or bf16. */
typedef struct bsmm_amax_job {
    const uint8_t *src;
    uint64_t line_bytes, lines, count; /* of elements in a line */
    uint32_t src_elem, aligned;
    uint32_t *result; /* fp32 bits; a maximum is added to it */
} bsmm_amax_job;

/* The second level, from the largest magnitude. */
typedef struct bsmm_level_job {
    bsmm_recipe_steps steps;
    bsmm_tensor_step tensor;
    const float *amax; /* NULL: the level is 1 */
    float *level;
    uint32_t by_divisor;
} bsmm_level_job;

#endif
