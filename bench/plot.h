/* A sweep over K or M and the roofline, drawn by gnuplot. */
#ifndef BENCH_PLOT_H
#define BENCH_PLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BENCH_CURVES = 3 }; /* of peers, at most */

/* One measured product. */
typedef struct bench_point {
    int64_t m, k;
    double gflops, ceiling, peers[BENCH_CURVES]; /* GFLOP/s; peers 0: none */
    double unit;                                 /* GFLOP/s of the arithmetic unit */
    double intensity;                            /* operations per byte */
} bench_point;

typedef struct bench_plot {
    const char *path; /* of the SVG */
    const char *title;
    const char *kernel, *unit;       /* names */
    const char *peers[BENCH_CURVES]; /* names; NULL: no more */
    const bench_point *points;
    size_t count;
    double bandwidth; /* GB/s of reading memory */
} bench_plot;

/* NULL if a gnuplot can be run and the file be written; else the reason. */
const char *bench_plot_refusal(const char *path);

/* False if gnuplot failed; it has then said why on stderr. */
bool bench_plot_draw(const bench_plot *plot);

#endif
