/* Handles signals that end the program, so that a command leaves no half-written file behind. The
 * handler only records the signal. The command stops at its next step, removes its files, and ends
 * by the same signal. A second signal kills the program at once. */
#ifndef CLI_INTERRUPT_H
#define CLI_INTERRUPT_H

#include <stdbool.h>

void cli_interrupt_watch(void);
bool cli_interrupted(void);
/* If a signal has arrived, ends the program by this signal. */
void cli_interrupt_finish(void);

#endif
