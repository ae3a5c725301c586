/* SPDX-License-Identifier: Apache-2.0
 *
 * bsmm: block-scaled matrix multiplication.
 *
 *     D = round(epilogue(alpha * (A . scale_a) x (B . scale_b)^T + beta * C + bias))
 *
 * A is (M, K), B is (N, K), D and C are (M, N), bias is (N). Elements are 4-, 6-, 8-, 16- or 32-bit
 * floats. A scale covers a block of block_rows x block_cols elements. Blocks run along K, and in D
 * along N. The sections of this file are: status, formats, the matrix, the epilogue, groups,
 * threads, one call, plans, quantization, tables, devices and speed of light, files.
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
 * - The library has little global state: the error message of each thread; facts that the first use
 *   finds out and that never change (the processor's features and caches, tables of elements, the
 *   GPU's driver, a record with a context of each GPU that is used); the GPU modules and functions
 *   loaded so far; and a counter of launches. */
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

/* Returns the version of the loaded library as major * 10000 + minor * 100 + patch. */
BSMM_API uint32_t bsmm_version(void);

/* ------------------------------------------------------------------------------------------
 * Status
 * ---------------------------------------------------------------------------------------- */

/* The result of a function. The numbers of these values never change. */
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

/* Element formats. A finite code has a sign s, an exponent field E and a mantissa field M of m
 * bits; the format has an exponent bias b. If E is 0, the value is (-1)^s 2^(1-b) M/2^m. Otherwise
 * it is (-1)^s 2^(E-b) (1 + M/2^m). */
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
    /* A scale format with the value 2^(code - 127); code 255 is NaN. No matrix has such elements.
     * The value is listed so that bsmm_decode_elem and bsmm_encode_elem take its codes. */
    BSMM_ELEM_E8M0 = 11
} bsmm_elem;

/* Formats of a block's scale. */
typedef enum bsmm_scale {
    BSMM_SCALE_NONE = 0,
    BSMM_SCALE_E8M0 = 1,
    BSMM_SCALE_E4M3 = 2, /* The sign bit counts: codes 0x80..0xFE are negative. */
    BSMM_SCALE_F32 = 3
} bsmm_scale;

/* A block-scaled format: element, scale and block shape. A preset is a bsmm_format with a name; the
 * name changes nothing else. An unscaled format has scale NONE and block 0 x 0. */
typedef struct bsmm_format {
    uint32_t elem;       /* Element format, a bsmm_elem */
    uint32_t scale;      /* Scale format, a bsmm_scale */
    uint32_t block_rows; /* Rows of a block; at least 1 if scaled */
    uint32_t block_cols; /* Extent of a block along K; at least 2 if scaled */
} bsmm_format;

/* Gives the format of a preset ("mxfp8", "nvfp4", "fp8_group128", ...; bsmm_preset_at lists them)
 * or of an unscaled element ("f32", "bf16", "e4m3", ...). NOT_FOUND: the message lists the known
 * names. */
BSMM_API bsmm_status bsmm_format_from_name(const char *name, bsmm_format *format);

/* Returns the name of the preset or element with exactly these fields, or "custom" if there is
 * none. */
BSMM_API const char *bsmm_format_name(bsmm_format format);

/* Gives the code of `value` in an element format, rounded to nearest even. If saturate is not 0,
 * overflow and Inf become the largest finite value. If it is 0, overflow gives Inf; a format
 * without Inf gives NaN, and a format without both gives its largest value (OCP 8-bit v1.0 section
 * 5.2.3, MX v1.0 section 5.3). NaN becomes NaN. In a format without NaN it becomes +0, which MX
 * v1.0 leaves to the implementation.
 *
 * OCP defines no rounding for e8m0. Here it is the nearest power of two, ties up, as in ml_dtypes
 * and torch. As in both, every value between 2^-127 and 2^-126 is rounded up, and every positive
 * value below 2^-127 becomes 2^-127. Zero, negative values and overflow give NaN, or the nearest
 * end of the range if saturate is not 0. */
BSMM_API bsmm_status bsmm_encode_elem(uint32_t elem, float value, int saturate, uint32_t *code);

/* Gives the exact value of a code. INVALID if the code has more bits than the format. */
BSMM_API bsmm_status bsmm_decode_elem(uint32_t elem, uint32_t code, double *value);

/* ------------------------------------------------------------------------------------------
 * The matrix
 * ---------------------------------------------------------------------------------------- */

/* The storage order: the index that is contiguous in memory. */
typedef enum bsmm_order {
    BSMM_ORDER_ROW = 0, /* Columns (K) are contiguous: element (r, c) is at r * ld + c. */
    BSMM_ORDER_COL = 1  /* Rows (M or N) are contiguous: element (r, c) is at c * ld + r. */
} bsmm_order;

/* The layout of a matrix of scales: the offset of the scale of block (r, c). There are R x C
 * blocks. docs/LAYOUTS.md draws each layout. */
typedef enum bsmm_layout {
    BSMM_LAYOUT_ROW_MAJOR = 0,       /* offset r * ld + c; ld 0 means C */
    BSMM_LAYOUT_COL_MAJOR = 1,       /* offset c * ld + r; ld 0 means R */
    BSMM_LAYOUT_TILE_CONTIGUOUS = 2, /* tiles of scale_tile_rows x scale_tile_cols scales */
    BSMM_LAYOUT_NV_128X4 = 3,        /* 128 x 4 tiles of cuBLAS, tcgen05, torchao to_blocked */
    BSMM_LAYOUT_NV_8X4 = 4,          /* 8 x 4 tiles of vLLM and FlashInfer for small M */
    BSMM_LAYOUT_CDNA4_MFMA16 = 5,    /* hipBLASLt BLK32_UE8M0_32_8_EXT, aiter shuffle_scale */
    BSMM_LAYOUT_CDNA4_MFMA32 = 6,    /* Triton's block-scaled tutorial for 32x32 MFMA */
    BSMM_LAYOUT_CUBLAS_VEC128 = 7,   /* cuBLASLt fp32 1x128: c * roundup(R, 4) + r */
    BSMM_LAYOUT_CUBLAS_BLK128 = 8    /* cuBLASLt fp32 128x128: r * roundup(C, 4) + c */
} bsmm_layout;

/* The way in which a second-level scale g (one per tensor) enters a value. */
typedef enum bsmm_global {
    BSMM_GLOBAL_MULTIPLIER = 0, /* value = element * scale * g (ModelOpt, torchao) */
    BSMM_GLOBAL_DIVISOR = 1     /* value = element * scale / g (compressed-tensors) */
} bsmm_global;

/* A matrix: its description and, if a call reads or writes it, its memory.
 *
 * Elements of 4 bits are packed two per byte along the contiguous index, the even index in the low
 * nibble. Elements of 6 bits are packed four in three bytes, least significant bit first. For 4 and
 * 6 bits `ld` must be a multiple of 2 or 4, and a contiguous run of another length is padded to
 * that multiple. Buffers must be aligned to their element type: 4 bytes for f32, 2 for f16 and
 * bf16, else 1. */
typedef struct bsmm_matrix {
    uint32_t struct_size;
    uint32_t order;     /* Storage order, a bsmm_order */
    bsmm_format format; /* Formats of the elements and scales */
    int64_t rows;       /* Number of rows (M or N), 0 or more */
    int64_t cols;       /* Number of columns (K; N for C and D), 0 or more */
    int64_t ld;         /* Leading dimension in elements; 0 = no gaps */
    void *data;         /* The elements */
    /* Size of `data`. 0 turns the check off; else it is at least bsmm_data_bytes. */
    uint64_t data_bytes;
    void *scales; /* The scales, one per block; NULL if unscaled */
    /* Size of `scales`. It is exactly bsmm_scale_bytes; with scale_ld it may include all of the
     * last line. 0 turns the check off and is allowed only for layouts without padding (ROW_MAJOR,
     * COL_MAJOR). */
    uint64_t scale_bytes;
    uint32_t scale_layout;                     /* Layout of the scales, a bsmm_layout */
    uint32_t global_kind;                      /* Meaning of global_scale, a bsmm_global */
    uint32_t scale_tile_rows, scale_tile_cols; /* Tile in scales, for TILE_CONTIGUOUS only */
    /* Leading dimension of the scales, for ROW_MAJOR and COL_MAJOR only; 0 = no gaps. */
    int64_t scale_ld;
    float *global_scale; /* Second-level scale, one value in host memory; NULL = 1 */
} bsmm_matrix;

