/* Writes a model to a folder OUT. The folder gets several safetensors files (shards), an index,
 * config.json and the other files of the input's folder. The command makes the folder under the
 * name OUT.part and renames it at the end. If the command is interrupted, OUT.part keeps the
 * complete shards, and the same command continues there. */
#ifndef CLI_FOLDER_H
#define CLI_FOLDER_H

#include "command.h"

/* CLI_PLAN_NAME is the name of the plan, a file in the unfinished folder. The plan says which
 * command makes the folder. */
#define CLI_PLAN_NAME ".bsmm-plan"

typedef struct cli_folder {
    /* `out` is the output folder, and `work` is the folder OUT.part in which the command makes
     * it. */
    char *out, *work;
    /* `lock` is the descriptor of the locked file in `work`, or -1. The lock makes sure that only
     * one run works there. */
    int lock;
    /* `source` is the folder of the input model, or NULL if the input is a single file. */
    char *source;
} cli_folder;

/* Tells whether the output path `out` means a folder. A path means a folder if it ends with '/' or
 * is an existing folder. Otherwise it means a folder if the input `in` is a folder and the path has
 * none of the endings of files that the command writes. */
bool cli_folder_wanted(const char *in, const char *out);

/* Returns the path of the folder of an input model, or NULL if the input is a single file. The
 * caller frees the path. */
char *cli_folder_source(const char *in);

/* Makes the unfinished folder, or finds it if an earlier run of the same command was interrupted.
 * `also_read` is the path of another file on which the output depends, or NULL. Returns false after
 * printing a message. */
bool cli_folder_begin(cli_folder *folder, const char *in, const bsmm_file *file, const char *out,
                      const char *also_read);
/* Reads config.json of the input's folder. *text is NULL if there is no such file. If config.json
 * cannot be edited, the function prints a message and returns false. */
bool cli_folder_read_config(const cli_folder *folder, char **text);
/* Undoes the renaming of shards by an earlier run that ended while it gave shards their final
 * names. The complete shards then have the names of cli_folder_shard again. */
void cli_folder_resume(const cli_folder *folder, size_t shards);
/* Returns the path of shard number `shard` in the unfinished folder. The numbers begin with 0. The
 * caller frees the path. */
char *cli_folder_shard(const cli_folder *folder, size_t shard);
/* Writes the index and config.json, copies the input folder's files that hold no weights, and gives
 * the folder its final name. Returns false after printing a message. */
bool cli_folder_finish(cli_folder *folder, size_t shards);
/* Removes the unfinished folder if it contains nothing but the plan file (CLI_PLAN_NAME). Otherwise
 * tells the user that running the same command again continues the work. */
void cli_folder_give_up(const cli_folder *folder);
void cli_folder_free(cli_folder *folder);

#endif
