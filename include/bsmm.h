/* SPDX-License-Identifier: Apache-2.0
 *
 * bsmm: block-scaled matrix multiplication.
 *
 *     D = round(epilogue(alpha * (A . scale_a) x (B . scale_b)^T + beta * C + bias))
 *
 * A is (M, K), B is (N, K), D and C are (M, N), bias is (N). Elements are 4-, 6-, 8-, 16- or
 * 32-bit floats; a scale covers a block of block_rows x block_cols elements, blocks running
 * along K (for D along N). Reading order of this file: status, formats, the matrix, the epilogue,
 * groups, one call, plans, quantization, scale layouts, tables, devices and speed of light, files.
 *
 * Conventions that hold everywhere:
 *  - Structs start with struct_size = sizeof(the struct); all fields that are zero mean the
 *    default. A larger struct than the library knows is accepted while its tail is zero.
 *    BSMM_INIT(type) gives such a zeroed struct.
 *  - Sizes are counted in elements unless a name ends in _bytes. Indices start at 0.
 *  - Every function that can fail returns a bsmm_status; bsmm_error_message() tells why: the
 *    field, its value and the rule. On failure no output buffer has been written, unless the
 *    function's comment says otherwise.
 *  - Everything is thread-safe unless its comment says otherwise. The library never prints,
 *    aborts, exits or reads the environment. Its only global state: each thread's message; what the
 *    first use finds out and nothing changes afterwards (the processor's features and cache, tables
 *    of elements, the GPU's driver, a record with a context of each GPU that is used); the GPU
 *    modules and functions loaded so far; and a counter of launches.
 */
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

/* The version of the library that is loaded, major * 10000 + minor * 100 + patch. */
BSMM_API uint32_t bsmm_version(void);

/* ------------------------------------------------------------------------------------------
 * Status
 * ---------------------------------------------------------------------------------------- */

/* Values never change meaning. */
typedef enum bsmm_status {
    BSMM_OK = 0,
    BSMM_E_INVALID = 1,     /* a field or argument breaks a rule */
    BSMM_E_UNSUPPORTED = 2, /* well formed, but nothing here can do it */
    BSMM_E_MEMORY = 3,      /* an allocation failed */
    BSMM_E_IO = 4,          /* the operating system refused: open, map, write, rename */
    BSMM_E_FORMAT = 5,      /* a file's content breaks its format's rules */
    BSMM_E_NOT_FOUND = 6,   /* no tensor, device, kernel, recipe of that name */
    BSMM_E_RANGE = 7,       /* a lossless conversion would lose a value */
    BSMM_E_DEVICE = 8       /* a device or its driver failed */
} bsmm_status;

/* "BSMM_E_INVALID" and so on; "unknown" for other values. */
BSMM_API const char *bsmm_status_name(bsmm_status status);

/* This thread's last failure, e.g. "a.cols: value is 96; must equal b.cols (64)". Empty before
 * the first failure. Valid until this thread's next failing call. */
BSMM_API const char *bsmm_error_message(void);

/* ------------------------------------------------------------------------------------------
 * Formats. Sources: OCP Microscaling Formats (MX) v1.0; OCP 8-bit Floating Point v1.0;
 * the fnuz variants: AMD CDNA3 ISA; nvfp4: NVIDIA cuBLAS and PTX ISA 8.7.
 * ---------------------------------------------------------------------------------------- */

/* Element formats. Value of a finite code with exponent field E, mantissa field M of m bits and
 * bias b: E = 0: (-1)^s 2^(1-b) M/2^m; else (-1)^s 2^(E-b) (1 + M/2^m). */
typedef enum bsmm_elem {
    BSMM_ELEM_NONE = 0,
    BSMM_ELEM_F32 = 1,
    BSMM_ELEM_F16 = 2,
    BSMM_ELEM_BF16 = 3,
    BSMM_ELEM_E4M3 = 4,     /* OCP e4m3fn: no Inf, NaN = S.1111.111, max 448 */
    BSMM_ELEM_E4M3FNUZ = 5, /* bias 8, NaN = 0x80, max 240 */
    BSMM_ELEM_E5M2 = 6,     /* OCP: Inf and NaN as IEEE, max 57344 */
    BSMM_ELEM_E5M2FNUZ = 7, /* bias 16, NaN = 0x80, max 57344 */
    BSMM_ELEM_E3M2 = 8,     /* 6 bits, max 28 */
    BSMM_ELEM_E2M3 = 9,     /* 6 bits, max 7.5 */
    BSMM_ELEM_E2M1 = 10,    /* 4 bits, max 6 */
    BSMM_ELEM_E8M0 = 11     /* 2^(code - 127), 255 = NaN; a scale format, listed here so that
                               its codes can be taken apart; no matrix has such elements */
} bsmm_elem;

/* Scale formats. */
typedef enum bsmm_scale {
    BSMM_SCALE_NONE = 0,
    BSMM_SCALE_E8M0 = 1,
    BSMM_SCALE_E4M3 = 2, /* the sign bit is honoured: 0x80..0xFE decode as negative */
    BSMM_SCALE_F32 = 3
} bsmm_scale;

/* A block-scaled format: element, scale, block shape. A preset is such a value with a name;
 * nothing behaves differently because of the name. Unscaled: scale NONE, block 0 x 0. */
typedef struct bsmm_format {
    uint32_t elem;       /* bsmm_elem */
    uint32_t scale;      /* bsmm_scale */
    uint32_t block_rows; /* 1 or more when scaled */
    uint32_t block_cols; /* 2 or more when scaled; the block's extent along K */
} bsmm_format;

/* The format of a preset ("mxfp8", "nvfp4", "fp8_group128", ...; list: bsmm_preset_at) or of an
 * unscaled element ("f32", "bf16", "e4m3", ...). NOT_FOUND names the known ones. */
BSMM_API bsmm_status bsmm_format_from_name(const char *name, bsmm_format *format);

/* The preset's or element's name, or "custom" if none has exactly these fields. */
BSMM_API const char *bsmm_format_name(bsmm_format format);

/* The code of `value` in an element format, rounded to nearest even. saturate != 0: overflow and
 * Inf become the largest finite value; saturate == 0: overflow gives Inf, or NaN where there is
 * no Inf, or the largest value where there is neither (OCP 8-bit v1.0 section 5.2.3, MX v1.0
 * section 5.3). NaN becomes NaN; where the format has none, the code is that of +0 (MX v1.0 leaves
 * it to the implementation). For e8m0: nearest even in the exponent's mantissa-free sense is not
 * defined by OCP; the value is rounded to the nearest power of two, ties up, as ml_dtypes and
 * torch do (like them, all of 2^-127 < value < 2^-126 up, all of 0 < value < 2^-127 to 2^-127), and
 * zero, negative values and overflow give NaN, saturating: the nearest end. */
