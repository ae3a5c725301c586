/* The host code that the steps of the ladder share. It runs a kernel for the tutorial's four pairs
 * of formats, on the device of libcuda.so.1, and compares the results with those of the library's
 * reference kernel. */
#ifndef HOST_H
#define HOST_H

#include <bsmm.h>
#include <stdbool.h>

/* What a step's kernel wants. */
typedef struct ladder_step {
    uint32_t layout;  /* the layout of the block scales, a bsmm_layout */
    uint32_t stages;  /* the k blocks that shared memory holds */
    uint32_t threads; /* the threads of a thread block */
    uint32_t ctas;    /* the thread blocks that compute a tile together, 1 or 2; 0 counts as 1 */
    bool persistent;  /* The grid has no more thread blocks than the device has SMs. */
} ladder_step;

/* Runs the kernel `ladder` of the PTX file arguments[1], for D of 256 x 512 results and four k
 * blocks. Returns the program's exit status: 0 if every result equals the reference's. */
int ladder_run(const ladder_step *step, int count, char **arguments);

#endif
