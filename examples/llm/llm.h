/* Declares a small language model of the Llama family. It reads a GGUF file and answers a prompt.
 * bsmm computes the products of activations and weights, in any of its formats. Most functions
 * return no status, because they end the program with a message on a failure. */
#ifndef LLM_H
#define LLM_H

#include <bsmm.h>

#include <stdbool.h>
#include <stddef.h>

/* The compiler makes three versions of each function with this attribute, and the processor
 * chooses one at run time. Sanitizers do not support such a choice. */
#if defined(__x86_64__) && defined(__ELF__) && !defined(__SANITIZE_ADDRESS__)
#    define LLM_VECTORS __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#    define LLM_VECTORS
#endif

/* The layers compute at most LLM_BATCH tokens at once, and the logits of at most LLM_HEAD_BATCH
 * tokens are computed at once. */
enum { LLM_BATCH = 512, LLM_HEAD_BATCH = 128 };

/* Prints "llm: ..." and ends the program with status 1. */
void llm_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* Ends the program with the library's message if `status` is a failure. */
void llm_check(bsmm_status status, const char *what);
/* Allocates count * size bytes, filled with 0 and aligned to 64 bytes. */
void *llm_alloc(size_t count, size_t size);

/* Holds a growing list of token ids. */
typedef struct llm_ids {
    int32_t *at;
    int64_t count, room;
} llm_ids;
void llm_ids_add(llm_ids *ids, int32_t id);

/* Describes two adjacent tokens that may be merged into one token. */
typedef struct llm_merge {
    int32_t pair[2]; /* `pair` holds the left and the right token. */
    int32_t rank;    /* `rank` is the position in the file's list of merges. */
    int32_t id;      /* `id` is the token that replaces the pair. */
} llm_merge;

typedef struct llm_tokenizer {
    int64_t count;
    bsmm_value *names; /* `names` holds the tokens as the file spells them, in its own memory. */
    /* `slots` is the number of slots of each of the two hash tables. It is a power of two. */
    size_t slots;
    int32_t *ids;      /* `ids` points to the hash table of the tokens. A free slot contains -1. */
    llm_merge *merges; /* `merges` is the hash table of the merges. A free slot has the id -1. */
    int32_t byte_ids[256]; /* `byte_ids` holds the token of each byte, or -1 if there is none. */
    int32_t *special;      /* `special` lists the special tokens, which are never split. */
    int64_t special_count;
    /* `unknown` is the token for bytes without a token. `end` is the token that ends an answer.
     * Either is -1 if the vocabulary lacks it. */
    int32_t unknown, end;
} llm_tokenizer;

/* Reads the tokenizer of a file, which must stay open as long as the tokenizer is in use. */
llm_tokenizer *llm_tokenizer_create(const bsmm_file *file);
void llm_tokenizer_destroy(llm_tokenizer *tokenizer);
/* Returns the merge of two tokens, or NULL if there is none. */
const llm_merge *llm_merge_of(const llm_tokenizer *t, int32_t left, int32_t right);
/* Returns the byte that the vocabulary spells as the character `point`, or -1 if there is none. */
int32_t llm_byte_of(uint32_t point);
/* Appends the tokens of a text to the list. If the text contains a special token as the file spells
 * it, this part of the text becomes the special token. */
void llm_encode(const llm_tokenizer *tokenizer, const char *text, size_t bytes, llm_ids *ids);
/* Writes the bytes that a token represents and returns their number, which is at most
 * tokenizer->names[id].count. */
size_t llm_decode(const llm_tokenizer *tokenizer, int32_t id, char *to);

/* Returns the number of bytes of the first piece of a text. The tokenizer never merges tokens of
 * two pieces. `bytes` must not be 0. */
size_t llm_first_piece(const char *text, size_t bytes);

/* Describes the formats and the device of a model's products. */
typedef struct llm_formats {
    /* `weights` and `activations` are the formats of the layers' weights and inputs. */
    bsmm_format weights, activations;
    /* `embedding` is the format of the embedding, which is also the weight of the last product, and
     * `last` is the format of the last product's input. */
    bsmm_format embedding, last;
    uint32_t threads;   /* `threads` is the number of threads, or 0 for one per processor. */
    const char *device; /* `device` is the device that computes the products. */
} llm_formats;

/* Sets the formats by their names. NULL is the default: f32 if the weights are f32, else bf16. The
 * last product's input has the format `activations` if `embedding` is given, else the default. */
void llm_formats_set(llm_formats *formats, const char *weights, const char *activations,
                     const char *embedding);

/* Holds a product y = x w^T of one shape. All layers with weights of this shape share it. */
typedef struct llm_product {
    const llm_formats *formats;
    /* `a` and `d` have as many rows as the largest product. Only `a` has host memory. */
    bsmm_matrix a, b, d;
    bsmm_plan *plan;
    /* A GPU's plan has a fixed number of rows, so `plan_of_one` is a separate plan for one row. */
    bsmm_plan *plan_of_one;
    bsmm_buffers buffers; /* `buffers` points to memory of the device. */
    void *packed; /* `packed` holds the weights of all layers, so that they get huge pages. */
} llm_product;

/* Makes a product of one shape. `count` is the number of weights of this shape. */
void llm_product_create(llm_product *p, const llm_formats *formats, bsmm_format activations,
                        bsmm_format weights, int64_t rows, int64_t inputs, int64_t outputs,
                        int64_t count);
