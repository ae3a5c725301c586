/* SPDX-License-Identifier: Apache-2.0
 *
 * bsmm: block-scaled matrix multiplication.
 *
 *     D = round(epilogue(alpha * (A . scale_a) x (B . scale_b)^T + beta * C + bias))
 *
 * A is (M, K), B is (N, K), D and C are (M, N), bias is (N). Elements are 4-, 6-, 8-, 16- or 32-bit
 * floats. A scale covers a block of block_rows x block_cols elements; the columns of a block lie
 * along K, or in D along N. The sections of this file are: status, formats, the matrix, the
 * epilogue, groups, threads, one call, plans, quantization, tables, devices and speed of light,
 * files.
 *
 * These conventions hold everywhere:
 * - Structs start with struct_size = sizeof(the struct). A field that is zero means its default.
 *   The library accepts a larger struct than it knows if the unknown tail is zero. BSMM_INIT(type)
 *   gives a struct with struct_size set and all other fields zero.
 * - Sizes are counted in elements unless a name ends in _bytes. Indices start at 0.
 * - Every function that can fail returns a bsmm_status. bsmm_error_message() then tells the reason:
 *   the field, its value and the rule. A function that fails has not written any output buffer,
 *   unless its comment says otherwise.
 * - Everything is thread-safe unless its comment says otherwise. The library never prints, aborts,
 *   exits or reads the environment.
 * - The library has little global state. It keeps the error message of each thread, the GPU modules
 *   and functions that it has loaded, and a counter of launches. It also keeps facts that it finds
 *   out at first use and that never change: the processor's features and caches, tables of
 *   elements, the GPU's driver, and a record with a context of each GPU in use. */
#ifndef BSMM_H
#define BSMM_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#    ifdef BSMM_BUILD
#        define BSMM_API __declspec(dllexport)
#    else
#        define BSMM_API
#    endif
#else
#    define BSMM_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#    define BSMM_INIT(type)                                                                        \
        ([] {                                                                                      \
            type init = type();                                                                    \
            init.struct_size = sizeof(type);                                                       \
            return init;                                                                           \
        }())
#else
#    define BSMM_INIT(type) ((type){.struct_size = (uint32_t)sizeof(type)})
#endif

#define BSMM_VERSION_MAJOR 0
#define BSMM_VERSION_MINOR 1
#define BSMM_VERSION_PATCH 0
/* Version of this header as one number, for the preprocessor: #if BSMM_VERSION >= 100 (0.1.0) */
#define BSMM_VERSION (BSMM_VERSION_MAJOR * 10000 + BSMM_VERSION_MINOR * 100 + BSMM_VERSION_PATCH)

/* Returns the version of the loaded library, as BSMM_VERSION: major * 10000 + minor * 100 + patch.
 * A program that was compiled with an older header of the same minor version may use the library
 * (docs/policy.md). */
BSMM_API uint32_t bsmm_version(void);

/* ------------------------------------------------------------------------------------------
 * Status
 * ---------------------------------------------------------------------------------------- */

/* A bsmm_status is the result of a function. The numbers of these values never change. */
typedef enum bsmm_status {
    BSMM_OK = 0,
    BSMM_E_INVALID = 1,     /* A field or an argument breaks a rule. */
    BSMM_E_UNSUPPORTED = 2, /* The request is valid, but no kernel or writer can do it. */
    BSMM_E_MEMORY = 3,      /* An allocation failed. */
    BSMM_E_IO = 4,          /* The operating system refused to open, map, write or rename a file. */
    BSMM_E_FORMAT = 5,      /* The content of a file breaks the rules of its format. */
    BSMM_E_NOT_FOUND = 6,   /* There is no tensor, device, kernel or recipe of that name. */
    BSMM_E_RANGE = 7,       /* A lossless conversion would lose a value. */
    BSMM_E_DEVICE = 8       /* A device or its driver failed. */
} bsmm_status;

/* Returns the name of a status, such as "BSMM_E_INVALID", or "unknown" for other values. */
BSMM_API const char *bsmm_status_name(bsmm_status status);

/* Returns the message of this thread's last failure, for example "a.cols: value is 96; must equal
 * b.cols (64)". The message is empty before the first failure. The pointer is valid until this
 * thread's next call that fails. */
BSMM_API const char *bsmm_error_message(void);

/* ------------------------------------------------------------------------------------------
 * Formats. Sources: OCP Microscaling Formats (MX) v1.0; OCP 8-bit Floating Point v1.0;
 * the fnuz variants: AMD CDNA3 ISA; nvfp4: NVIDIA cuBLAS and PTX ISA 8.7.
 * ---------------------------------------------------------------------------------------- */

/* A bsmm_elem is the number format of one matrix element. A code, i.e. the bits of one element, has
 * a sign s, an exponent field E and a mantissa field M of m bits. The format has an exponent bias
 * b. If E is 0, the value of a finite code is (-1)^s 2^(1-b) M/2^m. Otherwise its value is (-1)^s
 * 2^(E-b) (1 + M/2^m). */
typedef enum bsmm_elem {
    BSMM_ELEM_NONE = 0,
    BSMM_ELEM_F32 = 1,
    BSMM_ELEM_F16 = 2,
    BSMM_ELEM_BF16 = 3,
    BSMM_ELEM_E4M3 = 4,     /* OCP e4m3fn: no Inf, NaN = S.1111.111, max 448 */
    BSMM_ELEM_E4M3FNUZ = 5, /* AMD's e4m3 of CDNA3: bias 8, NaN = 0x80, max 240 */
    BSMM_ELEM_E5M2 = 6,     /* OCP e5m2: Inf and NaN as in IEEE 754, max 57344 */
    BSMM_ELEM_E5M2FNUZ = 7, /* AMD's e5m2 of CDNA3: bias 16, NaN = 0x80, max 57344 */
    BSMM_ELEM_E3M2 = 8,     /* 6 bits without Inf and NaN, max 28 */
    BSMM_ELEM_E2M3 = 9,     /* 6 bits without Inf and NaN, max 7.5 */
    BSMM_ELEM_E2M1 = 10,    /* 4 bits without Inf and NaN, max 6 */
    /* A scale format with the value 2^(code - 127); code 255 is NaN. No matrix has e8m0 elements.
     * The format is listed here so that bsmm_decode_elem and bsmm_encode_elem accept it. */
    BSMM_ELEM_E8M0 = 11
} bsmm_elem;

/* A bsmm_scale is the format of a block's scale, i.e. of the factor that all elements of a block
 * share. */
typedef enum bsmm_scale {
    BSMM_SCALE_NONE = 0,
    BSMM_SCALE_E8M0 = 1,
    BSMM_SCALE_E4M3 = 2, /* Signed: codes 0x80..0xFE are negative factors. */
    BSMM_SCALE_F32 = 3
} bsmm_scale;

/* A bsmm_format describes a block-scaled format: the format of an element, the format of a scale
 * and the shape of a block. An unscaled format has scale BSMM_SCALE_NONE and a block of 0 x 0. A
 * preset, such as "mxfp8", is a name for one bsmm_format. The library treats a preset and a struct
 * with the same fields alike. */
typedef struct bsmm_format {
    uint32_t elem;       /* Element format, a bsmm_elem */
    uint32_t scale;      /* Scale format, a bsmm_scale; BSMM_SCALE_NONE if unscaled */
    uint32_t block_rows; /* Rows of a block; at least 1 if scaled, else 0 */
    uint32_t block_cols; /* Columns of a block (along K); at least 2 if scaled, else 0 */
} bsmm_format;

/* Gives the format that a name stands for. The name is a preset ("mxfp8", "nvfp4", "fp8_group128";
 * bsmm_preset_at lists all of them) or an unscaled element format ("f32", "bf16", "e4m3"). Returns
 * NOT_FOUND if the name is unknown; the message then lists the known names. */
BSMM_API bsmm_status bsmm_format_from_name(const char *name, bsmm_format *format);

/* Returns the name of the preset or unscaled element format that has exactly these fields. Returns
 * "custom" if none has. The string has static storage. */
BSMM_API const char *bsmm_format_name(bsmm_format format);

/* Gives the code of `value` in an element format, rounded to nearest, ties to even. NaN stays NaN.
 * `saturate` decides about overflow:
 * - If it is not 0, a value beyond the largest finite value, or Inf, becomes the largest finite
 *   value.
 * - If it is 0, such a value becomes Inf. In a format without Inf it becomes NaN. In a format with
 *   neither Inf nor NaN it becomes the largest value.
 *
 * Sources: OCP 8-bit Floating Point v1.0 section 5.2.3 and MX v1.0 section 5.3. In a format without
 * NaN, a NaN becomes +0; MX v1.0 leaves this to the implementation.
 *
 * OCP defines no rounding to e8m0. This function rounds to the nearest power of two, ties up, as
 * ml_dtypes and torch do. Like them, it rounds every value between 2^-127 and 2^-126 up, and gives
 * 2^-127 for every positive value below 2^-127. Zero, negative values and overflow give NaN if
 * saturate is 0. If saturate is not 0, they give the nearest end of the range of e8m0. */
BSMM_API bsmm_status bsmm_encode_elem(uint32_t elem, float value, int saturate, uint32_t *code);

/* Gives the exact value of a code of an element format. Returns INVALID if `code` has more bits
 * than the format. */
BSMM_API bsmm_status bsmm_decode_elem(uint32_t elem, uint32_t code, double *value);

/* ------------------------------------------------------------------------------------------
 * The matrix
 * ---------------------------------------------------------------------------------------- */

/* A bsmm_order is the storage order of a matrix. */
typedef enum bsmm_order {
    /* Row-major: the elements of a row are contiguous. Element (r, c) is at r * ld + c. */
    BSMM_ORDER_ROW = 0,
    /* Column-major: the elements of a column are contiguous. Element (r, c) is at c * ld + r. */
    BSMM_ORDER_COL = 1
} bsmm_order;

/* A bsmm_layout says where the scale of each block lies in memory. Block (r, c) is the block in
 * block row r and in block column c; block columns follow one another along K. R and C are the
 * numbers of block rows and of block columns. Offsets count scales. docs/LAYOUTS.md draws each
 * layout. */
