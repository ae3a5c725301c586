/* Defines the workgroup size that conversion kernels share with their host code. A kernel cannot
 * read the size of its grid, so the host passes the number of workgroups along y as the kernel's
 * argument `step`. */
#ifndef BSMM_AMDGPU_CDNA_RECODE_H
#define BSMM_AMDGPU_CDNA_RECODE_H

enum {
    BSMM_RECODE_GROUP = 256, /* BSMM_RECODE_GROUP is the number of threads of a workgroup. */
    /* BSMM_RECODE_MOST_SLOW is the largest number of workgroups along y of a grid. */
    BSMM_RECODE_MOST_SLOW = 1024
};

#if defined(__AMDGCN__)
#    include "amdgpu/cdna/kernel.h"

/* Returns the number of this thread along the grid's x axis. */
BSMM_DEVICE uint64_t bsmm_recode_thread(void) {
    return (uint64_t)bsmm_group_x() * BSMM_RECODE_GROUP + bsmm_thread();
}
#endif

#endif
