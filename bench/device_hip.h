/* Declares the operations of devices that libamdhip64.so drives, i.e. of real and simulated AMD
 * GPUs. */
#ifndef BENCH_DEVICE_HIP_H
#define BENCH_DEVICE_HIP_H

#include "device.h"

/* Opens the device `name` through one of the libraries in a list that ends with NULL. The bsmm
 * library must have opened that library before. */
void *bench_hip_open(const char *name, const char *const *libraries);

void bench_hip_close(void *state);
void *bench_hip_stream(const void *state);
bool bench_hip_allocate(void *state, uint64_t bytes, void **memory);
void bench_hip_release(void *state, void *memory);
bool bench_hip_write(void *state, void *to, const void *from, uint64_t bytes);
bool bench_hip_read(void *state, void *to, const void *from, uint64_t bytes);
bool bench_hip_copy(void *state, void *to, const void *from, uint64_t bytes);
bool bench_hip_fill_words(void *state, void *to, uint32_t word, uint64_t count);
bool bench_hip_wait(void *state);
bool bench_hip_start_time(void *state);
bool bench_hip_finish_time(void *state, double *seconds);
bool bench_hip_begin_capture(void *state);
bool bench_hip_end_capture(void *state, bench_graph *graph);
bool bench_hip_launch(void *state, const bench_graph *graph);
void bench_hip_forget(void *state, bench_graph *graph);

/* Initializes all operations of a bench_device_kind except open, cache_bytes, start_time and
 * finish_time. */
#define BENCH_HIP_OPERATIONS                                                                       \
    .close = bench_hip_close, .stream = bench_hip_stream, .allocate = bench_hip_allocate,          \
    .release = bench_hip_release, .write = bench_hip_write, .read = bench_hip_read,                \
    .copy = bench_hip_copy, .fill_words = bench_hip_fill_words, .wait = bench_hip_wait,            \
    .begin_capture = bench_hip_begin_capture, .end_capture = bench_hip_end_capture,                \
    .launch = bench_hip_launch, .forget = bench_hip_forget

#endif
