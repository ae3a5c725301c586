#include "compare.h"
#include "cuda.h"

#include <stdlib.h>
#include <string.h>

struct memory {
    bench_cuda *cuda;
    void **blocks; /* the cpu's */
    size_t count;
};

memory *memory_open(const char *device) {
    memory *m = calloc(1, sizeof *m);
    if (!m || !bench_cuda_is(device)) return m;
    m->cuda = bench_cuda_open(device);
    if (m->cuda) return m;
    fprintf(stderr, "%s: %s\n", device, bench_cuda_error());
    free(m);
    return NULL;
}

void memory_close(memory *m) {
    if (!m) return;
    memory_reset(m);
    bench_cuda_close(m->cuda);
    free(m->blocks);
    free(m);
}

static void require(bool done, const char *what) {
    if (done) return;
    fprintf(stderr, "%s: %s\n", what, bench_cuda_error());
    exit(2);
}

static void *new_on_cpu(memory *m, uint64_t bytes) {
    void **grown = realloc(m->blocks, (m->count + 1) * sizeof *grown);
    void *block = aligned_alloc(64, (bytes / 64 + 1) * 64);
    require(grown && block, "no memory");
    m->blocks = grown;
    m->blocks[m->count++] = block;
    return block;
}

void *memory_new(memory *m, const void *from, uint64_t bytes) {
    void *made;
    if (m->cuda) {
        require(bench_cuda_new(m->cuda, from, bytes, &made), "memory");
        return made;
    }
    made = new_on_cpu(m, bytes);
    if (from)
        memcpy(made, from, bytes);
    else
        memset(made, 0xA5, bytes);
    return made;
}

void memory_write(memory *m, void *to, const void *from, uint64_t bytes) {
    if (bytes == 0) return;
    if (m->cuda)
        require(bench_cuda_write(m->cuda, to, from, bytes), "write");
    else
        memcpy(to, from, bytes);
}

void memory_read(memory *m, void *to, const void *from, uint64_t bytes) {
    if (m->cuda) require(bench_cuda_wait(m->cuda), "wait");
    if (m->cuda)
        require(bench_cuda_read(m->cuda, to, from, bytes), "read");
    else if (bytes)
        memcpy(to, from, bytes);
}

void memory_reset(memory *m) {
    if (m->cuda) bench_cuda_reset(m->cuda);
    for (size_t i = 0; i < m->count; i++)
        free(m->blocks[i]);
    m->count = 0;
}

void *memory_stream(const memory *m) {
    return m->cuda ? bench_cuda_stream(m->cuda) : NULL;
}

bench_cuda *memory_cuda(const memory *m) {
    return m->cuda;
}
