#include "fused.h"
#include "common.h"
#include "files.h"
#include "tables.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FUSED = 3 };

/* `fused` lists the endings of the names of weights that engines fuse. The sources are vLLM's
 * packed_modules_mapping (qkv_proj and gate_up_proj), the experts of Mixtral, and llama.cpp. */
static const char *const fused[][MOST_FUSED] = {
    {".q_proj.weight", ".k_proj.weight", ".v_proj.weight"},
    {".gate_proj.weight", ".up_proj.weight"},
    {".w1.weight", ".w3.weight"},
    {".attn_q.weight", ".attn_k.weight", ".attn_v.weight"},
    {".ffn_gate.weight", ".ffn_up.weight"},
};

/* Each entry of `fused` lists endings of names. Returns the entry with an ending that `name` has,
 * or NULL. *stem becomes the length of `name` without this ending. */
static const char *const *find_entry(const char *name, size_t *stem) {
    for (size_t i = 0; i < sizeof fused / sizeof fused[0]; i++)
        for (int k = 0; k < MOST_FUSED && fused[i][k]; k++) {
            size_t length = strlen(name), tail = strlen(fused[i][k]);
            if (length <= tail || strcmp(name + length - tail, fused[i][k])) continue;
            *stem = length - tail;
            return fused[i];
        }
    return NULL;
}

char *cli_fused_name(const char *name, int index) {
    size_t stem;
    const char *const *ends = find_entry(name, &stem);
    if (!ends || index >= MOST_FUSED || !ends[index]) return NULL;
    char *fused_name = cli_alloc(stem + strlen(ends[index]) + 1, 1);
    memcpy(fused_name, name, stem);
    strcpy(fused_name + stem, ends[index]);
    return fused_name;
}

/* Raises *amax to the largest magnitude of an unquantized weight. Returns an error message that
 * contains `name` if a value is NaN or Inf, else NULL. */
static const char *add_amax(const bsmm_file *file, uint64_t index, const char *name,
                            uint32_t threads, float *amax) {
    static char message[512];
    bsmm_exec exec = BSMM_INIT(bsmm_exec);
    cli_loaded loaded;
    float own = 0;
    if (!cli_load(file, index, 0, &loaded)) return bsmm_error_message();
    exec.threads = threads;
    const char *why = cli_reason(bsmm_amax_on(&exec, &loaded.matrix, &own));
    cli_unload(&loaded);
    if (own > *amax) *amax = own;
    if (why || isfinite(own)) return why;
    snprintf(message, sizeof message,
             "shares a scale with %.400s, whose largest magnitude is %g; it must be finite", name,
             (double)own);
    return message;
}

/* Finds the weight with this name. Returns false if there is none, if it is quantized, or if it has
 * more than one matrix. */
static bool find_matrix(const bsmm_file *file, const char *name, uint64_t *index,
                        bsmm_weight *weight) {
    return !bsmm_file_weight_find(file, name, index) &&
           !bsmm_file_weight_at(file, *index, weight) && weight->batch == 1 &&
           cli_is_plain(weight->format);
}

const char *cli_fused_amax(const bsmm_file *file, const bsmm_weight *weight,
                           bool (*is_alike)(const void *context, const bsmm_weight *one,
                                            const bsmm_weight *other),
                           const void *context, uint32_t threads, float *amax) {
    bsmm_weight other = BSMM_INIT(bsmm_weight);
    uint64_t index;
    const char *why = NULL;
    char *name;
    for (int k = 0; weight->batch == 1 && !why && (name = cli_fused_name(weight->name, k)); k++) {
        if (find_matrix(file, name, &index, &other) && is_alike(context, weight, &other))
            why = add_amax(file, index, name, threads, amax);
        free(name);
    }
    return why;
}
