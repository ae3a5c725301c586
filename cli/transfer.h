/* Copies one file into another and changes its weights on the way. The commands quantize,
 * dequantize and convert share this code. Data goes directly from the mapping of the input to the
 * mapping of the output, so that memory use does not grow with the size of the file. */
#ifndef CLI_TRANSFER_H
#define CLI_TRANSFER_H

#include "command.h"

/* The options that the commands quantize, dequantize and convert share. The struct is the first
 * field of the values of each of these commands. */
typedef struct cli_transfer_values {
    const char *out;
    cli_list include, exclude;
    int64_t shard_size; /* largest size of a shard of a folder, in bytes; 0: 5 GB */
    bool json, strict;
} cli_transfer_values;

/* A scale layout that the user gave by options; name NULL: the user gave none. */
typedef struct cli_layout_values {
    const char *name;
    int64_t tile_rows, tile_cols;
} cli_layout_values;

/* The description of the matrix and the checkpoint family with which a weight is written. */
typedef struct cli_target {
    bsmm_matrix matrix;
    const char *family; /* checkpoint family; NULL: the first family that can store the weight */
    bool preferred;     /* if `family` cannot store the weight, another family may */
} cli_target;

typedef struct cli_transfer {
    const char *verb, *participle; /* words for messages: "quantize", "quantized" */
    const cli_transfer_values *values;
    const void *options; /* values of the options of the running command */
    /* Tells whether a weight is to be changed if the user gave no --include. */
    bool (*wants)(const void *options, const bsmm_weight *weight);
    /* True if the command changes quantized weights. A broken weight counts as quantized, so a
     * broken weight is an error for such a command. */
    bool wants_quantized;
    /* Decides the format, scale layout and family with which a weight is written. When the function
     * is called, *target has the description of the source without its memory, and no family. On
     * failure, prints a message and returns false. */
    bool (*describe)(const void *options, const bsmm_weight *weight, cli_target *target);
    /* Is called once, after `describe` was called for every weight that is changed. It may be NULL.
     */
    void (*planned)(const void *options);
    /* Is called before the matrices of a weight are computed, if the output is a folder. Returns
     * NULL on success, otherwise the reason for the failure. It may be NULL. */
    const char *(*prepare)(const struct cli_transfer *transfer, const bsmm_file *file,
                           const bsmm_weight *weight);
    /* Computes the elements and scales of the matrix `target` from the matrix `source`. Returns
     * NULL on success, otherwise the reason for the failure. */
    const char *(*fill)(const void *options, const bsmm_matrix *source, const bsmm_matrix *target);
    /* The command calls this function after it has written the last matrix of a weight. NULL: no
     * function is called. */
    void (*finish)(const void *options, const bsmm_weight *weight);
} cli_transfer;

#define CLI_OPTIONS_TRANSFER(type, verb)                                                           \
    {.name = "output",                                                                             \
     .letter = 'o',                                                                                \
     .arg = "OUT",                                                                                 \
     .help = "safetensors file to write, or the folder if IN is one or OUT ends with /",           \
     .kind = CLI_OUTPUT,                                                                           \
     .offset = offsetof(type, transfer.out),                                                       \
     .required = true},                                                                            \
        {.name = "include",                                                                        \
         .arg = "GLOB",                                                                            \
         .help = verb " the weights whose name matches; may be repeated",                          \
         .kind = CLI_LIST,                                                                         \
         .offset = offsetof(type, transfer.include)},                                              \
        {.name = "shard-size",                                                                     \
         .arg = "BYTES",                                                                           \
         .help = "largest shard of a folder, 5 GB unless given",                                   \
         .kind = CLI_SIZE,                                                                         \
         .offset = offsetof(type, transfer.shard_size)},                                           \
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

/* Tells whether the weight is stored in blocks of a ggml type. No output file can have such blocks,
 * so the weight is decoded. */
bool cli_is_ggml(const bsmm_weight *weight);

/* Sets the scale layout of the target to the layout that the user gave. Does nothing if the user
 * gave none. */
void cli_layout_apply(const cli_layout_values *layout, bsmm_matrix *target);

extern const cli_column cli_transfer_columns[];

typedef struct cli_transfer_result {
    /* changed: number of weights that were changed. kept: number of weights and tensors that were
     * copied. left_out: number of tensors that were left out. */
    uint64_t changed, kept, left_out;
    uint64_t bytes; /* size of the output file, or of all tensors of an output folder */
} cli_transfer_result;

/* Tells whether a weight is to be changed. A broken weight counts as quantized. If it were copied
 * unchanged, users would believe that the command had converted it. */
bool cli_transfer_selects(const cli_transfer *transfer, const bsmm_file *file,
                          const bsmm_weight *weight, bool broken);
/* Copies the model at path `in` to the output, a file or a folder (folder.h). Returns an exit
 * status, after printing a message if the status is not CLI_OK. The output is written only if
 * everything succeeds. */
int cli_transfer_run(const cli_transfer *transfer, const char *in, cli_transfer_result *result);
void cli_transfer_print(const cli_transfer *transfer, const cli_transfer_result *result);
/* Copies the file as `transfer` says and prints the numbers of changed, copied and left-out
 * weights. Returns an exit status. */
int cli_transfer_main(const cli_transfer *transfer, const char *in);

#endif
