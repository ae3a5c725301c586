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

static void put_curve(FILE *to, const char *separator, int column, const char *name,
                      const char *style) {
    fprintf(to, "%s $data using 1:%d with %s title ", separator, column, style);
    put_quoted(to, name);
}

static void put_script(FILE *to, const bench_plot *plot) {
    fputs("set terminal svg size 800,500 dynamic background 'white'\n"
          "set xlabel 'K'\nset ylabel 'GFLOP/s'\nset yrange [0:*]\nset grid\n"
          "set key outside bottom center horizontal noenhanced\n"
          "set offsets graph 0.02, graph 0.02, graph 0.05, 0\n",
          to);
    if (plot->count == 1) /* a range of one has no width of its own */
        fprintf(to, "set xrange [0:%lld]\n", 2 * (long long)plot->points[0].k);
    put_setting(to, "output", plot->path);
    put_setting(to, "title noenhanced", plot->title);
    fputs("$data << END\n", to);
    for (size_t i = 0; i < plot->count; i++)
        fprintf(to, "%lld %.6g %.6g %.6g\n", (long long)plot->points[i].k, plot->points[i].gflops,
                plot->points[i].ceiling, plot->points[i].peer);
    fputs("END\n", to);
    put_curve(to, "plot", 2, plot->kernel, "linespoints linewidth 2");
    put_curve(to, ",", 3, plot->ceiling, "linespoints dashtype 2");
    if (plot->peer) put_curve(to, ",", 4, plot->peer, "linespoints");
    putc('\n', to);
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
