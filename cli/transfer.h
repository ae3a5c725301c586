/* One file into another, weight by weight: what quantize, dequantize and convert share. Everything
 * goes from mapping to mapping, so memory stays bounded whatever the size. */
#ifndef CLI_TRANSFER_H
#define CLI_TRANSFER_H

#include "command.h"

/* The fields that the three commands share; first in their values. */
typedef struct cli_transfer_values {
    const char *out;
    cli_list include, exclude;
    bool json, strict;
} cli_transfer_values;

/* A scale layout as the commands take it; name NULL: not given. */
typedef struct cli_layout_values {
    const char *name;
    int64_t tile_rows, tile_cols;
} cli_layout_values;

/* What a weight becomes. */
typedef struct cli_target {
    bsmm_matrix matrix;
    const char *family; /* NULL: the first that can */
    bool preferred;     /* the family is only a wish: another may take its place */
} cli_target;

typedef struct cli_transfer {
    const char *verb, *participle; /* "quantize", "quantized" */
    const cli_transfer_values *values;
    const void *options; /* of the command */
    /* Whether a weight is changed when no --include says so. */
    bool (*wants)(const void *options, const bsmm_weight *weight);
    bool wants_quantized; /* then broken weights, which are quantized ones, are an error */
    /* What it becomes. The target comes with the source's description, without its memory, and no
     * family. False with a message printed. */
    bool (*describe)(const void *options, const bsmm_weight *weight, cli_target *target);
    /* Makes the target's content from the source's. NULL, or why it cannot. */
    const char *(*fill)(const void *options, const bsmm_matrix *source, const bsmm_matrix *target);
    /* After a weight's last matrix; may be NULL. */
    void (*finish)(const void *options, const bsmm_weight *weight);
} cli_transfer;

#define CLI_OPTIONS_TRANSFER(type, verb)                                                           \
    {.name = "output",                                                                             \
     .letter = 'o',                                                                                \
     .arg = "FILE",                                                                                \
     .help = "file to write (safetensors)",                                                        \
     .kind = CLI_OUTPUT,                                                                           \
     .offset = offsetof(type, transfer.out),                                                       \
     .required = true},                                                                            \
        {.name = "include",                                                                        \
         .arg = "GLOB",                                                                            \
         .help = verb " the weights whose name matches; may be repeated",                          \
         .kind = CLI_LIST,                                                                         \
         .offset = offsetof(type, transfer.include)},                                              \
        {.name = "strict",                                                                         \
         .help = "fail where a tensor of GGUF has a type that is not decoded, instead of leaving " \
                 "it out",                                                                         \
         .kind = CLI_FLAG,                                                                         \
         .offset = offsetof(type, transfer.strict)},                                               \
    {                                                                                              \
        .name = "exclude", .arg = "GLOB", .help = "but not these; may be repeated",                \
        .kind = CLI_LIST, .offset = offsetof(type, transfer.exclude)                               \
    }

#define CLI_OPTIONS_LAYOUT(type, what)                                                             \
    {.name = "layout",                                                                             \
     .letter = 'l',                                                                                \
     .arg = "LAYOUT",                                                                              \
     .help = what,                                                                                 \
     .kind = CLI_TEXT,                                                                             \
     .offset = offsetof(type, layout.name)},                                                       \
        {.name = "tile-rows",                                                                      \
         .arg = "COUNT",                                                                           \
         .help = "rows of scales in a tile of tile_contiguous",                                    \
         .kind = CLI_SIZE,                                                                         \
         .offset = offsetof(type, layout.tile_rows)},                                              \
    {                                                                                              \
        .name = "tile-cols", .arg = "COUNT",                                                       \
        .help = "columns of scales in a tile of tile_contiguous", .kind = CLI_SIZE,                \
        .offset = offsetof(type, layout.tile_cols)                                                 \
    }

/* Whether the weight is stored in blocks of ggml, which no file that is written has: it is decoded.
 */
bool cli_is_ggml(const bsmm_weight *weight);

/* Replaces the target's scale layout when one is given. */
void cli_layout_apply(const cli_layout_values *layout, bsmm_matrix *target);

extern const cli_column cli_transfer_columns[];

typedef struct cli_transfer_result {
    uint64_t changed, kept, left_out; /* weights changed; weights and tensors copied; neither */
} cli_transfer_result;

/* Runs it on a file; returns an exit status, with a message printed unless it is CLI_OK. Nothing is
 * written unless all goes well. */
int cli_transfer_run(const cli_transfer *transfer, const char *in, cli_transfer_result *result);
void cli_transfer_print(const cli_transfer *transfer, const cli_transfer_result *result);
/* Both; returns an exit status. */
int cli_transfer_main(const cli_transfer *transfer, const char *in);

#endif