BSMM_API bsmm_status bsmm_encode_elem(uint32_t elem, float value, int saturate, uint32_t *code);

/* The value of a code; exact. INVALID if the code has more bits than the format. */
BSMM_API bsmm_status bsmm_decode_elem(uint32_t elem, uint32_t code, double *value);

/* ------------------------------------------------------------------------------------------
 * The matrix
 * ---------------------------------------------------------------------------------------- */

/* Which index runs fastest in memory. */
typedef enum bsmm_order {
    BSMM_ORDER_ROW = 0, /* columns (K) contiguous: element (r, c) at r * ld + c */
    BSMM_ORDER_COL = 1  /* rows (M or N) contiguous: element (r, c) at c * ld + r */
} bsmm_order;

/* Where the scale of block (r, c) lies. docs/LAYOUTS.md draws each; R x C blocks. */
typedef enum bsmm_layout {
    BSMM_LAYOUT_ROW_MAJOR = 0,       /* r * ld + c; ld 0 = C */
    BSMM_LAYOUT_COL_MAJOR = 1,       /* c * ld + r; ld 0 = R */
    BSMM_LAYOUT_TILE_CONTIGUOUS = 2, /* tiles of scale_tile_rows x scale_tile_cols scales */
    BSMM_LAYOUT_NV_128X4 = 3,        /* cuBLAS and tcgen05; torchao to_blocked */
    BSMM_LAYOUT_NV_8X4 = 4,          /* small M: vLLM, FlashInfer */
    BSMM_LAYOUT_CDNA4_MFMA16 = 5,    /* hipBLASLt BLK32_UE8M0_32_8_EXT, aiter shuffle_scale */
    BSMM_LAYOUT_CDNA4_MFMA32 = 6,    /* Triton's block-scaled tutorial, 32x32 MFMA */
    BSMM_LAYOUT_CUBLAS_VEC128 = 7,   /* cuBLASLt fp32 1x128: c * roundup(R, 4) + r */
    BSMM_LAYOUT_CUBLAS_BLK128 = 8    /* cuBLASLt fp32 128x128: r * roundup(C, 4) + c */
} bsmm_layout;

/* How a second-level (per-tensor) scale enters. */
typedef enum bsmm_global {
    BSMM_GLOBAL_MULTIPLIER = 0, /* value = element * scale * g (ModelOpt, torchao) */
    BSMM_GLOBAL_DIVISOR = 1     /* value = element * scale / g (compressed-tensors) */
} bsmm_global;

/* A matrix and, where a call reads or writes it, its memory. Elements of 4 bits are packed two
 * per byte along the contiguous index, the even one in the low nibble; of 6 bits four in three
 * bytes, least significant bit first; `ld` must then be a multiple of 2 or 4, and an odd number of
 * elements in the contiguous direction is stored padded to that multiple. Buffers need the
 * alignment of their element type (4 for f32, 2 for f16 and bf16, else 1). */
typedef struct bsmm_matrix {
    uint32_t struct_size;
    uint32_t order;        /* bsmm_order */
    bsmm_format format;    /* of elements and scales */
    int64_t rows;          /* M or N; 0 and more */
    int64_t cols;          /* K (N for C and D); 0 and more */
    int64_t ld;            /* leading dimension in elements; 0 = packed */
    void *data;            /* elements */
    uint64_t data_bytes;   /* the buffer's size; 0 = not checked; else at least bsmm_data_bytes */
    void *scales;          /* one per block; NULL when unscaled */
    uint64_t scale_bytes;  /* 0 = not checked, allowed only for layouts that pad nothing
                              (ROW_MAJOR, COL_MAJOR); else exactly bsmm_scale_bytes,
                              or with scale_ld up to a whole last line */
    uint32_t scale_layout; /* bsmm_layout */
    uint32_t global_kind;  /* bsmm_global */
    uint32_t scale_tile_rows, scale_tile_cols; /* TILE_CONTIGUOUS only, in scales */
    int64_t scale_ld;                          /* ROW_MAJOR and COL_MAJOR only; 0 = packed */
    float *global_scale;                       /* one value, host memory; NULL = 1 */
} bsmm_matrix;

/* The bytes of the element buffer and of the scale buffer (padding included) that the
 * description needs. Pointers are not looked at. INVALID if the description breaks a rule. */
BSMM_API bsmm_status bsmm_data_bytes(const bsmm_matrix *matrix, uint64_t *bytes);
BSMM_API bsmm_status bsmm_scale_bytes(const bsmm_matrix *matrix, uint64_t *bytes);

/* ------------------------------------------------------------------------------------------
 * The epilogue: what a result x = alpha * A x B^T + beta * C + bias goes through before it is
 * rounded. docs/NUMERICS.md says what is exact.
 * ---------------------------------------------------------------------------------------- */

/* f in y = f(x). NaN stays NaN, and f(-Inf) is what the formula gives (silu and gelu: NaN, as in
 * PyTorch). The last three rows are gated: B's rows are gates and ups, and D has half as many
 * columns as B has rows. */
typedef enum bsmm_activation {
    BSMM_ACTIVATION_NONE = 0,
    BSMM_ACTIVATION_SILU = 1, /* x / (1 + exp(-slope x)): torch silu; slope 1.702: quick gelu */
    BSMM_ACTIVATION_GELU = 2, /* x (1 + erf(x / sqrt(2))) / 2: torch gelu */
    BSMM_ACTIVATION_GELU_TANH = 3, /* x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2: torch
                                      gelu(approximate="tanh") */
    BSMM_ACTIVATION_RELU = 4,      /* max(x, 0): torch relu */
    BSMM_ACTIVATION_RELU2 = 5,     /* max(x, 0)^2: Primer (arXiv 2109.08668), Nemotron */
    BSMM_ACTIVATION_SWIGLU = 6, /* silu(gate) (up + up_offset): arXiv 2002.05202, Llama, gpt-oss */
    BSMM_ACTIVATION_GEGLU = 7,  /* gelu(gate) (up + up_offset): arXiv 2002.05202 */
    BSMM_ACTIVATION_GEGLU_TANH = 8 /* gelu_tanh(gate) (up + up_offset): Gemma */
} bsmm_activation;

/* Where a gated activation finds gate and up of D's column n. */
typedef enum bsmm_halves {
    BSMM_HALVES_SPLIT = 0,      /* columns n and n + N / 2 of A x B^T: Llama, vLLM's SiluAndMul */
    BSMM_HALVES_INTERLEAVED = 1 /* columns 2 n and 2 n + 1: gpt-oss */
} bsmm_halves;

