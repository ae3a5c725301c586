/* Implements `bsmm quantize`, which converts weights of a file to a block-scaled format. */
#include "common.h"
#include "exclusion.h"
#include "experts.h"
#include "fidelity.h"
#include "files.h"
#include "fused.h"
#include "product.h"
#include "quantize_choice.h"
#include "quantize_joint.h"
#include "tables.h"
#include "whole.h"
#include <fnmatch.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* These patterns match names of weights that are usually not quantized. The patterns from
 * token_embd on match names in GGUF files. llama.cpp can use the weights that are listed after
 * output.weight only in f32 (llama-quant.cpp). The patterns for routers of experts and for
 * convolutions of states are ModelOpt's (_default_disabled_quantizer_cfg). */
static const char *const spared[] = {"*[Ee]mbed*",
                                     "*[Nn]orm*",
                                     "*lm_head*",
                                     "token_embd.*",
                                     "output.weight",
                                     "position_embd.*",
                                     "token_types.*",
                                     "*.ffn_gate_inp.*",
                                     "*.ssm_conv1d.*",
                                     "*.shortconv.conv.*",
                                     "*.time_mix_*",
                                     "*router*",
                                     "*.mlp.gate.*",
                                     "*block_sparse_moe.gate.*",
                                     "*shared_expert_gate.*",
                                     "*linear_attn.conv1d*",
                                     "*mixer.conv1d*",
                                     "*proj_out.*"};

static quantize_choice *choice_of(const quantize_values *options, const char *name) {
    size_t i = options->choice_count - 1;
    while (i > 0 && fnmatch(options->choices[i].pattern, name, 0))
        i--;
    return &options->choices[i];
}

static bool is_spared(const char *name) {
    for (size_t i = 0; i < sizeof spared / sizeof spared[0]; i++)
        if (!fnmatch(spared[i], name, 0)) return true;
    return false;
}

/* Tells whether the input's quantization configuration lists the layer of this weight among the
 * layers that are not quantized. */
static bool is_excluded(const quantize_values *options, const char *name) {
    char *layer = strcpy(cli_alloc(strlen(name) + 1, 1), name);
    layer[cli_module_length(name)] = '\0';
    const bool covered = cli_exclusion_covers(options->excluded, layer);
    free(layer);
    return covered;
}

/* Tells whether the name or the shape of a tensor says that it is the weight of a layer. */
static bool is_layer(const bsmm_file *file, const bsmm_weight *weight) {
    return cli_ends_with(weight->name, ".weight") ||
           cli_experts_of(file, weight) == CLI_EXPERTS_ROWS;
}

static bool wants(const void *arguments, const bsmm_file *file, const bsmm_weight *weight) {
    const quantize_values *options = arguments;
    const quantize_choice *to = choice_of(options, weight->name);
    bool whole = to->format.block_rows != 1 || !to->format.block_cols ||
                 weight->cols % to->format.block_cols == 0;
    if (to != options->choices) return cli_is_plain(weight->format);
    return cli_is_plain(weight->format) && whole && !is_spared(weight->name) &&
           is_layer(file, weight) && !is_excluded(options, weight->name);
}

/* Sets in *target the input scale that the command adds to a weight. It sets none if the user gave
 * no --input-scales, or if the checkpoint family cannot store an input scale with this format. */
static bool describe_input(const quantize_values *options, const char *weight, const char *format,
                           cli_target *target) {
    double amax;
    if (!options->calibration || !cli_input_rule_of(options->family, format)) return true;
    const char *written = cli_written_name(options->family, format, target->matrix.format);
    const cli_input_rule *rule = cli_input_rule_of(options->family, written);
    if (!cli_calibration_find(options->calibration, weight, &amax)) return false;
    if (!rule) {
        cli_warn("%s: gets no input scale, because %s stores it as %s, which has none", weight,
                 options->family, written);
        return true;
    }
    target->input = rule;
    target->input_scale = cli_input_scale(rule, amax);
    if (cli_input_scale_is_valid(target->input_scale)) return true;
    cli_fail("%s: --input-scales: the largest magnitude %g gives a scale of %g; the scale and its "
             "reciprocal must be finite",
             weight, amax, (double)target->input_scale);
    return false;
}

/* Returns the checkpoint family that the user named. If the user named none, returns the family
 * that the command prefers, or NULL. */
static const char *family_of(const quantize_values *options, const quantize_choice *to) {
    if (options->family) return options->family;
    return cli_is_whole(to->format) ? "compressed-tensors" : to->recipe;
}

