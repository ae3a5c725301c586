/* Makes quantization_config, the JSON object in config.json by which inference engines recognize
 * the quantized weights of a model. */
#ifndef CLI_FOLDER_CONFIG_H
#define CLI_FOLDER_CONFIG_H

#include "command.h"

struct json_t;

typedef struct cli_layer {
    /* `name` is the name of the module, i.e. the name of its weight without ".weight". */
    const char *name;
    const char *family;
    const char *format; /* `format` is the name of the format, such as "nvfp4" or "fp8_tensor". */
    /* `has_input` is true if the file has a calibrated scale for the input of the layer. */
    bool has_input;
} cli_layer;

typedef struct cli_layers {
    cli_layer *items;
    size_t count, room;
    struct json_t *inputs; /* `inputs` holds the names of the input scales in all files. */
} cli_layers;

/* Adds the matrices of a file to the list of layers. The function copies their names. */
void cli_layers_add(cli_layers *layers, const bsmm_file *file);
/* Sets has_input of each layer whose input scale is in one of the files. The caller must have added
 * all files before. */
void cli_layers_find_inputs(cli_layers *layers);
void cli_layers_free(cli_layers *layers);

/* Returns the text of quantization_config for these layers, in the form of their checkpoint family.
 * If no layer is quantized, returns NULL and sets *why to NULL. If the family has no such text,
 * returns NULL and stores the reason in *why. The caller frees the text. */
char *cli_config_of(const cli_layers *layers, const char **why);
/* Returns the text of hf_quant_config.json, a second file that ModelOpt writes beside config.json,
 * or NULL if the family of the layers has none. The caller frees the text. */
char *cli_second_config_of(const cli_layers *layers);

/* Returns the text of a JSON object after replacing the value of its member `key` by `value`. If
 * `value` is NULL, the member is removed. All other bytes stay unchanged. Returns NULL if the text
 * is not an object. The caller frees the result. */
char *cli_config_replace(const char *text, const char *key, const char *value);

/* Returns the text of the value of a JSON object's member `key`, or NULL if the object has no such
 * member. If several members have this key, the last one counts. The caller frees the result. */
char *cli_config_member(const char *text, const char *key);

/* Returns the text with the words NaN, Infinity and -Infinity in quotes where they are values.
 * Python's json module writes such values, and JSON parsers refuse them. The caller frees the
 * result. */
char *cli_config_quote_words(const char *text);

#endif
