/* Fills structs of bsmm.h from Python dicts and reads structs into dicts. A table describes the
 * fields of each struct. */
#include "records.h"

#include <string.h>

static int set_u32(const field *f, PyObject *value, void *at, arena *memory) {
    (void)f, (void)memory;
    unsigned long number = PyLong_AsUnsignedLong(value);
    if (PyErr_Occurred() || number > UINT32_MAX) return -1;
    *(uint32_t *)at = (uint32_t)number;
    return 0;
}

static int set_i32(const field *f, PyObject *value, void *at, arena *memory) {
    (void)f, (void)memory;
    long number = PyLong_AsLong(value);
    if (PyErr_Occurred() || number > INT32_MAX || number < INT32_MIN) return -1;
    *(int32_t *)at = (int32_t)number;
    return 0;
}

static int set_u64(const field *f, PyObject *value, void *at, arena *memory) {
    (void)f, (void)memory;
    *(uint64_t *)at = PyLong_AsUnsignedLongLong(value);
    return PyErr_Occurred() ? -1 : 0;
}

static int set_i64(const field *f, PyObject *value, void *at, arena *memory) {
    (void)f, (void)memory;
    *(int64_t *)at = PyLong_AsLongLong(value);
    return PyErr_Occurred() ? -1 : 0;
}

static int set_f32(const field *f, PyObject *value, void *at, arena *memory) {
    (void)f, (void)memory;
    *(float *)at = (float)PyFloat_AsDouble(value);
    return PyErr_Occurred() ? -1 : 0;
}

static int set_f64(const field *f, PyObject *value, void *at, arena *memory) {
    (void)f, (void)memory;
    *(double *)at = PyFloat_AsDouble(value);
    return PyErr_Occurred() ? -1 : 0;
}

static int set_pointer(const field *f, PyObject *value, void *at, arena *memory) {
    (void)f, (void)memory;
    *(void **)at = Py_IsNone(value) ? NULL : PyLong_AsVoidPtr(value);
    return PyErr_Occurred() ? -1 : 0;
}

static int set_text(const field *f, PyObject *value, void *at, arena *memory) {
    (void)f, (void)memory;
    Py_ssize_t length;
    *(const char **)at = NULL;
    if (Py_IsNone(value)) return 0;
    const char *text = PyUnicode_AsUTF8AndSize(value, &length);
    if (!text || strlen(text) != (size_t)length) return -1;
    *(const char **)at = text;
    return 0;
}

static int refuse(const field *f, PyObject *value, void *at, arena *memory) {
    (void)f, (void)value, (void)at, (void)memory;
    return -1;
}

static int set_record(const field *f, PyObject *value, void *at, arena *memory) {
    return bsmm_py_fill(f->type, value, at, memory);
}

static int set_record_pointer(const field *f, PyObject *value, void *at, arena *memory) {
    return bsmm_py_fill_pointer(f->type, value, at, memory);
}

static void *take(arena *memory, size_t bytes) {
    size_t rounded = (bytes + 15) / 16 * 16;
    if (rounded > sizeof memory->memory - memory->used) return NULL;
    void *taken = memory->memory + memory->used;
    memory->used += rounded;
    return taken;
}

static int set_f32_pointer(const field *f, PyObject *value, void *at, arena *memory) {
    if (Py_IsNone(value)) return 0;
    float *number = take(memory, sizeof *number);
    *(float **)at = number;
    return number ? set_f32(f, value, number, memory) : -1;
}

static PyObject *get_u32(const field *f, const void *at) {
    (void)f;
    return PyLong_FromUnsignedLong(*(const uint32_t *)at);
}

static PyObject *get_i32(const field *f, const void *at) {
    (void)f;
    return PyLong_FromLong(*(const int32_t *)at);
}

static PyObject *get_u64(const field *f, const void *at) {
    (void)f;
    return PyLong_FromUnsignedLongLong(*(const uint64_t *)at);
}

static PyObject *get_i64(const field *f, const void *at) {
    (void)f;
    return PyLong_FromLongLong(*(const int64_t *)at);
}

static PyObject *get_f32(const field *f, const void *at) {
    (void)f;
    return PyFloat_FromDouble((double)*(const float *)at);
}

static PyObject *get_f64(const field *f, const void *at) {
    (void)f;
    return PyFloat_FromDouble(*(const double *)at);
}

static PyObject *get_pointer(const field *f, const void *at) {
    (void)f;
    void *address = *(void *const *)at;
    return address ? PyLong_FromVoidPtr(address) : Py_NewRef(Py_None);
}

static PyObject *decode(const char *text) {
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "surrogateescape");
}

static PyObject *get_text(const field *f, const void *at) {
    (void)f;
    const char *text = *(const char *const *)at;
    return text ? decode(text) : Py_NewRef(Py_None);
}

static PyObject *get_chars(const field *f, const void *at) {
    (void)f;
    return decode(at);
}

static PyObject *get_record(const field *f, const void *at) {
    return bsmm_py_read(f->type, at);
}

