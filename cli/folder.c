#define _GNU_SOURCE /* This macro makes unistd.h declare copy_file_range. */
#include "folder.h"
#include "common.h"
#include "files.h"
#include "folder_config.h"
#include "folder_others.h"
#include "paths.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* `plan_name` is the name of the plan, a file in the unfinished folder. The plan says which command
 * makes the folder. */
static const char plan_name[] = CLI_PLAN_NAME;

bool cli_folder_wanted(const char *in, const char *out) {
    static const char *const files[] = {"*.safetensors", "*.npy", "*.gguf", "*.json"};
    const size_t length = strlen(out);
    if (length && (out[length - 1] == '/' || cli_is_folder(out))) return true;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (!fnmatch(files[i], out, 0)) return false;
    return cli_is_folder(in);
}

/* Prints the path, size and modification time of a file. A later run compares them to find out
 * whether the file has changed. */
static void print_state(FILE *stream, const char *path) {
    struct stat info;
    if (stat(path, &info)) return;
    fprintf(stream, "%s %lld %lld.%09ld\n", path, (long long)info.st_size,
            (long long)info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
}

/* Prints the state of config.json and hf_quant_config.json. These two files lie beside the weights
 * and say which layers are quantized. */
static void print_configs(FILE *stream, const char *source) {
    static const char *const names[] = {"config.json", "hf_quant_config.json"};
    for (size_t i = 0; source && i < sizeof names / sizeof names[0]; i++) {
        char *path = cli_path_join(source, names[i]);
        print_state(stream, path);
        free(path);
    }
}

/* Returns the text of the plan, a file that records the library's version, the command line and the
 * state of the input files. If any of these has changed between two runs, their texts differ. */
static char *plan_text(const cli_folder *folder, const bsmm_file *file, const char *also_read) {
    bsmm_file_part part = BSMM_INIT(bsmm_file_part);
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    if (!stream) exit(cli_fail("no memory for a plan"));
    fprintf(stream, "%u\n%s\n", bsmm_version(), folder->out);
    for (char *const *word = cli_command_line; word && *word; word++)
        fprintf(stream, "%s\n", *word);
    for (uint64_t i = 0; !bsmm_file_part_at(file, i, &part); i++)
        print_state(stream, part.path);
    print_configs(stream, folder->source);
    if (also_read) print_state(stream, also_read);
    if (fclose(stream) || !text) exit(cli_fail("no memory for a plan"));
    return text;
}

/* Returns true if a folder contains a name that `except` does not list, or if the folder cannot be
 * read. */
static bool has_names(const char *folder, const char *const *except, size_t count) {
    DIR *names = opendir(folder);
    bool found = !names;
    for (struct dirent *name; !found && (name = readdir(names));) {
        found = true;
        for (size_t i = 0; i < count && found; i++)
            found = strcmp(name->d_name, except[i]) != 0;
    }
    if (names) closedir(names);
    return found;
}

static bool is_empty(const char *folder) {
    return !has_names(folder, (const char *const[]){".", ".."}, 2);
}

/* Tells whether an unfinished folder contains other files than the plan, i.e. the file that
 * describes the command and its inputs. */
static bool has_others(const char *folder) {
    return has_names(folder, (const char *const[]){".", "..", plan_name}, 3);
}

/* Makes the folder `work`, or finds the one that an earlier run left. Sets *made to true in the
 * first case and to false in the second. A command writes its output to `work` and at the end
 * renames it to the output folder. If the output folder exists already, a new `work` is renamed to
 * it at once, while both are empty, and then made again. This renaming fails if the output folder
 * is not empty or is a mount point. The user should see this failure before the long work
 * begins. */
static bool find_work(const cli_folder *folder, const char *plan_path, bool *made) {
    *made = !mkdir(folder->work, 0777);
    if (!*made && errno != EEXIST) return cli_fail_system(folder->work, "create this folder");
    if (*made && cli_is_folder(folder->out) &&
        (rename(folder->work, folder->out) || mkdir(folder->work, 0777))) {
        cli_fail("%s: cannot be replaced: %s; name a new folder", folder->out, strerror(errno));
        rmdir(folder->work);
        return false;
    }
    if (*made || is_empty(folder->work) || !access(plan_path, F_OK)) return true;
    cli_fail("%s: exists already and is no unfinished output, but the output is made under this "
             "name; name another output",
             folder->work);
    return false;
}

/* Opens the file of the plan and locks the file, so that no other run works in the same folder. On
 * a file system without locks, the command works without a lock. */
static bool lock_work(cli_folder *folder, const char *plan_path) {
    folder->lock = open(plan_path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (folder->lock < 0) return cli_fail_system(plan_path, "create it");
    if (!flock(folder->lock, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK) return true;
    cli_fail("%s: another run is writing it", folder->work);
    return false;
}

/* Writes the plan, or checks that the folder already has the same plan. The plan is empty if a run
 * was killed before it wrote the plan. */
static bool take_plan(const cli_folder *folder, const char *plan_path, const char *plan) {
    char *before = cli_read_text(plan_path);
    const bool empty = before && !*before, same = before && !strcmp(before, plan);
    free(before);
    if (empty) return cli_write_text(plan_path, plan);
    if (!same)
        cli_fail("%s: is the unfinished output of another command or of changed input; remove it",
                 folder->work);
    return same;
}

/* Removes the unfinished folder if it contains nothing but its plan. */
static bool remove_unused(const cli_folder *folder) {
    char *plan_path = cli_path_join(folder->work, plan_name);
    const bool unused = !has_others(folder->work);
    if (unused) unlink(plan_path);
    if (unused) rmdir(folder->work);
    free(plan_path);
    return unused;
}

static int is_temporary(const struct dirent *name) {
    return !fnmatch(".bsmm-*.tmp", name->d_name, 0);
}

/* Removes temporary files of a run that was killed. No other run uses them, because this run holds
 * the lock. */
static void sweep(const cli_folder *folder) {
    struct dirent **names;
    const int count = scandir(folder->work, &names, is_temporary, alphasort);
    for (int i = 0; i < count; i++) {
        char *path = cli_path_join(folder->work, names[i]->d_name);
        unlink(path);
        free(path);
        free(names[i]);
    }
    if (count >= 0) free(names);
}

/* Makes the folder that holds the output until it is finished, and stores the text `plan` in it. If
 * the folder exists already, because an earlier run was interrupted, checks that it holds the same
 * plan. */
static bool take_work(cli_folder *folder, const char *plan) {
    char *path = cli_path_join(folder->work, plan_name);
    bool made, found = find_work(folder, path, &made);
    const bool locked = found && lock_work(folder, path);
    const bool taken = locked && take_plan(folder, path, plan);
    if (taken)
        sweep(folder);
    else if (found && made && (locked || folder->lock < 0))
        remove_unused(folder);
    free(path);
    return taken;
}

char *cli_folder_source(const char *in) {
    if (cli_is_folder(in)) return strcpy(cli_alloc(strlen(in) + 1, 1), in);
    return cli_ends_with(in, ".json") ? cli_path_folder(in) : NULL;
}

/* Finds the name of the output folder without slashes at its end. The function follows a symbolic
 * link, because rename would replace the link instead of the folder. */
static bool name_output(cli_folder *folder, const char *out) {
    struct stat info;
    size_t length = strlen(out);
    while (length > 1 &&
           (out[length - 1] == '/' || (out[length - 1] == '.' && out[length - 2] == '/')))
        length--;
    folder->out = strndup(out, length);
    if (!folder->out) exit(cli_fail("no memory for a path"));
    const char *slash = strrchr(folder->out, '/'), *last = slash ? slash + 1 : folder->out;
    if (!*last || !strcmp(last, ".") || !strcmp(last, "..")) {
        cli_fail("--output: value is \"%s\"; must end with the name of a folder", out);
        return false;
    }
    if (lstat(folder->out, &info) || !S_ISLNK(info.st_mode)) return true;
    char *target = realpath(folder->out, NULL);
    if (!target) return cli_fail_system(folder->out, "follow this link");
    free(folder->out);
    folder->out = target;
    return true;
}

bool cli_folder_read_config(const cli_folder *folder, char **text) {
    *text = NULL;
    if (!folder->source) return true;
    char *path = cli_path_join(folder->source, "config.json"), *edited = NULL;
    *text = cli_read_text(path);
    bool good = *text || errno == ENOENT || cli_fail_system(path, "read it");
    if (*text) edited = cli_config_replace(*text, "quantization_config", NULL);
    if (*text && !edited) {
        cli_fail("%s: is no JSON object", path);
        good = false;
    }
    free(edited);
    free(path);
    return good;
}

/* Checks before the long work begins that the output's name is free, that the input's config.json
 * can be edited, and that the files without weights, which will be copied, can be read. */
static bool check_begin(const cli_folder *folder) {
    char *config;
    if (cli_is_folder(folder->out) ? !is_empty(folder->out) : !access(folder->out, F_OK)) {
        cli_fail("%s: exists already; name a new or an empty folder", folder->out);
        return false;
    }
    const bool good = cli_folder_read_config(folder, &config);
    free(config);
    return good && (!folder->source || cli_others_check(folder->source));
}

bool cli_folder_begin(cli_folder *folder, const char *in, const bsmm_file *file, const char *out,
                      const char *also_read) {
    *folder = (cli_folder){.lock = -1};
    if (!name_output(folder, out)) return false;
    folder->work = cli_alloc(strlen(folder->out) + 8, 1);
    sprintf(folder->work, "%s.part", folder->out);
    folder->source = cli_folder_source(in);
    if (!check_begin(folder)) return false;
    char *plan = plan_text(folder, file, also_read);
    const bool taken = take_work(folder, plan);
    free(plan);
    return taken;
}

void cli_folder_free(cli_folder *folder) {
    free(folder->out);
    free(folder->work);
    free(folder->source);
    if (folder->lock >= 0) close(folder->lock);
}

char *cli_folder_shard(const cli_folder *folder, size_t shard) {
    char name[64];
    snprintf(name, sizeof name, "shard-%05zu.safetensors", shard + 1);
    return cli_path_join(folder->work, name);
}

void cli_folder_give_up(const cli_folder *folder) {
    if (!remove_unused(folder))
        cli_warn("%s has the shards that are complete; the same command continues there",
                 folder->work);
}
