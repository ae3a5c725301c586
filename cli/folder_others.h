/* Copies the files of an input folder that have no weights and that the command does not write
 * itself. Subfolders with weights are left out, because they hold the same model in another form.
 */
#ifndef CLI_FOLDER_OTHERS_H
#define CLI_FOLDER_OTHERS_H

#include "command.h"

/* Checks before the long work that the files can be read, and warns of subfolders that are left
 * out. Returns false after printing a message. */
bool cli_others_check(const char *source);
/* Copies the files of the input folder `source` that hold no weights to the folder `work`. If this
 * fails, prints a message and returns false. */
bool cli_others_copy(const char *source, const char *work);

#endif
