/* A record is a struct that describes a device of a backend. The first call for a device makes its
 * record, which lives as long as the process. */
#ifndef BSMM_GPU_RECORDS_H
#define BSMM_GPU_RECORDS_H

#include "base/base.h"

#include <pthread.h>

enum { BSMM_GPU_MOST_DEVICES = 64 };

/* Holds the records of a backend's devices. A record is complete before its pointer is stored in
 * this struct, and it never changes afterwards, so readers need no lock. Initialize the struct with
 * {.making = PTHREAD_MUTEX_INITIALIZER}. */
typedef struct bsmm_gpu_records {
    _Atomic(void *) made[BSMM_GPU_MOST_DEVICES];
    pthread_mutex_t making;
} bsmm_gpu_records;

/* Returns the record of a device. If there is none yet, the function allocates `bytes` zero bytes
 * and calls `fill` to complete them. After a failure, the next call tries again. `fill` must refuse
 * an ordinal of BSMM_GPU_MOST_DEVICES or more. Thread-safe. */
bsmm_status bsmm_gpu_record_get(bsmm_gpu_records *records, uint32_t ordinal, size_t bytes,
                                bsmm_status (*fill)(uint32_t ordinal, void *record),
                                const void **record);

#endif
