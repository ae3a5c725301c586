/* Runs the launches of kernels. The clusters of a grid run independently. The warps of all thread
 * blocks of a cluster run in turn. */
#include "access.h"
#include "async.h"
#include "races.h"
#include "time.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { QUANTUM = 4000, MOST_THREADS = 16, SPIN_STEPS = 64 };
#define DEFAULT_LIMIT 2000000000ull

typedef struct {
    ptx_launch *launch;
    char *error; /* `error` receives the message of the first failure. */
    uint32_t next, failed;
    uint64_t steps;
    ptx_timing *timing; /* `timing` is the time model of the launch, or NULL. */
    pthread_mutex_t lock;
} job;

/* NOLINTNEXTLINE(readability-function-size): a statement for each row of special.def */
static uint64_t special_value(uint32_t number, const ptx_warp *w, uint32_t l) {
    const ptx_block *b = w->block;
    const uint32_t t = w->id * LANES + l;
    uint32_t k = 0;
#define SPECIAL(name, bytes, value)                                                                \
    if (number == k++) return (uint64_t)(value);
#include "special.def"
#undef SPECIAL
    return 0;
}

static uint64_t slot_value(const ptx_slot *s, const ptx_warp *w, uint32_t lane) {
    const ptx_block *b = w->block;
    const uint64_t rank = (uint64_t)b->rank << RANK_SHIFT;
    const uint32_t dynamic = b->launch->kernel->shared, align = (uint32_t)s->value;
    switch (s->kind) {
    case SLOT_SHARED:
        return s->value | rank;
    case SLOT_DYNAMIC:
        return (uint64_t)((dynamic + align - 1) / align) * align | rank;
    case SLOT_PARAM:
        return PARAM_BEGIN + s->value;
    case SLOT_SPECIAL:
        return special_value((uint32_t)s->value, w, lane);
    default:
        return s->value;
    }
}

static void fill_slots(ptx_warp *w, const ptx_function *f) {
    for (uint32_t k = 0; k < f->slot_count; k++) {
        const ptx_slot *s = &f->slots[k];
        const bool varies = s->kind == SLOT_SPECIAL;
        uint64_t v = slot_value(s, w, 0);
        for (uint32_t l = 0; l < LANES; l++) {
            if (varies && l) v = slot_value(s, w, l);
            if (s->width == 8)
                ((uint64_t *)(void *)(w->regs + s->at))[l] = v;
            else
                ((uint32_t *)(void *)(w->regs + s->at))[l] = (uint32_t)v;
        }
        w->written[s->at / 128] = ~0u;
    }
}

/* Returns the size in bytes of a warp's registers. They include the registers of all functions of
 * the module, because the kernel may call them. */
static uint32_t file_bytes(const ptx_launch *l) {
    const uint32_t own = l->kernel->base + l->kernel->bytes, others = l->module->function_bytes;
    return own > others ? own : others;
}

static uint32_t pred_count(const ptx_launch *l) {
    const uint32_t own = l->kernel->pred_base + l->kernel->preds,
                   others = l->module->function_preds;
    return own > others ? own : others;
}

static void start_warp(ptx_warp *w, ptx_block *b, uint32_t id) {
    const ptx_launch *l = b->launch;
    const ptx_module *m = l->module;
    const uint32_t threads = l->block[0] * l->block[1] * l->block[2], left = threads - id * LANES;
    const ptx_warp old = *w;
    memset(w, 0, sizeof *w);
    w->memory = old.memory, w->regs = old.regs, w->preds = old.preds, w->written = old.written;
    w->loading = old.loading;
    w->local = old.local, w->local_bytes = m->most_local;
    free(old.copies), free(old.products), free(old.bulks);
    w->block = b, w->id = id;
    w->live = left >= LANES ? ~0u : (1u << left) - 1;
    memset(w->written, 0, file_bytes(l) / 128 * sizeof *w->written);
    memset(w->loading, 0, file_bytes(l) / 128 * sizeof *w->loading);
    memset(w->preds, 0, pred_count(l) * sizeof *w->preds);
    w->preds[1] = ~0u;
    memset(w->local, 0xcd, (size_t)LANES * m->most_local);
    for (uint32_t k = 0; k < LANES; k++)
        w->lane_pc[k] = l->kernel->first;
    for (uint32_t k = 0; k < m->function_count; k++)
        if (!m->functions[k].entry && m->functions[k].defined) fill_slots(w, &m->functions[k]);
    fill_slots(w, l->kernel);
}

