#define _GNU_SOURCE /* This macro makes unistd.h declare copy_file_range. */
#include "folder.h"
#include "common.h"
#include "files.h"
#include "folder_config.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Names the plan, a file in the unfinished folder. It says which command makes the folder. */
static const char plan_name[] = ".bsmm-plan";
static const char index_name[] = "model.safetensors.index.json";

/* Lists the files of the input's folder that the command does not copy, because it writes new ones
 * or because they hold weights. */
static const char *const made_anew[] = {"*.safetensors",
                                        "*.safetensors.index.json",
                                        "*.bin",
                                        "*.bin.index.json",
                                        "*.pt",
                                        "*.pth",
                                        "*.gguf",
                                        "*.h5",
                                        "*.msgpack",
                                        "*.onnx",
                                        "config.json",
                                        "hf_quant_config.json",
                                        ".*"};

static char *join(const char *folder, const char *name) {
    char *path = cli_alloc(strlen(folder) + strlen(name) + 2, 1);
    sprintf(path, "%s/%s", folder, name);
    return path;
}

static bool is_folder(const char *path) {
    struct stat info;
    return !stat(path, &info) && S_ISDIR(info.st_mode);
}

static bool fail_system(const char *path, const char *what) {
    cli_fail("%s: cannot %s: %s", path, what, strerror(errno));
    return false;
}

bool cli_folder_wanted(const char *in, const char *out) {
    static const char *const files[] = {"*.safetensors", "*.npy", "*.gguf", "*.json"};
    const size_t length = strlen(out);
    if (length && (out[length - 1] == '/' || is_folder(out))) return true;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (!fnmatch(files[i], out, 0)) return false;
    return is_folder(in);
}

/* Returns the text of a file, or NULL with errno set. A file that contains a zero byte is not a
 * text. The caller frees the text. */
static char *read_text(const char *path) {
    char *text = NULL, part[4096];
    size_t size, n;
    FILE *file = fopen(path, "r"), *stream = file ? open_memstream(&text, &size) : NULL;
    if (!stream) {
        if (file) fclose(file);
        return NULL;
    }
    while ((n = fread(part, 1, sizeof part, file)))
        fwrite(part, 1, n, stream);
    const bool failed = ferror(file);
    fclose(file);
    const bool closed = !fclose(stream);
    if (closed && !failed && strlen(text) == size) return text;
    free(text);
    errno = closed && !failed ? EILSEQ : EIO;
    return NULL;
}

static bool write_text(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    if (!file) return fail_system(path, "create it");
    const bool written = fputs(text, file) >= 0 && !fflush(file) && !fsync(fileno(file));
    return (fclose(file) == 0 && written) || fail_system(path, "write it");
}

static bool copy_file(const char *from, const char *to) {
    const int in = open(from, O_RDONLY | O_CLOEXEC);
    if (in < 0) return fail_system(from, "read it");
    const int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    ssize_t n = out < 0 ? -1 : 1;
    char part[1 << 16];
    while (n > 0 && (n = read(in, part, sizeof part)) > 0)
        for (ssize_t at = 0, w; n > 0 && at < n; at += w)
            if ((w = write(out, part + at, (size_t)(n - at))) < 0) n = w = -1;
    if (n == 0 && fsync(out)) n = -1;
    const int error = errno;
    close(in);
    if (out >= 0 && close(out)) n = -1;
    errno = error;
    return n == 0 || fail_system(to, "copy into it");
}

/* Returns the text of the plan, i.e. of the file that says which command makes the folder. The
 * text differs between two commands and between two states of the input. */
