/* Devices that the command moves data to and times: one table, devices.def, with a row for each
 * kind. The library takes a device's pointers and leaves bringing them to its user; the command is
 * such a user, and a row opens the device's driver for itself. No other file knows the kinds. */
#ifndef BENCH_DEVICE_H
#define BENCH_DEVICE_H

#include "queued_peer.h"
#include "samples.h"

#include <bsmm.h>
#include <stdbool.h>
#include <stddef.h>

/* ---- a row ---- */

typedef struct bench_graph {
    void *graph, *executable; /* the row's */
    size_t turns;             /* how often work was queued */
} bench_graph;

/* The operations of one kind of device. `state` is the pointer that open returned. A call that
 * returns false has told the reason to bench_device_fail. */
typedef struct bench_device_kind {
    const char *name;  /* its devices are "name" and "name:0", ... */
    bool is_host;      /* its memory is the process's own, and work is done when its call returns:
                          no graphs */
    const char *known; /* whose data sheet counts where the device's own is not known */
    const bench_queued_peer *peer; /* NULL: none */

    void *(*open)(int ordinal); /* NULL: it failed. The device stays current for this thread */
    void (*close)(void *state);
    void *(*stream)(const void *state); /* as in bsmm_buffers */

    /* Memory, aligned to 64 and more. copy and fill_words are queued in the stream. */
    bool (*allocate)(void *state, uint64_t bytes, void **memory);
    void (*release)(void *state, void *memory);
    bool (*write)(void *state, void *to, const void *from, uint64_t bytes);
    bool (*read)(void *state, void *to, const void *from, uint64_t bytes);
    bool (*copy)(void *state, void *to, const void *from, uint64_t bytes);
    bool (*fill_words)(void *state, void *to, uint32_t word, uint64_t count);
    bool (*wait)(void *state);

    /* Seconds that the device took for what was queued between the two; finish_time waits. */
    bool (*start_time)(void *state);
    bool (*finish_time)(void *state, double *seconds);

    /* NULL of the host. The bytes of the last cache before its memory; graphs. end_capture(NULL)
     * only lets the stream work again. */
    uint64_t (*cache_bytes)(const void *state);
    bool (*begin_capture)(void *state);
    bool (*end_capture)(void *state, bench_graph *graph);
    bool (*launch)(void *state, const bench_graph *graph);
    void (*forget)(void *state, bench_graph *graph);

    /* NULL of the host. What a launch costs at least: queues so many empty kernels; how many
     * kernels a graph launches, 0 where the driver does not say. */
    bool (*launch_empty)(void *state, size_t count);
    size_t (*count_launches)(const bench_graph *graph);
} bench_device_kind;

#define DEVICE(kind) extern const bench_device_kind bench_device_##kind;
#include "devices.def"
#undef DEVICE

/* For rows: keeps the reason; returns false. */
__attribute__((format(printf, 1, 2))) bool bench_device_fail(const char *format, ...);

/* ---- the table ---- */

/* Index 0 and up; NULL past the last. */
const bench_device_kind *bench_device_kind_at(size_t index);

/* The row that "name" or "name:0" is of; the host's for NULL and for names that no row has. */
const bench_device_kind *bench_device_kind_of(const char *device);

/* Fills *info, whose struct_size is set, with the library's row of a device; "name" means name:0.
 * Returns false and leaves *info alone if the library has no such device. */
bool bench_device_find(const char *device, bsmm_local_device *info);

/* ---- an open device ---- */

typedef struct bench_device {
    const bench_device_kind *kind;
    void *state;
    void **memory; /* what reset frees */
    size_t count;
    void *copies[2]; /* of time_copy */
} bench_device;

/* NULL with the reason in bench_device_error() if there is no such device. Its memory and the rest
 * end with close; NULL is allowed there. The device stays current for this thread. */
bench_device *bench_device_open(const char *name);
void bench_device_close(bench_device *device);

/* Why the last call failed ("alloc: OUT_OF_MEMORY"). */
const char *bench_device_error(void);

void *bench_device_stream(const bench_device *device);

/* So many sets of `bytes` that they take four times the cache: 4 to 1024. Not of the host. */
size_t bench_device_sets(const bench_device *device, uint64_t bytes);

/* ---- memory, freed by reset and close; false: bench_device_error() ---- */

/* Unset. 0 bytes: NULL. */
bool bench_device_allocate(bench_device *device, uint64_t bytes, void **memory);
/* Holding a copy of from's bytes (NULL: the byte 0x5A). 0 bytes: NULL. */
bool bench_device_new(bench_device *device, const void *from, uint64_t bytes, void **memory);
/* Holding `sets` copies, `stride` bytes from one to the next. */
bool bench_device_new_sets(bench_device *device, const void *from, uint64_t bytes, uint64_t stride,
                           size_t sets, void **memory);
bool bench_device_write(bench_device *device, void *to, const void *from, uint64_t bytes);
bool bench_device_read(bench_device *device, void *to, const void *from, uint64_t bytes);
bool bench_device_fill_f32(bench_device *device, void *memory, float value, uint64_t count);
bool bench_device_wait(bench_device *device);
void bench_device_reset(bench_device *device);

/* The description of a host matrix with memory on the device: data, scales and, where there is one,
 * the second-level scale, copied if `copied`, else unset. On the host the matrix itself. */
bool bench_device_put(bench_device *device, const bsmm_matrix *host, bool copied,
                      bsmm_matrix *there);
/* Copies a matrix that put made back into the host's memory. */
bool bench_device_get(bench_device *device, const bsmm_matrix *there, const bsmm_matrix *host);

/* ---- time; graphs are not of the host ---- */

/* Queues work in the stream; false if that fails. `turn` picks what rotates. */
typedef bool bench_work(void *context, size_t turn);

/* Captures work(context, 0) ... work(context, turns - 1). */
bool bench_device_record(bench_device *device, bench_work *work, void *context, size_t turns,
                         bench_graph *graph);
/* The same with whole turns of all `sets` that take about a millisecond, 8 and more, so that what a
 * graph's start costs is shared by many. */
bool bench_device_record_sets(bench_device *device, bench_work *work, void *context, size_t sets,
                              bench_graph *graph);
/* Launches it and adds the mean seconds of one turn. */
bool bench_device_time(bench_device *device, const bench_graph *graph, bench_samples *seconds);
void bench_device_forget(bench_device *device, bench_graph *graph);

/* Adds the bytes per second, read and written, of copying device memory beyond all caches. */
bool bench_device_time_copy(bench_device *device, bench_samples *rates);

#endif
