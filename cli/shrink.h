/* Handles input files that other programs shorten while they are mapped. Reading past the new end
 * raises SIGBUS, which would kill the command without a message. The handler notes the file and
 * lets the lost part read as zeros. The work stops at its next step, cleans up and reports which
 * file shrank. */
#ifndef CLI_SHRINK_H
#define CLI_SHRINK_H

#include "command.h"

/* Announces that the file at `path` is being opened and may shrink. NULL means that no file is
 * being opened. */
void cli_shrink_opening(const char *path);
/* These functions watch the files that an open bsmm_file consists of, and stop watching them. */
void cli_shrink_watch(const bsmm_file *file);
void cli_shrink_forget(const bsmm_file *file);

/* Returns the path of a file that shrank, or NULL if none did. */
const char *cli_shrunk(void);
/* Tells whether a file shrank, and prints a message if one did. */
bool cli_fail_shrunk(void);

#endif