static void start_block(ptx_block *b, uint32_t number) {
    const ptx_launch *l = b->launch;
    const uint32_t *grid = l->grid;
    b->id[0] = number % grid[0], b->id[1] = number / grid[0] % grid[1],
    b->id[2] = number / grid[0] / grid[1];
    memset(b->shared, 0xcd, b->shared_bytes);
    if (b->shadow) memset(b->shadow, NEVER_WRITTEN, b->shared_bytes);
    b->unfenced[0] = b->shared_bytes, b->unfenced[1] = 0;
    free(b->tmem), b->tmem = NULL;
    memset(b->barriers, 0, sizeof b->barriers);
    for (uint32_t k = 0; k < BARRIERS; k++)
        b->barriers[k].all = true;
    for (uint32_t n = 0; n < b->warp_count; n++)
        start_warp(&b->warps[n], b, n);
}

/* Allocates the registers of a warp. A module may have far more registers than a kernel uses.
 * calloc is used because it takes memory only for the pages that are used. */
static bool make_warp(ptx_warp *w, const ptx_launch *l) {
    w->memory = calloc(file_bytes(l) + 64u, 1);
    w->regs = w->memory + (64 - (uintptr_t)w->memory % 64);
    w->preds = calloc(pred_count(l) + 1, sizeof *w->preds);
    w->written = calloc(file_bytes(l) / 128 + 1, sizeof *w->written);
    w->loading = calloc(file_bytes(l) / 128 + 1, sizeof *w->loading);
    w->local = malloc((size_t)LANES * l->module->most_local + 1);
    return w->memory && w->preds && w->written && w->loading && w->local;
}

static bool make_block(ptx_block *b, ptx_cluster *c, const ptx_launch *l, uint32_t rank,
                       char *error) {
    const uint32_t threads = l->block[0] * l->block[1] * l->block[2];
    *b = (ptx_block){
        .cluster = c, .launch = l, .rank = rank, .error = error, .shared_bytes = l->shared_bytes};
    b->warp_count = (threads + LANES - 1) / LANES;
    b->warps = calloc(b->warp_count, sizeof *b->warps);
    b->shared = aligned_alloc(1024, (size_t)((l->shared_bytes + 1023u) / 1024) * 1024);
    b->shadow = l->checks ? malloc(l->shared_bytes) : NULL;
    bool good = b->warps && b->shared && (b->shadow || !l->checks);
    for (uint32_t n = 0; good && n < b->warp_count; n++)
        good = make_warp(&b->warps[n], l);
    return good;
}

static void free_block(ptx_block *b) {
    for (uint32_t n = 0; b->warps && n < b->warp_count; n++) {
        ptx_warp *w = &b->warps[n];
        free(w->memory), free(w->preds), free(w->written), free(w->local), free(w->copies);
        free(w->loading), free(w->products), free(w->bulks);
    }
    free(b->warps), free(b->shared), free(b->shadow), free(b->tmem);
}

static const char *what_it_waits_for(const ptx_warp *w, char *text, size_t size) {
    for (uint32_t id = 0; id < BARRIERS; id++)
        if (w->waits[id]) {
            const ptx_barrier *b = &w->block->barriers[id];
            snprintf(text, size,
                     "deadlock: lanes 0x%x wait at barrier %u, where %u threads of %u are",
                     w->waits[id], id, b->arrived,
                     b->expected ? b->expected : w->block->warp_count * LANES);
            return text;
        }
    if (w->cluster_waits)
        snprintf(text, size, "deadlock: lanes 0x%x wait at barrier.cluster, where %u threads are",
                 w->cluster_waits, w->block->cluster->arrived);
    else if (w->idle)
        snprintf(text, size, "deadlock: lanes 0x%x wait for an mbarrier's phase",
                 w->live & ~w->blocked);
    else
        snprintf(text, size, "deadlock: lanes 0x%x wait here for others of their warp", w->parked);
    return text;
}

static void report_deadlock(ptx_block *b) {
    char text[200];
    for (uint32_t n = 0; n < b->warp_count; n++) {
        ptx_warp *w = &b->warps[n];
        if (!w->live) continue;
        const bool barrier = w->blocked != 0;
        const uint32_t pc = w->lane_pc[ptx_first(barrier ? w->blocked : w->live)];
        w->stop = STOP_NO;
        ptx_stop(w, &b->launch->module->code[barrier && pc ? pc - 1 : pc], "%s",
                 what_it_waits_for(w, text, sizeof text));
        return;
    }
}

