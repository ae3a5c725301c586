/* What the processor that runs this can do. */
#ifndef BSMM_CPU_H
#define BSMM_CPU_H

#include "base/base.h"

typedef enum bsmm_cpu_feature {
    BSMM_CPU_AVX2 = 1u << 0,   /* with FMA and F16C */
    BSMM_CPU_AVX512 = 1u << 1, /* F, BW, DQ and VL */
    BSMM_CPU_AVX512_VNNI = 1u << 2,
    BSMM_CPU_AVX512_BF16 = 1u << 3,
    BSMM_CPU_AVX512_VBMI = 1u << 4,
    BSMM_CPU_AMX_INT8 = 1u << 5,
    BSMM_CPU_AMX_BF16 = 1u << 6,
    /* Made by Intel: 512-bit operations of every kind share two ports, so that an addition or a
     * conversion costs as much as a dot product, and vdpbf16ps costs four FMAs. */
    BSMM_CPU_TWO_PORTS = 1u << 7
} bsmm_cpu_feature;

/* The features that the processor has and the operating system lets programs use; the AVX-512
 * extensions are only reported beside AVX512 itself. 0 on other architectures than x86-64. */
uint32_t bsmm_cpu_features(void);

/* Bytes of a core's second-level cache; 0 where nothing says. */
uint64_t bsmm_cpu_l2_bytes(void);

/* The same, asked of the processor and kept by the first call (cpu.c). Only cpu_known.c calls them:
 * tests link another in its place, to be other processors. */
uint32_t bsmm_cpu_ask_features(void);
uint64_t bsmm_cpu_ask_l2_bytes(void);

/* The names of `features`, separated by spaces; cut at size. */
void bsmm_cpu_feature_names(uint32_t features, char *text, size_t size);

/* The processor's own name of its model ("AMD EPYC 9654 96-Core Processor"), or the machine's
 * architecture where it has none. */
void bsmm_cpu_model(char *text, size_t size);

#endif
