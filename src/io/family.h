/* Checkpoint families: how a logical weight is spread over tensors. One row of the table in
 * families.c is one such way; a family has one row or several. */
#ifndef BSMM_FAMILY_H
#define BSMM_FAMILY_H

#include "io/io.h"

struct bsmm_storage;

/* Fills `to`'s data and scales from one matrix that is stored as `row` says. `what` names the
 * weight. */
typedef bsmm_status (*bsmm_unpack)(const struct bsmm_storage *row, const uint8_t *from,
                                   const bsmm_operand *to, const char *what);

typedef struct bsmm_storage {
    const char *family;
    /* Suffixes of the tensors' names after a common base; NULL: no such tensor. */
    const char *data, *scale, *global;
    const char *name; /* the weight's name: base + this */
    const char *data_dtype, *scale_dtype;
    bsmm_format format; /* elem NONE: that of the data tensor's type, unscaled */
    /* What quantization_config must say, where names and types are those of another row too;
     * NULL: nothing. Rows that need evidence stand before those that do not. */
    const char *evidence;
    /* Along the last dimension, so many bytes hold so many elements; 0: the shape counts elements.
     */
    uint32_t pack_bytes, pack_elems;
    uint32_t trailing; /* the last dimension must be this and belongs to the one before; 0: no */
    uint32_t global_kind;
    uint32_t global_ndim; /* of the global tensor of one matrix, as the family writes it */
    bool global_optional;
    bool unmistakable; /* the data tensor's name alone tells the family */
    bool declared;     /* the description lies in the file's metadata (declaration.c) */
    bool writes;
    bsmm_unpack unpack; /* NULL: the bytes are those of a bsmm_matrix */
} bsmm_storage;

#define BSMM_STORAGE_LIMIT 64
const bsmm_storage *bsmm_storage_at(size_t index); /* NULL past the last */
const bsmm_storage *bsmm_storage_plain(void);      /* unscaled tensors, tried last */
const bsmm_storage *bsmm_storage_declared(void);   /* what metadata declares, tried first */
/* All rows in the order in which writing tries them; NULL past the last. */
const bsmm_storage *bsmm_storage_to_write(size_t index);
bool bsmm_family_exists(const char *name);

/* ---- recognising (recognise.c) ---- */

typedef struct bsmm_record {
    const char *name;
    const bsmm_storage *row;
    uint64_t data, scale, global; /* tensors; BSMM_NO_TENSOR: not there */
    const char *declaration;      /* of a declared row */
    const char *doubt;            /* why it is not known whether the row is the right one */
    float *globals;               /* the global tensor's values, aligned */
} bsmm_record;

/* Lists the file's weights. What is wrong with one is found when it is asked for. */
bsmm_status bsmm_file_recognise(bsmm_file *file);

/* ---- resolving (resolve.c) ---- */

typedef struct bsmm_resolved {
    bsmm_weight weight;
    bsmm_operand operand; /* of slice 0; pointers set when the weight is mapped */
    const uint8_t *data, *scales;
    uint64_t data_step, scale_step; /* bytes from slice to slice, as stored */
    uint32_t global_step;           /* 0: all slices share one */
} bsmm_resolved;

/* Checks a record against its row: FORMAT names the hazard. */
bsmm_status bsmm_record_resolve(const bsmm_file *file, const bsmm_record *record,
                                bsmm_resolved *out);

/* ---- declarations of the bsmm family (declaration.c) ---- */

#define BSMM_DECLARATION_PREFIX "bsmm."

bsmm_status bsmm_declaration_read(const char *text, const char *what, bsmm_matrix *matrix,
                                  int64_t *batch);
char *bsmm_declaration_write(const bsmm_matrix *matrix, int64_t batch, bsmm_arena *arena);

/* ---- quantization_config (config.c) ---- */

#define BSMM_CONFIG_KEY "quantization_config"

typedef struct bsmm_config {
    struct json_t *root;    /* NULL: none found, or one that cannot be read */
    const char *unreadable; /* why what was found cannot be read; NULL: it can, or there is none */
} bsmm_config;
/* From the file's metadata, else from config.json beside it. */
void bsmm_config_load(bsmm_file *file, bsmm_config *config);
void bsmm_config_free(bsmm_config *config);
/* "quark fp4", "quark mx fp6_e2m3", ... or "" for the layer that a tensor belongs to. */
void bsmm_config_evidence(const bsmm_config *config, const char *layer, char *text, size_t size);
/* The quantization_config that makes the reader find `evidence[i]` for `layers[i]`; free() it. */
char *bsmm_config_write(const char *const *layers, const char *const *evidence, size_t count);

/* ---- blocks that interleave scales and elements (unpack.c) ---- */

bsmm_status bsmm_unpack_gguf_mxfp4(const bsmm_storage *row, const uint8_t *from,
                                   const bsmm_operand *to, const char *what);
bsmm_status bsmm_unpack_gguf_nvfp4(const bsmm_storage *row, const uint8_t *from,
                                   const bsmm_operand *to, const char *what);
bsmm_status bsmm_unpack_quark_mxfp4(const bsmm_storage *row, const uint8_t *from,
                                    const bsmm_operand *to, const char *what);
bsmm_status bsmm_unpack_quark_mxfp6(const bsmm_storage *row, const uint8_t *from,
                                    const bsmm_operand *to, const char *what);

/* Blocks of ggml's quantized types, decoded to fp32 as ggml does. */
bsmm_status bsmm_unpack_gguf_plain(const bsmm_storage *row, const uint8_t *from,
                                   const bsmm_operand *to, const char *what);

#endif
