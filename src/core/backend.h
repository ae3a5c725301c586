/* A backend is the set of functions that a kind of device (cpu, cuda) offers to the core. A place
 * is an opened device with the stream of one call. */
#ifndef BSMM_CORE_BACKEND_H
#define BSMM_CORE_BACKEND_H

#include "format/format.h"

/* A validated conversion of device memory. Second-level scales and amax are device memory as well.
 * Fields that belong to one kind of conversion say so. */
typedef struct bsmm_recode {
    const void *device;
    void *stream;
    bsmm_operand src, dst;                 /* source and destination; amax has no dst */
    const char *recipe;                    /* quantize: name of the recipe ("ocp"), never NULL */
    const struct bsmm_recipe_steps *steps; /* quantize: the recipe's steps (recipe/step.h) */
    uint32_t flags;    /* quantize: bsmm_quantize_flags that the recipe accepts */
    bool two_level;    /* quantize: write *dst.m.global_scale in the form of dst.m.global_kind */
    const float *amax; /* quantize: amax given by the caller; NULL: computed from src */
    float *result;     /* bsmm_amax_on: address of the largest magnitude */
} bsmm_recode;

/* The functions that a kind of device offers to the core. Each backend is a row in backends.def.
 * The argument `device` is the record that `open` returned. */
typedef struct bsmm_backend {
    const char *name;    /* "cuda": the part of a device's name before ':' */
    bool host_memory;    /* true if the calling CPU may read and write buffers */
    const char *kernels; /* the backend whose kernels in kernels.def these devices run; NULL:
                          * this backend */
    /* If the devices are simulators, the names of their models, ending with NULL. "sim:gfx950:1" is
     * number 1 of model gfx950, and its ordinal is number * (count of models) + index of the model.
     * If this member is NULL, a device's name has only a number, as in "cuda:1". */
    const char *const *models;
    /* The record of device `ordinal`, which lives as long as the process. NOT_FOUND, UNSUPPORTED or
     * DEVICE, with the reason. */
    bsmm_status (*open)(uint32_t ordinal, const void **device);
    /* Fills every field of *info except struct_size. NOT_FOUND past the last device. */
    bsmm_status (*describe)(uint32_t ordinal, bsmm_local_device *info);
    /* Checks that `pointer` (not NULL) is memory of the device. Otherwise INVALID, with `what` in
     * the message. */
    bsmm_status (*check_pointer)(const void *device, const void *pointer, const char *what);
    /* Allocates memory of the device, aligned to at least 64 bytes. */
    bsmm_status (*allocate)(const void *device, uint64_t bytes, void **memory);
    void (*release)(const void *device, void *memory);
    /* Copies at most 128 bytes, a multiple of 4, in the order of the stream. The caller may reuse
     * `from` after the call. */
    bsmm_status (*store)(const void *device, void *stream, void *to, const void *from,
                         size_t bytes);
    /* Copies at least 1 byte in the order of the stream, between any two of device memory and host
     * memory. */
    bsmm_status (*copy)(const void *device, void *stream, void *to, const void *from,
                        uint64_t bytes);
    /* Sets at least 1 byte of the device's memory in the order of the stream. */
    bsmm_status (*fill)(const void *device, void *stream, void *to, uint8_t value, uint64_t bytes);
    /* Waits until all work in the stream is done. */
    bsmm_status (*finish)(const void *device, void *stream);
    /* These functions convert device memory; the work is queued in the stream. Only backends
     * without host_memory have these functions; NULL means that the backend has none. UNSUPPORTED,
     * with the reason, for a conversion that the function does not support. */
    bsmm_status (*quantize)(const bsmm_recode *job);
    bsmm_status (*dequantize)(const bsmm_recode *job);
    bsmm_status (*relayout)(const bsmm_recode *job);
    bsmm_status (*amax)(const bsmm_recode *job);
} bsmm_backend;

/* The opened device and the stream of one call. */
typedef struct bsmm_place {
    const bsmm_backend *backend;
    const void *device;
    void *stream;
    int threads;    /* number of CPU threads that the call may use */
    bsmm_pool pool; /* the threads; run is NULL: OpenMP's */
} bsmm_place;

/* The backend of a device's name; NULL where none has it. */
const bsmm_backend *bsmm_backend_of(const char *device);

/* The backend and the record of a device ("cpu", "cuda:0"; "cuda" is "cuda:0"). */
bsmm_status bsmm_device_open(const char *name, const bsmm_backend **backend, const void **device);

/* Makes a place from a caller's bsmm_exec. exec NULL means the cpu with all threads. */
bsmm_status bsmm_place_take(const bsmm_exec *exec, bsmm_place *place);

/* Checks an operand's memory: it must be present, aligned to its elements and to `alignment`, and
 * belong to the device. `who` names the owner of the alignment in messages. */
bsmm_status bsmm_place_check(const bsmm_place *place, const bsmm_operand *o, const char *what,
                             uint32_t alignment, const char *who);

#endif