/* These functions give the size of the element buffer and of the scale buffer (padding included)
 * that the description needs. The pointers in the matrix are not read. INVALID if the description
 * breaks a rule. */
BSMM_API bsmm_status bsmm_data_bytes(const bsmm_matrix *matrix, uint64_t *bytes);
BSMM_API bsmm_status bsmm_scale_bytes(const bsmm_matrix *matrix, uint64_t *bytes);

/* ------------------------------------------------------------------------------------------
 * The epilogue: what a result x = alpha * A x B^T + beta * C + bias goes through before it is
 * rounded. docs/NUMERICS.md says what is exact.
 * ---------------------------------------------------------------------------------------- */

/* The function f of the epilogue, y = f(x). NaN stays NaN. f(-Inf) is the value of the formula,
 * which is NaN for silu and gelu, as in PyTorch. The last three values are gated activations:
 * half of B's rows compute gates and half compute ups, so that D has half as many columns as B
 * has rows. */
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

/* The two columns of A x B^T from which a gated activation takes gate and up for column n of D. */
typedef enum bsmm_halves {
    BSMM_HALVES_SPLIT = 0,      /* Columns n and n + N / 2: Llama, vLLM's SiluAndMul */
    BSMM_HALVES_INTERLEAVED = 1 /* Columns 2 n and 2 n + 1: gpt-oss */
} bsmm_halves;

/* Flags for the factors of an epilogue. Values may be added. */
typedef enum bsmm_scale_by { BSMM_SCALE_BY_ROW = 1, BSMM_SCALE_BY_COL = 2 } bsmm_scale_by;

/* The epilogue computes D = round(row_scale[m] * col_scale[n] * (f(x) + residual)), in this order,
 * without a rounding between the steps. A gated activation first clamps, as gpt-oss does: gate to
 * at most `limit`, up to -limit .. limit. Then it adds up_offset to up. The epilogue of gpt-oss is
 * SWIGLU, INTERLEAVED, limit 7, slope 1.702, up_offset 1 (gpt_oss/torch/model.py, swiglu). */
typedef struct bsmm_epilogue {
    uint32_t struct_size;
    uint32_t activation; /* The function f, a bsmm_activation */
    uint32_t halves;     /* Columns of gate and up, a bsmm_halves; 0 unless f is gated */
    uint32_t scale_by;   /* Factors that a run gives, bsmm_scale_by flags */
    float limit;         /* Clamp of gate and up, above 0; 0 = no clamp; 0 unless f is gated */
    float slope;         /* Slope of SILU and SWIGLU, finite; 0 means 1 */
    float up_offset;     /* Number added to up of a gated f, finite */
    uint32_t reserved;   /* Must be 0 */
    /* Matrix of D's shape that is added: f32, f16 or bf16. NULL = none. It may be d itself if the
     * descriptions are equal. */
    const bsmm_matrix *residual;
    const float *row_scale; /* One factor per row of D; only bsmm_matmul reads it */
    const float *col_scale; /* One factor per column of D; only bsmm_matmul reads it */
} bsmm_epilogue;

/* ------------------------------------------------------------------------------------------
 * Groups: many products in one plan. docs/GROUPS.md says how DeepGEMM's, torch's and FlashInfer's
 * forms map to these.
 * ---------------------------------------------------------------------------------------- */

/* The division of matrices among G groups; a group is one of several products that run as one plan.
 * A "stack" is G matrices of the described shape at a constant distance, one for each group. A
 * matrix that is not a stack is divided: each group owns a range of its rows or columns. */
typedef enum bsmm_group_kind {
    BSMM_GROUP_NONE = 0,  /* There are no groups: the plan is one product. */
    BSMM_GROUP_BATCH = 1, /* A, B, C, D and the residual are stacks. */
    /* B is a stack. The rows of A, C, D and the residual are divided: sizes[g] is the index of the
     * first row after group g. */
    BSMM_GROUP_ROWS = 2,
    /* All matrices are stacks as in BATCH. Group g uses the first sizes[g] rows of A, C, D and the
     * residual; other rows of D are not written. */
    BSMM_GROUP_MASKED = 3,
    /* C, D and the residual are stacks. The columns of A and B are divided: sizes[g] is the index
     * of the first column after group g. A group without columns stores the epilogue of beta * C +
     * bias. */
    BSMM_GROUP_K = 4
} bsmm_group_kind;

/* Properties of groups; values may be added. An EACH flag means that each group has a value of its
 * own, in an array of G values. */
typedef enum bsmm_group_flags {
    BSMM_GROUP_EACH_ALPHA = 1,      /* alpha of group g is group_alpha[g] times desc.alpha */
    BSMM_GROUP_EACH_BIAS = 2,       /* bias is (G, N) */
    BSMM_GROUP_EACH_A_GLOBAL = 4,   /* a_global has G second-level scales of A */
    BSMM_GROUP_EACH_B_GLOBAL = 8,   /* b_global has G values (nvfp4: one per expert) */
    BSMM_GROUP_EACH_D_GLOBAL = 16,  /* d_global has G second-level scales of D */
    BSMM_GROUP_EACH_COL_SCALE = 32, /* the epilogue's col_scale is (G, columns of D) */
    /* For ROWS and MASKED: A is one matrix of any number of rows, and row gather[r] of A is
     * multiplied for row r of D. For MASKED, row m of group g has r = g * M + m. An index that
     * is no row of A, such as -1, stands for a row of zeros. Block scales of A must have
     * block_rows 1. */
    BSMM_GROUP_GATHER_A = 64,
    /* For ROWS and K: the scales of a divided matrix are stored for each group separately. The
     * scales of a group are laid out and padded as those of a matrix of the group's shape, and the
     * groups follow one another. scale_bytes must be at least bsmm_group_scale_bytes. */
    BSMM_GROUP_SCALES_APART = 128
} bsmm_group_flags;

/* The value of a step that makes all groups share one matrix instead of a stack. D cannot be
 * shared. */
#define BSMM_GROUP_SHARED (-1)

/* Groups of a product. The sizes lie in the device's memory and may have any value, so that kernels
 * clamp them. A group starts at the end of the group before it, rounded up to `align`. Its end is
 * clamped to the range from its start to the last row or column. Sizes of MASKED are clamped to the
 * described rows. Therefore nothing outside D is written. Groups without rows write nothing. */
typedef struct bsmm_group {
    uint32_t struct_size;
    uint32_t kind;     /* Division of the matrices, a bsmm_group_kind */
    uint32_t flags;    /* Properties, bsmm_group_flags */
    uint32_t reserved; /* Must be 0 */
    int64_t count;     /* Number of groups G, 0 or more */
    /* For ROWS and K: groups start at multiples of `align`; 0 means 1. In a divided matrix, each
     * such multiple must be the start of a byte. Unless SCALES_APART is set, it must also be the
     * start of a scale block and of a tile of the scale layout. */
    int64_t align;
    /* Expected number of rows of a group, a hint for the choice of kernel; 0 = unknown. */
    int64_t expected_rows;
    /* The distance from one matrix of a stack to the next. 0 means that the matrices follow one
     * another without gaps. Matrices of D must not overlap. */
    int64_t a_step, b_step, c_step, d_step, residual_step; /* Distances of stacks, in elements */
    int64_t a_scale_step, b_scale_step, d_scale_step;      /* the same for scales, in scales */
    const int32_t *sizes;  /* Size of each group, G values; only bsmm_matmul reads it */
    const int32_t *gather; /* Row of A for each row of D; only bsmm_matmul reads it */
    const float *alpha;    /* alpha of each group, G values; only bsmm_matmul reads it */
} bsmm_group;

