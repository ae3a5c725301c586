/* This is a fake libcublasLt, with which tests of bench run on the emulated GPU. It offers an
 * algorithm for every type except bf16. Its GEMMs take some time and write nothing. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

enum { R_16BF = 14, RESULT_BYTES = 96 };

#define EXPORT __attribute__((visibility("default")))
#define DONE(name, parameters)                                                                     \
    EXPORT int name parameters;                                                                    \
    int name parameters {                                                                          \
        return 0;                                                                                  \
    }
#define MAKES(name, parameters)                                                                    \
    EXPORT int name parameters;                                                                    \
    int name parameters {                                                                          \
        static char any;                                                                           \
        *made = &any;                                                                              \
        return 0;                                                                                  \
    }
#pragma GCC diagnostic ignored "-Wunused-parameter"
MAKES(cublasLtCreate, (void **made))
MAKES(cublasLtMatmulDescCreate, (void **made, int compute, int scale_type))
MAKES(cublasLtMatmulPreferenceCreate, (void **made))
DONE(cublasLtDestroy, (void *handle))
DONE(cublasLtMatmulDescDestroy, (void *desc))
DONE(cublasLtMatmulDescSetAttribute, (void *desc, int attribute, const void *value, size_t size))
DONE(cublasLtMatrixLayoutDestroy, (void *layout))
DONE(cublasLtMatmulPreferenceDestroy, (void *preference))
DONE(cublasLtMatmulPreferenceSetAttribute, (void *p, int attribute, const void *value, size_t size))

EXPORT size_t cublasLtGetVersion(void);
size_t cublasLtGetVersion(void) {
    return 130100;
}

/* A fake matrix layout consists of its data type only. */
EXPORT int cublasLtMatrixLayoutCreate(void **made, int type, uint64_t rows, uint64_t cols,
                                      int64_t ld);
int cublasLtMatrixLayoutCreate(void **made, int type, uint64_t rows, uint64_t cols, int64_t ld) {
    static char types[256];
    *made = &types[type];
    types[type] = (char)type;
    return 0;
}

EXPORT int cublasLtMatmulAlgoGetHeuristic(void *handle, void *desc, void *a, void *b, void *c,
                                          void *d, void *preference, int wanted, void *results,
                                          int *found);
int cublasLtMatmulAlgoGetHeuristic(void *handle, void *desc, void *a, void *b, void *c, void *d,
                                   void *preference, int wanted, void *results, int *found) {
    memset(results, 0, RESULT_BYTES);
    *found = *(const char *)a != R_16BF;
    return 0;
}

EXPORT int cublasLtMatmul(void *handle, void *desc, const void *alpha, const void *a,
                          void *a_layout, const void *b, void *b_layout, const void *beta,
                          const void *c, void *c_layout, void *d, void *d_layout,
                          const void *algorithm, void *workspace, size_t size, void *stream);
int cublasLtMatmul(void *handle, void *desc, const void *alpha, const void *a, void *a_layout,
                   const void *b, void *b_layout, const void *beta, const void *c, void *c_layout,
                   void *d, void *d_layout, const void *algorithm, void *workspace, size_t size,
                   void *stream) {
    const struct timespec a_while = {.tv_nsec = 100000};
    nanosleep(&a_while, NULL);
    return 0;
}
