/* Runs gnuplot, or writes a script for it. */
#ifndef BENCH_GNUPLOT_H
#define BENCH_GNUPLOT_H

#include <stdio.h>

/* Returns NULL if a drawing with this file name can be made: the file can be written and, for an
 * SVG, gnuplot can be run. Otherwise it returns the reason. */
const char *bench_gnuplot_refusal(const char *path);

/* Writes a text in gnuplot's single quotes, in which every character stands for itself. Only a
 * single quote must be doubled. */
void bench_gnuplot_quote(FILE *to, const char *text);

/* Begins a drawing of two panels side by side with two lines of title. */
void bench_gnuplot_titles(FILE *to, const char *title, const char *subtitle);

/* Writes the commands of a drawing, without those that choose the output. */
typedef void bench_gnuplot_put(FILE *to, const void *context);

/* Makes the SVG file `path`. If the name ends in .gp, writes a script for gnuplot instead. Returns
 * NULL on success, otherwise a text that says what failed; gnuplot has then printed details to
 * stderr. */
const char *bench_gnuplot_draw(const char *path, bench_gnuplot_put *put, const void *context);

#endif
