/* Opens sharded models, whose tensors are spread over several safetensors files (shards). The index
 * file of a model maps each tensor's name to the name of a shard in the same folder. */
#include "io/io.h"
#include "io/json.h"

#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Detects an index file, which is a JSON object. The first 8 bytes of a safetensors file are the
 * length of its header. The first 8 bytes of a JSON text, read as such a length, exceed the largest
 * header. */
bool bsmm_shards_detect(const uint8_t *data, size_t bytes) {
    if (bytes >= 8 && bsmm_load_u64(data) <= BSMM_HEADER_LIMIT) return false;
    size_t at = 0;
    while (at < bytes && data[at] != 0 && strchr(" \t\r\n", data[at]))
        at++;
    return at < bytes && data[at] == '{';
}

/* Checks that the name of a shard is a bare file name, so that an index cannot refer to files
 * outside its folder. */
static bsmm_status check_shard_name(const char *tensor, const char *shard) {
    bool bare = shard && shard[0] && !strchr(shard, '/');
    if (bare && strcmp(shard, ".") != 0 && strcmp(shard, "..") != 0) return BSMM_OK;
    return bsmm_fail(BSMM_E_FORMAT,
                     "weight_map.%.120s: value is \"%.120s\"; must be the name of a file in the "
                     "index's folder",
                     tensor, shard ? shard : "(not a string)");
}

/* Moves to the model those tensors of a shard that the index assigns to this shard. A tensor that
 * the index does not list is part of the model too, because inference engines load it. */
static bsmm_status take_tensors(const json_t *weight_map, const char *shard, bsmm_file *from,
                                bsmm_file *to) {
    for (uint64_t i = 0; i < from->tensor_count; i++) {
        const bsmm_tensor *tensor = &from->tensors[i];
        const char *owner = json_string_value(json_object_get(weight_map, tensor->name));
        if (!owner || strcmp(owner, shard) == 0) BSMM_TRY(bsmm_file_take_tensor(to, tensor));
    }
    return bsmm_file_take_metadata(to, from);
}

static bsmm_status open_shard(const json_t *weight_map, const char *shard, bsmm_file *file) {
    char path[PATH_MAX];
    if ((size_t)snprintf(path, sizeof path, "%s/%s", file->folder, shard) >= sizeof path)
        return bsmm_fail(BSMM_E_FORMAT, "weight_map: %.120s: the shard's path is too long", shard);
    bsmm_map map;
    BSMM_TRY(bsmm_file_map(file, path, &map));
    bsmm_file inside = {0};
    bsmm_status status = bsmm_safetensors_parse(map.data, map.bytes, &inside);
    if (status == BSMM_OK) status = take_tensors(weight_map, shard, &inside, file);
    bsmm_file_clear(&inside);
    return status == BSMM_OK ? BSMM_OK : bsmm_fail_within(status, shard);
}

static int compare_names(const void *left, const void *right) {
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* Lists for each tensor the name of its shard, and sorts the list. The name of a shard therefore
 * occurs once for each of its tensors. */
static bsmm_status list_shards(json_t *weight_map, const char **shards) {
    const char *tensor;
    json_t *value;
    size_t count = 0;
    json_object_foreach(weight_map, tensor, value) {
        const char *shard = json_string_value(value);
        BSMM_TRY(check_shard_name(tensor, shard));
        shards[count++] = shard;
    }
    qsort(shards, count, sizeof *shards, compare_names);
    return BSMM_OK;
}

static bsmm_status open_shards(json_t *weight_map, const char **shards, bsmm_file *file) {
    BSMM_TRY(list_shards(weight_map, shards));
    size_t count = json_object_size(weight_map);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || strcmp(shards[i - 1], shards[i]) != 0)
            BSMM_TRY(open_shard(weight_map, shards[i], file));
    return BSMM_OK;
}

/* Checks that every tensor in the index was found in its shard. */
static bsmm_status check_complete(json_t *weight_map, bsmm_file *file) {
    const char *tensor;
    json_t *shard;
    json_t *found = json_object();
    bool listed = found != NULL;
    for (uint64_t i = 0; listed && i < file->tensor_count; i++)
        listed = json_object_set_new(found, file->tensors[i].name, json_true()) == 0;
    bsmm_status status = listed ? BSMM_OK : bsmm_fail_memory();
    json_object_foreach(weight_map, tensor, shard) {
        if (status != BSMM_OK || json_object_get(found, tensor)) continue;
        status = bsmm_fail(BSMM_E_FORMAT, "weight_map.%.120s: %.120s has no tensor of this name",
                           tensor, json_string_value(shard));
    }
    json_decref(found);
    return status;
}

static bsmm_status open_weight_map(json_t *weight_map, bsmm_file *file) {
    if (!json_is_object(weight_map))
        return bsmm_fail(BSMM_E_FORMAT, "weight_map: must be an object of tensor to file name");
    const char **shards = calloc(json_object_size(weight_map) + 1, sizeof *shards);
    bsmm_status status = shards ? open_shards(weight_map, shards, file) : bsmm_fail_memory();
    free(shards);
    return status == BSMM_OK ? check_complete(weight_map, file) : status;
}

bsmm_status bsmm_shards_open(const uint8_t *data, size_t bytes, bsmm_file *file) {
    file->kind = "safetensors";
    file->merged = true;
    if (bytes > BSMM_HEADER_LIMIT)
        return bsmm_fail(BSMM_E_FORMAT, "index: has %zu bytes; must be at most %u", bytes,
                         BSMM_HEADER_LIMIT);
    json_error_t error;
    json_t *root = json_loadb((const char *)data, bytes, JSON_REJECT_DUPLICATES, &error);
    if (!root && bsmm_json_ran_out(&error)) return bsmm_fail_memory();
    if (!root)
        return bsmm_fail(BSMM_E_FORMAT, "index: byte %d of the file: %s; must be JSON in UTF-8",
                         error.position, error.text);
    bsmm_status status = open_weight_map(json_object_get(root, "weight_map"), file);
    json_decref(root);
    return status;
}
