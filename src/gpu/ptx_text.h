/* Converts PTX text between the ordinary form and the form in which the library stores it
 * (src/gpu/images.h).
 *
 * Compilers number the registers and labels of PTX in sequence. If a kernel contains the same code
 * twice, the two copies differ only in these numbers. The stored text therefore has distances
 * instead of numbers: from the number of an earlier register to that of a register, and from the
 * number of the previous label to that of a label. Copies of the same code then have the same text,
 * and zstd needs about half as many bytes for it. */
#ifndef BSMM_GPU_PTX_TEXT_H
#define BSMM_GPU_PTX_TEXT_H

#include <stdbool.h>
#include <stddef.h>

typedef enum bsmm_ptx_text_form {
    BSMM_PTX_TEXT_STORED,  /* BSMM_PTX_TEXT_STORED has distances instead of numbers, for example
                              `%r+3` and `$L__BB0_-2`. */
    BSMM_PTX_TEXT_ORDINARY /* BSMM_PTX_TEXT_ORDINARY is PTX with numbers, for example `%r17` and
                              `$L__BB0_4`. */
} bsmm_ptx_text_form;

/* Converts PTX text. If `to` is BSMM_PTX_TEXT_STORED, the text is in the ordinary form, and the
 * result is in the stored form. Otherwise the function converts in the other direction. Writes at
 * most `room` bytes to `out`. Returns the number of bytes of the whole result. It is more than
 * `room` if the result did not fit. Thread-safe. */
size_t bsmm_ptx_text_convert(bsmm_ptx_text_form to, const char *text, size_t bytes, char *out,
                             size_t room);

#endif
