#include "plot.h"
#include "gnuplot.h"

#include <stdio.h>
#include <string.h>

/* These constants are the column numbers of the plot's data: M, K, operations per byte, and the
 * GFLOP/s of bsmm, of the ceiling, of the arithmetic unit and of the other libraries (peers). */
enum { M = 1, K, INTENSITY, OURS, CEILING, UNIT, PEERS };

/* Writes the data of all points. If a library has no result for a shape, its curve has a gap
 * there. */
static void put_data(FILE *to, const bench_plot *plot) {
    fputs("# M, K, operations per byte, GFLOP/s: ours, ceiling, unit, peers\n$data << END\n", to);
    for (size_t i = 0; i < plot->count; i++) {
        const bench_point *p = &plot->points[i];
        fprintf(to, "%lld %lld %.6g %.6g %.6g %.6g", (long long)p->m, (long long)p->k, p->intensity,
                p->gflops, p->ceiling, p->unit);
        for (int peer = 0; peer < BENCH_CURVES; peer++)
            if (p->peers[peer] > 0)
                fprintf(to, " %.6g", p->peers[peer]);
            else
                fputs(" NaN", to);
        putc('\n', to);
    }
    fputs("END\n", to);
}

/* Writes the part of a gnuplot command that draws the curve of `column` over column x. `value` is
 * the gnuplot expression for the curve's y values. */
static void put_curve(FILE *to, const char *separator, int x, const char *value, int column,
                      const char *name, const char *style) {
    fprintf(to, "%s $data using %d:", separator, x);
    fprintf(to, value, column); /* NOLINT(clang-diagnostic-format-nonliteral) */
    fprintf(to, " with %s title ", style);
    bench_gnuplot_quote(to, name);
}

static bool has_peer(const bench_plot *plot, int peer) {
    for (size_t i = 0; i < plot->count; i++)
        if (plot->points[i].peers[peer] > 0) return true;
    return false;
}

/* Lists the distinct names in a text field of the points, in order. `offset` is the byte offset of
 * the field in a bench_point. */
static void list_names(const bench_plot *plot, size_t offset, char *list, size_t size) {
    size_t used = strlen(list);
    for (size_t i = 0; i < plot->count && used < size; i++) {
        const char *name = (const char *)&plot->points[i] + offset;
        bool known = false;
        for (size_t j = 0; j < i && !known; j++)
            known = strcmp((const char *)&plot->points[j] + offset, name) == 0;
        if (!known) used += (size_t)snprintf(list + used, size - used, "%s%s", i ? ", " : "", name);
    }
}

static const char *const colors[1 + BENCH_CURVES] = {"linetype 1", "linetype 2", "linetype 3",
                                                     "linetype 5"};

static void list_kernels(const bench_plot *plot, char *list, size_t size) {
    *list = '\0';
    list_names(plot, offsetof(bench_point, kernel), list, size);
}

static void put_curves(FILE *to, const bench_plot *plot, int x, const char *value) {
    char kernels[256], style[64];
    list_kernels(plot, kernels, sizeof kernels);
    snprintf(style, sizeof style, "linespoints %s linewidth 2", colors[0]);
    put_curve(to, "", x, value, OURS, kernels, style);
    for (int i = 0; i < BENCH_CURVES; i++) {
        snprintf(style, sizeof style, "linespoints %s", colors[1 + i]);
        if (has_peer(plot, i)) put_curve(to, ",", x, value, PEERS + i, plot->peers[i], style);
    }
}

static bool has_one_ceiling(const bench_plot *plot) {
    for (size_t i = 1; i < plot->count; i++)
        if (plot->points[i].ceiling != plot->points[0].ceiling) return false;
    return true;
}

/* Draws the ceiling, i.e. the peak rate that the hardware allows for each shape. If all shapes have
 * the same ceiling, it is one line across the whole plot. */
static void put_ceiling(FILE *to, const bench_plot *plot, int x, const char *value, double unit) {
    static const char style[] = "lines linetype 4 dashtype 2";
    char name[256] = "ceiling: ";
    list_names(plot, offsetof(bench_point, limit), name, sizeof name);
    if (!has_one_ceiling(plot)) {
        put_curve(to, ",", x, value, CEILING, name, style);
        return;
    }
    fprintf(to, ", %.6g with %s title ", plot->points[0].ceiling / unit, style);
    bench_gnuplot_quote(to, name);
}

