/* Implements `bsmm quantize`, which converts weights of a file to a block-scaled format. */
#include "common.h"
#include "device.h"
#include "files.h"
#include "fit.h"
#include "fused.h"
#include "product.h"
#include "report.h"
#include "tables.h"
#include "transfer.h"
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* Describes the format to which the command quantizes some weights, and names these weights by a
 * pattern. */
typedef struct choice {
    char *pattern; /* The pattern that the names of the weights must match. */
    bsmm_format format;
    const char *recipe;
    /* The kind of global scale that the recipe writes, i.e. multiplier or divisor
       (bsmm_global). */
    uint32_t global_kind;
    bool used; /* True if this choice decides the format of at least one weight. */
} choice;

typedef struct values {
    cli_transfer_values transfer;
    bsmm_format format;
    cli_list tensors; /* Holds the options --tensor, each of which is "PATTERN=FORMAT". */
    /* The list begins with the option --format, and the options --tensor follow. For each weight,
       the last choice with a matching pattern applies. */
    choice *choices;
    size_t choice_count;
    cli_layout_values layout;
    const char *recipe, *family, *device;
    bench_device *opened;
    int64_t threads;
    bool pow2, one_level, report;
    /* Collects the error reports of the current weight's matrices for the table of reports. */
    cli_report *reports;
    /* The largest magnitude of the weights that share a global scale with this weight, or 0 if
     * there are none. */
    float *amax;
} values;

/* These patterns match names of weights that are usually not quantized. From token_embd on, they
 * are names in GGUF files. llama.cpp computes with the weights after output.weight in f32 only
 * (llama-quant.cpp). */
static const char *const spared[] = {"*[Ee]mbed*",         "*[Nn]orm*",        "*lm_head*",
                                     "token_embd.*",       "output.weight",    "position_embd.*",
                                     "token_types.*",      "*.ffn_gate_inp.*", "*.ssm_conv1d.*",
                                     "*.shortconv.conv.*", "*.time_mix_*"};

static choice *choice_of(const values *options, const char *name) {
    size_t i = options->choice_count - 1;
    while (i > 0 && fnmatch(options->choices[i].pattern, name, 0))
        i--;
    return &options->choices[i];
}

static bool wants(const void *arguments, const bsmm_weight *weight) {
    const values *options = arguments;
    size_t length = strlen(weight->name);
    bool named = length > 7 && !strcmp(weight->name + length - 7, ".weight");
    const choice *to = choice_of(options, weight->name);
    bool whole = to->format.block_rows != 1 || weight->cols % to->format.block_cols == 0;
    if (to != options->choices) return cli_is_plain(weight->format);
    for (size_t i = 0; i < sizeof spared / sizeof spared[0]; i++)
        if (!fnmatch(spared[i], weight->name, 0)) return false;
    return cli_is_plain(weight->format) && whole && named;
}

static bool has_word(const char *words, const char *word) {
    size_t length = strlen(word);
    for (const char *at = words; (at = strstr(at, word)); at += length)
        if ((at == words || at[-1] == ' ') && (!at[length] || at[length] == ' ')) return true;
    return false;
}

static bool describe(const void *arguments, const bsmm_weight *weight, cli_target *target) {
    const values *options = arguments;
    if (!cli_is_plain(weight->format)) {
        cli_fail("%s: is %s already; only f32, f16 and bf16 weights are quantized", weight->name,
                 cli_format_text(weight->format).text);
        return false;
    }
    target->matrix.order = BSMM_ORDER_ROW;
    choice *to = choice_of(options, weight->name);
    to->used = true;
    target->matrix.format = to->format;
    target->matrix.global_kind = to->global_kind;
    cli_layout_apply(&options->layout, &target->matrix);
    /* If the user names no checkpoint family, the command prefers the family with the same name as
       the recipe. */
    target->preferred = !options->family;
    target->family = options->family ? options->family : to->recipe;
    return true;
}

/* Returns `name` if a recipe of this name can write the format, else NULL. */
static const char *recipe_for(const char *name, bsmm_format to) {
    bsmm_recipe_info info = BSMM_INIT(bsmm_recipe_info);
    const char *format = bsmm_format_name(to);
    for (uint32_t i = 0; name && !bsmm_recipe_at(i, &info); i++)
        if (!strcmp(info.name, name) && has_word(info.formats, format)) return name;
    return NULL;
}

