#include "files.h"
#include "common.h"
#include "folder.h"
#include "folder_others.h"
#include "nearest.h"
#include "paths.h"
#include "shrink.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ALIGNMENT = 64 };

bsmm_file *cli_file_open(const char *path) {
    bsmm_file *file = NULL;
    cli_shrink_opening(path);
    bool failed = bsmm_file_open(path, &file) != BSMM_OK;
    cli_shrink_opening(NULL);
    if (failed || cli_shrunk()) {
        bsmm_file_close(file);
        cli_fail("%s", bsmm_error_message());
        return NULL;
    }
    cli_shrink_watch(file);
    return file;
}

void cli_file_close(bsmm_file *file) {
    if (file) cli_shrink_forget(file);
    bsmm_file_close(file);
}

bool cli_path_differs(const char *path, const char *out) {
    struct stat target, own;
    if (stat(out, &target) || stat(path, &own) || own.st_dev != target.st_dev ||
        own.st_ino != target.st_ino)
        return true;
    cli_fail("%s: is the input's file %s; name another output", out, path);
    return false;
}

bool cli_output_differs(const bsmm_file *file, const char *out) {
    bsmm_file_part part = BSMM_INIT(bsmm_file_part);
    char *folder = NULL;
    bool differs = true;
    for (uint64_t i = 0; file && differs && !bsmm_file_part_at(file, i, &part); i++) {
        char *next = cli_path_folder(part.path);
        differs = cli_path_differs(part.path, out) &&
                  ((folder && !strcmp(folder, next)) || cli_others_differ(next, false, out));
        free(folder);
        folder = next;
    }
    free(folder);
    return differs;
}

bool cli_output_differs_from(const bsmm_file *file, const char *in, const char *out) {
    char *source = cli_folder_source(in);
    const bool differs =
        cli_output_differs(file, out) && (!source || cli_others_differ(source, true, out));
    free(source);
    return differs;
}

const char *cli_kind_of(const char *path) {
    return cli_ends_with(path, ".npy")    ? "npy"
           : cli_ends_with(path, ".gguf") ? "gguf"
                                          : "safetensors";
}

