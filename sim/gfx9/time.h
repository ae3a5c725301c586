/* Declares the time model. A trace holds the instructions that a wave has executed. After a
 * launch, the model replays the traces of a sample of workgroups and computes how many cycles the
 * launch takes. docs/SIMULATOR.md describes the model. */
#ifndef SIM_GFX9_TIME_H
#define SIM_GFX9_TIME_H
#include "common/cache.h"
#include "sim.h"

/* Holds the constants of a device (devices.def). Rates have the unit bytes per cycle. Only the
 * rates of the Infinity Cache (mall) and of HBM have the unit bytes per second. */
typedef struct {
    double megahertz, launch_us, lds_latency;
    uint32_t cus, xcds, lds_bytes, lds_banks, lds_read_phases, registers, waves;
    uint32_t l1_bytes, l2_bytes, mall_bytes;
    double l1_rate, l2_read_rate, l2_write_rate, mall_rate, hbm_rate, l2_ns, mall_ns, hbm_ns;
} gfx9_device;
const gfx9_device *gfx9_device_of(enum gfx9_arch arch);

/* Describes an executed instruction. `code` is its index in the code object. For an LDS
 * instruction, `low` is its number of LDS cycles, and `high` is the part of them that bank
 * conflicts cause. For a vector memory instruction, `low` is the number of cache lines that it
 * accesses, and `high` is the number of bytes. */
typedef struct {
    uint32_t code;
    uint16_t low, high;
} gfx9_event;

struct gfx9_trace {
    gfx9_event *events;
    /* Lists the numbers of the cache lines that vector memory instructions access. */
    uint32_t *lines;
    size_t count, room, line_count, line_room;
    uint32_t number; /* `number` is the wave's number among the waves that the model replays. */
    bool failed;     /* `failed` is true if memory ran out. */
};

/* Appends the instruction to the wave's trace. The caller calls this function before the
 * instruction executes. */
void gfx9_trace_step(gfx9_wave *w, const gfx9_inst *i);
/* Appends to the trace the cache lines that the current instruction accesses. Each active lane
 * accesses `bytes` bytes at the host address at[lane], or nothing if the address is NULL. */
void gfx9_trace_lines(gfx9_wave *w, uint8_t *const at[LANES], uint64_t active, uint32_t bytes);

typedef struct gfx9_timing gfx9_timing;
/* Begins to time a launch. Returns NULL if memory runs out. */
gfx9_timing *gfx9_timing_begin(const gfx9_object *object, const gfx9_kernel *kernel,
                               const gfx9_launch *launch, uint32_t lds_size);
/* Returns true if the time model replays the traces of workgroup number `number`. */
bool gfx9_timing_takes(const gfx9_timing *t, uint32_t number);
/* Attaches a trace to each wave of a workgroup before the waves run. */
void gfx9_timing_attach(gfx9_timing *t, gfx9_group *g, uint32_t number);
/* Replays the traces if `replay` is true, and frees all memory of the model. Writes the times of
 * the launch to launch->times, and the source lines at which waves wait longest to launch->hot. */
void gfx9_timing_end(gfx9_timing *t, bool replay, gfx9_launch *launch);

enum { LINE = 128 }; /* LINE is the size of a cache line of L1 and L2 in bytes. */
#endif
