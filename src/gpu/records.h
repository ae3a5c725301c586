/* One record for each device of a backend, made by the first call for it and kept as long as the
 * process. */
#ifndef BSMM_GPU_RECORDS_H
#define BSMM_GPU_RECORDS_H

#include "base/base.h"

#include <pthread.h>

enum { BSMM_GPU_MOST_DEVICES = 64 };

/* A record is written before its pointer is published and never changes afterwards. Initialize it
 * with {.making = PTHREAD_MUTEX_INITIALIZER}. */
typedef struct bsmm_gpu_records {
    _Atomic(void *) made[BSMM_GPU_MOST_DEVICES];
    pthread_mutex_t making;
} bsmm_gpu_records;

/* The record of a device, of `bytes` bytes, which `fill` completes. A failure is not kept: the next
 * call tries again. `fill` must refuse ordinals from BSMM_GPU_MOST_DEVICES on. Thread-safe. */
bsmm_status bsmm_gpu_record_get(bsmm_gpu_records *records, uint32_t ordinal, size_t bytes,
                                bsmm_status (*fill)(uint32_t ordinal, void *record),
                                const void **record);

#endif