typedef enum bsmm_layout {
    BSMM_LAYOUT_ROW_MAJOR = 0, /* The offset is r * ld + c. ld 0 means C. */
    BSMM_LAYOUT_COL_MAJOR = 1, /* The offset is c * ld + r. ld 0 means R. */
    /* The scales are stored in tiles of scale_tile_rows x scale_tile_cols scales. The scales of a
     * tile are in row-major order, and the tiles are in row-major order too. */
    BSMM_LAYOUT_TILE_CONTIGUOUS = 2,
    /* Tiles of 128 x 4 scales, as in cuBLAS, tcgen05 and torchao's to_blocked */
    BSMM_LAYOUT_NV_128X4 = 3,
    BSMM_LAYOUT_NV_8X4 = 4, /* Tiles of 8 x 4 scales, as in vLLM and FlashInfer for small M */
    /* The layout of hipBLASLt's BLK32_UE8M0_32_8_EXT and of aiter's shuffle_scale */
    BSMM_LAYOUT_CDNA4_MFMA16 = 5,
    BSMM_LAYOUT_CDNA4_MFMA32 = 6, /* The layout of Triton's block-scaled tutorial for 32x32 MFMA */
    /* cuBLASLt's layout of the fp32 scales of 1x128 blocks. With R rows of scales, the offset of
     * scale (r, c) is c * roundup(R, 4) + r. */
    BSMM_LAYOUT_CUBLAS_VEC128 = 7,
    /* cuBLASLt's layout of the fp32 scales of 128x128 blocks. The offset of scale (r, c) is r *
     * roundup(C, 4) + c, where C is the number of columns of scales. */
    BSMM_LAYOUT_CUBLAS_BLK128 = 8
} bsmm_layout;

/* A bsmm_global says whether a second-level scale g (one fp32 number for the whole tensor)
 * multiplies or divides the values. */
typedef enum bsmm_global {
    BSMM_GLOBAL_MULTIPLIER = 0, /* value = element * scale * g (ModelOpt, torchao) */
    BSMM_GLOBAL_DIVISOR = 1     /* value = element * scale / g (compressed-tensors) */
} bsmm_global;

/* A matrix: its description and, if a call reads or writes the matrix, its memory.
 *
 * Elements of 4 bits are packed two per byte along the contiguous index; the element with the even
 * index is in the low nibble. Elements of 6 bits are packed four in three bytes, least significant
 * bit first. `ld` must therefore be a multiple of 2 elements for 4 bits and of 4 elements for 6
 * bits. If a contiguous row or column has another length, it is padded to the next such multiple.
 * Buffers must be aligned to their element type: 4 bytes for f32, 2 bytes for f16 and bf16,
 * otherwise 1 byte. */
typedef struct bsmm_matrix {
    uint32_t struct_size;
    uint32_t order;     /* Storage order, a bsmm_order */
    bsmm_format format; /* Formats of the elements and scales */
    int64_t rows;       /* Number of rows (M or N), 0 or more */
    int64_t cols;       /* Number of columns (K for A and B; N for C and D), 0 or more */
    int64_t ld;         /* Leading dimension in elements; 0 = rows (columns) are adjacent */
    void *data;         /* The elements */
    /* Size of `data` in bytes. It must be at least bsmm_data_bytes. 0 means that the library does
     * not check the size. */
    uint64_t data_bytes;
    void *scales; /* The scales, one per block; NULL if unscaled */
    /* Size of `scales` in bytes. It must equal bsmm_scale_bytes. If scale_ld leaves gaps between
     * rows (or columns) of scales, the size may also include the gap after the last row (or
     * column). 0 means that the library does not check the size; 0 is allowed only for ROW_MAJOR
     * and COL_MAJOR, because these layouts have no padding. */
    uint64_t scale_bytes;
    uint32_t scale_layout; /* Layout of the scales, a bsmm_layout */
    uint32_t global_kind;  /* Use of global_scale (multiply or divide), a bsmm_global */
    uint32_t scale_tile_rows, scale_tile_cols; /* Size of a tile in scales (TILE_CONTIGUOUS only) */
    /* Leading dimension of the scales, in scales, for ROW_MAJOR and COL_MAJOR only; 0 = no gaps. */
    int64_t scale_ld;
    float *global_scale; /* Second-level scale of the tensor, one value; NULL = 1 */
} bsmm_matrix;

/* bsmm_data_bytes gives the size in bytes of the element buffer that a matrix of this description
 * needs. bsmm_scale_bytes gives the size in bytes of its scale buffer, padding included. Neither
 * reads the memory that the matrix points to. Both return INVALID if the description breaks a
 * rule. */
BSMM_API bsmm_status bsmm_data_bytes(const bsmm_matrix *matrix, uint64_t *bytes);
BSMM_API bsmm_status bsmm_scale_bytes(const bsmm_matrix *matrix, uint64_t *bytes);

/* ------------------------------------------------------------------------------------------
 * The epilogue: the operations on a result x = alpha * A x B^T + beta * C + bias before x is
 * rounded to D. docs/NUMERICS.md says which operations are exact.
 * ---------------------------------------------------------------------------------------- */

/* The activation f of the epilogue, y = f(x). NaN stays NaN. f(-Inf) is what the formula gives, as
 * in PyTorch: NaN for silu and gelu.
 *
 * The last three values are gated activations, which combine two columns of A x B^T, called gate
 * and up, into one column of D. Half of B's rows produce the gates, and the other half produce the
 * ups. D therefore has half as many columns as B has rows. */
typedef enum bsmm_activation {
    BSMM_ACTIVATION_NONE = 0,
    BSMM_ACTIVATION_SILU = 1, /* x / (1 + exp(-slope x)): torch silu; slope 1.702 is quick gelu */
    BSMM_ACTIVATION_GELU = 2, /* x (1 + erf(x / sqrt(2))) / 2: torch gelu */
    /* x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2: torch gelu(approximate="tanh") */
    BSMM_ACTIVATION_GELU_TANH = 3,
    BSMM_ACTIVATION_RELU = 4,   /* max(x, 0): torch relu */
    BSMM_ACTIVATION_RELU2 = 5,  /* max(x, 0)^2: Primer (arXiv 2109.08668), Nemotron */
    BSMM_ACTIVATION_SWIGLU = 6, /* silu(gate) (up + up_offset): arXiv 2002.05202, Llama, gpt-oss */
    BSMM_ACTIVATION_GEGLU = 7,  /* gelu(gate) (up + up_offset): arXiv 2002.05202 */
    BSMM_ACTIVATION_GEGLU_TANH = 8 /* gelu_tanh(gate) (up + up_offset): Gemma */
} bsmm_activation;

/* A bsmm_halves says which columns of A x B^T hold the gates and the ups of a gated activation. A x
 * B^T has N columns, and D has N / 2. Each value of this enum names two columns of A x B^T from
 * which column n of D is computed: first the column with the gate, then the column with the up. */
typedef enum bsmm_halves {
    BSMM_HALVES_SPLIT = 0,      /* Columns n and n + N / 2: Llama, vLLM's SiluAndMul */
    BSMM_HALVES_INTERLEAVED = 1 /* Columns 2 n and 2 n + 1: gpt-oss */
} bsmm_halves;

/* These flags choose the factors by which the epilogue multiplies D: row_scale (one factor per row
 * of D), col_scale (one factor per column of D), or, if the flags are added, both. */
typedef enum bsmm_scale_by { BSMM_SCALE_BY_ROW = 1, BSMM_SCALE_BY_COL = 2 } bsmm_scale_by;

/* The epilogue of a product. x = alpha * A x B^T + beta * C + bias is the value in row m and column
 * n before the epilogue. The epilogue computes D = round(row_scale[m] * col_scale[n] * (f(x) +
 * residual)), where f is the activation. It does not round between these operations.
 *
 * A gated activation f takes two values x, gate and up, from two columns. It first clamps them, as
 * gpt-oss does: gate to at most `limit`, and up to the range from -limit to limit. It then adds
 * up_offset to up. gpt-oss itself uses SWIGLU, INTERLEAVED, limit 7, slope 1.702 and up_offset 1
 * (source: gpt_oss/torch/model.py, function swiglu). */
typedef struct bsmm_epilogue {
    uint32_t struct_size;
    uint32_t activation; /* The activation f, a bsmm_activation */
    uint32_t halves;     /* Pairing of gates and ups, a bsmm_halves; 0 unless f is gated */
    uint32_t scale_by;   /* The factors in use, a sum of bsmm_scale_by flags */
    float limit;     /* Clamp of gate and up, above 0; 0 = no clamp; must be 0 unless f is gated */
    float slope;     /* Slope of SILU and SWIGLU, finite; 0 means 1 */
    float up_offset; /* Number that is added to up if f is gated, finite */
    uint32_t reserved; /* Must be 0 */
    /* The residual, a matrix of D's shape in f32, f16 or bf16. NULL = none. It may be the matrix d
     * itself if the two descriptions are equal. */
    const bsmm_matrix *residual;
    /* One fp32 factor per row of D. bsmm_matmul reads the factors through this pointer; a run of a
     * plan reads them through bsmm_buffers. */
    const float *row_scale;
    /* One fp32 factor per column of D; bsmm_matmul reads it, plans take it from bsmm_buffers */
    const float *col_scale;
} bsmm_epilogue;

/* ------------------------------------------------------------------------------------------
 * Groups: many products in one plan. docs/GROUPS.md maps the grouped products of DeepGEMM, torch
 * and FlashInfer to these declarations.
 * ---------------------------------------------------------------------------------------- */

/* A bsmm_group_kind says how the operands are divided among G groups. A group is one of several
 * products that run as one plan. An operand is either a stack or divided. A "stack" is G matrices
 * of the described shape, one for each group, at a constant distance in memory. A divided operand
 * is a single matrix in which each group owns a range of rows (or of columns). */
typedef enum bsmm_group_kind {
    BSMM_GROUP_NONE = 0, /* There are no groups: the plan is one product. */
    /* A, B, C, D and the residual are stacks: each has one matrix for each group. */
    BSMM_GROUP_BATCH = 1,
    /* Grouped along M, as for the experts of a mixture-of-experts layer. B is a stack: it has one
     * matrix for each group. A, C, D and the residual are single matrices, in which each group owns
     * a range of rows. sizes[g] (in bsmm_group) is the end of group g and not its length: the rows
     * of group g end before row sizes[g]. */
    BSMM_GROUP_ROWS = 2,
    /* All operands are stacks, as in BATCH: each has one matrix for each group. Group g uses only
     * the first sizes[g] rows (in bsmm_group) of its matrices of A, C, D and the residual. The
     * other rows of D are not written. If D has scales, the scales of these rows count as padding:
     * they are written 0 up to the end of the scale layout's tile, unless the group has no rows. */
    BSMM_GROUP_MASKED = 3,
    /* Grouped along K. C, D and the residual are stacks: each has one matrix for each group. A and
     * B are single matrices, in which each group owns a range of columns. sizes[g] (in bsmm_group)
     * is the end of group g and not its length: the columns of group g end before column sizes[g].
     * A group without columns has A x B^T = 0, so that its D is the epilogue of beta * C + bias. */
    BSMM_GROUP_K = 4
} bsmm_group_kind;

/* These flags are properties of groups. Several flags are combined by addition. An EACH flag says
 * that each group has a value of its own, which the caller gives in an array of G values. Without
 * the flag all groups share one value. */
