/* Loads oneDNN and measures its bf16 matmul for comparison. oneDNN gets the weights in the layout
 * that it prefers, packed in advance. Versions 2 and 3 of oneDNN, which create descriptors in
 * different ways, are supported. */
#include "copies.h"
#include "data.h"
#include "peer.h"

#include <stdio.h>

/* These constants have the values of oneDNN's header dnnl_types.h, in oneDNN 2 and in oneDNN 3. */
enum {
    BF16 = 2,
    FORMAT_ANY = 1,
    KIND_CPU = 1,
    STREAM_DEFAULT = 1,
    QUERY_WEIGHTS = 131,
    ARG_SRC = 1,
    ARG_DST = 17,
    ARG_WEIGHTS = 33
};

typedef struct descriptor {
    /* oneDNN 2 stores a descriptor in these bytes. The descriptor has 696 bytes in version 2.6. */
    _Alignas(64) char storage[1024];
    /* `handle` points to a descriptor that oneDNN 3 has made, or to `storage` with oneDNN 2. */
    void *handle;
} descriptor;

typedef struct argument {
    int kind;
    void *memory;
} argument;

typedef struct version_info {
    int major, minor, patch;
} version_info;

static int major;
static void *engine, *stream;

/* These functions exist in oneDNN 2 and in oneDNN 3. Those that return an
 * int return 0 on success. */
static struct {
    const version_info *(*version)(void);
    int (*engine_create)(void **engine, int kind, size_t index);
    int (*stream_create)(void **stream, void *engine, unsigned flags);
    int (*stream_wait)(void *stream);
    int (*stream_destroy)(void *stream);
    int (*engine_destroy)(void *engine);
    int (*memory_create)(void **memory, const void *descriptor, void *engine, void *data);
    int (*memory_set)(void *memory, void *data);
    int (*memory_destroy)(void *memory);
    size_t (*size)(const void *descriptor);
    const void *(*query)(const void *primitive_descriptor, int what, int index);
    int (*reorder)(void **primitive_descriptor, const void *from, void *from_engine, const void *to,
                   void *to_engine, const void *attributes);
    int (*primitive_create)(void **primitive, const void *primitive_descriptor);
    int (*primitive_execute)(const void *primitive, void *stream, int count, const argument *);
    int (*primitive_destroy)(void *primitive);
    int (*primitive_descriptor_destroy)(void *primitive_descriptor);
    /* Only oneDNN 2 has these functions. */
    int (*init_strides)(void *descriptor, int dims, const int64_t *, int type, const int64_t *);
    int (*init_tag)(void *descriptor, int dims, const int64_t *, int type, int tag);
    int (*matmul_init)(void *operation, const void *src, const void *weights, const void *bias,
                       const void *dst);
    int (*descriptor_create)(void **primitive_descriptor, const void *operation,
                             const void *attributes, void *engine, const void *hint);
    /* Only oneDNN 3 has these functions. */
    int (*create_strides)(void **descriptor, int dims, const int64_t *, int type, const int64_t *);
    int (*create_tag)(void **descriptor, int dims, const int64_t *, int type, int tag);
    int (*descriptor_destroy)(void *descriptor);
    int (*matmul_create)(void **primitive_descriptor, void *engine, const void *src,
                         const void *weights, const void *bias, const void *dst,
                         const void *attributes);
} dnnl;

