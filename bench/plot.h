/* Draws a sweep over K or M and the roofline by gnuplot, or writes a script for gnuplot. */
#ifndef BENCH_PLOT_H
#define BENCH_PLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BENCH_CURVES = 3 }; /* the largest number of peers in a plot */

/* A point of the plot: one measured GEMM. */
typedef struct bench_point {
    int64_t m, k;
    char kernel[64], limit[32]; /* the name of the kernel, and the name of the limit of this GEMM */
    /* GFLOP/s of the GEMM, of its limit and of the peers. A peer with 0 has no result. */
    double gflops, ceiling, peers[BENCH_CURVES];
    double unit;      /* the peak of the arithmetic unit that the kernel uses, in GFLOP/s */
    double intensity; /* the GEMM's arithmetic intensity, in operations per byte */
} bench_point;

typedef struct bench_plot {
    const char *path; /* file name of the SVG, or of a script that draws it if it ends in .gp */
    const char *title, *subtitle; /* two lines: the subject, then the place and the date */
    /* names of the arithmetic unit and of the memory, which make the roof */
    const char *unit, *memory;
    const char *peers[BENCH_CURVES]; /* the names of the peers; NULL ends the list */
    const bench_point *points;
    size_t count;
    double bandwidth; /* the bandwidth of memory, in GB/s */
} bench_plot;

/* Returns NULL if the file can be written and, for an SVG, gnuplot can be run. Otherwise returns
 * the reason. */
const char *bench_plot_refusal(const char *path);

/* Returns NULL, or what failed. In that case gnuplot has explained it on stderr. */
const char *bench_plot_draw(const bench_plot *plot);

#endif