typedef enum bsmm_group_flags {
    BSMM_GROUP_EACH_ALPHA = 1,    /* alpha of group g is the description's alpha * group_alpha[g] */
    BSMM_GROUP_EACH_BIAS = 2,     /* bias has the shape (G, N) */
    BSMM_GROUP_EACH_A_GLOBAL = 4, /* a_global of bsmm_buffers has G second-level scales of A */
    /* b_global of bsmm_buffers has G second-level scales of B (nvfp4: one per expert) */
    BSMM_GROUP_EACH_B_GLOBAL = 8,
    BSMM_GROUP_EACH_D_GLOBAL = 16,  /* d_global of bsmm_buffers has G second-level scales of D */
    BSMM_GROUP_EACH_COL_SCALE = 32, /* The epilogue's col_scale has the shape (G, columns of D) */
    /* The kernel gathers the rows of A (kinds ROWS and MASKED only): A is one matrix with any
     * number of rows, and row r of D is computed from row gather[r] of A. For MASKED, r is g * M +
     * m for row m of group g, where M is the number of rows of each matrix of D. If gather[r] is no
     * row of A, for example -1, the kernel uses a row of zeros. If A has block scales, its
     * block_rows must be 1. */
    BSMM_GROUP_GATHER_A = 64,
    /* The scales of a matrix that is divided among the groups are separate arrays, one for each
     * group. This is for kinds ROWS and K. The array of a group is laid out and padded as the
     * scales of a matrix with the group's rows (columns). The arrays follow one another in the
     * order of the groups. scale_bytes must be at least bsmm_group_scale_bytes. */
    BSMM_GROUP_SCALES_APART = 128
} bsmm_group_flags;

/* BSMM_GROUP_SHARED is a value for a step of bsmm_group (a_step, b_step, ...), i.e. for the stride
 * from the matrix of one group to the matrix of the next. With it, all groups share one matrix and
 * its scales. A scale step (b_scale_step, ...) may have this value while the elements have a normal
 * step. D cannot be shared. */
#define BSMM_GROUP_SHARED (-1)

/* Describes the groups of a grouped product, and which rows or columns each group owns.
 *
 * On a GPU the sizes of the groups lie in device memory, so that the library cannot check them
 * before a run. Kernels therefore clamp the sizes: a wrong size never makes a kernel write outside
 * D. For ROWS and K, group g starts at the end of group g - 1, rounded up to a multiple of `align`.
 * It ends at sizes[g], clamped to the range from the group's start to the number of rows (ROWS) or
 * columns (K) of the divided matrices. For MASKED, sizes[g] is a number of rows. It is clamped to
 * the range from 0 to the number of rows of each matrix of the stack D. With ROWS and MASKED,
 * a kernel writes nothing for a group without rows. */
typedef struct bsmm_group {
    uint32_t struct_size;
    uint32_t kind;     /* Division of the operands, a bsmm_group_kind */
    uint32_t flags;    /* Properties, a sum of bsmm_group_flags */
    uint32_t reserved; /* Must be 0 */
    int64_t count;     /* Number of groups G, 0 or more */
    /* For ROWS and K: each group starts at a multiple of `align` rows (ROWS) or columns (K); 0
     * means 1. In every divided matrix, each such multiple must be the start of a byte. It must
     * also be the start of a scale block and of a tile of the scale layout, unless
     * BSMM_GROUP_SCALES_APART is set. */
    int64_t align;
    /* Expected number of rows of a group. It is a hint for the choice of kernel; 0 = unknown. */
    int64_t expected_rows;
    /* Stride from one matrix of a stack to the next. 0 means that the matrices follow one another
     * without gaps. The matrices of the stack D must not overlap. */
    int64_t a_step, b_step, c_step, d_step, residual_step; /* Strides of matrices, in elements */
    int64_t a_scale_step, b_scale_step, d_scale_step;      /* Strides of their scales, in scales */
    /* Size of each group as `kind` defines it, G values; only bsmm_matmul reads it */
    const int32_t *sizes;
    const int32_t *gather; /* Row of A for each row of D (GATHER_A); only bsmm_matmul reads it */
    /* Factor alpha of each group (EACH_ALPHA), G values; only bsmm_matmul reads it */
    const float *alpha;
} bsmm_group;

/* Gives the largest size in bytes that the scales of `matrix` can take with
 * BSMM_GROUP_SCALES_APART, whatever the sizes of the groups are. `matrix` must be an operand that
 * `group` divides: A or D for kind ROWS, A or B for kind K. Returns INVALID for another kind, or
 * without BSMM_GROUP_SCALES_APART. */
BSMM_API bsmm_status bsmm_group_scale_bytes(const bsmm_group *group, const bsmm_matrix *matrix,
                                            uint64_t *bytes);

/* ------------------------------------------------------------------------------------------
 * Threads that do the work of the device "cpu". Results do not depend on the number of threads.
 * ---------------------------------------------------------------------------------------- */

/* A bsmm_task is one of the tasks into which a call of the library divides its work. `index` is the
 * number of the task, counted from 0. */
typedef void (*bsmm_task)(void *work, size_t index);

/* Runs all tasks of one call: calls task(work, index) once for every index from 0 to count - 1, and
 * returns after the last of these tasks has returned. The caller of the library implements this
 * function.
 *
 * The tasks may run in any threads, in any order, at the same time or one after another. The thread
 * that calls this function may run some or all of them. A task never waits for another task and
 * never calls the library. Each task must see all memory that the calling thread wrote before the
 * call. After the return, the calling thread must see all memory that the tasks wrote. The
 * functions pthreadpool_parallelize_1d and dispatch_apply_f take tasks of this form. */
typedef void (*bsmm_parallel_for)(void *context, bsmm_task task, void *work, size_t count);

/* A thread pool of the caller, in place of OpenMP's. Without a pool, OpenMP's threads do the work;
 * in a library that was built without OpenMP, the calling thread does all of it.
 *
 * Rules for `run`:
 * - The thread that calls the library calls `run`, several times one after another if necessary. If
 *   several threads use one pool at the same time, each of them calls `run`.
 * - One call of `run` has at most as many tasks as the field `threads` of the description or of
 *   bsmm_exec says. Work for a single thread is done by the calling thread, without `run`.
 * - Tasks need 256 KiB of stack and the default floating-point environment (round to nearest,
 *   subnormals kept).
 * - If `run` leaves tasks out, or returns before every task has returned, the library's call
 *   returns INVALID and its outputs are unspecified.
 *
 * The library reads the struct only during a call. A plan keeps a copy of the pool in its
 * description. */
typedef struct bsmm_pool {
    uint32_t struct_size;
    uint32_t reserved;     /* Must be 0 */
    bsmm_parallel_for run; /* Function that runs tasks; never NULL */
    void *context;         /* First argument of run */
} bsmm_pool;

/* ------------------------------------------------------------------------------------------
 * A product in one call, without a plan
 * ---------------------------------------------------------------------------------------- */

/* A bsmm_compute is the accuracy that the caller requires of a product. */
typedef enum bsmm_compute {
    /* Products of elements are exact, and sums are in fp32 or better. There is one exception: FP8
     * with fp32 scales, mxfp4 and mxfp6 use the FP8 tensor cores of a Hopper GPU, which sum less
     * exactly (docs/NUMERICS.md). */
    BSMM_COMPUTE_EXACT = 0,
    /* The library may also choose kernels with a larger, documented error bound. */
    BSMM_COMPUTE_FAST = 1
} bsmm_compute;

/* These flags are properties of a product. Flags are combined by addition. */
typedef enum bsmm_matmul_flags {
    /* For plans only: the number of rows of A, C, D and the residual may differ from run to run.
     * The description gives the maximum number of rows, and bsmm_buffers gives the number of each
     * run. The buffers of every run must have room for the maximum, with its leading dimensions and
     * its scale layout. */
    BSMM_MATMUL_ANY_ROWS = 1,
    /* The order in which the terms of a result are added depends on the formats and on K alone
     * (docs/NUMERICS.md, Order of sums). A row of D is then bitwise identical for every M, index of
     * the row, content of other rows, division into groups and number of threads. Kernels that
     * cannot promise this refuse the product. */
    BSMM_MATMUL_BATCH_INVARIANT = 2
} bsmm_matmul_flags;

/* A bsmm_packed_form is the data layout of packed weights, i.e. of the copy of B that bsmm_pack_b
 * makes, and that runs read instead of B.
 *
 * Packed weights consist of a header and of B in this layout, including its second-level scale. The
 * header says what was packed. It names no kernel and no number of rows, so that every plan whose
 * kernel reads the layout can use the weights, with any M and any A. docs/PACKING.md describes the
 * bytes. The bytes depend only on B's values, its format, N, K, the number of groups, the kind of
 * device ("cpu", "cuda" or "hip"), the form and, with WIDE, the name of the panels. B's order,
 * leading dimension and scale layout change no byte. */
typedef enum bsmm_packed_form {
    /* Each run reads B from its own buffers, in the layout that the product's description gives. */
    BSMM_PACKED_NONE = 0,
    /* Decoded values of B are stored in panels, followed by a copy of B. A panel is a block of rows
     * of B in the order in which a kernel reads them. There are several panel layouts, each with a
     * name, which the header contains. The layout of a plan depends only on the formats of A and B,
     * N, K, `compute` and the processor; `b_panels` or `kernel` may choose another. If no kernel
     * that accepts the product reads this layout, for example because of C, runs read the copy of B
     * after the panels. bsmm_plan_packed_info gives the layout's name. */
    BSMM_PACKED_WIDE = 1,
    /* The codes and scales of B are stored in one order that is fixed for the kind of device. If B
     * is row-major and each of its matrices has at least 64 KiB and 64 rows, packed weights take
     * at most 3% more bytes than B (docs/PACKING.md has the other cases). Every kernel of every
     * device reads this form. */
    BSMM_PACKED_COMPACT = 2
} bsmm_packed_form;

/* A bsmm_matmul_desc is the description of a product, D = round(epilogue(alpha * A x B^T + beta * C
 * + bias)). N is b->rows. D has N columns, or N / 2 columns if the activation is gated. */