static void put_bar(FILE *to, const char *separator, int place, const char *value, int column,
                    const char *name) {
    fprintf(to, "%s $data using (%d):", separator, place);
    fprintf(to, value, column); /* NOLINT(clang-diagnostic-format-nonliteral) */
    fprintf(to, " with boxes %s title ", colors[place]);
    bench_gnuplot_quote(to, name);
}

/* Draws a plot of a single shape. It has one bar for bsmm and one for each other library. */
static void put_bars(FILE *to, const bench_plot *plot, const char *value) {
    char kernels[256];
    const bench_point *point = &plot->points[0];
    int last = 0;
    for (int i = 0; i < BENCH_CURVES; i++)
        if (has_peer(plot, i)) last = 1 + i;
    list_kernels(plot, kernels, sizeof kernels);
    fprintf(to,
            "set xlabel 'M=%lld, K=%lld'\nunset xtics\nset boxwidth 0.6\nset style fill solid\n"
            "set xrange [-1:%d]\nplot",
            (long long)point->m, (long long)point->k, last + 1);
    put_bar(to, "", 0, value, OURS, kernels);
    for (int i = 0; i < BENCH_CURVES; i++)
        if (has_peer(plot, i)) put_bar(to, ",", 1 + i, value, PEERS + i, plot->peers[i]);
}

/* Draws the GFLOP/s of several shapes over M or K. */
static void put_sweep(FILE *to, const bench_plot *plot) {
    bool over_m = plot->points[0].m != plot->points[plot->count - 1].m;
    bool large = plot->points[0].unit >= 1e5;
    const char *value = large ? "(column(%d) / 1000)" : "%d";
    int x = over_m ? M : K;
    fprintf(to, "set ylabel '%s'\nset yrange [0:*]\nset samples 2\n",
            large ? "TFLOP/s" : "GFLOP/s");
    if (over_m) fputs("set logscale x 2\n", to);
    if (plot->count == 1) {
        put_bars(to, plot, value);
    } else {
        fprintf(to, "set xlabel '%c'\nplot", over_m ? 'M' : 'K');
        put_curves(to, plot, x, value);
    }
    put_ceiling(to, plot, x, value, large ? 1000 : 1);
    fputs("\nreset\n", to);
}

/* Draws the roofline plot: the fraction of the arithmetic unit's peak over operations per byte. The
 * roof is the smaller of 1 and the fraction that memory bandwidth allows. */
static void put_roofline(FILE *to, const bench_plot *plot) {
    double low = plot->points[0].intensity, high = low, unit = 0;
    for (size_t i = 0; i < plot->count; i++) {
        const bench_point *p = &plot->points[i];
        low = p->intensity < low ? p->intensity : low;
        high = p->intensity > high ? p->intensity : high;
        unit = p->unit > unit ? p->unit : unit;
    }
    fprintf(to,
            "set grid\nset key outside top center horizontal noenhanced\n"
            "set xlabel 'operations per byte'\nset ylabel 'share of %s' noenhanced\n"
            "set logscale x 2\nset logscale y 10\nset format '%%g'\n"
            "set xrange [%g:%g]\nset yrange [*:1.5]\nset samples 400\n"
            "roof(x) = x * %g < 1 ? x * %g : 1\nplot roof(x) with lines linetype 4 "
            "dashtype 2 title 'roof: %s, %s',",
            plot->unit, low / 2, high * 2, plot->bandwidth / unit, plot->bandwidth / unit,
            plot->memory, plot->unit);
    put_curves(to, plot, INTENSITY, "(column(%d) / column(6))");
    putc('\n', to);
}

static void put_script(FILE *to, const void *context) {
    const bench_plot *plot = context;
    put_data(to, plot);
    bench_gnuplot_titles(to, plot->title, plot->subtitle);
    fputs("set grid\nset key outside top center horizontal noenhanced\n"
          "set offsets graph 0.02, graph 0.02, graph 0.05, 0\n",
          to);
    put_sweep(to, plot);
    put_roofline(to, plot);
    fputs("unset multiplot\n", to);
}

const char *bench_plot_draw(const bench_plot *plot) {
    return bench_gnuplot_draw(plot->path, put_script, plot);
}
