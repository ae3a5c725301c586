#include "progress.h"
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BAR_WIDTH = 30 };
/* `first_after` is the number of seconds until the progress bar first appears. `redraw_after` is
 * the number of seconds between two redraws. */
static const double first_after = 0.3, redraw_after = 0.1;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

cli_progress cli_progress_begin(const char *title, uint64_t total) {
    cli_progress progress = {.title = title, .total = total ? total : 1};
    progress.active = isatty(STDERR_FILENO);
    progress.started = now();
    return progress;
}

static void draw(const cli_progress *progress, double elapsed) {
    static const char full[] = "##############################";
    double share = (double)progress->done / (double)progress->total;
    int filled = (int)(share * BAR_WIDTH);
    double left = share > 0 ? elapsed / share - elapsed : 0;
    fprintf(stderr, "\r%s [%-*.*s] %3.0f%%", progress->title, BAR_WIDTH, filled, full, 100 * share);
    if (left >= 1) fprintf(stderr, "  %.0f s left", left);
    fputs("\033[K", stderr);
}

void cli_progress_add(cli_progress *progress, uint64_t amount) {
    progress->done += amount;
    if (progress->done > progress->total) progress->done = progress->total;
    if (!progress->active) return;
    double time = now();
    if (time - progress->started < first_after || time - progress->drawn < redraw_after) return;
    progress->drawn = time;
    draw(progress, time - progress->started);
}

void cli_progress_end(cli_progress *progress) {
    if (progress->drawn > 0) fputs("\r\033[K", stderr);
}
