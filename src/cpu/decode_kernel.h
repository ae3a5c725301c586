/* What the kernels for few rows of weights as stored have in common. A kernel's file includes it,
 * defines decoder_of, the decoder that a product takes, where the compiler has its instructions (on
 * x86-64), and what it refuses. */
#ifndef BSMM_CPU_DECODE_KERNEL_H
#define BSMM_CPU_DECODE_KERNEL_H

#include "base/cpu.h"
#include "cpu/decode.h"

#if defined(__x86_64__)
static bsmm_decoder decoder_of(const bsmm_product *p);
#else
static bsmm_decoder decoder_of(const bsmm_product *p) {
    (void)p; /* all is refused */
    return (bsmm_decoder){0};
}
#endif

static uint64_t workspace_bytes(const bsmm_product *p) {
    bsmm_decoder d = decoder_of(p);
    return bsmm_decode_workspace_bytes(&d, p);
}

static bsmm_status run(const bsmm_product *p, void *workspace) {
    bsmm_decoder d = decoder_of(p);
    return bsmm_decode_run(&d, p, workspace);
}

/* The members of a bsmm_kernel that these are. */
#define BSMM_DECODE_KERNEL .device = "cpu", .workspace_bytes = workspace_bytes, .run = run

#endif
