/* Declares the two forms of packed weights (wide and compact), their headers, and the functions
 * with which a run finds B in packed weights. docs/PACKING.md describes the bytes of each form. */
#ifndef BSMM_CORE_PACKED_H
#define BSMM_CORE_PACKED_H

#include "core/describe.h"

/* `bsmm_packed_header` is the header in front of packed weights. It contains neither a kernel's
 * name nor a number of rows of A, because packed weights do not depend on them. */
typedef struct bsmm_packed_header {
    char magic[8];
    char form[8];     /* `form` is the name of the form, such as "wide". */
    uint32_t version; /* `version` is the version of the form's byte layout. */
    /* `global_kind` is a bsmm_global value: the kind of B's second-level scale (one scale for the
     * whole matrix). */
    uint32_t global_kind;
    char device[16]; /* `device` is the kind of device, such as "cpu". */
    /* `panels` is the name of the layout of B's panels, such as "int8_k32_n32". Panels are the
     * values of B in the order in which a kernel reads them. The name is empty unless the form is
     * wide. */
    char panels[BSMM_PANELS_NAME_BYTES];
    bsmm_format format;
    int64_t rows, cols;
    /* `groups` is the number of matrices if B is a stack (one matrix per group), else 0. */
    int64_t groups;
    uint64_t bytes; /* `bytes` is the size of packed weights in bytes, this header included. */
    uint8_t zero[24];
} bsmm_packed_header;

_Static_assert(sizeof(bsmm_packed_header) == 128, "docs/PACKING.md promises it");

/* Describes the packed weights of a plan. They consist of a header and, for each matrix of B, of
 * four arrays: panels (only in form wide), codes, scales, and the second-level scale (one scale for
 * the whole matrix). Every array begins at a multiple of 64 bytes. */
typedef struct bsmm_packed {
    /* `header` is the header of the packed weights. header.bytes is 0 if B cannot be packed for the
     * kernel. */
    bsmm_packed_header header;
    /* `stored` is B as the caller stores it. With groups, it has the matrices of all groups. */
    bsmm_operand stored;
    /* `view` describes one matrix of B inside the packed weights. Its pointers are NULL. */
    bsmm_operand view;
    /* `panel_bytes` is the size of one matrix's panels in bytes, or 0 without panels. */
    uint64_t panel_bytes;
    /* `matrix_bytes` is the stride in bytes from one matrix to the next. */
    uint64_t matrix_bytes;
} bsmm_packed;

/* Points to the arrays of one matrix in packed weights. Panels are B's values in the order in which
 * a kernel reads them. In form compact, which only reorders B's codes and scales, there are no
 * panels, and `panels` equals `codes`. */
typedef struct bsmm_packed_arrays {
    uint8_t *panels, *codes, *scales, *global;
} bsmm_packed_arrays;

/* Returns the table entry of a form of packed weights, or NULL if there is no such form. */
const bsmm_packed_form_info *bsmm_packed_form_row(uint32_t form);
/* Returns the form of packed weights whose name is the first `size` characters of `name`, or
 * BSMM_PACKED_NONE. */
uint32_t bsmm_packed_form_named(const char *name, size_t size);

/* Returns the form of packed weights (bsmm_packed_form) in which a plan packs B: desc.b_packed, or
 * WIDE if desc.b_packed is NONE. */
uint32_t bsmm_packed_form_of(const bsmm_product *product);

/* Describes one matrix of packed weights in *view: the codes and scales of the matrix `stored` in
 * the order that packed weights have in host memory or in device memory. The pointers are NULL. */
bsmm_status bsmm_packed_view(bool host_memory, const bsmm_operand *stored, bsmm_operand *view);

/* Tells whether two operands of one format and shape store their element codes at the same
 * offsets. */
bool bsmm_packed_same_codes(const bsmm_operand *a, const bsmm_operand *b);

/* Copies the description of B, as the caller stores it, to *stored. If runs read packed weights,
 * the function then changes the request's B to the description of B in the packed weights, because
 * a kernel decides by this description whether it accepts the product. */
bsmm_status bsmm_packed_take(bsmm_request *request, bsmm_operand *stored);

/* Sets *packed to the description of the packed weights that `kernel`, the chosen kernel of the
 * request, reads. If B cannot be packed for this kernel, packed->header.bytes becomes 0. */
bsmm_status bsmm_packed_make(const bsmm_kernel *kernel, const bsmm_request *request,
                             const bsmm_operand *stored, const void *state, bsmm_packed *packed);

/* Writes packed weights of a plan to `to`: the header, then B. product->b is B as the caller stores
 * it, with pointers to its memory. `kernel` and `state` are those of the plan. */
bsmm_status bsmm_packed_fill(const bsmm_packed *packed, const bsmm_kernel *kernel,
                             const bsmm_product *product, const void *state, void *to);

/* Compares the header of the packed weights that a run got with the header that the plan expects.
 * In device memory nothing is compared, because the host cannot read the header. If a field
 * differs, the function fails with INVALID; the message names the field, its value and the expected
 * value. */
bsmm_status bsmm_packed_check(const bsmm_packed *packed, const bsmm_product *product,
                              const void *given);

/* Points product->b and product->packed_b to matrix number `index` of packed weights. `given`
 * points to the header of the weights. The index is 0 unless B has one matrix per group. */
void bsmm_packed_bind(const bsmm_packed *packed, const void *given, int64_t index,
                      bsmm_product *product);

uint64_t bsmm_packed_matrix_bytes(const bsmm_operand *view, uint64_t panel_bytes);
bsmm_packed_arrays bsmm_packed_arrays_of(const bsmm_operand *view, const void *matrix,
                                         uint64_t panel_bytes);
/* Points the operand `b` to the codes, scales and second-level scale of one matrix in packed
 * weights. */
void bsmm_packed_set(const bsmm_packed_arrays *at, bool host_memory, bsmm_operand *b);

/* Copies the contents of a header to a caller's *info. */
bsmm_status bsmm_packed_give_info(const bsmm_packed_header *header, bsmm_packed_info *info);

/* Checks the first 8 bytes of packed weights. It fails with INVALID; for weights that an older
 * version of the library packed, the message says so. */
bsmm_status bsmm_packed_check_magic(const void *given);

#endif
