/* Opens GGUF models that consist of several files (parts), as llama.cpp's program gguf-split writes
 * them. The names of the files end in -00001-of-00003.gguf, for example. Each part says in its
 * metadata which part it is. All other metadata is in the first part. */
#include "io/gguf.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* PART_LIMIT is the largest number of parts (files) of a model, because the names of the files have
 * five digits for the number of parts. */
enum { PART_LIMIT = 99999 };

static const char count_key[] = "split.count", number_key[] = "split.no",
                  tensors_key[] = "split.tensors.count";

/* Returns the whole number (0 or more) of a metadata key, or `otherwise` if the key is absent or
 * its value is no whole number. The metadata need not be sorted. */
static uint64_t number_of(const bsmm_file *file, const char *key, uint64_t otherwise) {
    for (uint64_t i = 0; i < file->metadata_count; i++)
        if (strcmp(file->metadata[i].key, key) == 0)
            return bsmm_gguf_whole_number(&file->metadata[i].stored, otherwise);
    return otherwise;
}

/* Removes the metadata keys that describe the parts (files) of a model, because the open file
 * stands for all parts. */
static void remove_keys(bsmm_file *file) {
    uint64_t kept = 0;
    for (uint64_t i = 0; i < file->metadata_count; i++) {
        const char *key = file->metadata[i].key;
        if (strcmp(key, count_key) != 0 && strcmp(key, number_key) != 0 &&
            strcmp(key, tensors_key) != 0)
            file->metadata[kept++] = file->metadata[i];
    }
    file->metadata_count = kept;
}

/* TAIL is the length of the end of a name, such as -00001-of-00003.gguf. */
enum { TAIL = 20 };

static void write_tail(char text[TAIL + 12], uint64_t number, uint64_t count) {
    snprintf(text, TAIL + 12, "-%05u-of-%05u.gguf", (unsigned)(number % (PART_LIMIT + 1)),
             (unsigned)(count % (PART_LIMIT + 1)));
}

/* Stores in `path` the path of part `number`, counted from 0. `first` is the path of the first
 * part. */
static bsmm_status name_part(const char *first, uint64_t number, uint64_t count,
                             char path[PATH_MAX]) {
    char tail[TAIL + 12];
    size_t length = strlen(first);
    write_tail(tail, 1, count);
    if (!bsmm_text_ends(first, tail))
        return bsmm_fail(BSMM_E_FORMAT,
                         "split.count: value is %" PRIu64 ", so the name of the file must end in "
                         "%s",
                         count, tail);
    if (length >= PATH_MAX) return bsmm_fail(BSMM_E_FORMAT, "the path is too long");
    write_tail(tail, number + 1, count);
    memcpy(path, first, length - TAIL);
    memcpy(path + length - TAIL, tail, TAIL + 1);
    return BSMM_OK;
}

static bsmm_status check_part(const bsmm_file *part, uint64_t number, uint64_t count) {
    uint64_t its_number = number_of(part, number_key, 0), its_count = number_of(part, count_key, 0);
    if (its_number == number && its_count == count) return BSMM_OK;
    return bsmm_fail(BSMM_E_FORMAT,
                     "split.no, split.count: values are %" PRIu64 ", %" PRIu64 "; must be %" PRIu64
                     ", %" PRIu64,
                     its_number, its_count, number, count);
}

/* Adds the tensors of a part, i.e. of one file of a model that consists of several files. The names
 * of unknown types are in memory that the part frees, so the function copies these names. The names
 * of known types are in a constant table. */
static bsmm_status take_tensors(const bsmm_file *part, bsmm_file *file) {
    for (uint64_t i = 0; i < part->tensor_count; i++) {
        bsmm_tensor tensor = part->tensors[i];
        if (!bsmm_gguf_type_named(tensor.dtype))
            tensor.dtype = bsmm_arena_text(&file->arena, tensor.dtype, strlen(tensor.dtype));
        if (!tensor.dtype) return bsmm_fail_memory();
        BSMM_TRY(bsmm_file_take_tensor(file, &tensor));
    }
    return BSMM_OK;
}

static bsmm_status add_part(const char *path, uint64_t number, uint64_t count, bsmm_file *file) {
    bsmm_map map;
    bsmm_file part = {0};
    BSMM_TRY(bsmm_file_map(file, path, &map));
    bsmm_status status = map.bytes >= 4 && memcmp(map.data, "GGUF", 4) == 0
                             ? bsmm_gguf_parse(map.data, map.bytes, &part)
                             : bsmm_fail(BSMM_E_FORMAT, "is no GGUF file");
    if (status == BSMM_OK) status = check_part(&part, number, count);
    if (status == BSMM_OK) status = take_tensors(&part, file);
    if (status == BSMM_OK) status = bsmm_file_take_metadata(file, &part);
    bsmm_file_clear(&part);
    return status == BSMM_OK ? BSMM_OK : bsmm_fail_within(status, path);
}

/* Checks that a file is the first part of a model and that the model's number of parts is
 * possible. */
static bsmm_status check_first(const bsmm_file *file, uint64_t count) {
    uint64_t number = number_of(file, number_key, 0);
    if (count > PART_LIMIT)
        return bsmm_fail(BSMM_E_FORMAT, "split.count: value is %" PRIu64 "; must be at most %d",
                         count, PART_LIMIT);
    if (number == 0) return BSMM_OK;
    return bsmm_fail(BSMM_E_UNSUPPORTED,
                     "split.no: value is %" PRIu64 "; open the first of the model's %" PRIu64
                     " files instead",
                     number, count);
}

bsmm_status bsmm_gguf_open_parts(const char *path, bsmm_file *file) {
    char part[PATH_MAX];
    uint64_t count = number_of(file, count_key, 0), tensors = number_of(file, tensors_key, 0);
    if (count <= 1) return BSMM_OK;
    BSMM_TRY(check_first(file, count));
    if (!path)
        return bsmm_fail(BSMM_E_UNSUPPORTED,
                         "split.count: value is %" PRIu64 "; open the model by its path", count);
    file->merged = true;
    for (uint64_t i = 1; i < count; i++) {
        BSMM_TRY(name_part(path, i, count, part));
        BSMM_TRY(add_part(part, i, count, file));
    }
    if (tensors && tensors != file->tensor_count)
        return bsmm_fail(BSMM_E_FORMAT,
                         "split.tensors.count: value is %" PRIu64 "; the files have %" PRIu64
                         " tensors",
                         tensors, file->tensor_count);
    remove_keys(file);
    return BSMM_OK;
}
