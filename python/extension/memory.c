/* Implements device memory for Python. The functions allocate, free, copy and fill device memory,
 * and wait for a stream. */
#include "extension.h"

static PyObject *allocate(PyObject *module, PyObject *args) {
    (void)module;
    const char *device;
    unsigned long long bytes;
    void *memory;
    bsmm_status status;
    if (!PyArg_ParseTuple(args, "sK", &device, &bytes)) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = bsmm_allocate_memory(device, bytes, &memory);
    Py_END_ALLOW_THREADS;
    return status ? bsmm_py_none_or_error(status) : PyLong_FromVoidPtr(memory);
}

static PyObject *free_memory(PyObject *module, PyObject *args) {
    (void)module;
    const char *device;
    PyObject *address;
    bsmm_status status;
    if (!PyArg_ParseTuple(args, "sO", &device, &address)) return NULL;
    void *memory = PyLong_AsVoidPtr(address);
    if (PyErr_Occurred()) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = bsmm_free_memory(device, memory);
    Py_END_ALLOW_THREADS;
    return bsmm_py_none_or_error(status);
}

static PyObject *copy(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *dict, *to, *from;
    unsigned long long bytes;
    arena memory = {.used = 0};
    bsmm_exec exec;
    bsmm_status status;
    if (!PyArg_ParseTuple(args, "OOOK", &dict, &to, &from, &bytes) ||
        bsmm_py_fill(&bsmm_py_exec, dict, &exec, &memory))
        return NULL;
    void *destination = PyLong_AsVoidPtr(to);
    void *source = PyErr_Occurred() ? NULL : PyLong_AsVoidPtr(from);
    if (PyErr_Occurred()) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = bsmm_copy_memory(&exec, destination, source, bytes);
    Py_END_ALLOW_THREADS;
    return bsmm_py_none_or_error(status);
}

static PyObject *synchronize(PyObject *module, PyObject *dict) {
    (void)module;
    arena memory = {.used = 0};
    bsmm_exec exec;
    bsmm_status status;
    if (bsmm_py_fill(&bsmm_py_exec, dict, &exec, &memory)) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = bsmm_synchronize_stream(&exec);
    Py_END_ALLOW_THREADS;
    return bsmm_py_none_or_error(status);
}

PyMethodDef bsmm_py_memory_methods[] = {
    {"allocate", allocate, METH_VARARGS, "allocate(device, bytes): an address"},
    {"free", free_memory, METH_VARARGS, "free(device, address)"},
    {"copy", copy, METH_VARARGS, "copy(exec, to, from, bytes)"},
    {"synchronize", synchronize, METH_O, "synchronize(exec): wait for the stream"},
    {0},
};
