/* The time model. A trace holds the instructions that a wave has executed. After the functional
 * execution of a launch, the model replays the traces of a sample of workgroups on a model of the
 * device, and computes how many cycles the launch takes. docs/SIMULATOR.md describes the model. */
#ifndef SIM_GFX9_TIME_H
#define SIM_GFX9_TIME_H
#include "sim.h"

/* The constants of a device (devices.def). Rates without a unit of time are bytes per cycle. The
 * rates of the Infinity Cache (mall) and of HBM are bytes per second. */
typedef struct {
    double megahertz, launch_us, lds_latency;
    uint32_t cus, xcds, lds_bytes, lds_banks, lds_read_phases, registers, waves;
    uint32_t l1_bytes, l2_bytes, mall_bytes;
    double l1_rate, l2_read_rate, l2_write_rate, mall_rate, hbm_rate, l2_ns, mall_ns, hbm_ns;
} gfx9_device;
const gfx9_device *gfx9_device_of(enum gfx9_arch arch);

/* An executed instruction: its index in the code object's `code`, and what only its execution
 * tells. For an LDS instruction, `low` is its LDS cycles and `high` those of them that bank
 * conflicts cause. For a vector memory instruction, `low` is the number of cache lines that it
 * accesses and `high` is the number of bytes. */
typedef struct {
    uint32_t code;
    uint16_t low, high;
} gfx9_event;

struct gfx9_trace {
    gfx9_event *events;
    uint32_t *lines; /* the numbers of the cache lines that vector memory instructions access */
    size_t count, room, line_count, line_room;
    uint32_t number; /* the wave's number among those that the model replays */
    bool failed;     /* True if memory ran out. */
};

/* Appends the instruction to the wave's trace. The caller calls this before the instruction
 * executes. */
void gfx9_trace_step(gfx9_wave *w, const gfx9_inst *i);
/* Appends the cache lines that the current instruction accesses: `bytes` bytes in each active lane,
 * from the host address at[lane], which is NULL if the lane accesses nothing. */
void gfx9_trace_lines(gfx9_wave *w, uint8_t *const at[LANES], uint64_t active, uint32_t bytes);

typedef struct gfx9_timing gfx9_timing;
/* Begins to time a launch. Returns NULL if memory runs out. */
gfx9_timing *gfx9_timing_begin(const gfx9_object *object, const gfx9_kernel *kernel,
                               const gfx9_launch *launch, uint32_t lds_size);
/* Returns true if the workgroup belongs to the sample that the model replays. */
bool gfx9_timing_takes(const gfx9_timing *t, uint32_t number);
/* Attaches traces to the waves of a workgroup that has just been prepared. */
void gfx9_timing_attach(gfx9_timing *t, gfx9_group *g, uint32_t number);
/* Replays the traces if `replay` is true, fills *result, and frees everything. */
void gfx9_timing_end(gfx9_timing *t, bool replay, gfx9_times *result);

typedef struct gfx9_cache gfx9_cache;
gfx9_cache *gfx9_cache_new(uint32_t bytes);
void gfx9_cache_free(gfx9_cache *cache);
/* A line in a cache. */
typedef struct {
    double arrival; /* the cycle in which the line arrives */
    bool dirty;     /* the line has been written since it arrived */
} gfx9_line;
/* Finds a line. If it is missing, inserts it, clean, and sets *hit to false. */
gfx9_line *gfx9_cache_find(gfx9_cache *cache, uint32_t line, bool *hit);
enum { LINE = 128 }; /* bytes of a cache line of L1 and L2 */
#endif
