/* Tells the features, the L2 size and the name of the processor on which the library runs. */
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
    /* The processor is made by Intel. Intel's processors with AVX-512 have two ports that execute
     * 512-bit operations. Each addition or conversion therefore takes a slot that an integer dot
     * product (vpdpbusd) could have used. A bf16 dot product (vdpbf16ps) occupies its port for as
     * long as four FMAs. */
    BSMM_CPU_TWO_PORTS = 1u << 7
} bsmm_cpu_feature;

/* Returns the features (a sum of bsmm_cpu_feature) that the processor has and that the operating
 * system lets programs use. The features of AVX-512's extensions are returned only together with
 * BSMM_CPU_AVX512. The result is 0 on architectures other than x86-64. */
uint32_t bsmm_cpu_features(void);

/* Returns the size of a core's L2 cache in bytes, or 0 if it is unknown. */
uint64_t bsmm_cpu_l2_bytes(void);

/* These functions ask the processor for its features and for the size of its L2 cache, and keep the
 * first answer (cpu.c). Only cpu_known.c may call them. All other code calls bsmm_cpu_features and
 * bsmm_cpu_l2_bytes, because tests replace those two functions to pretend to run on another
 * processor. */
uint32_t bsmm_cpu_ask_features(void);
uint64_t bsmm_cpu_ask_l2_bytes(void);

/* Returns the AMX features that two registers of an x86-64 processor show: EDX after cpuid with
 * leaf 7, and XCR0, in which the operating system says what programs may use. */
uint32_t bsmm_cpu_amx_of(uint32_t leaf7_edx, uint32_t xcr0);

/* Writes the names of `features` into text, separated by spaces. The result has at most `size`
 * bytes, its final NUL included; longer text is truncated. */
void bsmm_cpu_feature_names(uint32_t features, char *text, size_t size);

/* Writes the processor's model name, such as "AMD EPYC 9654 96-Core Processor". If the processor
 * gives no name, the function writes the name of the machine's architecture. */
void bsmm_cpu_model(char *text, size_t size);

#endif
