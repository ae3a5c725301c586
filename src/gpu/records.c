/* Keeps the records of the backends. A record is a struct in which a backend stores what it knows
 * about one device (records.h). */
#include "gpu/records.h"

#include <stdlib.h>

typedef bsmm_status fill_record(uint32_t ordinal, void *record);

static bsmm_status make(uint32_t ordinal, size_t bytes, fill_record *fill, void **made) {
    void *record = calloc(1, bytes);
    if (!record) return bsmm_fail(BSMM_E_MEMORY, "device: out of memory: %zu bytes", bytes);
    const bsmm_status status = fill(ordinal, record);
    if (status == BSMM_OK)
        *made = record;
    else
        free(record);
    return status;
}

static bsmm_status make_once(bsmm_gpu_records *records, uint32_t ordinal, size_t bytes,
                             fill_record *fill, void **record) {
    if (ordinal >= BSMM_GPU_MOST_DEVICES)
        /* The array `made` has no entry for this ordinal, and `fill` will refuse the ordinal with
         * an error message. */
        return make(ordinal, bytes, fill, record);
    pthread_mutex_lock(&records->making);
    bsmm_status status = BSMM_OK;
    *record = records->made[ordinal];
    if (!*record) status = make(ordinal, bytes, fill, record);
    if (status == BSMM_OK) records->made[ordinal] = *record;
    pthread_mutex_unlock(&records->making);
    return status;
}

bsmm_status bsmm_gpu_record_get(bsmm_gpu_records *records, uint32_t ordinal, size_t bytes,
                                fill_record *fill, const void **record) {
    void *found = ordinal < BSMM_GPU_MOST_DEVICES ? records->made[ordinal] : NULL;
    *record = NULL;
    if (!found) BSMM_TRY(make_once(records, ordinal, bytes, fill, &found));
    *record = found;
    return BSMM_OK;
}