void llm_product_destroy(llm_product *p);

/* Holds the weights of a product. On the CPU, they are packed in the form compact, because products
 * of one row read this form fastest. f32 weights, and weights on a GPU, are not packed. */
typedef struct llm_weight {
    /* `host` is a copy of the weights in host memory, if host.data is not NULL. */
    bsmm_matrix host;
    void *packed; /* `packed` points to packed weights in the memory of the product. */
    /* `data` points to the elements of unpacked weights in the memory of the device, `scales` to
     * the block scales, and `global` to the second-level scale. */
    void *data, *scales, *global;
} llm_weight;

/* Quantizes f32 values to the product's weight format, and packs them as the product's weight
 * number `index`, or copies them to the device. If `keep` is set, llm_weight_row can read the
 * weights, from w->host or, if they are packed without scales, from the packed weights. */
void llm_weight_create(llm_weight *w, const llm_product *p, int64_t index, const float *values,
                       bool keep);
void llm_weight_destroy(llm_weight *w, const llm_product *p);
/* Copies a row of weights as f32 values. The weights must have been created with `keep`. */
void llm_weight_row(const llm_weight *w, const llm_product *p, int64_t row, float *values);

/* Multiplies x by the weights. Row r of y receives the results for row r of x. y has room for the
 * largest number of rows. */
void llm_multiply(llm_product *p, const llm_weight *w, const float *x, int64_t rows, float *y);
/* Returns the description of a product with `rows` rows, and fills its matrices *a and *d. */
bsmm_matmul_desc llm_product_describe(const llm_product *p, int64_t rows, bsmm_matrix *a,
                                      bsmm_matrix *d);

/* Allocates zeroed memory for a matrix of this format. */
bsmm_matrix llm_matrix_create(bsmm_format format, int64_t rows, int64_t cols);
void llm_matrix_destroy(bsmm_matrix *matrix);

/* Names the products of a layer. One matrix holds q, k and v, and one matrix holds gate and up. */
enum { LLM_QKV, LLM_OUT, LLM_GATE_UP, LLM_DOWN, LLM_PRODUCTS };

typedef struct llm_layer {
    llm_product *products; /* `products` is an array that layers on the same device share. */
    float *attention_norm, *feed_forward_norm;
    llm_weight weights[LLM_PRODUCTS];
} llm_layer;

typedef struct llm_model {
    int64_t layers, hidden, feed_forward, heads, kv_heads, head_size, vocabulary, context;
    float rope_base, epsilon;
    /* `formats` is for products of the first layer, `other_formats` for those of other layers. On a
     * simulated device, which is slow, the CPU computes the other layers. */
    llm_formats formats, other_formats;
    llm_product products[LLM_PRODUCTS], other_products[LLM_PRODUCTS], head_product;
    llm_layer *layer;
    float *final_norm;
    llm_weight head; /* `head` is the embedding, which is also the weight of the last product. */
} llm_model;

void llm_model_create(llm_model *m, const bsmm_file *file, const llm_formats *formats);
void llm_model_destroy(llm_model *m);
bool llm_is_simulated(const llm_model *m); /* Tells whether the device is a simulator. */

/* Holds the tokens that a model has read, and memory for the next tokens. */
typedef struct llm_state {
    llm_model *m;
    /* The cache of keys and values has `room` positions, of which `count` are in use. */
    int64_t room, count;
    /* `keys` and `values` are the cache of keys and values. Each layer and head has
     * keys[i][position] and values[position][i], where i is an index in the head. */
    float *keys, *values; /* All arrays lie in one allocation, which begins with `keys`. */
    /* `angles` points to the cosine and sine for each position and pair of values. */
    float *angles;
    float *x, *normed, *qkv, *attended, *gate_up, *active, *logits;
    /* If `watch` is not NULL, the model calls it after each product, and y is the result. */
    void (*watch)(struct llm_state *s, const llm_product *p, const llm_weight *w, int64_t rows,
                  const float *y);
    void *watch_context;
} llm_state;

void llm_state_create(llm_state *s, llm_model *m, int64_t room);
void llm_state_destroy(llm_state *s);
/* Reads up to LLM_BATCH tokens. Row r of s->normed then holds the output of the last layer for
 * token r. */
void llm_read(llm_state *s, const int32_t *tokens, int64_t count);
/* Returns the logits of `rows` of the tokens that were read last, beginning with token `first`.
 * `rows` is at most LLM_HEAD_BATCH. The next call overwrites the logits. */
float *llm_logits(llm_state *s, int64_t first, int64_t rows);
/* Reads any number of tokens and returns the logits of the last one. */
float *llm_read_all(llm_state *s, const int32_t *tokens, int64_t count);

/* Rotates queries and keys of `rows` new positions, adds keys and values to the cache of `layer`,
 * and computes the attention of each query. */
void llm_attend(llm_state *s, int64_t layer, int64_t rows);
/* Computes active = silu(gate) * up. Each row of gate_up has all gates first and then all ups. */
void llm_swiglu(const float *gate_up, int64_t rows, int64_t cols, float *active);
/* Replaces each score by exp(score - largest score) and returns the sum of the new scores. */
float llm_softmax(float *scores, int64_t count);

/* Chooses the most likely token if `temperature` is 0, else a random token with the probabilities
 * softmax(logits / temperature). Overwrites the logits. */
int32_t llm_sample(float *logits, int64_t count, float temperature, uint64_t *seed);

#endif
