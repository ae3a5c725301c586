/* Declarations that the files of the time model share: time.c chooses a sample of workgroups,
 * time_replay.c replays its traces, and time_memory.c models the memory that they access. */
#ifndef SIM_GFX9_TIME_REPLAY_H
#define SIM_GFX9_TIME_REPLAY_H
#include "time.h"

enum { SIMDS = 4 };

struct gfx9_timing {
    const gfx9_object *object;
    const gfx9_device *device;
    uint32_t wave_count, resident; /* waves of a workgroup; workgroups on a compute unit at once */
    uint32_t all_groups, xcd_groups; /* workgroups of the launch, and those of them on XCD 0 */
    uint32_t cus;                    /* compute units of an XCD */
    uint32_t groups;                 /* the workgroups of XCD 0 that are replayed */
    struct gfx9_trace *traces; /* wave n of replayed workgroup g is entry g * wave_count + n */
};

/* Replays the traces and fills *r, except for what is extrapolated from it. Returns false if memory
 * runs out. */
bool gfx9_replay(const gfx9_timing *t, gfx9_times *r);

/* The memory of an XCD. Each `..._free` is the cycle from which a level can take the next request.
 * `cycles` is the number of cycles of a second, and `share` the part of the device's Infinity Cache
 * and HBM that the XCD uses. */
typedef struct {
    const gfx9_device *device;
    gfx9_cache *l2, *mall;
    double l2_free, mall_free, hbm_free, cycles, share;
    gfx9_times *times;
} gfx9_levels;

/* Returns the cycle in which line `line`, requested at cycle `at`, arrives from L2 or beyond it. */
double gfx9_read_line(gfx9_levels *m, uint32_t line, double at);
/* Models a store of `bytes` bytes to a line of L2, in cycle `at` or later. Returns the cycle in
 * which L2 has accepted the bytes. */
double gfx9_write_line(gfx9_levels *m, uint32_t line, double bytes, double at);
#endif
