/* GGUF's tensor types. */
#ifndef BSMM_GGUF_H
#define BSMM_GGUF_H

#include "io/io.h"

/* The fp32 values of one block, as ggml makes them. */
typedef void (*bsmm_gguf_decode)(const uint8_t *block, float *values);

typedef struct bsmm_gguf_type {
    const char *name;
    uint32_t block, bytes; /* elements of a block along the innermost dimension, and its bytes */
    uint32_t elem;
    bsmm_gguf_decode decode; /* NULL: none here, or not needed */
} bsmm_gguf_type;
const bsmm_gguf_type *bsmm_gguf_type_of(uint32_t type);        /* NULL if there is none */
const bsmm_gguf_type *bsmm_gguf_type_named(const char *dtype); /* NULL if there is none */

/* ---- blocks (ggml.c) ---- */

void bsmm_gguf_q4_0(const uint8_t *block, float *values);
void bsmm_gguf_q4_1(const uint8_t *block, float *values);
void bsmm_gguf_q5_0(const uint8_t *block, float *values);
void bsmm_gguf_q5_1(const uint8_t *block, float *values);
void bsmm_gguf_q8_0(const uint8_t *block, float *values);
void bsmm_gguf_iq4_nl(const uint8_t *block, float *values);
void bsmm_gguf_q2_k(const uint8_t *block, float *values);
void bsmm_gguf_q3_k(const uint8_t *block, float *values);
void bsmm_gguf_q4_k(const uint8_t *block, float *values);
void bsmm_gguf_q5_k(const uint8_t *block, float *values);
void bsmm_gguf_q6_k(const uint8_t *block, float *values);

#endif
