/* Compares two builds of the library in one process: are their results bitwise identical, and which
 * one is faster? The program is linked with a third copy of the library, that of this tree, for
 * tables and data. The two builds that it measures are opened at run time. */
#ifndef COMPARE_H
#define COMPARE_H

#include "device.h"

#include <bsmm.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { OLD, NEW, BUILDS, MOST_KERNELS = 64 };

typedef struct library {
#define FUNCTION(name) __typeof__(&bsmm_##name) name;
#include "functions.def"
#undef FUNCTION
} library;

typedef struct options {
    const char *paths[BUILDS], *device;
    /* kernels that the user has matched by OLD=NEW, because they have different names */
    const char *renames[MOST_KERNELS][BUILDS];
    size_t rename_count;
    uint64_t random, seed; /* the number of random GEMMs, and the seed from which they are drawn */
    int threads[2];        /* The numbers of threads to time with. 0 means none. */
    int pairs;             /* the number of timed batches, each measured with both libraries */
    size_t every; /* Compare only each Nth GEMM and conversion. This is meant for slow devices. */
    int64_t largest; /* Skip GEMMs with more multiplications than this. */
    bool bits, times, verbose;
} options;

typedef struct session {
    const options *options;
    library builds[BUILDS];
    /* The names of the same kernel in each build. A name is NULL if a build lacks the kernel. */
    const char *kernels[MOST_KERNELS][BUILDS];
    size_t kernel_count;
    bench_device *device;
    size_t turn; /* a running number, by which `every` selects the GEMMs to compare */
    /* counts for the summary: GEMMs compared, GEMMs refused, different choices of kernel, different
     * results */
    size_t compared, refused, choices, different;
} session;

/* ---- libraries (library.c) ---- */

/* Opens both builds and matches their kernels. Returns false, with the reason printed, if that
 * fails. */
bool session_open(session *s, const options *o);

/* ---- device memory, freed by bench_device_reset (memory.c); the program ends on failure ---- */

/* Allocates memory that holds a copy of `from`, or uninitialized memory if `from` is NULL. */
void *memory_new(session *s, const void *from, uint64_t bytes);
void memory_write(session *s, void *to, const void *from, uint64_t bytes);
/* Returns when the device has finished all queued work. */
void memory_read(session *s, void *to, const void *from, uint64_t bytes);

/* ---- data (fill.c) ---- */

typedef enum fill {
    FILL_ORDINARY,
    FILL_WIDE, /* Fills with scales and values of very different magnitudes that do not overflow. */
    FILL_EXTREME, /* Fills with every finite code of the element format. */
    /* Fills like FILL_ORDINARY, but with NaN and Inf in about a quarter of the rows. */
    FILL_SPECIAL,
    FILLS
} fill;
extern const char *const fill_names[FILLS];

uint32_t below(uint64_t *state, uint32_t bound);
/* Fills data and scales, padding included. The memory must be host memory. */
void fill_matrix(bsmm_matrix *m, fill how, uint64_t *state);

/* ---- products (product.c) ---- */

/* The shape and options of an operand. Zero means the default. */
typedef struct operand_shape {
    bsmm_format format;
    uint32_t order, layout;
    /* the strides in addition to those of a packed matrix, in elements and in scales */
    int64_t extra_ld, extra_scale_ld;
    float global; /* the second-level scale of the tensor; 0 means none */
    uint32_t global_kind;
} operand_shape;

typedef struct product_shape {
    operand_shape a, b, d;
    int64_t m, n, k;
    /* The factors of D = alpha * A B^T + beta * C. alpha 0 means that no alpha is given. */
    float alpha, beta;
    uint32_t c_elem, bias_elem, compute, b_packed, threads;
    fill how;
    uint64_t seed;
} product_shape;

/* A GEMM with its memory. The matrices in `there` have device pointers. */
typedef struct product {
    const product_shape *shape;
    /* The matrices in host memory. `there` has their copies on the device. */
    bsmm_matrix a, b, c, d, there[4];
    void *bias;
    bsmm_matmul_desc desc; /* the GEMM's description; its matrices point to the copies in `there` */
} product;

/* Makes a filled matrix on the host and its copy on the device. Returns false if the description
 * breaks a rule. */
bool matrix_make(session *s, const operand_shape *o, int64_t rows, int64_t cols, fill how,
                 uint64_t *state, bsmm_matrix *host, bsmm_matrix *there);
void matrix_free(bsmm_matrix *host);

void shape_print(const product_shape *s, FILE *to);
/* Returns false if the description breaks a rule, so that there is nothing to compare. */
bool product_make(session *s, const product_shape *shape, product *p);
void product_free(session *s, product *p);

/* A plan of one build, with the buffers of its runs. */
typedef struct prepared {
    const library *build;
    bsmm_plan *plan;
    bsmm_buffers buffers;
    char kernel[64];
} prepared;
/* Makes a plan with the named kernel, or with the kernel that the build chooses if `kernel` is
 * NULL. The plans of both builds may use the same workspace. */
bsmm_status product_prepare(session *s, product *p, int build, const char *kernel, prepared *r);
void prepared_free(prepared *r);

/* Calls `visit` for every product that is compared, one after another. */
void products_each(session *s, void (*visit)(session *s, const product_shape *shape));

void compare_products(session *s);
void compare_recodes(session *s);
void time_products(session *s);

/* Counts a comparison. If it found a difference, prints the first one. `what` names the compared
 * bytes, and `print` describes the GEMM or conversion. */
void expect_same(session *s, const void *old, const void *new, uint64_t bytes, const char *what,
                 void (*print)(const void *context, FILE *to), const void *context);

#endif
