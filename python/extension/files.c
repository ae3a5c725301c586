/* Reads tensors, weights and metadata of files. A Python capsule holds an open file, and its
 * destructor closes the file. Arrays in the file's mapping keep the capsule alive. */
#include "extension.h"

#include <stdlib.h>

static const char file_name[] = "bsmm_file";

static void close_file(PyObject *capsule) {
    bsmm_file_close(PyCapsule_GetPointer(capsule, file_name));
}

static PyObject *file_open(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *path;
    bsmm_file *file;
    bsmm_status status;
    if (!PyArg_ParseTuple(args, "O&", PyUnicode_FSConverter, &path)) return NULL;
    const char *text = PyBytes_AsString(path);
    Py_BEGIN_ALLOW_THREADS;
    status = bsmm_file_open(text, &file);
    Py_END_ALLOW_THREADS;
    Py_DECREF(path);
    if (status) return bsmm_py_none_or_error(status);
    PyObject *capsule = PyCapsule_New(file, file_name, close_file);
    if (!capsule) bsmm_file_close(file);
    return capsule;
}

static const bsmm_file *take_file(PyObject *capsule) {
    return PyCapsule_GetPointer(capsule, file_name);
}

static PyObject *file_info(PyObject *module, PyObject *capsule) {
    (void)module;
    const bsmm_file *file = take_file(capsule);
    if (!file) return NULL;
    return Py_BuildValue("sKK", bsmm_file_kind(file),
                         (unsigned long long)bsmm_file_tensor_count(file),
                         (unsigned long long)bsmm_file_weight_count(file));
}

static PyObject *file_tensor(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *capsule;
    unsigned long long index;
    bsmm_tensor tensor = BSMM_INIT(bsmm_tensor);
    if (!PyArg_ParseTuple(args, "OK", &capsule, &index)) return NULL;
    const bsmm_file *file = take_file(capsule);
    if (!file) return NULL;
    bsmm_status status = bsmm_file_tensor_at(file, index, &tensor);
    return status ? bsmm_py_none_or_error(status) : bsmm_py_read(&bsmm_py_tensor, &tensor);
}

static PyObject *file_weight(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *capsule;
    unsigned long long index;
    bsmm_weight weight = BSMM_INIT(bsmm_weight);
    if (!PyArg_ParseTuple(args, "OK", &capsule, &index)) return NULL;
    const bsmm_file *file = take_file(capsule);
    if (!file) return NULL;
    bsmm_status status = bsmm_file_weight_at(file, index, &weight);
    return status ? bsmm_py_none_or_error(status) : bsmm_py_read(&bsmm_py_weight, &weight);
}

static PyObject *file_find(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *capsule;
    const char *name;
    uint64_t index;
    if (!PyArg_ParseTuple(args, "Os", &capsule, &name)) return NULL;
    const bsmm_file *file = take_file(capsule);
    if (!file) return NULL;
    bsmm_status status = bsmm_file_weight_find(file, name, &index);
    return status ? bsmm_py_none_or_error(status) : PyLong_FromUnsignedLongLong(index);
}

/* Returns the names of all weights, including weights that the library cannot read safely. */
static PyObject *file_names(PyObject *module, PyObject *capsule) {
    (void)module;
    const bsmm_file *file = take_file(capsule);
    PyObject *list = file ? PyList_New(0) : NULL;
    for (uint64_t i = 0; list && i < bsmm_file_weight_count(file); i++) {
        bsmm_weight weight = BSMM_INIT(bsmm_weight);
        (void)bsmm_file_weight_at(file, i, &weight);
        const char *text = weight.name ? weight.name : "";
        PyObject *name = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "surrogateescape");
        if (!name || PyList_Append(list, name)) Py_CLEAR(list);
        Py_XDECREF(name);
    }
    return list;
}

static PyObject *weight_matrix(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *capsule;
    unsigned long long index;
    long long slice;
    bsmm_matrix matrix = BSMM_INIT(bsmm_matrix);
    if (!PyArg_ParseTuple(args, "OKL", &capsule, &index, &slice)) return NULL;
    const bsmm_file *file = take_file(capsule);
    if (!file) return NULL;
    bsmm_status status = bsmm_weight_matrix(file, index, slice, &matrix);
    return status ? bsmm_py_none_or_error(status) : bsmm_py_read(&bsmm_py_matrix, &matrix);
}

