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
    /* `kernel` names the kernel, and `limit` names the GEMM's ceiling, i.e. the resource that
     * limits its rate. */
    char kernel[64], limit[32];
    /* `gflops` is the rate of the GEMM. `ceiling` is the highest rate that the resource `limit`
     * allows. `peers` has the rate of each other library. All of them are in GFLOP/s, and 0 means
     * that there is no result. */
    double gflops, ceiling, peers[BENCH_CURVES];
    /* `unit` is the peak in GFLOP/s of the arithmetic unit that the kernel uses. */
    double unit;
    double intensity; /* `intensity` is the number of operations per byte of the GEMM. */
} bench_point;

typedef struct bench_plot {
    /* `path` is the name of the SVG file. If it ends in .gp, a gnuplot script is written
     * instead. */
    const char *path;
    /* The title of the plot says what was measured, and the subtitle says where and when. */
    const char *title, *subtitle;
    /* `unit` and `memory` are the names of the arithmetic unit and of the memory whose rates form
     * the roof of the roofline plot. */
    const char *unit, *memory;
    /* `peers` holds the names of the other libraries. NULL ends the list. */
    const char *peers[BENCH_CURVES];
    const bench_point *points;
    size_t count;
    double bandwidth; /* `bandwidth` is the memory bandwidth in GB/s. */
} bench_plot;

/* Draws the plot. Returns NULL on success, otherwise a text that says what failed. gnuplot prints
 * details to stderr. */
const char *bench_plot_draw(const bench_plot *plot);

#endif
