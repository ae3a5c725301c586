/* bsmm quantize: converts weights of a file to a block-scaled format. */
#include "common.h"
#include "device.h"
#include "fit.h"
#include "product.h"
#include "report.h"
#include "tables.h"
#include "transfer.h"
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

typedef struct values {
    cli_transfer_values transfer;
    bsmm_format format;
    cli_layout_values layout;
    const char *recipe, *family, *device;
    bench_device *opened;
    int64_t threads;
    bool pow2, one_level, report;
    /* the recipe's form of global scale: multiplier or divisor (bsmm_global) */
    uint32_t global_kind;
    /* error reports of the matrices of the current weight; the table of reports */
    cli_report *reports;
} values;

/* Names of weights that are usually not quantized. The last two are names in GGUF files. */
static const char *const spared[] = {"*[Ee]mbed*", "*[Nn]orm*", "*lm_head*", "token_embd.*",
                                     "output.weight"};

static bool wants(const void *arguments, const bsmm_weight *weight) {
    const values *options = arguments;
    size_t length = strlen(weight->name);
    bool named = length > 7 && !strcmp(weight->name + length - 7, ".weight");
    bool whole = options->format.block_rows != 1 || weight->cols % options->format.block_cols == 0;
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
    target->matrix.format = options->format;
    target->matrix.global_kind = options->global_kind;
    cli_layout_apply(&options->layout, &target->matrix);
    /* If the user names no family, the family that has the same name as the recipe is preferred. */
    target->preferred = !options->family;
    target->family = options->family ? options->family : options->recipe;
    return true;
}

/* Returns the recipe that has the same name as the family, if this recipe can write the format. */
static const char *recipe_of(const values *options) {
    bsmm_recipe_info info = BSMM_INIT(bsmm_recipe_info);
    const char *format = bsmm_format_name(options->format);
    for (uint32_t i = 0; options->family && !bsmm_recipe_at(i, &info); i++)
        if (!strcmp(info.name, options->family) && has_word(info.formats, format))
            return options->family;
    return NULL;
}

static bsmm_quantize_desc desc_of(const values *options) {
    bsmm_quantize_desc desc = BSMM_INIT(bsmm_quantize_desc);
    desc.recipe = options->recipe;
    desc.flags = (options->pow2 ? BSMM_QUANTIZE_POW2 : 0u) |
                 (options->one_level ? BSMM_QUANTIZE_ONE_LEVEL : 0u);
    desc.threads = (uint32_t)options->threads;
    desc.device = options->device;
    return desc;
}

static const char *fill_here(const values *options, const bsmm_matrix *source,
                             const bsmm_matrix *target, bsmm_quantize_report *report) {
    bsmm_quantize_desc desc = desc_of(options);
    desc.src = source;
    desc.dst = target;
    return cli_reason(bsmm_quantize(&desc, report));
}

/* Quantizes on another device. The source is copied to the memory of the device and the result is
 * copied back. The error report is computed on the host from the copied result. */