/* Gives the largest size that the scales of `matrix` can take with BSMM_GROUP_SCALES_APART, over
 * all group sizes. `matrix` must be divided by `group`: A or D of kind ROWS, A or B of kind K.
 * INVALID for other kinds and without that flag. */
BSMM_API bsmm_status bsmm_group_scale_bytes(const bsmm_group *group, const bsmm_matrix *matrix,
                                            uint64_t *bytes);

/* ------------------------------------------------------------------------------------------
 * Threads that do the work of the cpu. Results never depend on them.
 * ---------------------------------------------------------------------------------------- */

/* One of the tasks into which a call divides its work; `index` counts them from 0. */
typedef void (*bsmm_task)(void *work, size_t index);

/* Calls task(work, index) once for every index below `count`, and returns when the last of these
 * calls has returned. The calls may come from any threads, at the same time or one after another,
 * and in any order; the calling thread may make some or all of them. Tasks never wait for each
 * other and never call the library. The tasks must see what the calling thread wrote before, and it
 * must see what they wrote when this function returns. pthreadpool_parallelize_1d and
 * dispatch_apply_f take tasks of this form. */
typedef void (*bsmm_parallel_for)(void *context, bsmm_task task, void *work, size_t count);

/* The caller's threads, in place of OpenMP's. Where no pool is given, OpenMP's threads do the work;
 * in a library that was built without OpenMP, the calling thread does.
 *
 * One call of `run` has at most as many tasks as the `threads` of the description or the exec. Work
 * for one thread is done by the calling thread without the pool. A call of the library may call
 * `run` several times, one after another. `run` is called by the thread that calls the library. If
 * several threads use one pool at the same time, `run` is called by each of them. Tasks need 256
 * KiB of stack and the default floating-point environment (round to nearest, subnormals kept). The
 * library reads the struct while a call lasts; a plan copies the one of its description. If `run`
 * returns before every task has returned, or leaves tasks out, the call is INVALID and its outputs
 * are unspecified. */
typedef struct bsmm_pool {
    uint32_t struct_size;
    uint32_t reserved;     /* Must be 0 */
    bsmm_parallel_for run; /* Function that runs tasks; never NULL */
    void *context;         /* First argument of run */
} bsmm_pool;

/* ------------------------------------------------------------------------------------------
 * One call
 * ---------------------------------------------------------------------------------------- */

/* The accuracy that a product asks of its kernel. */
typedef enum bsmm_compute {
    /* Products are exact, and sums are in fp32 or better. FP8 with fp32 scales, mxfp4 and mxfp6 are
     * exceptions on Hopper: its FP8 tensor cores sum less exactly (docs/NUMERICS.md). */
    BSMM_COMPUTE_EXACT = 0,
    BSMM_COMPUTE_FAST = 1 /* Kernels with a larger, documented error bound may be chosen. */
} bsmm_compute;

/* Properties of a product; values may be added. */
typedef enum bsmm_matmul_flags {
    /* For plans only: each run chooses its number of rows of A, C, D and the residual in
     * bsmm_buffers. The rows of the description are the maximum. The buffers of every run have room
     * for the maximum; leading dimensions and the places of scales are those of the maximum. */
    BSMM_MATMUL_ANY_ROWS = 1,
    /* The order in which a result is summed depends on the formats and K alone (docs/NUMERICS.md,
     * Order of sums). The bits of a row of D then do not depend on M, on the row's place, on other
     * rows, on groups or on threads. Kernels that cannot promise this refuse. */
    BSMM_MATMUL_BATCH_INVARIANT = 2
} bsmm_matmul_flags;

/* A form of packed weights: what bsmm_pack_b makes from B, and what runs read instead of B. Packed
 * bytes are a header, which says what was packed, and then B in the form, including its
 * second-level scale. They name no kernel and no number of rows: every plan whose kernel reads the
 * form can use them, with any M and any A. The size of COMPACT depends on the kind of device, the
 * format, N, K and the number of groups alone. docs/PACKING.md describes the bytes. */
typedef enum bsmm_packed_form {
    BSMM_PACKED_NONE = 0, /* Runs read B as it is described */
    /* Decoded values in panels, as engines multiply them, followed by B itself. The panels depend
     * on A's format and the processor too; the header names them. */
    BSMM_PACKED_WIDE = 1,
    /* A permutation of B's codes and scales. It takes at most 3% more bytes than B, from 64 KiB and
     * 64 rows on. Every kernel of the cpu reads it. */
    BSMM_PACKED_COMPACT = 2
} bsmm_packed_form;

/* The description of a product: D = round(epilogue(alpha * A x B^T + beta * C + bias)). N is
 * b->rows. D has N columns, or N / 2 columns with a gated activation. */
typedef struct bsmm_matmul_desc {
    uint32_t struct_size;
    uint32_t compute;     /* Accuracy, a bsmm_compute */
    const bsmm_matrix *a; /* Matrix A of (M, K), in any format */
    const bsmm_matrix *b; /* Matrix B of (N, K), in any format */
    /* Matrix C of (M, N): f32, f16 or bf16. NULL unless beta is used. It may be d itself if the
     * descriptions are equal. */
    const bsmm_matrix *c;
    /* Matrix D of (M, N): unscaled f32, f16, bf16 or 8-bit float, or any block-scaled format. A
     * block-scaled D is quantized when it is stored; d->global_scale is then read, not written. */
    const bsmm_matrix *d;
    const float *alpha; /* Factor of A x B^T, read when the plan is made, finite; NULL = 1 */
    const float *beta;  /* Factor of C, finite; NULL = 0; C is not read if it is 0 */
    const void *bias;   /* N values that are added to every row; NULL = none */
    /* Format of bias: BSMM_ELEM_F32, F16 or BF16. NONE means no bias; `bias` must be NULL then. */
    uint32_t bias_elem;
    uint32_t threads;   /* Number of threads; 0 = all of the machine; never changes results */
    const char *recipe; /* Recipe of a block-scaled D; NULL = the default of its format */
    /* "cpu", "cuda:0" (NVIDIA), "hip:0" (AMD) or a simulated AMD GPU, "sim:gfx942" or "sim:gfx950"
     * (bsmm_local_device_at lists those of the machine); NULL = "cpu". */
    const char *device;
    const char *kernel; /* Name of the kernel to use; NULL = the best one that accepts */
    /* Form in which runs get B, a bsmm_packed_form. Only plans may set it. Runs then get packed_b
     * (bsmm_pack_b) and not B. With WIDE the workspace has no room for packing B. Kernels that do
     * not read the form refuse. */
    uint32_t b_packed;
    uint32_t flags;                /* Properties, bsmm_matmul_flags */
    const bsmm_epilogue *epilogue; /* The epilogue; NULL = none */
    const bsmm_group *group;       /* The groups; NULL = one product */
    /* The threads that do the work of the cpu, also in runs of the plan that give none; NULL =
     * OpenMP's */
    const bsmm_pool *pool;
} bsmm_matmul_desc;

/* Multiplies the matrices that the description points to. A, B, C and bias are read; D and its
 * scales are written. D must not overlap A or B. The call allocates the workspace and frees it
 * before it returns. On a GPU all pointers of matrices and bias, including second-level
 * scales, are device memory. The call then uses the default stream and returns when D is
 * complete. */
BSMM_API bsmm_status bsmm_matmul(const bsmm_matmul_desc *desc);

/* ------------------------------------------------------------------------------------------
 * Plans: validate and choose once, run many times
 * ---------------------------------------------------------------------------------------- */

/* A validated product with its chosen kernel. A plan never changes. Several threads may run one
 * plan at once, each with a workspace of its own. */
typedef struct bsmm_plan bsmm_plan;

/* Validates the description and chooses the kernel. The pointers of the matrices are not read.
 * alpha, beta and all names are read during the call only. A bias is announced by a bias that is
 * not NULL or by bias_elem. *plan is NULL after a failure. */
