/* Holds the last accesses to one byte of LDS, so that the simulator finds data races. An epoch is
 * the number of an interval between two barriers, from 1 on. Epoch 0 means that there was no
 * access. */
#ifndef SIM_GFX9_CHECK_H
#define SIM_GFX9_CHECK_H
#include "sim.h"

typedef struct gfx9_shadow {
    uint32_t write_epoch, read_epoch;
    /* `writer` and `reader` are the waves of the last write and read. `readers` is nonzero if
     * several waves have read the byte. `atomic` is nonzero if the write was an atomic. `late`
     * counts the pending loads that will write the byte. */
    uint8_t writer, reader, readers, atomic, late;
} gfx9_shadow;

/* Sets inst->accesses, which tells how a memory instruction accesses registers. */
void gfx9_accesses_of(gfx9_inst *inst);
#endif
