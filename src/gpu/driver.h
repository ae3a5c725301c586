/* GPU drivers that are opened at run time: taking their entries, and saying what their errors mean.
 */
#ifndef BSMM_GPU_DRIVER_H
#define BSMM_GPU_DRIVER_H

#include "base/base.h"

/* An entry's symbol, and where its pointer lies in the structure of a driver's entries. */
typedef struct bsmm_gpu_entry {
    const char *symbol;
    size_t offset;
} bsmm_gpu_entry;

/* Fills `library` from what dlopen gave. NULL, or the first symbol that it lacks. */
const char *bsmm_gpu_take_entries(void *handle, const bsmm_gpu_entry *entries, size_t count,
                                  void *library);

/* Maps a driver's error to a bsmm_status. `advice` replaces the driver's text in the message; NULL:
 * the message has the driver's text. */
typedef struct bsmm_gpu_meaning {
    int result;
    bsmm_status status;
    const char *advice;
} bsmm_gpu_meaning;

/* Fails with the status of the result's row, or with DEVICE if there is no such row. The message
 * has the call, the driver's name of the error (NULL: unknown), and the row's advice or else the
 * driver's text (NULL: none). */
bsmm_status bsmm_gpu_fail(const bsmm_gpu_meaning *rows, size_t count, int result, const char *call,
                          const char *name, const char *text);

#endif
