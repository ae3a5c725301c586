#include "gguf_vocab.h"
#include "common.h"
#include "paths.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Lists llama.cpp's types of tokens (llama.h, llama_token_attr). */
typedef enum token_type {
    TOKEN_NORMAL = 1,
    TOKEN_UNKNOWN,
    TOKEN_CONTROL,
    TOKEN_USER,
    TOKEN_UNUSED,
    TOKEN_BYTE
} token_type;

typedef struct token {
    const char *text; /* `text` is NULL if no token has this number. */
    token_type type;
    float score;
} token;

typedef struct vocab {
    /* `tokenizer` is the content of tokenizer.json, and `settings` is that of
     * tokenizer_config.json. */
    json_t *tokenizer, *settings;
    token *tokens;
    int64_t count;
} vocab;

static bool fail_tokenizer(const char *key, const char *rule) {
    cli_fail("tokenizer.json: %s: %s", key, rule);
    return false;
}

static json_t *read_json(const char *folder, const char *name, size_t flags) {
    char *path = cli_path_join(folder, name), *text = cli_read_text(path);
    json_t *json = text ? json_loads(text, flags, NULL) : NULL;
    if (text && !json) cli_warn("%s: is no JSON; the command ignores it", path);
    free(text);
    free(path);
    return json;
}

/* The functions from here on make the list of tokens. */

static bool add_token(vocab *v, const char *text, int64_t id, token_type type) {
    if (!text || id < 0 || id >= v->count) {
        cli_fail("tokenizer.json: the token \"%.60s\" has the number %lld; must be 0 to "
                 "vocab_size - 1 (%lld)",
                 text ? text : "", (long long)id, (long long)v->count - 1);
        return false;
    }
    v->tokens[id].text = text;
    v->tokens[id].type = type;
    return true;
}

static bool has_prefix_and_end(const char *text, const char *prefix, const char *end) {
    return !strncmp(text, prefix, strlen(prefix)) && cli_ends_with(text, end);
}

/* Tells whether a text is a byte token of SentencePiece, such as <0x0A>. */
static bool is_byte(const char *text) {
    return strlen(text) == 6 && has_prefix_and_end(text, "<0x", ">");
}

static bool add_added_tokens(vocab *v) {
    const json_t *list = json_object_get(v->tokenizer, "added_tokens"), *entry;
    size_t i;
    json_array_foreach(list, i, entry) {
        const char *text = json_string_value(json_object_get(entry, "content"));
        const bool control = json_is_true(json_object_get(entry, "special")) ||
                             (text && has_prefix_and_end(text, "<|", "|>"));
        if (!add_token(v, text, json_integer_value(json_object_get(entry, "id")),
                       control ? TOKEN_CONTROL : TOKEN_USER))
            return false;
    }
    return true;
}

static bool add_tokens(vocab *v, const json_t *model, bool by_bytes) {
    const char *text, *unknown = json_string_value(json_object_get(model, "unk_token"));
    json_t *id;
    json_object_foreach(json_object_get(model, "vocab"), text, id) {
        const bool byte = by_bytes && is_byte(text);
        if (!add_token(v, text, json_integer_value(id), byte ? TOKEN_BYTE : TOKEN_NORMAL))
            return false;
    }
    if (!add_added_tokens(v)) return false;
    json_t *found =
        unknown && by_bytes ? json_object_get(json_object_get(model, "vocab"), unknown) : NULL;
    return !found || add_token(v, unknown, json_integer_value(found), TOKEN_UNKNOWN);
}

/* Splits a merge of a BPE tokenizer into its two parts. A merge is an array of two texts, or in
 * older files one text with a space between the parts. */
static bool read_merge(const json_t *merge, char **joined, char **parts) {
    const char *left = json_string_value(merge), *right = left ? strchr(left, ' ') : NULL;
    size_t length = right ? (size_t)(right - left) : 0;
    if (right) right++;
    if (json_is_array(merge) && json_array_size(merge) == 2) {
        left = json_string_value(json_array_get(merge, 0));
        right = json_string_value(json_array_get(merge, 1));
        length = left ? strlen(left) : 0;
    }
    if (!left || !right) return false;
    *joined = cli_alloc(length + strlen(right) + 1, 1);
    *parts = cli_alloc(length + strlen(right) + 2, 1);
    sprintf(*joined, "%.*s%s", (int)length, left, right);
    sprintf(*parts, "%.*s %s", (int)length, left, right);
    return true;
}

/* The functions from here on write the vocabulary of a tokenizer. There are two kinds: byte-level
 * BPE (add_byte_level) and SentencePiece (add_sentencepiece). */

