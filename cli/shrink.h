/* Handles input files that another program shortens while they are mapped. Reading past the new
 * end raises SIGBUS, which would kill the command without a message. The signal handler records
 * the file and maps zeros in place of the lost part. The command then stops at its next step and
 * reports the file. */
#ifndef CLI_SHRINK_H
#define CLI_SHRINK_H

#include "command.h"

/* Tells the signal handler that the program is opening the file at `path`, because the file may
 * shrink meanwhile. NULL means that the program has finished opening. */
void cli_shrink_opening(const char *path);
/* These functions start and stop watching the mappings of an open bsmm_file, because another
 * program may shorten the mapped files. */
void cli_shrink_watch(const bsmm_file *file);
void cli_shrink_forget(const bsmm_file *file);

/* Returns the path of a file that another program has shortened, or NULL if there is none. */
const char *cli_shrunk(void);
/* Tells whether another program has shortened an input file, and prints a message if so. */
bool cli_fail_shrunk(void);

#endif
