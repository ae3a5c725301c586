/* Times many GEMMs with random operands on a device whose work is queued (a GPU), for
 * bench/surface.py. One such GEMM is called a cell. */
#ifndef BENCH_SURFACE_H
#define BENCH_SURFACE_H

#include "device.h"

#include <bsmm.h>

/* A cell: a GEMM D = A B^T with its formats and sizes. */
typedef struct surface_cell {
    bsmm_format a, b, d;
    int64_t m, n, k;
} surface_cell;

/* Median time of one run of a GEMM in seconds; 0: not timed. `burst` is measured after the device
 * has paused. `steady` is measured after the device has run the same work for 60 ms without a
 * pause. */
typedef struct surface_times {
    double burst, steady;
} surface_times;

typedef struct surface_result {
    char kernel[64];
    char why[256];  /* reason if the library refused the GEMM or the device failed; else "" */
    uint64_t bytes; /* bytes of A, B and D as stored, including scales */
    /* Bytes of packed B; 0: the kernel reads B as it is stored. */
    uint64_t packed_bytes;
    /* Times of the library's GEMM, and of the peer's unscaled bf16 GEMM of the same shape. */
    surface_times ours, bf16;
} surface_result;

typedef struct surface {
    const char *name; /* name of the device, as bsmm_local_device_at gives it */
    bench_device *device;
    void *peer; /* library that the peer opened; NULL: there is none */
    /* Pools of random codes, one for each element type and each scale type (operands.c). */
    struct {
        /* Device memory with POOL_BYTES of random codes; NULL: the pool does not exist yet. */
        void *memory;
    } pools[32];
    struct {
        int64_t m, n, k;
        surface_times times;
    } last; /* times of the peer's last bf16 GEMM; later cells of the same shape reuse them */
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