static const struct {
    /* `major` is the major version of oneDNN that has the function. 0 means that versions 2 and 3
     * both have it. */
    int major;
    const char *name;
    void *function;
} functions[] = {
    {0, "dnnl_version", &dnnl.version},
    {0, "dnnl_engine_create", &dnnl.engine_create},
    {0, "dnnl_stream_create", &dnnl.stream_create},
    {0, "dnnl_stream_wait", &dnnl.stream_wait},
    {0, "dnnl_stream_destroy", &dnnl.stream_destroy},
    {0, "dnnl_engine_destroy", &dnnl.engine_destroy},
    {0, "dnnl_memory_create", &dnnl.memory_create},
    {0, "dnnl_memory_set_data_handle", &dnnl.memory_set},
    {0, "dnnl_memory_destroy", &dnnl.memory_destroy},
    {0, "dnnl_memory_desc_get_size", &dnnl.size},
    {0, "dnnl_primitive_desc_query_md", &dnnl.query},
    {0, "dnnl_reorder_primitive_desc_create", &dnnl.reorder},
    {0, "dnnl_primitive_create", &dnnl.primitive_create},
    {0, "dnnl_primitive_execute", &dnnl.primitive_execute},
    {0, "dnnl_primitive_destroy", &dnnl.primitive_destroy},
    {0, "dnnl_primitive_desc_destroy", &dnnl.primitive_descriptor_destroy},
    {2, "dnnl_memory_desc_init_by_strides", &dnnl.init_strides},
    {2, "dnnl_memory_desc_init_by_tag", &dnnl.init_tag},
    {2, "dnnl_matmul_desc_init", &dnnl.matmul_init},
    {2, "dnnl_primitive_desc_create", &dnnl.descriptor_create},
    {3, "dnnl_memory_desc_create_with_strides", &dnnl.create_strides},
    {3, "dnnl_memory_desc_create_with_tag", &dnnl.create_tag},
    {3, "dnnl_memory_desc_destroy", &dnnl.descriptor_destroy},
    {3, "dnnl_matmul_primitive_desc_create", &dnnl.matmul_create},
};

static bool load_functions(void *library, int of_major) {
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (functions[i].major == of_major &&
            !bench_peer_symbol(library, functions[i].name, functions[i].function))
            return false;
    return true;
}

/* Loads oneDNN. It takes the number of threads from OpenMP, where bench has set this number. */
static bool load(void *library, int threads, char *version, size_t size) {
    (void)threads;
    if (!load_functions(library, 0)) return false;
    const version_info *info = dnnl.version();
    major = info->major;
    if (!load_functions(library, major) || (major != 2 && major != 3)) return false;
    snprintf(version, size, "oneDNN %d.%d.%d", info->major, info->minor, info->patch);
    return dnnl.engine_create(&engine, KIND_CPU, 0) == 0 &&
           dnnl.stream_create(&stream, engine, STREAM_DEFAULT) == 0;
}

static void unload(void) {
    dnnl.stream_destroy(stream);
    dnnl.engine_destroy(engine);
}

/* Describes a matrix of bf16. If `strides` is NULL, the library chooses the layout. */
static bool describe(descriptor *d, int64_t rows, int64_t cols, const int64_t strides[2]) {
    const int64_t dims[2] = {rows, cols};
    if (major == 2) d->handle = d->storage;
    if (major == 2)
        return (strides ? dnnl.init_strides(d->storage, 2, dims, BF16, strides)
                        : dnnl.init_tag(d->storage, 2, dims, BF16, FORMAT_ANY)) == 0;
    return (strides ? dnnl.create_strides(&d->handle, 2, dims, BF16, strides)
                    : dnnl.create_tag(&d->handle, 2, dims, BF16, FORMAT_ANY)) == 0;
}

static void forget(descriptor *d) {
    if (major == 3 && d->handle) dnnl.descriptor_destroy(d->handle);
    d->handle = NULL;
}

static bool describe_matmul(void **primitive_descriptor, const descriptor *src,
                            const descriptor *weights, const descriptor *dst) {
    /* oneDNN 2 stores the descriptor of an operation here. It has 2800 bytes in version 2.6. */
    _Alignas(64) char operation[8192];
    if (major == 3)
        return dnnl.matmul_create(primitive_descriptor, engine, src->handle, weights->handle, NULL,
                                  dst->handle, NULL) == 0;
    return dnnl.matmul_init(operation, src->handle, weights->handle, NULL, dst->handle) == 0 &&
           dnnl.descriptor_create(primitive_descriptor, operation, NULL, engine, NULL) == 0;
}

enum { SRC, WEIGHTS, DST, OPERANDS };

static struct {
    /* `described` holds the descriptors of the operands. `stored` describes B before it is packed,
     * as a matrix of K rows and N columns that is column-major. */
    descriptor described[OPERANDS], stored;
    bsmm_matrix a, b, d; /* `a`, `b` and `d` are the operands and the result of the GEMM in bf16. */
    void *matmul_descriptor, *matmul, *memory[OPERANDS];
    bench_copies packed;
} work;

static bool make_matrices(const bench_shape *shape) {
    static const bsmm_format bf16 = {.elem = BSMM_ELEM_BF16};
    const bsmm_matrix *a = shape->a, *b = shape->b;
    return !bench_matrix_create(&work.a, bf16, a->rows, a->cols) &&
           !bench_matrix_create(&work.b, bf16, b->rows, b->cols) &&
           !bench_matrix_create(&work.d, bf16, a->rows, b->rows) && !bsmm_dequantize(a, &work.a) &&
           !bsmm_dequantize(b, &work.b);
}