/* Which factors an epilogue has; more may be added up. */
typedef enum bsmm_scale_by { BSMM_SCALE_BY_ROW = 1, BSMM_SCALE_BY_COL = 2 } bsmm_scale_by;

/* D = round(row_scale[m] * col_scale[n] * (f(x) + residual)), in this order, without a rounding
 * between the steps. A gated f first clamps, as gpt-oss does: gate to at most limit, up to -limit
 * .. limit; then it adds up_offset to up. gpt-oss: SWIGLU, INTERLEAVED, limit 7, slope 1.702,
 * up_offset 1 (gpt_oss/torch/model.py, swiglu). */
typedef struct bsmm_epilogue {
    uint32_t struct_size;
    uint32_t activation;         /* bsmm_activation */
    uint32_t halves;             /* bsmm_halves; must be 0 unless f is gated */
    uint32_t scale_by;           /* bsmm_scale_by: which factors a run gives */
    float limit;                 /* above 0; 0 = no clamp; must be 0 unless f is gated */
    float slope;                 /* of SILU and SWIGLU; finite; 0 = 1 */
    float up_offset;             /* of a gated f; finite */
    uint32_t reserved;           /* 0 */
    const bsmm_matrix *residual; /* of D's shape: f32, f16 or bf16; NULL = none; may be d itself
                                    when the descriptions are equal */
    const float *row_scale;      /* one per row of D; read by bsmm_matmul alone */
    const float *col_scale;      /* one per column of D; read by bsmm_matmul alone */
} bsmm_epilogue;

/* ------------------------------------------------------------------------------------------
 * Groups: many products in one plan. docs/GROUPS.md says how DeepGEMM's, torch's and FlashInfer's
 * forms map to these.
 * ---------------------------------------------------------------------------------------- */

/* G groups. A stack is G matrices of the described shape, a step apart. */
typedef enum bsmm_group_kind {
    BSMM_GROUP_NONE = 0,   /* one product */
    BSMM_GROUP_BATCH = 1,  /* A, B, C, D and the residual are stacks */
    BSMM_GROUP_ROWS = 2,   /* B is a stack; groups share out the rows of A, C, D and the residual:
                              sizes[g] is the row behind the last one of group g */
    BSMM_GROUP_MASKED = 3, /* as BATCH, but group g uses the first sizes[g] rows of A, C, D and the
                              residual, and other rows of D are not written */
    BSMM_GROUP_K = 4 /* C, D and the residual are stacks; groups share out the columns of A and
                        B: sizes[g] is the column behind the last one of group g. A group
                        without columns stores the epilogue of beta * C + bias */
} bsmm_group_kind;

/* Properties of groups; more may be added up. EACH: an array of G in place of one. */
typedef enum bsmm_group_flags {
    BSMM_GROUP_EACH_ALPHA = 1,      /* group_alpha[g] times desc.alpha in place of desc.alpha */
    BSMM_GROUP_EACH_BIAS = 2,       /* bias is (G, N) */
    BSMM_GROUP_EACH_A_GLOBAL = 4,   /* second-level scales of A: a_global[g] */
    BSMM_GROUP_EACH_B_GLOBAL = 8,   /* the same of B: nvfp4's global scale per expert */
    BSMM_GROUP_EACH_D_GLOBAL = 16,  /* the same of D */
    BSMM_GROUP_EACH_COL_SCALE = 32, /* the epilogue's col_scale is (G, columns of D) */
    BSMM_GROUP_GATHER_A = 64,     /* ROWS and MASKED: A is one matrix of any number of rows, and row
                                     gather[r] of it is multiplied for row r of D (MASKED: for row m of
                                     group g, r being g * M + m). -1, and what is no row of A, is a row
                                     of zeros. Block scales of A have block_rows 1 */
    BSMM_GROUP_SCALES_APART = 128 /* ROWS and K: the scales of a matrix that groups share out are
                                     not one matrix. Each group's are laid out, and padded, as those
                                     of a matrix of the group's shape, one behind the other.
                                     scale_bytes then is at least bsmm_group_scale_bytes */
} bsmm_group_flags;

/* The step of a stack that is one matrix, shared by all groups; not for D. */
#define BSMM_GROUP_SHARED (-1)

/* Values in the device's memory may be anything: a start is the end before it, rounded up to
 * `align`; an end lies from there to the last row or column; sizes of MASKED lie from 0 to the
 * described rows. What is outside counts as the nearest that is inside, so that nothing outside D
 * is written. Groups of no rows write nothing. */
typedef struct bsmm_group {
    uint32_t struct_size;
    uint32_t kind;     /* bsmm_group_kind */
    uint32_t flags;    /* bsmm_group_flags */
    uint32_t reserved; /* 0 */
    int64_t count;     /* G: 0 and more */
    int64_t align;     /* ROWS and K: groups start at multiples of it; 0 = 1. Of the matrices that
                          are shared out, a multiple must begin a byte, and, unless SCALES_APART,
                          a scale block and a tile of the scale layout */
    int64_t expected_rows; /* a hint to kernels: the rows of a group, about; 0 = unknown */
    /* From matrix to matrix of stacks, in elements; 0 = packed, one matrix behind the other.
     * Matrices of D must not overlap. */
    int64_t a_step, b_step, c_step, d_step, residual_step; /* in elements */
    int64_t a_scale_step, b_scale_step, d_scale_step;      /* the same of scales, in scales */
    const int32_t *sizes;                                  /* G values; read by bsmm_matmul alone */
    const int32_t *gather; /* one per row of D; read by bsmm_matmul alone */
    const float *alpha;    /* G values; read by bsmm_matmul alone */
} bsmm_group;

/* The bytes that the scales of a matrix take at most, if `group` shares out its rows (of A and D of
 * kind ROWS) or its columns (of A and B of kind K) with BSMM_GROUP_SCALES_APART. INVALID for other
 * kinds and without that flag. */
BSMM_API bsmm_status bsmm_group_scale_bytes(const bsmm_group *group, const bsmm_matrix *matrix,
                                            uint64_t *bytes);

/* ------------------------------------------------------------------------------------------
 * One call
 * ---------------------------------------------------------------------------------------- */

/* What a kernel may trade. */
typedef enum bsmm_compute {
    BSMM_COMPUTE_EXACT = 0, /* products exact, sums fp32 or better; FP8 with fp32 scales of 1 x 128
                               or 128 x 128 on Hopper: what its FP8 tensor cores sum
                               (docs/NUMERICS.md) */
    BSMM_COMPUTE_FAST = 1   /* kernels with a wider, documented bound may be chosen */
} bsmm_compute;

