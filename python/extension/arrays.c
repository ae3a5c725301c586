/* Reads the memory of arrays by Python's buffer protocol. */
#include "extension.h"

/* Returns a tuple of `count` integers, each divided by `unit`. Returns None if a division leaves a
 * remainder. */
static PyObject *divided(const Py_ssize_t *numbers, int count, Py_ssize_t unit) {
    for (int i = 0; i < count; i++)
        if (numbers[i] % unit) return Py_NewRef(Py_None);
    PyObject *tuple = PyTuple_New(count);
    for (int i = 0; tuple && i < count; i++) {
        PyObject *number = PyLong_FromSsize_t(numbers[i] / unit);
        if (!number || PyTuple_SetItem(tuple, i, number)) Py_CLEAR(tuple);
    }
    return tuple;
}

/* Returns the address, shape and strides of an array. It releases the buffer at once, because the
 * caller of this function keeps the array, and therefore the memory, alive. */
static PyObject *buffer_read(PyObject *module, PyObject *array) {
    (void)module;
    Py_buffer buffer;
    if (PyObject_GetBuffer(array, &buffer, PyBUF_STRIDES)) return NULL;
    const Py_ssize_t item = buffer.itemsize > 0 ? buffer.itemsize : 1;
    PyObject *address = PyLong_FromVoidPtr(buffer.buf);
    PyObject *shape = divided(buffer.shape, buffer.ndim, 1);
    PyObject *strides = divided(buffer.strides, buffer.ndim, item);
    PyBuffer_Release(&buffer);
    PyObject *found = address && shape && strides ? PyTuple_Pack(3, address, shape, strides) : NULL;
    Py_XDECREF(address);
    Py_XDECREF(shape);
    Py_XDECREF(strides);
    return found;
}

PyMethodDef bsmm_py_array_methods[] = {
    {"buffer_read", buffer_read, METH_O,
     "buffer_read(array): address, shape, and strides in items or None"},
    {0},
};
