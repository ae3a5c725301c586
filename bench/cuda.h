/* A GPU that the command moves data to and times. The library takes device pointers and leaves
 * bringing them to its user; the command is such a user, and opens libcuda.so.1 for itself. */
#ifndef BENCH_CUDA_H
#define BENCH_CUDA_H

#include "samples.h"

#include <bsmm.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct bench_cuda bench_cuda;

/* Whether a device's name is one of these: "cuda", "cuda:0". */
bool bench_cuda_is(const char *device);

/* What the library says of such a device ("cuda" is cuda:0), with struct_size set; false, and *info
 * as it was, if it knows none. */
bool bench_cuda_find(const char *device, bsmm_local_device *info);

/* NULL with the reason in bench_cuda_error() if there is no such device. Its memory and the rest
 * end with close; NULL is allowed there. The device stays current for this thread. */
bench_cuda *bench_cuda_open(const char *device);
void bench_cuda_close(bench_cuda *cuda);

/* Why the last call failed ("cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY"). */
const char *bench_cuda_error(void);

void *bench_cuda_stream(const bench_cuda *cuda);
uint64_t bench_cuda_l2_bytes(const bench_cuda *cuda);
int bench_cuda_driver(const bench_cuda *cuda); /* 13000: CUDA 13.0 */

/* ---- memory, freed by reset and close; false: bench_cuda_error() ---- */

/* Holding a copy of from's bytes (NULL: the byte 0x5A); aligned to 256. 0 bytes: NULL. */
bool bench_cuda_new(bench_cuda *cuda, const void *from, uint64_t bytes, void **memory);
/* Holding `sets` copies, `stride` bytes from one to the next. */
bool bench_cuda_new_sets(bench_cuda *cuda, const void *from, uint64_t bytes, uint64_t stride,
                         size_t sets, void **memory);
/* Copies the first `bytes` bytes over the other sets. */
bool bench_cuda_spread(bench_cuda *cuda, void *memory, uint64_t bytes, uint64_t stride,
                       size_t sets);
bool bench_cuda_write(bench_cuda *cuda, void *to, const void *from, uint64_t bytes);
bool bench_cuda_read(bench_cuda *cuda, void *to, const void *from, uint64_t bytes);
bool bench_cuda_fill_f32(bench_cuda *cuda, void *memory, float value, uint64_t count);
bool bench_cuda_wait(bench_cuda *cuda);
void bench_cuda_reset(bench_cuda *cuda);

/* The description of a host matrix with memory on the device: data, scales and, where there is one,
 * the second-level scale, copied if `copied`, else unset. */
bool bench_cuda_put(bench_cuda *cuda, const bsmm_matrix *host, bool copied, bsmm_matrix *there);
/* What put's result holds, back into the host's memory. */
bool bench_cuda_get(bench_cuda *cuda, const bsmm_matrix *there, const bsmm_matrix *host);

/* ---- time ---- */

/* Queues work in the stream; false if that fails. `turn` picks what rotates. */
typedef bool bench_cuda_work(void *context, size_t turn);

typedef struct bench_cuda_graph {
    void *graph, *executable;
    size_t turns; /* how often work was queued */
} bench_cuda_graph;

/* Captures work(context, 0) ... work(context, turns - 1). */
bool bench_cuda_record(bench_cuda *cuda, bench_cuda_work *work, void *context, size_t turns,
                       bench_cuda_graph *graph);
/* The same with whole turns of all `sets` that take about a millisecond, 8 and more, so that what a
 * graph's start costs is shared by many. */
bool bench_cuda_record_sets(bench_cuda *cuda, bench_cuda_work *work, void *context, size_t sets,
                            bench_cuda_graph *graph);
/* Launches it and adds the mean seconds of one turn, measured by events. */
bool bench_cuda_time(bench_cuda *cuda, const bench_cuda_graph *graph, bench_samples *seconds);
void bench_cuda_forget(bench_cuda *cuda, bench_cuda_graph *graph);

/* Adds the bytes per second, read and written, of copying device memory beyond all caches. */
bool bench_cuda_time_copy(bench_cuda *cuda, bench_samples *rates);

#endif