BSMM_API bsmm_status bsmm_plan_create(const bsmm_matmul_desc *desc, bsmm_plan **plan);
BSMM_API void bsmm_plan_destroy(bsmm_plan *plan); /* NULL is allowed. */

/* These functions return the name of the chosen kernel, and the size of the workspace that each
 * concurrent run needs. A workspace must be aligned to 64 bytes.
 *
 * CPU kernels that pack B in every run pack it in parts. The workspace holds all of A, packed, and
 * a part of B. The part takes at most 32 times the L2 cache for each thread of the plan; if A has
 * at most 128 rows, at most once the L2 cache. If K is so long that this is too little, it takes
 * the packed panels of at most 64 rows of B for each thread and of 512 rows for all threads (of 512
 * rows for each thread if D is block-scaled). A gated epilogue needs all of B, packed. */
BSMM_API const char *bsmm_plan_kernel(const bsmm_plan *plan);
BSMM_API uint64_t bsmm_plan_workspace_bytes(const bsmm_plan *plan);

/* The memory of one run. The fields mean the same as in bsmm_matrix. On a GPU every pointer
 * except the stream is device memory (cudaMalloc, hipMalloc, a framework's tensor), not managed
 * memory, including second-level scales. Some kernels need data and scales aligned to 16 bytes and
 * refuse others. */
typedef struct bsmm_buffers {
    uint32_t struct_size;
    uint32_t reserved;        /* Must be 0 */
    const void *a, *a_scales; /* Elements and scales of A; scales are NULL if there are none */
    const float *a_global;    /* Second-level scale of A, one value; NULL = 1 */
    const void *b, *b_scales; /* As for A; a run with packed_b does not read them */
    const float *b_global;    /* As for A; a run with packed_b does not read it */
    const void *c;            /* Elements of C; NULL unless beta is not 0 */
    void *d, *d_scales;       /* Elements and scales of D, which the run writes */
    const float *d_global;    /* Second-level scale of D, chosen by the caller; it is read */
    const void *bias;         /* Bias; NULL unless the plan has one */
    void *workspace;          /* Workspace, aligned to 64 bytes */
    uint64_t workspace_bytes; /* Size of the workspace, at least bsmm_plan_workspace_bytes */
    const void *packed_b;     /* Packed weights from bsmm_pack_b, for a plan with b_packed */
    uint64_t packed_b_bytes;  /* Size of packed_b in bytes */
    /* The CUstream (cudaStream_t) or hipStream_t in which a run on a GPU is queued; NULL = the
     * default stream. The cpu does not read it. */
    void *stream;
    const void *residual;   /* Residual; NULL unless the epilogue has one */
    const float *row_scale; /* One factor per row of D; NULL unless the epilogue scales by row */
    const float *col_scale; /* One factor per column of D; NULL unless it scales by column */
    /* The run's number of rows in a plan with BSMM_MATMUL_ANY_ROWS, from 0 to the described rows; 0
     * in other plans. Rows of D after the last one are not written. Their scales count as padding
     * and are written 0 up to the end of the layout's tile. */
    int64_t rows;
    /* One value in the device's memory that replaces `rows` when the run is executed. It is clamped
     * to the range from 0 to the described rows. NULL = `rows` counts. */
    const int32_t *device_rows;
    const int32_t *group_sizes; /* G sizes, for groups of kind ROWS, MASKED and K */
    const int32_t *gather;      /* One row index of A per row of D, with GATHER_A */
    const float *group_alpha;   /* G values, with EACH_ALPHA */
    const bsmm_pool *pool;      /* Threads that do this call's work; NULL = those of the plan */
} bsmm_buffers;

/* Returns the size of packed weights in the form of desc->b_packed, or of WIDE if that is NONE. The
 * bytes may be written to a file and mapped again. The size is 0 if the kernel has no panels, and
 * with groups of kind K; desc->b_packed is then refused. */
BSMM_API uint64_t bsmm_plan_packed_b_bytes(const bsmm_plan *plan);
/* Packs buffers->b, b_scales and b_global into `packed`, which is aligned to 64 bytes. With groups
 * it packs all matrices of the stack B. No other field of `buffers` is read except the stream
 * and the pool. B itself is not needed afterwards. A run refuses weights that were packed in
 * another form, or for another format, shape, number of groups or other panels; the message names
 * the field. On a GPU the packing is queued in buffers->stream. Runs on a GPU do not check that
 * packed_b belongs to the plan, because they would have to wait for the stream; the caller must
 * ensure it.
 */
BSMM_API bsmm_status bsmm_pack_b(const bsmm_plan *plan, const bsmm_buffers *buffers, void *packed,
                                 uint64_t packed_bytes);

/* A row of the table of forms of packed weights. */
typedef struct bsmm_packed_form_info {
    uint32_t struct_size; /* sizeof(bsmm_packed_form_info) */
    uint32_t form;        /* The form, a bsmm_packed_form */
    const char *name;     /* Name of the form, such as "compact"; static storage */
    uint32_t version;     /* Version of its bytes; a library reads one version of each form */
    uint32_t reserved;    /* Always 0 */
    const char *devices;  /* Kinds of devices with kernels that read it, separated by spaces */
    const char *contents; /* Description of the bytes, static storage */
} bsmm_packed_form_info;

/* Returns row `index` of the table of forms. NOT_FOUND past the last. */
BSMM_API bsmm_status bsmm_packed_form_at(uint32_t index, bsmm_packed_form_info *info);

/* The contents of a header of packed weights. */
typedef struct bsmm_packed_info {
    uint32_t struct_size; /* sizeof(bsmm_packed_info) */
    uint32_t form;        /* The form, a bsmm_packed_form */
    uint32_t version;     /* Version of the form */
    uint32_t global_kind; /* Kind of the second-level scales, a bsmm_global */
    char device[16];      /* Kind of device: "cpu" or "cuda" */
    char panels[16];      /* Layout of the panels of WIDE, such as "int8_k32_n32"; else empty */
    bsmm_format format;   /* Format of B */
    int64_t rows, cols;   /* N and K */
    int64_t groups;       /* Number of matrices of a stack; 0: B is one matrix */
    uint64_t bytes;       /* Size of the packed weights, including the header */
} bsmm_packed_info;

/* Reads the header of packed weights in host memory (at least 128 bytes) and compares its size with
 * `bytes`. INVALID, naming the field, if an older library packed the bytes, if this library does
 * not know the form or its version, or if bytes are missing at the end. */
BSMM_API bsmm_status bsmm_packed_describe(const void *packed, uint64_t bytes,
                                          bsmm_packed_info *info);

/* Returns the size of packed weights without a plan. `b` gives format, rows and cols; its memory is
 * not read. `groups` is the number of matrices of its stack, or 0 for one product. `a` is the
 * format of A, on which the panels of WIDE depend; it may be NULL for other forms. A `device` of
 * NULL means "cpu". UNSUPPORTED if no kernel reads the form. */
BSMM_API bsmm_status bsmm_packed_bytes(const char *device, uint32_t form, const bsmm_matrix *b,
                                       int64_t groups, const bsmm_format *a, uint64_t *bytes);

/* Writes matrix `index` of packed weights (0 unless they are a stack) to b->data, b->scales and
 * *b->global_scale. The weights may have any form but must have been packed for the cpu. `b` must
 * have their format, rows and cols; its order, pitch and scale layout may differ. b->global_scale
 * may be NULL if the weights have no second-level scale; otherwise it is written 1 then. Padding is
 * not written. */
BSMM_API bsmm_status bsmm_unpack_b(const void *packed, uint64_t packed_bytes, int64_t index,
                                   const bsmm_matrix *b);

/* Runs a plan. It allocates nothing. INVALID if a pointer is missing or misaligned, if the
 * workspace is too small, if an array is given that the plan does not have (c, bias, residual,
 * factors, arrays of groups), if D overlaps a buffer that is read, or if the workspace or packed_b
 * overlaps any other buffer; the message names the field. On a GPU the work is queued in
 * buffers->stream. The call does not wait, may be captured into a graph, and reports only errors
 * that are known before the work starts. Host memory and memory of another GPU are INVALID. */
