/* Implements the clock of the time model. Only launches, copies and fills advance this clock. */
#include "cuda_time.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static double now; /* The lock guards the clock and the list of launches. */
enum { KEPT = 64 };
static struct {
    char name[128];
    ptx_times times;
} kept[KEPT]; /* Holds the last launches in a ring buffer. */
static uint64_t kept_count;
/* The value that bsmm_sim_time has set, or -1 if the program has not called it. */
static int mode = -1;

enum ptx_timed sim_time_mode(void) {
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

static void advance(double seconds) {
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

void sim_keep_times(const char *name, const ptx_times *times) {
    pthread_mutex_lock(&lock);
    now += times->seconds;
    const size_t at = kept_count++ % KEPT;
    snprintf(kept[at].name, sizeof kept[at].name, "%s", name);
    kept[at].times = *times;
    pthread_mutex_unlock(&lock);
}

void sim_add_traffic(double bytes) {
    const sim_device *d = sim_device_of(sim_current_device());
    if (d) advance(ptx_traffic_seconds(d->arch, bytes));
}

int bsmm_sim_times(unsigned back, char *name, size_t name_bytes, double *times, size_t count) {
    pthread_mutex_lock(&lock);
    const bool there = back < KEPT && back < kept_count;
    const size_t at = there ? (kept_count - 1 - back) % KEPT : 0;
    const size_t all = sizeof(ptx_times) / sizeof *times;
    if (there) memcpy(times, &kept[at].times, (count < all ? count : all) * sizeof *times);
    if (there && name_bytes) snprintf(name, name_bytes, "%s", kept[at].name);
    pthread_mutex_unlock(&lock);
    return there;
}
