/* Reads the tensor of a DLPack capsule, and makes a capsule for memory that a Python object owns.
 * The structs are those of DLPack 1.1 (dlpack.h). */
#include "extension.h"

#include <stdlib.h>

typedef struct dl_tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} dl_tensor;

/* A capsule with the name "dltensor" contains this struct. */
typedef struct dl_managed {
    dl_tensor tensor;
    void *context;
    void (*deleter)(struct dl_managed *self);
} dl_managed;

/* A capsule with the name "dltensor_versioned" contains this struct, which is the same in all
 * versions 1.x of DLPack. */
typedef struct dl_versioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct dl_versioned *self);
    uint64_t flags;
    dl_tensor tensor;
} dl_versioned;

static const dl_tensor *find_tensor(PyObject *capsule) {
    if (PyCapsule_IsValid(capsule, "dltensor"))
        return &((dl_managed *)PyCapsule_GetPointer(capsule, "dltensor"))->tensor;
    if (!PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        PyErr_SetString(PyExc_TypeError, "dlpack: the object is no unused DLPack capsule");
        return NULL;
    }
    const dl_versioned *managed = PyCapsule_GetPointer(capsule, "dltensor_versioned");
    if (managed->major == 1) return &managed->tensor;
    PyErr_Format(PyExc_BufferError, "dlpack: version is %u; must be 1", (unsigned)managed->major);
    return NULL;
}

static PyObject *list_extents(const int64_t *extents, int32_t count) {
    if (!extents) Py_RETURN_NONE;
    PyObject *list = PyTuple_New(count);
    for (int32_t i = 0; list && i < count; i++) {
        PyObject *item = PyLong_FromLongLong(extents[i]);
        if (!item || PyTuple_SetItem(list, i, item)) Py_CLEAR(list);
    }
    return list;
}

static PyObject *dlpack_read(PyObject *module, PyObject *capsule) {
    (void)module;
    const dl_tensor *t = find_tensor(capsule);
    if (!t) return NULL;
    PyObject *shape = list_extents(t->shape, t->ndim);
    PyObject *strides = shape ? list_extents(t->strides, t->ndim) : NULL;
    PyObject *address = strides ? PyLong_FromVoidPtr((char *)t->data + t->byte_offset) : NULL;
    PyObject *all = NULL;
    if (address)
        all = Py_BuildValue("OiiiiiOO", address, (int)t->device_type, (int)t->device_id,
                            (int)t->code, (int)t->bits, (int)t->lanes, shape, strides);
    Py_XDECREF(address);
    Py_XDECREF(strides);
    Py_XDECREF(shape);
    return all;
}

enum { MOST_DIMS = 3 };

typedef struct exported {
    dl_managed managed;
    int64_t shape[MOST_DIMS], strides[MOST_DIMS];
} exported;

/* Releases the Python object that owns the memory of an exported tensor. The function takes the
 * GIL, because a consumer may call it in a thread without the GIL. */
static void delete_export(dl_managed *self) {
    PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF((PyObject *)self->context);
    PyGILState_Release(state);
    free(self);
}

/* Frees the tensor of a capsule that nobody has used. A consumer renames the capsule and then owns
 * the tensor, so the function does nothing in that case. */
static void drop_capsule(PyObject *capsule) {
    if (!PyCapsule_IsValid(capsule, "dltensor")) return;
    dl_managed *managed = PyCapsule_GetPointer(capsule, "dltensor");
    managed->deleter(managed);
}

static void set_extents(exported *out) {
    int64_t stride = 1;
    for (int32_t i = out->managed.tensor.ndim; i-- > 0;) {
        out->strides[i] = stride;
        stride *= out->shape[i];
    }
    out->managed.tensor.shape = out->shape;
    out->managed.tensor.strides = out->strides;
}

static int take_shape(PyObject *shape, exported *out) {
    Py_ssize_t ndim = PyTuple_Size(shape);
    if (ndim < 0) return -1;
    if (ndim > MOST_DIMS) {
        PyErr_Format(PyExc_BufferError, "dlpack: there are %zd dimensions; at most %d", ndim,
                     MOST_DIMS);
        return -1;
    }
    out->managed.tensor.ndim = (int32_t)ndim;
    for (Py_ssize_t i = 0; i < ndim; i++)
        out->shape[i] = PyLong_AsLongLong(PyTuple_GetItem(shape, i));
    set_extents(out);
    return PyErr_Occurred() ? -1 : 0;
}

/* Implements dlpack_make(owner, address, (device_type, device_id, code, bits), shape) of the
 * Python module. */
static PyObject *dlpack_make(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *owner, *address, *shape;
    int device_type, device_id, code, bits;
    if (!PyArg_ParseTuple(args, "OO(iiii)O", &owner, &address, &device_type, &device_id, &code,
                          &bits, &shape))
        return NULL;
    exported *made = calloc(1, sizeof *made);
    if (!made) return PyErr_NoMemory();
    made->managed.tensor = (dl_tensor){.data = PyLong_AsVoidPtr(address),
                                       .device_type = device_type,
                                       .device_id = device_id,
                                       .code = (uint8_t)code,
                                       .bits = (uint8_t)bits,
                                       .lanes = 1};
    made->managed.deleter = delete_export;
    PyObject *capsule = NULL;
    if (!PyErr_Occurred() && take_shape(shape, made) == 0)
        capsule = PyCapsule_New(&made->managed, "dltensor", drop_capsule);
    if (capsule)
        made->managed.context = Py_NewRef(owner);
    else
        free(made);
    return capsule;
}

PyMethodDef bsmm_py_dlpack_methods[] = {
    {"dlpack_read", dlpack_read, METH_O,
     "dlpack_read(capsule): address, device type and id, code, bits, lanes, shape, strides"},
    {"dlpack_make", dlpack_make, METH_VARARGS,
     "dlpack_make(owner, address, (device_type, device_id, code, bits), shape): a capsule"},
    {0},
};
