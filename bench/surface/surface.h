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
    char why[256];  /* the reason if the library refused the GEMM or the device failed; else "" */
    uint64_t bytes; /* bytes of A, B and D as stored, including scales */
    uint64_t packed_bytes;    /* bytes of B's packed form; 0: the kernel reads B as it is stored */
    surface_times ours, bf16; /* bf16: the peer's unscaled GEMM of the same shape */
} surface_result;

typedef struct surface {
    const char *name; /* the name of the device, such as "cuda:0" */
    bench_device *device;
    void *peer; /* the library that the device's peer opened; NULL: none */
    struct {
        void *memory; /* device memory with POOL_BYTES of random codes; NULL: not made yet */
    } pools[32];      /* one pool for each element or scale type (operands.c) */
    struct {
        int64_t m, n, k;
        surface_times times;
    } last; /* the peer's last bf16 GEMM, which cells of the same shape reuse */
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
