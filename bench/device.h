/* Declares devices, on which bench allocates memory, copies data and measures time. devices.def
 * lists the kinds of devices. The code of each kind opens the device's driver itself, because
 * measurements need events, graphs and counters, which the library does not offer. */
#ifndef BENCH_DEVICE_H
#define BENCH_DEVICE_H

#include "counters.h"
#include "family_level.h"
#include "queued_peer.h"
#include "samples.h"

#include <bsmm.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct bench_graph {
    /* `graph` and `executable` are the captured graph and its executable form, as objects of the
     * device's driver. */
    void *graph, *executable;
    size_t turns; /* `turns` is the number of runs of the work in the graph. */
} bench_graph;

/* Describes one kind of device by its operations. `state` is the pointer that `open` returned. An
 * operation that fails passes the reason to bench_device_fail and returns false. */
typedef struct bench_device_kind {
    /* `name` is the name of this kind of device. Its devices are called "name", "name:0", and so
     * on. */
    const char *name;
    /* `is_host` is true for the host. Its memory is the memory of the process, its calls return
     * when their work is complete, and it has no graphs. */
    bool is_host;
    /* If a device has no entry of its own in the library's table of devices (bsmm_device_at), bench
     * uses the data sheet of the entry that `known` names. */
    const char *known;
    /* Returns the name of the known device whose data sheet describes this device. If the function
     * is NULL, `known` describes all devices of this kind. */
    const char *(*known_of)(const char *device);
    /* If devices of this kind have names such as "name:model", `models` lists the names of these
     * models, separated by '|'. NULL means that there are no models. If several kinds match a
     * device's name, the last one counts. */
    const char *models;
    /* `kernels` names the kind of device whose kernels run on devices of this kind. NULL means that
     * this kind has kernels of its own. */
    const char *kernels;
    /* `is_simulated` is true if the device is simulated. bench then times a single run, because
     * simulating takes far longer than the real device would. */
    bool is_simulated;
    /* `is_model` is true if times come from a model of the device, which gives the same time in
     * every run. A simulated device without a model reports the time that simulating took. */
    bool is_model;
    /* `times_without_results` is true if the timed launches of a modelled device compute no
     * results. With the option --sampled, bench then cannot validate anything. */
    bool times_without_results;
    /* `peer` points to the library with which bench compares GEMMs on this kind of device (the
     * peer), or NULL if there is none. */
    const bench_queued_peer *peer;
    /* `levels` lists the measured typical errors of this device's kernels. An entry without a name
     * ends the list. NULL means that none were measured. */
    const bench_family_level *levels;

    /* `open` opens the device `name` (NULL for the host) and makes it the current device of this
     * thread. It returns NULL on failure. */
    void *(*open)(const char *name);
    void (*close)(void *state);
    /* `stream` returns the stream that bench passes to the library in bsmm_buffers. */
    void *(*stream)(const void *state);

    /* These functions manage device memory. Allocations are aligned to at least 64 bytes. `copy`
     * and `fill_words` queue their work in the stream and return. */
    bool (*allocate)(void *state, uint64_t bytes, void **memory);
    void (*release)(void *state, void *memory);
    bool (*write)(void *state, void *to, const void *from, uint64_t bytes);
    bool (*read)(void *state, void *to, const void *from, uint64_t bytes);
    bool (*copy)(void *state, void *to, const void *from, uint64_t bytes);
    bool (*fill_words)(void *state, void *to, uint32_t word, uint64_t count);
    bool (*wait)(void *state);

    /* These functions measure the time in seconds that the device takes for work. The work is
     * queued between a call of start_time and a call of finish_time, which waits for it. */
    bool (*start_time)(void *state);
    bool (*finish_time)(void *state, double *seconds);

    /* cache_bytes returns the size of the device's last-level cache. begin_capture and end_capture
     * record the work between them in a graph instead of running it. If end_capture gets NULL, the
     * recorded work is discarded. `launch` runs a graph, and `forget` destroys it. All five
     * pointers are NULL for the host. */
    uint64_t (*cache_bytes)(const void *state);
    bool (*begin_capture)(void *state);
    bool (*end_capture)(void *state, bench_graph *graph);
    bool (*launch)(void *state, const bench_graph *graph);
    void (*forget)(void *state, bench_graph *graph);

    /* `count` gets the counters of one launch of the work that was timed last. `launch` is the
     * number of the launch, counted from 0. Copies do not count. The function returns false if
     * there are not so many launches. `count` is NULL if the device has no counters. */
    bool (*count)(void *state, size_t launch, bench_counters *counters);

    /* count_opcodes makes simulated devices count the opcodes that they execute. bench calls it
     * before it opens the device. get_opcode gives opcode number `number` and how often it was
     * executed. Its result is 1 if tests with kernels of other projects execute the opcode too, 0
     * if only bsmm's tests do, and -1 after the last opcode. Both pointers are NULL for devices
     * that cannot count. */
    void (*count_opcodes)(void);
    int (*get_opcode)(unsigned number, const char **opcode, uint64_t *count);

    /* launch_empty queues `count` empty kernels, whose time is the least cost of launches.
     * count_launches returns the number of kernels that a graph launches, or 0 if the driver does
     * not tell. Devices without these functions have NULL here. */
    bool (*launch_empty)(void *state, size_t count);
    size_t (*count_launches)(const bench_graph *graph);
} bench_device_kind;

