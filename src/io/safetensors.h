/* A safetensors header that is being parsed. */
#ifndef BSMM_SAFETENSORS_H
#define BSMM_SAFETENSORS_H

#include "io/io.h"
#include "io/scan.h"

struct json_t;

typedef struct bsmm_header {
    const char *text; /* text of the header, from byte 8 of the file on */
    bsmm_scan scan;
    const uint8_t *body; /* first byte of the tensors' data */
    uint64_t body_bytes;
    const bsmm_dtype *dtype; /* type of the tensor before; NULL: none */
    bool has_metadata;
    bsmm_file *file;
} bsmm_header;

/* Fails with FORMAT; the message names the byte of the file that the parser has reached. */
bsmm_status bsmm_header_fail(const bsmm_header *h, const char *expected);

/* Parses a span of the text with the JSON library. The caller owns *value. */
bsmm_status bsmm_header_json(const bsmm_header *h, bsmm_span span, struct json_t **value);

/* Adds the tensor that the value at the scan's position describes (safetensors_tensor.c). The name
 * is not copied. */
bsmm_status bsmm_header_tensor(bsmm_header *h, const char *name);

#endif
