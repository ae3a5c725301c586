/* Handles ModelOpt's exclude_modules, i.e. a list of patterns of the layers that are not quantized.
 * hf_quant_config.json names the list exclude_modules, and config.json names it ignore. */
#ifndef CLI_EXCLUSION_H
#define CLI_EXCLUSION_H

#include "command.h"

struct json_t;

/* Returns the patterns that cover all `plain` layers and no `quantized` layer, sorted by name, as
 * ModelOpt writes them (modelopt/torch/export/quant_utils.py,
 * _prefix_wildcard_summarize_exclude_modules). For a layer "a.b.c", a pattern may be "a.b*",
 * "a.b.*" or the full name. The function takes the shortest one that covers no `quantized`
 * layer. */
struct json_t *cli_exclusion_of(const struct json_t *plain, const struct json_t *quantized);

/* Tells whether a pattern of the list names a layer. A pattern may have the wildcards of fnmatch
 * (vLLM, ModelOptQuantConfigBase.is_layer_excluded). A pattern also covers everything inside the
 * module that it names, as in lists of earlier versions of ModelOpt. */
bool cli_exclusion_covers(const struct json_t *patterns, const char *layer);

/* Reads from the model at path `in` the patterns of the layers that are not quantized. Returns NULL
 * if the model has none. */
struct json_t *cli_exclusion_read(const char *in);

#endif
