/* What is going to be written. */
#ifndef BSMM_WRITER_H
#define BSMM_WRITER_H

#include "io/family.h"
#include "io/output.h"

struct json_t;

typedef struct bsmm_item {
    const char *name;
    const bsmm_dtype *dtype;
    uint32_t ndim;
    int64_t shape[BSMM_MAX_DIMS];
    uint64_t bytes, offset; /* in the file */
} bsmm_item;

typedef struct bsmm_written {
    const bsmm_storage *row;
    const char *base; /* the name without the data tensor's suffix */
    bsmm_operand operand;
    int64_t batch;
    uint64_t data, scale, global; /* items; BSMM_NO_TENSOR: none */
} bsmm_written;

struct bsmm_writer {
    const struct bsmm_writer_kind *kind;
    char *path;
    bsmm_arena arena;
    struct json_t *names;    /* of items, for finding duplicates */
    struct json_t *metadata; /* key to string */
    bsmm_item *items;
    uint64_t item_count, item_room;
    bsmm_written *weights;
    uint64_t weight_count, weight_room;
    bsmm_output output; /* data NULL before begin */
};

/* A kind of file: its whole header, malloc'ed, with the items' offsets set after it. */
typedef struct bsmm_writer_kind {
    const char *name;
    bsmm_status (*header)(bsmm_writer *writer, char **header, uint64_t *bytes);
} bsmm_writer_kind;

bsmm_status bsmm_writer_header_safetensors(bsmm_writer *writer, char **header, uint64_t *bytes);
bsmm_status bsmm_writer_header_npy(bsmm_writer *writer, char **header, uint64_t *bytes);

/* INVALID unless the writer is there and begin was called (or not yet). */
bsmm_status bsmm_writer_check(const bsmm_writer *writer, bool begun);

/* Sets metadata, also with keys that callers may not use. */
bsmm_status bsmm_writer_put_metadata(bsmm_writer *writer, const char *key, const char *value);

/* What the weights need in the metadata to be read back. */
bsmm_status bsmm_writer_describe_weights(bsmm_writer *writer);

#endif
