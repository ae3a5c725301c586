#include "words.h"
#include "common.h"
#include "data.h"
#include "device.h"
#include "nearest.h"
#include "whole.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *command_at(uint32_t index) {
    uint32_t count = 0;
    while (cli_commands[count])
        count++;
    return index < count ? cli_commands[index]->name : NULL;
}

/* Defines the function that returns name number `index` of one library table. These functions
 * differ only in the type of the table's entries. */
#define TABLE_WORDS(words, type, at)                                                               \
    static const char *words(uint32_t index) {                                                     \
        type info = BSMM_INIT(type);                                                               \
        return at(index, &info) ? NULL : info.name;                                                \
    }
TABLE_WORDS(elem_at, bsmm_elem_info, bsmm_elem_at)
TABLE_WORDS(preset_at, bsmm_preset_info, bsmm_preset_at)
TABLE_WORDS(layout_at, bsmm_layout_info, bsmm_layout_at)
TABLE_WORDS(packed_form_at, bsmm_packed_form_info, bsmm_packed_form_at)
TABLE_WORDS(recipe_row_at, bsmm_recipe_info, bsmm_recipe_at)
TABLE_WORDS(known_device_at, bsmm_device_info, bsmm_device_at)

static bool is_first(cli_words *words, uint32_t index) {
    for (uint32_t i = 0; i < index; i++)
        if (!strcmp(words(i), words(index))) return false;
    return true;
}

/* Returns the names of the recipes. The library's table has several entries for some recipes, but
 * this function returns each name only once. */
static const char *recipe_at(uint32_t index) {
    uint32_t names = 0;
    for (uint32_t i = 0; recipe_row_at(i); i++)
        if (is_first(recipe_row_at, i) && names++ == index) return recipe_row_at(i);
    return NULL;
}

static uint32_t count_words(cli_words *words) {
    uint32_t count = 0;
    while (words(count))
        count++;
    return count;
}

/* Returns entry `index` of a list of names. The list has the presets first, and then the element
 * formats that a matrix can have. */
static const char *format_at(uint32_t index) {
    uint32_t presets = count_words(preset_at);
    if (index < presets) return preset_at(index);
    const char *name = elem_at(index - presets);
    return name && strcmp(name, "e8m0") ? name : NULL;
}

static const char *formats_at(uint32_t index) {
    const char *name = format_at(index);
    return name ? name : cli_pair_at(index - count_words(format_at));
}

static const char *target_at(uint32_t index) {
    const char *name = format_at(index);
    return name ? name : cli_whole_at(index - count_words(format_at));
}

static const char *writable_family_at(uint32_t index) {
    bsmm_family_info info = BSMM_INIT(bsmm_family_info);
    uint32_t writable = 0;
    for (uint32_t i = 0; !bsmm_family_at(i, &info); i++)
        if (info.writes && writable++ == index) return info.name;
    return NULL;
}

static const char *device_or_all_at(uint32_t index) {
    return index ? known_device_at(index - 1) : "all";
}

static const char *local_device_at(uint32_t index) {
    static bsmm_local_device info;
    info = BSMM_INIT(bsmm_local_device);
    return bsmm_local_device_at(index, &info) ? NULL : info.name;
}

/* Calls bsmm_explain for kernel number `index`, whose name the caller wants. bsmm_explain requires
 * a product, so the function passes an arbitrary valid one. */
static bool explain(uint32_t index, bsmm_explanation *explanation) {
    bsmm_matrix matrix = BSMM_INIT(bsmm_matrix);
    matrix.format.elem = BSMM_ELEM_F32;
    bsmm_matmul_desc product = BSMM_INIT(bsmm_matmul_desc);
    product.a = product.b = product.d = &matrix;
    *explanation = BSMM_INIT(bsmm_explanation);
    return !bsmm_explain(&product, index, explanation);
}

static const char *kernel_at(uint32_t index) {
    bsmm_explanation explanation;
    return explain(index, &explanation) ? explanation.kernel : NULL;
}

/* Writes the name of a kind of device to form[size]. If the kind has models, a colon and the model
 * with index `index` follow. Returns false if `index` is past the last model. */
static bool write_form(const bench_device_kind *kind, uint32_t index, char *form, size_t size) {
    const char *model = kind->models;
    for (uint32_t i = 0; model && i < index; i++)
        if ((model = strchr(model, '|'))) model++;
    if (kind->models ? !model : index > 0) return false;
    snprintf(form, size, "%s%s%.*s", kind->name, model ? ":" : "",
             model ? (int)strcspn(model, "|") : 0, model ? model : "");
    return true;
}

/* Returns entry `index` of a list of devices' names without device numbers, such as "cpu". If a
 * kind of device has models, its names include the model. A name occurs twice if two kinds of
 * device have the same name and model. */
static const char *device_row_at(uint32_t index) {
    static char forms[32][40];
    const bench_device_kind *kind;
    char *form = forms[index % 32];
    for (uint32_t i = 0; (kind = bench_device_kind_at(i)); i++)
        for (uint32_t model = 0; write_form(kind, model, form, sizeof forms[0]); model++)
            if (index-- == 0) return form;
    return NULL;
}

/* Returns entry `index` of the list of names that device_row_at gives, with repeated names left
 * out. */
static const char *device_form_at(uint32_t index) {
    uint32_t names = 0;
    for (uint32_t i = 0; device_row_at(i); i++)
        if (is_first(device_row_at, i) && names++ == index) return device_row_at(i);
    return NULL;
}

static const char *mfma_row_at(uint32_t index) {
    bsmm_mfma_info info = BSMM_INIT(bsmm_mfma_info);
    return bsmm_mfma_at(index, &info) ? NULL : info.name;
}

