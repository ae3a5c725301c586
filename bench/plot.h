/* Draws results of bench with gnuplot, or writes a script for gnuplot: a sweep over K or M, and a
 * roofline plot. */
#ifndef BENCH_PLOT_H
#define BENCH_PLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BENCH_CURVES = 3 }; /* largest number of peers in a plot */

/* A point of the plot: one measured GEMM. */
typedef struct bench_point {
    int64_t m, k;
    char kernel[64], limit[32]; /* name of the kernel; name of the limit of this GEMM */
    /* GFLOP/s of the GEMM, of its limit, and of each peer; 0: the peer has no result. */
    double gflops, ceiling, peers[BENCH_CURVES];
    double unit;      /* peak of the arithmetic unit that the kernel uses, in GFLOP/s */
    double intensity; /* operations per byte of the GEMM */
} bench_point;

typedef struct bench_plot {
    /* name of the SVG file; if it ends in .gp, of the gnuplot script to write instead */
    const char *path;
    const char *title, *subtitle; /* title: what was measured; subtitle: where and when */
    /* names of the arithmetic unit and of the memory that form the roof of the roofline plot */
    const char *unit, *memory;
    const char *peers[BENCH_CURVES]; /* names of the peers; NULL ends the list */
    const bench_point *points;
    size_t count;
    double bandwidth; /* memory bandwidth in GB/s */
} bench_plot;

/* Draws the plot. Returns NULL on success, otherwise a text that says what failed; gnuplot has then
 * printed details to stderr. */
const char *bench_plot_draw(const bench_plot *plot);

#endif
