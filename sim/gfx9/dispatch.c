/* Launches a grid of workgroups. It prepares the arguments and the initial registers of each
 * workgroup, and runs the waves of a workgroup in turn. Several host threads share the workgroups.
 * If the kernel has atomics, one thread runs all workgroups in order, because the results may
 * depend on the order. */
#include "check.h"
#include "time.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { QUANTUM = 20000, MAX_WAVES = 16 };
#define DEFAULT_LIMIT 2000000000ull

typedef struct {
    gfx9_object *object;
    const gfx9_kernel *kernel;
    gfx9_launch *launch;
    uint8_t *kernarg, *packet;
    uint32_t lds_size, next, failed;
    uint64_t steps;
    char *error;
    pthread_mutex_t lock;
    gfx9_timing *timing; /* `timing` is NULL if the time model does not time the launch. */
} job;

typedef struct {
    const char *kind;
    uint64_t value;
} hidden;

static void fill_hidden(const gfx9_kernel *k, const gfx9_launch *launch, uint8_t *to) {
    const hidden values[] = {
        {"hidden_block_count_x", launch->grid[0]},
        {"hidden_block_count_y", launch->grid[1]},
        {"hidden_block_count_z", launch->grid[2]},
        {"hidden_group_size_x", launch->block[0]},
        {"hidden_group_size_y", launch->block[1]},
        {"hidden_group_size_z", launch->block[2]},
        {"hidden_grid_dims", launch->grid[2] * launch->block[2] > 1   ? 3u
                             : launch->grid[1] * launch->block[1] > 1 ? 2u
                                                                      : 1u},
        {"hidden_private_base", gfx9_private_base >> 32},
        {"hidden_shared_base", gfx9_shared_base >> 32},
        {"hidden_dynamic_lds_size", launch->dynamic_lds},
    };
    for (uint32_t a = 0; a < k->arg_count; a++)
        for (size_t v = 0; v < sizeof values / sizeof *values; v++)
            if (strcmp(k->args[a].kind, values[v].kind) == 0 && k->args[a].size <= 8 &&
                k->args[a].offset + k->args[a].size <= k->kernarg_size)
                memcpy(to + k->args[a].offset, &values[v].value, k->args[a].size);
}

/* Fills the AQL dispatch packet. Kernels read the workgroup size and the grid size from this
 * packet through dispatch_ptr. */
static void fill_packet(const job *j, uint8_t *p) {
    const gfx9_launch *l = j->launch;
    for (size_t d = 0; d < 3; d++) {
        const uint16_t block = (uint16_t)l->block[d];
        const uint32_t grid = l->grid[d] * l->block[d];
        memcpy(p + 4 + 2 * d, &block, 2), memcpy(p + 12 + 4 * d, &grid, 4);
    }
    const uint64_t arguments = (uint64_t)(uintptr_t)j->kernarg;
    memcpy(p + 24, &j->kernel->scratch, 4), memcpy(p + 28, &j->lds_size, 4),
        memcpy(p + 40, &arguments, 8);
}

static void fill_sgprs(const job *j, gfx9_wave *w, const uint32_t id[3]) {
    enum {
        BUFFER = 1,
        DISPATCH = 2,
        QUEUE = 4,
        KERNARG = 8,
        DISPATCH_ID = 16,
        FLAT = 32,
        SIZE = 64
    };
    const uint32_t flags = j->kernel->properties, rsrc2 = j->kernel->rsrc2, users = rsrc2 >> 1 & 31;
    uint32_t n = 0;
    if (flags & BUFFER) n += 4;
    if (flags & DISPATCH) gfx9_set64(w, n, (uint64_t)(uintptr_t)j->packet), n += 2;
    if (flags & QUEUE) n += 2;
    if (flags & KERNARG) gfx9_set64(w, n, (uint64_t)(uintptr_t)j->kernarg), n += 2;
    if (flags & DISPATCH_ID) n += 2;
    if (flags & FLAT) n += 2;
    if (flags & SIZE) w->s[n++] = j->kernel->scratch;
    const uint32_t words = j->kernel->preload & 127, from = j->kernel->preload >> 7;
    for (uint32_t k = 0; k < words && n < users && 4 * (from + k) + 4 <= j->kernel->kernarg_size;
         k++)
        memcpy(&w->s[n++], j->kernarg + (size_t)4 * (from + k), 4);
    n = users;
    for (int d = 0; d < 3; d++)
        if (rsrc2 >> (7 + d) & 1) w->s[n++] = id[d];
    if (rsrc2 >> 10 & 1) w->s[n++] = 0;
}