static PyObject *weight_unpack(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *capsule, *dict;
    unsigned long long index;
    long long slice;
    arena memory = {.used = 0};
    bsmm_matrix matrix;
    bsmm_status status;
    if (!PyArg_ParseTuple(args, "OKLO", &capsule, &index, &slice, &dict)) return NULL;
    const bsmm_file *file = take_file(capsule);
    if (!file || bsmm_py_fill(&bsmm_py_matrix, dict, &matrix, &memory)) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = bsmm_weight_unpack(file, index, slice, &matrix);
    Py_END_ALLOW_THREADS;
    return bsmm_py_none_or_error(status);
}

static PyObject *read_items(const bsmm_file *file, const char *key, uint64_t count);

static PyObject *read_value(const bsmm_file *file, const char *key, const bsmm_value *value) {
    switch (value->type) {
    case BSMM_VALUE_INTEGER:
        return PyLong_FromLongLong(value->integer);
    case BSMM_VALUE_UNSIGNED:
        return PyLong_FromUnsignedLongLong(value->natural);
    case BSMM_VALUE_FLOAT:
        return PyFloat_FromDouble(value->real);
    case BSMM_VALUE_BOOL:
        return PyBool_FromLong(value->natural != 0);
    case BSMM_VALUE_STRING:
        return PyUnicode_DecodeUTF8(value->text, (Py_ssize_t)value->count, "surrogateescape");
    case BSMM_VALUE_ARRAY:
        return read_items(file, key, value->count);
    default:
        return Py_NewRef(Py_None);
    }
}

static PyObject *list_items(const bsmm_value *values, uint64_t count) {
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (uint64_t i = 0; list && i < count; i++) {
        PyObject *item = read_value(NULL, NULL, &values[i]);
        if (!item || PyList_SetItem(list, (Py_ssize_t)i, item)) Py_CLEAR(list);
    }
    return list;
}

static PyObject *read_items(const bsmm_file *file, const char *key, uint64_t count) {
    bsmm_value *values = calloc(count ? count : 1, sizeof *values);
    if (!values) return PyErr_NoMemory();
    values[0].struct_size = sizeof *values;
    bsmm_status status = count ? bsmm_file_value_items(file, key, 0, count, values) : BSMM_OK;
    PyObject *list = status ? bsmm_py_none_or_error(status) : list_items(values, count);
    free(values);
    return list;
}

static PyObject *file_value(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *capsule;
    const char *key;
    bsmm_value value = BSMM_INIT(bsmm_value);
    if (!PyArg_ParseTuple(args, "Os", &capsule, &key)) return NULL;
    const bsmm_file *file = take_file(capsule);
    if (!file) return NULL;
    bsmm_status status = bsmm_file_value(file, key, &value);
    return status ? bsmm_py_none_or_error(status) : read_value(file, key, &value);
}

static PyObject *file_keys(PyObject *module, PyObject *capsule) {
    (void)module;
    const char *key, *value;
    const bsmm_file *file = take_file(capsule);
    PyObject *list = file ? PyList_New(0) : NULL;
    for (uint64_t i = 0; list && !bsmm_file_metadata_at(file, i, &key, &value); i++) {
        PyObject *name = PyUnicode_DecodeUTF8(key, (Py_ssize_t)strlen(key), "surrogateescape");
        if (!name || PyList_Append(list, name)) Py_CLEAR(list);
        Py_XDECREF(name);
    }
    return list;
}

PyMethodDef bsmm_py_file_methods[] = {
    {"file_open", file_open, METH_VARARGS, "file_open(path): a file"},
    {"file_info", file_info, METH_O, "file_info(file): kind, number of tensors and of weights"},
    {"file_tensor", file_tensor, METH_VARARGS, "file_tensor(file, index): a dict"},
    {"file_weight", file_weight, METH_VARARGS, "file_weight(file, index): a dict"},
    {"file_find", file_find, METH_VARARGS, "file_find(file, name): the index of a weight"},
    {"file_names", file_names, METH_O, "file_names(file): the names of the weights"},
    {"weight_matrix", weight_matrix, METH_VARARGS, "weight_matrix(file, index, slice): a dict"},
    {"weight_unpack", weight_unpack, METH_VARARGS, "weight_unpack(file, index, slice, matrix)"},
    {"file_value", file_value, METH_VARARGS, "file_value(file, key): a value of the metadata"},
    {"file_keys", file_keys, METH_O, "file_keys(file): the keys of the metadata"},
    {0},
};
