/* Executes barrier.cluster, at which all threads of a cluster wait for each other. */
#include "async.h"
#include "races.h"
#include "time.h"
#include <string.h>

static uint32_t expected(const ptx_cluster *c) {
    uint32_t warps = 0;
    for (uint32_t k = 0; k < c->size; k++)
        for (uint32_t n = 0; n < c->blocks[k].warp_count; n++)
            warps += c->blocks[k].warps[n].live != 0;
    return warps * LANES;
}

void ptx_cluster_check(ptx_cluster *c) {
    if (c->arrived == 0 || c->arrived < expected(c)) return;
    c->arrived = 0, c->phase++;
    if (c->timeline) ptx_time_turn(c, WAITED_CLUSTER, 0);
    for (uint32_t k = 0; k < c->size; k++)
        for (uint32_t n = 0; n < c->blocks[k].warp_count; n++) {
            ptx_warp *w = &c->blocks[k].warps[n];
            if (!w->cluster_waits) continue;
            ptx_time_release(w, w->cluster_waits, WAITED_CLUSTER, 0);
            ptx_race_acquire(w, SYNC_CLUSTER, 0);
            w->blocked &= ~w->cluster_waits;
            w->cluster_waits = 0;
        }
}

static void execute_arrive(ptx_warp *w, const ptx_inst *i) {
    ptx_cluster *c = w->block->cluster;
    (void)i;
    w->cluster_phase = c->phase;
    ptx_race_release(w, SYNC_CLUSTER, 0);
    if (w->trace) ptx_time_arrive(w, WAITED_CLUSTER, 0);
    c->arrived += w->mask == w->live ? LANES : (uint32_t)__builtin_popcount(w->mask);
    ptx_cluster_check(c);
}

static void execute_wait(ptx_warp *w, const ptx_inst *i) {
    if (w->block->cluster->phase != w->cluster_phase) {
        if (w->trace) ptx_time_wait(w, i, WAITED_CLUSTER, 0);
        ptx_race_acquire(w, SYNC_CLUSTER, 0);
        return;
    }
    for (uint32_t left = w->mask; left; left &= left - 1)
        w->lane_pc[ptx_first(left)] = w->pc;
    w->active &= ~w->mask, w->blocked |= w->mask, w->cluster_waits |= w->mask;
    ptx_schedule(w, false);
}

#define ROW(pattern, operands, execute)                                                            \
    { pattern, operands, execute, NULL, 0, 0, 0, 0, 0 }
static const ptx_row rows[] = {
    ROW("barrier.cluster.arrive.{release|relaxed}.{aligned}", "", execute_arrive),
    ROW("barrier.cluster.wait.{acquire}.{aligned}", "", execute_wait),
};
const ptx_table ptx_cluster_table = {rows, sizeof rows / sizeof *rows};
