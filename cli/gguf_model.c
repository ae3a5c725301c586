#include "gguf_model.h"
#include "common.h"
#include "folder_config.h"
#include "gguf_pairs.h"
#include "gguf_rope.h"
#include "gguf_vocab.h"
#include "paths.h"
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char cli_gguf_factors_name[] = "rope_freqs.weight";

/* Lists the architectures of Hugging Face models that this program can write as GGUF files. */
static const struct {
    const char *theirs, *name;
    bool reorders;
} architectures[] = {
    {"LlamaForCausalLM", "llama", true},
    {"MistralForCausalLM", "llama", true},
    {"Qwen2ForCausalLM", "qwen2", false},
    {"Qwen3ForCausalLM", "qwen3", false},
};

/* The functions from here on read config.json. */

static bool fail_config(const char *key, const char *rule) {
    cli_fail("config.json: %s: %s", key, rule);
    return false;
}

/* Reads a number of config.json. If the number is absent, *value stays unchanged. */
static bool read_count(const cli_gguf_model *model, const char *key, int64_t *value) {
    const json_t *found = json_object_get(model->config, key);
    if (found && !json_is_null(found))
        *value = json_is_integer(found) ? json_integer_value(found) : 0;
    return (*value >= 1 && *value <= INT32_MAX) ||
           fail_config(key, "must be an integer from 1 to 2^31 - 1");
}

/* Refuses NaN and Inf in the numbers that a GGUF file takes from config.json or from a member of
 * it. Other members of config.json may have such values, which Python writes without an error. */
static bool check_numbers(const json_t *config) {
    static const char *const keys[] = {"rms_norm_eps",     "rope_theta",
                                       "factor",           "low_freq_factor",
                                       "high_freq_factor", "original_max_position_embeddings"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const json_t *found = json_object_get(config, keys[i]);
        if (found && !json_is_null(found) && !json_is_number(found))
            return fail_config(keys[i], "must be a finite number");
    }
    return true;
}

static bool find_architecture(cli_gguf_model *model) {
    const json_t *list = json_object_get(model->config, "architectures");
    const char *theirs = json_string_value(json_array_get(list, 0));
    for (size_t i = 0; theirs && i < sizeof architectures / sizeof architectures[0]; i++) {
        if (strcmp(theirs, architectures[i].theirs) != 0) continue;
        model->architecture = architectures[i].name;
        model->reorders = architectures[i].reorders;
        return true;
    }
    cli_fail("config.json: architectures: value is %s; a GGUF file can be made of "
             "LlamaForCausalLM, MistralForCausalLM, Qwen2ForCausalLM and Qwen3ForCausalLM",
             theirs ? theirs : "absent");
    return false;
}

/* Refuses models whose configuration asks for a computation that llama.cpp does not do. llama.cpp
 * would run such a model without a message and give other results. */
static bool check_computation(const cli_gguf_model *model) {
    const char *activation = json_string_value(json_object_get(model->config, "hidden_act"));
    const json_t *window = json_object_get(model->config, "sliding_window"),
                 *uses = json_object_get(model->config, "use_sliding_window");
    int64_t context = 2048;
    if (activation && strcmp(activation, "silu") != 0)
        return fail_config("hidden_act", "must be silu, which llama.cpp computes");
    if (!read_count(model, "max_position_embeddings", &context)) return false;
    if (json_is_integer(window) && !json_is_false(uses) && json_integer_value(window) < context)
        return fail_config("sliding_window", "must be null, because llama.cpp has none here");
    return true;
}

static bool read_sizes(cli_gguf_model *model) {
    bool good = read_count(model, "num_hidden_layers", &model->layers) &&
                read_count(model, "hidden_size", &model->hidden) &&
                read_count(model, "intermediate_size", &model->feed_forward) &&
                read_count(model, "vocab_size", &model->vocabulary) &&
                read_count(model, "num_attention_heads", &model->heads);
    model->kv_heads = model->heads;
    good = good && read_count(model, "num_key_value_heads", &model->kv_heads);
    model->head_size = good ? model->hidden / model->heads : 1;
    good = good && read_count(model, "head_dim", &model->head_size);
    if (good && model->head_size % 2) return fail_config("head_dim", "must be even");
    model->tied = json_is_true(json_object_get(model->config, "tie_word_embeddings"));
    return good;
}

