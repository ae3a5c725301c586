/* SPDX-License-Identifier: Apache-2.0
 * Includes Python's limited API. Every file of the extension includes Python.h through this
 * header, so that all files see the same version of the API. One extension then serves CPython
 * 3.11 and later. */
#ifndef BSMM_PYTHON_PYTHON_H
#define BSMM_PYTHON_PYTHON_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include <string.h>

#endif
