/* The form in which packs store PTX text (src/gpu/images.h).
 *
 * Compilers number the registers and labels of PTX in sequence, so repeated code differs in nothing
 * but these numbers. The stored text has distances in their place: the distance of a register's
 * number from that of an earlier register, and of a label's number from that of the label before.
 * Repeated code then has the same text, and zstd needs about half as many bytes for it. */
#ifndef BSMM_GPU_PTX_TEXT_H
#define BSMM_GPU_PTX_TEXT_H

#include <stdbool.h>
#include <stddef.h>

typedef enum bsmm_ptx_text_form {
    BSMM_PTX_TEXT_STORED,  /* `%r+3`, `$L__BB0_-2`: with distances */
    BSMM_PTX_TEXT_ORDINARY /* `%r17`, `$L__BB0_4`: PTX, with numbers */
} bsmm_ptx_text_form;

/* Converts text from the other form to the form `to`. Writes at most `room` bytes to `out`. Returns
 * the number of bytes of the whole result, which is more than `room` if it was cut. Thread-safe. */
size_t bsmm_ptx_text_convert(bsmm_ptx_text_form to, const char *text, size_t bytes, char *out,
                             size_t room);

#endif