static bool describe(const void *arguments, const bsmm_file *file, const bsmm_weight *weight,
                     cli_target *target) {
    const quantize_values *options = arguments;
    (void)file;
    if (!cli_is_plain(weight->format)) {
        cli_fail("%s: is %s already; only f32, f16 and bf16 weights are quantized", weight->name,
                 cli_format_text(weight->format).text);
        return false;
    }
    target->matrix.order = BSMM_ORDER_ROW;
    quantize_choice *to = choice_of(options, weight->name);
    to->used = true;
    target->matrix.format = cli_whole_format(to->format, weight->rows, weight->cols);
    target->matrix.global_kind = to->global_kind;
    cli_layout_apply(&options->layout, &target->matrix);
    /* If the user names no checkpoint family, the command prefers the family with the same name as
       the recipe. */
    target->preferred = !options->family;
    target->family = family_of(options, to);
    return describe_input(options, weight->name, quantize_format_name(to), target);
}

/* Returns the recipe by which the command quantizes to the format of `target`. All weights of this
 * format have the same recipe. */
static const char *recipe_of(const quantize_values *options, const bsmm_matrix *target) {
    for (size_t i = 0; i < options->choice_count; i++) {
        const quantize_choice *to = &options->choices[i];
        if (cli_same_format(cli_whole_format(to->format, target->rows, target->cols),
                            target->format))
            return to->recipe;
    }
    return NULL;
}

static bsmm_quantize_desc desc_of(const quantize_values *options, const bsmm_matrix *target) {
    bsmm_quantize_desc desc = BSMM_INIT(bsmm_quantize_desc);
    desc.recipe = recipe_of(options, target);
    if (*options->amax != 0) desc.amax = options->amax;
    desc.flags = (options->pow2 ? BSMM_QUANTIZE_POW2 : 0u) |
                 (options->one_level ? BSMM_QUANTIZE_ONE_LEVEL : 0u);
    desc.threads = (uint32_t)options->threads;
    desc.device = options->device;
    return desc;
}

static const char *fill_here(const quantize_values *options, const bsmm_matrix *source,
                             const bsmm_matrix *target, bsmm_quantize_report *report) {
    bsmm_quantize_desc desc = desc_of(options, target);
    desc.src = source;
    desc.dst = target;
    return cli_reason(bsmm_quantize(&desc, report));
}

static const char *compare_here(const quantize_values *options, const bsmm_matrix *source,
                                const bsmm_matrix *target, bsmm_quantize_report *report) {
    bsmm_exec exec = BSMM_INIT(bsmm_exec);
    exec.threads = (uint32_t)options->threads;
    return cli_reason(bsmm_compare_on(&exec, source, target, report));
}

/* Quantizes on a device other than the CPU. The function copies the source to the device and the
 * result back to the host. The host then computes the error report. */
static const char *fill_there(const quantize_values *options, const bsmm_matrix *source,
                              const bsmm_matrix *target, bsmm_quantize_report *report) {
    bsmm_matrix from, to;
    bench_device *device = options->opened;
    bsmm_quantize_desc desc = desc_of(options, target);
    desc.src = &from;
    desc.dst = &to;
    desc.stream = bench_device_stream(device);
    bsmm_matrix amax = BSMM_INIT(bsmm_matrix), there;
    amax.format.elem = BSMM_ELEM_F32;
    amax.rows = amax.cols = 1;
    amax.data = options->amax;
    if (!bench_device_put(device, source, true, &from) ||
        !bench_device_put(device, target, true, &to) ||
        (desc.amax && !bench_device_put(device, &amax, true, &there)))
        return cli_option_message(bench_device_error());
    if (desc.amax) desc.amax = there.data;
    const char *why = cli_reason(bsmm_quantize(&desc, NULL));
    if (!why && !bench_device_get(device, &to, target))
        why = cli_option_message(bench_device_error());
    bench_device_reset(device);
    return why || !report ? why : compare_here(options, source, target, report);
}

static const char *fill_quietly(const void *arguments, const bsmm_matrix *source,
                                const bsmm_matrix *target) {
    const quantize_values *options = arguments;
    const bool is_host = options->opened->kind->is_host;
    return (is_host ? fill_here : fill_there)(options, source, target, NULL);
}

/* Returns true if this weight must get the same fp32 scale as some other weights. *options->amax is
 * then the largest magnitude of all these weights. It is 0 if the weight shares no scale. */
static bool is_joint(const quantize_values *options, const bsmm_matrix *source,
                     const bsmm_matrix *target) {
    return *options->amax != 0 && target->format.scale == BSMM_SCALE_F32 &&
           source->order == BSMM_ORDER_ROW;
}

