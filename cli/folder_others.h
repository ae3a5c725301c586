/* Copies the files of an input folder that have no weights and that the command does not write
 * itself. Subfolders with weights are left out, because they hold the same model in another form.
 */
#ifndef CLI_FOLDER_OTHERS_H
#define CLI_FOLDER_OTHERS_H

#include "command.h"

/* Checks that cli_others_copy can read the files that it would copy from the folder `source`. Also
 * warns of subfolders that it would not copy. A command calls this function first, before it
 * quantizes. If a file cannot be read, prints a message and returns false. */
bool cli_others_check(const char *source);
/* Copies the files of the input folder `source` that hold no weights to the folder `work`. If this
 * fails, prints a message and returns false. */
bool cli_others_copy(const char *source, const char *work);

/* Checks that the output file `out` does not overwrite a file of the input's folder `source` that
 * holds no weights, such as config.json. The command reads some of these files, and copies them if
 * the output is a folder. If `is_model` is false, the input is a single file and not the folder.
 * The function then checks only those files of the folder whose names are usual for a model,
 * because the folder may hold files of other kinds. If `out` is one of the checked files, prints a
 * message and returns false. */
bool cli_others_differ(const char *source, bool is_model, const char *out);

#endif
