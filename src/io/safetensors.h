/* Declares the state of parsing a safetensors header. */
#ifndef BSMM_SAFETENSORS_H
#define BSMM_SAFETENSORS_H

#include "io/io.h"
#include "io/scan.h"

struct json_t;

typedef struct bsmm_header {
    const char *text; /* `text` is the text of the header, which starts at byte 8 of the file. */
    bsmm_scan scan;
    const uint8_t *body; /* `body` is the first byte of the tensors' data. */
    uint64_t body_bytes;
    /* `dtype` is the type of the previous tensor. It is NULL if there is none. */
    const bsmm_dtype *dtype;
    bool has_metadata;
    bsmm_file *file;
} bsmm_header;

/* Fails with FORMAT. The message says what was expected and at which byte of the file. */
bsmm_status bsmm_header_fail(const bsmm_header *h, const char *expected);

/* Parses a part of the header's text with the JSON library. The caller owns *value. */
bsmm_status bsmm_header_json(const bsmm_header *h, bsmm_span span, struct json_t **value);

/* Parses the description of a tensor at the current position of h->scan and adds the tensor to the
 * file (safetensors_tensor.c). The name is not copied. */
bsmm_status bsmm_header_tensor(bsmm_header *h, const char *name);

#endif