static uint64_t round_up(uint64_t bytes) {
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

void *cli_matrix_allocate(bsmm_matrix *matrix) {
    uint64_t data_bytes, scale_bytes;
    matrix->data_bytes = matrix->scale_bytes = 0;
    if (bsmm_data_bytes(matrix, &data_bytes) || bsmm_scale_bytes(matrix, &scale_bytes)) return NULL;
    char *memory = cli_alloc(round_up(data_bytes) + scale_bytes + 1, 1);
    matrix->data = memory;
    matrix->data_bytes = data_bytes;
    if (matrix->format.scale == BSMM_SCALE_NONE) return memory;
    matrix->scales = memory + round_up(data_bytes);
    matrix->scale_bytes = scale_bytes;
    return memory;
}

bool cli_load(const bsmm_file *file, uint64_t weight, int64_t slice, cli_loaded *loaded) {
    bsmm_weight info = BSMM_INIT(bsmm_weight);
    *loaded = (cli_loaded){.matrix = BSMM_INIT(bsmm_matrix)};
    if (bsmm_file_weight_at(file, weight, &info) ||
        bsmm_weight_matrix(file, weight, slice, &loaded->matrix))
        return false;
    if (info.mapped) return true;
    loaded->memory = cli_matrix_allocate(&loaded->matrix);
    if (loaded->memory && !bsmm_weight_unpack(file, weight, slice, &loaded->matrix)) return true;
    cli_unload(loaded);
    return false;
}

void cli_unload(cli_loaded *loaded) {
    free(loaded->memory);
    loaded->memory = NULL;
}

/* Returns the length of the file name in "FILE:NAME". The function must search for the separating
 * colon, because names of files and tensors may contain colons too. */
static size_t file_length(const char *text) {
    if (!access(text, F_OK)) return strlen(text);
    char *prefix = strcpy(cli_alloc(strlen(text) + 1, 1), text);
    size_t length = strlen(text);
    for (char *colon = strchr(prefix, ':'); colon; colon = strchr(colon + 1, ':')) {
        *colon = '\0';
        bool exists = !access(prefix, F_OK);
        *colon = ':';
        if (!exists) continue;
        length = (size_t)(colon - prefix);
        break;
    }
    free(prefix);
    return length;
}

/* Removes an index such as "[3]" from the end of a name and stores it in *slice. Returns false if
 * the name has no index. */
static bool cut_slice(char *name, int64_t *slice) {
    char *bracket = strrchr(name, '[');
    size_t length = strlen(name);
    if (!bracket || length == 0 || name[length - 1] != ']') return false;
    name[length - 1] = '\0';
    bool number = cli_parse_size(bracket + 1, slice);
    name[length - 1] = ']';
    if (number) *bracket = '\0';
    return number;
}

/* Finds the weight whose name is most similar to a word. Only the first hundred thousand weights
 * are compared, to limit the time. */
static cli_nearest nearest_weight(const bsmm_file *file, const char *name) {
    static const uint64_t most = 100000;
    cli_nearest nearest = {.word = name};
    bsmm_weight weight = BSMM_INIT(bsmm_weight);
    for (uint64_t i = 0; i < bsmm_file_weight_count(file) && i < most; i++) {
        bsmm_file_weight_at(file, i, &weight);
        cli_nearest_try(&nearest, weight.name);
    }
    return nearest;
}

/* Prints the library's message that a name is no weight, and suggests a weight with a similar
 * name. */
static void fail_name(const bsmm_file *file, const char *path, const char *name) {
    char message[512], whole[160];
    snprintf(message, sizeof message, "%s", bsmm_error_message());
    snprintf(whole, sizeof whole, "%.140s.weight", name);
    cli_nearest nearest = nearest_weight(file, name);
    if (!nearest.best) nearest = nearest_weight(file, whole);
    cli_fail("%s: %s%s", path, message, cli_did_you_mean_this(&nearest, "").text);
}

static bool find_weight(const bsmm_file *file, const char *path, char *name, uint64_t *weight,
                        int64_t *slice) {
    *slice = 0;
    if (!bsmm_file_weight_find(file, name, weight)) return true;
    if (cut_slice(name, slice) && !bsmm_file_weight_find(file, name, weight)) return true;
    fail_name(file, path, name);
    return false;
}

static bool load_named(cli_operand *operand, const char *path, char *name) {
    uint64_t weight = 0;
    int64_t slice = 0;
    uint64_t count = bsmm_file_weight_count(operand->file);
    bsmm_tensor only = BSMM_INIT(bsmm_tensor);
    if (!name && !count && !bsmm_file_tensor_at(operand->file, 0, &only)) {
        /* The user gave no name, and the only tensor of the file is not a weight. This look-up
         * fails and sets the error message that cli_fail_library prints. */
        bsmm_file_weight_find(operand->file, only.name, &weight);
        cli_fail_library(path);
        return false;
    }
    if (name && !find_weight(operand->file, path, name, &weight, &slice)) return false;
    if (!name && count != 1) {
        cli_fail("%s: has %llu weights; name one as %s:NAME", path, (unsigned long long)count,
                 path);
        return false;
    }
    if (cli_load(operand->file, weight, slice, &operand->loaded)) return true;
    cli_fail_library(path);
    return false;
}

bool cli_operand_open(const char *text, cli_operand *operand) {
    *operand = (cli_operand){0};
    size_t length = file_length(text);
    char *path = strcpy(cli_alloc(strlen(text) + 1, 1), text);
    char *name = path[length] ? path + length + 1 : NULL;
    path[length] = '\0';
    operand->file = cli_file_open(path);
    bool opened = operand->file && load_named(operand, path, name);
    if (!opened) cli_operand_close(operand);
    free(path);
    return opened;
}

void cli_operand_close(cli_operand *operand) {
    cli_unload(&operand->loaded);
    cli_file_close(operand->file);
    operand->file = NULL;
}
