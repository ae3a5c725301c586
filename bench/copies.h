/* Constant operands: one for all runs, or so many copies that no cache holds the next one. */
#ifndef BENCH_COPIES_H
#define BENCH_COPIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bench_copies {
    char *memory; /* 64-byte aligned, as every copy is */
    uint64_t bytes, stride;
    size_t count;
} bench_copies;

/* How many copies of that many bytes: 1, or if cold 256 MiB of them, 2 and more. */
size_t bench_copies_count(uint64_t bytes, bool cold);

/* Memory for the copies; the first is to be filled. False without memory. */
bool bench_copies_create(bench_copies *copies, uint64_t bytes, size_t count);
void bench_copies_spread(const bench_copies *copies); /* the first one over the others */
void *bench_copies_at(const bench_copies *copies, size_t turn);
void bench_copies_destroy(bench_copies *copies);

#endif
