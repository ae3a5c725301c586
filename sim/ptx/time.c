/* Computes the time of a launch. The code chooses a sample of the clusters, which the model times
 * in detail, and computes the time of the whole launch from it. */
#include "time_replay.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const ptx_device devices[] = {
#define DEVICE(...) {__VA_ARGS__},
#include "time_devices.def"
#undef DEVICE
};

static const ptx_device *find_device(uint32_t capability) {
    for (size_t k = 0; k < sizeof devices / sizeof *devices; k++)
        if (devices[k].capability == capability) return &devices[k];
    return NULL;
}

bool ptx_has_time_model(uint32_t capability) {
    return find_device(capability) != NULL;
}

double ptx_traffic_seconds(uint32_t capability, double bytes) {
    const ptx_device *d = find_device(capability);
    return d ? bytes / d->hbm_rate + d->launch_us * 1e-6 : 0;
}

enum { TENSOR_COLUMNS = 512, BLOCKS = 32 };

static uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

/* Returns the number of blocks that an SM runs at once. Shared memory and threads limit it.
 * Registers are ignored, because PTX does not tell how many the assembler uses. */
static uint32_t blocks_per_sm(const ptx_launch *l, const ptx_device *d) {
    const uint32_t threads = l->block[0] * l->block[1] * l->block[2];
    const uint32_t by_shared = d->shared_bytes / (l->used_shared + 1);
    const uint32_t count = least(least(by_shared, d->threads / threads), BLOCKS);
    return count ? count : 1;
}

ptx_timing *ptx_timing_begin(const ptx_launch *l) {
    const ptx_device *d = find_device(l->capability);
    ptx_timing *t = d ? calloc(1, sizeof *t) : NULL;
    if (!t) return NULL;
    t->launch = l, t->device = d;
    t->size = l->cluster[0] * l->cluster[1] * l->cluster[2];
    t->warps = (l->block[0] * l->block[1] * l->block[2] + LANES - 1) / LANES;
    t->all = l->grid[0] * l->grid[1] * l->grid[2] / t->size;
    t->resident = blocks_per_sm(l, d);
    t->sms = least(l->multiprocessors / t->size, t->all) * t->size;
    if (!t->sms) t->sms = t->size;
    t->taken = least(t->all, t->sms / t->size * t->resident);
    t->timelines = calloc(t->taken, sizeof *t->timelines);
    if (t->timelines) return t;
    free(t);
    return NULL;
}

bool ptx_timing_takes(const ptx_timing *t, uint32_t cluster) {
    return cluster < t->taken;
}

void ptx_timing_attach(ptx_timing *t, ptx_cluster *c, uint32_t cluster) {
    c->running = 0, c->timeline = NULL;
    if (!ptx_timing_takes(t, cluster)) return;
    ptx_timeline *line = &t->timelines[cluster];
    line->traces = calloc((size_t)t->size * t->warps, sizeof *line->traces);
    line->failed = !line->traces;
    if (line->failed) return;
    c->timeline = line;
    for (uint32_t k = 0; k < c->size; k++)
        for (uint32_t n = 0; n < t->warps; n++)
            c->blocks[k].warps[n].trace = &line->traces[k * t->warps + n];
}

/* Computes the time of the whole launch from the time of the sample, i.e. of the clusters that the
 * model has timed. If not all blocks can run at once, they run in rounds, and each round takes as
 * long as the sample. */
static void extrapolate(const ptx_timing *t, ptx_times *r) {
    const uint32_t at_once = t->launch->multiprocessors / t->size * t->resident;
    r->groups = t->taken * t->size, r->launched = t->all * t->size;
    r->sms = t->sms, r->warps = (double)t->taken * t->size * t->warps / t->sms;
    r->rounds = ceil((double)t->all / (at_once ? at_once : 1));
    r->cycles = r->replayed * r->rounds;
    r->seconds = r->cycles / (t->device->megahertz * 1e6) + t->device->launch_us * 1e-6;
}

/* Lowers the number of blocks that run on an SM at once if their tensor memory does not fit. */
static void fit_columns(ptx_timing *t) {
    const uint32_t columns = t->timelines[0].columns;
    if (columns && t->resident > TENSOR_COLUMNS / columns) {
        t->resident = TENSOR_COLUMNS / columns;
        t->taken = least(t->taken, t->sms / t->size * t->resident);
    }
}

static void free_timeline(const ptx_timing *t, ptx_timeline *line) {
    for (uint32_t n = 0; line->traces && n < t->size * t->warps; n++)
        free(line->traces[n].events.at), free(line->traces[n].spans.at);
    free(line->traces), free(line->jobs.at), free(line->spans.at), free(line->arrivals.at);
    free(line->phases.at), free(line->waited.at);
}

/* Returns false and writes the reason to `error` if nothing was recorded for one of the clusters
 * that the model has to time. */
static bool is_recorded(const ptx_timing *t, char *error) {
    for (uint32_t k = 0; k < t->taken; k++) {
        const ptx_timeline *line = &t->timelines[k];
        if (line->traces && !line->failed) continue;
        snprintf(error, ERROR_BYTES, "%s: the time model has no records of cluster %u%s",
                 t->launch->kernel->name, k,
                 line->failed ? ", because memory ran out"
                              : ", which another cluster has canceled (clusterlaunchcontrol)");
        return false;
    }
    return true;
}

void ptx_timing_end(ptx_timing *t, ptx_launch *launch, char *error) {
    const uint32_t count = t->taken;
    launch->times = (ptx_times){0};
    if (!error[0] && is_recorded(t, error)) {
        fit_columns(t);
        if (ptx_replay(t, launch, error)) extrapolate(t, &launch->times);
    }
    for (uint32_t k = 0; k < count; k++)
        free_timeline(t, &t->timelines[k]);
    free(t->timelines), free(t);
}
