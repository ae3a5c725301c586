/* What is remembered of each byte of LDS. Epochs count barriers from 1; 0 is never. */
#ifndef SIM_GFX9_CHECK_H
#define SIM_GFX9_CHECK_H
#include "sim.h"

typedef struct gfx9_shadow {
    uint32_t write_epoch, read_epoch;
    uint8_t writer, reader, readers, atomic,
        late; /* readers: more waves than one; late: loads to it under way */
} gfx9_shadow;
#endif
