/* Speed of light: the best times that known devices can reach. */
#ifndef BSMM_SOL_H
#define BSMM_SOL_H

#include "format/format.h"

/* Operations per second of a matrix unit, by AMD's formula (the matrix core blog post of
 * September 2025, section 3). An instruction does 2 M N K operations. There are `units` matrix
 * cores at `mhz`, and each accepts the next instruction after `cycles`. The macro is a constant
 * expression. */
#define BSMM_CYCLE_PEAK(m, n, k, units, mhz, cycles)                                               \
    (2.0 * (m) * (n) * (k) * (units) * ((mhz)*1e6 / (cycles)))

/* Properties of a device's matrix units that do not follow from their peaks. */
typedef enum bsmm_sol_traits {
    BSMM_SOL_OCP8 = 1,      /* 8-bit elements are e4m3 and e5m2 */
    BSMM_SOL_FNUZ8 = 2,     /* 8-bit elements are e4m3fnuz and e5m2fnuz */
    BSMM_SOL_MX = 4,        /* the unit applies e8m0 scales of blocks of 32 */
    BSMM_SOL_NV = 8,        /* the unit applies e4m3 scales of blocks of 16 to e2m1 */
    BSMM_SOL_F16 = 16,      /* the unit "f16" takes f16 as well as bf16 */
    BSMM_SOL_INT8 = 32,     /* "f6" and "f4" are an int8 dot product with a scaling per block */
    BSMM_SOL_SLOW_BF16 = 64 /* bf16 has half of the peak of f16 */
} bsmm_sol_traits;

typedef struct bsmm_sol_device {
    bsmm_device_info info;
    uint32_t traits; /* properties of the matrix units, bsmm_sol_traits */
} bsmm_sol_device;

/* Returns the row of a device's name, or NULL if there is none. */
const bsmm_sol_device *bsmm_sol_device_row(const char *name);

/* The units of a device. F16 and BF16 share a peak, but are two units, because no instruction takes
 * an f16 and a bf16 operand. F4_MX and F4_NV are two units, because no instruction takes e8m0 and
 * e4m3 scales. */
typedef enum bsmm_sol_unit {
    BSMM_UNIT_F32,
    BSMM_UNIT_F16,
    BSMM_UNIT_BF16,
    BSMM_UNIT_F8,
    BSMM_UNIT_F6,
    BSMM_UNIT_F4_MX,
    BSMM_UNIT_F4_NV,
    BSMM_UNIT_COUNT
} bsmm_sol_unit;

/* Returns the set (bits 1 << unit) of units that can take operands of `format` on a device with
 * `traits`, natively or after an exact conversion. The table is in units.c. */
uint32_t bsmm_sol_units(bsmm_format format, uint32_t traits);

/* These functions return the peak of a unit in operations per second (0 if the device has none),
 * and the unit's name, such as "f8". */
double bsmm_sol_peak(const bsmm_sol_device *device, bsmm_sol_unit unit);
const char *bsmm_sol_unit_name(bsmm_sol_unit unit);

#endif