/* Properties of a product; more may be added up. */
typedef enum bsmm_matmul_flags {
    BSMM_MATMUL_ANY_ROWS = 1, /* plans only: the rows of A, C, D and the residual are the most that
                                 a run may have; bsmm_buffers says how many it has. Every run's
                                 buffers have room for the described rows; pitches, and where
                                 scales lie, are those of the described rows */
    BSMM_MATMUL_BATCH_INVARIANT = 2 /* the order of a result's sum depends on the formats and K
                                       alone (docs/NUMERICS.md, Order of sums): the bits of a row of
                                       D depend neither on M, nor on the row's place, the other
                                       rows, groups or threads. Kernels that cannot promise it
                                       refuse */
} bsmm_matmul_flags;

/* D = round(epilogue(alpha * A x B^T + beta * C + bias)). N is b->rows; D has N columns, or N / 2
 * under a gated activation. */
typedef struct bsmm_matmul_desc {
    uint32_t struct_size;
    uint32_t compute;     /* bsmm_compute */
    const bsmm_matrix *a; /* (M, K): any format */
    const bsmm_matrix *b; /* (N, K): any format */
    const bsmm_matrix *c; /* (M, N): f32, f16 or bf16; NULL unless beta is used; may be d itself
                             when the descriptions are equal */
    const bsmm_matrix *d; /* (M, N): f32, f16, bf16 or an 8-bit float unscaled, or any block-scaled
                             format, quantized on store with d->global_scale read, not written */
    const float *alpha;   /* read when the plan is made; NULL = 1; finite */
    const float *beta;    /* NULL = 0; finite; C is not read when 0 */
    const void *bias;     /* N values of bias_elem, added to every row; NULL = none */
    uint32_t bias_elem;   /* BSMM_ELEM_F32, F16 or BF16; NONE = no bias (then bias must be NULL) */
    uint32_t threads;     /* 0 = as many as the machine has; results never depend on it */
    const char *recipe;   /* for a block-scaled D; NULL = the format's default recipe */
    const char *device;   /* "cpu" or "cuda:0" (bsmm_local_device_at); NULL = "cpu" */
    const char *kernel;   /* force one by name ("ref", "cpu_f32"); NULL = the best that accepts */
    uint32_t b_packed;    /* 1: plans only; runs are given packed_b (bsmm_pack_b), and the workspace
                             has no room for B */
    uint32_t flags;       /* bsmm_matmul_flags */
    const bsmm_epilogue *epilogue; /* NULL = none */
    const bsmm_group *group;       /* NULL = one product */
} bsmm_matmul_desc;

/* Multiplies, with the pointers in the matrices. Allocates the plan's workspace for the duration
 * of the call. A, B, C, bias are read, D (and D's scales) written. D must not overlap A or B.
 * On a cuda device all pointers of matrices and bias, second-level scales included, are device
 * memory; the call uses the default stream and returns when D is there. */
BSMM_API bsmm_status bsmm_matmul(const bsmm_matmul_desc *desc);

/* ------------------------------------------------------------------------------------------
 * Plans: validate and choose once, run many times
 * ---------------------------------------------------------------------------------------- */

/* Immutable; any number of threads may run one plan, each with its own workspace. */
typedef struct bsmm_plan bsmm_plan;

/* Validates and chooses the kernel. The matrices' pointers are not read (nor alpha's, beta's,
 * names' after the call); desc->bias only says by being non-NULL or by bias_elem that there is
 * one. *plan is NULL on failure. */
BSMM_API bsmm_status bsmm_plan_create(const bsmm_matmul_desc *desc, bsmm_plan **plan);
BSMM_API void bsmm_plan_destroy(bsmm_plan *plan); /* NULL is allowed */

/* The chosen kernel's name, and the workspace that each concurrent run needs (64-byte aligned). */
BSMM_API const char *bsmm_plan_kernel(const bsmm_plan *plan);
BSMM_API uint64_t bsmm_plan_workspace_bytes(const bsmm_plan *plan);

/* The memory of one run; fields as in bsmm_matrix. On a cuda device every pointer but the stream is
 * device memory (not managed by the host: cudaMalloc, cuMemAlloc, a framework's tensor),
 * second-level scales included; kernels may want data and scales aligned to 16 bytes, and refuse
 * others. */
typedef struct bsmm_buffers {
    uint32_t struct_size;
    uint32_t reserved;        /* 0 */
    const void *a, *a_scales; /* scales: NULL when the format has none */
    const float *a_global;    /* one value; NULL = 1 */
    const void *b, *b_scales; /* as for a */
    const float *b_global;    /* as for a */
    const void *c;            /* NULL unless beta is not 0 */
    void *d, *d_scales;       /* written */
    const float *d_global;    /* read: a second-level scale is chosen by the caller */
    const void *bias;         /* NULL unless the plan has one */
    void *workspace;          /* 64-byte aligned */
    uint64_t workspace_bytes; /* at least bsmm_plan_workspace_bytes */
    const void *packed_b;     /* of a plan with b_packed: what bsmm_pack_b filled */
    uint64_t packed_b_bytes;  /* its size */
    void *stream;           /* of a cuda device: the CUstream (cudaStream_t) that the run is queued
                               in; NULL = the default stream. Of the cpu: not read */
    const void *residual;   /* NULL unless the epilogue has one */
    const float *row_scale; /* one per row of D; NULL unless the epilogue scales by rows */
    const float *col_scale; /* one per column of D; NULL unless the epilogue scales by columns */
    int64_t rows; /* of a plan with BSMM_MATMUL_ANY_ROWS: the run's rows, 0 to the described ones;
                     else 0. Rows of D behind them are not written, but their scales, which
                     are padding then, are written 0 up to the end of the layout's tile */
    const int32_t *device_rows; /* of such a plan: one value in the device's memory, which takes the
                                   place of `rows` when the run is executed; below 0 counts as 0,
                                   above the described rows as these. NULL = rows counts */
    const int32_t *group_sizes; /* of a plan with groups of kind ROWS, MASKED and K: G values */
    const int32_t *gather;      /* with GATHER_A: one per row of D */
    const float *group_alpha;   /* with EACH_ALPHA: G values */
} bsmm_buffers;

/* Packed weights: the form of B that the plan's kernel multiplies, made once. The bytes depend on
 * B, the formats and the kernel (on a cuda device, for a bf16 B, also on whether there is a C), not
 * on M, D, factors or threads; they may be written to a file and mapped back for any plan that
 * takes the same kernel, formats and B's shape (a run refuses others). B itself must still be given
 * to runs: rows whose scales span too much are read from it.
 * 0 bytes: the kernel has no such form, and desc->b_packed is UNSUPPORTED. A kernel of a cuda
 * device that multiplies this B as it is stored takes plans with b_packed all the same; the form is
 * then its header alone, 128 bytes. */