static const struct {
    int (*set)(const field *f, PyObject *value, void *at, arena *memory);
    PyObject *(*get)(const field *f, const void *at);
    /* `size` is the distance in bytes between two items of an array of this kind. 0 means the size
     * of the struct. */
    size_t size;
    const char *expected;
} kinds[] = {
    [FIELD_U32] = {set_u32, get_u32, sizeof(uint32_t), "an integer from 0 to 2**32 - 1"},
    [FIELD_I32] = {set_i32, get_i32, sizeof(int32_t), "an integer from -2**31 to 2**31 - 1"},
    [FIELD_U64] = {set_u64, get_u64, sizeof(uint64_t), "an integer from 0 to 2**64 - 1"},
    [FIELD_I64] = {set_i64, get_i64, sizeof(int64_t), "an integer from -2**63 to 2**63 - 1"},
    [FIELD_F32] = {set_f32, get_f32, sizeof(float), "a number"},
    [FIELD_F64] = {set_f64, get_f64, sizeof(double), "a number"},
    [FIELD_POINTER] = {set_pointer, get_pointer, sizeof(void *), "an address or None"},
    [FIELD_TEXT] = {set_text, get_text, sizeof(char *), "a string without NUL, or None"},
    [FIELD_CHARS] = {refuse, get_chars, 1, "left out"},
    [FIELD_RECORD] = {set_record, get_record, 0, "a dict"},
    [FIELD_RECORD_POINTER] = {set_record_pointer, get_pointer, sizeof(void *), "a dict or None"},
    [FIELD_F32_POINTER] = {set_f32_pointer, get_pointer, sizeof(float *), "a number or None"},
};

static const field *find_field(const record *type, PyObject *name) {
    for (const field *f = type->fields; f->name; f++)
        if (PyUnicode_CompareWithASCIIString(name, f->name) == 0) return f;
    PyErr_Format(PyExc_TypeError, "%s: there is no field %R", type->name, name);
    return NULL;
}

/* Fills one field of a struct. If the value of a nested struct is wrong, the exception already
 * names the inner field, so the function keeps it. */
static int fill_field(const record *type, const field *f, PyObject *value, void *out,
                      arena *memory) {
    if (kinds[f->kind].set(f, value, (char *)out + f->offset, memory) == 0) return 0;
    if (PyErr_Occurred() && f->type) return -1;
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "%s.%s: value is %R; must be %s", type->name, f->name, value,
                 kinds[f->kind].expected);
    return -1;
}

/* Fills a struct from a tuple, which has the fields in the order of the table. */
static int fill_in_order(const record *type, PyObject *tuple, void *out, arena *memory) {
    const Py_ssize_t count = PyTuple_Size(tuple);
    Py_ssize_t i = 0;
    for (const field *f = type->fields; f->name && i < count; f++, i++)
        if (fill_field(type, f, PyTuple_GetItem(tuple, i), out, memory)) return -1;
    if (i == count && !type->fields[i].name) return 0;
    PyErr_Format(PyExc_TypeError, "%s: value is %R; must have one item for each field", type->name,
                 tuple);
    return -1;
}

int bsmm_py_fill(const record *type, PyObject *dict, void *out, arena *memory) {
    PyObject *name, *value;
    Py_ssize_t position = 0;
    memset(out, 0, type->size);
    if (type->is_versioned) *(uint32_t *)out = (uint32_t)type->size;
    if (PyTuple_Check(dict)) return fill_in_order(type, dict, out, memory);
    if (!PyDict_Check(dict)) {
        PyErr_Format(PyExc_TypeError, "%s: value is %R; must be a dict or a tuple", type->name,
                     dict);
        return -1;
    }
    while (PyDict_Next(dict, &position, &name, &value)) {
        const field *f = PyUnicode_Check(name) ? find_field(type, name) : NULL;
        if (!f && !PyErr_Occurred())
            PyErr_Format(PyExc_TypeError, "%s: the key %R is no string", type->name, name);
        if (!f || fill_field(type, f, value, out, memory)) return -1;
    }
    return 0;
}

int bsmm_py_fill_pointer(const record *type, PyObject *dict, void **out, arena *memory) {
    *out = NULL;
    if (Py_IsNone(dict)) return 0;
    *out = take(memory, type->size);
    if (*out) return bsmm_py_fill(type, dict, *out, memory);
    PyErr_Format(PyExc_ValueError, "%s: the description has too many parts", type->name);
    return -1;
}

static PyObject *read_array(const field *f, const char *at) {
    size_t size = kinds[f->kind].size ? kinds[f->kind].size : f->type->size;
    PyObject *list = PyList_New((Py_ssize_t)f->count);
    for (size_t i = 0; list && i < f->count; i++) {
        PyObject *item = kinds[f->kind].get(f, at + i * size);
        if (!item || PyList_SetItem(list, (Py_ssize_t)i, item)) Py_CLEAR(list);
    }
    return list;
}

PyObject *bsmm_py_read(const record *type, const void *from) {
    PyObject *dict = PyDict_New();
    for (const field *f = type->fields; dict && f->name; f++) {
        const char *at = (const char *)from + f->offset;
        PyObject *value = f->count ? read_array(f, at) : kinds[f->kind].get(f, at);
        if (!value || PyDict_SetItemString(dict, f->name, value)) Py_CLEAR(dict);
        Py_XDECREF(value);
    }
    return dict;
}