typedef struct bsmm_matmul_desc {
    uint32_t struct_size;
    uint32_t compute;     /* Accuracy, a bsmm_compute */
    const bsmm_matrix *a; /* Matrix A of shape (M, K), in any format */
    const bsmm_matrix *b; /* Matrix B of shape (N, K), in any format */
    /* Matrix C of shape (M, N) in f32, f16 or bf16. NULL unless beta is used. It may be the matrix
     * d itself if the two descriptions are equal. */
    const bsmm_matrix *c;
    /* Matrix D of shape (M, N): unscaled f32, f16, bf16 or 8-bit float, or any block-scaled format.
     * A block-scaled D is quantized as it is stored. Its second-level scale d->global_scale is an
     * input that the caller chooses. */
    const bsmm_matrix *d;
    const float *alpha; /* Factor of A x B^T, finite, read when the plan is made; NULL = 1 */
    /* Factor of C, finite, read when the plan is made; NULL = 0. If it is 0, C is not read. */
    const float *beta;
    const void *bias; /* N values, one per column, added to every row; NULL = none */
    /* Format of bias: BSMM_ELEM_F32, F16 or BF16. BSMM_ELEM_NONE means no bias, and `bias` must
     * then be NULL. */
    uint32_t bias_elem;
    uint32_t threads; /* Number of threads; 0 = one per processor; never changes results */
    /* Quantization recipe of a block-scaled D; NULL = the default of its format */
    const char *recipe;
    /* Name of the device: "cpu", "cuda:0" (NVIDIA), "hip:0" (AMD), or a simulated GPU such as
     * "sim:gfx950" or "sim:sm_100". NULL = "cpu". bsmm_local_device_at lists the devices of this
     * machine. */
    const char *device;
    /* Name of the kernel to use; NULL = the first kernel that accepts the product */
    const char *kernel;
    /* Form of packed weights, a bsmm_packed_form. With NONE, runs read B. Other forms are for plans
     * only: each run then gets packed_b (from bsmm_pack_b) instead of B. With WIDE, the workspace
     * has no room for packing B if runs read the panels. */
    uint32_t b_packed;
    uint32_t flags;                /* Properties, a sum of bsmm_matmul_flags */
    const bsmm_epilogue *epilogue; /* The epilogue; NULL = none */
    const bsmm_group *group;       /* The groups; NULL = one product */
    /* Thread pool for work on the cpu. Runs of the plan use it if they give no pool of their own.
     * NULL = OpenMP's threads. */
    const bsmm_pool *pool;
    /* Only used with b_packed = WIDE: the name of the layout (panels) of the decoded B in packed_b,
     * such as "bf16_k32_n48". If no kernel reads this layout, the plan is refused. NULL = the
     * fastest layout for the formats. */
    const char *b_panels;
} bsmm_matmul_desc;

/* Multiplies the matrices that the description points to. It reads A, B, C and bias, and writes D
 * and the scales of D. D must not overlap A or B. The call allocates a workspace and frees it
 * before it returns.
 *
 * On a GPU, the pointers of all matrices, of bias and of second-level scales are device memory. The
 * call uses the default stream and returns when D is complete. */
BSMM_API bsmm_status bsmm_matmul(const bsmm_matmul_desc *desc);

/* ------------------------------------------------------------------------------------------
 * Plans: validate and choose once, run many times
 * ---------------------------------------------------------------------------------------- */

/* A bsmm_plan is a validated product with its chosen kernel. A plan never changes after its
 * creation. Several threads may run one plan at once if each has a workspace of its own. */
typedef struct bsmm_plan bsmm_plan;

/* Validates the description and chooses the kernel. It reads alpha, beta and all names (device,
 * kernel, recipe, b_panels), which need not live longer than the call. It does not read the memory
 * of the matrices. Runs of the plan take a bias if desc->bias is not NULL or desc->bias_elem is not
 * NONE. After a failure, *plan is NULL. */
BSMM_API bsmm_status bsmm_plan_create(const bsmm_matmul_desc *desc, bsmm_plan **plan);
BSMM_API void bsmm_plan_destroy(bsmm_plan *plan); /* Destroys a plan. `plan` may be NULL. */

/* bsmm_plan_kernel returns the name of the chosen kernel. bsmm_plan_workspace_bytes returns the
 * size in bytes of the workspace that each concurrent run needs; the workspace must be aligned to
 * 64 bytes.
 *
 * Some CPU kernels pack B in every run, one part of B at a time. Their workspace holds packed A, a
 * packed part of B, and up to 2 MiB for each thread. Let T be the number of threads of the plan, L
 * the bytes of an L2 cache, P the bytes of a packed panel (at most 64 rows of B over all of K), and
 * R the bytes of all packed panels of 512 rows of B. The packed part of B takes at most the larger
 * of these two sizes:
 * - 32 * T * L bytes, or T * L bytes if A has at most 128 rows;
 * - T * P + R bytes, or T * R bytes if D is block-scaled.
 * The part may take twice as many bytes if the epilogue has a gated activation (f(gate) * up) with
 * BSMM_HALVES_SPLIT, i.e. if one half of B's rows gives the gates and the other half the ups. */
BSMM_API const char *bsmm_plan_kernel(const bsmm_plan *plan);
BSMM_API uint64_t bsmm_plan_workspace_bytes(const bsmm_plan *plan);

/* A bsmm_buffers describes the memory of one run of a plan. Fields with the same names as in
 * bsmm_matrix have the same meaning. On a GPU, every pointer except the stream and the pool is
 * device memory (from cudaMalloc, hipMalloc or a framework's tensor), not managed memory. This
 * includes second-level scales. Some kernels need elements and scales aligned to 16 bytes; a run
 * with other alignments then fails. */
typedef struct bsmm_buffers {
    uint32_t struct_size;
    uint32_t reserved;        /* Must be 0 */
    const void *a, *a_scales; /* Elements and scales of A; NULL scales if A is unscaled */
    const float *a_global;    /* Second-level scale of A, one value; NULL = 1 */
    const void *b, *b_scales; /* Elements and scales of B; a run with packed_b does not read them */
    const float *b_global;    /* Second-level scale of B; a run with packed_b does not read it */
    const void *c;            /* Elements of C; NULL unless beta is not 0 */
    void *d, *d_scales;       /* Elements and scales of D; the run writes them */
    const float *d_global; /* Second-level scale of D, an input that the caller chooses; NULL = 1 */
    const void *bias;      /* The bias, N values; NULL unless the plan has a bias */
    void *workspace;       /* Workspace, aligned to 64 bytes */
    /* Size of the workspace in bytes, at least bsmm_plan_workspace_bytes */
    uint64_t workspace_bytes;
    const void *packed_b;    /* Packed weights from bsmm_pack_b, for a plan with b_packed */
    uint64_t packed_b_bytes; /* Size of packed_b in bytes */
    /* The stream in which a run on a GPU is queued: a CUstream (cudaStream_t) or a hipStream_t.
     * NULL = the default stream. The cpu does not use it. */
    void *stream;
    const void *residual;   /* Elements of the residual; NULL unless the epilogue has one */
    const float *row_scale; /* One factor per row of D; NULL unless the epilogue scales by row */
    /* One factor per column of D; NULL unless the epilogue scales by column */
    const float *col_scale;
    /* Number of rows of this run in a plan with BSMM_MATMUL_ANY_ROWS, from 0 to the number of rows
     * in the plan's description; 0 in other plans. Rows of D after the run's last row are not
     * written. If D has scales, the scales of the rows after the run's last row count as padding: 0
     * is written to them, up to the end of the last tile of the scale layout that the run uses. */
    int64_t rows;
    /* One number in the device's memory that replaces the field `rows`. The run reads it when it
     * executes, not when it is queued. Kernels clamp it to the range from 0 to the number of rows
     * in the plan's description. NULL = the field `rows` applies. */
    const int32_t *device_rows;
    const int32_t *group_sizes; /* Sizes of the G groups, for kinds ROWS, MASKED and K */
    const int32_t *gather;      /* Row of A for each row of D, with BSMM_GROUP_GATHER_A */
    const float *group_alpha; /* Factor alpha of each of the G groups, with BSMM_GROUP_EACH_ALPHA */
    const bsmm_pool *pool;    /* Thread pool for this run on the cpu; NULL = the pool of the plan */
} bsmm_buffers;

/* Returns the size in bytes of the packed weights that bsmm_pack_b writes for this plan. They have
 * the form desc->b_packed, or WIDE if desc->b_packed is NONE. The caller may write the packed
 * weights to a file and map the file later.
 *
 * If the plan cannot pack B, the function returns 0. No plan can pack the B of groups of kind K. A
 * plan with desc->b_packed = NONE cannot pack B if its kernel never reads panels. On a GPU, such a
 * plan can pack B only if B is row-major without gaps between rows and its scales are row-major. */
BSMM_API uint64_t bsmm_plan_packed_b_bytes(const bsmm_plan *plan);
/* Packs buffers->b, b_scales and b_global into `packed`, which must be aligned to 64 bytes. With
 * groups it packs all matrices of the stack B. It reads no other field of `buffers` except the
 * stream and the pool. B itself is not needed afterwards.
 *
 * A run on the cpu refuses weights that were packed in another form, or for another format, shape,
 * number of groups or layout of panels; the message names the field.
 *
 * On a GPU the packing is queued in buffers->stream. A run on a GPU does not check that packed_b
 * belongs to the plan, because it would have to wait for the stream to read the header. The caller
 * must ensure it, e.g. by bsmm_packed_describe of a copy of the first 128 bytes in host memory. */
BSMM_API bsmm_status bsmm_pack_b(const bsmm_plan *plan, const bsmm_buffers *buffers, void *packed,
                                 uint64_t packed_bytes);

/* A bsmm_packed_form_info has the properties of a form of packed weights. */
typedef struct bsmm_packed_form_info {
    uint32_t struct_size; /* sizeof(bsmm_packed_form_info) */
    uint32_t form;        /* The form, a bsmm_packed_form */
    const char *name;     /* Name of the form, such as "compact"; static storage */
    uint32_t version;    /* Version of the form's bytes; a library reads one version of each form */
    uint32_t reserved;   /* Always 0 */
    const char *devices; /* Kinds of devices with kernels that read the form, separated by spaces */
    const char *contents; /* Description of the form's bytes, static storage */
} bsmm_packed_form_info;

/* Gives the properties of form number `index`, counted from 0. Returns NOT_FOUND past the last
 * form. */
BSMM_API bsmm_status bsmm_packed_form_at(uint32_t index, bsmm_packed_form_info *info);

/* A bsmm_packed_info has the contents of the header of packed weights. */
typedef struct bsmm_packed_info {
    uint32_t struct_size; /* sizeof(bsmm_packed_info) */
    uint32_t form;        /* The form, a bsmm_packed_form */
    uint32_t version;     /* Version of the form's bytes */
    uint32_t global_kind; /* Kind of the second-level scales, a bsmm_global */
    char device[16];      /* Kind of device: "cpu", "cuda" or "hip" */
    /* Layout of the panels if form is WIDE, such as "int8_k32_n32"; else "" */
    char panels[16];
    bsmm_format format; /* Format of B */
    int64_t rows, cols; /* N and K */
    int64_t groups; /* Number of matrices of B if B has one matrix per group; 0: B is one matrix */
    uint64_t bytes; /* Size of the packed weights, including the header */
} bsmm_packed_info;

