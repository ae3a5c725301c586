/* Measures the time that the host needs for bsmm_plan_run, with GEMMs so small that this time
 * dominates.
 * usage: bsmm_plan_overhead [DEVICE] times every product.
 * bsmm_plan_overhead DEVICE RUNS [PRODUCT] runs every product (or only product number PRODUCT)
 * RUNS times without timing, for tools that count instructions.
 * The first number of an output line is the shortest time of a run, and the second is a baseline.
 * On the cpu, the baseline is a GEMM without rows. On a GPU, it is the launch of as many empty
 * kernels as the run launches. */
#include "overhead.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCHES = 400, BATCH = 64 };

static void run(const overhead_product *product, size_t runs) {
    for (size_t i = 0; i < runs; i++)
        if (bsmm_plan_run(product->plan, &product->buffers))
            overhead_fail("bsmm_plan_run", bsmm_error_message());
}

static void wait_for(bench_device *queued) {
    if (queued && !bench_device_wait(queued)) overhead_fail("wait", bench_device_error());
}

static void launch(bench_device *queued, size_t count) {
    if (!queued->kind->launch_empty(queued->state, count))
        overhead_fail("launch", bench_device_error());
}

/* Measures two times in nanoseconds, each the shortest of several batches. best[0] is the time of a
 * run of `product`. best[1] is a baseline for comparison. If `queued` is not NULL, the product runs
 * on a device, and the baseline is the time of launching `launches` empty kernels. Otherwise it is
 * the time of a run of the product `empty`. */
static void measure(const overhead_product *product, const overhead_product *empty,
                    bench_device *queued, size_t launches, double best[2]) {
    best[0] = best[1] = 1e30;
    for (int i = 0; i < BATCHES; i++) {
        wait_for(queued);
        double begin = bench_now();
        run(product, BATCH);
        double middle = bench_now();
        wait_for(queued);
        double again = bench_now();
        if (queued)
            launch(queued, launches * BATCH);
        else
            run(empty, BATCH);
        double times[2] = {middle - begin, bench_now() - again};
        for (int j = 0; j < 2; j++)
            if (times[j] * 1e9 / BATCH < best[j]) best[j] = times[j] * 1e9 / BATCH;
    }
}

static void report(const overhead_case *c, const overhead_product *product,
                   const overhead_product *empty, bench_device *queued, bool has_empty) {
    size_t launches = queued && has_empty ? overhead_count_launches(queued, product) : 0;
    double best[2];
    measure(product, empty, queued, launches, best);
    printf("%-13s x %-13s %4lld x %4lld x %4lld %s %-26s %9.1f ns", c->a, c->b, (long long)c->m,
           (long long)c->n, (long long)c->k, c->packed ? "packed" : "      ",
           bsmm_plan_kernel(product->plan), best[0]);
    if (!queued)
        printf(", no rows %7.1f ns\n", best[1]);
    else if (launches)
        printf(", %zu launches %7.1f ns, ratio %.2f\n", launches, best[1], best[0] / best[1]);
    else
        printf("\n");
}

static void take_case(const overhead_case *c, const char *device, bench_device *queued, size_t runs,
                      bool has_empty) {
    overhead_product product, empty = {0};
    if (!overhead_make(c, device, queued, c->m, &product)) {
        printf("%-13s x %-13s %s\n", c->a, c->b, bsmm_error_message());
        return;
    }
    if (runs) {
        run(&product, runs);
    } else {
        if (!queued && !overhead_make(c, device, NULL, 0, &empty))
            overhead_fail("no rows", bsmm_error_message());
        report(c, &product, &empty, queued, has_empty);
    }
    wait_for(queued);
    overhead_destroy(&product);
    if (empty.plan) overhead_destroy(&empty);
    if (queued) bench_device_reset(queued);
}

int main(int argc, char **argv) {
    const char *device = argc > 1 ? argv[1] : "cpu";
    size_t runs = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    size_t only = argc > 3 ? strtoull(argv[3], NULL, 10) : SIZE_MAX;
    bool is_host = bench_device_kind_of(device)->is_host;
    bench_device *queued = is_host ? NULL : bench_device_open(device);
    if (!is_host && !queued) overhead_fail(device, bench_device_error());
    bool has_empty = queued && queued->kind->launch_empty(queued->state, 0);
    for (size_t i = 0; overhead_case_at(is_host, i); i++)
        if (only == SIZE_MAX || i == only)
            take_case(overhead_case_at(is_host, i), device, queued, runs, has_empty);
    bench_device_close(queued);
    return EXIT_SUCCESS;
}
