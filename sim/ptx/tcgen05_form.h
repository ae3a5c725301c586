/* Declares the check of the instruction descriptor of tcgen05.mma. */
#ifndef SIM_PTX_TCGEN05_FORM_H
#define SIM_PTX_TCGEN05_FORM_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ptx_mma_kind { F16, TF32, F8F6F4, I8, MXF8F6F4, MXF4, MXF4NVF4 };

/* Checks each field of the instruction descriptor `d` of a product of kind `kind`. `block` is the
 * number of elements of K that share a scale, or 0 without scales. If the PTX ISA reserves a value
 * or the simulator does not support it, writes the field's name, bits and value to `text` and
 * returns false. */
bool ptx_check_form(enum ptx_mma_kind kind, uint32_t block, uint32_t d, char *text, size_t size);
#endif
