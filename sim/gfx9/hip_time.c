/* The clock of the time model. It stands still but for launches, copies and fills. */
#include "hip_time.h"
#include "time.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static gfx9_times last; /* the lock guards `last` and `now` */
static double now;
static int mode = -1; /* the value that bsmm_sim_time has set, or -1 */

enum gfx9_timed hip_time_mode(void) {
    const char *text = getenv("BSMM_SIM_TIME");
    const int set = __atomic_load_n(&mode, __ATOMIC_RELAXED), wanted = set >= 0 ? set
                                                                       : text   ? atoi(text)
                                                                                : 0;
    return wanted == 2 ? TIMING_SAMPLE : wanted ? TIMING_ALL : TIMING_OFF;
}

void bsmm_sim_time(int wanted) {
    __atomic_store_n(&mode, wanted, __ATOMIC_RELAXED);
}

static void advance(double seconds, const gfx9_times *times) {
    pthread_mutex_lock(&lock);
    now += seconds;
    if (times) last = *times;
    pthread_mutex_unlock(&lock);
}

double hip_clock(void) {
    pthread_mutex_lock(&lock);
    const double seconds = now;
    pthread_mutex_unlock(&lock);
    return seconds;
}

void hip_keep_times(const gfx9_times *times) {
    advance(times->seconds, times);
}

void hip_add_traffic(double bytes) {
    const gfx9_device *d = gfx9_device_of((enum gfx9_arch)hip_arch(hip_device()));
    advance(bytes / d->hbm_rate + d->launch_us * 1e-6, NULL);
}

size_t bsmm_sim_times(void *to, size_t bytes) {
    pthread_mutex_lock(&lock);
    memcpy(to, &last, bytes < sizeof last ? bytes : sizeof last);
    pthread_mutex_unlock(&lock);
    return sizeof last;
}
