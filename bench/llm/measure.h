/* Measures the language model of examples/llm. */
#ifndef MEASURE_LLM_H
#define MEASURE_LLM_H

#include "llm.h"

/* Figures of a model with one pair of formats. */
typedef struct model_score {
    double bits;            /* of memory for each weight of the layers, scales included */
    double perplexity;      /* of the text, in windows of LLM_BATCH tokens */
    double divergence;      /* from the reference: mean Kullback-Leibler divergence, in nats */
    double prefill, decode; /* tokens per second of reading a window and of writing an answer */
    double
        resident; /* memory of the process in MiB that is neither mapped from a file nor shared */
    double error; /* largest error of a product, divided by its bound */
} model_score;

/* Measures a model on a text. In the run with `is_reference`, the logits of every eighth token are
 * written to `reference`; other runs read them. */
void evaluate(llm_state *s, const llm_ids *text, float *reference, bool is_reference,
              model_score *score);
/* Number of values in `reference` for a text. */
size_t reference_count(const llm_ids *text, int64_t vocabulary);

/* Compares the last row of the result y of llm_multiply with sums in double. Returns the largest
 * error of a value divided by the bound that bsmm_explain states for the kernel. */
double product_error(const llm_product *p, const llm_weight *w, int64_t rows, const float *y);

#endif
