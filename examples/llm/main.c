/* Answers a prompt with a language model of the Llama family.
 * usage: llm MODEL.gguf 'Why?' */
#include "llm.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: llm [OPTION...] MODEL.gguf [PROMPT]\n"
    "Answers PROMPT, or does one of these:\n"
    "  --tokenize            print the tokens of each text of standard input; NUL ends a text\n"
    "  --logits=FILE.npy     write the logits of all tokens of PROMPT\n"
    "Options:\n"
    "  --weights=FORMAT      format of the layers' weights; f32 unless given\n"
    "  --activations=FORMAT  format of the layers' inputs; bf16 unless the weights are f32\n"
    "  --embedding=FORMAT    format of the embedding, the last weight; the default is the same\n"
    "  --device=DEVICE       device of the products; cpu unless given; sim: takes one layer\n"
    "  --tokens=COUNT        most tokens of the answer; 128 unless given\n"
    "  --temperature=NUMBER  0 (the default) takes the likeliest token\n"
    "  --seed=NUMBER         seed of the random choice of tokens\n"
    "  --threads=COUNT       all of the machine unless given\n"
    "  --raw                 continue PROMPT without the chat template\n";

typedef struct options {
    const char *logits, *weights, *activations, *embedding, *device;
    double tokens, temperature, seed, threads;
    bool tokenize, raw;
} options;

/* Reads an option such as "--raw" or "--tokens=9". */
static void read_option(const char *word, options *o) {
    const struct {
        const char *name, **text;
        double *number;
        bool *flag;
    } rows[] = {
        {"--logits=", &o->logits, NULL, NULL},           {"--weights=", &o->weights, NULL, NULL},
        {"--device=", &o->device, NULL, NULL},           {"--seed=", NULL, &o->seed, NULL},
        {"--temperature=", NULL, &o->temperature, NULL}, {"--threads=", NULL, &o->threads, NULL},
        {"--activations=", &o->activations, NULL, NULL}, {"--tokens=", NULL, &o->tokens, NULL},
        {"--embedding=", &o->embedding, NULL, NULL},     {"--raw", NULL, NULL, &o->raw},
        {"--tokenize", NULL, NULL, &o->tokenize}};
    size_t i = 0, count = sizeof rows / sizeof rows[0];
    while (i < count && strncmp(word, rows[i].name, strlen(rows[i].name)) != 0)
        i++;
    const char *value = i < count ? word + strlen(rows[i].name) : word;
    char *end = "";
    if (i == count || (rows[i].flag && *value)) exit((fputs(usage, stderr), 2));
    if (rows[i].text) *rows[i].text = value;
    if (rows[i].number) *rows[i].number = strtod(value, &end);
    if (rows[i].flag) *rows[i].flag = true;
    if (*end || (rows[i].number && !(*rows[i].number >= 0)))
        llm_fail("%.*s: value is %s; must be a number, 0 or more", (int)strlen(rows[i].name) - 1,
                 rows[i].name, value);
}

/* Prints a line of token numbers for each text of standard input. Each text ends with NUL. */
static void tokenize(const llm_tokenizer *t) {
    char *text = NULL;
    size_t room = 0;
    for (ssize_t bytes; (bytes = getdelim(&text, &room, 0, stdin)) > 0;) {
        llm_ids ids = {0};
        llm_encode(t, text, (size_t)bytes - (text[bytes - 1] == 0), &ids);
        for (int64_t i = 0; i < ids.count; i++)
            printf("%s%d", i ? " " : "", ids.at[i]);
        putchar('\n');
        free(ids.at);
    }
    free(text);
}

/* Adds the tokens of the prompt. The texts around the prompt are the model's chat template
 * (tokenizer.chat_template) with one message of the user. */
