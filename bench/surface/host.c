/* Times one GEMM of bench/surface on the host. Every run reads B from memory. Runs of the GEMM, of
 * other libraries and of the loops that measure the peak rates alternate. */
#include "measure.h"
#include "surface.h"

#include <omp.h>
#include <stdio.h>
#include <string.h>

enum { ROUNDS = 3 };

int surface_threads(void) {
    return omp_get_max_threads();
}

static bench_job job_of(const surface *s, const surface_cell *cell) {
    return (bench_job){
        .a = cell->a,
        .b = cell->b,
        .out = cell->d,
        .sizes = {cell->m, cell->n, cell->k},
        .threads = surface_threads(),
        .rounds = ROUNDS,
        .pack_b = true,
        .form = BSMM_PACKED_COMPACT,
        .cold = true,
        .peers = s->host_peers,
    };
}

static uint64_t bytes_of(bsmm_format format, int64_t rows, int64_t cols) {
    bsmm_matrix m = BSMM_INIT(bsmm_matrix);
    uint64_t data = 0, scales = 0;
    m.format = format, m.rows = rows, m.cols = cols;
    if (bsmm_data_bytes(&m, &data) || (format.scale && bsmm_scale_bytes(&m, &scales))) return 0;
    return data + scales;
}

/* Returns the times of the library called `name`, with which bench compares. The times are 0 if
 * this library is not installed. */
static surface_times find_peer(const surface *s, const bench_result *measured, const char *name) {
    for (int i = 0; i < BENCH_PEERS; i++)
        if (strcmp(s->host_peers[i].peer->name, name) == 0)
            return (surface_times){measured->peer_shortest[i], measured->peer_seconds[i]};
    return (surface_times){0};
}

void surface_run_host(const surface *s, const surface_cell *cell, surface_result *result) {
    const bench_job job = job_of(s, cell);
    bench_result measured;
    *result = (surface_result){0};
    if (bench_measure(&job, &measured)) {
        snprintf(result->why, sizeof result->why, "%s", bsmm_error_message());
        return;
    }
    snprintf(result->kernel, sizeof result->kernel, "%s", measured.kernel);
    if (measured.failed) {
        snprintf(result->why, sizeof result->why, "%lld of %lld results are wrong",
                 (long long)measured.failed, (long long)measured.checked);
        return;
    }
    result->bytes = bytes_of(cell->a, cell->m, cell->k) + bytes_of(cell->b, cell->n, cell->k) +
                    bytes_of(cell->d, cell->m, cell->n);
    result->ours = (surface_times){measured.shortest, measured.seconds};
    result->bf16 = find_peer(s, &measured, "onednn_bf16");
    result->sgemm = find_peer(s, &measured, "openblas").burst;
    result->unit = measured.probe->name;
    result->unit_rate = measured.probed.best[BENCH_UNIT];
    result->read_rate = measured.probed.best[BENCH_MEMORY];
}
