/* A backend is the set of functions through which the core uses one kind of device, such as cpu or
 * cuda. A place is an opened device together with the stream of one call. */
#ifndef BSMM_CORE_BACKEND_H
#define BSMM_CORE_BACKEND_H

#include "core/recode.h"

enum {
    /* BSMM_QUANTIZER_BYTES is the largest size in bytes of a quantizer. A quantizer is the data for
     * the launch of a kernel that quantizes D. A backend's make_quantizer prepares it. */
    BSMM_QUANTIZER_BYTES = 1024,
};

/* Fails to compile if a backend's quantizer is larger than BSMM_QUANTIZER_BYTES. */
#define BSMM_CHECK_QUANTIZER(type)                                                                 \
    _Static_assert(sizeof(type) <= BSMM_QUANTIZER_BYTES && _Alignof(type) <= 16,                   \
                   "a plan has no room for a larger quantizer")

/* `bsmm_backend` holds the functions that one kind of device offers to src/core. backends.def lists
 * the backends. In every function, the argument `device` is the pointer that `open` stored: it
 * points to the backend's own struct for the opened device. */
typedef struct bsmm_backend {
    /* `name` is the part of a device's name before ':', such as "cuda". The backends of simulated
     * AMD and NVIDIA GPUs both have the name "sim"; their lists of models tell them apart. */
    const char *name;
    bool host_memory; /* `host_memory` is true if the calling CPU may read and write buffers. */
    /* `kernels` names the backend whose kernels run on these devices (kernels.def). NULL means this
     * backend itself. */
    const char *kernels;
    /* If the devices are simulators, this array holds the names of their models and ends with NULL.
     * "sim:gfx950:1" is simulator number 1 of model gfx950; its ordinal is number * (count of
     * models) + index of the model. If this member is NULL, a device's name has only a number, as
     * in "cuda:1". */
    const char *const *models;
    /* Opens device number `ordinal` and stores in *device a pointer to the backend's struct for it,
     * which lives as long as the process. The function fails with NOT_FOUND, UNSUPPORTED or DEVICE
     * and a message that gives the reason. */
    bsmm_status (*open)(uint32_t ordinal, const void **device);
    /* Fills every field of *info except struct_size. It fails with NOT_FOUND if `ordinal` is past
     * the last device. */
    bsmm_status (*describe)(uint32_t ordinal, bsmm_local_device *info);
    /* Checks that `pointer`, which is not NULL, is memory of the device. Otherwise it fails with
     * INVALID, and the message names the buffer by `what`. */
    bsmm_status (*check_pointer)(const void *device, const void *pointer, const char *what);
    /* Allocates memory of the device. The address is aligned to at least 64 bytes. */
    bsmm_status (*allocate)(const void *device, uint64_t bytes, void **memory);
    void (*release)(const void *device, void *memory);
    /* Queues a copy of at most 128 bytes from host memory into the stream. The number of bytes must
     * be a multiple of 4. The bytes are copied out of `from` before the call returns, so the caller
     * may overwrite `from` then. */
    bsmm_status (*store)(const void *device, void *stream, void *to, const void *from,
                         size_t bytes);
    /* Queues a copy of at least 1 byte into the stream. Source and destination may each be device
     * memory or host memory. */
    bsmm_status (*copy)(const void *device, void *stream, void *to, const void *from,
                        uint64_t bytes);
    /* Queues a fill of at least 1 byte of device memory with `value` into the stream. */
    bsmm_status (*fill)(const void *device, void *stream, void *to, uint8_t value, uint64_t bytes);
    /* Waits until all work in the stream is done. */
    bsmm_status (*finish)(const void *device, void *stream);
    /* The following functions queue a conversion of device memory into the stream. Backends with
     * host_memory leave them NULL, because src/quantize converts host memory. If a function does
     * not support a conversion, it fails with UNSUPPORTED and a message that gives the reason. */
    bsmm_status (*quantize)(const bsmm_recode *job);
    /* These two functions quantize the block-scaled D of a plan. When the plan is made,
     * make_quantizer chooses and loads the kernel for `job`, whose pointers are NULL. It stores
     * what it has prepared in `quantizer`, which has room for BSMM_QUANTIZER_BYTES bytes. Each run
     * calls run_quantizer with the same job and the run's pointers and stream. A plan copies a
     * quantizer by memcpy. */
    bsmm_status (*make_quantizer)(const bsmm_recode *job, void *quantizer);
    bsmm_status (*run_quantizer)(const bsmm_recode *job, const void *quantizer);
    bsmm_status (*dequantize)(const bsmm_recode *job);
    bsmm_status (*relayout)(const bsmm_recode *job);
    bsmm_status (*amax)(const bsmm_recode *job);
    /* Copies the element codes of the matrix src to dst in row-major order. dst has the format and
     * shape of src. */
    bsmm_status (*move_codes)(const bsmm_recode *job);
} bsmm_backend;

/* `bsmm_place` is an opened device, with the stream and threads of one call. */
typedef struct bsmm_place {
    const bsmm_backend *backend;
    const void *device;
    void *stream;
    int threads; /* `threads` is the number of CPU threads that the call may use. */
    /* `pool` is the caller's thread pool. If pool.run is NULL, OpenMP's threads do the work. */
    bsmm_pool pool;
} bsmm_place;

/* Returns the backend of a device's name such as "cuda:0", or NULL if no backend has that name. */
const bsmm_backend *bsmm_backend_of(const char *device);

/* Finds the backend of a device's name and opens the device. "cuda" means "cuda:0". */
bsmm_status bsmm_device_open(const char *name, const bsmm_backend **backend, const void **device);

/* Fills *place from a caller's bsmm_exec. The function opens the device that `exec` names, and
 * checks the fields of its thread pool. If `exec` is NULL, the device is the CPU and the call may
 * use all processors. */
bsmm_status bsmm_place_take(const bsmm_exec *exec, bsmm_place *place);

/* Checks that the buffers of an operand are given, belong to the device, and are aligned to their
 * elements and to `alignment` bytes. In messages, `what` names the operand and `who` names the
 * kernel that needs the alignment. */
bsmm_status bsmm_place_check(const bsmm_place *place, const bsmm_operand *o, const char *what,
                             uint32_t alignment, const char *who);

#endif
