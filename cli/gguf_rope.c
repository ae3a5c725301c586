#include "gguf_rope.h"
#include "common.h"
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the member of config.json that describes RoPE. transformers 5 names it rope_parameters,
 * and earlier versions rope_scaling. */
static const json_t *parameters_of(const json_t *config) {
    const json_t *found = json_object_get(config, "rope_parameters");
    return json_is_object(found) ? found : json_object_get(config, "rope_scaling");
}

static double number_of(const json_t *object, const char *key, double absent) {
    const json_t *found = json_object_get(object, key);
    return json_is_number(found) ? json_number_value(found) : absent;
}

static const char *kind_of(const json_t *config) {
    const json_t *parameters = parameters_of(config);
    const char *kind = json_string_value(json_object_get(parameters, "rope_type"));
    if (!kind) kind = json_string_value(json_object_get(parameters, "type"));
    return kind ? kind : "default";
}

static double base_of(const json_t *config) {
    return number_of(parameters_of(config), "rope_theta", number_of(config, "rope_theta", 10000));
}

/* Computes the factors for the frequencies of RoPE as Llama 3.1 does. A frequency with a long
 * wavelength gets the configured factor, and one with a short wavelength gets 1. In between, the
 * factor is interpolated (transformers, _compute_llama3_parameters). */
static float *llama3_factors(const json_t *config, int64_t head_size) {
    const json_t *parameters = parameters_of(config);
    const double base = base_of(config), factor = number_of(parameters, "factor", 8),
                 low = number_of(parameters, "low_freq_factor", 1),
                 high = number_of(parameters, "high_freq_factor", 4),
                 context = number_of(parameters, "original_max_position_embeddings", 8192);
    float *factors = cli_alloc((size_t)head_size / 2, sizeof *factors);
    for (int64_t i = 0; i < head_size / 2; i++) {
        const double turn = 6.283185307179586, /* `turn` is 2 pi. */
            wave = turn * pow(base, 2 * (double)i / (double)head_size);
        const double smooth = (context / wave - low) / (high - low);
        if (wave < context / high)
            factors[i] = 1;
        else if (wave > context / low)
            factors[i] = (float)factor;
        else
            factors[i] = (float)(1 / ((1 - smooth) / factor + smooth));
    }
    return factors;
}

bool cli_gguf_rope_read(const json_t *config, int64_t head_size, float **factors) {
    const char *kind = kind_of(config);
    *factors = NULL;
    if (!(base_of(config) > 0)) {
        cli_fail("config.json: rope_theta: must be a positive number");
        return false;
    }
    if (!strcmp(kind, "llama3")) *factors = llama3_factors(config, head_size);
    if (*factors || !strcmp(kind, "default") || !strcmp(kind, "linear")) return true;
    cli_fail("config.json: rope_type: value is %s; must be default, linear or llama3", kind);
    return false;
}

void cli_gguf_rope_add(cli_gguf_pairs *pairs, const json_t *config, const char *architecture) {
    char key[96];
    snprintf(key, sizeof key, "%s.rope.freq_base", architecture);
    cli_gguf_f32(pairs, key, (float)base_of(config));
    if (strcmp(kind_of(config), "linear") != 0) return;
    snprintf(key, sizeof key, "%s.rope.scaling.type", architecture);
    cli_gguf_string(pairs, key, "linear");
    snprintf(key, sizeof key, "%s.rope.scaling.factor", architecture);
    cli_gguf_f32(pairs, key, (float)number_of(parameters_of(config), "factor", 1));
}