BSMM_API uint64_t bsmm_plan_packed_b_bytes(const bsmm_plan *plan);
/* Packs buffers->b, b_scales and b_global (nothing else is read) into packed, 64-byte aligned. On a
 * cuda device the packing is queued in buffers->stream, and runs do not check what packed_b was
 * made for, which the stream would have to be waited for: the caller sees to it. */
BSMM_API bsmm_status bsmm_pack_b(const bsmm_plan *plan, const bsmm_buffers *buffers, void *packed,
                                 uint64_t packed_bytes);

/* Allocates nothing. INVALID, naming the field: missing or misaligned pointers, a short workspace,
 * C or bias that the plan does not have, a D that overlaps what is read, and a workspace or
 * packed_b that overlaps any other buffer or each other. On a cuda device the work is queued in
 * buffers->stream: the run does not wait, may be captured into a graph, and reports only what is
 * known before it starts. Host memory and that of another GPU are INVALID. */
BSMM_API bsmm_status bsmm_plan_run(const bsmm_plan *plan, const bsmm_buffers *buffers);

/* What one kernel says of a product, best kernel first. */
typedef struct bsmm_explanation {
    uint32_t struct_size;
    uint32_t accepts;   /* 1 or 0 */
    const char *kernel; /* static storage */
    char reason[240];   /* why it refuses; empty if it accepts */
    double bound;       /* largest error before the epilogue and the last rounding, as a multiple
                           of |alpha| * sum |a||b|; 0 if it refuses */
    const char *device; /* the kind of device that it runs on ("cpu", "cuda"); static storage */
    uint64_t packed_b_bytes; /* of B packed ahead, as bsmm_plan_packed_b_bytes; 0 if it refuses */
} bsmm_explanation;

/* The kernel of rank `index` (0 = tried first) on desc; desc->kernel is ignored. NOT_FOUND past the
 * last; INVALID if the description breaks a rule. The first that accepts is what a plan takes. */
BSMM_API bsmm_status bsmm_explain(const bsmm_matmul_desc *desc, uint32_t index,
                                  bsmm_explanation *explanation);

/* ------------------------------------------------------------------------------------------
 * Quantization
 * ---------------------------------------------------------------------------------------- */

/* Options of a recipe (docs/RECIPES.md). */
typedef enum bsmm_quantize_flags {
    BSMM_QUANTIZE_POW2 = 1, /* f32 scales rounded to powers of two (ue8m0), as the recipe does */
    BSMM_QUANTIZE_ONE_LEVEL = 2 /* no per-tensor scale where the recipe has the choice */
} bsmm_quantize_flags;

/* What to quantize, into what, and how. */
typedef struct bsmm_quantize_desc {
    uint32_t struct_size;
    uint32_t flags;         /* bsmm_quantize_flags */
    const bsmm_matrix *src; /* f32, f16 or bf16, unscaled */
    const bsmm_matrix *dst; /* any format; data, scales and, where the recipe has two levels,
                             *global_scale are written; padding of scales is written 0 */
    const char *recipe;     /* "ocp", "rceil", ...; NULL = the format's default */
    const float *amax;      /* largest magnitude of the whole tensor, when src is only a part of
                               it; NULL = of src */
    uint32_t threads;       /* 0 = as many as the machine has */
    uint32_t reserved;      /* 0 */
    const char *device; /* "cpu" or "cuda:0"; NULL = "cpu". On a cuda device every pointer of the
                           matrices and amax are device memory, and the work is only queued */
    void *stream;       /* as in bsmm_buffers */
} bsmm_quantize_desc;

/* Where a conversion runs. On a cuda device every pointer of the matrices is device memory, the
 * work is only queued in the stream, nothing is allocated, and the call may be captured into a
 * graph. */
typedef struct bsmm_exec {
    uint32_t struct_size;
    uint32_t threads;   /* of the cpu; 0 = as many as the machine has */
    const char *device; /* "cpu" or "cuda:0"; NULL = "cpu" */
    void *stream;       /* as in bsmm_buffers */
} bsmm_exec;

/* Error of a quantized matrix. Shares are fractions of all elements. */
typedef struct bsmm_quantize_report {
    uint32_t struct_size;
    uint32_t reserved;
    double sqnr_db;     /* 10 log10(sum x^2 / sum (x - q)^2); +Inf if exact */
    double max_error;   /* max |x - q| */
    double clipped;     /* |x| above the largest value that its block's scale can give */
    double underflowed; /* x nonzero, q zero */
    double signal;      /* sum x^2; with noise, reports of parts can be added up */
    double noise;       /* sum (x - q)^2 */
    int64_t count;      /* elements */
} bsmm_quantize_report;

/* Quantizes by a named recipe, reproducing its project's bytes on every device. report may be NULL,
 * and must be on a cuda device. */
BSMM_API bsmm_status bsmm_quantize(const bsmm_quantize_desc *desc, bsmm_quantize_report *report);

/* Compares values (f32, f16, bf16) with their quantized form of the same shape. */
BSMM_API bsmm_status bsmm_compare(const bsmm_matrix *src, const bsmm_matrix *quantized,
                                  bsmm_quantize_report *report);

/* max |x| over an unscaled f32, f16 or bf16 matrix; NaN if any is NaN; 0 if empty. */
BSMM_API bsmm_status bsmm_amax(const bsmm_matrix *src, float *amax);
/* The same where exec says; on a cuda device amax is device memory too. NULL exec: the cpu. */
BSMM_API bsmm_status bsmm_amax_on(const bsmm_exec *exec, const bsmm_matrix *src, float *amax);

/* Any format -> unscaled f32, f16 or bf16: the exact value rounded once, to nearest even. */
BSMM_API bsmm_status bsmm_dequantize(const bsmm_matrix *src, const bsmm_matrix *dst);
/* The same where exec says. NULL exec: the cpu. */
BSMM_API bsmm_status bsmm_dequantize_on(const bsmm_exec *exec, const bsmm_matrix *src,
                                        const bsmm_matrix *dst);

/* Keeps every value bit for bit, or returns RANGE naming the block, with dst's content then
 * unspecified. Host memory only. mxfp4 -> nvfp4 (writes *dst->global_scale), mxfp4 -> fp8_block128
 * and any format to itself in another order or scale layout. */
BSMM_API bsmm_status bsmm_convert(const bsmm_matrix *src, const bsmm_matrix *dst);

