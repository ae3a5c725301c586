/* Speed of light: what known devices could do at best. */
#ifndef BSMM_SOL_H
#define BSMM_SOL_H

#include "format/format.h"

/* Operations per second of a matrix unit, by AMD's formula (the matrix core blog post of September
 * 2025, section 3): 2 M N K per instruction, `units` matrix cores, each free again after `cycles`
 * at `mhz`. A constant expression. */
#define BSMM_CYCLE_PEAK(m, n, k, units, mhz, cycles)                                               \
    (2.0 * (m) * (n) * (k) * (units) * ((mhz)*1e6 / (cycles)))

/* What a device's matrix units do beyond multiplying their element formats. */
typedef enum bsmm_sol_traits {
    BSMM_SOL_OCP8 = 1,  /* 8-bit elements are e4m3 and e5m2 */
    BSMM_SOL_FNUZ8 = 2, /* 8-bit elements are e4m3fnuz and e5m2fnuz */
    BSMM_SOL_MX = 4,    /* applies e8m0 scales of 32 */
    BSMM_SOL_NV = 8,    /* applies e4m3 scales of 16 to e2m1 */
    BSMM_SOL_F16 = 16,  /* "f16" is f16 as well as bf16 */
    BSMM_SOL_INT8 = 32  /* "f6" and "f4" are an int8 dot product with a scaling per block */
} bsmm_sol_traits;

typedef struct bsmm_sol_device {
    bsmm_device_info info;
    uint32_t traits; /* bsmm_sol_traits */
} bsmm_sol_device;

/* The row of a device's name, NULL if there is none. */
const bsmm_sol_device *bsmm_sol_device_row(const char *name);

/* The units of a device. Two carry f16's peak (an f16 and a bf16 operand cannot meet in one
 * instruction) and two carry f4's (nor can e8m0 and e4m3 scales). */
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

/* The set (1 << unit) of units that can take operands of `format` on a device with `traits`,
 * natively or by an exact change of representation: the table in units.c. */
uint32_t bsmm_sol_units(bsmm_format format, uint32_t traits);

/* Peak of a unit in operations per second, 0 if the device has none; and its name ("f8"). */
double bsmm_sol_peak(const bsmm_device_info *device, bsmm_sol_unit unit);
const char *bsmm_sol_unit_name(bsmm_sol_unit unit);

#endif