#define DEVICE(kind) extern const bench_device_kind bench_device_##kind;
#include "devices.def"
#undef DEVICE

/* Stores the reason of a failure and returns false. Only the files that implement a kind of device
 * call it. */
__attribute__((format(printf, 1, 2))) bool bench_device_fail(const char *format, ...);

/* Returns the word that follows the times of a device without a real clock, i.e. " model" or "
 * simulating". Returns "" for other devices. */
const char *bench_device_time_note(const bench_device_kind *kind);

/* Returns entry `index` of devices.def, counted from 0, or NULL after the last entry. */
const bench_device_kind *bench_device_kind_at(size_t index);

/* Returns the kind of a device called "name", "name:0" or "name:model". Returns the host's kind for
 * NULL and for a name that no kind has. */
const bench_device_kind *bench_device_kind_of(const char *device);

/* Tells whether a word has the form of a device's name: the name of a kind, a model if the kind has
 * models, and then at most ":NUMBER". This machine may still lack the device. */
bool bench_device_is_name(const char *word);

/* Writes the library's description of a device to *info, whose struct_size must be set. "name"
 * means "name:0". Returns false if the library has no such device. */
bool bench_device_find(const char *device, bsmm_local_device *info);

typedef struct bench_device {
    const bench_device_kind *kind;
    void *state;
    void **memory; /* `memory` lists the allocations that bench_device_reset frees. */
    size_t count;
    /* `copies` holds the two buffers between which bench_device_time_copy copies. */
    void *copies[2];
} bench_device;

/* bench_device_open opens a device and makes it the current device of this thread. If there is no
 * such device, bench_device_open returns NULL, and bench_device_error() returns the reason.
 * bench_device_close frees everything. */
bench_device *bench_device_open(const char *name);
void bench_device_close(bench_device *device);

/* Returns the reason why the last call failed, for example "alloc: OUT_OF_MEMORY". */
const char *bench_device_error(void);

void *bench_device_stream(const bench_device *device);

/* Returns how many copies of operands with `bytes` bytes are together four times as large as the
 * device's cache. The result is from 4 to 1024, or 1 if the device is simulated. The device must
 * not be the host. */
size_t bench_device_sets(const bench_device *device, uint64_t bytes);

/* Returns the number of repetitions of a measurement. The result is `wanted`, or 1 if the device is
 * simulated. */
int bench_device_repeats(const bench_device *device, int wanted);

/* Allocates uninitialized memory. For 0 bytes, *memory becomes NULL. */
bool bench_device_allocate(bench_device *device, uint64_t bytes, void **memory);
/* Allocates memory and fills it with a copy of `from`, or with the byte 0x5A if `from` is NULL. For
 * 0 bytes, *memory becomes NULL. */
bool bench_device_new(bench_device *device, const void *from, uint64_t bytes, void **memory);
/* Allocates device memory for `sets` copies of `from`, and fills it. Each copy begins `stride`
 * bytes after the one before. */
bool bench_device_new_sets(bench_device *device, const void *from, uint64_t bytes, uint64_t stride,
                           size_t sets, void **memory);
bool bench_device_write(bench_device *device, void *to, const void *from, uint64_t bytes);
bool bench_device_read(bench_device *device, void *to, const void *from, uint64_t bytes);
bool bench_device_fill_f32(bench_device *device, void *memory, float value, uint64_t count);
bool bench_device_wait(bench_device *device);
void bench_device_reset(bench_device *device);

/* Copies a host matrix with its scales to device memory. If `copied` is false, the function only
 * allocates the memory. On the host, *there becomes the matrix itself. */
bool bench_device_put(bench_device *device, const bsmm_matrix *host, bool copied,
                      bsmm_matrix *there);
/* Copies the device matrix `there`, which bench_device_put made, to the memory of `host`. */
bool bench_device_get(bench_device *device, const bsmm_matrix *there, const bsmm_matrix *host);

/* Queues work in the stream, and returns false on failure. `turn` is the number of the call and
 * selects one of several copies of the operands. */
typedef bool bench_work(void *context, size_t turn);

/* Captures a graph with the work of `turns` calls of work(context, turn), where turn counts from
 * 0. */
bool bench_device_record(bench_device *device, bench_work *work, void *context, size_t turns,
                         bench_graph *graph);
/* Captures a graph of runs of the work, the same number of runs for each of the `sets` copies of
 * the operands. The number is chosen so that the graph has at least 8 runs and takes about a
 * millisecond. The cost of launching the graph is then small. On a simulated device, the graph has
 * one run for each copy. */
bool bench_device_record_sets(bench_device *device, bench_work *work, void *context, size_t sets,
                              bench_graph *graph);
/* Launches a graph, and adds to `seconds` the mean time of one run of the work in the graph. */
bool bench_device_time(bench_device *device, const bench_graph *graph, bench_samples *seconds);
void bench_device_forget(bench_device *device, bench_graph *graph);

/* Copies device memory that is larger than all caches, and adds the bytes per second to `rates`.
 * Each byte counts twice, because it is read and written. */
bool bench_device_time_copy(bench_device *device, bench_samples *rates);

#endif
