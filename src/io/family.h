/* Declares checkpoint families, i.e. conventions for storing quantized weights. A bsmm_storage is
 * an entry of a table in families.c. It describes one way in which a family stores a logical weight
 * in several tensors. A family has one or more entries. */
#ifndef BSMM_FAMILY_H
#define BSMM_FAMILY_H

#include "io/io.h"

struct bsmm_storage;

/* Copies the elements and scales of one stored matrix from `from` to `to`. `row` is the storage
 * table entry (families.c) that describes how the matrix is stored. `what` names the weight in
 * messages. */
typedef bsmm_status (*bsmm_unpack)(const struct bsmm_storage *row, const uint8_t *from,
                                   const bsmm_operand *to, const char *what);

/* Packs a matrix into stored blocks at `to`, in which scales and elements alternate. The matrix is
 * row-major, and so is the order of its blocks. `what` names the weight in messages. */
typedef bsmm_status (*bsmm_pack)(const bsmm_operand *from, uint8_t *to, const char *what);

/* These are the shapes that checkpoint families give to the scale tensor of one matrix. */
typedef enum bsmm_scale_shape {
    BSMM_SCALES_BY_BLOCK, /* The shape is [blocks along the rows, blocks along the columns]. */
    BSMM_SCALES_ONE,      /* The scale is a tensor of the shape [1]. */
    BSMM_SCALES_SCALAR    /* The scale is a tensor of the shape [], i.e. a scalar. */
} bsmm_scale_shape;

typedef struct bsmm_storage {
    const char *family;
    /* `data`, `scale` and `global` are the suffixes of the tensors' names after a common base name.
     * NULL means that there is no such tensor. */
    const char *data, *scale, *global;
    /* The name of the weight is the common base name of its tensors, followed by the suffix `name`.
     */
    const char *name;
    const char *data_dtype, *scale_dtype;
    /* `format` is the format of the weight. If elem is NONE, the weight is unscaled, and its
     * elements have the type of the data tensor. A size of 0 in the block of a scaled format means
     * all rows or all columns of the matrix (bsmm_storage_format). */
    bsmm_format format;
    /* Two entries of the table may have the same names and types of tensors. `evidence` then tells
     * them apart. It is a text such as "quark fp4". The entry applies only if the file's
     * quantization_config implies this text (bsmm_config_evidence). If `evidence` is NULL, no text
     * is needed. Entries with a text come before entries without one. */
    const char *evidence;
    /* In the last dimension of the data tensor, pack_bytes bytes hold pack_elems elements. If both
     * are 0, this dimension of the tensor counts elements. */
    uint32_t pack_bytes, pack_elems;
    /* `trailing` is the size of an extra last dimension of the data tensor, which subdivides the
     * dimension before it. 0 means that there is no extra dimension. */
    uint32_t trailing;
    /* `scale_shape` is the shape of the scale tensor of one matrix (bsmm_scale_shape). */
    uint32_t scale_shape;
    uint32_t global_kind;
    /* `global_ndim` is the number of dimensions that the checkpoint family writes for the global
     * scale of one matrix. */
    uint32_t global_ndim;
    bool global_optional;
    /* `unmistakable` is true if this checkpoint family alone names data tensors in this way. If a
     * file then has a data tensor of this name but not the weight's other tensors, the library
     * reports that the weight is broken. */
    bool unmistakable;
    /* `declared` is true if the file's metadata describes the weight (declaration.c). */
    bool declared;
    /* `by_shape` is true if the entry applies only to scale tensors of the entry's own shape. For
     * all other shapes, the table has a later entry with the same names and types of tensors, in
     * which `by_shape` is false. If the scale tensor fits none of these entries, the error message
     * describes the shape that the later entry requires. */
    bool by_shape;
    bool writes;
    /* Copies a matrix out of the file. NULL means that the bytes in the file are already those of a
     * bsmm_matrix. */
    bsmm_unpack unpack;
    /* `pack` is the inverse of `unpack`. It is NULL if `unpack` is NULL, or if the library reads
     * but never writes weights that are stored in this way. */
    bsmm_pack pack;
    bool in_gguf; /* `in_gguf` is true if only GGUF files store weights in this way. */
} bsmm_storage;

#define BSMM_STORAGE_LIMIT 64
/* Returns entry `index` of the table of ways to store a weight (families.c), or NULL past the last
 * entry. */
const bsmm_storage *bsmm_storage_at(size_t index);
/* Returns the storage table entry (families.c) for unscaled tensors. The reader compares a tensor
 * with this entry last. */
const bsmm_storage *bsmm_storage_plain(void);
/* Returns the entry of the storage table (families.c) for files whose metadata says how their
 * weights are stored. The reader tries this entry before all others. */
const bsmm_storage *bsmm_storage_declared(void);
/* Returns the entries of the table in families.c in the order in which the writer tries them, and
 * NULL past the last entry. `index` counts from 0. */
const bsmm_storage *bsmm_storage_to_write(size_t index);
bool bsmm_family_exists(const char *name);
/* Returns the format of a weight that is stored as the storage table entry `row` (families.c)
 * describes. `height` and `width` are the weight's numbers of rows and columns. */
bsmm_format bsmm_storage_format(const bsmm_storage *row, int64_t height, int64_t width);
/* Tells whether the scale tensor of a weight has the shape that the storage table entry `row`
 * (families.c) prescribes for this data tensor (resolve.c). */
