/* GGUF's tensor types. */
#ifndef BSMM_GGUF_H
#define BSMM_GGUF_H

#include "io/io.h"

typedef struct bsmm_gguf_type {
    const char *name;
    uint32_t block, bytes; /* elements of a block along the innermost dimension, and its bytes */
    uint32_t elem;
} bsmm_gguf_type;
const bsmm_gguf_type *bsmm_gguf_type_of(uint32_t type); /* NULL if there is none */

#endif