BSMM_API bsmm_status bsmm_plan_run(const bsmm_plan *plan, const bsmm_buffers *buffers);

/* One kernel's answer to a product: the reason why it refuses, or its bound. */
typedef struct bsmm_explanation {
    uint32_t struct_size;
    uint32_t accepts;   /* 1 if the kernel accepts, else 0 */
    const char *kernel; /* Name of the kernel, in static storage */
    char reason[240];   /* Reason of a refusal; empty if it accepts */
    /* Largest error before the epilogue and the last rounding, as a multiple of |alpha| * sum
     * |a||b|; 0 if the kernel refuses. */
    double bound;
    const char *device; /* Kind of device that it runs on ("cpu", "cuda", "hip"); static storage */
    uint64_t packed_b_bytes; /* Size of packed B (bsmm_plan_packed_b_bytes); 0 if it refuses */
} bsmm_explanation;

/* Asks the kernel of rank `index` whether it accepts desc; 0 is the kernel that is tried first.
 * desc->kernel is ignored. NOT_FOUND past the last kernel; INVALID if the description breaks a
 * rule. A plan takes the first kernel that accepts. */
BSMM_API bsmm_status bsmm_explain(const bsmm_matmul_desc *desc, uint32_t index,
                                  bsmm_explanation *explanation);

/* ------------------------------------------------------------------------------------------
 * Quantization
 * ---------------------------------------------------------------------------------------- */

/* Options of a recipe (docs/RECIPES.md); values may be added. */
typedef enum bsmm_quantize_flags {
    BSMM_QUANTIZE_POW2 = 1, /* Round f32 scales to powers of two (ue8m0), by the recipe's rule. */
    BSMM_QUANTIZE_ONE_LEVEL = 2 /* Write no per-tensor scale, for recipes with that choice. */
} bsmm_quantize_flags;

/* The description of a quantization: source, destination and recipe. */
typedef struct bsmm_quantize_desc {
    uint32_t struct_size;
    uint32_t flags;         /* Options, bsmm_quantize_flags */
    const bsmm_matrix *src; /* Source, unscaled f32, f16 or bf16 */
    /* Destination, in any format. Elements and scales are written, and global_scale if the recipe
     * has two levels. The padding of scales is written 0. */
    const bsmm_matrix *dst;
    const char *recipe; /* "ocp", "rceil", ...; NULL = the default of the format */
    /* Largest magnitude of the whole tensor, needed if src is only a part of it; NULL = computed
     * from src. */
    const float *amax;
    uint32_t threads;  /* Number of threads; 0 = all of the machine */
    uint32_t reserved; /* Must be 0 */
    /* As in bsmm_matmul_desc. On a GPU every pointer of the matrices and amax are
     * device memory, and the call only queues the work. */
    const char *device;
    void *stream;          /* Stream of a GPU, as in bsmm_buffers */
    const bsmm_pool *pool; /* Threads that do the work of the cpu; NULL = OpenMP's */
} bsmm_quantize_desc;

/* The device that runs a conversion. On a GPU every pointer of the matrices is device
 * memory. The call then only queues the work in the stream. It allocates nothing and may be
 * captured into a graph. */
typedef struct bsmm_exec {
    uint32_t struct_size;
    uint32_t threads;      /* Number of CPU threads; 0 = all of the machine */
    const char *device;    /* "cpu" or "cuda:0"; NULL = "cpu" */
    void *stream;          /* Stream of a GPU, as in bsmm_buffers */
    const bsmm_pool *pool; /* Threads that do the work of the cpu; NULL = OpenMP's */
} bsmm_exec;

/* The error of a quantized matrix; x is a value and q the quantized value. Shares are fractions of
 * all elements. */
typedef struct bsmm_quantize_report {
    uint32_t struct_size;
    uint32_t reserved;
    double sqnr_db;     /* Signal to noise, 10 log10(sum x^2 / sum (x - q)^2); +Inf if exact */
    double max_error;   /* Largest |x - q| */
    double clipped;     /* Share of |x| above the largest value under its block's scale */
    double underflowed; /* Share of nonzero x with q = 0 */
    double signal;      /* Sum of x^2; signal and noise of parts may be added */
    double noise;       /* Sum of (x - q)^2 */
    int64_t count;      /* Number of elements */
} bsmm_quantize_report;

/* Quantizes by a named recipe. The result has the same bytes as the recipe's project writes, on
 * every device. report may be NULL; on a GPU it must be NULL. */
BSMM_API bsmm_status bsmm_quantize(const bsmm_quantize_desc *desc, bsmm_quantize_report *report);

/* Compares values (f32, f16, bf16) with a quantized matrix of the same shape. */
BSMM_API bsmm_status bsmm_compare(const bsmm_matrix *src, const bsmm_matrix *quantized,
                                  bsmm_quantize_report *report);
/* Does the work of bsmm_compare by the threads of `exec`; NULL means the cpu. A GPU is
 * UNSUPPORTED. */
BSMM_API bsmm_status bsmm_compare_on(const bsmm_exec *exec, const bsmm_matrix *src,
                                     const bsmm_matrix *quantized, bsmm_quantize_report *report);

/* Gives max |x| of an unscaled f32, f16 or bf16 matrix. The result is NaN if any element is NaN,
 * and 0 if the matrix is empty. */
BSMM_API bsmm_status bsmm_amax(const bsmm_matrix *src, float *amax);
/* Does the work of bsmm_amax on the device of `exec`; NULL means the cpu. On a GPU, amax is
 * device memory too. */
BSMM_API bsmm_status bsmm_amax_on(const bsmm_exec *exec, const bsmm_matrix *src, float *amax);

/* Converts any format to unscaled f32, f16 or bf16. Each exact value is rounded once, to nearest
 * even. */
BSMM_API bsmm_status bsmm_dequantize(const bsmm_matrix *src, const bsmm_matrix *dst);
/* Does the work of bsmm_dequantize on the device of `exec`; NULL means the cpu. */
BSMM_API bsmm_status bsmm_dequantize_on(const bsmm_exec *exec, const bsmm_matrix *src,
                                        const bsmm_matrix *dst);

/* Converts without rounding. Every value is kept exactly, or the call returns RANGE and the message
 * names the block; dst's content is then unspecified. It takes host memory only. It converts mxfp4
 * to nvfp4 (and writes *dst->global_scale), mxfp4 to fp8_block128 and fp8_group128, and any format
 * to itself in another order or scale layout. */
BSMM_API bsmm_status bsmm_convert(const bsmm_matrix *src, const bsmm_matrix *dst);
/* Does the work of bsmm_convert by the threads of `exec`; NULL means the cpu. A GPU is
 * UNSUPPORTED. */
BSMM_API bsmm_status bsmm_convert_on(const bsmm_exec *exec, const bsmm_matrix *src,
                                     const bsmm_matrix *dst);

/* Moves scales from one layout to another. src and dst must describe the same rows, cols and format
 * and may differ in the scale fields. Only scales are written; their padding is written 0. */
BSMM_API bsmm_status bsmm_relayout_scales(const bsmm_matrix *src, const bsmm_matrix *dst);
/* Does the work of bsmm_relayout_scales on the device of `exec`; NULL means the cpu. */
BSMM_API bsmm_status bsmm_relayout_scales_on(const bsmm_exec *exec, const bsmm_matrix *src,
                                             const bsmm_matrix *dst);

/* ------------------------------------------------------------------------------------------
 * Tables. Index 0 and up until NOT_FOUND; strings have static storage.
 * ---------------------------------------------------------------------------------------- */

