/* Recognizes the rules by which byte-level tokenizers split a text into pieces. */
#include "gguf_vocab.h"
#include <jansson.h>
#include <string.h>

/* Lists regular expressions for splitting text, with llama.cpp's name for each (llama-vocab.cpp,
 * LLAMA_VOCAB_PRE_TYPE_*). Each expression was copied from the tokenizer.json of the model with
 * this name. */
static const struct {
    const char *regex, *name;
} splits[] = {
    {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|"
     " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     "llama-bpe"},
    {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|"
     " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     "qwen2"},
};

static bool is_type(const json_t *step, const char *type) {
    const char *found = json_string_value(json_object_get(step, "type"));
    return found && !strcmp(found, type);
}

static const char *split_name(const json_t *step) {
    const char *behavior = json_string_value(json_object_get(step, "behavior")),
               *regex =
                   json_string_value(json_object_get(json_object_get(step, "pattern"), "Regex"));
    if (!regex || !behavior || strcmp(behavior, "Isolated") != 0) return NULL;
    for (size_t i = 0; i < sizeof splits / sizeof splits[0]; i++)
        if (!strcmp(regex, splits[i].regex)) return splits[i].name;
    return NULL;
}

const char *cli_gguf_split_name(const json_t *pre_tokenizer) {
    const json_t *steps = json_object_get(pre_tokenizer, "pretokenizers");
    const bool several = is_type(pre_tokenizer, "Sequence");
    const size_t count = several ? json_array_size(steps) : 1;
    const json_t *first = several ? json_array_get(steps, 0) : pre_tokenizer,
                 *last = several && count ? json_array_get(steps, count - 1) : pre_tokenizer;
    /* If use_regex is not false, the tokenizer's step ByteLevel splits the text by GPT-2's regular
     * expression. */
    const bool by_gpt2 = !json_is_false(json_object_get(last, "use_regex"));
    if (!is_type(last, "ByteLevel") || json_is_true(json_object_get(last, "add_prefix_space")))
        return NULL;
    if (count == 1) return by_gpt2 ? "gpt-2" : NULL;
    if (count != 2) return NULL;
    if (is_type(first, "Digits"))
        return by_gpt2 && json_is_true(json_object_get(first, "individual_digits")) ? "smollm"
                                                                                    : NULL;
    return is_type(first, "Split") && !by_gpt2 ? split_name(first) : NULL;
}
