#include "compare.h"
#include "gnuplot.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    MOST_NAMES = 24
}; /* MOST_NAMES is the largest number of tensors whose names fit under the panels of the plot. */

typedef struct plot {
    const cli_differences *list;
    cli_text title, subtitle;
} plot;

/* Tells whether the plot shows the tensor. It leaves out equal tensors, because a logarithmic axis
 * cannot show an error of zero. */
static bool is_drawn(const cli_difference *item) {
    return cli_is_shared(item) && isfinite(item->sqnr_db) && isfinite(item->relative);
}

static size_t count_drawn(const cli_differences *list) {
    size_t count = 0;
    for (size_t i = 0; i < list->shared; i++)
        count += is_drawn(&list->items[i]);
    return count;
}

static bool is_first_of_format(const cli_differences *list, size_t index) {
    for (size_t i = 0; i < index; i++)
        if (is_drawn(&list->items[i]) &&
            !strcmp(list->items[i].formats[1].text, list->items[index].formats[1].text))
            return false;
    return is_drawn(&list->items[index]);
}

/* Writes for each format the data of its tensors, i.e. the position on the x axis, the SQNR and
 * the relative error. */
static void put_data(FILE *to, const cli_differences *list) {
    size_t blocks = 0;
    for (size_t i = 0; i < list->shared; i++) {
        if (!is_first_of_format(list, i)) continue;
        const char *format = list->items[i].formats[1].text;
        fprintf(to, "$data%zu << END\n", blocks++);
        for (size_t k = 0, place = 0; k < list->shared; k++) {
            const cli_difference *item = &list->items[k];
            if (!is_drawn(item)) continue;
            place++;
            if (!strcmp(item->formats[1].text, format))
                fprintf(to, "%zu %.6g %.6g\n", place, item->sqnr_db, item->relative);
        }
        fputs("END\n", to);
    }
}

/* Writes the names of the tensors below the axis if there is room, otherwise their numbers. */
static void put_names(FILE *to, const cli_differences *list) {
    size_t place = 0;
    if (count_drawn(list) > MOST_NAMES) {
        fputs("set xlabel 'tensors, the worst first'\n", to);
        return;
    }
    fputs("set xtics rotate by -60 noenhanced font ',9' (", to);
    for (size_t i = 0; i < list->shared; i++) {
        if (!is_drawn(&list->items[i])) continue;
        cli_text name;
        snprintf(name.text, sizeof name.text, "%s", list->items[i].name);
        if (place) fputs(", ", to);
        bench_gnuplot_quote(to, cli_printable(name.text));
        fprintf(to, " %zu", ++place);
    }
    fputs(")\n", to);
}

/* Draws one panel of the plot, with a curve for each format of the second model. */
static void put_panel(FILE *to, const cli_differences *list, const char *label, int column) {
    size_t blocks = 0;
    fprintf(to, "set ylabel '%s'\nplot", label);
    for (size_t i = 0; i < list->shared; i++) {
        if (!is_first_of_format(list, i)) continue;
        fprintf(to, "%s $data%zu using 1:%d with points pointtype 7 pointsize 0.6 title ",
                blocks ? "," : "", blocks, column);
        bench_gnuplot_quote(to, list->items[i].formats[1].text);
        blocks++;
    }
    putc('\n', to);
}

static void put(FILE *to, const void *context) {
    const plot *x = context;
    put_data(to, x->list);
    bench_gnuplot_titles(to, x->title.text, x->subtitle.text);
    fputs("set grid\nset key outside top center horizontal noenhanced\n", to);
    fprintf(to, "set xrange [0:%zu]\n", count_drawn(x->list) + 1);
    put_names(to, x->list);
    put_panel(to, x->list, "SQNR in dB", 2);
    fputs("set logscale y 10\nset format y '%g'\n", to);
    put_panel(to, x->list, "largest error, relative", 3);
    fputs("unset multiplot\n", to);
}

static void set_titles(plot *x, const char *const paths[2]) {
    const uint32_t version = bsmm_version();
    const size_t drawn = count_drawn(x->list);
    const time_t now = time(NULL);
    char date[16] = "";
    struct tm utc;
    if (gmtime_r(&now, &utc)) strftime(date, sizeof date, "%Y-%m-%d", &utc);
    snprintf(x->title.text, sizeof x->title.text, "bsmm compare: %.60s with %.60s", paths[0],
             paths[1]);
    cli_printable(x->title.text);
    snprintf(x->subtitle.text, sizeof x->subtitle.text,
             "%zu tensors, %zu more are equal or not finite, bsmm %u.%u.%u, %s", drawn,
             x->list->shared - drawn, version / 10000, version / 100 % 100, version % 100, date);
}

const char *cli_compare_draw(const cli_differences *differences, const char *const paths[2],
                             const char *path) {
    plot x = {.list = differences};
    if (!count_drawn(differences)) return "no tensor has a finite error to draw";
    set_titles(&x, paths);
    return bench_gnuplot_draw(path, put, &x);
}
