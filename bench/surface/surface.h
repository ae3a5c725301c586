/* Times many GEMMs with random operands for bench/surface.py and `bsmm bench --surface`. The GEMMs
 * run on the host, or are queued on a GPU. One GEMM of this list is called a cell. */
#ifndef BENCH_SURFACE_H
#define BENCH_SURFACE_H

#include "device.h"
#include "peer.h"

#include <bsmm.h>
#include <stdio.h>

/* Describes a cell, i.e. a GEMM D = A B^T with its formats and sizes. */
typedef struct surface_cell {
    bsmm_format a, b, d;
    int64_t m, n, k;
} surface_cell;

/* Holds two times of one run of a GEMM in seconds, or 0 for a GEMM that was not timed. On a GPU,
 * `burst` is the median of runs directly after a pause of the GPU, and `steady` is the median of
 * runs after 60 ms of the same work without a pause. On the host, `burst` is the shortest time of
 * all runs and `steady` is their median. */
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
    /* `ours` has the times of bsmm's GEMM. `bf16` has the times of the peer library's unscaled bf16
     * GEMM of the same shape. */
    surface_times ours, bf16;
    /* These fields are set only if the device is the CPU. `sgemm` is the time in seconds of
     * OpenBLAS's fp32 GEMM of the same shape, or 0 if OpenBLAS was not found. `unit` is the name of
     * the arithmetic unit that bsmm's kernel uses. `unit_rate` is the peak rate of this unit in
     * operations per second, and `read_rate` is the read bandwidth of the memory in bytes per
     * second. Both rates were measured together with the GEMM. */
    double sgemm, unit_rate, read_rate;
    const char *unit;
} surface_result;

typedef struct surface {
    const char *name; /* `name` is the name of the device, as bsmm_local_device_at returns it. */
    bench_device *device;
    /* `peer` points to the library with which bench compares, or NULL if there is none. */
    void *peer;
    /* `host_peers` holds the libraries with which bench compares on the host. */
    bench_found host_peers[BENCH_PEERS];
    /* These are the pools of random codes, one for each element type and each scale type
     * (operands.c). */
    struct {
        /* `memory` points to device memory with random codes of one type. It is NULL if no GEMM has
         * needed codes of this type yet. */
        void *memory;
    } pools[32];
    struct {
        int64_t m, n, k;
        surface_times times;
        /* `last` holds the times of the compared library's last bf16 GEMM. Later GEMMs of the same
         * shape reuse them. */
    } last;
} surface;

/* A cell describes a GEMM. Reads cells from a file, one per line, times them on a device, and
 * prints a JSON line for each to standard output. Returns 0, or 2 after a message if there is no
 * such device or a line is no cell. */
int surface_run_all(const char *device, FILE *cells);

/* These functions fill device memory with random finite codes of an element type, or with random
 * scales near 1. Both copy from the pools, i.e. from random codes that were made once. */
bool surface_fill_elements(surface *s, uint32_t elem, void *memory, uint64_t bytes);
bool surface_fill_scales(surface *s, uint32_t scale, void *memory, uint64_t bytes);
void surface_free_pools(surface *s);

/* These functions run the GEMM of a cell several times and report its times. surface_run does so on
 * a GPU, and surface_run_host on the host. */
void surface_run(surface *s, const surface_cell *cell, surface_result *result);
void surface_run_host(const surface *s, const surface_cell *cell, surface_result *result);

/* Returns the number of threads that GEMMs on the host use. */
int surface_threads(void);

/* Times an unscaled GEMM of M x N x K of the peer, i.e. of the library with which bench compares.
 * The elements of A and B have `bits` bits (8 or 16). The times are 0 if the peer has no such GEMM.
 */
surface_times surface_run_peer(surface *s, uint32_t bits, int64_t m, int64_t n, int64_t k);

#endif
