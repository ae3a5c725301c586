/* Implements `bsmm convert`, which converts quantized weights to another format, checkpoint family
 * or scale layout without loss. */
#include "common.h"
#include "fit.h"
#include "transfer.h"
#include "whole.h"
#include <stdlib.h>
#include <string.h>

typedef struct values {
    cli_transfer_values transfer;
    bsmm_format to;
    cli_layout_values layout;
    const char *family;
    bool round_global;
} values;

static bool wants(const void *options, const bsmm_file *file, const bsmm_weight *weight) {
    (void)file;
    (void)options;
    return weight->format.scale != BSMM_SCALE_NONE;
}

/* Prints a warning for each input scale (the scale of a layer's input) that the file has for a
 * weight and that the command does not write. `from` is the rule by which the file's checkpoint
 * family stores input scales; NULL means that the family has none for this weight. If `kept` is
 * true, the command writes the input scale that `from` describes, so there is no warning about it.
 */
static void warn_left_out(const bsmm_file *file, const bsmm_weight *weight,
                          const cli_input_rule *from, bool kept, const char *family,
                          const char *format) {
    bsmm_tensor tensor = BSMM_INIT(bsmm_tensor);
    const char *suffix;
    for (size_t i = 0; (suffix = cli_input_suffix_at(i)); i++) {
        const bool is_own = from && !strcmp(suffix, from->suffix);
        char *name = cli_input_scale_name(weight->name, suffix);
        const bool left_out = !bsmm_file_tensor_find(file, name, &tensor) && !(is_own && kept);
        if (left_out && is_own)
            cli_warn("%s: is left out, because %s has no scheme with input scales for %s", name,
                     family, format);
        if (left_out && !is_own)
            cli_warn("%s: is left out, because %s stores no input scale of this name", name,
                     weight->family);
        free(name);
    }
}

/* Describes the input scale of a converted weight. The old and the new checkpoint family compute
 * the scale with the same constant. If one family stores a divisor and the other family a factor,
 * the new scale is the reciprocal of the old scale. Otherwise both scales are equal. */
static bool describe_input(const bsmm_file *file, const bsmm_weight *weight, cli_target *target) {
    const bsmm_matrix *to = &target->matrix;
    uint64_t index;
    float scale = 0;
    bool found = false;
    if (bsmm_file_weight_find(file, weight->name, &index)) return true;
    const char *stored = cli_stored_name(file, index, weight);
    const char *name =
        cli_same_format(to->format, weight->format) ? stored : bsmm_format_name(to->format);
    const char *format = cli_written_name(target->family, name, to->format);
    const cli_input_rule *from = cli_input_rule_of(weight->family, stored);
    const cli_input_rule *rule = cli_input_rule_of(target->family, format);
    warn_left_out(file, weight, from, rule, target->family, format);
    if (!from || !rule) return true;
    if (!cli_input_scale_read(file, from, weight->name, &scale, &found)) return false;
    if (found) target->input = rule;
    target->input_scale = from->is_divisor == rule->is_divisor ? scale : 1 / scale;
    return true;
}

static bool describe(const void *arguments, const bsmm_file *file, const bsmm_weight *weight,
                     cli_target *target) {
    const values *options = arguments;
    bool stays = !options->to.elem || cli_same_format(options->to, weight->format);
    if (!stays) {
        target->matrix.format = options->to;
        target->matrix.global_scale = NULL;
    }
    cli_layout_apply(&options->layout, &target->matrix);
    target->preferred = !options->family;
    target->family = options->family ? options->family : weight->family;
    return describe_input(file, weight, target);
}

/* Converts between a checkpoint family that stores a global scale and one that stores its
 * reciprocal. The function first converts the weight with the unchanged global scale, and then
 * replaces the global scale by the reciprocal. */
static const char *convert_reciprocal(const bsmm_matrix *source, const bsmm_matrix *target) {
    bsmm_matrix moved = *target;
    moved.global_kind = source->global_kind;
    const char *why = cli_reason(bsmm_convert(source, &moved));
    if (!why) *target->global_scale = 1 / *source->global_scale;
    return why;
}

static const char *fill(const void *arguments, const bsmm_matrix *source,
                        const bsmm_matrix *target) {
    const values *options = arguments;
    bool reciprocal =
        source->global_scale && target->global_scale && source->global_kind != target->global_kind;
    if (reciprocal && options->round_global) return convert_reciprocal(source, target);
    const char *why = cli_reason(bsmm_convert(source, target));
    if (why && reciprocal) cli_fail("a global scale would change; --round-global allows it");
    return why;
}

/* Checks that the checkpoint family can store the format of --to. Without --to, the weights of the
 * file decide the format, so the command checks the format after opening the file. */
static int check_family(const values *options) {
    bsmm_matrix target = BSMM_INIT(bsmm_matrix);
    if (!options->family || !options->to.elem) return CLI_OK;
    target.format = options->to;
    cli_layout_apply(&options->layout, &target);
    const char *why = cli_family_refusal(options->family, &target, options->transfer.out);
    return why ? cli_usage("--family: %s", why) : CLI_OK;
}

static int run(const void *arguments, char **args, int count) {
    const values *options = arguments;
    (void)count;
    if (!options->to.elem && !options->family && !options->layout.name)
        return cli_usage("one of --to, --family and --layout is needed");
    int status = check_family(options);
    if (status != CLI_OK) return status;
    const cli_transfer transfer = {.verb = "convert",
                                   .participle = "converted",
                                   .values = &options->transfer,
                                   .options = options,
                                   .wants = wants,
                                   .wants_quantized = true,
                                   .drops_inputs = true,
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
    {.name = "round-global",
     .help = "let a global scale become its rounded reciprocal, as some families store it",
     .kind = CLI_FLAG,
     .offset = offsetof(values, round_global)},
    CLI_OPTIONS_LAYOUT(values, "scale layout; that of the file unless given"),
    CLI_OPTION_JSON_AT(values, transfer.json),
    {0},
};

const cli_command cli_convert = {
    .name = "convert",
    .args = "IN",
    .summary = "Move quantized weights to another format, family or scale layout, losslessly",
    .text =
        "No value changes. If the new format cannot hold a value exactly, the command writes "
        "nothing, "
        "and the message names the block. ModelOpt stores a global scale, and compressed-tensors "
        "its reciprocal, which is rarely exact: --round-global allows rounding it, as the "
        "converters "
        "of these projects do. A broken weight is an error unless --exclude names it.",
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
