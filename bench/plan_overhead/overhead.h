/* Declares the GEMMs that bsmm_plan_overhead times, and the count of kernels that a run of each
 * GEMM launches. */
#ifndef OVERHEAD_H
#define OVERHEAD_H

#include "device.h"

#include <bsmm.h>

typedef struct overhead_case {
    const char *a, *b; /* `a` and `b` name the formats of A and B, i.e. presets, "f32" or "bf16". */
    int64_t m, n, k;
    /* `kernel` is the name of a kernel without the prefix that names the device, e.g. "sm80_bf16".
     * NULL means that the library chooses the kernel. */
    const char *kernel;
    /* `compute` and `packed` are the values of bsmm_matmul_desc's fields compute and b_packed. */
    uint32_t compute, packed;
} overhead_case;

/* Returns GEMM number `index` of the list for the host if `is_host` is true, else of the list for
 * GPUs. Returns NULL after the last GEMM. */
const overhead_case *overhead_case_at(bool is_host, size_t index);

/* Holds a plan and all buffers of its runs. */
typedef struct overhead_product {
    bsmm_plan *plan;
    bsmm_buffers buffers;
    void *memory[8]; /* `memory` points to host memory for the operands and results. */
    size_t count;
} overhead_product;

/* Makes the plan and the buffers of a GEMM. `queued` is NULL for the host. Returns false if the
 * device has no kernel for the GEMM, with the reason in the library's error message. */
bool overhead_make(const overhead_case *c, const char *device, bench_device *queued, int64_t rows,
                   overhead_product *product);
void overhead_destroy(overhead_product *product);

/* Prints a message and ends the program. */
void overhead_fail(const char *what, const char *why);

/* Returns the number of kernels that one run of the product launches, or 0 if the driver does not
 * tell. */
size_t overhead_count_launches(bench_device *queued, const overhead_product *product);

#endif
