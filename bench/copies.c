#include "copies.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t beyond_caches = (uint64_t)256 << 20;

static uint64_t stride_of(uint64_t bytes) {
    return (bytes / 64 + 1) * 64;
}

size_t bench_copies_count(uint64_t bytes, bool cold) {
    return cold ? (size_t)(beyond_caches / stride_of(bytes) + 2) : 1;
}

bool bench_copies_create(bench_copies *copies, uint64_t bytes, size_t count) {
    copies->bytes = bytes;
    copies->stride = stride_of(bytes);
    copies->count = count;
    copies->memory = aligned_alloc(64, copies->stride * count);
    return copies->memory != NULL;
}

void bench_copies_spread(const bench_copies *copies) {
    for (size_t i = 1; i < copies->count; i++)
        memcpy(bench_copies_at(copies, i), copies->memory, copies->bytes);
}

void *bench_copies_at(const bench_copies *copies, size_t turn) {
    return copies->memory + turn % copies->count * copies->stride;
}

void bench_copies_destroy(bench_copies *copies) {
    free(copies->memory);
    *copies = (bench_copies){0};
}