/* Properties of an element format or of e8m0. */
typedef struct bsmm_elem_info {
    uint32_t struct_size;
    uint32_t elem;                               /* The format, a bsmm_elem */
    const char *name;                            /* Name of the format, such as "e4m3" */
    uint32_t bits, exponent_bits, mantissa_bits; /* Widths in bits; `bits` includes the sign */
    int32_t bias;                                /* Bias of the exponent */
    double max, min_normal, min_subnormal;       /* Largest, least values; 0: none */
    const char *nan, *inf, *zeros;               /* Codes, as text; "none" if none */
    const char *used_by;                         /* Hardware and formats that use it, as text */
} bsmm_elem_info;
BSMM_API bsmm_status bsmm_elem_at(uint32_t index, bsmm_elem_info *info);

/* A preset: a block-scaled format with a name. */
typedef struct bsmm_preset_info {
    uint32_t struct_size;
    uint32_t reserved;
    const char *name;           /* Name of the preset, such as "mxfp8" */
    bsmm_format format;         /* The format with this name */
    const char *second_level;   /* Second-level scale: "none", "optional f32 per tensor" */
    const char *used_by;        /* Hardware and checkpoints that use it, as text */
    const char *default_recipe; /* Recipe that bsmm_quantize uses for NULL */
    double bits_per_weight;     /* Bits of an element and its part of a block scale */
} bsmm_preset_info;
BSMM_API bsmm_status bsmm_preset_at(uint32_t index, bsmm_preset_info *info);

/* One digit of a scale layout. The offset of a scale inside a tile is the sum, over all digits, of
 * (index on the axis / divisor) % extent * stride. The divisor of a digit is the product of the
 * extents of the digits before it on the same axis. Tiles follow in row-major order. */
typedef struct bsmm_digit {
    uint32_t axis;           /* 0: the row of the scale, 1: its column */
    uint32_t extent, stride; /* Number of values of the digit, and its step in scales */
} bsmm_digit;
/* Properties of a scale layout. */
typedef struct bsmm_layout_info {
    uint32_t struct_size;
    uint32_t layout;                               /* The layout, a bsmm_layout */
    const char *name, *padding, *offset, *used_by; /* Name and descriptions, as text */
    uint32_t tile_rows, tile_cols; /* Size of a tile; 0: the caller or the matrix gives it */
    uint32_t digit_count;          /* Number of digits; 0: rows or columns at a constant pitch */
    bsmm_digit digits[6];          /* The digits, innermost of each axis first */
} bsmm_layout_info;
BSMM_API bsmm_status bsmm_layout_at(uint32_t index, bsmm_layout_info *info);
BSMM_API bsmm_status bsmm_layout_from_name(const char *name, uint32_t *layout);

/* Gives the offset, in scales, of the scale of block (block_row, block_col) in the matrix's scale
 * layout. */
BSMM_API bsmm_status bsmm_scale_offset(const bsmm_matrix *matrix, int64_t block_row,
                                       int64_t block_col, uint64_t *offset);

/* Properties of an activation. */
typedef struct bsmm_activation_info {
    uint32_t struct_size;
    uint32_t activation; /* The activation, a bsmm_activation */
    const char *name;    /* Name of the activation, such as "gelu_tanh" */
    const char *formula; /* Formula of x; for a gated activation the function of gate */
    const char *source;  /* Source of the formula */
    uint32_t is_gated;   /* 1: it takes gate and up from two columns */
    uint32_t has_slope;  /* 1: bsmm_epilogue.slope has an effect */
} bsmm_activation_info;
BSMM_API bsmm_status bsmm_activation_at(uint32_t index, bsmm_activation_info *info);

/* Properties of a recipe: a named rule that chooses scales and rounds values. */
typedef struct bsmm_recipe_info {
    uint32_t struct_size;
    uint32_t flags;            /* Options that it accepts, bsmm_quantize_flags */
    const char *name;          /* Name of the recipe, such as "ocp" */
    const char *formats;       /* Presets that it writes, separated by spaces */
    const char *rule, *source; /* Rule for scales, and the project whose bytes it reproduces */
} bsmm_recipe_info;
BSMM_API bsmm_status bsmm_recipe_at(uint32_t index, bsmm_recipe_info *info);

/* ------------------------------------------------------------------------------------------
 * Devices and speed of light
 * ---------------------------------------------------------------------------------------- */

/* Data-sheet peaks of a known device. A multiply-add counts as two operations. */
typedef struct bsmm_device_info {
    uint32_t struct_size;
    uint32_t cdna;     /* Generation of AMD's matrix cores (bsmm_mfma_info); 0: other devices */
    const char *name;  /* Short name, such as "mi300x" */
    const char *title; /* Product name, such as "AMD Instinct MI300X" */
    double f32, f16, f8, f6, f4; /* Dense matrix peaks in operations/s; 0: no such unit */
    double bandwidth;            /* Memory bandwidth in bytes/s */
    const char *source;          /* Source of the figures */
    uint32_t matrix_cores; /* Matrix cores of that generation, four in a compute unit; else 0 */
    uint32_t megahertz;    /* Maximum clock of the matrix cores; else 0 */
} bsmm_device_info;
BSMM_API bsmm_status bsmm_device_at(uint32_t index, bsmm_device_info *info);

/* A device of this machine: "cpu" and, if their drivers are present, "cuda:0", "hip:0" and so on;
 * simulated AMD GPUs are "sim:gfx942" and "sim:gfx950", and more of each "sim:gfx950:1". `features`
 * lists the instruction sets of a CPU. For a GPU it lists the architecture ("sm_90a", "gfx942"),
 * the memory, the L2 cache and the version of the driver. */
typedef struct bsmm_local_device {
    uint32_t struct_size;
    uint32_t cores;     /* Number of CPU threads, or of a GPU's multiprocessors (SMs) */
    char name[32];      /* Name for bsmm_matmul_desc.device, such as "cpu" */
    char title[96];     /* Product name */
    char features[160]; /* Features, separated by spaces */
} bsmm_local_device;
BSMM_API bsmm_status bsmm_local_device_at(uint32_t index, bsmm_local_device *info);

/* ---- Device memory, for callers that have no other runtime ----
 *
 * Every function of this header also takes pointers of a device's own runtime (cudaMalloc,
 * hipMalloc, a framework's tensor). `exec` names the device and the stream, as for conversions;
 * NULL means the cpu. If work is queued in a stream and reads or writes host memory, that memory
 * must stay valid until the stream is done. */

/* Allocates `bytes` bytes of a device's memory ("cpu", "cuda:0"), aligned to 64 bytes. *memory is
 * NULL if bytes is 0. MEMORY if the device has not enough memory. Free every allocation by
 * bsmm_free_memory on the same device. */
BSMM_API bsmm_status bsmm_allocate_memory(const char *device, uint64_t bytes, void **memory);

/* Frees memory of bsmm_allocate_memory; NULL is allowed. No queued work may still use the
 * memory. */
BSMM_API bsmm_status bsmm_free_memory(const char *device, void *memory);

/* Copies `bytes` bytes in the order of the stream. The pointers decide whether the copy is within
 * the device or between the device and host memory. Source and destination must not overlap. */
BSMM_API bsmm_status bsmm_copy_memory(const bsmm_exec *exec, void *to, const void *from,
                                      uint64_t bytes);

/* Sets `bytes` bytes of the device's memory to `value` (0 to 255) in the order of the stream. */
BSMM_API bsmm_status bsmm_fill_memory(const bsmm_exec *exec, void *to, uint32_t value,
                                      uint64_t bytes);

/* Waits until all work in the stream is done. DEVICE if any of the work failed. */
BSMM_API bsmm_status bsmm_synchronize_stream(const bsmm_exec *exec);

/* The least time that a product can take on a device, and the resource that limits it. */
typedef struct bsmm_sol_estimate {
    uint32_t struct_size;
    uint32_t reserved;
    double seconds;           /* The larger of compute_seconds and memory_seconds */
    double compute_seconds;   /* 2 M N K / peak of the fastest unit that takes both operands */
    double memory_seconds;    /* (A + B + scales + C + D) / bandwidth, each byte once */
    double operations, bytes; /* Operations and bytes from which the two times follow */
    const char *unit;         /* Unit whose peak counted, such as "f8" */
    const char *limit;        /* Longer time: "compute" or "memory" */
} bsmm_sol_estimate;

