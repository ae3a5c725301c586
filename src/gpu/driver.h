/* The library opens GPU drivers at run time. These functions find the driver's functions and report
 * the driver's errors. */
#ifndef BSMM_GPU_DRIVER_H
#define BSMM_GPU_DRIVER_H

#include "base/base.h"

#include <pthread.h>

/* Holds a driver's library that is opened at most once. `outcome` and the message `reason` are the
 * result of the first attempt to open it. Every later call returns the same result. Initialize the
 * struct with {.lock = PTHREAD_MUTEX_INITIALIZER}. */
typedef struct bsmm_gpu_opened {
    pthread_mutex_t lock;
    bool tried;
    bsmm_status outcome;
    char reason[320];
} bsmm_gpu_opened;

/* Calls open(library) if this is the first call for *opened. Returns the result of that first call.
 * `open` fills the struct that holds the driver's functions. Thread-safe. */
bsmm_status bsmm_gpu_open_once(bsmm_gpu_opened *opened, bsmm_status (*open)(void *library),
                               void *library);

/* Describes a function of a driver: its symbol in the driver's shared library, and the offset of
 * its pointer in the struct that holds all of the driver's functions. */
typedef struct bsmm_gpu_entry {
    const char *symbol;
    size_t offset;
} bsmm_gpu_entry;

/* Looks up the functions of the table `entries` in the library `handle`, which dlopen returned, and
 * stores their addresses in the struct `library`. Returns NULL, or the first symbol that the driver
 * lacks. */
const char *bsmm_gpu_take_entries(void *handle, const bsmm_gpu_entry *entries, size_t count,
                                  void *library);

/* Maps one of a driver's error codes to a value of bsmm_status. The error message contains
 * `advice`, or the driver's own text if `advice` is NULL. */
typedef struct bsmm_gpu_meaning {
    int result;
    bsmm_status status;
    const char *advice;
} bsmm_gpu_meaning;

/* Returns the status of the entry for `result` in the table `rows`, or BSMM_E_DEVICE if the table
 * has no such entry, and sets the error message. The message has three parts. The first is `call`,
 * the name of the driver's function. The second is `name`, the driver's name of the error, or
 * "unknown error" if `name` is NULL. The third is the entry's advice, or else the driver's text
 * `text`, which may be NULL. */
bsmm_status bsmm_gpu_fail(const bsmm_gpu_meaning *rows, size_t count, int result, const char *call,
                          const char *name, const char *text);

#endif