/* Moves scales between layouts: src and dst describe the same rows, cols and format; only the
 * scale fields differ and only scales are touched. Padding is written 0. */
BSMM_API bsmm_status bsmm_relayout_scales(const bsmm_matrix *src, const bsmm_matrix *dst);
/* The same where exec says. NULL exec: the cpu. */
BSMM_API bsmm_status bsmm_relayout_scales_on(const bsmm_exec *exec, const bsmm_matrix *src,
                                             const bsmm_matrix *dst);

/* ------------------------------------------------------------------------------------------
 * Tables. Index 0 and up until NOT_FOUND; strings have static storage.
 * ---------------------------------------------------------------------------------------- */

/* An element format, or e8m0. */
typedef struct bsmm_elem_info {
    uint32_t struct_size;
    uint32_t elem;                               /* bsmm_elem */
    const char *name;                            /* "e4m3" */
    uint32_t bits, exponent_bits, mantissa_bits; /* widths; bits counts the sign */
    int32_t bias;                                /* of the exponent */
    double max, min_normal, min_subnormal;       /* min_subnormal 0: none */
    const char *nan, *inf, *zeros;               /* codes, as text; "none" */
    const char *used_by;                         /* hardware and formats */
} bsmm_elem_info;
BSMM_API bsmm_status bsmm_elem_at(uint32_t index, bsmm_elem_info *info);

/* A block-scaled format with a name. */
typedef struct bsmm_preset_info {
    uint32_t struct_size;
    uint32_t reserved;
    const char *name;           /* "mxfp8" */
    bsmm_format format;         /* what the name stands for */
    const char *second_level;   /* "none", "optional f32 per tensor" */
    const char *used_by;        /* hardware and checkpoints */
    const char *default_recipe; /* what bsmm_quantize takes for NULL */
    double bits_per_weight;     /* elements and block scales */
} bsmm_preset_info;
BSMM_API bsmm_status bsmm_preset_at(uint32_t index, bsmm_preset_info *info);

/* A layout is digits: inside a tile the offset is the sum over digits of
 * ((index on axis / divisor) % extent) * stride, tiles follow in row-major order of tiles. */
typedef struct bsmm_digit {
    uint32_t axis;           /* 0: row of the scale matrix, 1: column */
    uint32_t extent, stride; /* how many values the digit takes; the step in elements */
} bsmm_digit;
/* A scale layout. */
typedef struct bsmm_layout_info {
    uint32_t struct_size;
    uint32_t layout;                               /* bsmm_layout */
    const char *name, *padding, *offset, *used_by; /* the last three for people to read */
    uint32_t tile_rows, tile_cols;                 /* 0: given by the caller or by the matrix */
    uint32_t digit_count;                          /* 0: the offset is a plain pitch */
    bsmm_digit digits[6];                          /* innermost of each axis first */
} bsmm_layout_info;
BSMM_API bsmm_status bsmm_layout_at(uint32_t index, bsmm_layout_info *info);
BSMM_API bsmm_status bsmm_layout_from_name(const char *name, uint32_t *layout);

/* The element offset of the scale of block (block_row, block_col) in matrix's scale layout. */
BSMM_API bsmm_status bsmm_scale_offset(const bsmm_matrix *matrix, int64_t block_row,
                                       int64_t block_col, uint64_t *offset);

/* An activation. */
typedef struct bsmm_activation_info {
    uint32_t struct_size;
    uint32_t activation; /* bsmm_activation */
    const char *name;    /* "gelu_tanh" */
    const char *formula; /* of x; of a gated one, what gate goes through */
    const char *source;  /* where the formula comes from */
    uint32_t is_gated;   /* 1: takes gate and up from two columns */
    uint32_t has_slope;  /* 1: bsmm_epilogue.slope counts */
} bsmm_activation_info;
BSMM_API bsmm_status bsmm_activation_at(uint32_t index, bsmm_activation_info *info);

/* A named way to choose scales and round. */
typedef struct bsmm_recipe_info {
    uint32_t struct_size;
    uint32_t flags;            /* bsmm_quantize_flags that it understands */
    const char *name;          /* "ocp" */
    const char *formats;       /* preset names, separated by spaces */
    const char *rule, *source; /* how scales are chosen; whose bytes it reproduces */
} bsmm_recipe_info;
BSMM_API bsmm_status bsmm_recipe_at(uint32_t index, bsmm_recipe_info *info);

/* ------------------------------------------------------------------------------------------
 * Devices and speed of light
 * ---------------------------------------------------------------------------------------- */

/* A known device's data-sheet peaks; operations per second count a multiply-add as two. */
typedef struct bsmm_device_info {
    uint32_t struct_size;
    uint32_t reserved;
    const char *name;            /* "mi300x" */
    const char *title;           /* "AMD Instinct MI300X" */
    double f32, f16, f8, f6, f4; /* dense matrix peaks in operations/s; 0: no such unit */
    double bandwidth;            /* bytes/s of memory */
    const char *source;          /* where the figures come from */
} bsmm_device_info;
BSMM_API bsmm_status bsmm_device_at(uint32_t index, bsmm_device_info *info);

/* What this machine offers: "cpu" and, when their backends are present, "cuda:0" and so on.
 * `features` lists instruction sets, or the architecture ("sm_90a"), memory, level-2 cache and the
 * CUDA version of the driver. */
typedef struct bsmm_local_device {
    uint32_t struct_size;
    uint32_t cores;     /* CPU threads, or multiprocessors */
    char name[32];      /* "cpu" */
    char title[96];     /* the product's own name */
    char features[160]; /* space-separated */
} bsmm_local_device;
BSMM_API bsmm_status bsmm_local_device_at(uint32_t index, bsmm_local_device *info);

/* ---- device memory, for callers that have no other runtime ----
 *
 * Pointers of a device's own runtime (cudaMalloc, cuMemAlloc, a framework's tensor) serve every
 * function of this header as well as these do. `exec` names device and stream as for conversions;
 * NULL: the cpu. Where work is queued in a stream, host memory that it reads or writes must stay
 * until the stream is done. */

/* *memory = `bytes` bytes of a device's memory ("cpu", "cuda:0"), aligned to 64 bytes; NULL for 0
 * bytes. MEMORY if there are not so many. Every allocation needs its bsmm_free_memory on the same
 * device. */
BSMM_API bsmm_status bsmm_allocate_memory(const char *device, uint64_t bytes, void **memory);

/* Frees what bsmm_allocate_memory gave; NULL is allowed. The caller sees to it that no queued work
 * uses it any more. */
BSMM_API bsmm_status bsmm_free_memory(const char *device, void *memory);

