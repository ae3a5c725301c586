/* Checkpoint families. A row of the table in families.c (a bsmm_storage) describes one way in which
 * a logical weight is stored in several tensors. A family has one row or several. */
#ifndef BSMM_FAMILY_H
#define BSMM_FAMILY_H

#include "io/io.h"

struct bsmm_storage;

/* Fills the data and scales of `to` from one stored matrix, in the form that `row` describes.
 * `what` names the weight in messages. */
typedef bsmm_status (*bsmm_unpack)(const struct bsmm_storage *row, const uint8_t *from,
                                   const bsmm_operand *to, const char *what);

typedef struct bsmm_storage {
    const char *family;
    /* Suffixes of the tensors' names after a common base name; NULL: there is no such tensor. */
    const char *data, *scale, *global;
    const char *name; /* the weight's name is the base name plus this suffix */
    const char *data_dtype, *scale_dtype;
    bsmm_format format; /* format of the weight. If elem is NONE, the weight is unscaled and its
                         * elements have the type of the data tensor */
    /* The text that quantization_config must yield if another row has the same names and types;
     * NULL: none is needed. Rows with evidence come before rows without. */
    const char *evidence;
    /* Along the last dimension, pack_bytes bytes hold pack_elems elements. 0: the shape counts
     * elements. */
    uint32_t pack_bytes, pack_elems;
    /* Extent of an extra last dimension, which belongs to the dimension before it; 0: there is
     * none. */
    uint32_t trailing;
    uint32_t global_kind;
    uint32_t global_ndim; /* dimensions of one matrix's global tensor, as the family writes it */
    bool global_optional;
    bool unmistakable; /* the data tensor's name alone identifies the family */
    bool declared;     /* the file's metadata describes the weight (declaration.c) */
    bool writes;
    bsmm_unpack unpack; /* NULL: the stored bytes are those of a bsmm_matrix */
} bsmm_storage;

#define BSMM_STORAGE_LIMIT 64
/* Returns NULL if index is past the last row. */
const bsmm_storage *bsmm_storage_at(size_t index);
/* Returns the row of unscaled tensors, which is tried last. */
const bsmm_storage *bsmm_storage_plain(void);
/* Returns the row of weights that metadata declares, tried first. */
const bsmm_storage *bsmm_storage_declared(void);
/* Returns all rows in the order in which writing tries them, and NULL past the last. */
const bsmm_storage *bsmm_storage_to_write(size_t index);
bool bsmm_family_exists(const char *name);

/* ---- recognising weights (recognise.c) ---- */

typedef struct bsmm_record {
    const char *name;
    const bsmm_storage *row;
    uint64_t data, scale, global; /* indices of tensors; BSMM_NO_TENSOR: none */
    const char *declaration;      /* JSON text of a declared weight */
    const char *doubt; /* reason why the row may be the wrong one; NULL: there is no doubt */
    float *globals;    /* aligned values of the tensor of global scales */
} bsmm_record;

/* Lists the file's weights. A broken weight is listed too; its error is found when the weight is
 * requested. */
bsmm_status bsmm_file_recognise(bsmm_file *file);

/* ---- checking recognised weights (resolve.c) ---- */

typedef struct bsmm_resolved {
    bsmm_weight weight;
    /* Description of slice 0; its pointers are set if the weight is mapped. */
    bsmm_operand operand;
    const uint8_t *data, *scales;
    uint64_t data_step, scale_step; /* stored bytes from one slice to the next */
    uint32_t global_step;           /* global scales from one slice to the next; 0: all share one */
} bsmm_resolved;

/* Checks a record against its row of the table. The message of a FORMAT error names the hazard. */
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
    struct json_t *root;    /* parsed config; NULL: there is none, or it cannot be read */
    const char *unreadable; /* reason why an existing config cannot be read, else NULL */
} bsmm_config;
/* Loads the config from the file's metadata, or else from config.json in the same folder. */
void bsmm_config_load(bsmm_file *file, bsmm_config *config);
void bsmm_config_free(bsmm_config *config);
/* Writes the evidence for the layer of a tensor, such as "quark fp4" or "quark mx fp6_e2m3", or ""
 * if there is none. */
void bsmm_config_evidence(const bsmm_config *config, const char *layer, char *text, size_t size);
/* Makes the text of a quantization_config in which the reader finds `evidence[i]` for `layers[i]`.
 * The caller frees it. */
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

/* Decodes blocks of ggml's quantized types to fp32, with the same bits as ggml. */
bsmm_status bsmm_unpack_gguf_plain(const bsmm_storage *row, const uint8_t *from,
                                   const bsmm_operand *to, const char *what);

#endif
