/* Devices to which the command moves data, and on which it measures time. The table devices.def has
 * a row for each kind. The library only takes a device's pointers and leaves copying to its user.
 * The command is such a user, so each row opens the device's driver itself. No other file knows the
 * kinds of devices. */
#ifndef BENCH_DEVICE_H
#define BENCH_DEVICE_H

#include "queued_peer.h"
#include "samples.h"

#include <bsmm.h>
#include <stdbool.h>
#include <stddef.h>

/* ---- a row of the table ---- */

typedef struct bench_graph {
    void *graph, *executable; /* graph objects, which only the driver of the device can read */
    size_t turns;             /* the number of times that the work was queued */
} bench_graph;

/* The operations of one kind of device. `state` is the pointer that `open` returned. A call that
 * returns false has passed the reason to bench_device_fail. */
typedef struct bench_device_kind {
    /* The name of this kind of device. Its devices are called "name", "name:0", and so on. */
    const char *name;
    /* True if the device's memory is the process's own and work is complete when its call returns.
     * Such a device has no graphs. */
    bool is_host;
    /* The known device whose data sheet is used if the device's own is unknown. */
    const char *known;
    /* True if its devices are called "name:model", "name:model:1", and so on. */
    bool has_models;
    /* The library that bench compares with on this device (the peer). NULL: there is none. */
    const bench_queued_peer *peer;

    /* Opens a device and makes it this thread's current one. `name` is the device's, or NULL for
     * the host's. Returns NULL on failure. */
    void *(*open)(const char *name);
    void (*close)(void *state);
    void *(*stream)(const void *state); /* Returns the stream to be used in bsmm_buffers. */

    /* Manage device memory, which is aligned to at least 64 bytes. `copy` and `fill_words` are
     * queued in the stream. */
    bool (*allocate)(void *state, uint64_t bytes, void **memory);
    void (*release)(void *state, void *memory);
    bool (*write)(void *state, void *to, const void *from, uint64_t bytes);
    bool (*read)(void *state, void *to, const void *from, uint64_t bytes);
    bool (*copy)(void *state, void *to, const void *from, uint64_t bytes);
    bool (*fill_words)(void *state, void *to, uint32_t word, uint64_t count);
    bool (*wait)(void *state);

    /* These functions measure the seconds that the device takes for the work queued between the two
     * calls. finish_time waits for that work. */
    bool (*start_time)(void *state);
    bool (*finish_time)(void *state, double *seconds);

    /* These functions are NULL for the host. cache_bytes returns the size of the last-level cache.
     * All others are for graphs. end_capture(NULL) only makes the stream usable again. */
    uint64_t (*cache_bytes)(const void *state);
    bool (*begin_capture)(void *state);
    bool (*end_capture)(void *state, bench_graph *graph);
    bool (*launch)(void *state, const bench_graph *graph);
    void (*forget)(void *state, bench_graph *graph);

    /* These functions are NULL for the host and where there is none. launch_empty queues empty
     * kernels, which cost the least that a launch can cost. count_launches returns the number of
     * kernels that a graph launches, or 0 if the driver does not tell. */
    bool (*launch_empty)(void *state, size_t count);
    size_t (*count_launches)(const bench_graph *graph);
} bench_device_kind;

#define DEVICE(kind) extern const bench_device_kind bench_device_##kind;
#include "devices.def"
#undef DEVICE

/* Stores the reason of a failure and returns false. Only the files of the rows in devices.def call
 * it. */
__attribute__((format(printf, 1, 2))) bool bench_device_fail(const char *format, ...);

/* ---- the table ---- */

/* Returns a row of devices.def, from index 0, or NULL past the last row. */
const bench_device_kind *bench_device_kind_at(size_t index);

/* Returns the row of a device called "name" or "name:0". Returns the host's row for NULL and for a
 * name that no row has. */
const bench_device_kind *bench_device_kind_of(const char *device);

/* Fills *info, whose struct_size must be set, with the library's description of a device. "name"
 * means "name:0". Returns false and leaves *info unchanged if the library has no such device. */
bool bench_device_find(const char *device, bsmm_local_device *info);

/* ---- an open device ---- */

typedef struct bench_device {
    const bench_device_kind *kind;
    void *state;
    void **memory; /* the list of allocations that bench_device_reset frees */
    size_t count;
    void *copies[2]; /* the two memory areas that bench_device_time_copy copies between */
} bench_device;

/* Opens a device. Returns NULL, with the reason in bench_device_error(), if there is no such
 * device. bench_device_close frees everything, and accepts NULL. The device stays this thread's
 * current one. */
bench_device *bench_device_open(const char *name);
void bench_device_close(bench_device *device);

/* Returns why the last call failed, for example "alloc: OUT_OF_MEMORY". */
const char *bench_device_error(void);

void *bench_device_stream(const bench_device *device);

/* Returns so many sets of `bytes` bytes that they are four times as large as the cache: 4 to 1024.
 * It must not be called for the host. */
size_t bench_device_sets(const bench_device *device, uint64_t bytes);

/* ---- memory, freed by reset and close; on false, bench_device_error() has the reason ---- */

/* Allocates uninitialized memory. 0 bytes give NULL. */
bool bench_device_allocate(bench_device *device, uint64_t bytes, void **memory);
/* Allocates memory that holds a copy of `from`, or the byte 0x5A if `from` is NULL. 0 bytes give
 * NULL. */
bool bench_device_new(bench_device *device, const void *from, uint64_t bytes, void **memory);
/* Allocates memory that holds `sets` copies at a stride of `stride` bytes. */
bool bench_device_new_sets(bench_device *device, const void *from, uint64_t bytes, uint64_t stride,
                           size_t sets, void **memory);
bool bench_device_write(bench_device *device, void *to, const void *from, uint64_t bytes);
bool bench_device_read(bench_device *device, void *to, const void *from, uint64_t bytes);
bool bench_device_fill_f32(bench_device *device, void *memory, float value, uint64_t count);
bool bench_device_wait(bench_device *device);
void bench_device_reset(bench_device *device);

/* Describes a host matrix with memory on the device: data, scales and, if it has one, the
 * second-level scale. The memory is copied if `copied` is true, else uninitialized. On the host the
 * result is the matrix itself. */
bool bench_device_put(bench_device *device, const bsmm_matrix *host, bool copied,
                      bsmm_matrix *there);
/* Copies a matrix that bench_device_put made back to the host's memory. */
bool bench_device_get(bench_device *device, const bsmm_matrix *there, const bsmm_matrix *host);

/* ---- time; the host has no graphs ---- */

/* Queues work in the stream and returns false if that fails. `turn` selects among operands that
 * rotate. */
typedef bool bench_work(void *context, size_t turn);

/* Captures work(context, 0) ... work(context, turns - 1) as a graph. */
bool bench_device_record(bench_device *device, bench_work *work, void *context, size_t turns,
                         bench_graph *graph);
/* Captures a graph that runs the work on all `sets` sets of operands a whole number of times. The
 * graph takes about a millisecond and has at least 8 runs, so that the cost of starting it is
 * spread over many runs. */
bool bench_device_record_sets(bench_device *device, bench_work *work, void *context, size_t sets,
                              bench_graph *graph);
/* Launches a graph and adds the mean time of one of its runs, in seconds, to `seconds`. */
bool bench_device_time(bench_device *device, const bench_graph *graph, bench_samples *seconds);
void bench_device_forget(bench_device *device, bench_graph *graph);

/* Copies device memory that is larger than all caches, and adds the bytes read and written per
 * second to `rates`. */
bool bench_device_time_copy(bench_device *device, bench_samples *rates);

#endif
