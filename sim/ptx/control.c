/* Executes branches, calls, barriers of a thread block, and the end of threads. */
#include "races.h"
#include "time.h"
#include <string.h>

enum { SPINS = 64, MOST_CALLS = 8 };

static bool others_wait(const ptx_warp *w) {
    return (w->live & ~w->blocked & ~w->active & ~w->parked) != 0;
}

static void jump(ptx_warp *w, uint32_t target) {
    const uint32_t here = w->pc, rest = w->active & ~w->mask;
    for (uint32_t left = rest; left; left &= left - 1)
        w->lane_pc[ptx_first(left)] = here;
    w->active = w->mask;
    w->pc = target;
    const bool back = target < here;
    if (rest)
        ptx_schedule(w, false);
    else if (back && others_wait(w))
        ptx_schedule(w, ++w->spins % SPINS == 0);
}

static void execute_bra(ptx_warp *w, const ptx_inst *i) {
    jump(w, (uint32_t)i->op[0].value);
}

/* Executes brx, a branch whose target each lane chooses by an index into a list of labels. Only the
 * lanes with the same index as the first lane branch now. */
static void execute_brx(ptx_warp *w, const ptx_inst *i) {
    const uint32_t *index = ptx_u32(w, &i->op[0]);
    const uint32_t first = index[ptx_first(w->mask)], all = w->mask;
    uint32_t same = 0;
    for (uint32_t l = 0; l < LANES; l++)
        if (all >> l & 1 && index[l] == first) same |= 1u << l;
    if (i->op[1].place != VECTOR || first >= i->op[1].count) {
        ptx_stop(w, i, "index %u: the list has %u labels", first, i->op[1].count);
        return;
    }
    /* Lanes with another index than the first lane do not branch now. They execute brx again
     * later. */
    for (uint32_t left = w->active & ~same; left; left &= left - 1) {
        const uint32_t l = ptx_first(left);
        w->lane_pc[l] = all >> l & 1 ? w->pc - 1 : w->pc;
    }
    w->active = same;
    w->pc = (uint32_t)i->op[1].elements[first].value;
    ptx_schedule(w, false);
}

static void copy_local(ptx_warp *w, uint32_t to, uint32_t from, uint32_t bytes) {
    for (uint32_t left = w->mask; left; left &= left - 1) {
        uint8_t *local = w->local + (size_t)ptx_first(left) * w->local_bytes;
        memmove(local + to, local + from, bytes);
    }
}

static bool copy_list(ptx_warp *w, const ptx_inst *i, const ptx_operand *list,
                      const ptx_function *f, uint32_t first, uint32_t count, bool back) {
    if (list->count != count) {
        ptx_stop(w, i, "%s: %u arguments instead of %u", f->name, list->count, count);
        return false;
    }
    for (uint32_t k = 0; k < count; k++) {
        const ptx_parameter *p = &f->parameters[first + k];
        const uint32_t outside = (uint32_t)list->elements[k].value;
        if (outside + p->size > w->local_bytes || p->offset + p->size > w->local_bytes) {
            ptx_stop(w, i, "%s: parameter %u is larger than its argument", f->name, k);
            return false;
        }
        copy_local(w, back ? outside : p->offset, back ? p->offset : outside, p->size);
    }
    return true;
}

static void execute_call(ptx_warp *w, const ptx_inst *i) {
    const ptx_function *f = &w->block->launch->module->functions[i->op[1].value];
    const uint32_t inputs = f->parameter_count - f->result_count;
    if (!f->defined) {
        ptx_stop(w, i, "function %s has no body", f->name);
        return;
    }
    if (!copy_list(w, i, &i->op[2], f, f->result_count, inputs, false)) return;
    for (uint32_t left = w->mask; left; left &= left - 1) {
        const uint32_t l = ptx_first(left);
        if (w->depth[l] >= MOST_CALLS) {
            ptx_stop(w, i, "lane %u: calls nest more than %d deep", l, MOST_CALLS);
            return;
        }
        w->returns[w->depth[l]++][l] = w->pc;
    }
    jump(w, f->first);
}

/* Returns from a function. The lanes may have different return addresses. Those with the same
 * return address as the first lane return now, and the others execute the instruction again
 * later. */
