#include "copies.h"
#include "peer.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* These constants of OpenBLAS have the values of cblas.h. */
enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112 };

static void (*sgemm)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                     const float *a, int lda, const float *b, int ldb, float beta, float *c,
                     int ldc);

/* This struct holds the sizes and operands of the GEMM for which `prepare` was called last. */
static struct {
    int m, n, k;
    const float *a;
    bench_copies b;
    float *c;
} work;

/* Makes a text such as "OpenBLAS 0.3.21, SkylakeX kernels". It consists of the version in the
 * library's build configuration and the name of the kernels that the library chose for this
 * processor. */
static void read_version(void *library, char *version, size_t size) {
    char *(*get_config)(void), *(*get_core)(void);
    bool known = bench_peer_symbol(library, "openblas_get_config", &get_config) &&
                 bench_peer_symbol(library, "openblas_get_corename", &get_core);
    const char *config = known ? get_config() : "OpenBLAS";
    size_t name = strcspn(config, " ");
    int length = (int)(name + (config[name] ? 1 + strcspn(config + name + 1, " ") : 0));
    snprintf(version, size, "%.*s, %s kernels", length, config, known ? get_core() : "unknown");
}

static bool load(void *library, int threads, char *version, size_t size) {
    void (*set_threads)(int);
    if (!bench_peer_symbol(library, "cblas_sgemm", &sgemm) ||
        !bench_peer_symbol(library, "openblas_set_num_threads", &set_threads))
        return false;
    set_threads(threads);
    read_version(library, version, size);
    return true;
}

/* Prepares a shape. B is not packed in advance, because sgemm packs it in every call and has no
 * interface for packed matrices. */
static bool prepare(const bench_shape *shape) {
    int64_t m = shape->a->rows, n = shape->b->rows, k = shape->b->cols;
    uint64_t bytes = (uint64_t)n * (uint64_t)k * sizeof(float);
    if (m > INT_MAX || n > INT_MAX || k > INT_MAX) return false;
    work.m = (int)m, work.n = (int)n, work.k = (int)k;
    work.a = shape->a->data;
    work.c = malloc((size_t)m * (size_t)n * sizeof *work.c);
    if (!work.c || !bench_copies_create(&work.b, bytes, bench_copies_count(bytes, shape->cold)))
        return false;
    memcpy(work.b.memory, shape->b->data, bytes);
    bench_copies_spread(&work.b);
    return true;
}

static void run(size_t turn) {
    sgemm(ROW_MAJOR, NO_TRANS, TRANS, work.m, work.n, work.k, 1, work.a, work.k,
          bench_copies_at(&work.b, turn), work.k, 0, work.c, work.n);
}

static void release(void) {
    bench_copies_destroy(&work.b);
    free(work.c);
    work.c = NULL;
}

const bench_peer bench_openblas = {
    .name = "openblas",
    .title = " sgemm",
    .work = "sgemm on the fp32 values",
    .variable = "BSMM_BENCH_OPENBLAS",
    .files = {"libopenblas.so.0"},
    .load = load,
    .prepare = prepare,
    .run = run,
    .release = release,
};
