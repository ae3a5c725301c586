/* Implements the functions on matrices, such as quantize, dequantize, convert and compare. Each
 * long call runs without the GIL. */
#include "extension.h"

static PyObject *sizes_of(PyObject *module, PyObject *dict) {
    (void)module;
    arena memory = {.used = 0};
    bsmm_matrix matrix;
    uint64_t data, scales = 0;
    if (bsmm_py_fill(&bsmm_py_matrix, dict, &matrix, &memory)) return NULL;
    bsmm_status status = bsmm_data_bytes(&matrix, &data);
    if (!status) status = bsmm_scale_bytes(&matrix, &scales);
    if (status) return bsmm_py_none_or_error(status);
    return Py_BuildValue("KK", (unsigned long long)data, (unsigned long long)scales);
}

static PyObject *group_scale_bytes(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *group_dict, *matrix_dict;
    arena memory = {.used = 0};
    bsmm_group group;
    bsmm_matrix matrix;
    uint64_t bytes;
    if (!PyArg_ParseTuple(args, "OO", &group_dict, &matrix_dict) ||
        bsmm_py_fill(&bsmm_py_group, group_dict, &group, &memory) ||
        bsmm_py_fill(&bsmm_py_matrix, matrix_dict, &matrix, &memory))
        return NULL;
    bsmm_status status = bsmm_group_scale_bytes(&group, &matrix, &bytes);
    return status ? bsmm_py_none_or_error(status) : PyLong_FromUnsignedLongLong(bytes);
}

static PyObject *scale_offset(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *dict;
    arena memory = {.used = 0};
    bsmm_matrix matrix;
    long long row, col;
    uint64_t offset;
    if (!PyArg_ParseTuple(args, "OLL", &dict, &row, &col) ||
        bsmm_py_fill(&bsmm_py_matrix, dict, &matrix, &memory))
        return NULL;
    bsmm_status status = bsmm_scale_offset(&matrix, row, col, &offset);
    return status ? bsmm_py_none_or_error(status) : PyLong_FromUnsignedLongLong(offset);
}

static PyObject *quantize(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *dict;
    int wants_report;
    arena memory = {.used = 0};
    bsmm_quantize_desc desc;
    bsmm_quantize_report report = BSMM_INIT(bsmm_quantize_report);
    bsmm_status status;
    if (!PyArg_ParseTuple(args, "Op", &dict, &wants_report) ||
        bsmm_py_fill(&bsmm_py_quantize_desc, dict, &desc, &memory))
        return NULL;
    desc.pool = bsmm_py_pool();
    Py_BEGIN_ALLOW_THREADS;
    status = bsmm_quantize(&desc, wants_report ? &report : NULL);
    Py_END_ALLOW_THREADS;
    if (status || !wants_report) return bsmm_py_none_or_error(status);
    return bsmm_py_read(&bsmm_py_report, &report);
}

typedef struct conversion {
    arena memory;
    bsmm_exec exec;
    bsmm_matrix src, dst;
} conversion;

static int take_conversion(PyObject *args, conversion *call) {
    PyObject *exec, *src, *dst;
    call->memory.used = 0;
    if (!PyArg_ParseTuple(args, "OOO", &exec, &src, &dst) ||
        bsmm_py_fill(&bsmm_py_exec, exec, &call->exec, &call->memory) ||
        bsmm_py_fill(&bsmm_py_matrix, src, &call->src, &call->memory) ||
        bsmm_py_fill(&bsmm_py_matrix, dst, &call->dst, &call->memory))
        return -1;
    call->exec.pool = bsmm_py_pool();
    return 0;
}

typedef bsmm_status convert_on(const bsmm_exec *exec, const bsmm_matrix *src,
                               const bsmm_matrix *dst);

static PyObject *run_conversion(PyObject *args, convert_on *convert) {
    conversion call;
    bsmm_status status;
    if (take_conversion(args, &call)) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = convert(&call.exec, &call.src, &call.dst);
    Py_END_ALLOW_THREADS;
    return bsmm_py_none_or_error(status);
}

static PyObject *dequantize(PyObject *module, PyObject *args) {
    (void)module;
    return run_conversion(args, bsmm_dequantize_on);
}

static PyObject *convert(PyObject *module, PyObject *args) {
    (void)module;
    return run_conversion(args, bsmm_convert_on);
}

static PyObject *relayout(PyObject *module, PyObject *args) {
    (void)module;
    return run_conversion(args, bsmm_relayout_scales_on);
}

static PyObject *compare(PyObject *module, PyObject *args) {
    (void)module;
    conversion call;
    bsmm_quantize_report report = BSMM_INIT(bsmm_quantize_report);
    bsmm_status status;
    if (take_conversion(args, &call)) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = bsmm_compare_on(&call.exec, &call.src, &call.dst, &report);
    Py_END_ALLOW_THREADS;
    return status ? bsmm_py_none_or_error(status) : bsmm_py_read(&bsmm_py_report, &report);
}

static PyObject *amax(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *exec_dict, *src_dict, *address;
    arena memory = {.used = 0};
    bsmm_exec exec;
    bsmm_matrix src;
    bsmm_status status;
    if (!PyArg_ParseTuple(args, "OOO", &exec_dict, &src_dict, &address) ||
        bsmm_py_fill(&bsmm_py_exec, exec_dict, &exec, &memory) ||
        bsmm_py_fill(&bsmm_py_matrix, src_dict, &src, &memory))
        return NULL;
    float *to = PyLong_AsVoidPtr(address);
    if (PyErr_Occurred()) return NULL;
    exec.pool = bsmm_py_pool();
    Py_BEGIN_ALLOW_THREADS;
    status = bsmm_amax_on(&exec, &src, to);
    Py_END_ALLOW_THREADS;
    return bsmm_py_none_or_error(status);
}

PyMethodDef bsmm_py_matrix_methods[] = {
    {"sizes_of", sizes_of, METH_O, "sizes_of(matrix): bytes of elements and bytes of scales"},
    {"group_scale_bytes", group_scale_bytes, METH_VARARGS, "group_scale_bytes(group, matrix)"},
    {"scale_offset", scale_offset, METH_VARARGS, "scale_offset(matrix, block_row, block_col)"},
    {"quantize", quantize, METH_VARARGS, "quantize(desc, wants_report): None or the report"},
    {"dequantize", dequantize, METH_VARARGS, "dequantize(exec, src, dst)"},
    {"convert", convert, METH_VARARGS, "convert(exec, src, dst)"},
    {"relayout", relayout, METH_VARARGS, "relayout(exec, src, dst)"},
    {"compare", compare, METH_VARARGS, "compare(exec, src, quantized): the report"},
    {"amax", amax, METH_VARARGS, "amax(exec, src, address): writes one float to address"},
    {0},
};