static void return_lanes(ptx_warp *w, const ptx_inst *i) {
    const uint32_t first = ptx_first(w->mask), to = w->returns[w->depth[first] - 1][first];
    const uint32_t all = w->mask;
    for (uint32_t left = all; left; left &= left - 1) {
        const uint32_t l = ptx_first(left);
        if (w->depth[l] == 0 || w->returns[w->depth[l] - 1][l] != to) w->mask &= ~(1u << l);
    }
    const ptx_inst *call = &w->block->launch->module->code[to - 1];
    const ptx_function *f = &w->block->launch->module->functions[call->op[1].value];
    if (f->result_count && call->op[0].place == LIST &&
        !copy_list(w, i, &call->op[0], f, 0, f->result_count, true))
        return;
    for (uint32_t left = w->mask; left; left &= left - 1)
        w->depth[ptx_first(left)]--;
    for (uint32_t left = w->active & ~w->mask; left; left &= left - 1) {
        const uint32_t l = ptx_first(left);
        w->lane_pc[l] = all >> l & 1 ? w->pc - 1 : w->pc;
    }
    w->active = w->mask, w->pc = to;
    ptx_schedule(w, false);
}

static void execute_exit(ptx_warp *w, const ptx_inst *i) {
    (void)i;
    ptx_retire(w, w->mask);
}

static void execute_ret(ptx_warp *w, const ptx_inst *i) {
    if (w->depth[ptx_first(w->mask)])
        return_lanes(w, i);
    else
        ptx_retire(w, w->mask);
}

static void execute_trap(ptx_warp *w, const ptx_inst *i) {
    ptx_stop(w, i, "trap");
}

static uint32_t expected_threads(const ptx_block *b) {
    uint32_t warps = 0;
    for (uint32_t n = 0; n < b->warp_count; n++)
        warps += b->warps[n].live != 0;
    return warps * LANES;
}

enum { SYNC, ARRIVE, RED_POPC, RED_AND, RED_OR };

static void give_result(ptx_warp *w, const ptx_barrier *bar, uint32_t lanes) {
    const ptx_inst *i = w->reduces;
    uint32_t count[LANES];
    if (!i) return;
    w->mask = lanes, w->reduces = NULL;
    for (uint32_t l = 0; l < LANES; l++)
        count[l] = bar->population;
    if (i->opcode->row->what == RED_POPC)
        ptx_commit(w, &i->op[0], count);
    else
        ptx_set_pred(w, &i->op[0],
                     (i->opcode->row->what == RED_AND ? bar->all : bar->any) ? ~0u : 0);
}

static uint64_t barrier_number(const ptx_block *b, uint32_t id) {
    return (uint64_t)b->rank << 8 | id;
}

static void release(ptx_block *b, uint32_t id) {
    if (b->cluster->timeline) ptx_time_turn(b->cluster, WAITED_BARRIER, barrier_number(b, id));
    for (uint32_t n = 0; n < b->warp_count; n++) {
        ptx_warp *w = &b->warps[n];
        if (!w->waits[id]) continue;
        give_result(w, &b->barriers[id], w->waits[id]);
        ptx_time_release(w, w->waits[id], WAITED_BARRIER, barrier_number(b, id));
        ptx_race_acquire(w, SYNC_BARRIER, barrier_number(b, id));
        w->blocked &= ~w->waits[id];
        w->waits[id] = 0;
    }
    b->barriers[id] = (ptx_barrier){.all = true};
}

void ptx_barriers_check(ptx_block *b) {
    for (uint32_t id = 0; id < BARRIERS; id++) {
        const ptx_barrier *bar = &b->barriers[id];
        const uint32_t wanted = bar->expected ? bar->expected : expected_threads(b);
        if (bar->arrived && wanted && bar->arrived >= wanted) release(b, id);
    }
}

static uint32_t barrier_id(ptx_warp *w, const ptx_inst *i, const ptx_operand *o) {
    const uint32_t id = o->place == NOWHERE ? 0 : (uint32_t)ptx_uniform(w, o);
    if (id < BARRIERS) return id;
    ptx_stop(w, i, "barrier %u: there are 16", id);
    return 0;
}

static void count_lanes(ptx_warp *w, ptx_barrier *bar, uint32_t votes) {
    /* If all live threads of a warp arrive at a barrier together, hardware adds 32 arrivals, even
     * for the last warp of a block, which may have fewer than 32 threads. */
    bar->arrived += w->mask == w->live ? LANES : (uint32_t)__builtin_popcount(w->mask);
    bar->population += (uint32_t)__builtin_popcount(votes & w->mask);
    bar->any |= (votes & w->mask) != 0;
    bar->all &= (votes & w->mask) == w->mask;
}

