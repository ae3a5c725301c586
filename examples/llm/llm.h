/* A small language model of the Llama family on bsmm: it reads a GGUF file and answers a prompt,
 * with weights and activations in any of bsmm's formats. bsmm computes the products of activations
 * and weights; all else is in this folder. Most functions end the program with a message on a
 * failure, so that they return no status. */
#ifndef LLM_H
#define LLM_H

#include <bsmm.h>

#include <stdbool.h>
#include <stddef.h>

/* Functions with this attribute are compiled three times, and the processor chooses at run time.
 * Sanitizers cannot instrument the choice. */
#if defined(__x86_64__) && defined(__ELF__) && !defined(__SANITIZE_ADDRESS__)
#    define LLM_VECTORS                                                                            \
        __attribute__((target_clones("arch=skylake-avx512", "arch=haswell", "default")))
#else
#    define LLM_VECTORS
#endif

enum {
    LLM_BATCH = 512,     /* largest number of tokens that the layers compute at once */
    LLM_HEAD_BATCH = 128 /* largest number of tokens whose logits are computed at once */
};

/* Prints "llm: ..." and ends the program with status 1. */
void llm_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* Ends the program with the library's message if `status` is a failure. */
void llm_check(bsmm_status status, const char *what);
/* Allocates count * size bytes, filled with 0 and aligned to 64 bytes. */
void *llm_alloc(size_t count, size_t size);
double llm_seconds(void);

/* A growing list of token ids. */
typedef struct llm_ids {
    int32_t *at;
    int64_t count, room;
} llm_ids;
void llm_ids_add(llm_ids *ids, int32_t id);

typedef struct llm_tokenizer llm_tokenizer;
llm_tokenizer *llm_tokenizer_create(const bsmm_file *file);
void llm_tokenizer_destroy(llm_tokenizer *tokenizer);
/* Appends the tokens of a text. Names of special tokens in the text become these tokens. */
void llm_encode(const llm_tokenizer *tokenizer, const char *text, size_t bytes, llm_ids *ids);
/* Writes the bytes that a token stands for, at most llm_token_bytes, and returns their number. */
size_t llm_decode(const llm_tokenizer *tokenizer, int32_t id, char *to);
size_t llm_token_bytes(const llm_tokenizer *tokenizer, int32_t id);
int32_t llm_end_token(const llm_tokenizer *tokenizer);
int64_t llm_vocabulary(const llm_tokenizer *tokenizer);

/* Returns the number of bytes of the first piece of a text. Merges of tokens never cross the border
 * between two pieces. `bytes` is not 0. */
size_t llm_first_piece(const char *text, size_t bytes);

/* How the products of a model are computed. */
typedef struct llm_formats {
    bsmm_format weights, activations; /* formats of the layers' weights and of their inputs */
    bsmm_format embedding;            /* format of the embedding and of the last product's input */
    uint32_t packed;                  /* form of the layers' packed weights, a bsmm_packed_form */
    uint32_t threads;                 /* number of threads; 0: all of the machine */
    const char *device;               /* device of the products */
} llm_formats;

/* Sets the formats by their names. If `activations` is NULL, they are f32 for weights in f32, else
 * bf16. */
void llm_formats_set(llm_formats *formats, const char *weights, const char *activations);

/* The product of activations and weights of one shape, y = x w^T. All layers share its plan. */
typedef struct llm_product {
    const llm_formats *formats;
    bsmm_matrix a, b, d; /* a and d have the largest number of rows; only a has memory here */
    uint32_t packed;     /* form of the packed weights */
    bsmm_plan *plan;
    bsmm_plan *plan_of_one; /* for one row, on a GPU, whose plans have a fixed number of rows */
    bsmm_buffers buffers;   /* memory of the device */
} llm_product;

void llm_product_create(llm_product *p, const llm_formats *formats, bsmm_format activations,
                        bsmm_format weights, uint32_t packed, int64_t rows, int64_t inputs,
                        int64_t outputs);
void llm_product_destroy(llm_product *p);