static void find_folder(cli_gguf_model *model, const char *in) {
    model->folder = model->folder_memory = strcpy(cli_alloc(strlen(in) + 2, 1), in);
    if (cli_is_folder(in)) return;
    char *slash = strrchr(model->folder_memory, '/');
    if (slash)
        *slash = '\0';
    else
        strcpy(model->folder_memory, ".");
}

bool cli_gguf_model_open(cli_gguf_model *model, const char *in) {
    *model = (cli_gguf_model){0};
    find_folder(model, in);
    char *path = cli_path_join(model->folder, "config.json"), *text = cli_read_text(path);
    if (!text) cli_fail("%s: %s; the metadata of a GGUF file come from it", path, strerror(errno));
    char *quoted = text ? cli_config_quote_words(text) : NULL;
    model->config = quoted ? json_loads(quoted, 0, NULL) : NULL;
    if (text && !json_is_object(model->config)) cli_fail("%s: is no JSON object", path);
    const bool good = json_is_object(model->config) && find_architecture(model) &&
                      read_sizes(model) && check_computation(model) &&
                      check_numbers(model->config) &&
                      check_numbers(json_object_get(model->config, "rope_parameters")) &&
                      check_numbers(json_object_get(model->config, "rope_scaling")) &&
                      cli_gguf_rope_read(model->config, model->head_size, &model->factors);
    free(quoted);
    free(text);
    free(path);
    return good;
}

void cli_gguf_model_close(cli_gguf_model *model) {
    json_decref(model->config);
    free(model->folder_memory);
    free(model->factors);
}

/* The functions from here on translate the names of tensors. */

typedef struct naming {
    /* `theirs` is the name of a tensor in a Hugging Face model, and `ours` is its name in GGUF.
     * `ours` is NULL if GGUF has no such tensor. */
    const char *theirs, *ours;
} naming;

static const naming outside[] = {
    {"model.embed_tokens.weight", "token_embd.weight"},
    {"model.norm.weight", "output_norm.weight"},
    {"lm_head.weight", "output.weight"},
};

/* `inside` lists the modules of a layer. The name of a tensor in a layer ends with the name of its
 * module and ".weight" or ".bias". */
static const naming inside[] = {
    {"input_layernorm", "attn_norm"},    {"post_attention_layernorm", "ffn_norm"},
    {"self_attn.q_proj", "attn_q"},      {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},      {"self_attn.o_proj", "attn_output"},
    {"self_attn.q_norm", "attn_q_norm"}, {"self_attn.k_norm", "attn_k_norm"},
    {"mlp.gate_proj", "ffn_gate"},       {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
};

/* Splits the name of a layer's tensor into the number of the layer, the module and the ending. */
static bool split_name(const char *name, long *layer, const char **module, const char **ending) {
    static const char prefix[] = "model.layers.";
    char *end;
    if (strncmp(name, prefix, sizeof prefix - 1) != 0) return false;
    const char *digits = name + sizeof prefix - 1;
    if (*digits < '0' || *digits > '9') return false;
    *layer = strtol(digits, &end, 10);
    if (*end != '.') return false;
    *module = end + 1;
    *ending = strrchr(*module, '.');
    return *ending != NULL;
}

static const naming *find_module(const char *module, const char *ending) {
    const size_t length = (size_t)(ending - module);
    for (size_t i = 0; i < sizeof inside / sizeof inside[0]; i++)
        if (strlen(inside[i].theirs) == length && !strncmp(inside[i].theirs, module, length))
            return &inside[i];
    return NULL;
}

/* Tells whether the GGUF file leaves out a tensor. llama.cpp computes the frequencies of RoPE
 * itself, and it uses the embedding in place of an lm_head that is equal to it. */
static bool is_dropped(const cli_gguf_model *model, const char *name) {
    return cli_ends_with(name, ".rotary_emb.inv_freq") ||
           (model->tied && !strcmp(name, "lm_head.weight"));
}

cli_gguf_naming cli_gguf_model_name(const cli_gguf_model *model, const char *name, char to[64]) {
    long layer;
    const char *module, *ending;
    if (is_dropped(model, name)) return CLI_GGUF_DROPPED;
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++)
        if (!strcmp(name, outside[i].theirs)) {
            strcpy(to, outside[i].ours);
            return CLI_GGUF_NAMED;
        }
    const bool split = split_name(name, &layer, &module, &ending) && layer < model->layers &&
                       (!strcmp(ending, ".weight") || !strcmp(ending, ".bias"));
    const naming *found = split ? find_module(module, ending) : NULL;
    if (found && snprintf(to, 64, "blk.%ld.%s%s", layer, found->ours, ending) < 64)
        return CLI_GGUF_NAMED;
    cli_fail("%s: GGUF's architecture %s has no such tensor", name, model->architecture);
    return CLI_GGUF_UNKNOWN;
}

