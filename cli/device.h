/* Matrices where a command's device can read them: on the cpu where they are, on a GPU as copies.
 */
#ifndef CLI_DEVICE_H
#define CLI_DEVICE_H

#include "cuda.h"

typedef struct cli_device {
    const char *name;
    bench_cuda *cuda; /* NULL: the cpu */
} cli_device;

/* Why one of the calls below returned false. */
const char *cli_device_error(void);

/* name NULL: the cpu. */
bool cli_device_open(cli_device *device, const char *name);
bool cli_device_put(cli_device *device, const bsmm_matrix *host, bool copied, bsmm_matrix *there);
bool cli_device_get(cli_device *device, const bsmm_matrix *there, const bsmm_matrix *host);
bool cli_device_wait(cli_device *device);
/* Memory for a workspace; 64-byte aligned. */
bool cli_device_allocate(cli_device *device, uint64_t bytes, void **memory);
void cli_device_release(cli_device *device, void *memory); /* on a GPU only by clear */

void *cli_device_stream(const cli_device *device);
void cli_device_clear(cli_device *device); /* frees what was put */
void cli_device_close(cli_device *device);

#endif
