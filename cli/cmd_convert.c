/* bsmm convert: quantized weights into another format, family or layout, without loss. */
#include "common.h"
#include "transfer.h"
#include <string.h>

typedef struct values {
    cli_transfer_values transfer;
    bsmm_format to;
    cli_layout_values layout;
    const char *family;
} values;

static bool wants(const void *options, const bsmm_weight *weight) {
    (void)options;
    return weight->format.scale != BSMM_SCALE_NONE;
}

static bool same_format(bsmm_format a, bsmm_format b) {
    return a.elem == b.elem && a.scale == b.scale && a.block_rows == b.block_rows &&
           a.block_cols == b.block_cols;
}

static bool family_writes(const char *name) {
    bsmm_family_info info = BSMM_INIT(bsmm_family_info);
    for (uint32_t i = 0; !bsmm_family_at(i, &info); i++)
        if (!strcmp(info.name, name)) return info.writes;
    return false;
}

static bool describe(const void *arguments, const bsmm_weight *weight, bsmm_matrix *target,
                     const char **family) {
    const values *options = arguments;
    bool stays = !options->to.elem || same_format(options->to, weight->format);
    if (!stays) {
        target->format = options->to;
        target->global_scale = NULL;
    }
    cli_layout_apply(&options->layout, target);
    bool own = stays && !options->layout.name && family_writes(weight->family);
    *family = options->family ? options->family : own ? weight->family : NULL;
    return true;
}

static bool fill(const void *options, const bsmm_matrix *source, const bsmm_matrix *target) {
    (void)options;
    return !bsmm_convert(source, target);
}

static int run(const void *arguments, char **args, int count) {
    const values *options = arguments;
    (void)count;
    if (!options->to.elem && !options->family && !options->layout.name)
        return cli_usage("one of --to, --family and --layout is needed");
    const cli_transfer transfer = {.verb = "convert",
                                   .participle = "converted",
                                   .values = &options->transfer,
                                   .options = options,
                                   .wants = wants,
                                   .describe = describe,
                                   .fill = fill};
    return cli_transfer_main(&transfer, args[0]);
}

static const cli_option options[] = {
    CLI_OPTIONS_TRANSFER(values, "convert"),
    {.name = "to",
     .arg = "FORMAT",
     .help = "format to convert to: nvfp4 or fp8_block128 from mxfp4",
     .kind = CLI_FORMAT,
     .offset = offsetof(values, to)},
    {.name = "family",
     .arg = "FAMILY",
     .help = "checkpoint family to write; unless given, the file's own or the first that can",
     .kind = CLI_TEXT,
     .offset = offsetof(values, family)},
    CLI_OPTIONS_LAYOUT(values, "scale layout; that of the file unless given"),
    {.name = "json",
     .help = "print one JSON object per line",
     .kind = CLI_FLAG,
     .offset = offsetof(values, transfer.json)},
    {0},
};

const cli_command cli_convert = {
    .name = "convert",
    .args = "IN",
    .summary = "Move quantized weights to another format, family or scale layout, losslessly",
    .text = "Every value stays bit for bit what it was. Where that is impossible nothing is "
            "written, and the message names the block.",
    .examples = "  bsmm convert mx.safetensors -o nv.safetensors --to nvfp4\n"
                "  bsmm convert in.safetensors -o out.safetensors --family compressed-tensors\n"
                "  bsmm convert in.safetensors -o out.safetensors --layout cdna4_mfma16\n",
    .options = options,
    .output = {cli_transfer_columns},
    .values_size = sizeof(values),
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