/* Estimates the speed of light of a product on a known device: the time that no kernel can beat.
 * bsmm_device_at lists the devices. */
BSMM_API bsmm_status bsmm_estimate_sol(const char *device, const bsmm_matmul_desc *desc,
                                       bsmm_sol_estimate *estimate);

/* ---- matrix instructions (MFMA) of AMD's CDNA 1 to 4 ----
 *
 * One instruction computes D = A B + C for `blocks` independent products of A (m, k) and B (k, n),
 * on the 64 lanes of a wave. The table has no sparse instructions (v_smfmac). */

/* A dense matrix instruction of one generation. If the time depends on the types, the instruction
 * has a row for each time. The first row whose types include those in use applies. */
typedef struct bsmm_mfma_info {
    uint32_t struct_size;
    uint32_t cdna;            /* Generation, 1 to 4 */
    const char *name;         /* LLVM's spelling, such as "v_mfma_f32_16x16x32_fp8_fp8" */
    const char *a, *b;        /* Types of A and B, such as "bf16"; spaces separate a choice */
    const char *d;            /* Type of C and D: "f32", "i32" or "f64" */
    uint32_t m, n, k, blocks; /* Extents of a product; number of products in one instruction */
    uint32_t cycles;          /* Cycles until the matrix core takes another; a pass is four */
    uint32_t cu_operations; /* Operations of a compute unit in a cycle, by its four matrix cores */
    uint32_t is_scaled;     /* 1: takes e8m0 scales for blocks of 32 along k */
    uint32_t reserved;      /* 0 */
    const char *source;     /* Source of the cycles */
} bsmm_mfma_info;
/* Gives row `index`; rows are ordered by generation. NOT_FOUND past the last row. Thread-safe. */
BSMM_API bsmm_status bsmm_mfma_at(uint32_t index, bsmm_mfma_info *info);

/* The operands of a matrix instruction, with the meaning of their rows and columns. */
typedef enum bsmm_mfma_operand {
    BSMM_MFMA_A = 0,       /* (i, k) */
    BSMM_MFMA_B = 1,       /* (k, j) */
    BSMM_MFMA_C = 2,       /* (i, j) */
    BSMM_MFMA_D = 3,       /* (i, j) */
    BSMM_MFMA_SCALE_A = 4, /* (i, q): the scale of A's elements k = 32 q to 32 q + 31 */
    BSMM_MFMA_SCALE_B = 5  /* (q, j): the scale of B's elements k = 32 q to 32 q + 31 */
} bsmm_mfma_operand;

/* The place of an element in a wave's registers. An element of 6 bits may begin in one register and
 * end in the next; an element of 64 bits fills two. */
typedef struct bsmm_mfma_place {
    uint32_t struct_size;
    uint32_t lane;     /* Lane of the wave, 0 to 63 */
    uint32_t reg;      /* Register, counted from the operand's first */
    uint32_t low_bit;  /* Lowest bit in the register; of a scale: in the byte that op_sel names */
    uint32_t bits;     /* Width of the element */
    uint32_t reserved; /* 0 */
} bsmm_mfma_place;

/* Finds the place of element (row, col) of product `block`. `type` ("e2m1") chooses the type of A
 * or B if the row of bsmm_mfma_at has a choice; NULL takes the first. NOT_FOUND names an unknown
 * instruction or type. INVALID names an operand that the instruction does not have, or an index out
 * of range. The places are those of AMD's matrix instruction calculator, and of the CDNA4 ISA guide
 * for f8f6f4, which the calculator leaves out. Thread-safe. */
BSMM_API bsmm_status bsmm_mfma_find_place(const char *name, const char *type, uint32_t operand,
                                          uint32_t block, uint32_t row, uint32_t col,
                                          bsmm_mfma_place *place);

/* ------------------------------------------------------------------------------------------
 * Files: safetensors (one file, or a sharded model by its index or its folder), GGUF, .npy.
 * Files are mapped, not loaded; they must not be truncated by others while open. A bsmm_file is
 * immutable once open: any number of threads may read it. Strings and pointers live until close.
 * ---------------------------------------------------------------------------------------- */

typedef struct bsmm_file bsmm_file;

#define BSMM_MAX_DIMS 8

/* Opens a file. `path` is FILE.safetensors, model.safetensors.index.json, a folder with either,
 * FILE.gguf or FILE.npy. The content decides the kind of file, not the name. The message of a
 * FORMAT error names the file, the field and the rule. */
BSMM_API bsmm_status bsmm_file_open(const char *path, bsmm_file **file);
BSMM_API void bsmm_file_close(bsmm_file *file); /* NULL is allowed. */

/* Returns the kind of the file: "safetensors", "gguf" or "npy". */
BSMM_API const char *bsmm_file_kind(const bsmm_file *file);

/* One of the files on disk that an open bsmm_file consists of. */
typedef struct bsmm_file_part {
    uint32_t struct_size;
    uint32_t reserved;
    const char *path; /* Path as it was opened; of a shard, the index's folder and its name */
    const void *data; /* Address of the read-only mapping */
    uint64_t bytes;   /* Size of the file when it was opened */
} bsmm_file_part;
/* Gives a part of an open file. Part 0 is the file itself, or the index of a sharded model; the
 * shards follow. Do not write output to any of these paths. NOT_FOUND past the last part. */
BSMM_API bsmm_status bsmm_file_part_at(const bsmm_file *file, uint64_t index, bsmm_file_part *out);

/* Returns the text of a metadata key (safetensors __metadata__, GGUF string), or NULL if there is
 * no such text. */
BSMM_API const char *bsmm_file_metadata(const bsmm_file *file, const char *key);
/* Gives metadata entry number `index`, in the order of keys. *value is NULL if the value is no
 * text, such as GGUF's numbers and arrays. NOT_FOUND past the last entry. */
BSMM_API bsmm_status bsmm_file_metadata_at(const bsmm_file *file, uint64_t index, const char **key,
                                           const char **value);

/* The type of a metadata value. */
typedef enum bsmm_value_type {
    BSMM_VALUE_NONE = 0,
    BSMM_VALUE_INTEGER = 1,  /* signed integer, in `integer` */
    BSMM_VALUE_UNSIGNED = 2, /* unsigned integer, in `natural` */
    BSMM_VALUE_FLOAT = 3,    /* floating point, exactly in `real` */
    BSMM_VALUE_BOOL = 4,     /* 0 or 1, in `natural` */
    BSMM_VALUE_STRING = 5,   /* `count` bytes at `text`, which need not be UTF-8 */
    BSMM_VALUE_ARRAY = 6     /* `count` values of item_type (bsmm_file_value_items) */
} bsmm_value_type;

/* A metadata value with its type (GGUF specification, gguf_metadata_value_type; safetensors has
 * only strings). The text lies in the mapping of the file and does not end with a NUL. */
typedef struct bsmm_value {
    uint32_t struct_size;
    uint32_t type;      /* Type of the value, a bsmm_value_type */
    uint32_t item_type; /* Type of an array's items; never ARRAY */
    uint32_t bits;      /* Stored width of a number, or of an array's numbers: 8 to 64 */
    uint64_t count;     /* Bytes of a string, items of an array, else 1 */
    int64_t integer;    /* Value of an INTEGER */
    uint64_t natural;   /* Value of an UNSIGNED or BOOL */
    double real;        /* Value of a FLOAT */
    const char *text;   /* Bytes of a STRING */
} bsmm_value;

/* Gives the value of a metadata key. The message of NOT_FOUND names the key. */
BSMM_API bsmm_status bsmm_file_value(const bsmm_file *file, const char *key, bsmm_value *value);

/* Gives the items [first, first + count) of an array in values[0 .. count). The stride of
 * `values` is values[0].struct_size; the call sets struct_size of the others. NOT_FOUND past the
 * last item; INVALID if the key's value is no array. The call takes time in proportion to the
 * number of items. */
