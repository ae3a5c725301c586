/* Draws a progress bar on stderr. The bar appears only if stderr is a terminal and the work takes
 * longer than 0.3 seconds. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdint.h>

typedef struct cli_progress {
    const char *title;
    uint64_t total, done;
    /* `started` and `drawn` are the times of the start and of the last redraw, in seconds. */
    double started, drawn;
    int active;
} cli_progress;

cli_progress cli_progress_begin(const char *title, uint64_t total);
void cli_progress_add(cli_progress *progress, uint64_t amount);
void cli_progress_end(cli_progress *progress); /* Erases the progress bar. */

#endif
