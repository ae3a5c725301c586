/* GFLOP/s over K, drawn by gnuplot. */
#ifndef BENCH_PLOT_H
#define BENCH_PLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bench_point {
    int64_t k;
    double gflops, ceiling, peer; /* GFLOP/s; peer 0: none */
} bench_point;

typedef struct bench_plot {
    const char *path;                            /* of the SVG */
    const char *title, *kernel, *ceiling, *peer; /* names; peer NULL: none */
    const bench_point *points;
    size_t count;
} bench_plot;

/* NULL if a gnuplot can be run and the file be written; else the reason. */
const char *bench_plot_refusal(const char *path);

/* False if gnuplot failed; it has then said why on stderr. */
bool bench_plot_draw(const bench_plot *plot);

#endif
