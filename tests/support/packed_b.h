/* Declares a product on the CPU with packed weights B. */
#ifndef BSMM_TEST_PACKED_B_H
#define BSMM_TEST_PACKED_B_H

#include "core/describe.h"
#include "operand.h"

/* Names the byte offsets of fields in the header of packed weights (docs/PACKING.md). */
enum { HEADER = 128, FORM = 8, VERSION = 16, GLOBAL_KIND = 20, DEVICE = 24, PANELS = 40 };
enum { FORMAT = 56, ROWS = 72, COLS = 80, GROUPS = 88, BYTES = 96, ZERO = 104 };

typedef struct packed_b {
    test_matrix a, b, d;
    bsmm_matmul_desc desc;
    bsmm_plan *plan;
    uint8_t *packed;
    uint64_t bytes;
} packed_b;

/* Returns memory with an alignment of 64 bytes. The caller frees it by free(). */
void *packed_b_room(uint64_t bytes);

/* Makes A with m rows, B, and D in fp32. packed_b_pack then packs B in a form of packed weights
 * (docs/PACKING.md), and packed_b_free frees everything. */
void packed_b_make(packed_b *f, bsmm_format a, bsmm_matrix b, int64_t m, fill how, rng *r);
void packed_b_pack(packed_b *f, uint32_t form);
void packed_b_free(packed_b *f);

/* Runs a plan with the operands and the packed B of *f. */
bsmm_status packed_b_run(const packed_b *f, const bsmm_plan *plan);

/* Checks that bsmm_unpack_b gives back the codes and scales of B. */
void packed_b_check_unpacked(const packed_b *f, rng *r);

#endif