/* The weights of a product, in host memory, in memory of the device, or packed. */
typedef struct llm_weight {
    bsmm_matrix host;                      /* data is NULL if the weights are not in host memory */
    void *data, *scales, *global, *packed; /* memory of the device, or NULL */
} llm_weight;

/* Quantizes f32 values to the product's format of weights, and packs or copies them if the product
 * demands it. If `keep` is set, they are in host memory as well. */
void llm_weight_create(llm_weight *w, const llm_product *p, const float *values, bool keep);
void llm_weight_destroy(llm_weight *w, const llm_product *p);

/* Row r of y has the results for row r of x. y has room for the largest number of rows. */
void llm_multiply(llm_product *p, const llm_weight *w, const float *x, int64_t rows, float *y);
/* Describes the product of `rows` rows, with the matrices *a and *d, which it fills. */
bsmm_matmul_desc llm_product_describe(const llm_product *p, int64_t rows, bsmm_matrix *a,
                                      bsmm_matrix *d);

/* Allocates zeroed memory for a matrix of this format. */
bsmm_matrix llm_matrix_create(bsmm_format format, int64_t rows, int64_t cols);
void llm_matrix_destroy(bsmm_matrix *matrix);

typedef struct llm_layer {
    float *attention_norm, *feed_forward_norm;
    llm_weight qkv, out, gate_up, down; /* q, k and v are one matrix, as are gate and up */
} llm_layer;

typedef struct llm_model {
    int64_t layers, hidden, feed_forward, heads, kv_heads, head_size, vocabulary, context;
    float rope_base, epsilon;
    llm_formats formats;
    llm_product qkv_product, out_product, gate_up_product, down_product, head_product;
    llm_layer *layer;
    float *final_norm;
    llm_weight head; /* the embedding, which is also the weight of the last product */
} llm_model;

void llm_model_create(llm_model *m, const bsmm_file *file, const llm_formats *formats);
void llm_model_destroy(llm_model *m);

/* The tokens that a model has read, and its memory for the next ones. */
typedef struct llm_state {
    llm_model *m;
    int64_t room, count; /* number of positions in the cache; positions in use */
    /* The cache. For each layer and head, keys[i][position] and values[position][i]. */
    float *keys, *values;
    float *angles; /* cosine and sine of each position and pair */
    float *x, *normed, *qkv, *attended, *gate_up, *active, *logits;
    /* If not NULL, it is called after each product with the result y. */
    void (*watch)(struct llm_state *s, const llm_product *p, const llm_weight *w, int64_t rows,
                  const float *y);
    void *watch_context;
} llm_state;

void llm_state_create(llm_state *s, llm_model *m, int64_t room);
void llm_state_destroy(llm_state *s);
/* Reads up to LLM_BATCH tokens. Row r of s->normed is then the result of the layers for token r. */
void llm_read(llm_state *s, const int32_t *tokens, int64_t count);
/* Returns the logits of rows first to first + rows - 1 of the tokens that were read last. There are
 * at most LLM_HEAD_BATCH rows, and the next call overwrites them. */
float *llm_logits(llm_state *s, int64_t first, int64_t rows);
/* Reads any number of tokens and returns the logits of the last one. */
float *llm_read_all(llm_state *s, const int32_t *tokens, int64_t count);

/* Rotates queries and keys of `rows` new positions, adds keys and values to the cache of `layer`,
 * and computes the attention of each query. */
void llm_attend(llm_state *s, int64_t layer, int64_t rows);
/* active = silu(gate) * up, where each row of gate_up has all gates and then all ups. */
void llm_swiglu(const float *gate_up, int64_t rows, int64_t cols, float *active);
/* Replaces scores by exp(score - largest score) and returns the sum of these. */
float llm_softmax(float *scores, int64_t count);

/* Chooses a token: the likeliest if temperature is 0, else at random with the probabilities
 * softmax(logits / temperature). Changes the logits. */
int32_t llm_sample(float *logits, int64_t count, float temperature, uint64_t *seed);

#endif