int64_t cli_gguf_model_heads(const cli_gguf_model *model, const char *name) {
    if (!model->reorders) return 0;
    if (strstr(name, ".self_attn.q_proj.")) return model->heads;
    return strstr(name, ".self_attn.k_proj.") ? model->kv_heads : 0;
}

/* The functions from here on write the metadata of the GGUF file. */

/* Returns a key that begins with the name of the architecture, such as "llama.block_count". The
 * text is valid until the next call. */
static const char *key_of(const cli_gguf_model *model, const char *name) {
    static char key[96];
    snprintf(key, sizeof key, "%s.%s", model->architecture, name);
    return key;
}

static void add_name(cli_gguf_pairs *pairs, const cli_gguf_model *model) {
    char *whole = realpath(model->folder, NULL);
    const char *slash = whole ? strrchr(whole, '/') : NULL;
    if (slash && slash[1] && cli_is_printable(slash + 1))
        cli_gguf_string(pairs, "general.name", slash + 1);
    free(whole);
}

static void add_sizes(cli_gguf_pairs *pairs, const cli_gguf_model *model) {
    const json_t *epsilon = json_object_get(model->config, "rms_norm_eps");
    int64_t context = 2048;
    read_count(model, "max_position_embeddings", &context);
    const struct {
        const char *name;
        int64_t value;
    } counts[] = {
        {"block_count", model->layers},
        {"context_length", context},
        {"embedding_length", model->hidden},
        {"feed_forward_length", model->feed_forward},
        {"attention.head_count", model->heads},
        {"attention.head_count_kv", model->kv_heads},
        {"attention.key_length", model->head_size},
        {"attention.value_length", model->head_size},
        {"vocab_size", model->vocabulary},
        {"rope.dimension_count", model->head_size},
    };
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        cli_gguf_u32(pairs, key_of(model, counts[i].name), (uint32_t)counts[i].value);
    cli_gguf_f32(pairs, key_of(model, "attention.layer_norm_rms_epsilon"),
                 json_is_number(epsilon) ? (float)json_number_value(epsilon) : 1e-6f);
    cli_gguf_rope_add(pairs, model->config, model->architecture);
}

bsmm_file *cli_gguf_model_metadata(const cli_gguf_model *model, uint32_t type) {
    cli_gguf_pairs pairs;
    cli_gguf_begin(&pairs);
    cli_gguf_string(&pairs, "general.architecture", model->architecture);
    cli_gguf_string(&pairs, "general.type", "model");
    add_name(&pairs, model);
    cli_gguf_u32(&pairs, "general.file_type", type);
    cli_gguf_u32(&pairs, "general.quantization_version", 2);
    add_sizes(&pairs, model);
    const bool good = cli_gguf_vocab_add(&pairs, model->folder, model->config, model->vocabulary);
    bsmm_file *file = cli_gguf_end(&pairs);
    if (good || !file) return file;
    bsmm_file_close(file);
    return NULL;
}
