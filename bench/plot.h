/* Draws results of bench with gnuplot, or writes a script for gnuplot. The plots show the rate
 * over K or M, and a roofline. */
#ifndef BENCH_PLOT_H
#define BENCH_PLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BENCH_CURVES = 3 }; /* BENCH_CURVES is the largest number of other libraries in a plot. */

/* Describes a point of the plot, i.e. one measured GEMM. */
typedef struct bench_point {
    int64_t m, k;
    char kernel[64], limit[32]; /* The names of the kernel and of the GEMM's ceiling. */
    /* The GFLOP/s of the GEMM, of its ceiling, and of each other library. 0 means that there is no
       result. */
    double gflops, ceiling, peers[BENCH_CURVES];
    double unit;      /* The peak in GFLOP/s of the arithmetic unit that the kernel uses. */
    double intensity; /* The operations per byte of the GEMM. */
} bench_point;

typedef struct bench_plot {
    /* The name of the SVG file. If it ends in .gp, a gnuplot script is written instead. */
    const char *path;
    /* The title says what was measured, and the subtitle says where and when. */
    const char *title, *subtitle;
    /* The names of the arithmetic unit and of the memory, which form the roof of the roofline
       plot. */
    const char *unit, *memory;
    const char *peers[BENCH_CURVES]; /* The names of the other libraries. NULL ends the list. */
    const bench_point *points;
    size_t count;
    double bandwidth; /* The memory bandwidth in GB/s. */
} bench_plot;

/* Draws the plot. Returns NULL on success, otherwise a text that says what failed. gnuplot prints
 * details to stderr. */
const char *bench_plot_draw(const bench_plot *plot);

#endif