static void execute_bar(ptx_warp *w, const ptx_inst *i) {
    const int what = i->opcode->row->what;
    const bool reduces = what >= RED_POPC;
    const uint32_t id = barrier_id(w, i, &i->op[reduces ? 1 : 0]);
    const ptx_operand *threads = &i->op[reduces ? 2 : 1];
    ptx_barrier *bar = &w->block->barriers[id];
    const uint32_t wanted = threads->place == NOWHERE ? 0 : (uint32_t)ptx_uniform(w, threads);
    if (w->stop) return;
    if (bar->arrived && bar->expected != wanted) {
        ptx_stop(w, i, "barrier %u: %u threads here, %u where others wait", id, wanted,
                 bar->expected);
        return;
    }
    bar->expected = wanted;
    count_lanes(w, bar, reduces ? ptx_pred(w, &i->op[3]) : 0);
    ptx_race_release(w, SYNC_BARRIER, barrier_number(w->block, id));
    if (w->trace) ptx_time_arrive(w, WAITED_BARRIER, barrier_number(w->block, id));
    if (what != ARRIVE) {
        const uint32_t lanes = w->mask;
        for (uint32_t left = lanes; left; left &= left - 1)
            w->lane_pc[ptx_first(left)] = w->pc;
        w->active &= ~lanes, w->blocked |= lanes, w->waits[id] |= lanes;
        if (reduces) w->reduces = i;
    }
    ptx_barriers_check(w->block);
    ptx_schedule(w, false);
}

static void execute_warp_sync(ptx_warp *w, const ptx_inst *i) {
    (void)ptx_together(w, i, (uint32_t)ptx_uniform(w, &i->op[0]));
}

static void nothing(ptx_warp *w, const ptx_inst *i) {
    (void)w, (void)i;
}

/* Threads can signal each other by a fence and a write to memory. The race detector therefore
 * treats each fence as a signal to all warps that execute a fence later. */
static void execute_fence(ptx_warp *w, const ptx_inst *i) {
    (void)i;
    ptx_race_acquire(w, SYNC_FENCE, 0);
    ptx_race_release(w, SYNC_FENCE, 0);
}

static void execute_nanosleep(ptx_warp *w, const ptx_inst *i) {
    (void)i;
    ptx_schedule(w, true);
    if (!w->stop) w->stop = STOP_YIELD;
}

#define ROW(pattern, operands, execute, what)                                                      \
    { pattern, operands, execute, NULL, 0, 0, 0, 0, what }
static const ptx_row rows[] = {
    ROW("bra.{uni}", "x", execute_bra, 0),
    ROW("brx.idx.{uni}", "Rx", execute_brx, 0),
    ROW("call.{uni}", "of(?", execute_call, 0),
    ROW("ret.{uni}", "", execute_ret, 0),
    ROW("exit", "", execute_exit, 0),
    ROW("trap", "", execute_trap, 0),
    ROW("bar.{cta}.sync", "RR?", execute_bar, SYNC),
    ROW("barrier.{cta}.sync.{aligned}", "RR?", execute_bar, SYNC),
    ROW("bar.{cta}.arrive", "RR", execute_bar, ARRIVE),
    ROW("barrier.{cta}.arrive.{aligned}", "RR", execute_bar, ARRIVE),
    ROW("bar.{cta}.red.popc.u32", "rRNP", execute_bar, RED_POPC),
    ROW("bar.{cta}.red.and.pred", "pRNP", execute_bar, RED_AND),
    ROW("bar.{cta}.red.or.pred", "pRNP", execute_bar, RED_OR),
    ROW("barrier.{cta}.red.popc.{aligned}.u32", "rRNP", execute_bar, RED_POPC),
    ROW("barrier.{cta}.red.and.{aligned}.pred", "pRNP", execute_bar, RED_AND),
    ROW("barrier.{cta}.red.or.{aligned}.pred", "pRNP", execute_bar, RED_OR),
    ROW("bar.warp.sync", "R", execute_warp_sync, 0),
    ROW("nanosleep.u32", "R", execute_nanosleep, 0),
    ROW("membar.{proxy}.{alias|async}.{cta|gl|sys|gpu|cluster}", "", execute_fence, 0),
    ROW("fence.{sc|acq_rel|acquire|release}.{cta|cluster|gpu|sys}", "", execute_fence, 0),
    ROW("griddepcontrol.wait|launch_dependents", "", nothing, 0),
    ROW("pmevent.{mask}", "i", nothing, 0),
    ROW("prefetch.{global|local}.L1|L2", "m", nothing, 0),
    ROW("prefetchu.L1", "m", nothing, 0),
    ROW("setmaxnreg.inc|dec.sync.aligned.u32", "i", nothing, 0),
};
const ptx_table ptx_control_table = {rows, sizeof rows / sizeof *rows};