static const char *fill_there(const values *options, const bsmm_matrix *source,
                              const bsmm_matrix *target, bsmm_quantize_report *report) {
    bsmm_matrix from, to;
    bench_device *device = options->opened;
    bsmm_quantize_desc desc = desc_of(options);
    desc.src = &from;
    desc.dst = &to;
    desc.stream = bench_device_stream(device);
    if (!bench_device_put(device, source, true, &from) ||
        !bench_device_put(device, target, true, &to))
        return bench_device_error();
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
        cli_report_row(options->reports, weight->name, bsmm_format_name(options->format));
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
static uint32_t known_flags(const values *options) {
    bsmm_recipe_info info = BSMM_INIT(bsmm_recipe_info);
    bsmm_preset_info preset = BSMM_INIT(bsmm_preset_info);
    const char *format = bsmm_format_name(options->format), *name = options->recipe;
    for (uint32_t i = 0; !name && !bsmm_preset_at(i, &preset); i++)
        if (!strcmp(preset.name, format)) name = preset.default_recipe;
    for (uint32_t i = 0; name && !bsmm_recipe_at(i, &info); i++)
        if (!strcmp(info.name, name) && has_word(info.formats, format)) return info.flags;
    return 0;
}

static int check_flags(const values *options) {
    uint32_t known = known_flags(options);
    const char *format = bsmm_format_name(options->format);
    if (options->pow2 && !(known & BSMM_QUANTIZE_POW2))
        return cli_usage("--pow2: the recipe for %s has no such choice; see 'bsmm recipes'",
                         format);
    if (options->one_level && !(known & BSMM_QUANTIZE_ONE_LEVEL))
        return cli_usage("--one-level: the recipe for %s has no such choice; see 'bsmm recipes'",
                         format);
    return CLI_OK;
}

/* Finds the form of global scale (multiplier or divisor) that the recipe writes. Fails with a usage
 * error if the recipe does not write the format. */
static int check_recipe(values *options) {
    const char *why = cli_recipe_refusal(options->recipe, options->format, BSMM_GLOBAL_MULTIPLIER);
    if (!why) return CLI_OK;
    why = cli_recipe_refusal(options->recipe, options->format, BSMM_GLOBAL_DIVISOR);
    if (!why) options->global_kind = BSMM_GLOBAL_DIVISOR;
    return why ? cli_usage("%s: %s", options->recipe ? "--recipe" : "--format", why) : CLI_OK;
}

static int check_family(const values *options) {
    bsmm_matrix target = BSMM_INIT(bsmm_matrix);
    target.format = options->format;
    target.global_kind = options->global_kind;
    cli_layout_apply(&options->layout, &target);
    const char *why = options->family ? cli_family_refusal(options->family, &target) : NULL;
    return why ? cli_usage("--family: %s", why) : CLI_OK;
}

/* Checks that the family with the recipe's name can store the format. A user who names the recipe
 * of a project expects files of that project, so any other family must be requested explicitly. */
static int check_own_family(const values *options) {
    bsmm_matrix target = BSMM_INIT(bsmm_matrix);
    target.format = options->format;
    target.global_kind = options->global_kind;
    if (options->family || !options->recipe || !cli_is_family(options->recipe)) return CLI_OK;
    if (!cli_family_refusal(options->recipe, &target)) return CLI_OK;
    char *families = cli_families_for(&target);
    int status = cli_usage("--recipe: the family %s does not write %s; name one that does with "
                           "--family: %s",
                           options->recipe, bsmm_format_name(options->format), families);
    free(families);
    return status;
}

static int check(values *options) {
    if (!options->recipe) options->recipe = recipe_of(options);
    int status = check_recipe(options);
    if (status == CLI_OK) status = check_flags(options);
    if (status == CLI_OK) status = check_own_family(options);
    return status == CLI_OK ? check_family(options) : status;
}

static int run(const void *arguments, char **args, int count) {
    values options = *(const values *)arguments;
    (void)count;
    int status = check(&options);
    if (status != CLI_OK) return status;
    cli_transfer transfer = {.verb = "quantize",
                             .participle = "quantized",
                             .values = &options.transfer,
                             .options = &options,
                             .wants = wants,
                             .describe = describe,
                             .fill = fill,
                             .finish = finish};
    options.opened = bench_device_open(options.device);
    if (!options.opened) return cli_fail("%s", bench_device_error());
    status = options.report ? run_reported(&transfer, &options, args[0])
                            : cli_transfer_main(&transfer, args[0]);
    bench_device_close(options.opened);
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
    .summary = "Quantize the weights of a file into a block-scaled format",
    .text = "Without --include, these are quantized: f32, f16 and bf16 matrices called *.weight "
            "(or the array of a .npy file) whose columns are whole blocks, except *embed*, *norm*, "
            "*lm_head* and GGUF's token_embd and output. All other tensors are copied as they are; "
            "those "
            "of GGUF's quantized types as the f32 values that ggml makes of them.",
    .examples = "  bsmm quantize model.safetensors -o out.safetensors --format nvfp4 --report\n"
                "  bsmm quantize in.npy -o out.safetensors --format mxfp4 --recipe rceil\n"
                "  bsmm quantize model.safetensors -o out.safetensors --format nvfp4 \\\n"
                "      --recipe modelopt --include '*.mlp.*' --exclude '*.0.*'\n",
    .options = options,
    .output = {cli_report_columns, cli_transfer_columns},
    .values_size = sizeof(values),
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
