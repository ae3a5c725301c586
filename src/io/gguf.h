/* Declares the tensor types of GGUF files. */
#ifndef BSMM_GGUF_H
#define BSMM_GGUF_H

#include "io/io.h"

/* Decodes one block of a quantized type of ggml to fp32, with the same bits as ggml. */
typedef void (*bsmm_gguf_decode)(const uint8_t *block, float *values);

typedef struct bsmm_gguf_type {
    const char *name;
    /* `block` is the number of elements in a block along the innermost dimension, and `bytes` is
     * the number of bytes of a block. */
    uint32_t block, bytes;
    uint32_t elem;
    /* `decode` is the decoder of the type. NULL means that this library cannot decode the type, or
     * that the type is one of its formats. */
    bsmm_gguf_decode decode;
} bsmm_gguf_type;
/* Returns the table entry of a ggml type by the type's number, or NULL if the number is unknown. */
const bsmm_gguf_type *bsmm_gguf_type_of(uint32_t type);
/* Returns the table entry of a ggml type by the type's name, or NULL if the name is unknown. */
const bsmm_gguf_type *bsmm_gguf_type_named(const char *dtype);

/* Returns the number that ggml gives to the type. */
uint32_t bsmm_gguf_type_number(const bsmm_gguf_type *type);

/* The functions from here on are in ggml.c. They decode ggml's blocks. */

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
