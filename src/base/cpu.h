/* The features, caches and name of the processor on which the library runs. */
#ifndef BSMM_CPU_H
#define BSMM_CPU_H

#include "base/base.h"

typedef enum bsmm_cpu_feature {
    BSMM_CPU_AVX2 = 1u << 0,   /* The processor has AVX2, FMA and F16C. */
    BSMM_CPU_AVX512 = 1u << 1, /* The processor has AVX-512 F, BW, DQ and VL. */
    BSMM_CPU_AVX512_VNNI = 1u << 2,
    BSMM_CPU_AVX512_BF16 = 1u << 3,
    BSMM_CPU_AVX512_VBMI = 1u << 4,
    BSMM_CPU_AMX_INT8 = 1u << 5,
    BSMM_CPU_AMX_BF16 = 1u << 6,
    /* An Intel processor. On it, 512-bit operations of every kind share two ports. An addition or a
     * conversion then costs as much as a dot product, and vdpbf16ps costs as much as four FMAs. */
    BSMM_CPU_TWO_PORTS = 1u << 7
} bsmm_cpu_feature;

/* Returns the features that the processor has and that the operating system lets programs use.
 * Extensions of AVX-512 are reported only together with AVX512 itself. The result is 0 on
 * architectures other than x86-64. */
uint32_t bsmm_cpu_features(void);

/* Returns the size of a core's L2 cache in bytes, or 0 if it is unknown. */
uint64_t bsmm_cpu_l2_bytes(void);

/* These functions ask the processor for its features and the size of L2; the first call keeps the
 * answer (cpu.c). Only cpu_known.c may call them. Tests link another file in its place and so
 * pretend to run on other processors. */
uint32_t bsmm_cpu_ask_features(void);
uint64_t bsmm_cpu_ask_l2_bytes(void);

/* Writes the names of `features`, separated by spaces. The text is cut off at `size`. */
void bsmm_cpu_feature_names(uint32_t features, char *text, size_t size);

/* Writes the processor's model name, such as "AMD EPYC 9654 96-Core Processor". If it has none, the
 * name of the machine's architecture is written. */
void bsmm_cpu_model(char *text, size_t size);

#endif
