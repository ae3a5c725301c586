/* The functions in this file compute the time of a launch. They choose the workgroups whose
 * instructions are recorded, and place these workgroups on the compute units of one XCD. Then they
 * extrapolate from these workgroups to the launch. */
#include "time_replay.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const gfx9_device devices[] = {
#define DEVICE(arch, ...) [arch] = {__VA_ARGS__},
#include "devices.def"
#undef DEVICE
};

const gfx9_device *gfx9_device_of(enum gfx9_arch arch) {
    return &devices[arch];
}

/* Returns the number of workgroups that fit on a compute unit at once. This number is limited by
 * LDS, by registers, and by the number of waves that the four SIMDs can hold. */
static uint32_t groups_per_cu(const gfx9_timing *t, const gfx9_kernel *kernel, uint32_t lds_size) {
    const gfx9_device *d = t->device;
    const uint32_t registers = 8 * ((kernel->rsrc1 & 63) + 1);
    const uint32_t by_registers = d->registers / registers;
    const uint32_t waves = SIMDS * (by_registers < d->waves ? by_registers : d->waves);
    const uint32_t by_waves = waves / t->wave_count;
    const uint32_t by_lds = lds_size ? d->lds_bytes / lds_size : by_waves;
    const uint32_t least = by_waves < by_lds ? by_waves : by_lds;
    return least ? least : 1;
}

gfx9_timing *gfx9_timing_begin(const gfx9_object *object, const gfx9_kernel *kernel,
                               const gfx9_launch *l, uint32_t lds_size) {
    gfx9_timing *t = calloc(1, sizeof *t);
    if (!t) return NULL;
    t->object = object, t->device = gfx9_device_of(object->arch);
    t->wave_count = (l->block[0] * l->block[1] * l->block[2] + LANES - 1) / LANES;
    t->resident = groups_per_cu(t, kernel, lds_size);
    t->all_groups = l->grid[0] * l->grid[1] * l->grid[2];
    /* Workgroup n runs on XCD n mod xcds, so XCD 0 has the most workgroups. */
    t->xcd_groups = (t->all_groups + t->device->xcds - 1) / t->device->xcds;
    t->cus = t->device->cus / t->device->xcds;
    const uint32_t round = t->cus * t->resident;
    t->groups = t->xcd_groups < round ? t->xcd_groups : round;
    t->traces = calloc((size_t)t->groups * t->wave_count, sizeof *t->traces);
    if (t->traces) return t;
    free(t);
    return NULL;
}

bool gfx9_timing_takes(const gfx9_timing *t, uint32_t number) {
    return number % t->device->xcds == 0 && number / t->device->xcds < t->groups;
}

void gfx9_timing_attach(gfx9_timing *t, gfx9_group *g, uint32_t number) {
    if (!gfx9_timing_takes(t, number)) return;
    for (uint32_t n = 0; n < g->wave_count; n++) {
        const uint32_t at = number / t->device->xcds * t->wave_count + n;
        g->waves[n].trace = &t->traces[at], t->traces[at].number = at;
    }
}

/* Computes the time of the whole launch. Only one round was replayed in detail: in a round, each
 * compute unit of the XCD runs as many workgroups as fit on it at once. If the XCD has more
 * workgroups than that, the launch takes several rounds, and each is assumed to take as long as the
 * replayed one. */
static void extrapolate(const gfx9_timing *t, gfx9_times *r) {
    const double round = (double)t->cus * t->resident;
    r->launched = t->all_groups;
    r->rounds = ceil(t->xcd_groups / round);
    r->cycles = r->replayed * r->rounds;
    r->seconds = r->cycles / (t->device->megahertz * 1e6) + t->device->launch_us * 1e-6;
}

void gfx9_timing_end(gfx9_timing *t, bool replay, gfx9_launch *launch) {
    const size_t count = (size_t)t->groups * t->wave_count;
    launch->times = (gfx9_times){0};
    for (size_t k = 0; k < count; k++)
        replay &= !t->traces[k].failed;
    if (replay && gfx9_replay(t, launch)) extrapolate(t, &launch->times);
    for (size_t k = 0; k < count; k++)
        free(t->traces[k].events), free(t->traces[k].lines);
    free(t->traces), free(t);
}
