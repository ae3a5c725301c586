/* Handles signals that end the program while it writes a file, so that no half-written file stays
 * behind. The signal is noted; the work stops at its next step, cleans up, and then ends by that
 * signal. A second signal kills the program at once. */
#ifndef CLI_INTERRUPT_H
#define CLI_INTERRUPT_H

#include <stdbool.h>

void cli_interrupt_watch(void);
bool cli_interrupted(void);
/* Ends the program by the signal that arrived, if one did. */
void cli_interrupt_finish(void);

#endif