/* Reads the header of packed weights in host memory. `bytes` is the size of the packed weights, at
 * least 128. Returns INVALID, and names the field, if an older version of the library packed them,
 * if this library does not know the form or its version, or if `bytes` is less than the size in the
 * header. */
BSMM_API bsmm_status bsmm_packed_describe(const void *packed, uint64_t bytes,
                                          bsmm_packed_info *info);

/* Describes the packed weights that bsmm_pack_b makes for a plan, and that runs of the plan take.
 * The form is desc->b_packed, or WIDE if desc->b_packed is NONE. Returns UNSUPPORTED if
 * bsmm_plan_packed_b_bytes is 0. */
BSMM_API bsmm_status bsmm_plan_packed_info(const bsmm_plan *plan, bsmm_packed_info *info);

/* Gives the size in bytes of packed weights without a plan. `b` gives the format, rows and cols of
 * B; its memory is not read. `groups` is the number of matrices in the stack B, or 0 if B is one
 * matrix. `a` is the format of A, for WIDE only (else it may be NULL); the size is then that of
 * plans with compute EXACT that name neither panels nor kernel. A `device` of NULL means "cpu".
 * Returns UNSUPPORTED if no kernel of the device reads the form. */
BSMM_API bsmm_status bsmm_packed_bytes(const char *device, uint32_t form, const bsmm_matrix *b,
                                       int64_t groups, const bsmm_format *a, uint64_t *bytes);

/* Writes matrix number `index` of packed weights to b->data, b->scales and *b->global_scale.
 * `index` is 0 unless the weights are a stack. The weights may have any form and kind of device;
 * weights of a GPU must have been copied to host memory. `b` must have the format, rows and cols of
 * the packed weights; its order, leading dimension and scale layout may differ. If the weights have
 * no second-level scale, b->global_scale may be NULL; if it is not NULL, *b->global_scale becomes
 * 1. Padding is not written. */
BSMM_API bsmm_status bsmm_unpack_b(const void *packed, uint64_t packed_bytes, int64_t index,
                                   const bsmm_matrix *b);

/* Runs a plan. It allocates nothing. Returns INVALID, and names the field, in these cases:
 * - A pointer is missing or misaligned, or the workspace is too small.
 * - An array is given that the plan does not use (c, bias, residual, factors, arrays of groups).
 * - D overlaps a buffer that the run reads, or the workspace or packed_b overlaps any other buffer.
 *
 * On a GPU the work is queued in buffers->stream. The call does not wait for the stream, so that it
 * may be captured into a graph, and it reports only errors that are known before the work starts.
 * Pointers to host memory or to memory of another GPU are INVALID. */
BSMM_API bsmm_status bsmm_plan_run(const bsmm_plan *plan, const bsmm_buffers *buffers);

/* A bsmm_explanation says whether one kernel accepts a product. If the kernel accepts, the struct
 * has the kernel's error bound; otherwise it has the reason of the refusal. */
typedef struct bsmm_explanation {
    uint32_t struct_size;
    uint32_t accepts;   /* 1 if the kernel accepts, else 0 */
    const char *kernel; /* Name of the kernel, in static storage */
    char reason[240];   /* Reason of a refusal; empty if the kernel accepts */
    /* Bound of the error of an element before the epilogue and the last rounding, as a multiple of
     * |alpha| * sum |a||b|, where the sum runs over K. 0 if the kernel refuses. */
    double bound;
    /* Kind of device that the kernel runs on ("cpu", "cuda", "hip"); static storage */
    const char *device;
    /* Size of packed B in bytes (bsmm_plan_packed_b_bytes); 0 if the kernel refuses */
    uint64_t packed_b_bytes;
    /* Number of parts into which the kernel splits K (split-K), because the tiles of D alone would
     * occupy too few processors. The partial sums are added at the end. 1 if the kernel does not
     * split K, or does not split it into equally many parts for all tiles of D; 0 if the kernel
     * refuses. */
    uint32_t k_parts;
    uint32_t reserved; /* Always 0 */
} bsmm_explanation;

/* Asks kernel number `index` of the library's list whether it accepts desc. A plan tries the
 * kernels in the order of the list, from 0, and takes the first that accepts. The function ignores
 * desc->kernel. It returns NOT_FOUND past the last kernel, and INVALID if the description breaks a
 * rule. */
BSMM_API bsmm_status bsmm_explain(const bsmm_matmul_desc *desc, uint32_t index,
                                  bsmm_explanation *explanation);

/* ------------------------------------------------------------------------------------------
 * Quantization
 * ---------------------------------------------------------------------------------------- */

/* These flags are options of a quantization recipe, i.e. of the named rule that chooses scales
 * (docs/RECIPES.md). Several flags are combined by addition. */
typedef enum bsmm_quantize_flags {
    /* Round f32 scales to powers of two, the values of e8m0. docs/RECIPES.md says for each recipe
     * whether it rounds up or to nearest. */
    BSMM_QUANTIZE_POW2 = 1,
    /* Write no per-tensor scale. This is for recipes whose per-tensor scale is optional. */
    BSMM_QUANTIZE_ONE_LEVEL = 2
} bsmm_quantize_flags;

/* A bsmm_quantize_desc is the description of a quantization: the source matrix, the destination
 * matrix and the recipe, i.e. the named rule that chooses scales. */
typedef struct bsmm_quantize_desc {
    uint32_t struct_size;
    uint32_t flags;         /* Options, a sum of bsmm_quantize_flags */
    const bsmm_matrix *src; /* Source, unscaled f32, f16 or bf16 */
    /* Destination, in any format. The call writes its elements and scales; it also writes
     * global_scale if the recipe has a per-tensor scale. It writes 0 to the padding of the
     * scales. */
    const bsmm_matrix *dst;
    /* Name of the recipe, "ocp", "rceil", ...; NULL = the default of the format */
    const char *recipe;
    /* Largest magnitude of the whole tensor, one value. It is needed if src is only a part of the
     * tensor. NULL = computed from src. */
    const float *amax;
    uint32_t threads;  /* Number of threads; 0 = one per processor */
    uint32_t reserved; /* Must be 0 */
    /* Name of the device, as in bsmm_matmul_desc. On a GPU, amax and all pointers of the matrices
     * are device memory, and the call only queues the work. */
    const char *device;
    void *stream;          /* Stream of a GPU, as in bsmm_buffers */
    const bsmm_pool *pool; /* Thread pool for work on the cpu; NULL = OpenMP's threads */
} bsmm_quantize_desc;

/* A bsmm_exec names the device and the threads that run a conversion. On a GPU all pointers of the
 * matrices are device memory. The call then only queues the work in the stream. It allocates
 * nothing and may be captured into a graph. */
typedef struct bsmm_exec {
    uint32_t struct_size;
    uint32_t threads;      /* Number of CPU threads; 0 = one per processor */
    const char *device;    /* "cpu" or "cuda:0"; NULL = "cpu" */
    void *stream;          /* Stream of a GPU, as in bsmm_buffers */
    const bsmm_pool *pool; /* Thread pool for work on the cpu; NULL = OpenMP's threads */
} bsmm_exec;

/* A bsmm_quantize_report has the error of a quantized matrix. x is an original value, and q is the
 * quantized value of the same element. */
typedef struct bsmm_quantize_report {
    uint32_t struct_size;
    uint32_t reserved;
    double sqnr_db;   /* Signal to noise in dB, 10 log10(sum x^2 / sum (x - q)^2); +Inf if exact */
    double max_error; /* Largest |x - q| */
    /* Fraction of all elements whose |x| is above the largest value that the block's scale
     * allows */
    double clipped;
    double underflowed; /* Fraction of all elements with x not 0 and q = 0 */
    double signal;      /* Sum of x^2. The sums of several parts of a tensor may be added. */
    double noise;       /* Sum of (x - q)^2 */
    int64_t count;      /* Number of elements */
} bsmm_quantize_report;

/* Quantizes a matrix by a named recipe. On every device, the result is bitwise identical to what
 * the recipe's original code writes (bsmm_recipe_info.source names this code). `report` may be
 * NULL. It must be NULL on a GPU. */
BSMM_API bsmm_status bsmm_quantize(const bsmm_quantize_desc *desc, bsmm_quantize_report *report);

/* Compares a matrix of values with a quantized matrix of the same shape, and gives the error of the
 * quantized matrix. Both may have any format, so src may be quantized too. */
BSMM_API bsmm_status bsmm_compare(const bsmm_matrix *src, const bsmm_matrix *quantized,
                                  bsmm_quantize_report *report);
/* Does the work of bsmm_compare with the threads of `exec`; NULL means the cpu with its default
 * threads. Returns UNSUPPORTED for a GPU. */
BSMM_API bsmm_status bsmm_compare_on(const bsmm_exec *exec, const bsmm_matrix *src,
                                     const bsmm_matrix *quantized, bsmm_quantize_report *report);

/* Gives max |x| of an unscaled f32, f16 or bf16 matrix. The result is NaN if any element is NaN,
 * and 0 if the matrix is empty. */
BSMM_API bsmm_status bsmm_amax(const bsmm_matrix *src, float *amax);
/* Does the work of bsmm_amax on the device of `exec`; NULL means the cpu. On a GPU, `amax` also
 * points to device memory. */
BSMM_API bsmm_status bsmm_amax_on(const bsmm_exec *exec, const bsmm_matrix *src, float *amax);

/* Converts a matrix of any format to unscaled f32, f16 or bf16. The exact value of each element is
 * rounded once, to nearest even. */
BSMM_API bsmm_status bsmm_dequantize(const bsmm_matrix *src, const bsmm_matrix *dst);
/* Does the work of bsmm_dequantize on the device of `exec`. If `exec` is NULL, it runs on the
 * CPU. */
BSMM_API bsmm_status bsmm_dequantize_on(const bsmm_exec *exec, const bsmm_matrix *src,
                                        const bsmm_matrix *dst);

/* Converts a matrix to another format without rounding. Every value is kept exactly. If that is not
 * possible, the call returns RANGE, the message names the block, and dst's content is unspecified.
 * All memory is host memory. The conversions are:
 * - mxfp4 to nvfp4 (this also writes *dst->global_scale);
 * - mxfp4 to fp8_block128 and fp8_group128;
 * - any format to itself with another storage order or scale layout. */
BSMM_API bsmm_status bsmm_convert(const bsmm_matrix *src, const bsmm_matrix *dst);
/* Does the work of bsmm_convert with the threads of `exec`; NULL means the cpu with its default
 * threads. Returns UNSUPPORTED for a GPU. */
BSMM_API bsmm_status bsmm_convert_on(const bsmm_exec *exec, const bsmm_matrix *src,
                                     const bsmm_matrix *dst);

