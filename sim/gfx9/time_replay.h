/* Declares what the files of the time model share. time.c chooses a sample of workgroups,
 * time_replay.c replays their traces, and time_memory.c models the memory that they access. */
#ifndef SIM_GFX9_TIME_REPLAY_H
#define SIM_GFX9_TIME_REPLAY_H
#include "time.h"

enum { SIMDS = 4 };

struct gfx9_timing {
    const gfx9_object *object;
    const gfx9_device *device;
    /* `wave_count` counts the waves of a workgroup. `resident` counts the workgroups that a compute
     * unit runs at once. */
    uint32_t wave_count, resident;
    /* `all_groups` counts the workgroups of the launch. `xcd_groups` counts the workgroups of the
     * launch that run on XCD 0. */
    uint32_t all_groups, xcd_groups;
    uint32_t cus;    /* `cus` counts the compute units of an XCD. */
    uint32_t groups; /* `groups` counts the workgroups of XCD 0 that the model replays. */
    /* Entry g * wave_count + n is the trace of wave n of replayed workgroup g. */
    struct gfx9_trace *traces;
};

/* Replays the traces of the sampled workgroups. Writes the times of the replay to launch->times,
 * and the source lines at which waves wait longest to launch->hot. The caller computes the times of
 * the whole launch from them. Returns false if memory runs out. */
bool gfx9_replay(const gfx9_timing *t, gfx9_launch *launch);

/* Models the memory that an XCD accesses. Each `..._free` is the cycle from which a level can take
 * the next request. `cycles` is the number of cycles per second. `share` is the part of the
 * device's Infinity Cache and HBM rates that the XCD gets. */
typedef struct {
    const gfx9_device *device;
    sim_cache *l2, *mall;
    double l2_free, mall_free, hbm_free, cycles, share;
    gfx9_times *times;
} gfx9_levels;

/* Returns the cycle in which cache line `line` arrives from L2 or a lower level. The request
 * begins in cycle `at`. */
double gfx9_read_line(gfx9_levels *m, uint32_t line, double at);
/* Models a store of `bytes` bytes to a cache line of L2, in cycle `at` or later. Returns the cycle
 * in which L2 has accepted the bytes. */
double gfx9_write_line(gfx9_levels *m, uint32_t line, double bytes, double at);
#endif