/* Returns the recipe of the family that is written, or NULL if it has none for the format. */
static const char *family_recipe(const values *options, bsmm_format to) {
    const bool gguf = !strcmp(cli_kind_of(options->transfer.out), "gguf");
    return recipe_for(gguf ? "ggml" : options->family, to);
}

static bool same_format(bsmm_format a, bsmm_format b) {
    return a.elem == b.elem && a.scale == b.scale && a.block_rows == b.block_rows &&
           a.block_cols == b.block_cols;
}

/* Returns the recipe for a format. All choices of one format have the same recipe. */
static const char *recipe_of(const values *options, bsmm_format format) {
    for (size_t i = 0; i < options->choice_count; i++)
        if (same_format(options->choices[i].format, format)) return options->choices[i].recipe;
    return NULL;
}

static bsmm_quantize_desc desc_of(const values *options, bsmm_format format) {
    bsmm_quantize_desc desc = BSMM_INIT(bsmm_quantize_desc);
    desc.recipe = recipe_of(options, format);
    if (*options->amax != 0) desc.amax = options->amax;
    desc.flags = (options->pow2 ? BSMM_QUANTIZE_POW2 : 0u) |
                 (options->one_level ? BSMM_QUANTIZE_ONE_LEVEL : 0u);
    desc.threads = (uint32_t)options->threads;
    desc.device = options->device;
    return desc;
}

static const char *fill_here(const values *options, const bsmm_matrix *source,
                             const bsmm_matrix *target, bsmm_quantize_report *report) {
    bsmm_quantize_desc desc = desc_of(options, target->format);
    desc.src = source;
    desc.dst = target;
    return cli_reason(bsmm_quantize(&desc, report));
}

/* Quantizes on another device. The function copies the source to the device and the result back to
 * the host. The host then computes the error report. */
static const char *fill_there(const values *options, const bsmm_matrix *source,
                              const bsmm_matrix *target, bsmm_quantize_report *report) {
    bsmm_matrix from, to;
    bench_device *device = options->opened;
    bsmm_quantize_desc desc = desc_of(options, target->format);
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
        return bench_device_error();
    if (desc.amax) desc.amax = there.data;
    const char *why = cli_reason(bsmm_quantize(&desc, NULL));
    if (!why && !bench_device_get(device, &to, target)) why = bench_device_error();
    bench_device_reset(device);
    return why || !report ? why : cli_reason(bsmm_compare(source, target, report));
}

static const char *fill(const void *arguments, const bsmm_matrix *source,
                        const bsmm_matrix *target) {
    const values *options = arguments;
    bsmm_quantize_report report = BSMM_INIT(bsmm_quantize_report);
    bsmm_quantize_report *wanted = options->report ? &report : NULL;
    const char *why =
        (options->opened->kind->is_host ? fill_here : fill_there)(options, source, target, wanted);
    if (!why && wanted) cli_report_add(options->reports, wanted);
    return why;
}

static void finish(const void *arguments, const bsmm_weight *weight) {
    const values *options = arguments;
    if (options->report)
        cli_report_row(options->reports, weight->name,
                       bsmm_format_name(choice_of(options, weight->name)->format));
}

/* Warns of every option --tensor that matches no weight, because its pattern may be a typing
 * error. */
static void planned(const void *arguments) {
    const values *options = arguments;
    for (size_t i = 1; i < options->choice_count; i++)
        if (!options->choices[i].used)
            cli_warn("--tensor: '%s' decides the format of no weight",
                     options->tensors.items[i - 1]);
}

typedef struct fused_context {
    const cli_transfer *transfer;
    const bsmm_file *file;
} fused_context;

/* Tells whether the command quantizes both weights, and to the same format. */
static bool is_alike(const void *arguments, const bsmm_weight *one, const bsmm_weight *other) {
    const fused_context *context = arguments;
    const values *options = context->transfer->options;
    return cli_transfer_selects(context->transfer, context->file, other, false) &&
           same_format(choice_of(options, one->name)->format,
                       choice_of(options, other->name)->format);
}

static const char *prepare(const cli_transfer *transfer, const bsmm_file *file,
                           const bsmm_weight *weight) {
    const values *options = transfer->options;
    const fused_context context = {transfer, file};
    *options->amax = 0;
    if (choice_of(options, weight->name)->format.scale != BSMM_SCALE_E4M3) return NULL;
    return cli_fused_amax(file, weight, is_alike, &context, options->amax);
}

static int run_reported(const cli_transfer *transfer, values *options, const char *in) {
    cli_transfer_result result;
    options->reports = cli_report_open(options->transfer.json);
    int status = cli_transfer_run(transfer, in, &result);
    cli_report_close(options->reports);
    if (status == CLI_OK && !options->transfer.json) cli_transfer_print(transfer, &result);
    return status;
}

