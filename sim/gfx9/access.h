/* Functions for all memory instructions of the simulator: atomics, extension of loaded bytes, and
 * results that arrive late. */
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
/* Returns the new value of an atomic operation on 32 or 64 bits, from the old value and one or two
 * operands. */
uint64_t gfx9_atomic_value(int what, uint64_t old, uint64_t data, uint64_t data2, int bytes);

/* Says how loaded bytes become a register: sign-extended or not, and as a whole or in the low or
 * high half while the other half keeps its value. */
enum { FORM_PLAIN, FORM_SIGNED = 1, FORM_LOW = 2, FORM_HIGH = 4 };
uint32_t gfx9_widened(uint32_t raw, int bytes, int form);

typedef struct {
    uint32_t data[16][LANES];
} gfx9_loaded;
/* Writes `count` registers, beginning at `reg`, for the lanes in `exec`: at once, or when the wait
 * counters deliver them. */
void gfx9_result(gfx9_wave *w, uint32_t reg, uint32_t count, uint64_t exec, int form,
                 const gfx9_loaded *loaded, bool vm, bool lgkm);
#endif
