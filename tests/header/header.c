/* Includes bsmm.h as strict C99 and as strict C11, without any header before it. */
#include "bsmm.h"

uint32_t header_matrix_size(void);
uint32_t header_matrix_size(void) {
    bsmm_matrix matrix = BSMM_INIT(bsmm_matrix);
    return matrix.struct_size + (uint32_t)BSMM_VERSION_MAJOR;
}
