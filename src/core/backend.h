/* A backend: the functions that a kind of device offers to the core, and a place, an opened device
 * with the stream of one call. */
#ifndef BSMM_CORE_BACKEND_H
#define BSMM_CORE_BACKEND_H

#include "format/format.h"

/* A checked conversion of device memory: second-level scales and amax lie there as well. */
typedef struct bsmm_recode {
    const void *device;
    void *stream;
    bsmm_operand src, dst;                 /* dst is not read by amax */
    const char *recipe;                    /* of quantize: its name ("ocp"), never NULL */
    const struct bsmm_recipe_steps *steps; /* and what it does (recipe/step.h) */
    uint32_t flags;    /* of quantize: bsmm_quantize_flags, those that the recipe knows */
    bool two_level;    /* of quantize: *dst.m.global_scale is to be written, as dst.m.global_kind */
    const float *amax; /* of quantize: given; NULL: that of src */
    float *result;     /* of amax */
} bsmm_recode;

/* What a kind of device offers the core. One row in backends.def; `device` is what open gave. */
typedef struct bsmm_backend {
    const char *name; /* "cuda": the part of a device's name before ':' */
    bool host_memory; /* whether the processor that calls may read and write buffers */
    /* The record of device `ordinal`, which lives as long as the process. NOT_FOUND, UNSUPPORTED or
     * DEVICE, with the reason. */
    bsmm_status (*open)(uint32_t ordinal, const void **device);
    /* Everything but struct_size; NOT_FOUND past the last device. */
    bsmm_status (*describe)(uint32_t ordinal, bsmm_local_device *info);
    /* INVALID, naming `what`, unless `pointer` (not NULL) is memory of the device. */
    bsmm_status (*check_pointer)(const void *device, const void *pointer, const char *what);
    /* Memory of the device, aligned to 64 bytes and more. */
    bsmm_status (*allocate)(const void *device, uint64_t bytes, void **memory);
    void (*release)(const void *device, void *memory);
    /* Copies up to 128 bytes, a multiple of 4, in the stream's order; `from` is free afterwards. */
    bsmm_status (*store)(const void *device, void *stream, void *to, const void *from,
                         size_t bytes);
    /* Copies bytes (1 and more) in the stream's order, between any of the device's and the host's
     * memory. */
    bsmm_status (*copy)(const void *device, void *stream, void *to, const void *from,
                        uint64_t bytes);
    /* Sets bytes (1 and more) of the device's memory in the stream's order. */
    bsmm_status (*fill)(const void *device, void *stream, void *to, uint8_t value, uint64_t bytes);
    /* Waits until everything in the stream is done. */
    bsmm_status (*finish)(const void *device, void *stream);
    /* Conversions of device memory, queued in the stream; without host_memory only. NULL: none.
     * UNSUPPORTED, with the reason, for what one does not take. */
    bsmm_status (*quantize)(const bsmm_recode *job);
    bsmm_status (*dequantize)(const bsmm_recode *job);
    bsmm_status (*relayout)(const bsmm_recode *job);
    bsmm_status (*amax)(const bsmm_recode *job);
} bsmm_backend;

/* Where a call runs, opened. */
typedef struct bsmm_place {
    const bsmm_backend *backend;
    const void *device;
    void *stream;
    int threads; /* of the cpu */
} bsmm_place;

/* The backend and the record of a device ("cpu", "cuda:0"; "cuda" is "cuda:0"). */
bsmm_status bsmm_device_open(const char *name, const bsmm_backend **backend, const void **device);

/* exec NULL: the cpu with all threads. */
bsmm_status bsmm_place_take(const bsmm_exec *exec, bsmm_place *place);

/* Checks an operand's memory: there, aligned to its elements and to `alignment` (which `who`
 * needs), and the device's. */
bsmm_status bsmm_place_check(const bsmm_place *place, const bsmm_operand *o, const char *what,
                             uint32_t alignment, const char *who);

#endif
