/* Copies to the output folder those files of an input folder that hold no weights and that the
 * command does not write itself: the tokenizer, code, and the configurations in subfolders, such as
 * those of sentence-transformers. */
#define _GNU_SOURCE /* This macro makes dirent.h declare scandir. */
#include "folder_others.h"
#include "common.h"
#include "files.h"
#include "folder.h"
#include "paths.h"
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* `weights` lists the names of files with weights, which are not copied. They hold the weights that
 * the command converts, or the same weights in another form. */
static const char *const weights[] = {"*.safetensors", "*.safetensors.index.json",
                                      "*.bin",         "*.bin.index.json",
                                      "*.pt",          "*.pth",
                                      "*.gguf",        "*.h5",
                                      "*.msgpack",     "*.onnx"};
/* `made_anew` lists files that the command does not copy, because it writes new ones itself. */
static const char *const made_anew[] = {"config.json", "hf_quant_config.json"};

/* `usual` lists the names of files without weights that a model's folder usually has. */
static const char *const usual[] = {"*.json",     "*.jinja",    "*.model",
                                    "*.tiktoken", "merges.txt", "vocab.txt"};

static bool matches(const char *name, const char *const *patterns, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!fnmatch(patterns[i], name, 0)) return true;
    return false;
}

static bool is_weights(const char *name) {
    return matches(name, weights, sizeof weights / sizeof weights[0]);
}

static int is_visible(const struct dirent *entry) {
    return entry->d_name[0] != '.';
}

static int is_copied(const struct dirent *entry) {
    return is_visible(entry) && !is_weights(entry->d_name) &&
           !matches(entry->d_name, made_anew, sizeof made_anew / sizeof made_anew[0]);
}

/* Calls visit(context, from, to) for each entry of `folder` that `chosen` selects, in the order of
 * the names, until `visit` returns false. `from` is the entry's path in `folder`, and `to` is the
 * path with the same name in `to_folder`. */
static bool each_entry(const char *folder, const char *to_folder,
                       int (*chosen)(const struct dirent *),
                       bool (*visit)(void *, const char *, const char *), void *context) {
    struct dirent **names;
    const int count = scandir(folder, &names, chosen, alphasort);
    bool good = count >= 0 || cli_fail_system(folder, "list this folder");
    for (int i = 0; i < count; i++) {
        char *from = cli_path_join(folder, names[i]->d_name);
        char *to = cli_path_join(to_folder, names[i]->d_name);
        good = good && visit(context, from, to);
        free(from);
        free(to);
        free(names[i]);
    }
    if (count >= 0) free(names);
    return good;
}

static bool can_list(const char *folder) {
    return !access(folder, R_OK | X_OK);
}

/* Finds a file of weights in a folder or below it. */
static bool find_weights(void *found, const char *path, const char *unused) {
    struct stat info;
    const char *slash = strrchr(path, '/');
    (void)unused;
    if (lstat(path, &info)) return true;
    if (S_ISDIR(info.st_mode))
        return !can_list(path) || each_entry(path, path, is_visible, find_weights, found);
    *(bool *)found = *(bool *)found || is_weights(slash + 1);
    return true;
}

/* Tells whether a folder is the unfinished output of this or another run of the command. */
static bool is_unfinished(const char *folder) {
    char *plan = cli_path_join(folder, CLI_PLAN_NAME);
    const bool found = !access(plan, F_OK);
    free(plan);
    return found;
}

/* Copies a file, or a subfolder unless it has weights. The function does not follow a link to a
 * folder, because the link can lead to a folder that contains it. If `context` is not NULL, the
 * function copies nothing. It then only tests whether files can be read, and warns of subfolders
 * with weights. */
static bool take(void *context, const char *from, const char *to) {
    struct stat info, link;
    bool has_weights = false;
    if (stat(from, &info) || lstat(from, &link)) return true;
    if (S_ISREG(info.st_mode) && context)
        return !access(from, R_OK) || cli_fail_system(from, "read it");
    if (S_ISREG(info.st_mode)) return cli_copy_file(from, to);
    if (!S_ISDIR(link.st_mode) || is_unfinished(from)) return true;
    if (!can_list(from)) {
        if (context) cli_warn("%s: is not copied, because it cannot be read", from);
        return true;
    }
    if (!each_entry(from, from, is_visible, find_weights, &has_weights)) return false;
    if (has_weights && context) cli_warn("%s: is not copied, because it has weights", from);
    if (has_weights) return true;
    if (!context && mkdir(to, 0777) && errno != EEXIST)
        return cli_fail_system(to, "create this folder");
    return each_entry(from, to, is_visible, take, context);
}

bool cli_others_check(const char *source) {
    bool checks = true;
    return each_entry(source, source, is_copied, take, &checks);
}

bool cli_others_copy(const char *source, const char *work) {
    return each_entry(source, work, is_copied, take, NULL);
}

static int is_usual(const struct dirent *entry) {
    return is_visible(entry) && matches(entry->d_name, usual, sizeof usual / sizeof usual[0]);
}

/* `outputs` lists names of files that a command may have written into the folder of a model. The
 * same command may overwrite them. */
static const char *const outputs[] = {"*.npy", "*.svg", "*.gp"};

static int is_other(const struct dirent *entry) {
    return is_visible(entry) && !is_weights(entry->d_name) &&
           !matches(entry->d_name, outputs, sizeof outputs / sizeof outputs[0]);
}

/* Returns true if writing the output file `out` would not overwrite the file `path`. If `path` is a
 * folder, this holds for every file in it that holds no weights. */
static bool differs(void *out, const char *path, const char *unused) {
    struct stat info;
    (void)unused;
    if (lstat(path, &info) || !S_ISDIR(info.st_mode)) return cli_path_differs(path, out);
    return !can_list(path) || each_entry(path, path, is_other, differs, out);
}

bool cli_others_differ(const char *source, bool is_model, const char *out) {
    if (access(out, F_OK) || !can_list(source)) return true;
    return each_entry(source, source, is_model ? is_other : is_usual, differs,
                      (void *)(uintptr_t)out);
}
