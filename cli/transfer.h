/* Copies one file into another and changes its weights on the way. The commands quantize,
 * dequantize and convert share this code. Data moves directly from the mapping of the input to the
 * mapping of the output, so that memory use does not grow with the size of the file. */
#ifndef CLI_TRANSFER_H
#define CLI_TRANSFER_H

#include "calibration.h"

/* Holds the options that the commands quantize, dequantize and convert share. The struct is the
 * first field of each command's values. */
typedef struct cli_transfer_values {
    const char *out;
    cli_list include, exclude;
    /* `shard_size` is the largest size of a shard of an output folder in bytes. 0 means 5 GB. */
    int64_t shard_size;
    bool json, strict;
    /* `also_read` is the path of another file on which the output depends, or NULL. */
    const char *also_read;
} cli_transfer_values;

/* Holds the scale layout that the user requested. The name is NULL if the user requested none. */
typedef struct cli_layout_values {
    const char *name;
    int64_t tile_rows, tile_cols;
} cli_layout_values;

/* Describes the matrix and the checkpoint family with which the command writes a weight. */
typedef struct cli_target {
    bsmm_matrix matrix;
    /* `family` is the checkpoint family, or NULL for the first family that can store the weight. */
    const char *family;
    /* If `preferred` is true, the command may use another family when `family` cannot store the
     * weight. */
    bool preferred;
    /* `input` describes the tensor of the input scale that the command adds. It is NULL if there is
     * none. */
    const cli_input_rule *input;
    float input_scale;
} cli_target;

typedef struct cli_transfer {
    /* `verb` and `participle` are words for messages, e.g. "quantize" and "quantized". */
    const char *verb, *participle;
    const cli_transfer_values *values;
    const void *options; /* `options` holds the values of the options of the running command. */
    /* `wants` tells whether the command changes a weight by default, i.e. if the user did not give
     * --include. */
    bool (*wants)(const void *options, const bsmm_file *file, const bsmm_weight *weight);
    /* `wants_quantized` is true if the command changes quantized weights. A broken weight counts as
     * quantized, so it is an error for such a command. */
    bool wants_quantized;
    /* `drops_inputs` is true if the command leaves out the input scales of the weights that it
     * changes, because it makes new ones or none. */
    bool drops_inputs;
    /* Decides the format, scale layout and checkpoint family with which the command writes a
     * weight. Before the call, *target has the description of the source matrix and no family. On
     * failure, the function prints a message and returns false. */
    bool (*describe)(const void *options, const bsmm_file *file, const bsmm_weight *weight,
                     cli_target *target);
    /* The command calls this function once, after it has called `describe` for all weights. The
     * pointer may be NULL. */
    void (*planned)(const void *options, const bsmm_file *file);
    /* If the output is a folder, the command calls this function before it computes the matrices of
     * a weight. It returns NULL on success, otherwise the reason for the failure. The pointer may
     * be NULL. */
    const char *(*prepare)(const struct cli_transfer *transfer, const bsmm_file *file,
                           const bsmm_weight *weight);
    /* Computes the elements and scales of the matrix `target` from the matrix `source`. Returns
     * NULL on success, otherwise the reason for the failure. */
    const char *(*fill)(const void *options, const bsmm_matrix *source, const bsmm_matrix *target);
    /* The command calls this function after it has written the last matrix of a weight. The pointer
     * may be NULL. */
    void (*finish)(const void *options, const bsmm_weight *weight);
} cli_transfer;

#define CLI_OPTIONS_TRANSFER(type, verb)                                                           \
    {.name = "output",                                                                             \
     .letter = 'o',                                                                                \
     .arg = "OUT",                                                                                 \
     .help = "safetensors file to write, GGUF if OUT ends with .gguf, or the folder if IN is one " \
             "or OUT ends with /",                                                                 \
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
         .help = "fail where a tensor of GGUF is not decoded, instead of leaving "                 \
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

/* Tells whether the weight is stored in blocks of a ggml type. Only GGUF files can have such
 * blocks, so the command decodes the weight for other files. */
bool cli_is_ggml(const bsmm_weight *weight);

/* Gives the target matrix the scale layout that the user requested. Does nothing if the user
 * requested none. */
void cli_layout_apply(const cli_layout_values *layout, bsmm_matrix *target);

extern const cli_column cli_transfer_columns[];

typedef struct cli_transfer_result {
    /* `changed` counts the weights that the command changed, and `kept` counts the weights and
     * tensors that it copied. `left_out` counts the tensors that it left out. */
    uint64_t changed, kept, left_out;
    /* `bytes` is the size in bytes of the output file, or of all tensors in the output folder. */
    uint64_t bytes;
} cli_transfer_result;

/* Returns true if the command must change a weight, and false if it copies the weight. `broken` is
 * true if the library cannot read the weight. The function then treats the weight as a quantized
 * one. If the command copied it, users would believe that it was converted. */
bool cli_transfer_selects(const cli_transfer *transfer, const bsmm_file *file,
                          const bsmm_weight *weight, bool broken);
/* Copies the model at path `in` to the output file or folder (folder.h). On failure, the function
 * prints a message, returns an exit status other than CLI_OK and writes no output. */
int cli_transfer_run(const cli_transfer *transfer, const char *in, cli_transfer_result *result);
void cli_transfer_print(const cli_transfer *transfer, const cli_transfer_result *result);
/* Copies the file as `transfer` says and prints the numbers of changed, copied and left-out
 * weights. Returns an exit status. */
int cli_transfer_main(const cli_transfer *transfer, const char *in);

#endif
