/* Loads NVIDIA's cuBLASLt and measures its GEMMs for comparison. The library's file is
 * libcublasLt.so.13 or .12, or the one that the environment variable BSMM_BENCH_CUBLASLT names. */
#include "data.h"
#include "device_cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* These constants of cuBLASLt have the values of cublasLt.h and library_types.h. */
enum { COMPUTE_32F = 68, R_32F = 0, R_16F = 2, R_16BF = 14, R_8F_E4M3 = 28, OP_N = 0, OP_T = 1 };
enum {
    DESC_TRANSA = 3,
    DESC_TRANSB = 4,
    DESC_A_SCALE_POINTER = 17,
    DESC_B_SCALE_POINTER = 18,
    DESC_FAST_ACCUM = 25,
    DESC_A_SCALE_MODE = 31,
    DESC_B_SCALE_MODE = 32,
    SCALE_SCALAR = 0,
    SCALE_VEC128 = 4,
    SCALE_BLK128 = 5,
    PREFERENCE_WORKSPACE_BYTES = 1,
    ALGORITHMS = 8
};

typedef struct lt_result { /* This struct has the layout of cublasLtMatmulHeuristicResult_t. */
    uint64_t algorithm[8];
    uint64_t workspace_bytes;
    int state;
    float waves;
    int reserved[4];
} lt_result;
_Static_assert(sizeof(lt_result) == 96, "the library writes such results");

static const uint64_t workspace_bytes = (uint64_t)64 << 20;

/* Lists the GEMMs of cuBLASLt that bench measures. FP8 multiplies e4m3 with one scale per tensor,
 * and shows the practical peak of the FP8 tensor cores. VEC128 multiplies e4m3 with fp32 scales for
 * 1 x 128 blocks of A and 128 x 128 blocks of B. BF16 multiplies bf16. */
typedef enum lt_way { FP8, VEC128, BF16 } lt_way;

typedef struct lt_library {
    void *library, *handle;
    char version[64];
    int (*create)(void **handle);
    int (*destroy)(void *handle);
    size_t (*get_version)(void);
    int (*desc_create)(void **desc, int compute, int scale_type);
    int (*desc_destroy)(void *desc);
    int (*desc_set)(void *desc, int attribute, const void *value, size_t size);
    int (*layout_create)(void **layout, int type, uint64_t rows, uint64_t cols, int64_t ld);
    int (*layout_destroy)(void *layout);
    int (*preference_create)(void **preference);
    int (*preference_destroy)(void *preference);
    int (*preference_set)(void *preference, int attribute, const void *value, size_t size);
    int (*heuristic)(void *handle, void *desc, void *a, void *b, void *c, void *d, void *preference,
                     int wanted, lt_result *results, int *found);
    int (*matmul)(void *handle, void *desc, const void *alpha, const void *a, void *a_layout,
                  const void *b, void *b_layout, const void *beta, const void *c, void *c_layout,
                  void *d, void *d_layout, const void *algorithm, void *workspace, size_t size,
                  void *stream);
} lt_library;

static const struct {
    const char *symbol;
    size_t offset;
} symbols[] = {
    {"cublasLtCreate", offsetof(lt_library, create)},
    {"cublasLtDestroy", offsetof(lt_library, destroy)},
    {"cublasLtGetVersion", offsetof(lt_library, get_version)},
    {"cublasLtMatmulDescCreate", offsetof(lt_library, desc_create)},
    {"cublasLtMatmulDescDestroy", offsetof(lt_library, desc_destroy)},
    {"cublasLtMatmulDescSetAttribute", offsetof(lt_library, desc_set)},
    {"cublasLtMatrixLayoutCreate", offsetof(lt_library, layout_create)},
    {"cublasLtMatrixLayoutDestroy", offsetof(lt_library, layout_destroy)},
    {"cublasLtMatmulPreferenceCreate", offsetof(lt_library, preference_create)},
    {"cublasLtMatmulPreferenceDestroy", offsetof(lt_library, preference_destroy)},
    {"cublasLtMatmulPreferenceSetAttribute", offsetof(lt_library, preference_set)},
    {"cublasLtMatmulAlgoGetHeuristic", offsetof(lt_library, heuristic)},
    {"cublasLtMatmul", offsetof(lt_library, matmul)},
};

