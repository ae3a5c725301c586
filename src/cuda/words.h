/* The parameter of sm80/words.cu. */
#ifndef BSMM_CUDA_WORDS_H
#define BSMM_CUDA_WORDS_H

#include <stdint.h>

enum { BSMM_CUDA_MOST_WORDS = 32 };

typedef struct bsmm_cuda_words {
    uint32_t count;
    uint32_t words[BSMM_CUDA_MOST_WORDS];
} bsmm_cuda_words;

#endif
