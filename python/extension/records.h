/* SPDX-License-Identifier: Apache-2.0
 *
 * Python dicts for the structs of bsmm.h. A table of fields describes each struct, so that one
 * function fills any struct from a dict and one function reads any struct into a dict. */
#ifndef BSMM_PYTHON_RECORDS_H
#define BSMM_PYTHON_RECORDS_H

#include "python.h"

#include <bsmm.h>

typedef enum field_kind {
    FIELD_U32,
    FIELD_I32,
    FIELD_U64,
    FIELD_I64,
    FIELD_F32,
    FIELD_F64,
    FIELD_POINTER,        /* an address as an int; None is NULL */
    FIELD_TEXT,           /* const char *; None is NULL */
    FIELD_CHARS,          /* an array of char that ends with NUL; read only */
    FIELD_RECORD,         /* a struct inside the struct */
    FIELD_RECORD_POINTER, /* a pointer to a struct, which is filled from a dict of its own */
    FIELD_F32_POINTER     /* a pointer to one float, which is filled from a number */
} field_kind;

typedef struct record record;

typedef struct field {
    const char *name;   /* NULL ends a table of fields. */
    size_t offset;      /* Offset in the struct in bytes */
    field_kind kind;    /* Type of the field */
    const record *type; /* Struct of a FIELD_RECORD or FIELD_RECORD_POINTER */
    size_t count;       /* Number of array items; 0: the field is no array */
} field;

struct record {
    const char *name;    /* Name of the struct in bsmm.h */
    size_t size;         /* sizeof */
    int is_versioned;    /* 1: the struct begins with struct_size */
    const field *fields; /* Fields that Python sees */
};

extern const record bsmm_py_format, bsmm_py_matrix, bsmm_py_epilogue, bsmm_py_group;
extern const record bsmm_py_matmul_desc, bsmm_py_buffers, bsmm_py_quantize_desc, bsmm_py_exec;
extern const record bsmm_py_report, bsmm_py_explanation, bsmm_py_packed_info, bsmm_py_sol;
extern const record bsmm_py_elem_info, bsmm_py_preset_info, bsmm_py_layout_info;
extern const record bsmm_py_activation_info, bsmm_py_recipe_info, bsmm_py_device_info;
extern const record bsmm_py_local_device, bsmm_py_packed_form_info, bsmm_py_family_info;
extern const record bsmm_py_mfma_info, bsmm_py_tensor, bsmm_py_weight;

/* Memory for the structs and floats that a filled struct points to. The largest description, a
 * product with five matrices, an epilogue and groups, takes less than 2 KiB. */
typedef struct arena {
    size_t used;
    _Alignas(16) unsigned char memory[4096];
} arena;

/* Sets *out to zeros, sets struct_size and fills the fields that `dict` names. Texts and addresses
 * are borrowed from `dict`. Returns 0. Returns -1 with a Python exception that names the field if
 * the struct has no such field or the value does not fit. */
int bsmm_py_fill(const record *type, PyObject *dict, void *out, arena *memory);

/* As bsmm_py_fill, but gives NULL for None and else a struct in `memory`. */
int bsmm_py_fill_pointer(const record *type, PyObject *dict, void **out, arena *memory);

/* Returns a new dict with the fields of a struct, or NULL with a Python exception. */
PyObject *bsmm_py_read(const record *type, const void *from);

#endif
