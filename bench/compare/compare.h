/* Two builds of the library in one process: do they give the same bits, and which is faster? The
 * program is linked with a third copy, this tree's, for tables and data; what it measures are the
 * two that it opens. */
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
    const char *renames[MOST_KERNELS][BUILDS]; /* kernels by hand: OLD=NEW */
    size_t rename_count;
    uint64_t random, seed; /* how many drawn products, and from which seed */
    int threads[2];        /* to time with; 0: none */
    int pairs;             /* of timed batches */
    size_t every;          /* only each Nth product and conversion, for slow devices */
    int64_t largest;       /* products of more multiplications are left out */
    bool bits, times, verbose;
} options;

typedef struct session {
    const options *options;
    library builds[BUILDS];
    const char *kernels[MOST_KERNELS][BUILDS]; /* the same kernel in each; NULL: not in that one */
    size_t kernel_count;
    bench_device *device;
    size_t turn;                                  /* counts what `every` picks from */
    size_t compared, refused, choices, different; /* counts for the summary */
} session;

/* ---- libraries (library.c) ---- */

/* False, with the reason printed, if one cannot be opened or kernels cannot be matched. */
bool session_open(session *s, const options *o);

/* ---- memory of the device, freed by bench_device_reset (memory.c); the program ends if it fails
 */

/* With a copy of `from`, or where it is NULL any bytes. */
void *memory_new(session *s, const void *from, uint64_t bytes);
void memory_write(session *s, void *to, const void *from, uint64_t bytes);
void memory_read(session *s, void *to, const void *from, uint64_t bytes); /* waits for all work */

/* ---- data (fill.c) ---- */

typedef enum fill {
    FILL_ORDINARY,
    FILL_WIDE,    /* scales and values far apart, all harmless */
    FILL_EXTREME, /* any finite code */
    FILL_SPECIAL, /* ordinary, but NaN and Inf in about a quarter of the rows */
    FILLS
} fill;
extern const char *const fill_names[FILLS];

uint32_t below(uint64_t *state, uint32_t bound);
/* Data and scales, padding included; the memory is the host's. */
void fill_matrix(bsmm_matrix *m, fill how, uint64_t *state);

/* ---- products (product.c) ---- */

/* A product in words; zero means the default. */
typedef struct operand_shape {
    bsmm_format format;
    uint32_t order, layout;
    int64_t extra_ld, extra_scale_ld; /* beyond the packed ones */
    float global;                     /* 0: none */
    uint32_t global_kind;
} operand_shape;

typedef struct product_shape {
    operand_shape a, b, d;
    int64_t m, n, k;
    float alpha, beta; /* alpha 0: none */
    uint32_t c_elem, bias_elem, compute, b_packed, threads;
    fill how;
    uint64_t seed;
} product_shape;

/* With its memory; pointers in `there` are the device's. */
typedef struct product {
    const product_shape *shape;
    bsmm_matrix a, b, c, d, there[4]; /* host; the device's copies of the same */
    void *bias;
    bsmm_matmul_desc desc; /* of `there` */
} product;

/* A filled matrix here, and the same on the device; false if the description breaks a rule. */
bool matrix_make(session *s, const operand_shape *o, int64_t rows, int64_t cols, fill how,
                 uint64_t *state, bsmm_matrix *host, bsmm_matrix *there);
void matrix_free(bsmm_matrix *host);

void shape_print(const product_shape *s, FILE *to);
/* False if the description breaks a rule: nothing to compare. */
bool product_make(session *s, const product_shape *shape, product *p);
void product_free(session *s, product *p);

/* A plan of one build and what it runs with. */
typedef struct prepared {
    const library *build;
    bsmm_plan *plan;
    bsmm_buffers buffers;
    char kernel[64];
} prepared;
/* The kernel's name; NULL: the one that is chosen. `workspace` as the other's, to be shared. */
bsmm_status product_prepare(session *s, product *p, int build, const char *kernel, prepared *r);
void prepared_free(prepared *r);

/* Every product that is compared, one after another. */
void products_each(session *s, void (*visit)(session *s, const product_shape *shape));

void compare_products(session *s);
void compare_recodes(session *s);
void time_products(session *s);

/* Counts, and prints the first difference of `what`, which `print` names. */
void expect_same(session *s, const void *old, const void *new, uint64_t bytes, const char *what,
                 void (*print)(const void *context, FILE *to), const void *context);

#endif
