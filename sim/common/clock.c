/* Implements the clock of the time model and the list of the last launches. */
#include "clock.h"
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* `now` is the simulated time. The lock above guards it and the list of launches. */
static double now;
enum { KEPT = 64, FIELDS = 32 };
static struct {
    char name[128];
    double times[FIELDS];
    size_t count;
    sim_hot hot[HOT_LINES];
} kept[KEPT]; /* `kept` is a ring buffer with the last launches. */
static uint64_t kept_count;
/* `mode` is the last argument of bsmm_sim_time, or -1 if that function was not called. */
static int mode = -1;

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

enum sim_timed sim_time_mode(void) {
    const char *text = getenv("BSMM_SIM_TIME");
    const int set = __atomic_load_n(&mode, __ATOMIC_RELAXED);
    const int wanted = set >= 0 ? set : text ? atoi(text) : 0;
    return wanted == 2 ? TIMING_SAMPLE : wanted ? TIMING_ALL : TIMING_OFF;
}

void bsmm_sim_time(int wanted) {
    pthread_mutex_lock(&lock);
    if (wanted) kept_count = 0;
    pthread_mutex_unlock(&lock);
    __atomic_store_n(&mode, wanted, __ATOMIC_RELAXED);
}

void sim_advance_clock(double seconds) {
    pthread_mutex_lock(&lock);
    now += seconds;
    pthread_mutex_unlock(&lock);
}

double sim_clock(void) {
    pthread_mutex_lock(&lock);
    const double seconds = now;
    pthread_mutex_unlock(&lock);
    return seconds;
}

double sim_event_time(void) {
    struct timespec at;
    if (sim_time_mode()) return sim_clock();
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

void sim_keep_launch(const sim_timed_launch *launch) {
    pthread_mutex_lock(&lock);
    now += launch->times[0];
    const size_t at = kept_count++ % KEPT;
    snprintf(kept[at].name, sizeof kept[at].name, "%s", launch->name);
    kept[at].count = least(launch->count, FIELDS);
    memcpy(kept[at].times, launch->times, kept[at].count * sizeof *launch->times);
    memcpy(kept[at].hot, launch->hot, sizeof kept[at].hot);
    pthread_mutex_unlock(&lock);
}

/* Finds the launch that `back` later launches have followed. The caller holds the lock. */
static bool find_kept(unsigned back, size_t *at) {
    *at = (kept_count - 1 - back) % KEPT;
    return back < KEPT && back < kept_count;
}

int bsmm_sim_times(unsigned back, char *name, size_t name_bytes, double *times, size_t count) {
    pthread_mutex_lock(&lock);
    size_t at = 0;
    const bool there = find_kept(back, &at);
    if (there) memcpy(times, kept[at].times, least(count, kept[at].count) * sizeof *times);
    if (there && name_bytes) snprintf(name, name_bytes, "%s", kept[at].name);
    pthread_mutex_unlock(&lock);
    return there;
}

int bsmm_sim_stalls(unsigned back, unsigned number, char *place, size_t place_bytes, double *cycles,
                    size_t count) {
    pthread_mutex_lock(&lock);
    size_t at = 0;
    const bool there = find_kept(back, &at) && number < HOT_LINES && kept[at].hot[number].place[0];
    if (there) {
        const sim_hot *h = &kept[at].hot[number];
        memcpy(cycles, h->stalls, least(count, STALLS) * sizeof *cycles);
        if (place_bytes) snprintf(place, place_bytes, "%s", h->place);
    }
    pthread_mutex_unlock(&lock);
    return there;
}
