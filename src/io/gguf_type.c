/* This file has the table of ggml's tensor types, indexed by ggml's number of the type. An entry
 * has the numbers of elements and of bytes in a block, the element format, and the decoder. The
 * sources are ggml.h (enum ggml_type) and ggml-common.h (block_*). */
#include "io/gguf.h"

#include <string.h>

/* clang-format off */
static const bsmm_gguf_type rows[] = {
    [0] = {"F32", 1, 4, BSMM_ELEM_F32, NULL},
    [1] = {"F16", 1, 2, BSMM_ELEM_F16, NULL},
    [2] = {"Q4_0", 32, 18, 0, bsmm_gguf_q4_0},
    [3] = {"Q4_1", 32, 20, 0, bsmm_gguf_q4_1},
    [6] = {"Q5_0", 32, 22, 0, bsmm_gguf_q5_0},
    [7] = {"Q5_1", 32, 24, 0, bsmm_gguf_q5_1},
    [8] = {"Q8_0", 32, 34, 0, bsmm_gguf_q8_0},
    [9] = {"Q8_1", 32, 36, 0, bsmm_gguf_q8_1},
    [10] = {"Q2_K", 256, 84, 0, bsmm_gguf_q2_k},
    [11] = {"Q3_K", 256, 110, 0, bsmm_gguf_q3_k},
    [12] = {"Q4_K", 256, 144, 0, bsmm_gguf_q4_k},
    [13] = {"Q5_K", 256, 176, 0, bsmm_gguf_q5_k},
    [14] = {"Q6_K", 256, 210, 0, bsmm_gguf_q6_k},
    [15] = {"Q8_K", 256, 292, 0, bsmm_gguf_q8_k},
    [16] = {"IQ2_XXS", 256, 66, 0, bsmm_gguf_iq2_xxs},
    [17] = {"IQ2_XS", 256, 74, 0, bsmm_gguf_iq2_xs},
    [18] = {"IQ3_XXS", 256, 98, 0, bsmm_gguf_iq3_xxs},
    [19] = {"IQ1_S", 256, 50, 0, bsmm_gguf_iq1_s},
    [20] = {"IQ4_NL", 32, 18, 0, bsmm_gguf_iq4_nl},
    [21] = {"IQ3_S", 256, 110, 0, bsmm_gguf_iq3_s},
    [22] = {"IQ2_S", 256, 82, 0, bsmm_gguf_iq2_s},
    [23] = {"IQ4_XS", 256, 136, 0, bsmm_gguf_iq4_xs},
    [24] = {"I8", 1, 1, 0, NULL},
    [25] = {"I16", 1, 2, 0, NULL},
    [26] = {"I32", 1, 4, 0, NULL},
    [27] = {"I64", 1, 8, 0, NULL},
    [28] = {"F64", 1, 8, 0, NULL},
    [29] = {"IQ1_M", 256, 56, 0, bsmm_gguf_iq1_m},
    [30] = {"BF16", 1, 2, BSMM_ELEM_BF16, NULL},
    [34] = {"TQ1_0", 256, 54, 0, bsmm_gguf_tq1_0},
    [35] = {"TQ2_0", 256, 66, 0, bsmm_gguf_tq2_0},
    [39] = {"MXFP4", 32, 17, 0, NULL},
    [40] = {"NVFP4", 64, 36, 0, NULL},
    [41] = {"Q1_0", 128, 18, 0, bsmm_gguf_q1_0},
    [42] = {"Q2_0", 64, 18, 0, bsmm_gguf_q2_0},
};
/* clang-format on */

const bsmm_gguf_type *bsmm_gguf_type_of(uint32_t type) {
    return type < BSMM_COUNT(rows) && rows[type].name ? &rows[type] : NULL;
}

const bsmm_gguf_type *bsmm_gguf_type_named(const char *dtype) {
    for (size_t i = 0; i < BSMM_COUNT(rows); i++)
        if (rows[i].name && strcmp(rows[i].name, dtype) == 0) return &rows[i];
    return NULL;
}

uint32_t bsmm_gguf_type_number(const bsmm_gguf_type *type) {
    return (uint32_t)(type - rows);
}
