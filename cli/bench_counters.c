/* Prints, for simulated devices with a time model, how the time of each launch is made up. It
 * prints the counters of the launch, such as the share of cycles in which a matrix unit works, and
 * the source lines of the kernel at which waves wait longest. */
#include "bench_session.h"
#include "measure_queued.h"
#include <stdio.h>

/* Defines the columns of the table that the option --counters adds. */
const cli_column cli_bench_counter_columns[] = {
    {"m", "    M", true, "rows of A and D"},
    {"k", "    K", true, "columns of A and B"},
    {"kernel", "launch", false, "kernel of the launch"},
#define COUNTER(name, title, format, factor, help) {#name, title, true, help},
#include "counters.def"
#undef COUNTER
    {0},
};
/* Defines the columns of the table of source lines, which follows the table of counters. */
const cli_column cli_bench_line_columns[] = {
    {"m", "    M", true, "rows of A and D"},
    {"k", "    K", true, "columns of A and B"},
    {"kernel", "launch", false, "kernel of the launch"},
    {"line", "line", false,
     "line of source at which waves wait, or an instruction if the kernels have no line tables"},
#define COUNTER(name, title, format, factor, help) {#name, title, true, help},
#define WAITS_ONLY
#include "counters.def"
#undef WAITS_ONLY
#undef COUNTER
    {0},
};
static const struct {
    const char *format;
    double factor;
} counter_texts[] = {
#define COUNTER(name, title, format, factor, help) {format, factor},
#include "counters.def"
#undef COUNTER
};

static json_t *lines_json(const bench_counters *counters) {
    json_t *lines = json_array();
    for (size_t i = 0; i < counters->line_count; i++) {
        json_t *line = json_object();
        json_object_set_new(line, "line", json_string(counters->lines[i].place));
        for (size_t cause = 0; cause < BENCH_WAITS; cause++)
            json_object_set_new(line, cli_bench_line_columns[cause + 4].key,
                                json_real(counters->lines[i].waits[cause]));
        json_array_append_new(lines, line);
    }
    return lines;
}

json_t *cli_bench_counters_json(const bench_queued_result *result) {
    json_t *launches = json_array();
    for (size_t i = 0; i < result->counted; i++) {
        json_t *launch = json_object();
        json_object_set_new(launch, "kernel", json_string(result->counters[i].kernel));
        for (size_t c = 0; c < BENCH_COUNTERS; c++)
            json_object_set_new(launch, cli_bench_counter_columns[c + 3].key,
                                json_real(result->counters[i].values[c]));
        json_object_set_new(launch, "lines", lines_json(&result->counters[i]));
        json_array_append_new(launches, launch);
    }
    return launches;
}

static void print_launches(const cli_bench_session *s) {
    const bench_queued_result *results = s->results;
    cli_rows *rows = cli_rows_open(cli_bench_counter_columns, false);
    putchar('\n');
    for (size_t i = 0; i < s->kept; i++) {
        int64_t sizes[3];
        cli_bench_shape_at(s->values, (int64_t)i, sizes);
        for (size_t launch = 0; launch < results[i].counted; launch++) {
            const bench_counters *counters = &results[i].counters[launch];
            cli_row_integer(rows, sizes[0]);
            cli_row_integer(rows, sizes[2]);
            cli_row_text(rows, counters->kernel);
            for (size_t c = 0; c < BENCH_COUNTERS; c++)
                cli_row_number(rows, counters->values[c] * counter_texts[c].factor,
                               counter_texts[c].format);
        }
    }
    cli_rows_close(rows);
}

static void print_launch_lines(cli_rows *rows, const int64_t sizes[3],
                               const bench_counters *counters) {
    for (size_t i = 0; i < counters->line_count; i++) {
        cli_row_integer(rows, sizes[0]);
        cli_row_integer(rows, sizes[2]);
        cli_row_text(rows, counters->kernel);
        cli_row_text(rows, counters->lines[i].place);
        for (size_t cause = 0; cause < BENCH_WAITS; cause++)
            cli_row_number(rows, 100 * counters->lines[i].waits[cause], "%.1f%%");
    }
}

static void print_lines(const cli_bench_session *s) {
    const bench_queued_result *results = s->results;
    cli_rows *rows = cli_rows_open(cli_bench_line_columns, false);
    putchar('\n');
    for (size_t i = 0; i < s->kept; i++) {
        int64_t sizes[3];
        cli_bench_shape_at(s->values, (int64_t)i, sizes);
        for (size_t launch = 0; launch < results[i].counted; launch++)
            print_launch_lines(rows, sizes, &results[i].counters[launch]);
    }
    cli_rows_close(rows);
}

void cli_bench_print_counters(cli_bench_session *s) {
    if (!s->values->counters || s->values->json) return;
    print_launches(s);
    print_lines(s);
}
