/* Measures the quality and speed of the language model of examples/llm. */
#ifndef MEASURE_LLM_H
#define MEASURE_LLM_H

#include "llm.h"

/* Holds the results for a model with one pair of formats. */
typedef struct model_score {
    /* `bits` is the number of bits of memory for each weight of the layers, including scales. */
    double bits;
    /* `perplexity` is the perplexity of the text. The model reads the text in pieces of LLM_BATCH
     * tokens. */
    double perplexity;
    /* `divergence` is the mean Kullback-Leibler divergence, in nats, between the reference's
     * probabilities of the next token and those of this row's model. */
    double divergence;
    /* `prefill` is the number of tokens per second while the model reads a piece of the text
     * (LLM_BATCH tokens), and `decode` is the number of tokens per second while it writes an
     * answer. */
    double prefill, decode;
    /* `resident` is the memory of the process in MiB that is neither mapped from a file nor
     * shared. */
    double resident;
    double error; /* `error` is the largest error of a product, divided by its bound. */
} model_score;

/* Measures a model on a text. If `is_reference` is true, the run stores the logits of every eighth
 * token in `reference`. Other runs compare their logits with these. */
void evaluate(llm_state *s, const llm_ids *text, float *reference, bool is_reference,
              model_score *score);
/* Returns the number of logits in `reference` for a text. */
size_t reference_count(const llm_ids *text, int64_t vocabulary);

/* Compares the last row of y, the result of llm_multiply, with sums in double. Returns the largest
 * error divided by the kernel's error bound (bsmm_explain). */
double product_error(const llm_product *p, const llm_weight *w, int64_t rows, const float *y);

#endif