/* Copies scales from one scale layout to another. src and dst must describe the same rows, cols and
 * format; their scale fields may differ. Only scales are written, and 0 is written to their
 * padding. */
BSMM_API bsmm_status bsmm_relayout_scales(const bsmm_matrix *src, const bsmm_matrix *dst);
/* Does the work of bsmm_relayout_scales on the device of `exec`; NULL means the cpu. */
BSMM_API bsmm_status bsmm_relayout_scales_on(const bsmm_exec *exec, const bsmm_matrix *src,
                                             const bsmm_matrix *dst);

/* ------------------------------------------------------------------------------------------
 * Lists of formats, layouts, activations and recipes. Each *_at function gives entry `index`,
 * counted from 0, and returns NOT_FOUND past the last entry. Strings have static storage.
 * ---------------------------------------------------------------------------------------- */

/* A bsmm_elem_info has the properties of an element format or of the scale format e8m0. `bits` is
 * the width of a whole code, including its sign. `max` is the largest finite value. min_normal is
 * the smallest positive normal value, and min_subnormal is the smallest positive subnormal
 * value. */
typedef struct bsmm_elem_info {
    uint32_t struct_size;
    uint32_t elem;                               /* The format, a bsmm_elem */
    const char *name;                            /* Name of the format, such as "e4m3" */
    uint32_t bits, exponent_bits, mantissa_bits; /* Widths in bits; `bits` counts the whole code */
    int32_t bias;                                /* Bias of the exponent */
    double max, min_normal, min_subnormal;       /* The values as numbers; 0 if there is none */
    const char *nan, *inf, *zeros; /* Codes of NaN, Inf and zero, as text; "none" if none */
    const char *used_by;           /* Hardware and block formats that use this format, as text */
} bsmm_elem_info;
/* Gives the properties of element format number `index`, counted from 0. Returns NOT_FOUND past the
 * last one. */
BSMM_API bsmm_status bsmm_elem_at(uint32_t index, bsmm_elem_info *info);

/* A bsmm_preset_info describes a preset, i.e. a block-scaled format with a name. */
typedef struct bsmm_preset_info {
    uint32_t struct_size;
    uint32_t reserved;
    const char *name;         /* Name of the preset, such as "mxfp8" */
    bsmm_format format;       /* The format with this name */
    const char *second_level; /* Kind of second-level scale: "none" or "optional f32 per tensor" */
    const char *used_by;      /* Hardware and checkpoints that use it, as text */
    const char *default_recipe; /* Recipe that bsmm_quantize uses if the caller names none */
    /* Bits of an element, plus the bits of a block's scale divided by the block's number of
     * elements */
    double bits_per_weight;
} bsmm_preset_info;
/* Gives preset number `index`, counted from 0. Returns NOT_FOUND past the last one. */
BSMM_API bsmm_status bsmm_preset_at(uint32_t index, bsmm_preset_info *info);

/* A bsmm_digit is one part of the formula by which a tiled scale layout permutes the scales of a
 * tile. The layout writes the row of a scale inside its tile as a mixed-radix number, and the
 * column as another one. A digit i of the row (column) is (row / divisor) % extent, where the
 * divisor is the product of the extents of the earlier digits of the row (column). The offset of a
 * scale inside its tile is the sum of digit * stride over all digits of both. The tiles themselves
 * follow one another in row-major order. */
typedef struct bsmm_digit {
    uint32_t axis;           /* 0: a digit of the row; 1: a digit of the column */
    uint32_t extent, stride; /* Number of values of the digit; its stride in scales */
} bsmm_digit;
/* A bsmm_layout_info has the properties of a scale layout. `padding` says to which size the layout
 * pads a matrix of scales. `offset` is the formula of an offset. `used_by` names the libraries that
 * use the layout. If tile_rows and tile_cols are 0, the layout has no tiles, or the fields
 * scale_tile_rows and scale_tile_cols of a bsmm_matrix give the size of its tiles. */
typedef struct bsmm_layout_info {
    uint32_t struct_size;
    uint32_t layout;                               /* The layout, a bsmm_layout */
    const char *name, *padding, *offset, *used_by; /* Name, and the properties as text */
    uint32_t tile_rows, tile_cols;                 /* Size of a tile in scales; 0: no fixed tile */
    uint32_t digit_count; /* Number of digits; 0: rows or columns at a constant stride */
    /* The digits. The digits of one axis are in order, the least significant digit first. */
    bsmm_digit digits[6];
} bsmm_layout_info;
/* Gives the properties of scale layout number `index`, counted from 0. Returns NOT_FOUND past the
 * last one. */
BSMM_API bsmm_status bsmm_layout_at(uint32_t index, bsmm_layout_info *info);
/* Gives the scale layout, a bsmm_layout, of a name. Returns NOT_FOUND if the name is unknown. */
BSMM_API bsmm_status bsmm_layout_from_name(const char *name, uint32_t *layout);

/* Gives the offset, in scales, of the scale of block (block_row, block_col) in the scale layout of
 * `matrix`. Returns INVALID if the description breaks a rule or there is no such block. */
BSMM_API bsmm_status bsmm_scale_offset(const bsmm_matrix *matrix, int64_t block_row,
                                       int64_t block_col, uint64_t *offset);

/* A bsmm_activation_info has the properties of an activation. */
typedef struct bsmm_activation_info {
    uint32_t struct_size;
    uint32_t activation; /* The activation, a bsmm_activation */
    const char *name;    /* Name of the activation, such as "gelu_tanh" */
    const char *formula; /* Formula f(x), or f(gate) of a gated activation, as text */
    const char *source;  /* Source of the formula */
    uint32_t is_gated;   /* 1: gated, i.e. it takes gate and up from two columns */
    uint32_t has_slope;  /* 1: bsmm_epilogue.slope changes the result; 0: it does not */
} bsmm_activation_info;
/* Gives the properties of activation number `index`, counted from 0. Returns NOT_FOUND past the
 * last one. */
BSMM_API bsmm_status bsmm_activation_at(uint32_t index, bsmm_activation_info *info);

/* A bsmm_recipe_info has the properties of a recipe, i.e. of a named rule that chooses scales and
 * rounds values. */
typedef struct bsmm_recipe_info {
    uint32_t struct_size;
    uint32_t flags;            /* Options that the recipe accepts, a sum of bsmm_quantize_flags */
    const char *name;          /* Name of the recipe, such as "ocp" */
    const char *formats;       /* Presets that the recipe writes, separated by spaces */
    const char *rule, *source; /* Rule for scales; project whose bytes the recipe reproduces */
} bsmm_recipe_info;
/* Gives the properties of recipe number `index`, counted from 0. Returns NOT_FOUND past the last
 * one. */
BSMM_API bsmm_status bsmm_recipe_at(uint32_t index, bsmm_recipe_info *info);

/* ------------------------------------------------------------------------------------------
 * Devices and speed of light
 * ---------------------------------------------------------------------------------------- */

/* A bsmm_device_info has the peak rates of a known device from its data sheet. f32 to f4 are the
 * rates of dense products of matrices with elements of 32 to 4 bits. A multiply-add counts as two
 * operations. */
typedef struct bsmm_device_info {
    uint32_t struct_size;
    /* CDNA generation of AMD's matrix cores (bsmm_mfma_info), 1 to 4; 0: other devices */
    uint32_t cdna;
    const char *name;            /* Short name, such as "mi300x" */
    const char *title;           /* Product name, such as "AMD Instinct MI300X" */
    double f32, f16, f8, f6, f4; /* Dense peaks in operations/s; 0: no unit for this width */
    double bandwidth;            /* Memory bandwidth in bytes/s */
    const char *source;          /* Source of the figures */
    /* Number of matrix cores, four in each compute unit, if cdna is not 0; else 0 */
    uint32_t matrix_cores;
    uint32_t megahertz; /* Maximum clock of the matrix cores in MHz; 0 if cdna is 0 */
} bsmm_device_info;
/* Gives the peak rates of known device number `index`, counted from 0. Returns NOT_FOUND past the
 * last one. */
BSMM_API bsmm_status bsmm_device_at(uint32_t index, bsmm_device_info *info);

/* A bsmm_local_device is a device of this machine: "cpu", a GPU whose driver is present ("cuda:0",
 * "hip:0", and so on), or a simulated GPU ("sim:gfx942", "sim:gfx950", "sim:sm_80", "sim:sm_90a",
 * "sim:sm_100", "sim:sm_120"; a second one is "sim:sm_100:1"). `features` of a CPU lists its
 * instruction sets. `features` of a GPU lists its architecture ("sm_90a", "gfx942"), its memory,
 * its L2 cache and the version of its driver. */
typedef struct bsmm_local_device {
    uint32_t struct_size;
    uint32_t cores;     /* CPU: number of hardware threads; GPU: number of multiprocessors (SMs) */
    char name[32];      /* Name for bsmm_matmul_desc.device, such as "cpu" */
    char title[96];     /* Product name */
    char features[160]; /* Features, separated by spaces */
} bsmm_local_device;
/* Gives device number `index`, counted from 0. Returns NOT_FOUND past the last one. */
BSMM_API bsmm_status bsmm_local_device_at(uint32_t index, bsmm_local_device *info);

/* ---- Device memory, for callers that have no other runtime ----
 *
 * These functions are optional: all functions of this header also take pointers of a device's own
 * runtime (from cudaMalloc, hipMalloc or a framework's tensor). `exec` names the device and the
 * stream, as for conversions; NULL means the cpu. If work that is queued in a stream reads or
 * writes host memory, that memory must stay valid until the work is done. */

/* Allocates `bytes` bytes of memory of a device ("cpu", "cuda:0"), aligned to 64 bytes. If bytes is
 * 0, *memory is NULL. Returns MEMORY if the device has not enough memory. The caller must free
 * every allocation by bsmm_free_memory on the same device. */
BSMM_API bsmm_status bsmm_allocate_memory(const char *device, uint64_t bytes, void **memory);

/* Frees memory that bsmm_allocate_memory returned; NULL is allowed. No queued work may still use
 * the memory. */
BSMM_API bsmm_status bsmm_free_memory(const char *device, void *memory);

/* Copies `bytes` bytes. On a GPU the copy is queued in the stream. Each pointer may be device
 * memory or host memory; the function finds out which. Source and destination must not overlap. */
BSMM_API bsmm_status bsmm_copy_memory(const bsmm_exec *exec, void *to, const void *from,
                                      uint64_t bytes);

/* Sets `bytes` bytes of the device's memory to `value` (0 to 255). On a GPU the work is queued in
 * the stream. */
BSMM_API bsmm_status bsmm_fill_memory(const bsmm_exec *exec, void *to, uint32_t value,
                                      uint64_t bytes);

