/* Declares functions that all memory instructions of the AMD simulator share: atomics, the
 * extension of loaded bytes, and results of loads that arrive only at a wait instruction. */
#ifndef SIM_GFX9_ACCESS_H
#define SIM_GFX9_ACCESS_H
#include "sim.h"

enum gfx9_atomic {
    AT_SWAP,
    AT_CMPSWAP,
    AT_ADD,
    AT_SUB,
    AT_RSUB,
    AT_SMIN,
    AT_UMIN,
    AT_SMAX,
    AT_UMAX,
    AT_AND,
    AT_OR,
    AT_XOR,
    AT_INC,
    AT_DEC,
    AT_ADD_F32,
    AT_ADD_F64,
    AT_MIN_F64,
    AT_MAX_F64,
    AT_PK_ADD_F16,
    AT_PK_ADD_BF16,
    AT_MIN_F32,
    AT_MAX_F32,
    AT_MSKOR,
    AT_CMPSWAP_F32,
    AT_CMPSWAP_F64
};
/* Returns the new value that an atomic operation stores to 4 or 8 bytes. `data` and `data2` are
 * its operands. Only compare-and-swap and masked-or use data2. */
uint64_t gfx9_atomic_value(int what, uint64_t old, uint64_t data, uint64_t data2, int bytes);

/* These values tell how a loaded value is written to a register. FORM_SIGNED extends the sign.
 * FORM_LOW and FORM_HIGH write only one half of the register and keep the other half. */
enum { FORM_PLAIN, FORM_SIGNED = 1, FORM_LOW = 2, FORM_HIGH = 4 };
static inline uint32_t gfx9_widened(uint32_t raw, int bytes, int form) {
    if (bytes == 1) raw = form & FORM_SIGNED ? (uint32_t)(int32_t)(int8_t)raw : raw & 255;
    if (bytes == 2) raw = form & FORM_SIGNED ? (uint32_t)(int32_t)(int16_t)raw : raw & 0xffff;
    return form & FORM_HIGH ? raw << 16 : raw;
}

typedef struct {
    uint32_t data[16][LANES];
} gfx9_loaded;
/* Writes a load's result to `count` registers, beginning with register `reg`, in the lanes of the
 * mask `exec`. If the check of waits is on, the registers change only when the program waits for
 * the counters `vm` or `lgkm`. Otherwise they change at once. */
void gfx9_result(gfx9_wave *w, uint32_t reg, uint32_t count, uint64_t exec, int form,
                 const gfx9_loaded *loaded, bool vm, bool lgkm);
#endif