static const char *fill(const void *arguments, const bsmm_matrix *source,
                        const bsmm_matrix *target) {
    const quantize_values *options = arguments;
    bsmm_quantize_report report = BSMM_INIT(bsmm_quantize_report);
    bsmm_quantize_report *wanted = options->report ? &report : NULL;
    const char *why;
    if (is_joint(options, source, target)) {
        why = quantize_joint(source, target, *options->amax, fill_quietly, options);
        if (!why && wanted) why = compare_here(options, source, target, wanted);
    } else {
        const bool is_host = options->opened->kind->is_host;
        why = (is_host ? fill_here : fill_there)(options, source, target, wanted);
    }
    if (!why && wanted) cli_report_add(options->reports, wanted);
    return why;
}

static void finish(const void *arguments, const bsmm_weight *weight) {
    const quantize_values *options = arguments;
    if (options->report)
        cli_report_row(options->reports, weight->name,
                       quantize_format_name(choice_of(options, weight->name)));
}

/* Warns of each weight of experts that the command copies because its rows are inputs and not
 * outputs of the experts. With --include the user has chosen the weights, and there is no warning.
 */
static void warn_of_experts(const quantize_values *options, const bsmm_file *file) {
    bsmm_weight weight = BSMM_INIT(bsmm_weight);
    const bool chosen = options->transfer.include.count;
    for (uint64_t i = 0; !chosen && i < bsmm_file_weight_count(file); i++)
        if (!bsmm_file_weight_at(file, i, &weight) &&
            cli_experts_of(file, &weight) == CLI_EXPERTS_COLUMNS)
            cli_warn("%s: is copied, because its rows are inputs and not outputs of the experts",
                     weight.name);
}

/* Warns of every option --tensor that matches no weight, because its pattern may be misspelled. */
static void planned(const void *arguments, const bsmm_file *file) {
    const quantize_values *options = arguments;
    warn_of_experts(options, file);
    if (options->excluded && !options->transfer.include.count)
        cli_warn(
            "the layers that the input's configuration for ModelOpt excludes stay as they are; "
            "--include or --tensor quantizes them");
    for (size_t i = 1; i < options->choice_count; i++)
        if (!options->choices[i].used)
            cli_warn("--tensor: '%s' decides the format of no weight",
                     options->tensors.items[i - 1]);
    if (options->calibration) cli_calibration_warn(options->calibration);
}

typedef struct fused_context {
    const cli_transfer *transfer;
    const bsmm_file *file;
} fused_context;

/* Tells whether a weight in this format has one scale for the whole matrix: the second-level scale
 * of nvfp4, or an fp32 scale without blocks. */
static bool has_common_scale(bsmm_format format) {
    return format.scale == BSMM_SCALE_E4M3 ||
           (format.scale == BSMM_SCALE_F32 && !format.block_rows && !format.block_cols);
}

/* Returns true if two weights can share an fp32 scale. The command must quantize both to the same
 * format. Their types must also be the same, because quantize_joint stores the common amax in this
 * type. */
static bool is_alike(const void *arguments, const bsmm_weight *one, const bsmm_weight *other) {
    const fused_context *context = arguments;
    const quantize_values *options = context->transfer->options;
    const bsmm_format format = choice_of(options, one->name)->format;
    return cli_transfer_selects(context->transfer, context->file, other, false) &&
           cli_same_format(format, choice_of(options, other->name)->format) &&
           (format.scale != BSMM_SCALE_F32 || one->format.elem == other->format.elem);
}

static const char *prepare(const cli_transfer *transfer, const bsmm_file *file,
                           const bsmm_weight *weight) {
    const quantize_values *options = transfer->options;
    const fused_context context = {transfer, file};
    *options->amax = 0;
    if (!has_common_scale(choice_of(options, weight->name)->format)) return NULL;
    return cli_fused_amax(file, weight, is_alike, &context, (uint32_t)options->threads,
                          options->amax);
}

static int run_reported(const cli_transfer *transfer, quantize_values *options, const char *in) {
    cli_transfer_result result;
    options->reports = cli_report_open(options->transfer.json);
    int status = cli_transfer_run(transfer, in, &result);
    cli_report_close(options->reports);
    if (status == CLI_OK && !options->transfer.json) cli_transfer_print(transfer, &result);
    return status;
}

static int run_on_device(quantize_values *options, const char *in) {
    cli_transfer transfer = {.verb = "quantize",
                             .participle = "quantized",
                             .values = &options->transfer,
                             .options = options,
                             .wants = wants,
                             .describe = describe,
                             .planned = planned,
                             .prepare = prepare,
                             .fill = fill,
                             .finish = finish};
    options->opened = bench_device_open(options->device);
    if (!options->opened) return cli_fail("%s", cli_option_message(bench_device_error()));
    int status =
        options->report ? run_reported(&transfer, options, in) : cli_transfer_main(&transfer, in);
    bench_device_close(options->opened);
    return status;
}

