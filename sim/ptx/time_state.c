/* Allocates and frees the state of the time model for one launch. */
#include "time_state.h"
#include <stdlib.h>

static bool make_warps(ptx_replay_state *p, uint32_t registers) {
    const ptx_timing *t = p->t;
    p->warps = calloc(p->warp_count, sizeof *p->warps);
    for (uint32_t n = 0; p->warps && n < p->warp_count; n++) {
        ptx_replayed *w = &p->warps[n];
        w->cluster = n / (t->size * t->warps), w->block = n / t->warps % t->size;
        w->partition = n % t->warps % PARTITIONS;
        w->trace = &t->timelines[w->cluster].traces[n % (t->size * t->warps)];
        w->registers = calloc(registers, sizeof *w->registers);
        w->causes = calloc(registers, 1);
        if (!w->registers || !w->causes) return false;
    }
    return p->warps && sim_turns_make(&p->turns, p->warp_count);
}

static bool make_phases(ptx_replay_state *p) {
    p->phases = calloc(p->t->taken, sizeof *p->phases);
    for (uint32_t c = 0; p->phases && c < p->t->taken; c++) {
        const ptx_timeline *t = &p->t->timelines[c];
        ptx_phase *made = p->phases[c].at = calloc(t->phases.count + 1, sizeof *made);
        if (!made) return false;
        for (uint32_t k = 0; k < t->phases.count; k++)
            made[k].missing = t->phases.at[k], made[k].waiting = NOBODY;
    }
    return p->phases != NULL;
}

static bool make_units(ptx_replay_state *p) {
    const ptx_timing *t = p->t;
    const ptx_device *d = t->device;
    const uint64_t blocks = (uint64_t)t->all * t->size, round = (uint64_t)d->sms * t->resident;
    ptx_units *u = &p->units;
    *u = (ptx_units){.device = d, .times = p->r};
    u->share = (double)t->taken * t->size / (double)(blocks < round ? blocks : round);
    u->cache = sim_cache_new((uint32_t)(d->l2_bytes * u->share) / (LINE * SECTOR));
    u->sms = calloc(t->sms, sizeof *u->sms);
    bool good = u->sms && u->cache;
    for (uint32_t k = 0; good && k < t->sms; k++)
        good = (u->sms[k].l1 = sim_cache_new(d->l1_bytes / (LINE * SECTOR))) != NULL;
    return good;
}

static ptx_class *find_classes(const ptx_timing *t) {
    const ptx_module *m = t->launch->module;
    ptx_class *made = calloc(m->code_count, sizeof *made);
    for (uint32_t k = 0; made && k < m->code_count; k++)
        if (m->code[k].opcode && m->code[k].opcode->row)
            made[k] = ptx_class_of(&m->code[k], t->device);
    return made;
}

void ptx_state_free(ptx_replay_state *p) {
    for (uint32_t n = 0; p->warps && n < p->warp_count; n++)
        free(p->warps[n].registers), free(p->warps[n].causes);
    for (uint32_t c = 0; p->phases && c < p->t->taken; c++)
        free(p->phases[c].at);
    for (uint32_t k = 0; p->units.sms && k < p->t->sms; k++) {
        ptx_sm *sm = &p->units.sms[k];
        free(sm->shared.taken), free(sm->in.taken), free(sm->out.taken);
        sim_cache_free(sm->l1);
    }
    sim_cache_free(p->units.cache);
    free(p->units.l2.taken), free(p->units.hbm.taken), free(p->units.sms);
    free(p->warps), free(p->phases), free((void *)(uintptr_t)p->classes);
    free(p->stalls);
    sim_turns_free(&p->turns);
}

ptx_sm *ptx_cluster_sms(const ptx_replay_state *p, const ptx_replayed *w) {
    return &p->units.sms[w->cluster * p->t->size % p->t->sms];
}

bool ptx_state_make(ptx_replay_state *p) {
    const ptx_timing *t = p->t;
    p->warp_count = t->taken * t->size * t->warps;
    p->predicates = t->launch->module->most_preds + 2;
    p->classes = find_classes(t);
    p->stalls = calloc(t->launch->module->code_count, sizeof *p->stalls);
    return p->classes && p->stalls && make_units(p) && make_phases(p) &&
           make_warps(p, p->predicates + t->launch->module->most_bytes / 128 + 2);
}