/* Waits until all work in exec->stream is done. Returns DEVICE if any of that work failed. */
BSMM_API bsmm_status bsmm_synchronize_stream(const bsmm_exec *exec);

/* A bsmm_sol_estimate is the speed of light of a product on a device, i.e. the least time that any
 * kernel can take, and the resource that limits it. */
typedef struct bsmm_sol_estimate {
    uint32_t struct_size;
    uint32_t reserved;
    double seconds; /* The larger of compute_seconds and memory_seconds */
    /* 2 M N K / peak rate of the fastest arithmetic unit that takes the formats of A and B */
    double compute_seconds;
    double memory_seconds; /* Bytes / bandwidth; each byte of A, B, scales, C and D counts once */
    double operations, bytes; /* 2 M N K operations; bytes of A, B, scales, C and D */
    const char *unit;         /* Arithmetic unit whose peak rate applies, such as "f8" */
    const char *limit;        /* Resource with the longer time: "compute" or "memory" */
} bsmm_sol_estimate;

/* Estimates the speed of light of a product on a known device. `device` is the device's name in the
 * list that bsmm_device_at gives. The memory of the matrices is not read. Returns NOT_FOUND for an
 * unknown device. */
BSMM_API bsmm_status bsmm_estimate_sol(const char *device, const bsmm_matmul_desc *desc,
                                       bsmm_sol_estimate *estimate);

/* ---- matrix instructions (MFMA) of AMD's CDNA 1 to 4 ----
 *
 * One instruction computes D = A B + C for `blocks` independent products of A of shape (m, k) and B
 * of shape (k, n). The 64 lanes of a wave hold the operands. Sparse instructions (v_smfmac) are not
 * listed. */

/* A bsmm_mfma_info describes a dense matrix instruction of one CDNA generation. If the time of an
 * instruction depends on the types of A and B, the list has several entries for the instruction,
 * one for each time. The first of these entries whose fields a and b contain the types in use then
 * applies. */
typedef struct bsmm_mfma_info {
    uint32_t struct_size;
    uint32_t cdna;            /* CDNA generation, 1 to 4 */
    const char *name;         /* LLVM's spelling, such as "v_mfma_f32_16x16x32_fp8_fp8" */
    const char *a, *b;        /* Types of A and B, such as "bf16"; spaces separate alternatives */
    const char *d;            /* Type of C and D: "f32", "i32" or "f64" */
    uint32_t m, n, k, blocks; /* Extents of one product; number of products in one instruction */
    /* Number of cycles until the matrix core accepts the next instruction (4 times the number of
     * passes in AMD's manuals) */
    uint32_t cycles;
    /* Operations per cycle of a compute unit, i.e. of its four matrix cores together */
    uint32_t cu_operations;
    uint32_t is_scaled; /* 1: the instruction takes e8m0 scales for blocks of 32 elements along k */
    uint32_t reserved;  /* Always 0 */
    const char *source; /* Source of the number of cycles */
} bsmm_mfma_info;
/* Gives entry `index` of the list of instructions, which is ordered by generation. Returns
 * NOT_FOUND past the last entry. */
BSMM_API bsmm_status bsmm_mfma_at(uint32_t index, bsmm_mfma_info *info);

/* A bsmm_mfma_operand is an operand of a matrix instruction, which computes D(i, j) = C(i, j) + sum
 * over k of A(i, k) B(k, j). bsmm_mfma_find_place takes two indices, row and col. The comment of
 * each value below says what (row, col) means for the operand. */
typedef enum bsmm_mfma_operand {
    BSMM_MFMA_A = 0,       /* (row, col) = (i, k): the element A(i, k) */
    BSMM_MFMA_B = 1,       /* (row, col) = (k, j): the element B(k, j) */
    BSMM_MFMA_C = 2,       /* (row, col) = (i, j): the element C(i, j) */
    BSMM_MFMA_D = 3,       /* (row, col) = (i, j): the element D(i, j) */
    BSMM_MFMA_SCALE_A = 4, /* (row, col) = (i, q): the scale of A(i, k) for k = 32 q to 32 q + 31 */
    BSMM_MFMA_SCALE_B = 5  /* (row, col) = (q, j): the scale of B(k, j) for k = 32 q to 32 q + 31 */
} bsmm_mfma_operand;

/* A bsmm_mfma_place says in which lane, register and bits of a wave a matrix element lies. An
 * element of 6 bits may begin in one register and end in the next. An element of 64 bits fills two
 * registers. */
typedef struct bsmm_mfma_place {
    uint32_t struct_size;
    uint32_t lane; /* Lane of the wave, 0 to 63 */
    uint32_t reg;  /* Register number, counted from the operand's first register */
    /* Number of the element's lowest bit in the register. For a scale the number is counted from
     * the lowest bit of the byte that holds the scale, because the instruction's op_sel selects
     * this byte. */
    uint32_t low_bit;
    uint32_t bits;     /* Width of the element in bits */
    uint32_t reserved; /* Always 0 */
} bsmm_mfma_place;

/* Finds the registers and lane that hold element (row, col) of product `block` of a matrix
 * instruction. `type` ("e2m1") names the type of A or B if bsmm_mfma_info lists several; NULL means
 * the first of them. Returns NOT_FOUND for an unknown instruction or type. Returns INVALID for an
 * operand that the instruction does not have, or for an index out of range. Sources: AMD's matrix
 * instruction calculator, and the CDNA4 ISA guide for the f8f6f4 instructions, which the calculator
 * lacks. */
BSMM_API bsmm_status bsmm_mfma_find_place(const char *name, const char *type, uint32_t operand,
                                          uint32_t block, uint32_t row, uint32_t col,
                                          bsmm_mfma_place *place);

/* ------------------------------------------------------------------------------------------
 * Files: safetensors (one file, or a sharded model by its index or its folder), GGUF (one file or
 * several) and .npy.
 * A file is mapped into memory. While it is open, no process may truncate it. An open bsmm_file
 * never changes, so any number of threads may read it. Strings and pointers that these functions
 * return stay valid until bsmm_file_close.
 * ---------------------------------------------------------------------------------------- */

typedef struct bsmm_file bsmm_file;

#define BSMM_MAX_DIMS 8

/* Opens a file. `path` is FILE.safetensors, model.safetensors.index.json, FILE.gguf, a folder with
 * one of these, or FILE.npy. If a GGUF model has several files, `path` is the first of them, such
 * as FILE-00001-of-00003.gguf. The content of the file decides its kind, not its name. The message
 * of a FORMAT error names the file, the field and the rule. */
BSMM_API bsmm_status bsmm_file_open(const char *path, bsmm_file **file);
BSMM_API void bsmm_file_close(bsmm_file *file); /* Closes a file. `file` may be NULL. */

/* Returns the kind of the file: "safetensors", "gguf" or "npy". */
BSMM_API const char *bsmm_file_kind(const bsmm_file *file);

/* A bsmm_file_part is one of the files on disk that belong to an open bsmm_file. */
typedef struct bsmm_file_part {
    uint32_t struct_size;
    uint32_t reserved;
    /* Path that was opened; for a shard, the folder of the index plus the shard's name */
    const char *path;
    const void *data; /* Address of the read-only mapping */
    uint64_t bytes;   /* Size of the file when it was opened */
} bsmm_file_part;
/* Gives one of the files on disk that belong to an open bsmm_file. Number 0 is the file itself, or
 * the index of a sharded model; the other files of the model follow. These files are mapped, so the
 * caller must not write output to their paths. Returns NOT_FOUND past the last file. */
BSMM_API bsmm_status bsmm_file_part_at(const bsmm_file *file, uint64_t index, bsmm_file_part *out);

/* Returns the text of a metadata key (an entry of __metadata__ in safetensors, a string in GGUF).
 * Returns NULL if the key is absent or its value is not a string. */
BSMM_API const char *bsmm_file_metadata(const bsmm_file *file, const char *key);
/* Gives metadata entry number `index`, in the order of keys. *value is NULL if the value is not a
 * string, as GGUF's numbers and arrays. Returns NOT_FOUND past the last entry. */
BSMM_API bsmm_status bsmm_file_metadata_at(const bsmm_file *file, uint64_t index, const char **key,
                                           const char **value);

/* A bsmm_value_type is the type of a metadata value. */
typedef enum bsmm_value_type {
    BSMM_VALUE_NONE = 0,
    BSMM_VALUE_INTEGER = 1,  /* signed integer, in `integer` */
    BSMM_VALUE_UNSIGNED = 2, /* unsigned integer, in `natural` */
    BSMM_VALUE_FLOAT = 3,    /* floating point, exactly in `real` */
    BSMM_VALUE_BOOL = 4,     /* 0 or 1, in `natural` */
    BSMM_VALUE_STRING = 5,   /* `count` bytes at `text`, which need not be UTF-8 */
    BSMM_VALUE_ARRAY = 6     /* `count` values of item_type (bsmm_file_value_items) */
} bsmm_value_type;

/* A bsmm_value is a metadata value with its type (source: GGUF specification,
 * gguf_metadata_value_type). In safetensors all values are strings. The bytes at `text` lie in the
 * mapping of the file and do not end with a NUL. */
typedef struct bsmm_value {
    uint32_t struct_size;
    uint32_t type;      /* Type of the value, a bsmm_value_type */
    uint32_t item_type; /* Type of an array's items; never ARRAY */
    uint32_t bits;      /* Stored width in bits of a number, or of an array's numbers: 8 to 64 */
    uint64_t count;     /* Number of bytes of a string, or of items of an array; else 1 */
    int64_t integer;    /* Value of an INTEGER */
    uint64_t natural;   /* Value of an UNSIGNED or BOOL */
    double real;        /* Value of a FLOAT */
    const char *text;   /* Bytes of a STRING */
} bsmm_value;

/* Gives the value of a metadata key. The message of NOT_FOUND names the key. */
BSMM_API bsmm_status bsmm_file_value(const bsmm_file *file, const char *key, bsmm_value *value);

/* Gives items first to first + count - 1 of the array that is the value of a metadata key. Writes
 * them to values[0] to values[count - 1]. The caller sets values[0].struct_size, which is also the
 * stride of `values`. The call sets struct_size of all later values. Returns NOT_FOUND past the
 * last item, and INVALID if the key's value is not an array. The time grows with the number of
 * items. */
BSMM_API bsmm_status bsmm_file_value_items(const bsmm_file *file, const char *key, uint64_t first,
                                           uint64_t count, bsmm_value *values);

