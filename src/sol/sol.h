/* Declares the tables for the speed of light, i.e. the shortest time in which a known device can
 * compute a matrix product in theory. */
#ifndef BSMM_SOL_H
#define BSMM_SOL_H

#include "format/format.h"

/* BSMM_CYCLE_PEAK computes the peak of a matrix unit in operations per second. The formula is AMD's
 * (blog post on matrix cores, September 2025, section 3). An instruction does 2 * m * n * k
 * operations. The device has `units` matrix cores with a clock of `mhz`, and each core can start
 * the next instruction after `cycles` cycles. The macro is used in initializers, so it must be a
 * constant expression. */
#define BSMM_CYCLE_PEAK(m, n, k, units, mhz, cycles)                                               \
    (2.0 * (m) * (n) * (k) * (units) * ((mhz)*1e6 / (cycles)))

/* These are properties of a device's matrix units that cannot be derived from the table of
 * peaks. */
typedef enum bsmm_sol_traits {
    BSMM_SOL_OCP8 = 1,  /* BSMM_SOL_OCP8: the device's 8-bit elements are e4m3 and e5m2. */
    BSMM_SOL_FNUZ8 = 2, /* BSMM_SOL_FNUZ8: the device's 8-bit elements are e4m3fnuz and e5m2fnuz. */
    /* BSMM_SOL_MX: matrix units multiply blocks of 32 elements by e8m0 scales. */
    BSMM_SOL_MX = 4,
    /* BSMM_SOL_NV: matrix units multiply blocks of 16 e2m1 elements by e4m3 scales. */
    BSMM_SOL_NV = 8,
    /* BSMM_SOL_F16: the matrix unit "f16" accepts f16 and bf16. Without this flag it accepts only
     * bf16. */
    BSMM_SOL_F16 = 16,
    /* BSMM_SOL_INT8: the device has no matrix unit for 6-bit and 4-bit floats. Its peaks "f6" and
     * "f4" are those of int8 dot products: a kernel converts the elements to int8, and multiplies
     * the integer sum of each scale block by the scales of A and B. */
    BSMM_SOL_INT8 = 32,
    BSMM_SOL_SLOW_BF16 = 64 /* BSMM_SOL_SLOW_BF16: bf16 has half the peak throughput of f16. */
} bsmm_sol_traits;

typedef struct bsmm_sol_device {
    bsmm_device_info info;
    uint32_t traits; /* `traits` is a sum of bsmm_sol_traits. */
} bsmm_sol_device;

/* Returns the table entry of a device, or NULL if no device has that name. */
const bsmm_sol_device *bsmm_sol_device_row(const char *name);

/* `bsmm_sol_unit` lists the kinds of arithmetic units of a device that multiply matrices. F16 and
 * BF16 are two units, even if they have the same peak, because no instruction multiplies f16 by
 * bf16. F4_MX and F4_NV are two units, because no instruction accepts e8m0 and e4m3 scales
 * together. */
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

/* Returns the set of matrix units (bits 1 << bsmm_sol_unit) that accept operands of `format` on a
 * device with `traits`, either directly or after an exact conversion. units.c has the table. */
uint32_t bsmm_sol_units(bsmm_format format, uint32_t traits);

/* bsmm_sol_peak returns the peak of a matrix unit in operations per second, or 0 if the device
 * lacks the unit. bsmm_sol_unit_name returns the unit's name, such as "f8". */
double bsmm_sol_peak(const bsmm_sol_device *device, bsmm_sol_unit unit);
const char *bsmm_sol_unit_name(bsmm_sol_unit unit);

#endif
