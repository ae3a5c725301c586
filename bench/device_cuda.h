/* Declares functions that all files for NVIDIA GPUs as devices of bench share. */
#ifndef BENCH_DEVICE_CUDA_H
#define BENCH_DEVICE_CUDA_H

#include "device.h"

extern const bench_queued_peer bench_cublaslt;
extern const bench_family_level bench_cuda_levels[];

/* Opens device number `ordinal` of a driver that is already loaded. */
void *bench_cuda_open(void *library, int ordinal);

void bench_cuda_close(void *state);
void *bench_cuda_stream(const void *state);
bool bench_cuda_allocate(void *state, uint64_t bytes, void **memory);
void bench_cuda_release(void *state, void *memory);
bool bench_cuda_write(void *state, void *to, const void *from, uint64_t bytes);
bool bench_cuda_read(void *state, void *to, const void *from, uint64_t bytes);
bool bench_cuda_copy(void *state, void *to, const void *from, uint64_t bytes);
bool bench_cuda_fill_words(void *state, void *to, uint32_t word, uint64_t count);
bool bench_cuda_wait(void *state);
bool bench_cuda_start_time(void *state);
bool bench_cuda_finish_time(void *state, double *seconds);
bool bench_cuda_begin_capture(void *state);
bool bench_cuda_end_capture(void *state, bench_graph *graph);
bool bench_cuda_launch(void *state, const bench_graph *graph);
void bench_cuda_forget(void *state, bench_graph *graph);

/* Initializes the operations that real and simulated NVIDIA GPUs share, except start_time and
 * finish_time. */
#define BENCH_CUDA_OPERATIONS                                                                      \
    .close = bench_cuda_close, .stream = bench_cuda_stream, .allocate = bench_cuda_allocate,       \
    .release = bench_cuda_release, .write = bench_cuda_write, .read = bench_cuda_read,             \
    .copy = bench_cuda_copy, .fill_words = bench_cuda_fill_words, .wait = bench_cuda_wait,         \
    .begin_capture = bench_cuda_begin_capture, .end_capture = bench_cuda_end_capture,              \
    .launch = bench_cuda_launch, .forget = bench_cuda_forget

bool bench_cuda_launch_empty(void *stream, size_t count);
size_t bench_cuda_count_launches(const bench_graph *graph);

#endif
