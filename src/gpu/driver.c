/* The library opens GPU drivers at run time. The functions in this file find the driver's functions
 * and report its errors. */
#include "gpu/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

bsmm_status bsmm_gpu_open_once(bsmm_gpu_opened *opened, bsmm_status (*open)(void *library),
                               void *library) {
    pthread_mutex_lock(&opened->lock);
    if (!opened->tried) {
        opened->outcome = open(library);
        if (opened->outcome != BSMM_OK)
            snprintf(opened->reason, sizeof opened->reason, "%s", bsmm_error_message());
        opened->tried = true;
    }
    pthread_mutex_unlock(&opened->lock);
    return opened->outcome == BSMM_OK ? BSMM_OK : bsmm_fail(opened->outcome, "%s", opened->reason);
}

/* memcpy copies the addresses, because ISO C has no cast from dlsym's data pointer to a function
 * pointer. POSIX guarantees that both pointers have the same bits. */
const char *bsmm_gpu_take_entries(void *handle, const bsmm_gpu_entry *entries, size_t count,
                                  void *library) {
    for (size_t i = 0; i < count; i++) {
        void *symbol = dlsym(handle, entries[i].symbol);
        if (!symbol) return entries[i].symbol;
        memcpy((char *)library + entries[i].offset, &symbol, sizeof symbol);
    }
    return NULL;
}

bsmm_status bsmm_gpu_fail(const bsmm_gpu_meaning *rows, size_t count, int result, const char *call,
                          const char *name, const char *text) {
    const bsmm_gpu_meaning other = {result, BSMM_E_DEVICE, NULL}, *known = &other;
    for (size_t i = 0; i < count; i++)
        if (rows[i].result == result) known = &rows[i];
    return bsmm_fail(known->status, "%s: %s (%d): %s", call, name ? name : "unknown error", result,
                     known->advice ? known->advice
                     : text        ? text
                                   : "no more is known");
}
