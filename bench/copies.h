/* Copies of a constant operand: one for all runs, or so many that the next copy is never in a
 * cache. */
#ifndef BENCH_COPIES_H
#define BENCH_COPIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bench_copies {
    char *memory; /* Memory of all copies. Each copy is aligned to 64 bytes. */
    uint64_t bytes, stride;
    size_t count;
} bench_copies;

/* Returns the number of copies of an operand of `bytes` bytes: 1, or if `cold` at least 2 and so
 * many that they fill 256 MiB. */
size_t bench_copies_count(uint64_t bytes, bool cold);

/* Allocates memory for the copies. The caller then fills the first copy. Returns false if there is
 * no memory. */
bool bench_copies_create(bench_copies *copies, uint64_t bytes, size_t count);
/* Overwrites all copies with the first one. */
void bench_copies_spread(const bench_copies *copies);
void *bench_copies_at(const bench_copies *copies, size_t turn);
void bench_copies_destroy(bench_copies *copies);

#endif
