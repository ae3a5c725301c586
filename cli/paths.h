/* Reads, writes and copies whole files by their paths. */
#ifndef CLI_PATHS_H
#define CLI_PATHS_H

#include "command.h"

/* Returns the path of a name in a folder. The caller frees the path. */
char *cli_path_join(const char *folder, const char *name);
/* Returns the path of the folder that contains the file `path`. The caller frees it. */
char *cli_path_folder(const char *path);
bool cli_is_folder(const char *path);
/* Prints "PATH: cannot WHAT: " and the reason in errno. Returns false. */
bool cli_fail_system(const char *path, const char *what);
/* Returns the text of a regular file without a byte order mark, or NULL with errno set. A file that
 * contains a zero byte is not a text. The caller frees the text. */
char *cli_read_text(const char *path);
/* These functions write a file to the disk. On failure they print a message and return false. */
bool cli_write_text(const char *path, const char *text);
bool cli_copy_file(const char *from, const char *to);

#endif
