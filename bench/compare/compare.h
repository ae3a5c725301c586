/* Compares an old and a new build of the library in one process. The program tells whether their
 * results are bitwise identical, and which build is faster. It opens both builds at run time. It
 * uses a third copy of the library for tables and data. */
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
    /* `renames` holds pairs of kernels that the user matched by OLD=NEW, because the two builds
     * name them differently. */
    const char *renames[MOST_KERNELS][BUILDS];
    size_t rename_count;
    uint64_t random, seed; /* `random` is the number of random GEMMs, and `seed` determines them. */
    /* `threads` holds the numbers of threads with which GEMMs are timed. 0 means no entry. */
    int threads[2];
    /* `pairs` is the number of pairs of timed batches. Each pair has one batch of runs of each
     * build. */
    int pairs;
    /* `every` is n if only each n-th GEMM and conversion is compared. This saves time on slow
     * devices. */
    size_t every;
    /* GEMMs with more than `largest` multiplications are not compared. */
    int64_t largest;
    bool bits, times, verbose;
} options;

typedef struct session {
    const options *options;
    library builds[BUILDS];
    /* `kernels` holds the name of each kernel in the two builds. A name is NULL if the build lacks
     * the kernel. */
    const char *kernels[MOST_KERNELS][BUILDS];
    size_t kernel_count;
    bench_device *device;
    /* `turn` is the number of the current GEMM. If only each n-th GEMM is compared, `turn` decides
     * which ones. */
    size_t turn;
    /* These fields count GEMMs. `compared` counts the GEMMs whose results from the two builds of
     * the library were compared, and `refused` counts those that both builds refused. For the GEMMs
     * of `choices` the builds chose different kernels, and for those of `different` the results
     * differ. */
    size_t compared, refused, choices, different;
} session;

/* Opens both builds and matches their kernels. On failure, the function prints the reason and
 * returns false. */
bool session_open(session *s, const options *o);

/* Allocates device memory with a copy of `from`. If `from` is NULL, the memory is uninitialized. */
void *memory_new(session *s, const void *from, uint64_t bytes);
void memory_write(session *s, void *to, const void *from, uint64_t bytes);
/* Reads device memory after the device has finished all queued work. */
void memory_read(session *s, void *to, const void *from, uint64_t bytes);

typedef enum fill {
    FILL_ORDINARY,
    /* FILL_WIDE: scales and values have very different magnitudes, but do not overflow. */
    FILL_WIDE,
    FILL_EXTREME, /* FILL_EXTREME: every finite code of the element format occurs. */
    /* FILL_SPECIAL: like FILL_ORDINARY, but about a quarter of the rows contain NaN and Inf. */
    FILL_SPECIAL,
    FILLS
} fill;
extern const char *const fill_names[FILLS];

uint32_t below(uint64_t *state, uint32_t bound);
/* Returns the number of scale layouts of the library. */
uint32_t layout_count(void);
/* Fills the elements and scales of a matrix in host memory, including the padding of the scales. */
void fill_matrix(bsmm_matrix *m, fill how, uint64_t *state);

/* Describes the format, layout and strides of an operand. Zero means the default. */
typedef struct operand_shape {
    bsmm_format format;
    uint32_t order, layout;
    /* `extra_ld` and `extra_scale_ld` are numbers of elements and of scales that are added to the
     * smallest strides, so that there are gaps between rows. */
    int64_t extra_ld, extra_scale_ld;
    float global; /* `global` is the second-level scale of the tensor, or 0 if there is none. */
    uint32_t global_kind;
} operand_shape;

typedef struct product_shape {
    operand_shape a, b, d;
    int64_t m, n, k;
    /* `alpha` and `beta` are the factors of D = alpha * A B^T + beta * C. If alpha is 0 here, the
     * description of the product has no alpha, which means 1. */
    float alpha, beta;
    uint32_t c_elem, bias_elem, compute, b_packed, threads;
    fill how;
    uint64_t seed;
} product_shape;

/* Holds a GEMM with its matrices in host memory and in device memory. */
typedef struct product {
    const product_shape *shape;
    /* `a`, `b`, `c` and `d` are in host memory. `there` has their copies in device memory, in the
     * order A, B, C, D. */
    bsmm_matrix a, b, c, d, there[4];
    void *bias;
    bsmm_matmul_desc desc; /* `desc` describes the GEMM. Its matrices are the copies in `there`. */
} product;

/* Makes a filled matrix in host memory and its copy on the device. Returns false if the description
 * breaks a rule of the library. */
bool matrix_make(session *s, const operand_shape *o, int64_t rows, int64_t cols, fill how,
                 uint64_t *state, bsmm_matrix *host, bsmm_matrix *there);
void matrix_free(bsmm_matrix *host);

void shape_print(const product_shape *s, FILE *to);
/* Makes a GEMM with filled operands. Returns false if the library allows no such GEMM. */
bool product_make(session *s, const product_shape *shape, product *p);
void product_free(session *s, product *p);

/* Holds a plan that one build of the library made, with the buffers for its runs. */
typedef struct prepared {
    const library *build;
    bsmm_plan *plan;
    bsmm_buffers buffers;
    char kernel[64];
} prepared;
/* The program compares two builds of the library. Makes a plan by one of them, number `build`, with
 * the kernel of this name, or with the kernel that the build chooses if `kernel` is NULL. The plans
 * of both builds may use the same workspace. */
bsmm_status product_prepare(session *s, product *p, int build, const char *kernel, prepared *r);
void prepared_free(prepared *r);

/* Calls `visit` for every GEMM that the program compares, one after another. */
void products_each(session *s, void (*visit)(session *s, const product_shape *shape));

void compare_products(session *s);
void compare_recodes(session *s);
void time_products(session *s);

/* Compares the bytes that the two builds wrote, and counts the comparison. If the bytes differ,
 * the function prints the first difference. `what` names the bytes, and `print` describes the GEMM
 * or conversion. */
void expect_same(session *s, const void *old, const void *new, uint64_t bytes, const char *what,
                 void (*print)(const void *context, FILE *to), const void *context);

#endif