BSMM_API bsmm_status bsmm_file_value_items(const bsmm_file *file, const char *key, uint64_t first,
                                           uint64_t count, bsmm_value *values);

/* One stored tensor. Its outermost dimension comes first. */
typedef struct bsmm_tensor {
    uint32_t struct_size;
    uint32_t elem;    /* Element format, a bsmm_elem; NONE if the library lacks it */
    const char *name; /* Name as stored */
    const char
        /* Type as the file spells it: "BF16", "F8_E4M3", "U8", "MXFP4", "<f4". A type of ggml that
         * the library does not know is "type 99"; its bytes then reach up to the next tensor. */
        *dtype;
    uint32_t ndim;                /* Number of dimensions, 0 to BSMM_MAX_DIMS */
    uint32_t order;               /* Storage order of the last two dimensions, a bsmm_order */
    int64_t shape[BSMM_MAX_DIMS]; /* Extents in logical elements, also for packed types */
    const void *data;             /* Mapped bytes; safetensors may place them at any address */
    uint64_t bytes;               /* Size of data in bytes */
} bsmm_tensor;
BSMM_API uint64_t bsmm_file_tensor_count(const bsmm_file *file);
BSMM_API bsmm_status bsmm_file_tensor_at(const bsmm_file *file, uint64_t index, bsmm_tensor *out);
BSMM_API bsmm_status bsmm_file_tensor_find(const bsmm_file *file, const char *name,
                                           bsmm_tensor *out);

/* One logical weight. It is one of these:
 * - a plain float tensor of 2 dimensions or more; the leading dimensions make the batch;
 * - several tensors of a checkpoint family that belong together (elements, scales, a global scale);
 * - a tensor of a quantized type of ggml that is no format of this library (Q4_0, Q4_1, Q5_0, Q5_1,
 *   Q8_0, Q2_K to Q6_K, IQ4_NL), given as the f32 values that ggml decodes.
 *
 * Tensors of a weight are not listed again on their own. bsmm_family_at lists the families. Quark's
 * mxfp4 and ModelOpt's mxfp4 store the same tensors. If config.json beside the file names Quark,
 * the family is Quark; else it is ModelOpt. */
typedef struct bsmm_weight {
    uint32_t struct_size;
    /* 1: bsmm_weight_matrix gives pointers. 0: the weight must be unpacked, because the storage
     * interleaves scales, orders nibbles in another way, or is unaligned. */
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
BSMM_API uint64_t bsmm_file_weight_count(const bsmm_file *file);
/* Gives a weight. It returns FORMAT for a weight that is recognised but broken, such as one with a
 * global scale of 0, with swizzled scales whose layout is not declared, or with 32x32 blocks. The
 * message names the hazard, and *out still has the name and the family. */
BSMM_API bsmm_status bsmm_file_weight_at(const bsmm_file *file, uint64_t index, bsmm_weight *out);
/* Finds a weight by its name; ".weight" at the end may be left out. */
BSMM_API bsmm_status bsmm_file_weight_find(const bsmm_file *file, const char *name,
                                           uint64_t *index);

/* Gives matrix `slice` (0 .. batch-1) of a weight: its description, its sizes and, if there is one,
 * its global_scale. If weight.mapped is 1, data and scales point into the read-only mapping; else
 * they are NULL. */
BSMM_API bsmm_status bsmm_weight_matrix(const bsmm_file *file, uint64_t index, int64_t slice,
                                        bsmm_matrix *out);
/* Fills the data and scales of dst from any weight, mapped or not. bsmm_weight_matrix describes
 * dst; the caller allocates its memory. FORMAT names a block whose scale is no value of the format;
 * dst's content is then unspecified. */
BSMM_API bsmm_status bsmm_weight_unpack(const bsmm_file *file, uint64_t index, int64_t slice,
                                        const bsmm_matrix *dst);

/* Gives the indices of the tensors that hold a weight (elements, block scales, global scale), also
 * of a broken weight. An index is BSMM_NO_TENSOR if there is no such tensor. */
#define BSMM_WEIGHT_TENSORS 3
#define BSMM_NO_TENSOR      UINT64_MAX
BSMM_API bsmm_status bsmm_weight_tensors(const bsmm_file *file, uint64_t index,
                                         uint64_t tensors[BSMM_WEIGHT_TENSORS]);

/* A checkpoint family: the formats that are read from it and the formats that are written to it. */
typedef struct bsmm_family_info {
    uint32_t struct_size;
    uint32_t writes;         /* 1: bsmm_writer_add_weight takes it, for the formats of `written` */
    const char *name;        /* Name of the family, such as "modelopt" */
    const char *formats;     /* Formats that are read, separated by spaces */
    const char *detected_by; /* Rule by which a file of the family is recognised, as text */
    const char *source;      /* Source of its rules */
    const char *written;     /* Formats that are written, separated by spaces; "" if none */
} bsmm_family_info;
BSMM_API bsmm_status bsmm_family_at(uint32_t index, bsmm_family_info *info);

/* Writes a safetensors file, or a .npy file with exactly one tensor. The steps are: add the
 * tensors, begin, fill the mapped memory, commit. begin creates a temporary file in the same folder
 * and reserves its space, so that a full disk is an IO error there and not a crash later. commit
 * turns the temporary file into `path`. Until then an old file at `path` is intact; the new file
 * gets its permissions. If the file system has O_TMPFILE, the temporary file has no name, and a
 * process that is killed leaves nothing behind. Otherwise its name is .bsmm-*.tmp. Only one thread
 * at a time may call the writer, but any threads may fill the mapped memory. */
typedef struct bsmm_writer bsmm_writer;
BSMM_API bsmm_status bsmm_writer_create(const char *path, const char *kind, bsmm_writer **writer);
/* Adds a metadata entry. Keys are unique. "quantization_config" and keys that begin with "bsmm."
 * are reserved for the writer. */
BSMM_API bsmm_status bsmm_writer_metadata(bsmm_writer *writer, const char *key, const char *value);
/* Adds a tensor. dtype is spelled as in safetensors; shape counts logical elements. *index is the
 * number of the tensor. */
BSMM_API bsmm_status bsmm_writer_add_tensor(bsmm_writer *writer, const char *name,
                                            const char *dtype, uint32_t ndim, const int64_t *shape,
                                            uint64_t *index);
/* Adds the tensors in which `family` stores `batch` matrices like `matrix`. The memory and the
 * leading dimensions of `matrix` are ignored. If its global_scale is not NULL, the file gets a
 * global scale; formats with e4m3 scales get one in any case. If family is NULL, the first family
 * that can store the weight is taken; the family bsmm always can. UNSUPPORTED if `family` cannot.
 * *index is the number of the weight. */
BSMM_API bsmm_status bsmm_writer_add_weight(bsmm_writer *writer, const char *family,
                                            const char *name, const bsmm_matrix *matrix,
                                            int64_t batch, uint64_t *index);
/* Creates the temporary file. If the call fails, it removes the file. */
BSMM_API bsmm_status bsmm_writer_begin(bsmm_writer *writer);
/* These functions give the place of a tensor's bytes, or the matrix of a weight, after
 * bsmm_writer_begin. data, scales and global_scale of the matrix point into the mapping. The
 * mapping holds zeros, and 1 for global scales. global_kind is the one that the family stores. */
BSMM_API bsmm_status bsmm_writer_tensor(bsmm_writer *writer, uint64_t index, void **data,
                                        uint64_t *bytes);
BSMM_API bsmm_status bsmm_writer_weight(bsmm_writer *writer, uint64_t index, int64_t slice,
                                        bsmm_matrix *out);
/* Flushes the file, renames it to `path` and destroys the writer. If the call fails, it also
 * destroys the writer, and `path` is unchanged. */
BSMM_API bsmm_status bsmm_writer_commit(bsmm_writer *writer);
/* Removes the temporary file and destroys the writer; NULL is allowed. */
BSMM_API void bsmm_writer_abort(bsmm_writer *writer);

#ifdef __cplusplus
}
#endif
#endif