static void put_tokens(cli_gguf_pairs *pairs, const vocab *v) {
    char unused[32];
    cli_gguf_array(pairs, "tokenizer.ggml.tokens", CLI_GGUF_STRING, (uint64_t)v->count);
    for (int64_t i = 0; i < v->count; i++) {
        const char *text = v->tokens[i].text;
        snprintf(unused, sizeof unused, "[PAD%lld]", (long long)i);
        if (!text) text = unused;
        cli_gguf_put_text(pairs, text, strlen(text));
    }
    cli_gguf_array(pairs, "tokenizer.ggml.token_type", CLI_GGUF_I32, (uint64_t)v->count);
    for (int64_t i = 0; i < v->count; i++)
        cli_gguf_put_u32(pairs, v->tokens[i].text ? v->tokens[i].type : TOKEN_UNUSED);
}

static bool add_byte_level(cli_gguf_pairs *pairs, const vocab *v, const json_t *merges) {
    const char *split = cli_gguf_split_name(json_object_get(v->tokenizer, "pre_tokenizer"));
    const json_t *normalizer = json_object_get(v->tokenizer, "normalizer"), *merge;
    const char *normal = json_string_value(json_object_get(normalizer, "type"));
    size_t i;
    if (!split)
        return fail_tokenizer("pre_tokenizer",
                              "must be that of gpt-2, smollm, llama-bpe or qwen2, which llama.cpp "
                              "knows by name");
    if (normal && strcmp(normal, "NFC") != 0)
        return fail_tokenizer("normalizer", "must be null or NFC");
    cli_gguf_string(pairs, "tokenizer.ggml.model", "gpt2");
    cli_gguf_string(pairs, "tokenizer.ggml.pre", split);
    put_tokens(pairs, v);
    cli_gguf_array(pairs, "tokenizer.ggml.merges", CLI_GGUF_STRING, json_array_size(merges));
    json_array_foreach(merges, i, merge) {
        char *joined, *parts;
        if (!read_merge(merge, &joined, &parts))
            return fail_tokenizer("merges", "must be pairs of texts");
        cli_gguf_put_text(pairs, parts, strlen(parts));
        free(joined);
        free(parts);
    }
    return true;
}

/* Tells whether SentencePiece puts a space before a text. */
static bool prepends_space(const vocab *v) {
    const json_t *pre = json_object_get(v->tokenizer, "pre_tokenizer");
    const char *scheme = json_string_value(json_object_get(pre, "prepend_scheme"));
    char *normalizer = json_dumps(json_object_get(v->tokenizer, "normalizer"), JSON_ENCODE_ANY);
    const bool found = normalizer && strstr(normalizer, "\"Prepend\"");
    free(normalizer);
    return found || (scheme && strcmp(scheme, "never") != 0);
}

/* Sets the score of each token. SentencePiece merges the pair with the highest score first, and
 * tokenizer.json lists the merges in that order. The score is therefore minus the index of the
 * merge that makes the token. */
static bool set_scores(vocab *v, const json_t *model, const json_t *merges) {
    const json_t *all = json_object_get(model, "vocab"), *merge;
    size_t i;
    for (int64_t id = 0; id < v->count; id++)
        v->tokens[id].score = -(float)json_array_size(merges) - 1;
    for (i = json_array_size(merges); i-- > 0;) {
        char *joined, *parts;
        merge = json_array_get(merges, i);
        if (!read_merge(merge, &joined, &parts))
            return fail_tokenizer("merges", "must be pairs of texts");
        const json_t *id = json_object_get(all, joined);
        if (id) v->tokens[json_integer_value(id)].score = -(float)i;
        free(joined);
        free(parts);
    }
    return true;
}

static bool add_sentencepiece(cli_gguf_pairs *pairs, vocab *v, const json_t *model,
                              const json_t *merges) {
    if (!set_scores(v, model, merges)) return false;
    cli_gguf_string(pairs, "tokenizer.ggml.model", "llama");
    cli_gguf_string(pairs, "tokenizer.ggml.pre", "default");
    put_tokens(pairs, v);
    cli_gguf_array(pairs, "tokenizer.ggml.scores", CLI_GGUF_F32, (uint64_t)v->count);
    for (int64_t i = 0; i < v->count; i++)
        cli_gguf_put_f32(pairs, v->tokens[i].score);
    cli_gguf_bool(pairs, "tokenizer.ggml.add_space_prefix", prepends_space(v));
    return true;
}

/* The functions from here on handle special tokens. */

static const struct {
    const char *setting, *config, *key;
} specials[] = {
    {"bos_token", "bos_token_id", "tokenizer.ggml.bos_token_id"},
    {"eos_token", "eos_token_id", "tokenizer.ggml.eos_token_id"},
    {"unk_token", NULL, "tokenizer.ggml.unknown_token_id"},
    {"pad_token", "pad_token_id", "tokenizer.ggml.padding_token_id"},
};

