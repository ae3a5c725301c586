/* Includes bsmm.h as strict C++17, without any header before it. */
#include "bsmm.h"

uint32_t header_matrix_size();
uint32_t header_matrix_size() {
    bsmm_matrix matrix = BSMM_INIT(bsmm_matrix);
    return matrix.struct_size + static_cast<uint32_t>(BSMM_VERSION_MAJOR);
}