/* Runs each warp of a thread block for up to QUANTUM instructions. Returns true if any warp has
 * executed an instruction. */
static bool run_block(ptx_block *b, uint64_t limit) {
    bool ran = false;
    for (uint32_t n = 0; n < b->warp_count; n++) {
        ptx_warp *w = &b->warps[n];
        if (!w->live || (w->live & ~w->blocked & ~w->parked) == 0) continue;
        if (w->mode) ptx_set_mode(w, w->mode);
        const uint64_t before = w->steps;
        w->idle = false;
        ptx_run(w, QUANTUM);
        if (w->mode) ptx_set_mode(w, 0);
        ran |= !w->idle || w->steps - before > SPIN_STEPS;
        if (w->stop == STOP_ERROR) return false;
        if (w->steps > limit) {
            ptx_stop(w, &b->launch->module->code[w->pc], "endless loop: %llu instructions",
                     (unsigned long long)w->steps);
            return false;
        }
        if (!w->live) ptx_barriers_check(b), ptx_cluster_check(b->cluster);
    }
    return ran;
}

static bool alive(const ptx_block *b) {
    for (uint32_t n = 0; n < b->warp_count; n++)
        if (b->warps[n].live) return true;
    return false;
}

/* Completes the asynchronous copies and tcgen05 operations of a cluster for which no thread has
 * waited, at the end of the cluster. */
static bool finish_cluster(ptx_cluster *c) {
    for (uint32_t k = 0; k < c->size; k++)
        for (uint32_t n = 0; n < c->blocks[k].warp_count; n++)
            ptx_bulks_wait(&c->blocks[k].warps[n], ~0u, 0, true);
    return ptx_async_finish(c);
}

/* Lets the thread blocks of a cluster take turns until all have ended. In a turn, a warp may run
 * only the lanes that wait for one mbarrier, and lanes that wait for other mbarriers get later
 * turns. The cluster is therefore deadlocked only if nothing has happened in more than LANES
 * rounds. */
static bool run_cluster(ptx_cluster *c, uint64_t limit, const char *error) {
    for (uint32_t idle = 0;;) {
        bool ran = false, any = false;
        for (uint32_t k = 0; k < c->size; k++) {
            ran |= run_block(&c->blocks[k], limit);
            any |= alive(&c->blocks[k]);
            if (error[0]) return false;
        }
        if (!any) return finish_cluster(c) && !error[0];
        idle = ran || ptx_async_run(c) ? 0 : idle + 1;
        if (idle <= LANES) continue;
        for (uint32_t k = 0; k < c->size && !error[0]; k++)
            report_deadlock(&c->blocks[k]);
        return false;
    }
}

/* Returns the number of a thread block in the grid. A cluster is a box of neighboring blocks, and
 * `rank` is the block's number in its cluster. */
static uint32_t block_number(const ptx_launch *l, uint32_t cluster, uint32_t rank) {
    const uint32_t *n = l->cluster, across = l->grid[0] / n[0], down = l->grid[1] / n[1];
    const uint32_t x = cluster % across * n[0] + rank % n[0],
                   y = cluster / across % down * n[1] + rank / n[0] % n[1],
                   z = cluster / across / down * n[2] + rank / n[0] / n[1];
    return x + l->grid[0] * (y + l->grid[1] * z);
}

static void run_one(job *j, ptx_cluster *c, uint32_t number, const char *error) {
    const uint64_t limit = j->launch->limit ? j->launch->limit : DEFAULT_LIMIT;
    uint64_t steps = 0;
    c->arrived = c->phase = c->later_count = 0;
    c->random = j->launch->seed + 977ull * number;
    for (uint32_t k = 0; k < c->size; k++)
        start_block(&c->blocks[k], block_number(j->launch, number, k));
    if (!ptx_races_begin(c)) ptx_races_free(c);
    c->timeline = NULL;
    if (j->timing) ptx_timing_attach(j->timing, c, number);
    if (!run_cluster(c, limit, error)) __atomic_store_n(&j->failed, 1, __ATOMIC_SEQ_CST);
    for (uint32_t k = 0; k < c->size; k++)
        for (uint32_t n = 0; n < c->blocks[k].warp_count; n++)
            steps += c->blocks[k].warps[n].steps;
    __atomic_add_fetch(&j->steps, steps, __ATOMIC_SEQ_CST);
}

static uint32_t cluster_size(const ptx_launch *l) {
    return l->cluster[0] * l->cluster[1] * l->cluster[2];
}

