/* Holds copies of a constant operand. Either all runs use one copy, or each run uses the next copy.
 * With several copies, no copy is still in a cache when a run uses it again. */
#ifndef BENCH_COPIES_H
#define BENCH_COPIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bench_copies {
    char *memory; /* `memory` is the memory of all copies, each of which is aligned to 64 bytes. */
    uint64_t bytes, stride;
    size_t count;
} bench_copies;

/* Returns the number of copies of an operand of `bytes` bytes. It is 1 if `cold` is false. If
 * `cold` is true, there are at least 2 copies with at least 256 MiB in all, so that no run finds
 * its copy in a cache. */
size_t bench_copies_count(uint64_t bytes, bool cold);

/* Allocates memory for `count` copies. The caller then fills the first copy and calls
 * bench_copies_spread. Returns false if there is no memory. */
bool bench_copies_create(bench_copies *copies, uint64_t bytes, size_t count);
/* Copies the bytes of the first copy of the operand to all other copies. */
void bench_copies_spread(const bench_copies *copies);
void *bench_copies_at(const bench_copies *copies, size_t turn);
void bench_copies_destroy(bench_copies *copies);

#endif
