/* Returns the library's tables, such as formats, layouts, recipes and devices, as Python lists of
 * dicts. Also converts names and codes of formats. */
#include "extension.h"

static bsmm_status elem_at(uint32_t index, void *info) {
    return bsmm_elem_at(index, info);
}
static bsmm_status preset_at(uint32_t index, void *info) {
    return bsmm_preset_at(index, info);
}
static bsmm_status layout_at(uint32_t index, void *info) {
    return bsmm_layout_at(index, info);
}
static bsmm_status activation_at(uint32_t index, void *info) {
    return bsmm_activation_at(index, info);
}
static bsmm_status recipe_at(uint32_t index, void *info) {
    return bsmm_recipe_at(index, info);
}
static bsmm_status device_at(uint32_t index, void *info) {
    return bsmm_device_at(index, info);
}
static bsmm_status local_device_at(uint32_t index, void *info) {
    return bsmm_local_device_at(index, info);
}
static bsmm_status packed_form_at(uint32_t index, void *info) {
    return bsmm_packed_form_at(index, info);
}
static bsmm_status family_at(uint32_t index, void *info) {
    return bsmm_family_at(index, info);
}
static bsmm_status mfma_at(uint32_t index, void *info) {
    return bsmm_mfma_at(index, info);
}

static const struct {
    const char *name;
    const record *type;
    bsmm_status (*at)(uint32_t index, void *info);
} tables[] = {
    {"elem", &bsmm_py_elem_info, elem_at},
    {"preset", &bsmm_py_preset_info, preset_at},
    {"layout", &bsmm_py_layout_info, layout_at},
    {"activation", &bsmm_py_activation_info, activation_at},
    {"recipe", &bsmm_py_recipe_info, recipe_at},
    {"device", &bsmm_py_device_info, device_at},
    {"local_device", &bsmm_py_local_device, local_device_at},
    {"packed_form", &bsmm_py_packed_form_info, packed_form_at},
    {"family", &bsmm_py_family_info, family_at},
    {"mfma", &bsmm_py_mfma_info, mfma_at},
};

/* Has room for an entry of any of the library's tables. The largest entry is well below the size of
 * this union. */
typedef union info {
    uint32_t struct_size;
    double alignment;
    unsigned char bytes[1024];
} info;

static PyObject *list_entries(size_t table) {
    PyObject *list = PyList_New(0);
    info entry = {.bytes = {0}};
    entry.struct_size = (uint32_t)tables[table].type->size;
    for (uint32_t i = 0; list && tables[table].at(i, &entry) == BSMM_OK; i++) {
        PyObject *dict = bsmm_py_read(tables[table].type, &entry);
        if (!dict || PyList_Append(list, dict)) Py_CLEAR(list);
        Py_XDECREF(dict);
    }
    return list;
}

static PyObject *list_table(PyObject *module, PyObject *name) {
    (void)module;
    if (!PyUnicode_Check(name)) return PyErr_Format(PyExc_TypeError, "table: %R is no name", name);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (PyUnicode_CompareWithASCIIString(name, tables[i].name) == 0) return list_entries(i);
    return PyErr_Format(PyExc_LookupError, "table: there is no table %R", name);
}

static PyObject *format_from_name(PyObject *module, PyObject *args) {
    (void)module;
    const char *name;
    bsmm_format format;
    if (!PyArg_ParseTuple(args, "s", &name)) return NULL;
    bsmm_status status = bsmm_format_from_name(name, &format);
    return status ? bsmm_py_none_or_error(status) : bsmm_py_read(&bsmm_py_format, &format);
}

static PyObject *format_name(PyObject *module, PyObject *dict) {
    (void)module;
    arena memory = {.used = 0};
    bsmm_format format;
    if (bsmm_py_fill(&bsmm_py_format, dict, &format, &memory)) return NULL;
    return PyUnicode_FromString(bsmm_format_name(format));
}

static PyObject *layout_from_name(PyObject *module, PyObject *args) {
    (void)module;
    const char *name;
    uint32_t layout;
    if (!PyArg_ParseTuple(args, "s", &name)) return NULL;
    bsmm_status status = bsmm_layout_from_name(name, &layout);
    return status ? bsmm_py_none_or_error(status) : PyLong_FromUnsignedLong(layout);
}

static PyObject *decode_elem(PyObject *module, PyObject *args) {
    (void)module;
    unsigned elem, code;
    double value;
    if (!PyArg_ParseTuple(args, "II", &elem, &code)) return NULL;
    bsmm_status status = bsmm_decode_elem(elem, code, &value);
    return status ? bsmm_py_none_or_error(status) : PyFloat_FromDouble(value);
}

static PyObject *version(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    return PyLong_FromUnsignedLong(bsmm_version());
}

PyMethodDef bsmm_py_table_methods[] = {
    {"table", list_table, METH_O, "table(name): the entries of a table of the library, as dicts"},
    {"format_from_name", format_from_name, METH_VARARGS, "format_from_name(name): a format's dict"},
    {"format_name", format_name, METH_O, "format_name(format): the name of a format"},
    {"layout_from_name", layout_from_name, METH_VARARGS,
     "layout_from_name(name): a layout's number"},
    {"decode_elem", decode_elem, METH_VARARGS, "decode_elem(elem, code): the value of a code"},
    {"version", version, METH_NOARGS, "version(): major * 10000 + minor * 100 + patch"},
    {0},
};