/* Returns the number of a special token, or -1 if there is none. */
static int64_t find_special(const vocab *v, const json_t *config, size_t i) {
    const json_t *set = json_object_get(v->settings, specials[i].setting);
    if (json_is_object(set)) set = json_object_get(set, "content");
    const char *text = json_string_value(set);
    for (int64_t id = 0; text && id < v->count; id++)
        if (v->tokens[id].text && !strcmp(v->tokens[id].text, text)) return id;
    const json_t *id = specials[i].config ? json_object_get(config, specials[i].config) : NULL;
    if (json_is_array(id)) id = json_array_get(id, 0);
    return json_is_integer(id) && json_integer_value(id) < v->count ? json_integer_value(id) : -1;
}

/* Tells whether the tokenizer's template begins each text with the special token `text`. */
static bool begins_with(const vocab *v, const char *text) {
    const json_t *processor = json_object_get(v->tokenizer, "post_processor"),
                 *list = json_object_get(processor, "processors"), *step;
    size_t i;
    const json_t *single = json_object_get(processor, "single");
    json_array_foreach(list, i, step) if (!single) single = json_object_get(step, "single");
    const json_t *first = json_object_get(json_array_get(single, 0), "SpecialToken");
    const char *id = json_string_value(json_object_get(first, "id"));
    return text && id && !strcmp(id, text);
}

static void add_specials(cli_gguf_pairs *pairs, const vocab *v, const json_t *config) {
    for (size_t i = 0; i < sizeof specials / sizeof specials[0]; i++) {
        const int64_t id = find_special(v, config, i);
        if (id >= 0) cli_gguf_u32(pairs, specials[i].key, (uint32_t)id);
    }
    const int64_t begin = find_special(v, config, 0);
    const json_t *adds = json_object_get(v->settings, "add_bos_token");
    const bool by_template = begin >= 0 && begins_with(v, v->tokens[begin].text);
    cli_gguf_bool(pairs, "tokenizer.ggml.add_bos_token",
                  json_is_boolean(adds) ? json_is_true(adds) : by_template);
    const json_t *ends = json_object_get(v->settings, "add_eos_token");
    if (json_is_boolean(ends))
        cli_gguf_bool(pairs, "tokenizer.ggml.add_eos_token", json_is_true(ends));
}

static void add_chat_template(cli_gguf_pairs *pairs, const vocab *v, const char *folder) {
    const char *text = json_string_value(json_object_get(v->settings, "chat_template"));
    char *path = cli_path_join(folder, "chat_template.jinja"), *own = cli_read_text(path);
    if (own || text) cli_gguf_string(pairs, "tokenizer.chat_template", own ? own : text);
    free(own);
    free(path);
}

static bool add_vocab(cli_gguf_pairs *pairs, vocab *v, const char *folder, const json_t *config) {
    const json_t *model = json_object_get(v->tokenizer, "model"),
                 *merges = json_object_get(model, "merges");
    const char *type = json_string_value(json_object_get(model, "type"));
    if (!json_is_object(model) || !json_is_array(merges) || (type && strcmp(type, "BPE") != 0))
        return fail_tokenizer("model", "must be of type BPE");
    const bool by_bytes = json_is_true(json_object_get(model, "byte_fallback"));
    if (!add_tokens(v, model, by_bytes)) return false;
    if (!(by_bytes ? add_sentencepiece(pairs, v, model, merges) : add_byte_level(pairs, v, merges)))
        return false;
    add_specials(pairs, v, config);
    add_chat_template(pairs, v, folder);
    return true;
}

bool cli_gguf_vocab_add(cli_gguf_pairs *pairs, const char *folder, const json_t *config,
                        int64_t count) {
    vocab v = {.tokenizer = read_json(folder, "tokenizer.json", 0), .count = count};
    if (!v.tokenizer) {
        cli_warn("%s has no tokenizer.json, so the output has no tokenizer", folder);
        cli_gguf_string(pairs, "tokenizer.ggml.model", "none");
        return true;
    }
    /* model_max_length is often 10^30. jansson has no integer of this size, so numbers are read as
     * doubles. */
    v.settings = read_json(folder, "tokenizer_config.json", JSON_DECODE_INT_AS_REAL);
    v.tokens = cli_alloc((size_t)count, sizeof *v.tokens);
    const bool good = add_vocab(pairs, &v, folder, config);
    free(v.tokens);
    json_decref(v.tokenizer);
    json_decref(v.settings);
    return good;
}
