/* Implements plans, packed weights, explanations and speed-of-light estimates for Python. A Python
 * capsule holds a plan, and its destructor destroys the plan. */
#include "extension.h"

#include <stdlib.h>

static const char plan_name[] = "bsmm_plan";

/* ALIGNMENT is the alignment of a workspace in bytes. */
enum { ALIGNMENT = 64 };

static void destroy_plan(PyObject *capsule) {
    bsmm_plan_destroy(PyCapsule_GetPointer(capsule, plan_name));
}

static int take_product(PyObject *dict, bsmm_matmul_desc *desc, arena *memory) {
    memory->used = 0;
    if (bsmm_py_fill(&bsmm_py_matmul_desc, dict, desc, memory)) return -1;
    desc->pool = bsmm_py_pool();
    return 0;
}

static PyObject *plan_create(PyObject *module, PyObject *dict) {
    (void)module;
    arena memory;
    bsmm_matmul_desc desc;
    bsmm_plan *plan;
    bsmm_status status;
    if (take_product(dict, &desc, &memory)) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = bsmm_plan_create(&desc, &plan);
    Py_END_ALLOW_THREADS;
    if (status) return bsmm_py_none_or_error(status);
    PyObject *capsule = PyCapsule_New(plan, plan_name, destroy_plan);
    if (!capsule) bsmm_plan_destroy(plan);
    return capsule;
}

static PyObject *plan_info(PyObject *module, PyObject *capsule) {
    (void)module;
    const bsmm_plan *plan = PyCapsule_GetPointer(capsule, plan_name);
    if (!plan) return NULL;
    return Py_BuildValue("sKK", bsmm_plan_kernel(plan),
                         (unsigned long long)bsmm_plan_workspace_bytes(plan),
                         (unsigned long long)bsmm_plan_packed_b_bytes(plan));
}

/* Runs a plan with a workspace of its own in host memory. */
static bsmm_status run_with_workspace(const bsmm_plan *plan, bsmm_buffers *buffers,
                                      int *has_memory) {
    const uint64_t bytes = bsmm_plan_workspace_bytes(plan);
    void *workspace =
        bytes && bytes <= SIZE_MAX - ALIGNMENT
            ? aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT)
            : NULL;
    *has_memory = workspace || !bytes;
    if (!*has_memory) return BSMM_OK;
    buffers->workspace = workspace;
    buffers->workspace_bytes = bytes;
    const bsmm_status status = bsmm_plan_run(plan, buffers);
    free(workspace);
    return status;
}

static PyObject *plan_run(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *capsule, *dict;
    int wants_workspace, has_memory = 1;
    arena memory = {.used = 0};
    bsmm_buffers buffers;
    bsmm_status status;
    if (!PyArg_ParseTuple(args, "OOp", &capsule, &dict, &wants_workspace)) return NULL;
    const bsmm_plan *plan = PyCapsule_GetPointer(capsule, plan_name);
    if (!plan || bsmm_py_fill(&bsmm_py_buffers, dict, &buffers, &memory)) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = wants_workspace ? run_with_workspace(plan, &buffers, &has_memory)
                             : bsmm_plan_run(plan, &buffers);
    Py_END_ALLOW_THREADS;
    return has_memory ? bsmm_py_none_or_error(status) : PyErr_NoMemory();
}

static PyObject *plan_pack(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *capsule, *dict, *address;
    unsigned long long bytes;
    arena memory = {.used = 0};
    bsmm_buffers buffers;
    bsmm_status status;
    if (!PyArg_ParseTuple(args, "OOOK", &capsule, &dict, &address, &bytes)) return NULL;
    const bsmm_plan *plan = PyCapsule_GetPointer(capsule, plan_name);
    void *packed = plan ? PyLong_AsVoidPtr(address) : NULL;
    if (PyErr_Occurred() || bsmm_py_fill(&bsmm_py_buffers, dict, &buffers, &memory)) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = bsmm_pack_b(plan, &buffers, packed, bytes);
    Py_END_ALLOW_THREADS;
    return bsmm_py_none_or_error(status);
}

