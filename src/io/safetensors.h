/* A safetensors header while it is being read. */
#ifndef BSMM_SAFETENSORS_H
#define BSMM_SAFETENSORS_H

#include "io/io.h"
#include "io/scan.h"

struct json_t;

typedef struct bsmm_header {
    const char *text; /* from byte 8 of the file on */
    bsmm_scan scan;
    const uint8_t *body; /* the tensors' bytes */
    uint64_t body_bytes;
    const bsmm_dtype *dtype; /* of the tensor before; NULL: none */
    bool has_metadata;
    bsmm_file *file;
} bsmm_header;

/* FORMAT, with the byte of the file where the scan is. */
bsmm_status bsmm_header_fail(const bsmm_header *h, const char *expected);

/* What a span holds, by the JSON library; *value is the caller's. */
bsmm_status bsmm_header_json(const bsmm_header *h, bsmm_span span, struct json_t **value);

/* Adds the tensor that the value at the scan describes (safetensors_tensor.c). The name stays. */
bsmm_status bsmm_header_tensor(bsmm_header *h, const char *name);

#endif
