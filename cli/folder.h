/* Folders as output: a model whose tensors are spread over several safetensors files (shards), with
 * an index, config.json and the other files of the input's folder.
 *
 * A folder OUT is made under the name OUT.part and renamed when it is complete. If the work is
 * interrupted, OUT.part keeps the complete shards, and the same command continues there. */
#ifndef CLI_FOLDER_H
#define CLI_FOLDER_H

#include "command.h"

typedef struct cli_folder {
    char *out, *work;   /* the output folder, and the folder in which it is made */
    int lock;           /* locked file in `work`, so that only one run works there; or -1 */
    const char *source; /* folder of the input; NULL: the input is no folder of a model */
    char *source_memory;
} cli_folder;

/* Tells whether the output path `out` means a folder: it ends with '/', it is a folder, or the
 * input `in` is a folder and `out` has none of the endings of files that the command writes. */
bool cli_folder_wanted(const char *in, const char *out);

/* Makes the folder in which the output is made, or finds it if an earlier run of the same command
 * was interrupted. Returns false after printing a message. */
bool cli_folder_begin(cli_folder *folder, const char *in, const bsmm_file *file, const char *out);
/* Gives the shards that an earlier run completed the names of cli_folder_shard, if that run ended
 * while it gave them their final names. */
void cli_folder_resume(const cli_folder *folder, size_t shards);
/* Returns the path of a shard, from 0, while the folder is made. The caller frees it. */
char *cli_folder_shard(const cli_folder *folder, size_t shard);
/* Writes the index, config.json and copies of the input's other files, and gives the folder its
 * name. Returns false after printing a message. */
bool cli_folder_finish(cli_folder *folder, size_t shards);
/* Removes the folder in which the output was made if it is empty but for its plan. Otherwise tells
 * the user that the same command continues there. */
void cli_folder_give_up(const cli_folder *folder);
void cli_folder_free(cli_folder *folder);

#endif
