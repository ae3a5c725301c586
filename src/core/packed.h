/* Declares the forms of packed weights, their headers, and the functions with which a run finds B
 * in them. docs/PACKING.md describes the bytes of each form. */
#ifndef BSMM_CORE_PACKED_H
#define BSMM_CORE_PACKED_H

#include "core/describe.h"

/* The header in front of packed weights. It names no kernel and no number of rows. */
typedef struct bsmm_packed_header {
    char magic[8];
    char form[8];         /* name of the form, such as "wide" */
    uint32_t version;     /* version of the form */
    uint32_t global_kind; /* kind of B's second-level scales, bsmm_global */
    char device[16];      /* kind of device, such as "cpu" */
    char panels[16];      /* layout of the panels of wide, such as "int8_k32_n32"; else empty */
    bsmm_format format;
    int64_t rows, cols;
    int64_t groups; /* number of matrices of a stack, else 0 */
    uint64_t bytes; /* size of packed weights, this header included */
    uint8_t zero[24];
} bsmm_packed_header;

_Static_assert(sizeof(bsmm_packed_header) == 128, "docs/PACKING.md promises it");

/* Describes the packed weights of a plan. They consist of the header and, for each matrix, of
 * panels (form wide), codes, scales and the second-level scale. Every part begins at a multiple
 * of 64. */
typedef struct bsmm_packed {
    bsmm_packed_header header; /* header.bytes is 0 if B cannot be packed for the kernel */
    bsmm_operand stored;       /* B as it is described; with groups it is the whole stack */
    bsmm_operand view;         /* a packed matrix as runs read it, without memory */
    uint64_t panel_bytes;      /* size of the panels of a matrix, 0 without panels */
    uint64_t matrix_bytes;     /* distance between two matrices */
} bsmm_packed;

/* Points to the parts of one packed matrix. Without panels, `panels` equals `codes`. */
typedef struct bsmm_packed_places {
    uint8_t *panels, *codes, *scales, *global;
} bsmm_packed_places;

const bsmm_packed_form_info *bsmm_packed_form_row(uint32_t form); /* the row of a form, or NULL */
uint32_t bsmm_packed_form_named(const char *name,
                                size_t size); /* the form with that name, or NONE */

/* Returns the form that a plan packs: desc.b_packed, or WIDE if that is NONE. */
uint32_t bsmm_packed_form_of(const bsmm_product *product);

/* Copies B as it is described to *stored. With compact weights, the request's product then gets B
 * as runs read it, because kernels decide about that. */
bsmm_status bsmm_packed_take(bsmm_request *request, bsmm_operand *stored);

/* Describes the packed weights of a product for the kernel that was chosen for it. */
bsmm_status bsmm_packed_make(const bsmm_kernel *kernel, const bsmm_product *product,
                             const bsmm_operand *stored, const void *state, bsmm_packed *packed);

/* Writes the header and packs B after it. product->b is B as it is described, with memory. */
bsmm_status bsmm_packed_fill(const bsmm_packed *packed, const bsmm_kernel *kernel,
                             const bsmm_product *product, const void *state, void *to);

/* Checks the header of packed weights that a run is given, if the processor can read it. INVALID
 * names the field, its value and the rule. */
bsmm_status bsmm_packed_check(const bsmm_packed *packed, const bsmm_product *product,
                              const void *given);

/* Sets a product's B to matrix `index` of packed weights, 0 unless they are a stack. `given` points
 * to the header. */
void bsmm_packed_bind(const bsmm_packed *packed, const void *given, int64_t index,
                      bsmm_product *product);

/* ---- finding the parts of a matrix ---- */

uint64_t bsmm_packed_matrix_bytes(const bsmm_operand *view, uint64_t panel_bytes);
bsmm_packed_places bsmm_packed_places_of(const bsmm_operand *view, const void *matrix,
                                         uint64_t panel_bytes);
/* Sets the memory of an operand to that of a packed matrix. */
void bsmm_packed_set(const bsmm_packed_places *at, bool host_memory, bsmm_operand *b);

/* Checks how packed weights begin. INVALID also tells those of older libraries. */
bsmm_status bsmm_packed_check_magic(const void *given);

#endif
