/* Implements the clock of the time model. Only launches, copies and fills advance this clock. */
#include "hip_time.h"
#include "time.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static double now; /* The lock guards the clock and the list of launches. */
enum { KEPT = 64 };
static struct {
    char name[128];
    gfx9_times times;
    gfx9_hot hot[HOT_LINES];
} kept[KEPT]; /* Holds the last launches in a ring buffer. */
static uint64_t kept_count;
/* The value that bsmm_sim_time has set, or -1 if the program has not called it. */
static int mode = -1;

enum gfx9_timed hip_time_mode(void) {
    const char *text = getenv("BSMM_SIM_TIME");
    const int set = __atomic_load_n(&mode, __ATOMIC_RELAXED), wanted = set >= 0 ? set
                                                                       : text   ? atoi(text)
                                                                                : 0;
    return wanted == 2 ? TIMING_SAMPLE : wanted ? TIMING_ALL : TIMING_OFF;
}

void bsmm_sim_time(int wanted) {
    pthread_mutex_lock(&lock);
    if (wanted) kept_count = 0;
    pthread_mutex_unlock(&lock);
    __atomic_store_n(&mode, wanted, __ATOMIC_RELAXED);
}

static void advance(double seconds) {
    pthread_mutex_lock(&lock);
    now += seconds;
    pthread_mutex_unlock(&lock);
}

double hip_clock(void) {
    pthread_mutex_lock(&lock);
    const double seconds = now;
    pthread_mutex_unlock(&lock);
    return seconds;
}

void hip_keep_times(const char *name, const gfx9_launch *launch) {
    pthread_mutex_lock(&lock);
    now += launch->times.seconds;
    const size_t at = kept_count++ % KEPT;
    snprintf(kept[at].name, sizeof kept[at].name, "%s", name);
    kept[at].times = launch->times;
    memcpy(kept[at].hot, launch->hot, sizeof kept[at].hot);
    pthread_mutex_unlock(&lock);
}

void hip_add_traffic(double bytes) {
    const gfx9_device *d = gfx9_device_of((enum gfx9_arch)hip_arch(hip_device()));
    advance(bytes / d->hbm_rate + d->launch_us * 1e-6);
}

/* Finds the launch that happened `back` launches before the last one. The caller holds the lock. */
static bool find_kept(unsigned back, size_t *at) {
    *at = (kept_count - 1 - back) % KEPT;
    return back < KEPT && back < kept_count;
}

int bsmm_sim_times(unsigned back, char *name, size_t name_bytes, double *times, size_t count) {
    pthread_mutex_lock(&lock);
    size_t at = 0;
    const bool there = find_kept(back, &at);
    const size_t all = sizeof(gfx9_times) / sizeof *times;
    if (there) memcpy(times, &kept[at].times, (count < all ? count : all) * sizeof *times);
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
        const gfx9_hot *h = &kept[at].hot[number];
        memcpy(cycles, h->stalls, (count < STALLS ? count : STALLS) * sizeof *cycles);
        if (place_bytes) snprintf(place, place_bytes, "%s", h->place);
    }
    pthread_mutex_unlock(&lock);
    return there;
}
