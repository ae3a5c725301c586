/* What a kernel is, and what it is given. One kernel is one file that ends in one const
 * bsmm_kernel; kernels.def lists them best first, the reference last. */
#ifndef BSMM_KERNEL_H
#define BSMM_KERNEL_H

#include "format/format.h"

/* ---- recipes, as kernels and conversions see them (implemented in src/quantize) ---- */

typedef struct bsmm_recipe bsmm_recipe;

/* The recipe of a name (NULL = the format's default) for a format; NOT_FOUND or UNSUPPORTED. */
bsmm_status bsmm_recipe_find(const char *name, bsmm_format format, const bsmm_recipe **recipe);

/* Quantizes rows [row, row + rows) x columns [col, col + cols) of dst, whole blocks (the matrix's
 * last may be short), from fp32 values, `pitch` floats from row to row; global is the second-level
 * factor that is already chosen (1 when there is none). Reentrant; disjoint parts may be stored
 * from different threads where they share no byte of packed elements. */
void bsmm_recipe_store(const bsmm_recipe *recipe, const bsmm_operand *dst, int64_t row,
                       int64_t rows, int64_t col, int64_t cols, const float *values, int64_t pitch,
                       float global);

/* Writes 0 to all padding of dst's scales. */
void bsmm_recipe_pad(const bsmm_operand *dst);

/* ---- devices ---- */

/* A checked conversion of device memory: second-level scales and amax lie there as well. */
typedef struct bsmm_recode {
    const void *device;
    void *stream;
    bsmm_operand src, dst;                 /* dst is not read by amax */
    const char *recipe;                    /* of quantize: its name ("ocp"), never NULL */
    const struct bsmm_recipe_steps *steps; /* and what it does (recipe/step.h) */
    uint32_t flags;    /* of quantize: bsmm_quantize_flags, those that the recipe knows */
    bool two_level;    /* of quantize: *dst.m.global_scale is to be written, as dst.m.global_kind */
    const float *amax; /* of quantize: given; NULL: that of src */
    float *result;     /* of amax */
} bsmm_recode;

/* What a kind of device offers the core. One row in backends.def; `device` is what open gave. */
typedef struct bsmm_backend {
    const char *name; /* "cuda": the part of a device's name before ':' */
    bool host_memory; /* whether the processor that calls may read and write buffers */
    /* The record of device `ordinal`, which lives as long as the process. NOT_FOUND, UNSUPPORTED or
     * DEVICE, with the reason. */
    bsmm_status (*open)(uint32_t ordinal, const void **device);
    /* Everything but struct_size; NOT_FOUND past the last device. */
    bsmm_status (*describe)(uint32_t ordinal, bsmm_local_device *info);
    /* INVALID, naming `what`, unless `pointer` (not NULL) is memory of the device. */
    bsmm_status (*check_pointer)(const void *device, const void *pointer, const char *what);
    /* Memory of the device, aligned to 64 bytes and more. */
    bsmm_status (*allocate)(const void *device, uint64_t bytes, void **memory);
    void (*release)(const void *device, void *memory);
    /* Copies up to 128 bytes, a multiple of 4, in the stream's order; `from` is free afterwards. */
    bsmm_status (*store)(const void *device, void *stream, void *to, const void *from,
                         size_t bytes);
    /* Waits until everything in the stream is done. */
    bsmm_status (*finish)(const void *device, void *stream);
    /* Conversions of device memory, queued in the stream; without host_memory only. NULL: none.
     * UNSUPPORTED, with the reason, for what one does not take. */
    bsmm_status (*quantize)(const bsmm_recode *job);
    bsmm_status (*dequantize)(const bsmm_recode *job);
    bsmm_status (*relayout)(const bsmm_recode *job);
    bsmm_status (*amax)(const bsmm_recode *job);
} bsmm_backend;

/* Where a call runs, opened. */
typedef struct bsmm_place {
    const bsmm_backend *backend;
    const void *device;
    void *stream;
    int threads; /* of the cpu */
} bsmm_place;

/* The backend and the record of a device ("cpu", "cuda:0"; "cuda" is "cuda:0"). */
bsmm_status bsmm_device_open(const char *name, const bsmm_backend **backend, const void **device);

/* exec NULL: the cpu with all threads. */
bsmm_status bsmm_place_take(const bsmm_exec *exec, bsmm_place *place);

/* Checks an operand's memory: there, aligned to its elements and to `alignment` (which `who`
 * needs), and the device's. */
bsmm_status bsmm_place_check(const bsmm_place *place, const bsmm_operand *o, const char *what,
                             uint32_t alignment, const char *who);

/* ---- products and kernels ---- */

/* A validated bsmm_matmul_desc. Pointers inside the operands are those of the description; run
 * replaces them by the run's buffers. */
typedef struct bsmm_product {
    bsmm_operand a, b, c, d;
    bool has_c; /* beta != 0 */
    double alpha, beta;
    uint32_t bias_elem; /* NONE: no bias */
    const void *bias;
    uint32_t compute;
    int threads;
    bool b_packed;             /* runs are given packed_b */
    const void *packed_b;      /* what the kernel's pack_b made, after the header that core keeps */
    const bsmm_recipe *recipe; /* of a block-scaled D, else NULL */
    const bsmm_backend *backend; /* never NULL once a kernel is asked */
    const void *device;          /* the backend's record: a kernel of "cuda" is given a
                                    const bsmm_cuda_device * */
    void *stream;                /* of a run: the backend's own type; NULL is its default */
} bsmm_product;

typedef struct bsmm_kernel {
    const char *name;
    const char *device; /* the part before ':' of the devices that it runs on: "cpu" */
    /* NULL if the kernel takes it, else the reason, written into why[size] or static. */
    const char *(*refuse)(const bsmm_product *product, char *why, size_t size);
    uint64_t (*workspace_bytes)(const bsmm_product *product);
    /* The largest error before the last rounding, as a multiple of |alpha| * sum |a||b|. */
    double (*bound)(const bsmm_product *product);
    /* Once when a plan is made, after refuse took the product: loads what runs will need, so that
     * they allocate nothing. NULL: nothing to do. */
    bsmm_status (*prepare)(const bsmm_product *product);
    /* Where buffers are not host memory, run only queues work in product->stream. */
    bsmm_status (*run)(const bsmm_product *product, void *workspace);
    /* Bytes of B packed ahead, and the packing; NULL when the kernel takes B as it is stored. */
    uint64_t (*packed_b_bytes)(const bsmm_product *product);
    bsmm_status (*pack_b)(const bsmm_product *product, void *packed);
    uint32_t alignment; /* in bytes, of the data and scales of A, B, C and D; 0: their elements' */
} bsmm_kernel;

/* ---- the epilogue that scalar kernels share (core/epilogue.c) ---- */

/* Stores rows [row, row + rows) x columns [col, col + cols) of alpha * acc + beta * C + bias into
 * an unscaled D, rounding once; acc is dense, `pitch` doubles from row to row. */
void bsmm_epilogue_store(const bsmm_product *product, int64_t row, int64_t rows, int64_t col,
                         int64_t cols, const double *acc, int64_t pitch);

/* Stores whole rows [row, row + rows), whole blocks of rows, of a block-scaled D: the finished
 * values are rounded to fp32 and quantized by the product's recipe. values: scratch, rows x N. The
 * scales' padding is bsmm_recipe_pad's. */
void bsmm_epilogue_quantize(const bsmm_product *product, int64_t row, int64_t rows,
                            const double *acc, float *values);

#endif