/* Returns the names of the matrix instructions. The library's table has several entries for some
 * instructions, but this function returns each name only once. */
static const char *mfma_at(uint32_t index) {
    uint32_t names = 0;
    for (uint32_t i = 0; mfma_row_at(i); i++)
        if (is_first(mfma_row_at, i) && names++ == index) return mfma_row_at(i);
    return NULL;
}

static const char *operand_at(uint32_t index) {
    static const char *const names[] = {"A", "B", "C", "D", "scale_a", "scale_b", NULL};
    return index < 6 ? names[index] : NULL;
}

static const char *dtype_at(uint32_t index) {
    bsmm_elem_info info = BSMM_INIT(bsmm_elem_info);
    for (uint32_t i = 0; !bsmm_elem_at(i, &info); i++)
        if (bench_elem_is_wide(info.elem) && index-- == 0) return info.name;
    return NULL;
}

static bool contain(cli_words *words, const char *word) {
    for (uint32_t i = 0; words(i); i++)
        if (!strcmp(words(i), word)) return true;
    return false;
}

typedef struct vocabulary {
    const char *metavariable;
    cli_words *words;
    /* `allows` accepts words that the list `words` does not contain, such as device names with a
     * number. `words` then serves only for suggestions. NULL means that only the words of the list
     * are allowed. */
    bool (*allows)(const char *word);
    /* `forms` returns the texts that an error message lists instead of `words`. It is used only if
     * `allows` is not NULL. */
    cli_words *forms;
} vocabulary;

/* clang-format off */
static const vocabulary vocabularies[] = {
    {"COMMAND", command_at, NULL, NULL},
    {"ELEM", elem_at, NULL, NULL},
    {"FORMAT", format_at, NULL, NULL},
    {"FORMATS", formats_at, NULL, NULL},
    {"TARGET", target_at, NULL, NULL},
    {"FORM", packed_form_at, NULL, NULL},
    {"LAYOUT", layout_at, NULL, NULL},
    {"RECIPE", recipe_at, NULL, NULL},
    {"FAMILY", writable_family_at, NULL, NULL},
    {"MODEL", device_or_all_at, NULL, NULL},
    {"DEVICE", local_device_at, bench_device_is_name, device_form_at},
    {"KERNEL", kernel_at, NULL, NULL},
    {"DTYPE", dtype_at, NULL, NULL},
    {"INSTRUCTION", mfma_at, NULL, NULL},
    {"OPERAND", operand_at, NULL, NULL},
};
/* clang-format on */

/* Finds the vocabulary of a metavariable, i.e. the words that the metavariable can stand for. For a
 * metavariable such as GLOB=TARGET, the result is the vocabulary of the part after the last "=". */
static const vocabulary *find(const char *metavariable) {
    const char *equals = strrchr(metavariable, '=');
    if (equals) metavariable = equals + 1;
    size_t length = strspn(metavariable, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    for (size_t i = 0; i < sizeof vocabularies / sizeof vocabularies[0]; i++)
        if (strlen(vocabularies[i].metavariable) == length &&
            !strncmp(vocabularies[i].metavariable, metavariable, length))
            return &vocabularies[i];
    return NULL;
}

cli_words *cli_words_of(const char *metavariable) {
    const vocabulary *found = find(metavariable);
    return found ? found->words : NULL;
}

bool cli_words_allow(const char *metavariable, const char *word) {
    const vocabulary *found = find(metavariable);
    if (!found) return true;
    return found->allows ? found->allows(word) : contain(found->words, word);
}

static char *join(cli_words *words, const char *ending) {
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    for (uint32_t i = 0; stream && words(i); i++)
        fprintf(stream, "%s%s", i ? ", " : "", words(i));
    if (!stream || fprintf(stream, "%s", ending) < 0 || fclose(stream) || !text)
        exit(cli_fail("no memory for a message"));
    return text;
}

char *cli_words_list(const char *metavariable) {
    return join(find(metavariable)->words, "");
}

/* Suggests a word for a misspelled word that may end with ":NUMBER", which the suggestion keeps. */
static cli_text mean_form(const vocabulary *found, const char *word) {
    char name[64], meant[128];
    const char *number = strrchr(word, ':');
    if (!number || !number[1] || number[1 + strspn(number + 1, "0123456789")])
        number = word + strlen(word);
    snprintf(name, sizeof name, "%.*s", (int)(number - word), word);
    cli_nearest nearest = {.word = name};
    for (uint32_t i = 0; found->forms(i); i++)
        cli_nearest_try(&nearest, found->forms(i));
    snprintf(meant, sizeof meant, "%s%.40s", nearest.best ? nearest.best : "", number);
    nearest.best = found->allows(meant) ? meant : NULL;
    return cli_did_you_mean_this(&nearest, "");
}

char *cli_words_rule(const char *metavariable, const char *word) {
    const vocabulary *found = find(metavariable);
    cli_words *words = found->forms ? found->forms : found->words;
    cli_text meant = found->forms ? mean_form(found, word) : cli_did_you_mean(words, word);
    char ending[sizeof meant.text + 32];
    snprintf(ending, sizeof ending, "%s%s", found->forms ? ", or one with :NUMBER" : "",
             meant.text);
    return join(words, ending);
}

int cli_usage_word(const char *metavariable, const char *word) {
    char *known = cli_words_rule(metavariable, word);
    int status = cli_usage("%s: value is %s; must be one of %s", metavariable, word, known);
    free(known);
    return status;
}

bool cli_has_word(const char *words, const char *word) {
    size_t length = strlen(word);
    for (const char *at = words; (at = strstr(at, word)); at += length)
        if ((at == words || at[-1] == ' ') && (!at[length] || at[length] == ' ')) return true;
    return false;
}
