/* Finishes an output folder: writes its index and config.json, copies the input folder's files that
 * hold no weights, and gives the output folder its final name. */
#include "common.h"
#include "files.h"
#include "folder.h"
#include "folder_config.h"
#include "folder_others.h"
#include "paths.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char index_name[] = "model.safetensors.index.json";

/* Stores in `name` the file name that shard number `shard` of `shards` gets in the finished
 * folder. */
static void name_shard(char name[64], size_t shard, size_t shards) {
    if (shards == 1)
        snprintf(name, 64, "model.safetensors");
    else
        snprintf(name, 64, "model-%05zu-of-%05zu.safetensors", shard + 1, shards);
}

/* Adds the tensors of a shard (one file of the model) to the index of the model, and its matrices
 * to the list of layers. */
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
    char *path = cli_path_join(folder->work, index_name);
    const bool written = text && cli_write_text(path, text);
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

static bool write_second_config(const cli_folder *folder, const cli_layers *layers) {
    char *text = cli_second_config_of(layers);
    char *path = cli_path_join(folder->work, "hf_quant_config.json");
    const bool written = !text || cli_write_text(path, text);
    free(path);
    free(text);
    return written;
}

static bool write_config(const cli_folder *folder, const cli_layers *layers) {
    const char *why;
    char *text, *config = cli_config_of(layers, &why);
    bool written = cli_folder_read_config(folder, &text);
    if (why) cli_warn("config.json gets no quantization_config: %s", why);
    if (!folder->source && config)
        cli_warn("the input is a file and no folder, so the output has no config.json");
    else if (!text && written && config)
        cli_warn("%s has no config.json, so the output has none", folder->source);
    if (text && written) {
        char *edited = edit_config(text, config), *to = cli_path_join(folder->work, "config.json");
        if (!edited) exit(cli_fail("no memory for config.json"));
        written = cli_write_text(to, edited);
        free(edited);
        free(to);
    }
    free(config);
    free(text);
    return written && write_second_config(folder, layers);
}

/* Renames a shard from its name in the unfinished folder to its name in the finished folder, or
 * back if `back` is true. */
static int rename_shard(const cli_folder *folder, size_t shard, size_t shards, bool back) {
    char name[64];
    name_shard(name, shard, shards);
    char *work = cli_folder_shard(folder, shard), *final = cli_path_join(folder->work, name);
    const int status = back ? rename(final, work) : rename(work, final);
    free(work);
    free(final);
    return status;
}

static bool rename_shards(const cli_folder *folder, size_t shards) {
    for (size_t i = 0; i < shards; i++)
        if (rename_shard(folder, i, shards, false))
            return cli_fail_system(folder->work, "rename a shard in it");
    return true;
}

void cli_folder_resume(const cli_folder *folder, size_t shards) {
    for (size_t i = 0; i < shards; i++)
        rename_shard(folder, i, shards, true);
}

/* Gives the finished folder its name. The function removes the plan last. If this run ends before
 * the plan is removed, a later run can continue. */
static bool publish(const cli_folder *folder) {
    if (rename(folder->work, folder->out))
        return cli_fail_system(folder->out, "create this folder");
    char *plan = cli_path_join(folder->out, CLI_PLAN_NAME);
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
    cli_layers_find_inputs(&layers);
    good = good && (shards == 1 || write_index(folder, map, bytes)) &&
           write_config(folder, &layers) &&
           (!folder->source || cli_others_copy(folder->source, folder->work)) &&
           rename_shards(folder, shards) && publish(folder);
    json_decref(map);
    cli_layers_free(&layers);
    return good;
}
