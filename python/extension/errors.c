/* Defines the exception classes, i.e. bsmm.Error and one subclass for each status of the library.
 * Each subclass also derives from the built-in exception that Python programmers expect. */
#include "extension.h"

static const struct {
    bsmm_status status;
    const char *name;
    const char *doc;
    PyObject **also; /* `also` points to the built-in exception that is a second base class. */
} rows[] = {
    {BSMM_E_INVALID, "bsmm.InvalidError", "A field or an argument breaks a rule.",
     &PyExc_ValueError},
    {BSMM_E_UNSUPPORTED, "bsmm.UnsupportedError",
     "The request is valid, but no kernel or writer can do it.", &PyExc_NotImplementedError},
    {BSMM_E_MEMORY, "bsmm.OutOfMemoryError", "An allocation failed.", &PyExc_MemoryError},
    {BSMM_E_IO, "bsmm.FileError", "The operating system refused to open or to map a file.",
     &PyExc_OSError},
    {BSMM_E_FORMAT, "bsmm.FormatError", "The content of a file breaks the rules of its format.",
     &PyExc_ValueError},
    {BSMM_E_NOT_FOUND, "bsmm.NotFoundError",
     "There is no tensor, format, device, kernel or recipe of that name.", &PyExc_LookupError},
    {BSMM_E_RANGE, "bsmm.RangeError", "A lossless conversion would lose a value.",
     &PyExc_ArithmeticError},
    {BSMM_E_DEVICE, "bsmm.DeviceError", "A device or its driver failed.", &PyExc_RuntimeError},
};

enum { ROWS = sizeof rows / sizeof *rows };

static PyObject *base, *classes[ROWS];

/* Creates an exception class. Its attribute `status` is the name of the library's status. */
static PyObject *make_class(const char *name, const char *doc, PyObject *bases,
                            const char *status) {
    PyObject *attributes = Py_BuildValue("{s:s}", "status", status);
    PyObject *made = attributes ? PyErr_NewExceptionWithDoc(name, doc, bases, attributes) : NULL;
    Py_XDECREF(attributes);
    return made;
}

static PyObject *make_row(size_t row) {
    PyObject *bases = PyTuple_Pack(2, base, *rows[row].also);
    PyObject *made =
        bases ? make_class(rows[row].name, rows[row].doc, bases, bsmm_status_name(rows[row].status))
              : NULL;
    Py_XDECREF(bases);
    return made;
}

int bsmm_py_add_errors(PyObject *module) {
    base = make_class("bsmm.Error",
                      "A call of the library failed. `status` is the name of its status, such as "
                      "\"BSMM_E_INVALID\".",
                      NULL, "");
    if (!base || PyModule_AddObjectRef(module, "Error", base)) return -1;
    for (size_t row = 0; row < ROWS; row++) {
        classes[row] = make_row(row);
        const char *name = rows[row].name + sizeof "bsmm." - 1;
        if (!classes[row] || PyModule_AddObjectRef(module, name, classes[row])) return -1;
    }
    return 0;
}

static PyObject *class_of(bsmm_status status) {
    for (size_t row = 0; row < ROWS; row++)
        if (rows[row].status == status) return classes[row];
    return base;
}

PyObject *bsmm_py_none_or_error(bsmm_status status) {
    if (status == BSMM_OK) Py_RETURN_NONE;
    const char *text = bsmm_error_message();
    PyObject *message = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "backslashreplace");
    if (message) PyErr_SetObject(class_of(status), message);
    Py_XDECREF(message);
    return NULL;
}