static void fill_vgprs(const gfx9_launch *l, gfx9_wave *w, uint32_t wave) {
    const uint32_t threads = l->block[0] * l->block[1] * l->block[2];
    uint64_t exec = 0;
    for (uint32_t lane = 0; lane < LANES; lane++) {
        const uint32_t t = wave * LANES + lane, x = t % l->block[0],
                       y = t / l->block[0] % l->block[1], z = t / l->block[0] / l->block[1];
        w->v[0][lane] = x | y << 10 | z << 20;
        exec |= (uint64_t)(t < threads) << lane;
    }
    w->written[0] = exec;
    gfx9_set64(w, EXEC, exec);
}

static void start_wave(const job *j, gfx9_group *g, uint32_t n, const uint32_t id[3]) {
    gfx9_wave *w = &g->waves[n];
    gfx9_pending *pending = w->pending;
    uint8_t *scratch = w->scratch;
    /* Registers and scratch memory begin with a pattern, because hardware does not clear them. A
     * kernel that relies on zeros must fail in the simulator too. */
    memset(w->v, 0xcd, sizeof w->v);
    memset((char *)w + sizeof w->v, 0, sizeof *w - sizeof w->v);
    w->pending = pending, w->pending_room = pending ? MAX_PENDING : 0, w->scratch = scratch,
    w->scratch_size = j->kernel->scratch, w->vgprs = j->kernel->vgprs, w->agprs = j->kernel->agprs;
    for (uint32_t k = 0; k < MAX_PENDING; k++)
        w->pending_order[k] = (uint8_t)k;
    if (scratch) memset(scratch, 0xcd, (size_t)LANES * w->scratch_size);
    w->group = g, w->id = n, w->dpp_lanes = ~0ull;
    w->random = j->launch->seed + 977ull * n + id[0] + 131ull * id[1];
    w->mode = (j->kernel->rsrc1 >> 12 & 255) | (j->kernel->rsrc1 >> 21 & 1) << 8 |
              (j->kernel->rsrc1 >> 23 & 1) << 9 | (j->kernel->rsrc1 >> 26 & 1) << 23;
    w->pc = (uint32_t)j->object->index[j->kernel->entry / 4];
    fill_sgprs(j, w, id);
    fill_vgprs(j->launch, w, n);
    gfx9_lane_masks(w);
}

static bool release_barrier(gfx9_group *g) {
    gfx9_wave *waiting = NULL, *ended = NULL;
    for (uint32_t n = 0; n < g->wave_count; n++) {
        gfx9_wave *w = &g->waves[n];
        if (w->stop == STOP_END)
            ended = w;
        else if (w->stop != STOP_BARRIER)
            return false;
        else if (!waiting)
            waiting = w;
    }
    /* A wave has ended while other waves wait at a barrier. Hardware would release the waiting
     * waves, but the simulator reports an error, because such a barrier is nearly always a
     * mistake. */
    if (waiting && ended && g->checks) {
        waiting->stop = STOP_NO;
        gfx9_stop(waiting, &g->object->code[waiting->pc - 1],
                  "divergent barrier: wave %u has ended before it", ended->id);
        return false;
    }
    for (uint32_t n = 0; n < g->wave_count; n++)
        if (g->waves[n].stop == STOP_BARRIER) g->waves[n].stop = STOP_NO;
    g->epoch++;
    return waiting != NULL;
}