/* Copies `bytes` bytes in the order of the stream: within the device, or between it and host
 * memory, as the pointers say. The two must not overlap. */
BSMM_API bsmm_status bsmm_copy_memory(const bsmm_exec *exec, void *to, const void *from,
                                      uint64_t bytes);

/* Sets `bytes` bytes of the device's memory to `value` (0 to 255) in the order of the stream. */
BSMM_API bsmm_status bsmm_fill_memory(const bsmm_exec *exec, void *to, uint32_t value,
                                      uint64_t bytes);

/* Waits until all that was queued in the stream is done. DEVICE if any of it has failed. */
BSMM_API bsmm_status bsmm_synchronize_stream(const bsmm_exec *exec);

/* The least time that a product can take on a device, and why. */
typedef struct bsmm_sol_estimate {
    uint32_t struct_size;
    uint32_t reserved;
    double seconds;           /* max(compute_seconds, memory_seconds) */
    double compute_seconds;   /* 2 M N K / peak of the unit that eats both operands */
    double memory_seconds;    /* (A + B + scales + C + D) / bandwidth, each byte once */
    double operations, bytes; /* what the two times were computed from */
    const char *unit;         /* "f8": which peak applied */
    const char *limit;        /* "compute" or "memory" */
} bsmm_sol_estimate;

/* Speed of light of a product on a known device (bsmm_device_at's names). */
BSMM_API bsmm_status bsmm_estimate_sol(const char *device, const bsmm_matmul_desc *desc,
                                       bsmm_sol_estimate *estimate);

/* ------------------------------------------------------------------------------------------
 * Files: safetensors (one file, or a sharded model by its index or its folder), GGUF, .npy.
 * Files are mapped, not loaded; they must not be truncated by others while open. A bsmm_file is
 * immutable once open: any number of threads may read it. Strings and pointers live until close.
 * ---------------------------------------------------------------------------------------- */

typedef struct bsmm_file bsmm_file;

#define BSMM_MAX_DIMS 8

/* path: FILE.safetensors, model.safetensors.index.json, a folder that holds either, FILE.gguf or
 * FILE.npy; the content decides, not the name. FORMAT errors name the file, field and rule. */
BSMM_API bsmm_status bsmm_file_open(const char *path, bsmm_file **file);
BSMM_API void bsmm_file_close(bsmm_file *file); /* NULL is allowed */

/* "safetensors", "gguf" or "npy". */
BSMM_API const char *bsmm_file_kind(const bsmm_file *file);

/* One file on disk that an open file consists of. */
typedef struct bsmm_file_part {
    uint32_t struct_size;
    uint32_t reserved;
    const char *path; /* as it was opened; of a shard: the index's folder and the shard's name */
    const void *data; /* where it is mapped, read-only */
    uint64_t bytes;   /* its size when it was opened */
} bsmm_file_part;
/* Part 0 is the file itself (of a sharded model its index), then come the shards. An output must be
 * none of them. NOT_FOUND past the last. */
BSMM_API bsmm_status bsmm_file_part_at(const bsmm_file *file, uint64_t index, bsmm_file_part *out);

/* A metadata value (safetensors __metadata__, GGUF string key); NULL if absent. */
BSMM_API const char *bsmm_file_metadata(const bsmm_file *file, const char *key);
/* Metadata number `index`, in the order of keys; *value is NULL where it is no text (GGUF's numbers
 * and arrays). NOT_FOUND past the last. */
BSMM_API bsmm_status bsmm_file_metadata_at(const bsmm_file *file, uint64_t index, const char **key,
                                           const char **value);

/* What a metadata value is. */
typedef enum bsmm_value_type {
    BSMM_VALUE_NONE = 0,
    BSMM_VALUE_INTEGER = 1,  /* signed: `integer` holds it */
    BSMM_VALUE_UNSIGNED = 2, /* `natural` holds it */
    BSMM_VALUE_FLOAT = 3,    /* `real` holds it, exactly */
    BSMM_VALUE_BOOL = 4,     /* `natural` holds it: 0 or 1 */
    BSMM_VALUE_STRING = 5,   /* `text` points to `count` bytes, which need not be UTF-8 */
    BSMM_VALUE_ARRAY = 6     /* `count` items of item_type: bsmm_file_value_items */
} bsmm_value_type;

/* A metadata value with its type (GGUF specification, gguf_metadata_value_type; safetensors has
 * strings alone). The text is in the file's mapping and has no NUL at its end. */
typedef struct bsmm_value {
    uint32_t struct_size;
    uint32_t type;      /* bsmm_value_type */
    uint32_t item_type; /* of an array's items; never ARRAY */
    uint32_t bits;      /* of a number as it is stored, or of an array's numbers: 8 to 64 */
    uint64_t count;     /* bytes of a string, items of an array, else 1 */
    int64_t integer;    /* of INTEGER */
    uint64_t natural;   /* of UNSIGNED and BOOL */
    double real;        /* of FLOAT */
    const char *text;   /* of STRING */
} bsmm_value;

/* The value of a key. NOT_FOUND names the key. */
BSMM_API bsmm_status bsmm_file_value(const bsmm_file *file, const char *key, bsmm_value *value);

/* Items [first, first + count) of an array into values[0 .. count), whose stride is
 * values[0].struct_size; the others' struct_size is set. NOT_FOUND past the last; INVALID where the
 * key's value is no array. A call for all items takes time in proportion to their number. */
BSMM_API bsmm_status bsmm_file_value_items(const bsmm_file *file, const char *key, uint64_t first,
                                           uint64_t count, bsmm_value *values);

/* One stored tensor, outermost dimension first. */
typedef struct bsmm_tensor {
    uint32_t struct_size;
    uint32_t elem;    /* bsmm_elem (E8M0 for F8_E8M0), NONE for what is no float of this library */
    const char *name; /* as stored */
    const char
        *dtype;     /* the file's own spelling: "BF16", "F8_E4M3", "U8", "MXFP4", "<f4"; "type 99"
                       where ggml's number is not known: then bytes go up to the next tensor */
    uint32_t ndim;  /* 0 to BSMM_MAX_DIMS */
    uint32_t order; /* bsmm_order of the last two dimensions */
    int64_t shape[BSMM_MAX_DIMS]; /* logical elements, also for packed types */
    const void *data;             /* mapped; safetensors may place it at any address */
    uint64_t bytes;               /* of data */
} bsmm_tensor;
BSMM_API uint64_t bsmm_file_tensor_count(const bsmm_file *file);
BSMM_API bsmm_status bsmm_file_tensor_at(const bsmm_file *file, uint64_t index, bsmm_tensor *out);
BSMM_API bsmm_status bsmm_file_tensor_find(const bsmm_file *file, const char *name,
                                           bsmm_tensor *out);

