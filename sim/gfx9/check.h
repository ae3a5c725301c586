/* The access history of one byte of LDS. An epoch is the number of barriers so far, counted from 1;
 * epoch 0 means that the access has not happened. */
#ifndef SIM_GFX9_CHECK_H
#define SIM_GFX9_CHECK_H
#include "sim.h"

typedef struct gfx9_shadow {
    uint32_t write_epoch, read_epoch;
    /* The waves of the last write and read; whether several waves have read the byte; whether the
     * write was an atomic; and the number of pending loads that will write the byte. */
    uint8_t writer, reader, readers, atomic, late;
} gfx9_shadow;
#endif