static bool run_group(job *j, gfx9_group *g) {
    const uint64_t limit = j->launch->limit ? j->launch->limit : DEFAULT_LIMIT;
    for (;;) {
        bool ran = false;
        for (uint32_t k = 0; k < g->wave_count; k++) {
            /* If checks are on, the seed changes the order in which the waves run, because another
             * order may reveal another race. */
            gfx9_wave *w =
                &g->waves[(k + (g->checks ? j->launch->seed + g->epoch : 0)) % g->wave_count];
            if (w->stop == STOP_END || w->stop == STOP_BARRIER) continue;
            gfx9_run(w, QUANTUM);
            ran = true;
            if (w->steps > limit && !w->stop)
                gfx9_stop(w, &j->object->code[w->pc], "endless loop: %llu instructions",
                          (unsigned long long)w->steps);
            if (w->stop == STOP_ERROR) return false;
        }
        if (!ran && !release_barrier(g)) return g->error[0] == 0;
    }
}

static bool make_group(job *j, gfx9_group *g, char *error) {
    const gfx9_launch *l = j->launch;
    const uint32_t threads = l->block[0] * l->block[1] * l->block[2];
    *g = (gfx9_group){.object = j->object,
                      .kernel = j->kernel,
                      .lds_size = j->lds_size,
                      .checks = l->checks,
                      .seed = l->seed,
                      .error = error};
    g->wave_count = (threads + LANES - 1) / LANES;
    g->lds = malloc(j->lds_size + 16);
    g->waves = calloc(g->wave_count, sizeof *g->waves);
    g->shadow = l->checks & (CHECK_RACES | CHECK_UNWRITTEN)
                    ? calloc(j->lds_size + 1, sizeof *g->shadow)
                    : NULL;
    bool good = g->lds && g->waves && (g->shadow || !(l->checks & (CHECK_RACES | CHECK_UNWRITTEN)));
    for (uint32_t n = 0; good && n < g->wave_count; n++) {
        gfx9_wave *w = &g->waves[n];
        if (j->kernel->scratch)
            good &= (w->scratch = malloc((size_t)LANES * j->kernel->scratch)) != NULL;
        if (l->checks & CHECK_WAITS)
            good &= (w->pending = malloc(MAX_PENDING * sizeof *w->pending)) != NULL;
    }
    return good;
}

static void free_group(gfx9_group *g) {
    for (uint32_t n = 0; g->waves && n < g->wave_count; n++)
        free(g->waves[n].scratch), free(g->waves[n].pending);
    free(g->waves), free(g->lds), free(g->shadow);
}

static uint64_t run_one(job *j, gfx9_group *g, uint32_t number) {
    const gfx9_launch *l = j->launch;
    const uint32_t id[3] = {number % l->grid[0], number / l->grid[0] % l->grid[1],
                            number / l->grid[0] / l->grid[1]};
    uint64_t steps = 0;
    memset(g->lds, 0xcd, g->lds_size);
    if (g->shadow) memset(g->shadow, 0, g->lds_size * sizeof *g->shadow);
    g->epoch = 1;
    for (uint32_t n = 0; n < g->wave_count; n++)
        start_wave(j, g, n, id);
    if (j->timing) gfx9_timing_attach(j->timing, g, number);
    const bool good = run_group(j, g);
    for (uint32_t n = 0; n < g->wave_count; n++)
        steps += g->waves[n].steps;
    if (!good) __atomic_store_n(&j->failed, 1, __ATOMIC_SEQ_CST);
    return steps;
}

