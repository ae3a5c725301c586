/* quantization_config, the JSON object by which engines recognise the quantized weights of a
 * model's folder. */
#ifndef CLI_FOLDER_CONFIG_H
#define CLI_FOLDER_CONFIG_H

#include "command.h"

typedef struct cli_layer {
    const char *name; /* name of the module, i.e. that of its weight without ".weight" */
    const char *family;
    bsmm_format format;
} cli_layer;

typedef struct cli_layers {
    cli_layer *items;
    size_t count, room;
} cli_layers;

/* Adds the matrices of a file. Their texts are copied. */
void cli_layers_add(cli_layers *layers, const bsmm_file *file);
void cli_layers_free(cli_layers *layers);

/* Returns the text of quantization_config for these layers, as the engines of their family read it.
 * Returns NULL if no layer is quantized, or if there is no such text; then *why says the reason, or
 * is NULL. The caller frees the text. */
char *cli_config_of(const cli_layers *layers, const char **why);

/* Returns the JSON text of an object with its member `key` replaced by `value`, or without it if
 * `value` is NULL. All other bytes stay as they are. Returns NULL if the text is no object. The
 * caller frees the text. */
char *cli_config_replace(const char *text, const char *key, const char *value);

#endif
