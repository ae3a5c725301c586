/* Opens a file: maps it into memory and detects the file format from its bytes. */
#include "io/family.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool starts(const uint8_t *data, size_t bytes, const char *magic) {
    return bytes >= strlen(magic) && memcmp(data, magic, strlen(magic)) == 0;
}

static bsmm_status parse_gguf(const uint8_t *data, size_t bytes, bsmm_file *file) {
    BSMM_TRY(bsmm_gguf_parse(data, bytes, file));
    return bsmm_gguf_open_parts(file->map_count ? file->maps[0].path : NULL, file);
}

/* Parses the file in the format that its first bytes show. safetensors has no magic number, so it
 * is tried last. */
static bsmm_status parse(const uint8_t *data, size_t bytes, const char *name, bsmm_file *file) {
    if (starts(data, bytes, "GGUF")) return parse_gguf(data, bytes, file);
    if (starts(data, bytes, "\x93NUMPY")) return bsmm_npy_parse(data, bytes, name, file);
    if (!bsmm_shards_detect(data, bytes)) return bsmm_safetensors_parse(data, bytes, file);
    if (!file->folder)
        return bsmm_fail(BSMM_E_UNSUPPORTED, "index: its shards are files; open it by its path");
    return bsmm_shards_open(data, bytes, file);
}

static bsmm_status parse_and_recognise(const uint8_t *data, size_t bytes, const char *name,
                                       bsmm_file *file) {
    BSMM_TRY(parse(data, bytes, name, file));
    for (uint64_t i = 0; i < file->map_count; i++)
        bsmm_map_release(&file->maps[i]); /* Frees the memory of the parsed headers. */
    BSMM_TRY(bsmm_file_index(file));
    return bsmm_file_recognise(file);
}

bsmm_status bsmm_file_from_memory(const uint8_t *data, size_t bytes, bsmm_file **file) {
    *file = NULL;
    bsmm_file *made = calloc(1, sizeof *made);
    if (!made) return bsmm_fail_memory();
    bsmm_status status = parse_and_recognise(data, bytes, "array", made);
    if (status == BSMM_OK)
        *file = made;
    else
        bsmm_file_close(made);
    return status;
}

/* Returns the name of the array in a .npy file, which is the file's name without folder and
 * extension. */
static const char *array_name(bsmm_file *file, const char *path) {
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    size_t length = strlen(name) - (bsmm_text_ends(name, ".npy") ? 4 : 0);
    if (length == 0 || !bsmm_text_is_utf8(name, length)) return "array";
    return bsmm_arena_text(&file->arena, name, length);
}

static bsmm_status open_path(const char *path, bsmm_file *file) {
    const char *slash = strrchr(path, '/');
    size_t folder_length = slash ? (size_t)(slash - path) : 1;
    file->folder =
        slash == path ? "/" : bsmm_arena_text(&file->arena, slash ? path : ".", folder_length);
    const char *name = array_name(file, path);
    if (!file->folder || !name) return bsmm_fail_memory();
    bsmm_map map;
    BSMM_TRY(bsmm_file_map(file, path, &map));
    bsmm_status status = parse_and_recognise(map.data, map.bytes, name, file);
    return status == BSMM_OK ? BSMM_OK : bsmm_fail_within(status, path);
}

/* Returns true if a file's name ends like that of a part of a GGUF model, such as
 * -00002-of-00003.gguf, and the part is not the first one. */
static bool is_later_part(const char *name) {
    unsigned number, count;
    char end;
    size_t length = strlen(name), tail = strlen("-00002-of-00003.gguf");
    return length > tail &&
           sscanf(name + length - tail, "-%5u-of-%5u.ggu%c", &number, &count, &end) == 3 &&
           number != 1;
}

/* Finds the only model in a folder whose file name has this ending, and stores the file name in
 * name[size]. The stored name is "" if the folder has no such model or several. */
static bsmm_status only_model(const char *folder, const char *ending, char *name, size_t size) {
    DIR *entries = opendir(folder);
    if (!entries) return bsmm_fail_system(folder, "list", errno);
    size_t found = 0;
    for (const struct dirent *entry; (entry = readdir(entries));)
        if (bsmm_text_ends(entry->d_name, ending) && !is_later_part(entry->d_name) && ++found == 1)
            snprintf(name, size, "%s", entry->d_name);
    closedir(entries);
    if (found != 1) name[0] = 0;
    return BSMM_OK;
}

static bool join_path(char *path, size_t size, const char *folder, const char *name) {
    int length = snprintf(path, size, "%s/%s", folder, name);
    return length > 0 && (size_t)length < size;
}

/* Finds the file that a folder stands for: an index of shards, else model.safetensors, else the
 * only .safetensors file in the folder, else the only GGUF model. */
static bsmm_status find_in_folder(const char *folder, char *path, size_t size) {
    static const char *const names[] = {"model.safetensors.index.json", "model.safetensors"};
    static const char *const endings[] = {".safetensors", ".gguf"};
    char name[NAME_MAX + 1] = "";
    struct stat info;
    for (size_t i = 0; i < BSMM_COUNT(names); i++)
        if (join_path(path, size, folder, names[i]) && stat(path, &info) == 0) return BSMM_OK;
    for (size_t i = 0; i < BSMM_COUNT(endings); i++) {
        BSMM_TRY(only_model(folder, endings[i], name, sizeof name));
        if (name[0] && join_path(path, size, folder, name)) return BSMM_OK;
    }
    return bsmm_fail(BSMM_E_NOT_FOUND,
                     "%s: the folder holds no model.safetensors.index.json, no model.safetensors "
                     "and not exactly one .safetensors file or GGUF model",
                     folder);
}

static bsmm_status open_any(const char *path, bsmm_file *file) {
    char inside[PATH_MAX];
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode)) return open_path(path, file);
    BSMM_TRY(find_in_folder(path, inside, sizeof inside));
    return open_path(inside, file);
}

bsmm_status bsmm_file_open(const char *path, bsmm_file **file) {
    if (!file) return bsmm_fail(BSMM_E_INVALID, "file: value is NULL; must be given");
    *file = NULL;
    if (!path) return bsmm_fail(BSMM_E_INVALID, "path: value is NULL; must be given");
    bsmm_file *made = calloc(1, sizeof *made);
    if (!made) return bsmm_fail_memory();
    bsmm_status status = open_any(path, made);
    if (status == BSMM_OK)
        *file = made;
    else
        bsmm_file_close(made);
    return status;
}