static void *work(void *user) {
    job *j = user;
    gfx9_group g;
    char error[512] = "";
    uint64_t steps = 0;
    const uint32_t count = j->launch->grid[0] * j->launch->grid[1] * j->launch->grid[2];
    if (make_group(j, &g, error))
        while (!__atomic_load_n(&j->failed, __ATOMIC_SEQ_CST)) {
            const uint32_t n = __atomic_fetch_add(&j->next, 1, __ATOMIC_SEQ_CST);
            if (n >= count) break;
            if (j->timing && j->launch->timed == TIMING_SAMPLE && !gfx9_timing_takes(j->timing, n))
                continue;
            steps += run_one(j, &g, n);
        }
    else
        snprintf(error, sizeof error, "out of memory for a workgroup");
    free_group(&g);
    pthread_mutex_lock(&j->lock);
    if (error[0] && !j->error[0]) memcpy(j->error, error, sizeof error);
    j->steps += steps;
    pthread_mutex_unlock(&j->lock);
    return NULL;
}

static uint32_t thread_count(const job *j) {
    const char *wanted = getenv("BSMM_SIM_THREADS");
    long n = wanted ? atol(wanted) : sysconf(_SC_NPROCESSORS_ONLN);
    const uint32_t groups = j->launch->grid[0] * j->launch->grid[1] * j->launch->grid[2];
    if (n < 1 || j->object->orders) n = 1;
    return n > 64 ? 64 : (uint32_t)n < groups ? (uint32_t)n : groups;
}

static const char *check_launch(const job *j) {
    const gfx9_launch *l = j->launch;
    const uint64_t threads = (uint64_t)l->block[0] * l->block[1] * l->block[2],
                   groups = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
    if (threads == 0 || threads > (uint64_t)MAX_WAVES * LANES)
        return "a workgroup has 1 to 1024 threads";
    if (groups == 0 || groups > 1u << 30) return "the grid is empty or too large";
    for (uint32_t d = 0; d < 3; d++)
        if ((uint64_t)l->grid[d] * l->block[d] > UINT32_MAX)
            return "the grid has 2^32 threads or more along a dimension";
    if (j->lds_size > (j->object->arch == GFX950 ? 160u << 10 : 64u << 10))
        return "more LDS than the device has";
    if (j->object->index[j->kernel->entry / 4] < 0) return "the kernel's entry is no instruction";
    return NULL;
}

static void run_threads(job *j) {
    pthread_t threads[64];
    const uint32_t n = thread_count(j);
    uint32_t started = 0;
    for (uint32_t k = 1; k < n; k++)
        started += pthread_create(&threads[started], NULL, work, j) == 0;
    work(j);
    for (uint32_t k = 0; k < started; k++)
        pthread_join(threads[k], NULL);
}

bool gfx9_dispatch(gfx9_object *object, const gfx9_kernel *kernel, gfx9_launch *launch,
                   char *error) {
    job j = {.object = object,
             .kernel = kernel,
             .launch = launch,
             .lds_size = kernel->lds + launch->dynamic_lds,
             .error = error};
    const char *wrong = check_launch(&j);
    error[0] = 0;
    if (wrong) return snprintf(error, 512, "%s: %s", kernel->name, wrong), false;
    const size_t size = kernel->kernarg_size;
    uint8_t *block = sim_memory_alloc(size + 64 + 64);
    if (!block) return snprintf(error, 512, "out of memory"), false;
    memset(block, 0, size + 128);
    j.packet = block, j.kernarg = block + 64;
    memcpy(j.kernarg, launch->kernarg, launch->kernarg_size < size ? launch->kernarg_size : size);
    fill_hidden(kernel, launch, j.kernarg);
    fill_packet(&j, j.packet);
    if (launch->timed) j.timing = gfx9_timing_begin(object, kernel, launch, j.lds_size);
    pthread_mutex_init(&j.lock, NULL);
    run_threads(&j);
    pthread_mutex_destroy(&j.lock);
    if (j.timing) gfx9_timing_end(j.timing, error[0] == 0, launch);
    sim_memory_free(block);
    launch->steps = j.steps;
    return error[0] == 0;
}
