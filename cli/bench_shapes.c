/* Makes the list of shapes from the options, and the titles of a plot of the results. */
#include "bench.h"
#include <stdio.h>
#include <time.h>

static int64_t steps_of_k(const cli_bench_values *values) {
    return (values->k_range[1] - values->k_range[0]) / values->k_step + 1;
}

int64_t cli_bench_shapes(const cli_bench_values *values) {
    if (values->all_shapes) return cli_bench_challenge_shapes();
    int64_t steps = 1;
    for (int64_t m = values->m_range[0]; m <= values->m_range[1] / 2; m *= 2)
        steps++;
    return steps * steps_of_k(values);
}

void cli_bench_shape_at(const cli_bench_values *values, int64_t index, int64_t sizes[3]) {
    if (values->all_shapes) {
        cli_bench_challenge_shape_at(index, sizes);
        return;
    }
    int64_t ks = steps_of_k(values);
    sizes[0] = values->m_range[0] << index / ks;
    sizes[1] = values->n;
    sizes[2] = values->k_range[0] + index % ks * values->k_step;
}

/* Makes the titles of a plot. The date in them is in UTC, as `date -uI` prints it. */
cli_bench_titles cli_bench_titles_of(const cli_bench_values *values, const char *device,
                                     int threads) {
    cli_bench_titles titles;
    char date[16] = "", with[32] = "";
    time_t now = time(NULL);
    struct tm utc;
    uint32_t version = bsmm_version();
    bool by_m = values->m_range[0] != values->m_range[1];
    if (gmtime_r(&now, &utc)) strftime(date, sizeof date, "%Y-%m-%d", &utc);
    if (threads) snprintf(with, sizeof with, ", %d thread%s", threads, threads == 1 ? "" : "s");
    snprintf(titles.title, sizeof titles.title, "bsmm bench: %s, N=%lld, %c=%lld",
             values->formats.name, (long long)values->n, by_m ? 'K' : 'M',
             (long long)(by_m ? values->k_range[0] : values->m_range[0]));
    snprintf(titles.subtitle, sizeof titles.subtitle, "%s%s, bsmm %u.%u.%u, %s", device, with,
             version / 10000, version / 100 % 100, version % 100, date);
    return titles;
}