static PyObject *plan_packed_info(PyObject *module, PyObject *capsule) {
    (void)module;
    bsmm_packed_info info = BSMM_INIT(bsmm_packed_info);
    const bsmm_plan *plan = PyCapsule_GetPointer(capsule, plan_name);
    if (!plan) return NULL;
    bsmm_status status = bsmm_plan_packed_info(plan, &info);
    return status ? bsmm_py_none_or_error(status) : bsmm_py_read(&bsmm_py_packed_info, &info);
}

static PyObject *packed_describe(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *address;
    unsigned long long bytes;
    bsmm_packed_info info = BSMM_INIT(bsmm_packed_info);
    if (!PyArg_ParseTuple(args, "OK", &address, &bytes)) return NULL;
    void *packed = PyLong_AsVoidPtr(address);
    if (PyErr_Occurred()) return NULL;
    bsmm_status status = bsmm_packed_describe(packed, bytes, &info);
    return status ? bsmm_py_none_or_error(status) : bsmm_py_read(&bsmm_py_packed_info, &info);
}

static PyObject *unpack_b(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *address, *dict;
    unsigned long long bytes;
    long long index;
    arena memory = {.used = 0};
    bsmm_matrix b;
    bsmm_status status;
    if (!PyArg_ParseTuple(args, "OKLO", &address, &bytes, &index, &dict)) return NULL;
    void *packed = PyLong_AsVoidPtr(address);
    if (PyErr_Occurred() || bsmm_py_fill(&bsmm_py_matrix, dict, &b, &memory)) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = bsmm_unpack_b(packed, bytes, index, &b);
    Py_END_ALLOW_THREADS;
    return bsmm_py_none_or_error(status);
}

static int append_explanation(PyObject *list, const bsmm_explanation *explanation) {
    PyObject *dict = bsmm_py_read(&bsmm_py_explanation, explanation);
    int failed = !dict || PyList_Append(list, dict);
    Py_XDECREF(dict);
    return failed;
}

static PyObject *explain(PyObject *module, PyObject *dict) {
    (void)module;
    arena memory;
    bsmm_matmul_desc desc;
    bsmm_explanation explanation = BSMM_INIT(bsmm_explanation);
    bsmm_status status = BSMM_OK;
    if (take_product(dict, &desc, &memory)) return NULL;
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list && !(status = bsmm_explain(&desc, i, &explanation)); i++)
        if (append_explanation(list, &explanation)) Py_CLEAR(list);
    if (!list || status == BSMM_E_NOT_FOUND) return list;
    Py_DECREF(list);
    return bsmm_py_none_or_error(status);
}

static PyObject *estimate_sol(PyObject *module, PyObject *args) {
    (void)module;
    const char *device;
    PyObject *dict;
    arena memory;
    bsmm_matmul_desc desc;
    bsmm_sol_estimate estimate = BSMM_INIT(bsmm_sol_estimate);
    if (!PyArg_ParseTuple(args, "sO", &device, &dict) || take_product(dict, &desc, &memory))
        return NULL;
    bsmm_status status = bsmm_estimate_sol(device, &desc, &estimate);
    return status ? bsmm_py_none_or_error(status) : bsmm_py_read(&bsmm_py_sol, &estimate);
}

PyMethodDef bsmm_py_plan_methods[] = {
    {"plan_create", plan_create, METH_O, "plan_create(desc): a plan"},
    {"plan_info", plan_info, METH_O, "plan_info(plan): kernel, bytes of workspace and of packed B"},
    {"plan_run", plan_run, METH_VARARGS,
     "plan_run(plan, buffers, wants_workspace): wants_workspace allocates one in host memory"},
    {"plan_pack", plan_pack, METH_VARARGS, "plan_pack(plan, buffers, address, bytes)"},
    {"plan_packed_info", plan_packed_info, METH_O, "plan_packed_info(plan): a dict"},
    {"packed_describe", packed_describe, METH_VARARGS, "packed_describe(address, bytes): a dict"},
    {"unpack_b", unpack_b, METH_VARARGS, "unpack_b(address, bytes, index, matrix)"},
    {"explain", explain, METH_O, "explain(desc): a list of dicts, one for each kernel"},
    {"estimate_sol", estimate_sol, METH_VARARGS, "estimate_sol(device, desc): a dict"},
    {0},
};
