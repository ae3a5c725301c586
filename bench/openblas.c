#include "openblas.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* cblas.h's values */
enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112 };

/* POSIX has functions in dlsym's object pointers; ISO C has no cast for that. */
static bool load(void *library, const char *name, void *function) {
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

/* "OpenBLAS 0.3.21, SkylakeX kernels": its first words of how it was built, and what it chose. */
static void read_version(bench_openblas *blas) {
    char *(*get_config)(void), *(*get_core)(void);
    bool known = load(blas->library, "openblas_get_config", &get_config) &&
                 load(blas->library, "openblas_get_corename", &get_core);
    const char *config = known ? get_config() : "OpenBLAS";
    size_t name = strcspn(config, " ");
    int length = (int)(name + (config[name] ? 1 + strcspn(config + name + 1, " ") : 0));
    snprintf(blas->version, sizeof blas->version, "%.*s, %s kernels", length, config,
             known ? get_core() : "unknown");
}

bool bench_openblas_open(bench_openblas *blas, int threads, const char **why) {
    const char *named = getenv("BSMM_BENCH_OPENBLAS");
    *why = named ? named : "libopenblas.so.0";
    *blas = (bench_openblas){0};
    if (**why) blas->library = dlopen(*why, RTLD_NOW | RTLD_LOCAL);
    if (!blas->library) return false;
    void (*set_threads)(int);
    if (!load(blas->library, "cblas_sgemm", &blas->sgemm) ||
        !load(blas->library, "openblas_set_num_threads", &set_threads)) {
        bench_openblas_close(blas);
        return false;
    }
    set_threads(threads);
    read_version(blas);
    return true;
}

void bench_openblas_close(bench_openblas *blas) {
    if (blas->library) dlclose(blas->library);
    blas->library = NULL;
}

bool bench_openblas_run(const bench_openblas *blas, const int64_t sizes[3], const float *a,
                        const float *b, float *c) {
    for (int i = 0; i < 3; i++)
        if (sizes[i] > INT_MAX) return false;
    int m = (int)sizes[0], n = (int)sizes[1], k = (int)sizes[2];
    blas->sgemm(ROW_MAJOR, NO_TRANS, TRANS, m, n, k, 1, a, k, b, k, 0, c, n);
    return true;
}
