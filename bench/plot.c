#include "plot.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* gnuplot draws to its standard output where it cannot open the file, so this is asked first. */
static bool can_write(const char *path) {
    bool there = access(path, F_OK) == 0;
    FILE *file = fopen(path, "ab");
    if (!file) return false;
    fclose(file);
    if (!there) remove(path);
    return true;
}

const char *bench_plot_refusal(const char *path) {
    /* NOLINTNEXTLINE(cert-env33-c): nothing of the user's is in the command */
    if (system("command -v gnuplot >/dev/null 2>&1") != 0)
        return "gnuplot, which draws it, is not installed";
    return can_write(path) ? NULL : strerror(errno);
}

/* gnuplot's single quotes take everything as it is, but for themselves, which are doubled. */
static void put_quoted(FILE *to, const char *text) {
    putc('\'', to);
    for (; *text; text++) {
        if (*text == '\'') putc('\'', to);
        putc(*text, to);
    }
    putc('\'', to);
}

static void put_setting(FILE *to, const char *name, const char *value) {
    fprintf(to, "set %s ", name);
    put_quoted(to, value);
    putc('\n', to);
}

/* Columns of the data: M, K, intensity, and GFLOP/s of ours, the ceiling, the unit and peers. */
enum { M = 1, K, INTENSITY, OURS, CEILING, UNIT, PEERS };

static void put_data(FILE *to, const bench_plot *plot) {
    fputs("$data << END\n", to);
    for (size_t i = 0; i < plot->count; i++) {
        const bench_point *p = &plot->points[i];
        fprintf(to, "%lld %lld %.6g %.6g %.6g %.6g", (long long)p->m, (long long)p->k, p->intensity,
                p->gflops, p->ceiling, p->unit);
        for (int peer = 0; peer < BENCH_CURVES; peer++)
            fprintf(to, " %.6g", p->peers[peer]);
        putc('\n', to);
    }
    fputs("END\n", to);
}

/* `column` over x, both as gnuplot's `using` takes them. */
static void put_curve(FILE *to, const char *separator, int x, const char *value, int column,
                      const char *name, const char *style) {
    fprintf(to, "%s $data using %d:", separator, x);
    fprintf(to, value, column); /* NOLINT(clang-diagnostic-format-nonliteral) */
    fprintf(to, " with %s title ", style);
    put_quoted(to, name);
}

static void put_curves(FILE *to, const bench_plot *plot, int x, const char *value) {
    static const char *const styles[BENCH_CURVES] = {
        "linespoints linetype 2", "linespoints linetype 3", "linespoints linetype 5"};
    put_curve(to, "", x, value, OURS, plot->kernel, "linespoints linetype 1 linewidth 2");
    for (int i = 0; i < BENCH_CURVES; i++)
        if (plot->points[0].peers[i] > 0)
            put_curve(to, ",", x, value, PEERS + i, plot->peers[i], styles[i]);
}

static void put_sweep(FILE *to, const bench_plot *plot) {
    bool over_m = plot->points[0].m != plot->points[plot->count - 1].m;
    fprintf(to, "set xlabel '%c'\nset ylabel 'GFLOP/s'\nset yrange [0:*]\n", over_m ? 'M' : 'K');
    if (over_m) fputs("set logscale x 2\n", to);
    if (plot->count == 1) /* a range of one has no width of its own */
        fprintf(to, "set xrange [0:%lld]\n", 2 * (long long)plot->points[0].k);
    fputs("plot", to);
    put_curves(to, plot, over_m ? M : K, "%d");
    put_curve(to, ",", over_m ? M : K, "%d", CEILING, "ceiling",
              "linespoints linetype 4 dashtype 2");
    fputs("\nreset\n", to);
}

/* Shares of the arithmetic unit over operations per byte; the roof is that unit or memory. */
static void put_roofline(FILE *to, const bench_plot *plot) {
    double low = plot->points[0].intensity, high = low, unit = 0;
    for (size_t i = 0; i < plot->count; i++) {
        const bench_point *p = &plot->points[i];
        low = p->intensity < low ? p->intensity : low;
        high = p->intensity > high ? p->intensity : high;
        unit = p->unit > unit ? p->unit : unit;
    }
    fprintf(
        to,
        "set grid\nset key outside bottom center horizontal noenhanced\n"
        "set xlabel 'operations per byte'\nset ylabel 'share of %s' noenhanced\nset logscale xy\n"
        "set xrange [%g:%g]\nset yrange [*:1.5]\nset samples 400\n"
        "roof(x) = x * %g < 1 ? x * %g : 1\nplot roof(x) with lines linetype 4 "
        "dashtype 2 title 'roof',",
        plot->unit, low / 2, high * 2, plot->bandwidth / unit, plot->bandwidth / unit);
    put_curves(to, plot, INTENSITY, "(column(%d) / column(6))");
    putc('\n', to);
}

static void put_script(FILE *to, const bench_plot *plot) {
    fputs("set terminal svg size 1200,500 dynamic background 'white'\n", to);
    put_setting(to, "output", plot->path);
    put_data(to, plot);
    put_setting(to, "multiplot layout 1,2 title", plot->title);
    fputs("set grid\nset key outside bottom center horizontal noenhanced\n"
          "set offsets graph 0.02, graph 0.02, graph 0.05, 0\n",
          to);
    put_sweep(to, plot);
    put_roofline(to, plot);
    fputs("unset multiplot\n", to);
}

static bool is_regular(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

/* gnuplot does not look at what writing gave: on a full disk it ends well, its drawing does not. A
 * pipe or a device cannot be read back. */
static bool is_whole(const char *path) {
    static const char end[] = "</svg>";
    char tail[16] = {0};
    if (!is_regular(path)) return true;
    FILE *file = fopen(path, "rb");
    if (!file) return false;
    if (fseek(file, -(long)(sizeof tail - 1), SEEK_END) != 0 ||
        fread(tail, 1, sizeof tail - 1, file) != sizeof tail - 1)
        tail[0] = '\0';
    fclose(file);
    return strstr(tail, end) != NULL;
}

bool bench_plot_draw(const bench_plot *plot) {
    /* A gnuplot that stops early must not take this process with it. */
    void (*before)(int) = signal(SIGPIPE, SIG_IGN);
    FILE *gnuplot = popen("gnuplot", "w"); /* NOLINT(cert-env33-c): as above */
    bool drawn = gnuplot != NULL;
    if (gnuplot) {
        put_script(gnuplot, plot);
        drawn = pclose(gnuplot) == 0 && is_whole(plot->path);
        if (!drawn && is_regular(plot->path)) remove(plot->path);
    }
    signal(SIGPIPE, before);
    return drawn;
}
