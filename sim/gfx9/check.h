/* The access history of each byte of LDS. Epochs count barriers from 1, and epoch 0 means never. */
#ifndef SIM_GFX9_CHECK_H
#define SIM_GFX9_CHECK_H
#include "sim.h"

typedef struct gfx9_shadow {
    uint32_t write_epoch, read_epoch;
    /* `readers` is set if more than one wave has read the byte. `late` is the number of pending
     * loads to it. */
    uint8_t writer, reader, readers, atomic, late;
} gfx9_shadow;
#endif
