/* The ceiling of what memory limits: threads that read, and write, memory that no cache holds. */
#ifndef BENCH_MEMORY_H
#define BENCH_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

typedef struct bench_memory {
    char *bytes;
} bench_memory;

/* False without memory for it. */
bool bench_memory_create(bench_memory *memory);
void bench_memory_destroy(bench_memory *memory);

/* Bytes per second of moving a quarter of a GiB, `read` bytes for every `write` bytes; 0 bytes
 * written measures reading alone. */
double bench_memory_run(const bench_memory *memory, double read, double write, int threads);

/* The best of five such runs; 0 without memory for it. */
double bench_memory_best(double read, double write, int threads);

#endif