/* One logical weight: a plain float tensor of 2 dimensions or more (leading ones make the batch),
 * what a checkpoint family stores as several tensors (elements, scales, a global scale), or a
 * tensor of a quantized type of ggml that is no format of this library (Q4_0, Q4_1, Q5_0, Q5_1,
 * Q8_0, Q2_K to Q6_K, IQ4_NL), as the f32 values that ggml makes of it. Tensors that belong to a
 * weight are not listed again on their own. bsmm_family_at lists the families. Quark's mxfp4 and
 * ModelOpt's have the same tensors: config.json beside the file tells Quark's, and without it
 * ModelOpt's are reported. */
typedef struct bsmm_weight {
    uint32_t struct_size;
    uint32_t mapped;       /* 1: bsmm_weight_matrix gives pointers; 0: unpack it (storage
                              interleaves scales, orders nibbles otherwise, or is unaligned) */
    const char *name;      /* "model.layers.0.mlp.down_proj.weight" */
    const char *family;    /* "plain", "deepseek", "modelopt", ... */
    const char *dtype;     /* of the element tensor, the file's spelling */
    bsmm_format format;    /* of elements and scales */
    int64_t batch;         /* matrices stored one after another (experts); 1 and more */
    int64_t rows, cols;    /* of each */
    uint32_t scale_layout; /* bsmm_layout */
    uint32_t reserved;
} bsmm_weight;
BSMM_API uint64_t bsmm_file_weight_count(const bsmm_file *file);
/* Returns FORMAT, naming the hazard, for a weight that is recognised but broken (a global scale of
 * 0, scales swizzled with no layout declared, 32x32 blocks); *out still tells name and family. */
BSMM_API bsmm_status bsmm_file_weight_at(const bsmm_file *file, uint64_t index, bsmm_weight *out);
/* By the weight's name; ".weight" may be left out. */
BSMM_API bsmm_status bsmm_file_weight_find(const bsmm_file *file, const char *name,
                                           uint64_t *index);

/* Matrix `slice` (0 .. batch-1) of a weight: description, sizes and, where there is one,
 * global_scale always; data and scales point into the mapping when weight.mapped, else NULL.
 * The memory is read-only. */
BSMM_API bsmm_status bsmm_weight_matrix(const bsmm_file *file, uint64_t index, int64_t slice,
                                        bsmm_matrix *out);
/* Fills the data and scales of dst (as described by bsmm_weight_matrix, memory by the caller) from
 * any weight, mapped or not. FORMAT names a block whose scale is no value of the format; dst's
 * content is then unspecified. */
BSMM_API bsmm_status bsmm_weight_unpack(const bsmm_file *file, uint64_t index, int64_t slice,
                                        const bsmm_matrix *dst);

/* The tensors that hold a weight (elements, block scales, global scale), also of a broken one;
 * BSMM_NO_TENSOR where there is none. */
#define BSMM_WEIGHT_TENSORS 3
#define BSMM_NO_TENSOR      UINT64_MAX
BSMM_API bsmm_status bsmm_weight_tensors(const bsmm_file *file, uint64_t index,
                                         uint64_t tensors[BSMM_WEIGHT_TENSORS]);

/* A checkpoint family: what is read of it, and what is written. */
typedef struct bsmm_family_info {
    uint32_t struct_size;
    uint32_t writes;         /* 1: bsmm_writer_add_weight takes it, for the formats of `written` */
    const char *name;        /* "modelopt" */
    const char *formats;     /* that are read: names, space-separated */
    const char *detected_by; /* how a file of the family is told, as text */
    const char *source;      /* where its rules stand */
    const char *written;     /* formats that are written: names, space-separated; "": none */
} bsmm_family_info;
BSMM_API bsmm_status bsmm_family_at(uint32_t index, bsmm_family_info *info);

/* Writes a safetensors (or, with exactly one tensor, a .npy) file: add, begin, fill the mapped
 * memory, commit. The data goes to a temporary file in the same folder whose space is reserved at
 * begin (a full disk is an IO error there, not a crash later) and which becomes `path` at commit;
 * until then the old file is intact, and its permissions are kept. Where the file system has
 * O_TMPFILE the temporary file has no name, so that a process that is killed leaves nothing; else
 * it is called .bsmm-*.tmp. One thread at a time, but the mapped memory is the caller's to
 * fill from any threads. */
typedef struct bsmm_writer bsmm_writer;
BSMM_API bsmm_status bsmm_writer_create(const char *path, const char *kind, bsmm_writer **writer);
/* Keys are unique; "quantization_config" and those that begin with "bsmm." are the writer's own. */
BSMM_API bsmm_status bsmm_writer_metadata(bsmm_writer *writer, const char *key, const char *value);
/* dtype in safetensors' spelling; shape counts logical elements. *index numbers the tensors. */
BSMM_API bsmm_status bsmm_writer_add_tensor(bsmm_writer *writer, const char *name,
                                            const char *dtype, uint32_t ndim, const int64_t *shape,
                                            uint64_t *index);
/* Adds the tensors that `family` stores for `batch` matrices like `matrix` (its memory and leading
 * dimensions are ignored; a global_scale that is not NULL asks for a place for one, which formats
 * with e4m3 scales have anyway). NULL family: the first that can; bsmm always can. UNSUPPORTED if
 * `family` cannot. *index numbers weights. */
BSMM_API bsmm_status bsmm_writer_add_weight(bsmm_writer *writer, const char *family,
                                            const char *name, const bsmm_matrix *matrix,
                                            int64_t batch, uint64_t *index);
/* Creates the temporary file. After a failure it is gone. */
BSMM_API bsmm_status bsmm_writer_begin(bsmm_writer *writer);
/* After begin: where to put a tensor's bytes, or a weight's matrix (data, scales, global_scale
 * point into the mapping, which holds zeros, and 1 for global scales; global_kind is as the family
 * stores it). */
BSMM_API bsmm_status bsmm_writer_tensor(bsmm_writer *writer, uint64_t index, void **data,
                                        uint64_t *bytes);
BSMM_API bsmm_status bsmm_writer_weight(bsmm_writer *writer, uint64_t index, int64_t slice,
                                        bsmm_matrix *out);
/* Flushes, renames, and destroys the writer; also when it fails, with `path` then as it was. */
BSMM_API bsmm_status bsmm_writer_commit(bsmm_writer *writer);
/* Removes the temporary file and destroys the writer; NULL is allowed. */
BSMM_API void bsmm_writer_abort(bsmm_writer *writer);

#ifdef __cplusplus
}
#endif
#endif
