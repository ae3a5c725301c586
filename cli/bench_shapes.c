/* The shapes that the ranges of M and K make, and the title of a plot of them. */
#include "bench.h"
#include <stdio.h>

static int64_t steps_of_k(const cli_bench_values *values) {
    return (values->k_range[1] - values->k_range[0]) / values->k_step + 1;
}

int64_t cli_bench_shapes(const cli_bench_values *values) {
    int64_t steps = 1;
    for (int64_t m = values->m_range[0]; m <= values->m_range[1] / 2; m *= 2)
        steps++;
    return steps * steps_of_k(values);
}

void cli_bench_shape_at(const cli_bench_values *values, int64_t index, int64_t sizes[3]) {
    int64_t ks = steps_of_k(values);
    sizes[0] = values->m_range[0] << index / ks;
    sizes[1] = values->n;
    sizes[2] = values->k_range[0] + index % ks * values->k_step;
}

void cli_bench_title(const cli_bench_values *values, const char *where, char *title, size_t size) {
    bool by_m = values->m_range[0] != values->m_range[1];
    snprintf(title, size, "bsmm bench: %s, N=%lld, %c=%lld, %s", values->formats.name,
             (long long)values->n, by_m ? 'K' : 'M',
             (long long)(by_m ? values->k_range[0] : values->m_range[0]), where);
}