static int run_calibrated(quantize_values *options, const char *in) {
    cli_calibration calibration;
    if (!cli_calibration_open(options->input_scales, &calibration)) return CLI_FAILED;
    options->calibration = &calibration;
    options->transfer.also_read = options->input_scales;
    const int status = run_on_device(options, in);
    cli_calibration_close(&calibration);
    options->calibration = NULL;
    return status;
}

static int run(const void *arguments, char **args, int count) {
    quantize_values options = *(const quantize_values *)arguments;
    float amax = 0;
    (void)count;
    json_t *excluded = cli_exclusion_read(args[0]);
    options.amax = &amax;
    options.excluded = excluded;
    int status = quantize_take_choices(&options);
    if (status == CLI_OK && options.input_scales)
        status = run_calibrated(&options, args[0]);
    else if (status == CLI_OK)
        status = run_on_device(&options, args[0]);
    quantize_free_choices(&options);
    json_decref(excluded);
    return status;
}
static const cli_option options[] = {
    CLI_OPTIONS_TRANSFER(quantize_values, "quantize"),
    {.name = "format",
     .letter = 'f',
     .arg = "TARGET",
     .help = "format to quantize into",
     .kind = CLI_WEIGHT_FORMAT,
     .offset = offsetof(quantize_values, format),
     .required = true,
     .lists_words = true},
    {.name = "tensor",
     .arg = "GLOB=TARGET",
     .help = "format of the weights whose name matches, instead of --format; may be repeated",
     .kind = CLI_LIST,
     .offset = offsetof(quantize_values, tensors)},
    {.name = "recipe",
     .letter = 'r',
     .arg = "RECIPE",
     .help = "whose bytes to reproduce; unless given, the family's own or the format's default",
     .kind = CLI_TEXT,
     .offset = offsetof(quantize_values, recipe)},
    CLI_OPTIONS_LAYOUT(quantize_values, "scale layout, row_major unless given"),
    {.name = "family",
     .arg = "FAMILY",
     .help = "checkpoint family to write; unless given, the recipe's own or the first that can",
     .kind = CLI_TEXT,
     .offset = offsetof(quantize_values, family)},
    {.name = "input-scales",
     .arg = "FILE",
     .help = "JSON object of layers' names and the largest magnitudes of their inputs; without it, "
             "schemes that need no input scale are written",
     .kind = CLI_TEXT,
     .offset = offsetof(quantize_values, input_scales)},
    {.name = "pow2",
     .help = "round f32 scales to powers of two",
     .kind = CLI_FLAG,
     .offset = offsetof(quantize_values, pow2)},
    {.name = "one-level",
     .help = "no scale of the whole tensor",
     .kind = CLI_FLAG,
     .offset = offsetof(quantize_values, one_level)},
    {.name = "report",
     .help = "print each weight's error",
     .kind = CLI_FLAG,
     .offset = offsetof(quantize_values, report)},
    CLI_OPTION_DEVICE(quantize_values),
    CLI_OPTION_FIDELITY(quantize_values),
    CLI_OPTION_THREADS(quantize_values),
    CLI_OPTION_JSON_AT(quantize_values, transfer.json),
    {0},
};

const cli_command cli_quantize = {
    .name = "quantize",
    .args = "IN",
    .summary = "Quantize the weights of a model into a block-scaled format",
    .text =
        "Without --include, the command quantizes f32, f16 and bf16 matrices called *.weight (or "
        "the "
        "array of a .npy file) if the number of columns is a multiple of the block size. It leaves "
        "out *embed*, *norm*, *lm_head*, routers of experts, and GGUF's token_embd and output. It "
        "also quantizes fused experts (*.experts.gate_up_proj and down_proj of three dimensions) "
        "if "
        "their rows are outputs. All other tensors are copied. A tensor of a quantized type of "
        "GGUF "
        "is copied as the f32 values to which ggml decodes it.\n\n"
        "If the output is a folder, it gets shards with an index, config.json with the "
        "quantization_config of the family, and copies of the input's other files and of its "
        "subfolders without weights. Inference engines "
        "multiply some weights as one matrix (q_proj, k_proj and v_proj; gate_proj and up_proj). "
        "In "
        "a folder, such weights get the same tensor scale.",
    .examples = "  bsmm quantize model.safetensors -o out.safetensors --format nvfp4 --report\n"
                "  bsmm quantize in.npy -o out.safetensors --format mxfp4 --recipe rceil\n"
                "  bsmm quantize model.safetensors -o out.safetensors --format nvfp4 \\\n"
                "      --recipe modelopt --include '*.mlp.*' --exclude '*.0.*'\n"
                "  bsmm quantize MODEL -o QUANTIZED --format nvfp4 --family compressed-tensors \\\n"
                "      --tensor '*.down_proj.*=mxfp8'\n",
    .options = options,
    .output = {cli_report_columns, cli_transfer_columns, cli_fidelity_columns},
    .values_size = sizeof(quantize_values),
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
