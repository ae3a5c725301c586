/* Declares the functions by which bench uses a GPU. They exist once for NVIDIA's driver and once
 * for AMD's. */
#ifndef BENCH_DEVICE_DRIVER_H
#define BENCH_DEVICE_DRIVER_H

#include "device.h"

/* Declares the functions that use a GPU through one driver. Their names begin with
 * bench_DRIVER_. */
#define BENCH_DECLARE_OPERATIONS(driver)                                                           \
    void bench_##driver##_close(void *state);                                                      \
    void *bench_##driver##_stream(const void *state);                                              \
    bool bench_##driver##_allocate(void *state, uint64_t bytes, void **memory);                    \
    void bench_##driver##_release(void *state, void *memory);                                      \
    bool bench_##driver##_write(void *state, void *to, const void *from, uint64_t bytes);          \
    bool bench_##driver##_read(void *state, void *to, const void *from, uint64_t bytes);           \
    bool bench_##driver##_copy(void *state, void *to, const void *from, uint64_t bytes);           \
    bool bench_##driver##_fill_words(void *state, void *to, uint32_t word, uint64_t count);        \
    bool bench_##driver##_wait(void *state);                                                       \
    bool bench_##driver##_start_time(void *state);                                                 \
    bool bench_##driver##_finish_time(void *state, double *seconds);                               \
    bool bench_##driver##_begin_capture(void *state);                                              \
    bool bench_##driver##_end_capture(void *state, bench_graph *graph);                            \
    bool bench_##driver##_launch(void *state, const bench_graph *graph);                           \
    void bench_##driver##_forget(void *state, bench_graph *graph)

/* Initializes the function pointers of a bench_device_kind, except open, cache_bytes, start_time
 * and finish_time. */
#define BENCH_OPERATIONS(driver)                                                                   \
    .close = bench_##driver##_close, .stream = bench_##driver##_stream,                            \
    .allocate = bench_##driver##_allocate, .release = bench_##driver##_release,                    \
    .write = bench_##driver##_write, .read = bench_##driver##_read, .copy = bench_##driver##_copy, \
    .fill_words = bench_##driver##_fill_words, .wait = bench_##driver##_wait,                      \
    .begin_capture = bench_##driver##_begin_capture, .end_capture = bench_##driver##_end_capture,  \
    .launch = bench_##driver##_launch, .forget = bench_##driver##_forget

#endif