/* Returns the flags that the recipe accepts for the format. */
static uint32_t known_flags(const choice *to) {
    bsmm_recipe_info info = BSMM_INIT(bsmm_recipe_info);
    bsmm_preset_info preset = BSMM_INIT(bsmm_preset_info);
    const char *format = bsmm_format_name(to->format), *name = to->recipe;
    for (uint32_t i = 0; !name && !bsmm_preset_at(i, &preset); i++)
        if (!strcmp(preset.name, format)) name = preset.default_recipe;
    for (uint32_t i = 0; name && !bsmm_recipe_at(i, &info); i++)
        if (!strcmp(info.name, name) && has_word(info.formats, format)) return info.flags;
    return 0;
}

static int check_flags(const values *options, const choice *to) {
    uint32_t known = known_flags(to);
    const char *format = bsmm_format_name(to->format);
    if (options->pow2 && !(known & BSMM_QUANTIZE_POW2))
        return cli_usage("--pow2: the recipe for %s has no such choice; see 'bsmm recipes'",
                         format);
    if (options->one_level && !(known & BSMM_QUANTIZE_ONE_LEVEL))
        return cli_usage("--one-level: the recipe for %s has no such choice; see 'bsmm recipes'",
                         format);
    return CLI_OK;
}

/* Finds the kind of global scale (multiplier or divisor) that the recipe writes. Fails with a
 * usage error if the recipe cannot write the format. */
static int check_recipe(choice *to, const char *option) {
    const char *why = cli_recipe_refusal(to->recipe, to->format, BSMM_GLOBAL_MULTIPLIER);
    if (!why) return CLI_OK;
    why = cli_recipe_refusal(to->recipe, to->format, BSMM_GLOBAL_DIVISOR);
    if (!why) to->global_kind = BSMM_GLOBAL_DIVISOR;
    return why ? cli_usage("%s: %s", to->recipe ? "--recipe" : option, why) : CLI_OK;
}

static bsmm_matrix target_of(const values *options, const choice *to) {
    bsmm_matrix target = BSMM_INIT(bsmm_matrix);
    target.format = to->format;
    target.global_kind = to->global_kind;
    cli_layout_apply(&options->layout, &target);
    return target;
}

static int check_family(const values *options, const choice *to) {
    const bsmm_matrix target = target_of(options, to);
    const char *why = options->family
                          ? cli_family_refusal(options->family, &target, options->transfer.out)
                          : NULL;
    return why ? cli_usage("--family: %s", why) : CLI_OK;
}

/* Checks that the checkpoint family with the recipe's name can store the format. A user who names
 * the recipe of a project expects files of that project, so the user must request any other family
 * explicitly. */
static int check_own_family(const values *options, const choice *to) {
    bsmm_matrix target = BSMM_INIT(bsmm_matrix);
    target.format = to->format;
    target.global_kind = to->global_kind;
    const char *out = options->transfer.out;
    if (options->family || !to->recipe || !cli_is_family(to->recipe)) return CLI_OK;
    if (!strcmp(cli_kind_of(out), "gguf") || !cli_family_refusal(to->recipe, &target, out))
        return CLI_OK;
    char *families = cli_families_for(&target, out);
    int status = cli_usage("--recipe: the family %s does not write %s; name one that does with "
                           "--family: %s",
                           to->recipe, bsmm_format_name(to->format), families);
    free(families);
    return status;
}

static int check_choice(const values *options, choice *to, const char *option) {
    int status = check_recipe(to, option);
    if (status == CLI_OK) status = check_flags(options, to);
    if (status == CLI_OK) status = check_own_family(options, to);
    return status == CLI_OK ? check_family(options, to) : status;
}

/* Parses an option --tensor. The pattern may contain '=', so the last '=' separates the pattern
 * from the format. */
static int take_tensor(const values *options, const char *text, choice *to) {
    const char *end = strrchr(text, '=');
    if (!end || end == text) return cli_usage("--tensor: '%s' is not PATTERN=FORMAT", text);
    if (!cli_parse_format(end + 1, &to->format))
        return cli_usage("--tensor: %s", cli_parse_error());
    to->pattern = cli_alloc((size_t)(end - text) + 1, 1);
    memcpy(to->pattern, text, (size_t)(end - text));
    to->recipe = recipe_for(options->recipe, to->format);
    if (!to->recipe) to->recipe = family_recipe(options, to->format);
    return check_choice(options, to, "--tensor");
}

