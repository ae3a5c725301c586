/* A sweep over K or M and the roofline, drawn by gnuplot or left to it as a script. */
#ifndef BENCH_PLOT_H
#define BENCH_PLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BENCH_CURVES = 3 }; /* of peers, at most */

/* One measured product. */
typedef struct bench_point {
    int64_t m, k;
    char kernel[64], limit[32];                  /* what ran it, what the ceiling is of */
    double gflops, ceiling, peers[BENCH_CURVES]; /* GFLOP/s; peers 0: none */
    double unit;                                 /* GFLOP/s of the arithmetic unit */
    double intensity;                            /* operations per byte */
} bench_point;

typedef struct bench_plot {
    const char *path; /* of the SVG or, ending in .gp, of a script that draws it beside itself */
    const char *title;
    const char *unit, *memory;       /* names of what makes the roof */
    const char *peers[BENCH_CURVES]; /* names; NULL: no more */
    const bench_point *points;
    size_t count;
    double bandwidth; /* GB/s of memory */
} bench_plot;

/* NULL if the file can be written and, for an SVG, a gnuplot be run; else the reason. */
const char *bench_plot_refusal(const char *path);

/* NULL, or what failed; gnuplot has then said why on stderr. */
const char *bench_plot_draw(const bench_plot *plot);

#endif