static bool make_matmul(int64_t m, int64_t n, int64_t k) {
    const int64_t by_k[2] = {k, 1}, by_n[2] = {n, 1}, transposed[2] = {1, k};
    return describe(&work.described[SRC], m, k, by_k) &&
           describe(&work.described[WEIGHTS], k, n, NULL) &&
           describe(&work.described[DST], m, n, by_n) && describe(&work.stored, k, n, transposed) &&
           describe_matmul(&work.matmul_descriptor, &work.described[SRC], &work.described[WEIGHTS],
                           &work.described[DST]) &&
           dnnl.primitive_create(&work.matmul, work.matmul_descriptor) == 0;
}

/* Packs B into `form`, the layout that oneDNN's matmul prefers for its weights. */
static bool reorder(const void *form) {
    void *recipe = NULL, *primitive = NULL, *from = NULL;
    bool done = !dnnl.reorder(&recipe, work.stored.handle, engine, form, engine, NULL) &&
                !dnnl.primitive_create(&primitive, recipe) &&
                !dnnl.memory_create(&from, work.stored.handle, engine, work.b.data);
    const argument arguments[] = {{ARG_SRC, from}, {ARG_DST, work.memory[WEIGHTS]}};
    done = done && !dnnl.primitive_execute(primitive, stream, 2, arguments) &&
           !dnnl.stream_wait(stream);
    if (from) dnnl.memory_destroy(from);
    if (primitive) dnnl.primitive_destroy(primitive);
    if (recipe) dnnl.primitive_descriptor_destroy(recipe);
    return done;
}

static bool pack(bool cold) {
    const void *form = dnnl.query(work.matmul_descriptor, QUERY_WEIGHTS, 0);
    uint64_t bytes = dnnl.size(form);
    if (!bench_copies_create(&work.packed, bytes, bench_copies_count(bytes, cold)) ||
        dnnl.memory_create(&work.memory[SRC], work.described[SRC].handle, engine, work.a.data) ||
        dnnl.memory_create(&work.memory[DST], work.described[DST].handle, engine, work.d.data) ||
        dnnl.memory_create(&work.memory[WEIGHTS], form, engine, work.packed.memory) ||
        !reorder(form))
        return false;
    bench_copies_spread(&work.packed);
    return true;
}

static bool prepare(const bench_shape *shape) {
    return make_matrices(shape) && make_matmul(shape->a->rows, shape->b->rows, shape->b->cols) &&
           pack(shape->cold);
}

static void run(size_t turn) {
    const argument arguments[] = {{ARG_SRC, work.memory[SRC]},
                                  {ARG_WEIGHTS, work.memory[WEIGHTS]},
                                  {ARG_DST, work.memory[DST]}};
    dnnl.memory_set(work.memory[WEIGHTS], bench_copies_at(&work.packed, turn));
    dnnl.primitive_execute(work.matmul, stream, OPERANDS, arguments);
    dnnl.stream_wait(stream);
}

static void release(void) {
    for (int i = 0; i < OPERANDS; i++) {
        if (work.memory[i]) dnnl.memory_destroy(work.memory[i]);
        work.memory[i] = NULL;
        forget(&work.described[i]);
    }
    forget(&work.stored);
    if (work.matmul) dnnl.primitive_destroy(work.matmul);
    if (work.matmul_descriptor) dnnl.primitive_descriptor_destroy(work.matmul_descriptor);
    work.matmul = work.matmul_descriptor = NULL;
    bench_copies_destroy(&work.packed);
    bsmm_matrix *matrices[] = {&work.a, &work.b, &work.d};
    for (int i = 0; i < OPERANDS; i++)
        bench_matrix_destroy(matrices[i]);
}

const bench_peer bench_onednn = {
    .name = "onednn_bf16",
    .title = "  bf16",
    .work = "bf16 matmul, weights packed in advance",
    .variable = "BSMM_BENCH_ONEDNN",
    .files = {"libdnnl.so.3", "libdnnl.so.2"},
    .load = load,
    .unload = unload,
    .prepare = prepare,
    .run = run,
    .release = release,
};
