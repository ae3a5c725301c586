/* The access history of each byte of LDS. Epochs count barriers from 1, and epoch 0 means never. */
#ifndef SIM_GFX9_CHECK_H
#define SIM_GFX9_CHECK_H
#include "sim.h"

typedef struct gfx9_shadow {
    uint32_t write_epoch, read_epoch;
    uint8_t writer, reader, readers, atomic,
        late; /* readers: more than one wave has read it; late: number of pending loads to it */
} gfx9_shadow;
#endif
