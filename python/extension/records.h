/* SPDX-License-Identifier: Apache-2.0
 * Declares conversions between Python dicts and the structs of bsmm.h. A table of fields describes
 * each struct, so that one function fills any struct from a dict and one function reads any struct
 * into a dict. */
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
    /* FIELD_POINTER: the field is an address. Python passes an int, or None for NULL. */
    FIELD_POINTER,
    FIELD_TEXT, /* FIELD_TEXT: the field is a const char *. Python passes None for NULL. */
    /* FIELD_CHARS: the field is an array of char that ends with NUL. Python can only read it. */
    FIELD_CHARS,
    FIELD_RECORD, /* FIELD_RECORD: the field is a struct inside the struct. */
    /* FIELD_RECORD_POINTER: the field is a pointer to a struct, which is filled from a separate
     * dict. */
    FIELD_RECORD_POINTER,
    /* FIELD_F32_POINTER: the field is a pointer to one float, which is filled from a number. */
    FIELD_F32_POINTER
} field_kind;

typedef struct record record;

typedef struct field {
    const char *name; /* `name` is the name of the field. NULL ends a table of fields. */
    size_t offset;    /* `offset` is the offset of the field in the struct in bytes. */
    field_kind kind;
    const record *type; /* `type` points to the struct of a FIELD_RECORD or FIELD_RECORD_POINTER. */
    /* `count` is the number of array items, or 0 if the field is not an array. */
    size_t count;
} field;

struct record {
    const char *name;    /* `name` is the name of the struct in bsmm.h. */
    size_t size;         /* `size` is the size of the struct in bytes. */
    int is_versioned;    /* `is_versioned` is 1 if the struct begins with struct_size. */
    const field *fields; /* `fields` lists the fields that Python sees. */
};

extern const record bsmm_py_format, bsmm_py_matrix, bsmm_py_epilogue, bsmm_py_group;
extern const record bsmm_py_matmul_desc, bsmm_py_buffers, bsmm_py_quantize_desc, bsmm_py_exec;
extern const record bsmm_py_report, bsmm_py_explanation, bsmm_py_packed_info, bsmm_py_sol;
extern const record bsmm_py_elem_info, bsmm_py_preset_info, bsmm_py_layout_info;
extern const record bsmm_py_activation_info, bsmm_py_recipe_info, bsmm_py_device_info;
extern const record bsmm_py_local_device, bsmm_py_packed_form_info, bsmm_py_family_info;
extern const record bsmm_py_mfma_info, bsmm_py_tensor, bsmm_py_weight;

/* Holds the structs and floats to which a filled struct points. The largest description (a product
 * with five matrices, an epilogue and groups) takes less than 2 KiB. */
typedef struct arena {
    size_t used;
    _Alignas(16) unsigned char memory[4096];
} arena;

/* Sets *out to zeros, sets struct_size and fills the fields that `dict` names. `dict` may also be a
 * tuple with all fields in the order of the table. Texts and addresses point into objects of
 * `dict`. Returns 0, or -1 with a Python exception that names a wrong field.
 */
int bsmm_py_fill(const record *type, PyObject *dict, void *out, arena *memory);

/* Fills a struct in `memory` from a Python dict or tuple (bsmm_py_fill), and stores the struct's
 * address in *out. For None, *out becomes NULL. */
int bsmm_py_fill_pointer(const record *type, PyObject *dict, void **out, arena *memory);

/* Returns a new dict with the fields of a struct, or NULL with a Python exception. */
PyObject *bsmm_py_read(const record *type, const void *from);

#endif
