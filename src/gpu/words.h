/* Holds the parameters of the kernel in sm80/words.cu, which writes up to 32 uint32 words to device
 * memory. The words to write are a part of the parameters. */
#ifndef BSMM_GPU_WORDS_H
#define BSMM_GPU_WORDS_H

#include <stdint.h>

enum { BSMM_GPU_MOST_WORDS = 32 };

typedef struct bsmm_gpu_words {
    uint32_t count;
    uint32_t words[BSMM_GPU_MOST_WORDS];
} bsmm_gpu_words;

#endif
