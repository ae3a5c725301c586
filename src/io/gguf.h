/* Declares the tensor types of GGUF files. */
#ifndef BSMM_GGUF_H
#define BSMM_GGUF_H

#include "io/io.h"

/* Decodes one block of a quantized type of ggml to fp32, bitwise identical to ggml. */
typedef void (*bsmm_gguf_decode)(const uint8_t *block, float *values);

typedef struct bsmm_gguf_type {
    const char *name;
    /* `block` is the number of elements in a block along the innermost dimension, and `bytes` is
     * the number of bytes of a block. */
    uint32_t block, bytes;
    uint32_t elem;
    /* `decode` is the decoder of a quantized type. It is NULL for types that are not quantized, and
     * for MXFP4 and NVFP4, which are formats of this library. */
    bsmm_gguf_decode decode;
} bsmm_gguf_type;
/* Returns the table entry of a ggml type by the type's number, or NULL if the number is unknown. */
const bsmm_gguf_type *bsmm_gguf_type_of(uint32_t type);
/* Returns the table entry of a ggml type by the type's name, or NULL if the name is unknown. */
const bsmm_gguf_type *bsmm_gguf_type_named(const char *dtype);

/* Returns the number that ggml gives to the type. */
uint32_t bsmm_gguf_type_number(const bsmm_gguf_type *type);

/* A bsmm_ggml_grid is a table of ggml's types IQ1, IQ2 and IQ3 (ggml_grids.c, which a script
 * wrote). Each row of the table has the values of 8 elements as codes of 2 bits, or of 4 elements
 * as codes of 3 bits (`bits`), the first element in the lowest bits. A code is an index into
 * `levels`. */
typedef struct bsmm_ggml_grid {
    const uint16_t *rows;
    uint32_t bits;
    int8_t levels[8];
} bsmm_ggml_grid;
extern const bsmm_ggml_grid bsmm_ggml_grid_iq1, bsmm_ggml_grid_iq2_xxs, bsmm_ggml_grid_iq2_xs,
    bsmm_ggml_grid_iq2_s, bsmm_ggml_grid_iq3_xxs, bsmm_ggml_grid_iq3_s;

/* Returns the f16 number at any address. */
float bsmm_gguf_half(const uint8_t *from);

/* The functions from here on decode ggml's blocks. They are defined in ggml.c, in ggml_bits.c for
 * the types of one and two bits, and in ggml_iq.c for the types that have a bsmm_ggml_grid. */

void bsmm_gguf_q4_0(const uint8_t *block, float *values);
void bsmm_gguf_q4_1(const uint8_t *block, float *values);
void bsmm_gguf_q5_0(const uint8_t *block, float *values);
void bsmm_gguf_q5_1(const uint8_t *block, float *values);
void bsmm_gguf_q8_0(const uint8_t *block, float *values);
void bsmm_gguf_q8_1(const uint8_t *block, float *values);
void bsmm_gguf_iq4_nl(const uint8_t *block, float *values);
void bsmm_gguf_iq4_xs(const uint8_t *block, float *values);
void bsmm_gguf_q2_k(const uint8_t *block, float *values);
void bsmm_gguf_q3_k(const uint8_t *block, float *values);
void bsmm_gguf_q4_k(const uint8_t *block, float *values);
void bsmm_gguf_q5_k(const uint8_t *block, float *values);
void bsmm_gguf_q6_k(const uint8_t *block, float *values);
void bsmm_gguf_q8_k(const uint8_t *block, float *values);
void bsmm_gguf_q1_0(const uint8_t *block, float *values);
void bsmm_gguf_q2_0(const uint8_t *block, float *values);
void bsmm_gguf_tq1_0(const uint8_t *block, float *values);
void bsmm_gguf_tq2_0(const uint8_t *block, float *values);
void bsmm_gguf_iq1_s(const uint8_t *block, float *values);
void bsmm_gguf_iq1_m(const uint8_t *block, float *values);
void bsmm_gguf_iq2_xxs(const uint8_t *block, float *values);
void bsmm_gguf_iq2_xs(const uint8_t *block, float *values);
void bsmm_gguf_iq2_s(const uint8_t *block, float *values);
void bsmm_gguf_iq3_xxs(const uint8_t *block, float *values);
void bsmm_gguf_iq3_s(const uint8_t *block, float *values);

#endif
