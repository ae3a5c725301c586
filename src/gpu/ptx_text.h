/* Converts PTX text between the ordinary form and the form in which the library stores it
 * (src/gpu/images.h).
 *
 * PTX has a new register for almost every instruction. Two kernels with the same code therefore
 * differ in most register numbers if one of them has a few more instructions at its start. The
 * stored form mostly has no numbers: it says how recently the text used the register (move-to-front
 * coding). Equal code then has almost equal text, which zstd compresses well. The same holds for
 * labels. The stored form is smallest if registers and labels are numbered in the order in which
 * the text first names them (cmake/trim-ptx.sh), but any numbers can be restored. */
#ifndef BSMM_GPU_PTX_TEXT_H
#define BSMM_GPU_PTX_TEXT_H

#include <stdbool.h>
#include <stddef.h>

typedef enum bsmm_ptx_text_form {
    /* In the stored form, `%r0` is the register of class `r` that the text named most recently,
     * `%r1` is the one before, and so on. `%r+` is the register whose number is the largest so far
     * plus 1. `%r=17` is register 17, which the text has not named recently or not at all. Labels
     * are written in the same way: `$L0`, `$L+` or `$L=17`. */
    BSMM_PTX_TEXT_STORED,
    /* The ordinary form is PTX with numbers, for example `%r17` and `$L4`. */
    BSMM_PTX_TEXT_ORDINARY
} bsmm_ptx_text_form;

/* Converts PTX text. If `to` is BSMM_PTX_TEXT_STORED, the text is in the ordinary form, and the
 * result is in the stored form. Otherwise the function converts in the other direction. Writes at
 * most `room` bytes to `out`. Returns the number of bytes of the whole result. It is more than
 * `room` if the result did not fit. Damaged text gives some other text and no error. Thread-safe.
 */
size_t bsmm_ptx_text_convert(bsmm_ptx_text_form to, const char *text, size_t bytes, char *out,
                             size_t room);

#endif
