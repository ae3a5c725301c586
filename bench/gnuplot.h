/* Declares functions that run gnuplot, or write a script for gnuplot. */
#ifndef BENCH_GNUPLOT_H
#define BENCH_GNUPLOT_H

#include <stdio.h>

/* Returns NULL if a drawing with this file name can be made. Otherwise returns the reason, i.e.
 * that the file cannot be written or that gnuplot is missing. */
const char *bench_gnuplot_refusal(const char *path);

/* Writes a text in gnuplot's single quotes. Inside them, every character stands for itself, but a
 * single quote must be doubled. */
void bench_gnuplot_quote(FILE *to, const char *text);

/* Writes the commands for two panels side by side with the title and the subtitle above them. */
void bench_gnuplot_titles(FILE *to, const char *title, const char *subtitle);

/* A function of this type writes gnuplot's commands for a drawing, except those that choose the
 * output file. */
typedef void bench_gnuplot_put(FILE *to, const void *context);

/* Makes the SVG file `path`. If the name ends in .gp, writes a script for gnuplot instead. Returns
 * NULL on success, otherwise a text that says what failed. gnuplot prints details to stderr. */
const char *bench_gnuplot_draw(const char *path, bench_gnuplot_put *put, const void *context);

#endif