static void *open_library(void) {
    static const char *const usual[] = {"libcublasLt.so.13", "libcublasLt.so.12"};
    const char *named = getenv("BSMM_BENCH_CUBLASLT");
    void *library = named ? dlopen(named, RTLD_NOW | RTLD_LOCAL) : NULL;
    for (size_t i = 0; !named && !library && i < 2; i++)
        library = dlopen(usual[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

/* Finds the library's functions. ISO C has no cast from dlsym's data pointer to a function pointer,
 * so the function copies each pointer with memcpy. POSIX guarantees that this works. */
static bool take_symbols(lt_library *lt) {
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void *symbol = dlsym(lt->library, symbols[i].symbol);
        if (!symbol) return false;
        memcpy((char *)lt + symbols[i].offset, &symbol, sizeof symbol);
    }
    return true;
}

static void *open(void) {
    lt_library *lt = calloc(1, sizeof *lt);
    bool there = lt && (lt->library = open_library()) && take_symbols(lt);
    if (there && lt->create(&lt->handle) == 0) return lt;
    free(lt);
    return NULL;
}

static void close(void *library) {
    lt_library *lt = library;
    if (!lt) return;
    lt->destroy(lt->handle);
    free(lt);
}

/* Returns the library's name and version. The library reports version 13.1.0 as the number
 * 130100. */
static const char *version(void *library) {
    lt_library *lt = library;
    size_t v = lt->get_version();
    snprintf(lt->version, sizeof lt->version, "cuBLASLt %zu.%zu.%zu", v / 10000, v / 100 % 100,
             v % 100);
    return lt->version;
}

/* Holds a prepared GEMM of cuBLASLt, whose matrices are column-major. Our row-major D = A B^T is
 * the column-major D' = B'^T A', so the first operand of cuBLASLt is our B. */
typedef struct lt_product {
    lt_library *lt;
    /* The members are cuBLASLt's descriptors of the GEMM and of its matrices. They are named after
     * bsmm's operands A, B and D. */
    void *desc, *a_layout, *b_layout, *d_layout;
    /* `a`, `b`, `d`, `workspace` and `scales` point to device memory for the operands, the
     * workspace, and the scales of A and B. */
    void *a, *b, *d, *workspace, *scales[2];
    /* `a_bytes`, `b_bytes` and `d_bytes` are the sizes in bytes of one copy of each operand,
     * rounded up for alignment. */
    uint64_t a_bytes, b_bytes, d_bytes;
    size_t sets;
    void *stream;
    lt_result algorithm;
} lt_product;

static uint64_t round_up(uint64_t value, uint64_t unit) {
    return (value + unit - 1) / unit * unit;
}

/* Allocates `sets` copies of a random matrix, one after another in device memory. */
static bool make_sets(bench_device *device, uint32_t elem, int64_t rows, int64_t cols,
                      uint64_t seed, size_t sets, void **memory, uint64_t *stride) {
    bsmm_matrix m = {0};
    bool made = !bench_matrix_create(&m, (bsmm_format){.elem = elem}, rows, cols) &&
                !bench_matrix_fill(&m, seed);
    *stride = round_up(m.data_bytes, 256);
    made = made && bench_device_new_sets(device, m.data, m.data_bytes, *stride, sets, memory);
    bench_matrix_destroy(&m);
    return made;
}

static bool make_operands(lt_product *p, bench_device *device, lt_way way,
                          const bench_queued_shape *s) {
    uint32_t elem = way == BF16 ? BSMM_ELEM_BF16 : BSMM_ELEM_E4M3;
    uint64_t size = s->out == BSMM_ELEM_F32 ? 4 : 2;
    p->d_bytes = round_up((uint64_t)s->m * (uint64_t)s->n * size, 256);
    return make_sets(device, elem, s->m, s->k, BENCH_FIRST_SEED, s->sets, &p->a, &p->a_bytes) &&
           make_sets(device, elem, s->n, s->k, BENCH_FIRST_SEED + 1, s->sets, &p->b, &p->b_bytes) &&
           bench_device_new(device, NULL, p->d_bytes * s->sets, &p->d) &&
           bench_device_new(device, NULL, workspace_bytes, &p->workspace);
}

/* Allocates scales and sets all of them to 1, because the values of scales do not affect the time.
 * Each array is large enough for the largest scale layout. */
static bool make_scales(lt_product *p, bench_device *device, const bench_queued_shape *s) {
    uint64_t k_blocks = round_up((uint64_t)s->k, 512) / 128;
    const int64_t rows[2] = {s->m, s->n};
    for (int i = 0; i < 2; i++) {
        uint64_t count = k_blocks * round_up((uint64_t)rows[i], 128);
        if (!bench_device_new(device, NULL, count * sizeof(float), &p->scales[i]) ||
            !bench_device_fill_f32(device, p->scales[i], 1, count))
            return false;
    }
    return true;
}

static bool set(const lt_product *p, int attribute, const void *value, size_t size) {
    return p->lt->desc_set(p->desc, attribute, value, size) == 0;
}

static bool set_int(const lt_product *p, int attribute, int32_t value) {
    return set(p, attribute, &value, sizeof value);
}

static bool set_scaling(const lt_product *p, lt_way way) {
    bool blocks = way == VEC128;
    const int8_t fast = blocks ? 0 : 1;
    if (way == BF16) return true;
    return set(p, DESC_A_SCALE_POINTER, &p->scales[1], sizeof p->scales[1]) &&
           set(p, DESC_B_SCALE_POINTER, &p->scales[0], sizeof p->scales[0]) &&
           set_int(p, DESC_A_SCALE_MODE, blocks ? SCALE_BLK128 : SCALE_SCALAR) &&
           set_int(p, DESC_B_SCALE_MODE, blocks ? SCALE_VEC128 : SCALE_SCALAR) &&
           set(p, DESC_FAST_ACCUM, &fast, sizeof fast);
}

/* Returns cuBLASLt's type of D. cuBLASLt has no product of bf16 matrices with a result in f16. D is
 * bf16 in that case, which has the same size. */
static int type_of(lt_way way, uint32_t elem) {
    if (elem == BSMM_ELEM_F32) return R_32F;
    return elem == BSMM_ELEM_F16 && way != BF16 ? R_16F : R_16BF;
}

static bool describe(lt_product *p, lt_way way, const bench_queued_shape *s) {
    lt_library *lt = p->lt;
    int type = way == BF16 ? R_16BF : R_8F_E4M3;
    uint64_t m = (uint64_t)s->m, n = (uint64_t)s->n, k = (uint64_t)s->k;
    return lt->desc_create(&p->desc, COMPUTE_32F, R_32F) == 0 && set_int(p, DESC_TRANSA, OP_T) &&
           set_int(p, DESC_TRANSB, OP_N) && set_scaling(p, way) &&
           lt->layout_create(&p->b_layout, type, k, n, s->k) == 0 &&
           lt->layout_create(&p->a_layout, type, k, m, s->k) == 0 &&
           lt->layout_create(&p->d_layout, type_of(way, s->out), n, m, s->n) == 0;
}

static bool run(void *product, size_t turn) {
    static const float one = 1, zero = 0;
    lt_product *p = product;
    uint64_t at = turn % p->sets;
    char *a = (char *)p->a + at * p->a_bytes, *b = (char *)p->b + at * p->b_bytes;
    char *d = (char *)p->d + at * p->d_bytes;
    return p->lt->matmul(p->lt->handle, p->desc, &one, b, p->b_layout, a, p->a_layout, &zero, d,
                         p->d_layout, d, p->d_layout, p->algorithm.algorithm, p->workspace,
                         workspace_bytes, p->stream) == 0;
}

static int find_algorithms(const lt_product *p, lt_result *results) {
    lt_library *lt = p->lt;
    void *preference = NULL;
    int found = 0;
    if (lt->preference_create(&preference) != 0) return 0;
    lt->preference_set(preference, PREFERENCE_WORKSPACE_BYTES, &workspace_bytes,
                       sizeof workspace_bytes);
    if (lt->heuristic(lt->handle, p->desc, p->b_layout, p->a_layout, p->d_layout, p->d_layout,
                      preference, ALGORITHMS, results, &found) != 0)
        found = 0;
    lt->preference_destroy(preference);
    return found;
}

/* Runs the algorithm on all copies of the operands, and returns the median time of a run in
 * seconds, or 0 if the algorithm fails. */
static double time_algorithm(lt_product *p, bench_device *device) {
    bench_graph graph = {0};
    bench_samples seconds = {0};
    double median = 0;
    bool ran = run(p, 0) && bench_device_wait(device) &&
               bench_device_record(device, run, p, p->sets, &graph);
    for (int i = 0; i < 5 && ran; i++)
        ran = bench_device_time(device, &graph, &seconds);
    if (ran) median = bench_samples_median(&seconds);
    bench_device_forget(device, &graph);
    bench_samples_destroy(&seconds);
    return median;
}

static bool choose(lt_product *p, bench_device *device) {
    lt_result results[ALGORITHMS];
    double best = 0;
    size_t taken = 0;
    int found = find_algorithms(p, results);
    for (int i = 0; i < found; i++) {
        p->algorithm = results[i];
        double seconds = results[i].state == 0 ? time_algorithm(p, device) : 0;
        if (seconds > 0 && (best == 0 || seconds < best)) best = seconds, taken = (size_t)i;
    }
    p->algorithm = results[taken];
    return best > 0;
}

static void destroy(void *product) {
    lt_product *p = product;
    if (!p) return;
    void *layouts[] = {p->a_layout, p->b_layout, p->d_layout};
    for (size_t i = 0; i < 3; i++)
        if (layouts[i]) p->lt->layout_destroy(layouts[i]);
    if (p->desc) p->lt->desc_destroy(p->desc);
    free(p);
}

static void *create(void *library, bench_device *device, size_t way,
                    const bench_queued_shape *shape) {
    lt_product *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->lt = library;
    p->sets = shape->sets;
    p->stream = bench_device_stream(device);
    if (make_operands(p, device, (lt_way)way, shape) && make_scales(p, device, shape) &&
        describe(p, (lt_way)way, shape) && choose(p, device))
        return p;
    destroy(p);
    return NULL;
}

const bench_queued_peer bench_cublaslt = {
    .option = "cublaslt",
    .absent = "neither libcublasLt.so.13 nor .12 can be loaded, nor what BSMM_BENCH_CUBLASLT names",
    .ways = {[FP8] = {"cublaslt_fp8", "    fp8", "e4m3, one scale per tensor, fast accumulation", 8,
                      true},
             [VEC128] = {"cublaslt_vec128", " vec128", "e4m3, scales of 1x128 and 128x128", 8,
                         false},
             [BF16] = {"cublaslt_bf16", "   bf16", "bf16", 16, true}},
    .open = open,
    .close = close,
    .version = version,
    .create = create,
    .destroy = destroy,
    .run = run,
};
