#include "ceiling.h"

bench_probed bench_probed_memory(double best, double typical, double reached) {
    return (bench_probed){.best = {[BENCH_MEMORY] = best},
                          .typical = {[BENCH_MEMORY] = typical},
                          .reached = {[BENCH_MEMORY] = reached}};
}

void bench_ceilings_raise(bench_ceilings *run, const bench_probed *row) {
    for (int i = 0; i < BENCH_CEILINGS; i++)
        if (row->best[i] > run->best[i]) run->best[i] = row->best[i];
}

double bench_ceilings_share(const bench_ceilings *run, const bench_probed *row) {
    double share = 1;
    for (int i = 0; i < BENCH_CEILINGS; i++)
        if (row->best[i] > 0 && row->typical[i] < share * run->best[i])
            share = row->typical[i] / run->best[i];
    return share;
}

static bool is_faster(const bench_ceilings *run, const bench_probed *row) {
    for (int i = 0; i < BENCH_CEILINGS; i++)
        if (row->best[i] > 0 && row->reached[i] > run->best[i]) return true;
    return false;
}

bool bench_ceilings_disturbed(const bench_ceilings *run, const bench_probed *row) {
    return bench_ceilings_share(run, row) < BENCH_UNDISTURBED || is_faster(run, row);
}

/* Measures one row of the output, i.e. one GEMM or conversion. The new measurement replaces an
 * earlier one only if other work on the machine disturbed it less. */
static int measure_row(const bench_rows *rows, size_t row, bench_ceilings *run,
                       bench_probed *probed, int *attempts) {
    bench_probed now = {0};
    int status = rows->measure(rows->context, row, &now);
    if (status) return status;
    bench_ceilings_raise(run, &now);
    if (attempts[row]++ == 0 ||
        bench_ceilings_share(run, &now) > bench_ceilings_share(run, &probed[row])) {
        probed[row] = now;
        rows->keep(rows->context, row);
    }
    return 0;
}

/* Measures all rows of the output, and then disturbed rows again. A repeated measurement may raise
 * the ceiling, i.e. the best measured peak rate. Other rows may then be too far below the ceiling,
 * so they count as disturbed too. */
int bench_rows_measure(const bench_rows *rows, bench_ceilings *run, bench_probed *probed,
                       int *attempts) {
    int status = 0;
    for (size_t row = 0; row < rows->count; row++)
        attempts[row] = 0;
    for (int attempt = 0; attempt < BENCH_ATTEMPTS; attempt++)
        for (size_t row = 0; row < rows->count && !status; row++)
            if (attempt == 0 || bench_ceilings_disturbed(run, &probed[row]))
                status = measure_row(rows, row, run, probed, attempts);
    return status;
}
