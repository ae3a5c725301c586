/* Checks instruction descriptors of tcgen05.mma. The fields are those of the PTX ISA, section
 * "Instruction descriptor". */
#include "tcgen05_form.h"
#include <stdio.h>

/* NVF4_16 is kind::mxf4nvf4 with one scale for 16 elements of K. Its rules for the positions of
 * scales differ from those of the kind with 32 elements. */
enum { NVF4_16 = MXF4NVF4 + 1 };
#define BIT(kind) (1u << (kind))
#define FLOATS    (BIT(F16) | BIT(TF32) | BIT(F8F6F4))
#define PLAIN     (FLOATS | BIT(I8))
#define SMALL     (BIT(F8F6F4) | BIT(MXF8F6F4))
#define FP4       (BIT(MXF4) | BIT(MXF4NVF4) | BIT(NVF4_16))
#define SCALED    (BIT(MXF8F6F4) | FP4)

/* Lists the values that each field of the instruction descriptor may have. Bit v of `values` is set
 * if the field may have the value v. `kinds` is a mask of the kinds of tcgen05.mma (such as
 * .kind::mxf4) to which the entry applies. */
static const struct {
    const char *name;
    uint32_t kinds, first, bits, values;
} fields[] = {
    {"sparsity selector", PLAIN | SCALED, 0, 2, BIT(0)},
    {"sparsity", PLAIN | SCALED, 2, 1, BIT(0)},
    {"saturation", FLOATS | SCALED, 3, 1, BIT(0)},
    {"type of D", BIT(F16) | BIT(F8F6F4), 4, 2, BIT(0) | BIT(1)},
    {"type of D", BIT(TF32), 4, 2, BIT(1)},
    {"type of D", BIT(I8), 4, 2, BIT(2)},
    {"scale id of B", BIT(MXF4) | BIT(MXF4NVF4), 4, 2, BIT(0) | BIT(2)},
    {"scale id of B", BIT(NVF4_16), 4, 2, BIT(0)},
    {"reserved", PLAIN | SCALED, 6, 1, BIT(0)},
    {"type of A", BIT(F16) | BIT(I8), 7, 3, BIT(0) | BIT(1)},
    {"type of B", BIT(F16) | BIT(I8), 10, 3, BIT(0) | BIT(1)},
    {"type of A", BIT(TF32), 7, 3, BIT(2)},
    {"type of B", BIT(TF32), 10, 3, BIT(2)},
    {"type of A", SMALL, 7, 3, BIT(0) | BIT(1) | BIT(3) | BIT(4) | BIT(5)},
    {"type of B", SMALL, 10, 3, BIT(0) | BIT(1) | BIT(3) | BIT(4) | BIT(5)},
    {"type of A", FP4, 7, 3, BIT(1)},
    {"type of B", FP4, 10, 2, BIT(1)},
    {"reserved", FP4, 12, 1, BIT(0)},
    {"negation of A", BIT(I8), 13, 1, BIT(0)},
    {"negation of B", BIT(I8), 14, 1, BIT(0)},
    {"order of A", FP4, 15, 1, BIT(0)},
    {"order of B", FP4, 16, 1, BIT(0)},
    {"reserved", PLAIN, 23, 1, BIT(0)},
    {"type of scales", BIT(MXF8F6F4) | BIT(MXF4), 23, 1, BIT(1)},
    {"reserved", SCALED, 24, 3, BIT(0)},
    {"reserved", PLAIN, 29, 1, BIT(0)},
    {"scale id of A", BIT(MXF4) | BIT(MXF4NVF4), 29, 2, BIT(0) | BIT(2)},
    {"scale id of A", BIT(NVF4_16), 29, 2, BIT(0)},
    {"largest shift", PLAIN, 30, 2, BIT(0)},
    {"size of K", SCALED, 31, 1, BIT(0)},
};

bool ptx_check_form(enum ptx_mma_kind kind, uint32_t block, uint32_t d, char *text, size_t size) {
    const uint32_t row = kind == MXF4NVF4 && block == 16 ? NVF4_16 : (uint32_t)kind;
    for (size_t k = 0; k < sizeof fields / sizeof *fields; k++) {
        const uint32_t value = d >> fields[k].first & ((1u << fields[k].bits) - 1);
        if (!(fields[k].kinds >> row & 1) || fields[k].values >> value & 1) continue;
        snprintf(text, size, "%s (bits %u to %u) is %u", fields[k].name, fields[k].first,
                 fields[k].first + fields[k].bits - 1, value);
        return false;
    }
    return true;
}