bool bsmm_storage_fits(const bsmm_storage *row, const bsmm_tensor *data, const bsmm_tensor *scale);

/* The functions from here on are in recognise.c. They recognize weights. */

typedef struct bsmm_record {
    const char *name;
    const bsmm_storage *row;
    /* `data`, `scale` and `global` are the indices of the weight's tensors. BSMM_NO_TENSOR means
     * that there is no such tensor. */
    uint64_t data, scale, global;
    /* `declaration` is the JSON text in the file's metadata that describes the weight. It is NULL
     * if there is none. */
    const char *declaration;
    /* `doubt` is the reason why `row`, an entry of the storage table (families.c), may be the wrong
     * one for the weight. NULL means that there is no doubt. */
    const char *doubt;
    /* `globals` holds the values of the tensor of global scales, aligned for float access. */
    float *globals;
} bsmm_record;

/* Recognizes the weights among the tensors of a file and lists them. A broken weight is listed too;
 * its error is reported when a caller asks for the weight. */
bsmm_status bsmm_file_recognise(bsmm_file *file);

/* The functions from here on are in resolve.c. They check recognized weights. */

typedef struct bsmm_resolved {
    bsmm_weight weight;
    /* `operand` describes matrix 0 of the weight. Its pointers are set if the weight is mapped. */
    bsmm_operand operand;
    const uint8_t *data, *scales;
    /* `data_step` and `scale_step` are the strides from the elements and the scales of one matrix
     * to those of the next matrix in the file, in bytes. */
    uint64_t data_step, scale_step;
    /* `global_step` is the stride from the global scale of one matrix to that of the next matrix,
     * in scales. 0 means that all matrices share one global scale. */
    uint32_t global_step;
} bsmm_resolved;

/* Checks the shapes, types and values of a recognized weight's tensors against the table entry
 * record->row, which says how its family stores weights. The message of a FORMAT error names the
 * reason why the weight cannot be read safely. */
bsmm_status bsmm_record_resolve(const bsmm_file *file, const bsmm_record *record,
                                bsmm_resolved *out);

/* Checks that the caller's matrix `given` has the same format, order, sizes and scale layout as
 * `have`, the matrix that the function `call` describes. `what` is the name of the argument
 * (weight.c). */
bsmm_status bsmm_operand_check_same(const bsmm_operand *have, const bsmm_operand *given,
                                    const char *what, const char *call);

/* The functions from here on are in declaration.c. They read and write the descriptions of weights
 * (declarations) that checkpoints of the family "bsmm" have in their metadata. */

#define BSMM_DECLARATION_PREFIX "bsmm."

bsmm_status bsmm_declaration_read(const char *text, const char *what, bsmm_matrix *matrix,
                                  int64_t *batch);
char *bsmm_declaration_write(const bsmm_matrix *matrix, int64_t batch, bsmm_arena *arena);

/* The functions from here on are in config.c. They read quantization_config. */

#define BSMM_CONFIG_KEY "quantization_config"

typedef struct bsmm_config {
    /* `root` is the parsed JSON. It is NULL if there is no config or if it cannot be read. */
    struct json_t *root;
    /* `unreadable` is the reason why an existing config cannot be read. NULL means that there is no
     * such problem. */
    const char *unreadable;
} bsmm_config;
/* Loads quantization_config from the file's metadata, or from config.json in the file's folder if
 * the metadata has none. */
void bsmm_config_load(bsmm_file *file, bsmm_config *config);
void bsmm_config_free(bsmm_config *config);
/* Writes the evidence for a tensor's layer: a text that says how quantization_config describes the
 * layer, such as "quark fp4" or "quark mx fp6_e2m3". The text is "" if quantization_config does not
 * describe the layer. */
void bsmm_config_evidence(const bsmm_config *config, const char *layer, char *text, size_t size);
/* Makes the text of a quantization_config that describes the layers. evidence[i] is the text that
 * bsmm_config_evidence must return for layers[i] of this quantization_config. Returns NULL if there
 * is no memory. The caller frees the text. */
char *bsmm_config_write(const char *const *layers, const char *const *evidence, size_t count);

/* The functions from here on are in unpack.c. They read stored blocks in which scales and elements
 * alternate. */

bsmm_status bsmm_unpack_gguf_mxfp4(const bsmm_storage *row, const uint8_t *from,
                                   const bsmm_operand *to, const char *what);
bsmm_status bsmm_unpack_gguf_nvfp4(const bsmm_storage *row, const uint8_t *from,
                                   const bsmm_operand *to, const char *what);
bsmm_status bsmm_unpack_quark_mxfp4(const bsmm_storage *row, const uint8_t *from,
                                    const bsmm_operand *to, const char *what);
bsmm_status bsmm_unpack_quark_mxfp6(const bsmm_storage *row, const uint8_t *from,
                                    const bsmm_operand *to, const char *what);
/* Decodes blocks of ggml's quantized types to fp32, bitwise identical to ggml. */
bsmm_status bsmm_unpack_gguf_plain(const bsmm_storage *row, const uint8_t *from,
                                   const bsmm_operand *to, const char *what);

/* The functions from here on are in pack.c. They write the stored blocks of GGUF files. */

bsmm_status bsmm_pack_gguf_mxfp4(const bsmm_operand *from, uint8_t *to, const char *what);
bsmm_status bsmm_pack_gguf_nvfp4(const bsmm_operand *from, uint8_t *to, const char *what);

#endif
