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

/* Moves the same bytes as bench_memory_run, but within memory of only `read` + `write` bytes if
 * that is less than 256 MiB. It passes over this memory several times. If the memory fits into the
 * caches, the result is the bandwidth of the caches: the function makes one run with stores that
 * keep the lines in the caches and one with stores that bypass the caches, and returns the higher
 * bandwidth. */
double bench_memory_run_within(const bench_memory *memory, double read, double write, int threads);

/* Calls bench_memory_run five times. Returns the highest bytes per second, or 0 if there is not
 * enough memory. */
double bench_memory_best(double read, double write, int threads);

#endif