static int take_choices(values *options) {
    choice *first = options->choices = cli_alloc(options->tensors.count + 1, sizeof(choice));
    *first = (choice){.format = options->format, .recipe = options->recipe};
    if (!first->recipe) first->recipe = family_recipe(options, first->format);
    options->choice_count = 1;
    int status = check_choice(options, first, "--format");
    for (size_t i = 0; i < options->tensors.count && status == CLI_OK; i++)
        status = take_tensor(options, options->tensors.items[i],
                             &options->choices[options->choice_count++]);
    return status;
}

static void free_choices(const values *options) {
    for (size_t i = 0; i < options->choice_count; i++)
        free(options->choices[i].pattern);
    free(options->choices);
}

static int run_on_device(values *options, const char *in) {
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
    if (!options->opened) return cli_fail("%s", bench_device_error());
    int status =
        options->report ? run_reported(&transfer, options, in) : cli_transfer_main(&transfer, in);
    bench_device_close(options->opened);
    return status;
}

static int run(const void *arguments, char **args, int count) {
    values options = *(const values *)arguments;
    float amax = 0;
    (void)count;
    options.amax = &amax;
    int status = take_choices(&options);
    if (status == CLI_OK) status = run_on_device(&options, args[0]);
    free_choices(&options);
    return status;
}
static const cli_option options[] = {
    CLI_OPTIONS_TRANSFER(values, "quantize"),
    {.name = "format",
     .letter = 'f',
     .arg = "FORMAT",
     .help = "format to quantize into",
     .kind = CLI_FORMAT,
     .offset = offsetof(values, format),
     .required = true},
    {.name = "tensor",
     .arg = "GLOB=FORMAT",
     .help = "format of the weights whose name matches, instead of --format; may be repeated",
     .kind = CLI_LIST,
     .offset = offsetof(values, tensors)},
    {.name = "recipe",
     .letter = 'r',
     .arg = "RECIPE",
     .help = "whose bytes to reproduce; unless given, the family's own or the format's default",
     .kind = CLI_TEXT,
     .offset = offsetof(values, recipe)},
    CLI_OPTIONS_LAYOUT(values, "scale layout, row_major unless given"),
    {.name = "family",
     .arg = "FAMILY",
     .help = "checkpoint family to write; unless given, the recipe's own or the first that can",
     .kind = CLI_TEXT,
     .offset = offsetof(values, family)},
    {.name = "pow2",
     .help = "round f32 scales to powers of two",
     .kind = CLI_FLAG,
     .offset = offsetof(values, pow2)},
    {.name = "one-level",
     .help = "no scale of the whole tensor",
     .kind = CLI_FLAG,
     .offset = offsetof(values, one_level)},
    {.name = "report",
     .help = "print each weight's error",
     .kind = CLI_FLAG,
     .offset = offsetof(values, report)},
    CLI_OPTION_DEVICE(values),
    CLI_OPTION_THREADS(values),
    CLI_OPTION_JSON_AT(values, transfer.json),
    {0},
};

const cli_command cli_quantize = {
    .name = "quantize",
    .args = "IN",
    .summary = "Quantize the weights of a model into a block-scaled format",
    .text = "Without --include, these are quantized: f32, f16 and bf16 matrices called *.weight "
            "(or the array of a .npy file) whose columns are whole blocks, except *embed*, *norm*, "
            "*lm_head* and GGUF's token_embd and output. All other tensors are copied as they are; "
            "those "
            "of GGUF's quantized types as the f32 values that ggml makes of them. A folder as "
            "output gets shards with an index, config.json with the family's quantization_config, "
            "and copies of the input's other files; in it, weights that engines multiply as one "
            "matrix (q_proj, k_proj and v_proj; gate_proj and up_proj) share their global scale.",
    .examples = "  bsmm quantize model.safetensors -o out.safetensors --format nvfp4 --report\n"
                "  bsmm quantize in.npy -o out.safetensors --format mxfp4 --recipe rceil\n"
                "  bsmm quantize model.safetensors -o out.safetensors --format nvfp4 \\\n"
                "      --recipe modelopt --include '*.mlp.*' --exclude '*.0.*'\n"
                "  bsmm quantize MODEL -o QUANTIZED --format nvfp4 --family compressed-tensors \\\n"
                "      --tensor '*.down_proj.*=mxfp8'\n",
    .options = options,
    .output = {cli_report_columns, cli_transfer_columns},
    .values_size = sizeof(values),
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
