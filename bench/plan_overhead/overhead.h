/* The parts of bsmm_plan_overhead: products, and how many launches a run of each has. */
#ifndef OVERHEAD_H
#define OVERHEAD_H

#include "device.h"

#include <bsmm.h>

/* ---- products (cases.c) ---- */

typedef struct overhead_case {
    const char *a, *b; /* formats, or "f32" and "bf16" */
    int64_t m, n, k;
    const char *kernel; /* forced, without its device; NULL: the best */
    uint32_t compute, packed;
} overhead_case;

/* The products of the host, or of other devices; NULL past the last. */
const overhead_case *overhead_case_at(bool is_host, size_t index);

/* A plan and everything that a run of it needs. */
typedef struct overhead_product {
    bsmm_plan *plan;
    bsmm_buffers buffers;
    void *memory[8]; /* of the host */
    size_t count;
} overhead_product;

/* queued: NULL for the host. False where the device has no kernel for the case, with the library's
 * message. */
bool overhead_make(const overhead_case *c, const char *device, bench_device *queued, int64_t rows,
                   overhead_product *product);
void overhead_destroy(overhead_product *product);

/* Ends the program. */
void overhead_fail(const char *what, const char *why);

/* ---- launches (launches.c) ---- */

/* How many kernels the work of one run is; 0 where the driver does not say. */
size_t overhead_count_launches(bench_device *queued, const overhead_product *product);

#endif
