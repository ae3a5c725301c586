/* A signal that ends the program while a file is being written must not leave the half-written one
 * behind: it is noted, the work stops at the next step, cleans up and then dies of it. A second one
 * kills at once. */
#ifndef CLI_INTERRUPT_H
#define CLI_INTERRUPT_H

#include <stdbool.h>

void cli_interrupt_watch(void);
bool cli_interrupted(void);
/* Dies of the signal that came, if one did. */
void cli_interrupt_finish(void);

#endif
