/* Computes the number of threads that a call may use. */
#include "base/base.h"

#include <omp.h>

int bsmm_thread_count(uint32_t asked) {
    static const uint32_t limit = 1024;
    if (asked == 0) return omp_get_num_procs();
    return (int)(asked < limit ? asked : limit);
}
