#include "words.h"
#include "common.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *command_at(uint32_t index) {
    uint32_t count = 0;
    while (cli_commands[count])
        count++;
    return index < count ? cli_commands[index]->name : NULL;
}

/* One accessor per library table; they differ in the type of the row only. */
#define TABLE_WORDS(words, type, at)                                                               \
    static const char *words(uint32_t index) {                                                     \
        type info = BSMM_INIT(type);                                                               \
        return at(index, &info) ? NULL : info.name;                                                \
    }
TABLE_WORDS(elem_at, bsmm_elem_info, bsmm_elem_at)
TABLE_WORDS(preset_at, bsmm_preset_info, bsmm_preset_at)
TABLE_WORDS(layout_at, bsmm_layout_info, bsmm_layout_at)
TABLE_WORDS(recipe_at, bsmm_recipe_info, bsmm_recipe_at)

static uint32_t count_words(cli_words *words) {
    uint32_t count = 0;
    while (words(count))
        count++;
    return count;
}

/* Presets, then elements that a matrix can have. */
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

/* Kernels say their names through an explanation; any valid product will do. */
static const char *kernel_at(uint32_t index) {
    bsmm_matrix matrix = BSMM_INIT(bsmm_matrix);
    matrix.format.elem = BSMM_ELEM_F32;
    bsmm_matmul_desc product = BSMM_INIT(bsmm_matmul_desc);
    product.a = product.b = product.d = &matrix;
    bsmm_explanation explanation = BSMM_INIT(bsmm_explanation);
    return bsmm_explain(&product, index, &explanation) ? NULL : explanation.kernel;
}

static const char *dtype_at(uint32_t index) {
    static const char *const names[] = {"f32", "f16", "bf16", NULL};
    return index < 3 ? names[index] : NULL;
}

static const struct {
    const char *metavariable;
    cli_words *words;
} vocabularies[] = {
    {"COMMAND", command_at}, {"ELEM", elem_at},     {"FORMAT", format_at}, {"FORMATS", formats_at},
    {"LAYOUT", layout_at},   {"RECIPE", recipe_at}, {"KERNEL", kernel_at}, {"DTYPE", dtype_at},
};

cli_words *cli_words_of(const char *metavariable) {
    size_t length = strspn(metavariable, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    for (size_t i = 0; i < sizeof vocabularies / sizeof vocabularies[0]; i++)
        if (strlen(vocabularies[i].metavariable) == length &&
            !strncmp(vocabularies[i].metavariable, metavariable, length))
            return vocabularies[i].words;
    return NULL;
}

bool cli_words_contain(cli_words *words, const char *word) {
    for (uint32_t i = 0; words(i); i++)
        if (!strcmp(words(i), word)) return true;
    return false;
}

char *cli_words_join(cli_words *words) {
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    for (uint32_t i = 0; stream && words(i); i++)
        fprintf(stream, "%s%s", i ? ", " : "", words(i));
    if (!stream || fclose(stream)) exit(cli_fail("no memory for a message"));
    return text;
}

int cli_usage_word(const char *metavariable, const char *word) {
    char *known = cli_words_join(cli_words_of(metavariable));
    int status = cli_usage("%s: value is %s; must be one of %s", metavariable, word, known);
    free(known);
    return status;
}
