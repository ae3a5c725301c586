/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of the module bsmm._bsmm. Each part adds its functions to the module. The module trusts
 * the addresses in the dicts that it gets: the Python files of the package make these dicts and
 * keep the arrays alive during a call. */
#ifndef BSMM_PYTHON_EXTENSION_H
#define BSMM_PYTHON_EXTENSION_H

#include "records.h"

/* Adds the exception classes to the module: Error and one subclass for each status. */
int bsmm_py_add_errors(PyObject *module);

/* Returns None for BSMM_OK. Otherwise raises the exception class of the status with the library's
 * message of this thread and returns NULL. */
PyObject *bsmm_py_none_or_error(bsmm_status status);

/* The pool for every call of the library: threads of this module, or those of the caller that
 * use_pool named. */
const bsmm_pool *bsmm_py_pool(void);

extern PyMethodDef bsmm_py_table_methods[], bsmm_py_matrix_methods[], bsmm_py_plan_methods[];
extern PyMethodDef bsmm_py_memory_methods[], bsmm_py_file_methods[], bsmm_py_pool_methods[];
extern PyMethodDef bsmm_py_dlpack_methods[];

/* Registers the handlers that keep the pool usable in a child process after fork. */
int bsmm_py_prepare_fork(void);

#endif
