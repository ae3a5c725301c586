/* Measures the bandwidth of memory that is larger than any cache, or of memory of a given size. */
#ifndef BENCH_MEMORY_H
#define BENCH_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

typedef struct bench_memory {
    char *bytes;
} bench_memory;

/* Allocates the memory. Returns false if there is not enough. */
bool bench_memory_create(bench_memory *memory);
void bench_memory_destroy(bench_memory *memory);

/* Moves 256 MiB, and reads `read` bytes for every `write` bytes that it writes. Returns the number
 * of bytes moved per second. */
double bench_memory_run(const bench_memory *memory, double read, double write, int threads);

/* Measures how fast the threads read `read` bytes and write `write` bytes that lie in a memory of
 * just this size. The data of a small conversion fits into caches, and the function then measures
 * the caches. If `read` + `write` is 256 MiB or more, the function calls bench_memory_run.
 * Otherwise the threads pass over the memory until they have moved at least 32 MiB. This is done
 * twice: by stores that keep the lines in the caches, and by stores that bypass the caches. Returns
 * the higher number of bytes per second. */
double bench_memory_run_within(const bench_memory *memory, double read, double write, int threads);

/* Calls bench_memory_run five times. Returns the highest bytes per second, or 0 if there is not
 * enough memory. */
double bench_memory_best(double read, double write, int threads);

#endif