static uint32_t cluster_count(const ptx_launch *l) {
    return l->grid[0] * l->grid[1] * l->grid[2] / cluster_size(l);
}

static void *work(void *user) {
    job *j = user;
    char error[ERROR_BYTES] = "";
    ptx_cluster c = {.size = cluster_size(j->launch), .next = &j->next};
    c.blocks = calloc(c.size, sizeof *c.blocks);
    bool good = c.blocks != NULL;
    for (uint32_t k = 0; good && k < c.size; k++)
        good = make_block(&c.blocks[k], &c, j->launch, k, error);
    while (good && !__atomic_load_n(&j->failed, __ATOMIC_SEQ_CST)) {
        const uint32_t n = __atomic_fetch_add(&j->next, 1, __ATOMIC_SEQ_CST);
        if (n >= cluster_count(j->launch)) break;
        if (j->timing && j->launch->timed == TIMING_SAMPLE && !ptx_timing_takes(j->timing, n))
            continue;
        run_one(j, &c, n, error);
    }
    if (!good) snprintf(error, sizeof error, "out of memory for a block");
    for (uint32_t k = 0; c.blocks && k < c.size; k++)
        free_block(&c.blocks[k]);
    ptx_races_free(&c);
    free(c.blocks), free(c.later);
    pthread_mutex_lock(&j->lock);
    if (error[0] && !j->error[0]) memcpy(j->error, error, ERROR_BYTES);
    pthread_mutex_unlock(&j->lock);
    return NULL;
}

static const char *check(const ptx_launch *l) {
    const uint64_t threads = (uint64_t)l->block[0] * l->block[1] * l->block[2];
    if (threads == 0 || threads > 1024) return "a block has 1 to 1024 threads";
    for (uint32_t d = 0; d < 3; d++) {
        if (l->grid[d] == 0 || l->cluster[d] == 0) return "the grid or a cluster is empty";
        if (l->grid[d] % l->cluster[d]) return "the grid is no multiple of the cluster";
        if (l->kernel->reqntid[0] && l->block[d] != l->kernel->reqntid[d])
            return "the block is not the one that .reqntid says";
    }
    if (l->grid[1] > 65535 || l->grid[2] > 65535) return "the grid's y and z end at 65535";
    if (cluster_size(l) > 16) return "a cluster has more than 16 blocks";
    if (l->used_shared > l->most_shared + SHARED_BEGIN)
        return "the block wants more shared memory than the device has";
    return NULL;
}

static uint32_t thread_count(const ptx_launch *l) {
    const char *wanted = getenv("BSMM_SIM_THREADS");
    long n = wanted ? atol(wanted) : sysconf(_SC_NPROCESSORS_ONLN);
    if (n < 1 || l->module->orders) n = 1;
    if (n > MOST_THREADS) n = MOST_THREADS;
    return (uint32_t)n < cluster_count(l) ? (uint32_t)n : cluster_count(l);
}

static void run_threads(job *j) {
    pthread_t threads[MOST_THREADS];
    const uint32_t n = thread_count(j->launch);
    uint32_t started = 0;
    for (uint32_t k = 1; k < n; k++)
        started += pthread_create(&threads[started], NULL, work, j) == 0;
    work(j);
    for (uint32_t k = 0; k < started; k++)
        pthread_join(threads[k], NULL);
}

static uint32_t round_up(uint32_t shared) {
    return (shared + 127) / 128 * 128;
}

bool ptx_run_launch(ptx_launch *l, char *error) {
    job j = {.launch = l, .error = error};
    error[0] = 0;
    /* Dynamic shared memory follows the kernel's own shared variables and must be aligned, so their
     * size is rounded up to a multiple of 128 bytes. */
    l->shared_bytes = round_up(l->kernel->shared) + l->dynamic;
    l->used_shared = round_up(SHARED_BEGIN + ptx_static_shared(l->module, l->kernel)) + l->dynamic;
    const char *wrong = check(l);
    if (wrong) {
        snprintf(error, ERROR_BYTES, "%s: %s", l->kernel->name, wrong);
        return false;
    }
    if (l->timed) j.timing = ptx_timing_begin(l);
    pthread_mutex_init(&j.lock, NULL);
    run_threads(&j);
    pthread_mutex_destroy(&j.lock);
    l->steps = j.steps;
    if (j.timing) ptx_timing_end(j.timing, l, error);
    return error[0] == 0;
}
