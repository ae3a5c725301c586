/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares the parts of the module bsmm._bsmm. Each part adds its functions to the module. The
 * module trusts the addresses in its arguments, because only the Python files of the package call
 * it, and they keep the arrays alive during a call. */
#ifndef BSMM_PYTHON_EXTENSION_H
#define BSMM_PYTHON_EXTENSION_H

#include "records.h"

/* Adds the exception classes to the module, i.e. Error and one subclass for each status. */
int bsmm_py_add_errors(PyObject *module);

/* Returns None for BSMM_OK. Otherwise raises the exception class of the status with the library's
 * message of this thread and returns NULL. */
PyObject *bsmm_py_none_or_error(bsmm_status status);

/* Returns the thread pool for calls of the library. It consists of threads of this module, or is
 * the pool that the caller passed to use_pool. */
const bsmm_pool *bsmm_py_pool(void);

extern PyMethodDef bsmm_py_table_methods[], bsmm_py_matrix_methods[], bsmm_py_plan_methods[];
extern PyMethodDef bsmm_py_memory_methods[], bsmm_py_file_methods[], bsmm_py_pool_methods[];
extern PyMethodDef bsmm_py_dlpack_methods[], bsmm_py_array_methods[];

/* Registers handlers for fork, which keep the thread pool usable in a child process. */
int bsmm_py_prepare_fork(void);

#endif
