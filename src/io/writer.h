/* Declares the state of a writer: the tensors (called items) and weights that the output file will
 * have. */
#ifndef BSMM_WRITER_H
#define BSMM_WRITER_H

#include "io/family.h"
#include "io/output.h"

struct json_t;

typedef struct bsmm_item {
    const char *name;
    const bsmm_dtype *dtype;           /* `dtype` is NULL in a GGUF file. */
    const struct bsmm_gguf_type *ggml; /* `ggml` is the type of ggml. It is NULL in other files. */
    uint32_t ndim;
    int64_t shape[BSMM_MAX_DIMS];
    /* `bytes` is the size of the tensor in bytes, and `offset` is its offset in the file. */
    uint64_t bytes, offset;
} bsmm_item;

typedef struct bsmm_written {
    const bsmm_storage *row;
    /* `base` is the name of the weight's data tensor without its suffix. The checkpoint family
     * determines the suffix, e.g. ".weight". */
    const char *base;
    bsmm_operand operand;
    int64_t batch;
    /* `data`, `scale` and `global` are the indices of the weight's tensors in `items`.
     * BSMM_NO_TENSOR means that there is none. */
    uint64_t data, scale, global;
} bsmm_written;

struct bsmm_writer {
    const struct bsmm_writer_kind *kind;
    char *path;
    bsmm_arena arena;
    /* `names` is the set of the names of all tensors of the output file. It serves to find
     * duplicates. */
    struct json_t *names;
    struct json_t *metadata; /* `metadata` is the JSON object of metadata keys and strings. */
    /* `pairs` is the metadata of a GGUF file that is copied. NULL means that there is none. */
    bsmm_pair *pairs;
    uint64_t pair_count;
    /* The size of a tensor in the file is padded to a multiple of `alignment` bytes. */
    uint64_t alignment;
    bsmm_item *items;
    uint64_t item_count, item_room;
    bsmm_written *weights;
    uint64_t weight_count, weight_room;
    /* `output` is the output file. output.data is NULL before bsmm_writer_begin. */
    bsmm_output output;
};

/* This struct describes a kind of output file. `header` returns the whole header of the file,
 * allocated by malloc, and sets the offsets of the file's tensors (items). */
typedef struct bsmm_writer_kind {
    const char *name;
    bool is_gguf;
    uint64_t alignment;
    /* Sets the type and the size of a tensor whose shape is set. */
    bsmm_status (*type)(bsmm_item *item, const char *name, const char *dtype);
    bsmm_status (*header)(bsmm_writer *writer, char **header, uint64_t *bytes);
} bsmm_writer_kind;

bsmm_status bsmm_writer_header_safetensors(bsmm_writer *writer, char **header, uint64_t *bytes);
bsmm_status bsmm_writer_header_npy(bsmm_writer *writer, char **header, uint64_t *bytes);
bsmm_status bsmm_writer_header_gguf(bsmm_writer *writer, char **header, uint64_t *bytes);
bsmm_status bsmm_writer_type_gguf(bsmm_item *item, const char *name, const char *dtype);

/* Returns `bytes` rounded up to a multiple of the alignment of tensors in the writer's file. */
uint64_t bsmm_writer_padded(const bsmm_writer *writer, uint64_t bytes);

/* Fails with INVALID if the writer is NULL, or if a function of the writer is called at the wrong
 * time. `begun` is true if bsmm_writer_begin must have been called before, and false if it must not
 * have been called yet. */
bsmm_status bsmm_writer_check(const bsmm_writer *writer, bool begun);

/* Sets a metadata entry. In contrast to bsmm_writer_metadata, the key may be reserved for the
 * library. */
bsmm_status bsmm_writer_put_metadata(bsmm_writer *writer, const char *key, const char *value);

/* Adds the metadata that a reader needs to recognize the weights: declarations, i.e. descriptions
 * of the weights, and quantization_config. */
bsmm_status bsmm_writer_describe_weights(bsmm_writer *writer);

#endif
