/* Handles input files that another program shortens while they are mapped. Reading past the new end
 * raises SIGBUS, which would kill the command without a message. The signal handler notes the file
 * and maps zeros in place of the lost part. The command stops at its next step, cleans up and
 * reports the file. */
#ifndef CLI_SHRINK_H
#define CLI_SHRINK_H

#include "command.h"

/* Announces that the file at `path` is being opened and may shrink meanwhile. NULL means that no
 * file is being opened. */
void cli_shrink_opening(const char *path);
/* These functions start and stop watching the mappings of all files that belong to an open
 * bsmm_file, because another process may shrink a file. */
void cli_shrink_watch(const bsmm_file *file);
void cli_shrink_forget(const bsmm_file *file);

/* Returns the path of a file that shrank, or NULL if none did. */
const char *cli_shrunk(void);
/* Tells whether a file shrank, and prints a message if one did. */
bool cli_fail_shrunk(void);

#endif
