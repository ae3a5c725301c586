/* Times many GEMMs of random operands on a device with queues, for bench/surface.py. A cell is one
 * GEMM. */
#ifndef BENCH_SURFACE_H
#define BENCH_SURFACE_H

#include "device.h"

#include <bsmm.h>

/* One GEMM, D = A B^T, with its formats and sizes. */
typedef struct surface_cell {
    bsmm_format a, b, d;
    int64_t m, n, k;
} surface_cell;

/* Median seconds of one GEMM. `burst` is measured after a pause of the device, `steady` after 60 ms
 * of the same work without a pause. 0: it was not timed. */
typedef struct surface_times {
    double burst, steady;
} surface_times;

typedef struct surface_result {
    char kernel[64];
    char why[256];  /* The reason if the library refused the GEMM or the device failed, else "". */
    uint64_t bytes; /* the bytes of A, B and D as stored, including scales */
    /* The bytes of B's packed form. 0: the kernel reads B as it is stored. */
    uint64_t packed_bytes;
    /* The times of the library's GEMM, and of the peer's unscaled bf16 GEMM of the same shape. */
    surface_times ours, bf16;
} surface_result;

typedef struct surface {
    const char *name; /* the name of the device, as bsmm_local_device_at gives it */
    bench_device *device;
    void *peer; /* The library that the device's peer opened. NULL: there is none. */
    /* Pools of random codes: one for each element type and each scale type (operands.c). */
    struct {
        /* Device memory with POOL_BYTES of random codes. NULL: the pool is not made yet. */
        void *memory;
    } pools[32];
    struct {
        int64_t m, n, k;
        surface_times times;
    } last; /* The peer's last bf16 GEMM, which later GEMMs of the same shape reuse. */
} surface;

/* Fill device memory with random finite codes of an element type, or with random scales near 1. */
bool surface_fill_elements(surface *s, uint32_t elem, void *memory, uint64_t bytes);
bool surface_fill_scales(surface *s, uint32_t scale, void *memory, uint64_t bytes);
void surface_free_pools(surface *s);

/* Runs one GEMM several times and reports its times. */
void surface_run(surface *s, const surface_cell *cell, surface_result *result);

/* Times the peer's unscaled GEMM of M x N x K with elements of `bits` bits, 8 or 16. Returns times
 * of 0 if there is none. */
surface_times surface_run_peer(surface *s, uint32_t bits, int64_t m, int64_t n, int64_t k);

#endif