static char *plan_text(const bsmm_file *file, const char *out) {
    bsmm_file_part part = BSMM_INIT(bsmm_file_part);
    struct stat info = {0};
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    if (!stream) exit(cli_fail("no memory for a plan"));
    fprintf(stream, "%u\n%s\n", bsmm_version(), out);
    for (char *const *word = cli_command_line; word && *word; word++)
        fprintf(stream, "%s\n", *word);
    for (uint64_t i = 0; !bsmm_file_part_at(file, i, &part) && !stat(part.path, &info); i++)
        fprintf(stream, "%s %lld %lld.%09ld\n", part.path, (long long)info.st_size,
                (long long)info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
    if (fclose(stream)) exit(cli_fail("no memory for a plan"));
    return text;
}

/* Tells whether a folder contains names that `except` does not list. Returns true if the folder
 * cannot be read. */
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

/* Tells whether an unfinished folder contains more than its plan. */
static bool has_others(const char *folder) {
    return has_names(folder, (const char *const[]){".", "..", plan_name}, 3);
}

/* Makes the folder `work`, or finds one that an earlier run left, and sets *made accordingly. If
 * OUT is an empty folder, the function tries to replace it at once. This fails for a mount point,
 * and the user should not learn this only after hours of work. */
static bool find_work(const cli_folder *folder, const char *plan_path, bool *made) {
    *made = !mkdir(folder->work, 0777);
    if (!*made && errno != EEXIST) return fail_system(folder->work, "create this folder");
    if (*made && is_folder(folder->out) &&
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

/* Opens the plan and locks it, so that no other run works in the same folder. On a file system
 * without locks, the command works without a lock. */
static bool lock_work(cli_folder *folder, const char *plan_path) {
    folder->lock = open(plan_path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (folder->lock < 0) return fail_system(plan_path, "create it");
    if (!flock(folder->lock, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK) return true;
    cli_fail("%s: another run is writing it", folder->work);
    return false;
}

/* Writes the plan, or checks that the folder already has the same plan. The plan is empty if a run
 * was killed before it wrote the plan. */
static bool take_plan(const cli_folder *folder, const char *plan_path, const char *plan) {
    char *before = read_text(plan_path);
    const bool empty = before && !*before, same = before && !strcmp(before, plan);
    free(before);
    if (empty) return write_text(plan_path, plan);
    if (!same)
        cli_fail("%s: is the unfinished output of another command or of changed input; remove it",
                 folder->work);
    return same;
}

/* Removes the unfinished folder if it contains nothing but its plan. */
static bool remove_unused(const cli_folder *folder) {
    char *plan_path = join(folder->work, plan_name);
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
        char *path = join(folder->work, names[i]->d_name);
        unlink(path);
        free(path);
        free(names[i]);
    }
    if (count >= 0) free(names);
}

/* Makes the unfinished folder with a plan, or checks that an existing folder has the same plan. */
static bool take_work(cli_folder *folder, const char *plan) {
    char *path = join(folder->work, plan_name);
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

/* Finds the folder of the input. */
static void find_source(cli_folder *folder, const char *in) {
    folder->source_memory = strcpy(cli_alloc(strlen(in) + 2, 1), in);
    if (is_folder(in)) {
        folder->source = folder->source_memory;
        return;
    }
    char *slash = strrchr(folder->source_memory, '/');
    if (slash)
        *slash = '\0';
    else
        strcpy(folder->source_memory, ".");
    const size_t length = strlen(in), tail = strlen(".json");
    if (length > tail && !strcmp(in + length - tail, ".json"))
        folder->source = folder->source_memory;
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
    if (!target) return fail_system(folder->out, "follow this link");
    free(folder->out);
    folder->out = target;
    return true;
}

/* Reads config.json of the input's folder. *text is NULL if there is no such file. If config.json
 * cannot be edited, the function prints a message and returns false. */
static bool read_config(const cli_folder *folder, char **text) {
    *text = NULL;
    if (!folder->source) return true;
    char *path = join(folder->source, "config.json"), *edited = NULL;
    *text = read_text(path);
    bool good = *text || errno == ENOENT || fail_system(path, "read it");
    if (*text) edited = cli_config_replace(*text, "quantization_config", NULL);
    if (*text && !edited) {
        cli_fail("%s: is no JSON object", path);
        good = false;
    }
    free(edited);
    free(path);
    return good;
}

/* Tells whether the input and the output's name permit the work. The check comes first, because a
 * large model takes hours. */
static bool check_begin(const cli_folder *folder) {
    char *config;
    if (is_folder(folder->out) ? !is_empty(folder->out) : !access(folder->out, F_OK)) {
        cli_fail("%s: exists already; name a new or an empty folder", folder->out);
        return false;
    }
    const bool good = read_config(folder, &config);
    free(config);
    return good;
}

bool cli_folder_begin(cli_folder *folder, const char *in, const bsmm_file *file, const char *out) {
    *folder = (cli_folder){.lock = -1};
    if (!name_output(folder, out)) return false;
    folder->work = cli_alloc(strlen(folder->out) + 8, 1);
    sprintf(folder->work, "%s.part", folder->out);
    find_source(folder, in);
    if (!check_begin(folder)) return false;
    char *plan = plan_text(file, folder->out);
    const bool taken = take_work(folder, plan);
    free(plan);
    return taken;
}

void cli_folder_free(cli_folder *folder) {
    free(folder->out);
    free(folder->work);
    free(folder->source_memory);
    if (folder->lock >= 0) close(folder->lock);
}

char *cli_folder_shard(const cli_folder *folder, size_t shard) {
    char name[64];
    snprintf(name, sizeof name, "shard-%05zu.safetensors", shard + 1);
    return join(folder->work, name);
}

void cli_folder_give_up(const cli_folder *folder) {
    if (!remove_unused(folder))
        cli_warn("%s has the shards that are complete; the same command continues there",
                 folder->work);
}

/* Writes to `name` the file name of a shard in the finished folder. */
static void name_shard(char name[64], size_t shard, size_t shards) {
    if (shards == 1)
        snprintf(name, 64, "model.safetensors");
    else
        snprintf(name, 64, "model-%05zu-of-%05zu.safetensors", shard + 1, shards);
}

/* Adds the tensors of a shard to the index, and its matrices to the list of layers. */
static bool list_shard(const char *path, const char *name, json_t *map, uint64_t *bytes,
                       cli_layers *layers) {
    bsmm_tensor tensor = BSMM_INIT(bsmm_tensor);
    bsmm_file *file = cli_file_open(path);
    if (!file) return false;
    for (uint64_t i = 0; !bsmm_file_tensor_at(file, i, &tensor); i++) {
        json_object_set_new(map, tensor.name, json_string(name));
        *bytes += tensor.bytes;
    }
    cli_layers_add(layers, file);
    cli_file_close(file);
    return true;
}

static bool write_index(const cli_folder *folder, json_t *map, uint64_t bytes) {
    json_t *index =
        json_pack("{s:{s:I}, s:O}", "metadata", "total_size", (json_int_t)bytes, "weight_map", map);
    char *text = index ? json_dumps(index, JSON_INDENT(2)) : NULL;
    char *path = join(folder->work, index_name);
    const bool written = text && write_text(path, text);
    free(path);
    free(text);
    json_decref(index);
    return written;
}

/* Replaces the member quantization_config of config.json. Removes compression_config, the older
 * name of this member in compressed-tensors, because engines read it if they find no
 * quantization_config. */
static char *edit_config(const char *text, const char *config) {
    char *without = cli_config_replace(text, "compression_config", NULL);
    char *edited = without ? cli_config_replace(without, "quantization_config", config) : NULL;
    free(without);
    return edited;
}

static bool write_config(const cli_folder *folder, const cli_layers *layers) {
    const char *why;
    char *text, *config = cli_config_of(layers, &why);
    bool written = read_config(folder, &text);
    if (why) cli_warn("config.json gets no quantization_config: %s", why);
    if (!folder->source && config)
        cli_warn("the input is a file and no folder, so the output has no config.json");
    else if (!text && written && config)
        cli_warn("%s has no config.json, so the output has none", folder->source);
    if (text && written) {
        char *edited = edit_config(text, config), *to = join(folder->work, "config.json");
        if (!edited) exit(cli_fail("no memory for config.json"));
        written = write_text(to, edited);
        free(edited);
        free(to);
    }
    free(config);
    free(text);
    return written;
}

static int is_copied(const struct dirent *name) {
    for (size_t i = 0; i < sizeof made_anew / sizeof made_anew[0]; i++)
        if (!fnmatch(made_anew[i], name->d_name, 0)) return 0;
    return 1;
}

/* Copies the regular files of the input's folder that the command does not write itself. */
static bool copy_others(const cli_folder *folder) {
    struct dirent **names;
    const int count = folder->source ? scandir(folder->source, &names, is_copied, alphasort) : 0;
    bool copied = count >= 0 || fail_system(folder->source, "list this folder");
    for (int i = 0; i < count; i++) {
        char *from = join(folder->source, names[i]->d_name);
        char *to = join(folder->work, names[i]->d_name);
        struct stat info;
        if (copied && !stat(from, &info) && S_ISREG(info.st_mode)) copied = copy_file(from, to);
        free(from);
        free(to);
        free(names[i]);
    }
    if (count > 0) free(names);
    return copied;
}

/* Renames a shard from its name in the unfinished folder to its name in the finished folder.
 * `back` reverses the renaming. */
static int rename_shard(const cli_folder *folder, size_t shard, size_t shards, bool back) {
    char name[64];
    name_shard(name, shard, shards);
    char *work = cli_folder_shard(folder, shard), *final = join(folder->work, name);
    const int status = back ? rename(final, work) : rename(work, final);
    free(work);
    free(final);
    return status;
}

static bool rename_shards(const cli_folder *folder, size_t shards) {
    for (size_t i = 0; i < shards; i++)
        if (rename_shard(folder, i, shards, false))
            return fail_system(folder->work, "rename a shard in it");
    return true;
}

void cli_folder_resume(const cli_folder *folder, size_t shards) {
    for (size_t i = 0; i < shards; i++)
        rename_shard(folder, i, shards, true);
}

/* Gives the finished folder its name. The function removes the plan last, so that a later run can
 * continue if this run ends before. */
static bool publish(const cli_folder *folder) {
    if (rename(folder->work, folder->out)) return fail_system(folder->out, "create this folder");
    char *plan = join(folder->out, plan_name);
    unlink(plan);
    free(plan);
    return true;
}

bool cli_folder_finish(cli_folder *folder, size_t shards) {
    cli_layers layers = {0};
    json_t *map = json_object();
    uint64_t bytes = 0;
    bool good = map;
    for (size_t i = 0; i < shards && good; i++) {
        char name[64], *path = cli_folder_shard(folder, i);
        name_shard(name, i, shards);
        good = list_shard(path, name, map, &bytes, &layers);
        free(path);
    }
    good = good && (shards == 1 || write_index(folder, map, bytes)) &&
           write_config(folder, &layers) && copy_others(folder) && rename_shards(folder, shards) &&
           publish(folder);
    json_decref(map);
    cli_layers_free(&layers);
    return good;
}