/* A bsmm_tensor is one stored tensor. In `shape`, its outermost dimension comes first. */
typedef struct bsmm_tensor {
    uint32_t struct_size;
    uint32_t elem;    /* Element format, a bsmm_elem; NONE if the library has no such format */
    const char *name; /* Name as stored */
    /* Type as the file spells it: "BF16", "F8_E4M3", "U8", "MXFP4", "<f4". A ggml type that the
     * library does not know has the name "type 99", for example, and an unknown size; `bytes` then
     * reaches to the next tensor. */
    const char *dtype;
    uint32_t ndim;                /* Number of dimensions, 0 to BSMM_MAX_DIMS */
    uint32_t order;               /* Storage order of the last two dimensions, a bsmm_order */
    int64_t shape[BSMM_MAX_DIMS]; /* Extents in logical elements, also for packed types */
    const void *data;             /* The mapped bytes; in safetensors they may have any alignment */
    uint64_t bytes;               /* Size of data in bytes */
} bsmm_tensor;
/* Returns the number of tensors of a file; 0 if `file` is NULL. */
BSMM_API uint64_t bsmm_file_tensor_count(const bsmm_file *file);
/* Gives tensor number `index`, counted from 0. Returns NOT_FOUND past the last tensor. */
BSMM_API bsmm_status bsmm_file_tensor_at(const bsmm_file *file, uint64_t index, bsmm_tensor *out);
/* Finds a tensor by its stored name. Returns NOT_FOUND if the file has no such tensor. */
BSMM_API bsmm_status bsmm_file_tensor_find(const bsmm_file *file, const char *name,
                                           bsmm_tensor *out);

/* A bsmm_weight is one matrix (or a batch of matrices) together with all tensors that store it. It
 * is one of these:
 * - a plain float tensor of 2 dimensions or more; the leading dimensions make the batch;
 * - several tensors that a checkpoint family stores for one matrix: elements, scales, a global
 *   scale (bsmm_family_at lists the families);
 * - a tensor of a quantized type of ggml that is no format of this library (Q4_0, Q6_K and IQ4_XS,
 *   for example), given as the f32 values that ggml decodes.
 *
 * A tensor that belongs to a weight is not listed as a weight of its own. Quark and ModelOpt store
 * mxfp4 in tensors with the same names and types. The family is Quark if quantization_config, in
 * the file's metadata or in a config.json beside the file, names Quark. Otherwise it is
 * ModelOpt. */
typedef struct bsmm_weight {
    uint32_t struct_size;
    /* 1: bsmm_weight_matrix gives pointers into the mapped file. 0: the caller must copy the weight
     * by bsmm_weight_unpack, because the file interleaves scales with elements, orders the nibbles
     * of a byte differently, or does not align the data. */
    uint32_t mapped;
    const char *name;      /* Name, such as "model.layers.0.mlp.down_proj.weight" */
    const char *family;    /* Checkpoint family: "plain", "deepseek", "modelopt", ... */
    const char *dtype;     /* Type of the element tensor, as the file spells it */
    bsmm_format format;    /* Formats of the elements and scales */
    int64_t batch;         /* Number of matrices (such as experts), 1 or more */
    int64_t rows, cols;    /* Rows and columns of each matrix */
    uint32_t scale_layout; /* Layout of the scales, a bsmm_layout */
    uint32_t reserved;
} bsmm_weight;
/* Returns the number of weights of a file; 0 if `file` is NULL. */
BSMM_API uint64_t bsmm_file_weight_count(const bsmm_file *file);
/* Gives the properties of a weight. Returns FORMAT, and names the reason, if the weight is
 * recognized but cannot be read safely. Examples are a global scale of 0, swizzled scales whose
 * layout the file does not declare, and 32x32 blocks. *out still has the name and the family. */
BSMM_API bsmm_status bsmm_file_weight_at(const bsmm_file *file, uint64_t index, bsmm_weight *out);
/* Finds a weight by its name; ".weight" at the end may be left out. */
BSMM_API bsmm_status bsmm_file_weight_find(const bsmm_file *file, const char *name,
                                           uint64_t *index);

/* Describes matrix `slice` (0 to batch - 1) of a weight: format, shape, sizes and, if there is one,
 * its global_scale. If `mapped` of the weight is 1, data and scales point into the read-only
 * mapping; otherwise they are NULL. */
BSMM_API bsmm_status bsmm_weight_matrix(const bsmm_file *file, uint64_t index, int64_t slice,
                                        bsmm_matrix *out);
/* Copies the elements and scales of matrix `slice` of a weight to dst, whether the weight is mapped
 * or not. dst must have the description that bsmm_weight_matrix gives, with data and scales in
 * memory of the caller. Returns FORMAT, and names the block, if a scale is no value of its format;
 * dst's content is then unspecified. */
BSMM_API bsmm_status bsmm_weight_unpack(const bsmm_file *file, uint64_t index, int64_t slice,
                                        const bsmm_matrix *dst);

/* Gives the indices of the three tensors that store a weight: elements, block scales and global
 * scale. An index is BSMM_NO_TENSOR if the weight has no such tensor. The function also works for a
 * weight that bsmm_file_weight_at refuses with FORMAT. */
#define BSMM_WEIGHT_TENSORS 3
#define BSMM_NO_TENSOR      UINT64_MAX
BSMM_API bsmm_status bsmm_weight_tensors(const bsmm_file *file, uint64_t index,
                                         uint64_t tensors[BSMM_WEIGHT_TENSORS]);

/* A bsmm_family_info describes a checkpoint family, i.e. a convention for the names and types of
 * the tensors that store a quantized weight. */
typedef struct bsmm_family_info {
    uint32_t struct_size;
    uint32_t writes;         /* 1: bsmm_writer_add_weight can write the formats in `written` */
    const char *name;        /* Name of the family, such as "modelopt" */
    const char *formats;     /* Formats that are read, separated by spaces */
    const char *detected_by; /* Rule that recognizes a file of the family, as text */
    const char *source;      /* Source of the family's rules */
    const char *written;     /* Formats that are written, separated by spaces; "" if none */
} bsmm_family_info;
/* Gives checkpoint family number `index`, counted from 0. Returns NOT_FOUND past the last one. */
BSMM_API bsmm_status bsmm_family_at(uint32_t index, bsmm_family_info *info);

/* A writer makes a safetensors file, a GGUF file, or a .npy file with exactly one tensor; `kind` is
 * "safetensors", "gguf" or "npy". The steps are: create the writer, add tensors, begin, fill the
 * mapped memory, commit.
 *
 * bsmm_writer_begin creates a temporary file in the folder of `path` and reserves its space on the
 * disk. A full disk is therefore an IO error of that call, and not a crash when the memory is
 * filled. bsmm_writer_commit turns the temporary file into `path`. Until then an old file at `path`
 * stays intact; the new file gets its permissions. On file systems with O_TMPFILE, the temporary
 * file has no name, so that a killed process leaves nothing behind. Elsewhere its name is
 * .bsmm-*.tmp.
 *
 * Only one thread at a time may call functions of one writer. Any number of threads may fill the
 * mapped memory. */
typedef struct bsmm_writer bsmm_writer;
/* Creates a writer. Writes nothing to the disk before bsmm_writer_begin. Returns INVALID if `kind`
 * is unknown, if `path` is empty, or if `path` exists but is not a regular file. */
BSMM_API bsmm_status bsmm_writer_create(const char *path, const char *kind, bsmm_writer **writer);
/* Adds a metadata entry. Keys are unique. "quantization_config" and keys that begin with "bsmm."
 * are reserved for the writer. */
BSMM_API bsmm_status bsmm_writer_metadata(bsmm_writer *writer, const char *key, const char *value);
/* Copies all metadata of a GGUF file, with their types, to a writer of kind "gguf". Call it before
 * bsmm_writer_metadata. The file must stay open until bsmm_writer_begin. Returns INVALID if
 * `writer` or `file` is not for GGUF. */
BSMM_API bsmm_status bsmm_writer_copy_metadata(bsmm_writer *writer, const bsmm_file *file);
/* Adds a tensor. `dtype` is spelled as in safetensors ("BF16") or, for GGUF, as ggml's name of the
 * type. `shape` counts logical elements, also for packed types. *index becomes the number of the
 * tensor. */
BSMM_API bsmm_status bsmm_writer_add_tensor(bsmm_writer *writer, const char *name,
                                            const char *dtype, uint32_t ndim, const int64_t *shape,
                                            uint64_t *index);
/* Adds the tensors in which a checkpoint family stores `batch` matrices with the description
 * `matrix`. The memory and the leading dimensions of `matrix` are ignored. The file gets a global
 * scale if matrix->global_scale is not NULL, and always for formats with e4m3 scales. If `family`
 * is NULL, the writer takes the first family that can store the weight. In safetensors, the family
 * "bsmm" can store every weight. Returns UNSUPPORTED if the named family, or for NULL every family,
 * cannot store the weight in this kind of file. *index becomes the number of the weight. */
BSMM_API bsmm_status bsmm_writer_add_weight(bsmm_writer *writer, const char *family,
                                            const char *name, const bsmm_matrix *matrix,
                                            int64_t batch, uint64_t *index);
/* Creates the temporary file and maps it. If the call fails, it removes the temporary file. */
BSMM_API bsmm_status bsmm_writer_begin(bsmm_writer *writer);
/* After bsmm_writer_begin, bsmm_writer_tensor gives the address and size of the bytes of a tensor,
 * and bsmm_writer_weight gives matrix `slice` of a weight. data, scales and global_scale of that
 * matrix point into the mapping for the caller to fill, and global_kind is that of the family. At
 * first the mapping holds 1 for global scales and 0 everywhere else. */
BSMM_API bsmm_status bsmm_writer_tensor(bsmm_writer *writer, uint64_t index, void **data,
                                        uint64_t *bytes);
BSMM_API bsmm_status bsmm_writer_weight(bsmm_writer *writer, uint64_t index, int64_t slice,
                                        bsmm_matrix *out);
/* Packs matrix `slice` of a weight into blocks in which scales and elements alternate, as GGUF
 * stores mxfp4 and nvfp4. This function is for the weights for which bsmm_writer_weight gives a
 * description without data and scales (NULL); it returns INVALID for all others. src must have this
 * description, with data and scales in memory of the caller. Its global_scale is ignored. Returns
 * FORMAT, and names the block, if the file's format cannot store a scale of the matrix. */
BSMM_API bsmm_status bsmm_writer_weight_pack(bsmm_writer *writer, uint64_t index, int64_t slice,
                                             const bsmm_matrix *src);
/* Flushes the temporary file, renames it to `path` and destroys the writer. If the call fails, it
 * also destroys the writer, and `path` is unchanged. */
BSMM_API bsmm_status bsmm_writer_commit(bsmm_writer *writer);
/* Removes the temporary file and destroys the writer; NULL is allowed. */
BSMM_API void bsmm_writer_abort(bsmm_writer *writer);

#ifdef __cplusplus
}
#endif
#endif
