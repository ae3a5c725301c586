/* Defines the module bsmm._bsmm. It joins the functions of the extension's other files, the
 * exceptions, and those constants of bsmm.h that no table of the library has. */
#include "extension.h"

#define CONSTANT(name)                                                                             \
    { #name, BSMM_##name }

static const struct {
    const char *name;
    long value;
} constants[] = {
    CONSTANT(ORDER_ROW),
    CONSTANT(ORDER_COL),
    CONSTANT(SCALE_NONE),
    CONSTANT(SCALE_E8M0),
    CONSTANT(SCALE_E4M3),
    CONSTANT(SCALE_F32),
    CONSTANT(GLOBAL_MULTIPLIER),
    CONSTANT(GLOBAL_DIVISOR),
    CONSTANT(HALVES_SPLIT),
    CONSTANT(HALVES_INTERLEAVED),
    CONSTANT(SCALE_BY_ROW),
    CONSTANT(SCALE_BY_COL),
    CONSTANT(GROUP_BATCH),
    CONSTANT(GROUP_ROWS),
    CONSTANT(GROUP_MASKED),
    CONSTANT(GROUP_K),
    CONSTANT(GROUP_EACH_ALPHA),
    CONSTANT(GROUP_EACH_BIAS),
    CONSTANT(GROUP_EACH_A_GLOBAL),
    CONSTANT(GROUP_EACH_B_GLOBAL),
    CONSTANT(GROUP_EACH_D_GLOBAL),
    CONSTANT(GROUP_EACH_COL_SCALE),
    CONSTANT(GROUP_GATHER_A),
    CONSTANT(GROUP_SCALES_APART),
    CONSTANT(GROUP_SHARED),
    CONSTANT(COMPUTE_EXACT),
    CONSTANT(COMPUTE_FAST),
    CONSTANT(MATMUL_ANY_ROWS),
    CONSTANT(MATMUL_BATCH_INVARIANT),
    CONSTANT(QUANTIZE_POW2),
    CONSTANT(QUANTIZE_ONE_LEVEL),
};

static int add_constants(PyObject *module) {
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (PyModule_AddIntConstant(module, constants[i].name, constants[i].value)) return -1;
    return 0;
}

static int add_functions(PyObject *module) {
    PyMethodDef *const parts[] = {
        bsmm_py_table_methods,  bsmm_py_matrix_methods, bsmm_py_plan_methods,
        bsmm_py_memory_methods, bsmm_py_file_methods,   bsmm_py_pool_methods,
        bsmm_py_dlpack_methods, bsmm_py_array_methods,  NULL};
    for (PyMethodDef *const *part = parts; *part; part++)
        if (PyModule_AddFunctions(module, *part)) return -1;
    return 0;
}

/* The module has global state (the thread pool and the exceptions), so subinterpreters with their
 * own GIL cannot import it. */
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "bsmm._bsmm",
                                 .m_doc = "The functions of bsmm.h for the package bsmm.",
                                 .m_size = -1};

PyMODINIT_FUNC PyInit__bsmm(void) {
    PyObject *module = PyModule_Create(&definition);
    if (module && (add_constants(module) || add_functions(module) || bsmm_py_add_errors(module) ||
                   bsmm_py_prepare_fork()))
        Py_CLEAR(module);
    return module;
}
