#include "quantize_choice.h"
#include "common.h"
#include "files.h"
#include "fit.h"
#include "whole.h"
#include "words.h"
#include <stdlib.h>
#include <string.h>

const char *quantize_format_name(const quantize_choice *to) {
    return cli_whole_name(to->format, 0, 0);
}

/* Returns the format name by which the list of recipes is searched. A format with one scale for a
 * row or for a weight has no name there, so it is searched as fp8_block128, which has the same
 * recipes. */
static const char *preset_of(bsmm_format format) {
    return cli_is_whole(format) ? "fp8_block128" : bsmm_format_name(format);
}

/* Returns `name` if a recipe of this name can write the format, else NULL. */
static const char *recipe_for(const char *name, bsmm_format to) {
    bsmm_recipe_info info = BSMM_INIT(bsmm_recipe_info);
    const char *format = preset_of(to);
    for (uint32_t i = 0; name && !bsmm_recipe_at(i, &info); i++)
        if (!strcmp(info.name, name) && cli_has_word(info.formats, format)) return name;
    return NULL;
}

/* Returns the recipe of the checkpoint family that the command writes, or NULL if the family has no
 * recipe for the format. */
static const char *family_recipe(const quantize_values *options, bsmm_format to) {
    const bool gguf = !strcmp(cli_kind_of(options->transfer.out), "gguf");
    return recipe_for(gguf ? "ggml" : options->family, to);
}

/* Returns the flags that the recipe accepts for the format. */
static uint32_t known_flags(const quantize_choice *to) {
    bsmm_recipe_info info = BSMM_INIT(bsmm_recipe_info);
    bsmm_preset_info preset = BSMM_INIT(bsmm_preset_info);
    const char *format = preset_of(to->format), *name = to->recipe;
    for (uint32_t i = 0; !name && !bsmm_preset_at(i, &preset); i++)
        if (!strcmp(preset.name, format)) name = preset.default_recipe;
    for (uint32_t i = 0; name && !bsmm_recipe_at(i, &info); i++)
        if (!strcmp(info.name, name) && cli_has_word(info.formats, format)) return info.flags;
    return 0;
}

static int check_flags(const quantize_values *options, const quantize_choice *to) {
    uint32_t known = known_flags(to);
    const char *format = quantize_format_name(to);
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
static int check_recipe(quantize_choice *to, const char *option) {
    const char *why = cli_recipe_refusal(to->recipe, to->format, BSMM_GLOBAL_MULTIPLIER);
    if (!why) return CLI_OK;
    why = cli_recipe_refusal(to->recipe, to->format, BSMM_GLOBAL_DIVISOR);
    if (!why) to->global_kind = BSMM_GLOBAL_DIVISOR;
    return why ? cli_usage("%s: %s", to->recipe ? "--recipe" : option, why) : CLI_OK;
}

static bsmm_matrix target_of(const quantize_values *options, const quantize_choice *to) {
    bsmm_matrix target = BSMM_INIT(bsmm_matrix);
    target.format = to->format;
    target.global_kind = to->global_kind;
    cli_layout_apply(&options->layout, &target);
    return target;
}

static int check_family(const quantize_values *options, const quantize_choice *to) {
    const bsmm_matrix target = target_of(options, to);
    const char *why = options->family
                          ? cli_family_refusal(options->family, &target, options->transfer.out)
                          : NULL;
    return why ? cli_usage("--family: %s", why) : CLI_OK;
}

/* Checks that the checkpoint family with the recipe's name can store the format. A user who names
 * the recipe of a project expects files of that project, so the user must request any other family
 * explicitly. */
static int check_own_family(const quantize_values *options, const quantize_choice *to) {
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
                           to->recipe, quantize_format_name(to), families);
    free(families);
    return status;
}

/* Fails with a usage error if the checkpoint family can store the format only with input scales and
 * the user gave none. */
static int check_inputs(const quantize_values *options, const quantize_choice *to) {
    const bool given = options->input_scales,
               modelopt = options->family && !strcmp(options->family, "modelopt");
    if (given || !modelopt || !cli_is_whole(to->format)) return CLI_OK;
    return cli_usage("--family: modelopt has no scheme for %s that quantizes weights alone; give "
                     "--input-scales",
                     quantize_format_name(to));
}

static int check_choice(const quantize_values *options, quantize_choice *to, const char *option) {
    int status = check_recipe(to, option);
    if (status == CLI_OK) status = check_flags(options, to);
    if (status == CLI_OK) status = check_own_family(options, to);
    if (status == CLI_OK) status = check_family(options, to);
    return status == CLI_OK ? check_inputs(options, to) : status;
}

/* Parses an option --tensor. The pattern may contain '=', so the last '=' separates the pattern
 * from the format. */
static int take_tensor(const quantize_values *options, const char *text, quantize_choice *to) {
    const char *end = strrchr(text, '=');
    if (!end || end == text) return cli_usage("--tensor: '%s' is not PATTERN=FORMAT", text);
    if (!cli_parse_weight_format(end + 1, &to->format))
        return cli_usage("--tensor: %s", cli_parse_error());
    to->pattern = cli_alloc((size_t)(end - text) + 1, 1);
    memcpy(to->pattern, text, (size_t)(end - text));
    to->recipe = recipe_for(options->recipe, to->format);
    if (!to->recipe) to->recipe = family_recipe(options, to->format);
    return check_choice(options, to, "--tensor");
}

/* Checks that --input-scales has an effect: the checkpoint family must store calibrated input
 * scales for at least one of the chosen formats. */
static int check_any_input(const quantize_values *options) {
    if (!options->input_scales) return CLI_OK;
    if (!options->family)
        return cli_usage("--input-scales: needs --family, which says how they are stored");
    for (size_t i = 0; i < options->choice_count; i++)
        if (cli_input_rule_of(options->family, quantize_format_name(&options->choices[i])))
            return CLI_OK;
    return cli_usage("--input-scales: %s has no calibrated input scales for %s", options->family,
                     quantize_format_name(options->choices));
}

int quantize_take_choices(quantize_values *options) {
    quantize_choice *first = options->choices =
        cli_alloc(options->tensors.count + 1, sizeof(quantize_choice));
    *first = (quantize_choice){.format = options->format, .recipe = options->recipe};
    if (!first->recipe) first->recipe = family_recipe(options, first->format);
    options->choice_count = 1;
    int status = check_choice(options, first, "--format");
    for (size_t i = 0; i < options->tensors.count && status == CLI_OK; i++)
        status = take_tensor(options, options->tensors.items[i],
                             &options->choices[options->choice_count++]);
    return status == CLI_OK ? check_any_input(options) : status;
}

void quantize_free_choices(const quantize_values *options) {
    for (size_t i = 0; i < options->choice_count; i++)
        free(options->choices[i].pattern);
    free(options->choices);
}
