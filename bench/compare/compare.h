/* Compares two builds of the library, an old and a new one, in one process. It answers whether
 * their results are bitwise identical, and which build is faster. The program opens both builds at
 * run time. It is itself linked with the library of this source tree, which it uses for tables and
 * data. */
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
    /* pairs of kernels that the user matched by OLD=NEW, because the builds name them
     * differently */
    const char *renames[MOST_KERNELS][BUILDS];
    size_t rename_count;
    uint64_t random, seed; /* number of random GEMMs; seed from which they are drawn */
    int threads[2];        /* numbers of threads to time with; 0: no entry */
    int pairs;       /* number of pairs of timed batches; each pair has a batch of either build */
    size_t every;    /* compare only each Nth GEMM and conversion, for slow devices */
    int64_t largest; /* skip GEMMs with more multiplications than this */
    bool bits, times, verbose;
} options;

typedef struct session {
    const options *options;
    library builds[BUILDS];
    /* The names that a kernel has in the two builds. A name is NULL if a build lacks the kernel. */
    const char *kernels[MOST_KERNELS][BUILDS];
    size_t kernel_count;
    bench_device *device;
    size_t turn; /* counts all GEMMs, so that `every` can select each Nth */
    /* Counts for the summary: GEMMs compared; GEMMs refused; GEMMs for which the builds chose
     * different kernels; GEMMs with different results. */
    size_t compared, refused, choices, different;
} session;

/* Opens both builds and matches their kernels. If that fails, it prints the reason and returns
 * false. */
bool session_open(session *s, const options *o);

/* Allocates memory that holds a copy of `from`, or uninitialized memory if `from` is NULL. */
void *memory_new(session *s, const void *from, uint64_t bytes);
void memory_write(session *s, void *to, const void *from, uint64_t bytes);
/* Reads device memory after the device has finished all queued work. */
void memory_read(session *s, void *to, const void *from, uint64_t bytes);

typedef enum fill {
    FILL_ORDINARY,
    FILL_WIDE,    /* scales and values of very different magnitudes that do not overflow */
    FILL_EXTREME, /* every finite code of the element format */
    /* like FILL_ORDINARY, but with NaN and Inf in about a quarter of the rows */
    FILL_SPECIAL,
    FILLS
} fill;
extern const char *const fill_names[FILLS];

uint32_t below(uint64_t *state, uint32_t bound);
/* Fills the data and scales of a matrix in host memory, including the padding of the scales. */
void fill_matrix(bsmm_matrix *m, fill how, uint64_t *state);

/* The format, layout and strides of an operand. Zero means the default. */
typedef struct operand_shape {
    bsmm_format format;
    uint32_t order, layout;
    /* gaps between rows: elements and scales that are added to the smallest strides */
    int64_t extra_ld, extra_scale_ld;
    float global; /* second-level scale of the tensor; 0: none */
    uint32_t global_kind;
} operand_shape;

typedef struct product_shape {
    operand_shape a, b, d;
    int64_t m, n, k;
    /* Factors of D = alpha * A B^T + beta * C. If alpha is 0, the description gives no alpha. */
    float alpha, beta;
    uint32_t c_elem, bias_elem, compute, b_packed, threads;
    fill how;
    uint64_t seed;
} product_shape;

/* A GEMM with its memory in the host and on the device. */
typedef struct product {
    const product_shape *shape;
    /* Matrices in host memory. `there` has their copies on the device, in the order A, B, C, D. */
    bsmm_matrix a, b, c, d, there[4];
    void *bias;
    bsmm_matmul_desc desc; /* description of the GEMM; its matrices are those in `there` */
} product;

/* Makes a filled matrix in host memory and its copy on the device. Returns false if the description
 * breaks a rule of the library. */
bool matrix_make(session *s, const operand_shape *o, int64_t rows, int64_t cols, fill how,
                 uint64_t *state, bsmm_matrix *host, bsmm_matrix *there);
void matrix_free(bsmm_matrix *host);

void shape_print(const product_shape *s, FILE *to);
/* Makes a GEMM with filled operands. Returns false if its description breaks a rule of the library;
 * there is then nothing to compare. */
bool product_make(session *s, const product_shape *shape, product *p);
void product_free(session *s, product *p);

/* A plan that one build of the library made, with the buffers for its runs. */
typedef struct prepared {
    const library *build;
    bsmm_plan *plan;
    bsmm_buffers buffers;
    char kernel[64];
} prepared;
/* Makes a plan with the kernel of this name, or with the kernel that the build chooses if `kernel`
 * is NULL. The plans of both builds may use the same workspace. */
bsmm_status product_prepare(session *s, product *p, int build, const char *kernel, prepared *r);
void prepared_free(prepared *r);

/* Calls `visit` for every product that is compared, one after another. */
void products_each(session *s, void (*visit)(session *s, const product_shape *shape));

void compare_products(session *s);
void compare_recodes(session *s);
void time_products(session *s);

/* Compares the bytes that the two builds wrote and counts the comparison. If they differ, it prints
 * the first difference. `what` names the bytes, and `print` describes the GEMM or conversion. */
void expect_same(session *s, const void *old, const void *new, uint64_t bytes, const char *what,
                 void (*print)(const void *context, FILE *to), const void *context);

#endif