static void encode_prompt(const llm_tokenizer *t, const char *prompt, bool raw, llm_ids *ids) {
    static const char before[] = "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, "
                                 "trained by Hugging Face<|im_end|>\n<|im_start|>user\n",
                      after[] = "<|im_end|>\n<|im_start|>assistant\n";
    size_t bytes = strlen(prompt) + sizeof before + sizeof after;
    char *text = llm_alloc(bytes, 1);
    snprintf(text, bytes, "%s%s%s", raw ? "" : before, prompt, raw ? "" : after);
    llm_encode(t, text, strlen(text), ids);
    free(text);
    if (ids->count == 0) llm_fail("PROMPT: has no tokens");
}

/* Writes the logits of each token of the prompt as a .npy file. */
static void write_logits(llm_state *s, const llm_ids *ids, const char *path) {
    const int64_t shape[2] = {ids->count, s->m->vocabulary};
    bsmm_writer *writer;
    uint64_t index, bytes;
    void *data;
    llm_check(bsmm_writer_create(path, "npy", &writer), path);
    llm_check(bsmm_writer_add_tensor(writer, "logits", "F32", 2, shape, &index), path);
    llm_check(bsmm_writer_begin(writer), path);
    llm_check(bsmm_writer_tensor(writer, index, &data, &bytes), path);
    for (int64_t at = 0, count; at < ids->count; at += count) {
        count = ids->count - at < LLM_HEAD_BATCH ? ids->count - at : LLM_HEAD_BATCH;
        llm_read(s, ids->at + at, count);
        memcpy((float *)data + at * shape[1], llm_logits(s, 0, count),
               (size_t)(count * shape[1]) * sizeof(float));
    }
    llm_check(bsmm_writer_commit(writer), path);
}

static void answer(llm_state *s, const llm_tokenizer *t, const llm_ids *ids, const options *o) {
    uint64_t seed = (uint64_t)o->seed;
    float *logits = llm_read_all(s, ids->at, ids->count);
    for (int64_t i = 0; i < (int64_t)o->tokens; i++) {
        int32_t token = llm_sample(logits, s->m->vocabulary, (float)o->temperature, &seed);
        if (token == t->end) break;
        char *text = llm_alloc(t->names[token].count, 1);
        fwrite(text, 1, llm_decode(t, token, text), stdout);
        fflush(stdout);
        free(text);
        if (i + 1 < (int64_t)o->tokens) logits = llm_read_all(s, &token, 1);
    }
    putchar('\n');
}

/* Loads the model and answers the prompt or writes its logits. */
static void run(const bsmm_file *file, const llm_tokenizer *t, const llm_formats *formats,
                const char *prompt, const options *o) {
    llm_ids ids = {0};
    llm_model m;
    llm_state s;
    encode_prompt(t, prompt, o->raw, &ids);
    llm_model_create(&m, file, formats);
    llm_state_create(&s, &m, ids.count + (o->logits ? 0 : (int64_t)o->tokens));
    if (o->logits)
        write_logits(&s, &ids, o->logits);
    else
        answer(&s, t, &ids, o);
    llm_state_destroy(&s);
    llm_model_destroy(&m);
    free(ids.at);
}

int main(int argc, char **argv) {
    options o = {.weights = "f32", .device = "cpu", .tokens = 128};
    int at = 1;
    for (; at < argc && !strncmp(argv[at], "--", 2); at++)
        read_option(argv[at], &o);
    if (argc - at != 1 + !o.tokenize) return fputs(usage, stderr), 2;
    llm_formats formats = {.device = o.device, .threads = (uint32_t)o.threads};
    if (formats.threads) omp_set_num_threads((int)formats.threads);
    llm_formats_set(&formats, o.weights, o.activations, o.embedding);
    bsmm_file *file;
    llm_check(bsmm_file_open(argv[at], &file), argv[at]);
    llm_tokenizer *t = llm_tokenizer_create(file);
    if (o.tokenize)
        tokenize(t);
    else
        run(file, t, &formats, argv[at + 1], &o);
    llm_tokenizer_destroy(t);
    bsmm_file_close(file);
    return EXIT_SUCCESS;
}
