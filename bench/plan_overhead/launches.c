#include "overhead.h"

static bool run_once(void *context, size_t turn) {
    const overhead_product *product = context;
    (void)turn;
    return bsmm_plan_run(product->plan, &product->buffers) == BSMM_OK;
}

size_t overhead_count_launches(bench_device *queued, const overhead_product *product) {
    bench_graph graph;
    overhead_product copy = *product;
    if (!bench_device_record(queued, run_once, &copy, 1, &graph)) return 0;
    size_t count = queued->kind->count_launches(&graph);
    bench_device_forget(queued, &graph);
    return count;
}
