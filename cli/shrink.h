/* Input files that others shorten while they are mapped. Reading behind the new end is a SIGBUS,
 * which would kill the command without a word. Here it is noted, the lost part reads as zeros, and
 * the work stops at its next step, cleans up and says which file shrank. */
#ifndef CLI_SHRINK_H
#define CLI_SHRINK_H

#include "command.h"

/* From now on, the file that is being opened may shrink. NULL: none is being opened. */
void cli_shrink_opening(const char *path);
/* From now on, the files that an open file consists of may shrink; until forgotten. */
void cli_shrink_watch(const bsmm_file *file);
void cli_shrink_forget(const bsmm_file *file);

/* The path of a file that shrank; NULL: none did. */
const char *cli_shrunk(void);
/* Whether one did; then it says so. */
bool cli_fail_shrunk(void);

#endif
