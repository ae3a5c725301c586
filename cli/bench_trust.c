/* Decides how far a reader can trust a row of bench's output. A row is marked if other work kept
 * the machine busy during its measurement. */
#include "bench.h"
#include "rows.h"
#include <stdio.h>

cli_bench_trust cli_bench_trust_of(const bench_ceilings *run, const bench_probed *row,
                                   int attempts) {
    return (cli_bench_trust){.disturbed = bench_ceilings_disturbed(run, row),
                             .probe_share = bench_ceilings_share(run, row),
                             .attempts = attempts};
}

void cli_bench_share_cell(cli_rows *rows, double share, const cli_bench_trust *trust) {
    cli_row_value(rows, json_real(share), "%.1f%%%s", 100 * share, trust->disturbed ? "*" : "");
}

void cli_bench_trust_cells(cli_rows *rows, const cli_bench_trust *trust) {
    cli_row_number(rows, trust->probe_share, "%.3f");
    cli_row_integer(rows, trust->attempts);
    cli_row_value(rows, json_boolean(trust->disturbed), "%s", "");
}

void cli_bench_explain_mark(void) {
    printf(
        "\n* The machine was busy in all %d attempts: the row's probe fell more than %.0f%% short "
        "of the\nbest of the run, or the row was faster than that.\n",
        BENCH_ATTEMPTS, 100 * (1 - BENCH_UNDISTURBED));
}
