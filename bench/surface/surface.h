/* Times many GEMMs with random operands on a GPU, whose work is queued, for bench/surface.py. One
 * such GEMM is called a cell. */
#ifndef BENCH_SURFACE_H
#define BENCH_SURFACE_H

#include "device.h"

#include <bsmm.h>

/* Describes a cell, i.e. a GEMM D = A B^T with its formats and sizes. */
typedef struct surface_cell {
    bsmm_format a, b, d;
    int64_t m, n, k;
} surface_cell;

/* Holds the median time of one run of a GEMM in seconds, or 0 if it was not timed. `burst` is
 * measured after a pause of the GPU. `steady` is measured after 60 ms of the same work without a
 * pause. */
typedef struct surface_times {
    double burst, steady;
} surface_times;

typedef struct surface_result {
    char kernel[64];
    /* `why` is the reason if the library refused the GEMM or the device failed, else "". */
    char why[256];
    uint64_t bytes; /* `bytes` is the number of bytes of A, B and D as stored, including scales. */
    /* `packed_bytes` is the number of bytes of packed B, or 0 if the kernel reads B as it is
     * stored. */
    uint64_t packed_bytes;
    /* `ours` has the times of the library's GEMM. `bf16` has those of the peer's unscaled bf16 GEMM
     * of the same shape. */
    surface_times ours, bf16;
} surface_result;

typedef struct surface {
    const char *name; /* `device` is the name of the device, as bsmm_local_device_at returns it. */
    bench_device *device;
    void *peer; /* `peer` points to the loaded library of the peer, or NULL if there is none. */
    /* This struct holds pools of random codes, one for each element type and each scale type
     * (operands.c). */
    struct {
        /* Points to device memory with random codes, or is NULL if the pool does not exist yet. */
        void *memory;
    } pools[32];
    struct {
        int64_t m, n, k;
        surface_times times;
    } last; /* Holds the times of the peer's last bf16 GEMM, because later cells of the same shape
               use them again. */
} surface;

/* These functions fill device memory with random finite codes of an element type, or with random
 * scales near 1. Both copy from the pools. */
bool surface_fill_elements(surface *s, uint32_t elem, void *memory, uint64_t bytes);
bool surface_fill_scales(surface *s, uint32_t scale, void *memory, uint64_t bytes);
void surface_free_pools(surface *s);

/* Runs the GEMM of a cell several times and reports its times. */
void surface_run(surface *s, const surface_cell *cell, surface_result *result);

/* Times the peer's unscaled GEMM of M x N x K with elements of `bits` bits, 8 or 16. The times are
 * 0 if there is no such GEMM. */
surface_times surface_run_peer(surface *s, uint32_t bits, int64_t m, int64_t n, int64_t k);

#endif
