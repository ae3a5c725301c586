/* Declares the host code that the seven example kernels (the steps of the ladder) share. It runs a
 * kernel for four pairs of formats, and compares the results with those of the library's reference
 * kernel. */
#ifndef HOST_H
#define HOST_H

#include <bsmm.h>
#include <stdbool.h>

/* Describes the kernel of a step. */
typedef struct ladder_step {
    uint32_t layout;  /* `layout` is the layout of the block scales (a bsmm_layout). */
    uint32_t stages;  /* `stages` is the number of k blocks that shared memory holds. */
    uint32_t threads; /* `threads` is the number of threads of a thread block. */
    /* `ctas` is the number of thread blocks that compute a tile together, 1 or 2. 0 means 1. */
    uint32_t ctas;
    bool persistent; /* If true, the grid has at most one thread block for each SM. */
} ladder_step;

/* Runs the kernel function `ladder` of the PTX file arguments[1], for a D of 256 x 512 results and
 * four k blocks. Returns the program's exit status, which is 0 if every result equals the
 * reference's. */
int ladder_run(const ladder_step *step, int count, char **arguments);

#endif
