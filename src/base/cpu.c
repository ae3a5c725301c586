/* Detects the features, caches and name of the processor by the cpuid instruction. */
#include "base/cpu.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* These are bits of register EDX that cpuid returns for leaf 7. The bits are defined here because
 * not every supported compiler's __builtin_cpu_supports knows the AMX features. */
enum {
    LEAF7_EDX_AMX_BF16 = 1u << 22,
    LEAF7_EDX_AMX_TILE = 1u << 24,
    LEAF7_EDX_AMX_INT8 = 1u << 25
};
enum { XCR0_TILES = 3u << 17 };

uint32_t bsmm_cpu_amx_of(uint32_t leaf7_edx, uint32_t xcr0) {
    if (!(leaf7_edx & LEAF7_EDX_AMX_TILE) || (xcr0 & XCR0_TILES) != XCR0_TILES) return 0;
    return (leaf7_edx & LEAF7_EDX_AMX_INT8 ? BSMM_CPU_AMX_INT8 : 0u) |
           (leaf7_edx & LEAF7_EDX_AMX_BF16 ? BSMM_CPU_AMX_BF16 : 0u);
}

#if defined(__x86_64__)

#    include <cpuid.h>

static uint32_t enabled_state(void) {
    uint32_t a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return 0;
    __asm__("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
    return a;
}

static uint32_t amx_features(void) {
    uint32_t a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) ? bsmm_cpu_amx_of(d, enabled_state()) : 0;
}

static uint32_t avx512_features(void) {
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl"))
        return 0;
    return BSMM_CPU_AVX512 | (__builtin_cpu_supports("avx512vnni") ? BSMM_CPU_AVX512_VNNI : 0u) |
           (__builtin_cpu_supports("avx512bf16") ? BSMM_CPU_AVX512_BF16 : 0u) |
           (__builtin_cpu_supports("avx512vbmi") ? BSMM_CPU_AVX512_VBMI : 0u);
}

/* Asks cpuid directly, because not every supported compiler's __builtin_cpu_supports knows F16C. */
static bool has_f16c(void) {
    uint32_t a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C;
}

static uint32_t detect(void) {
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !has_f16c()) return 0;
    return BSMM_CPU_AVX2 | avx512_features() | amx_features() |
           (__builtin_cpu_is("intel") ? BSMM_CPU_TWO_PORTS : 0u);
}

/* Reads the processor's name, which has 48 characters. cpuid returns 16 of them in each of its
 * leaves 0x80000002 to 0x80000004. */
static bool brand_string(char brand[49]) {
    uint32_t words[12] = {0};
    if ((uint32_t)__get_cpuid_max(0x80000000u, NULL) < 0x80000004u) return false;
    for (size_t i = 0; i < 3; i++)
        __get_cpuid(0x80000002u + (uint32_t)i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2],
                    &words[4 * i + 3]);
    memcpy(brand, words, 48);
    brand[48] = '\0';
    return true;
}

#else

static uint32_t detect(void) {
    return 0;
}

static bool brand_string(char brand[49]) {
    (void)brand;
    return false;
}

#endif

/* `detected` holds the detected features, and bit 31 once they are known. The features are detected
 * only once, because the instruction cpuid is slow if a hypervisor intercepts it. Several threads
 * may detect the features at the same time; they store the same value. */
static atomic_uint detected;

uint32_t bsmm_cpu_ask_features(void) {
    const uint32_t known = 1u << 31;
    uint32_t features = atomic_load_explicit(&detected, memory_order_relaxed);
    if (!(features & known)) {
        features = detect() | known;
        atomic_store_explicit(&detected, features, memory_order_relaxed);
    }
    return features & ~known;
}

/* `known_l2` is the size of the L2 cache in bytes, plus 1. It is 0 before the size is detected. */
static atomic_ullong known_l2;

uint64_t bsmm_cpu_ask_l2_bytes(void) {
    uint64_t known = atomic_load_explicit(&known_l2, memory_order_relaxed);
    if (known) return known - 1;
#if defined(_SC_LEVEL2_CACHE_SIZE)
    long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
#else
    long bytes = 0;
#endif
    known = bytes > 0 ? (uint64_t)bytes : 0;
    atomic_store_explicit(&known_l2, known + 1, memory_order_relaxed);
    return known;
}

static const struct {
    uint32_t feature;
    const char *name;
} names[] = {
    {BSMM_CPU_AVX2, "avx2"},
    {BSMM_CPU_AVX512, "avx512"},
    {BSMM_CPU_AVX512_VNNI, "avx512_vnni"},
    {BSMM_CPU_AVX512_BF16, "avx512_bf16"},
    {BSMM_CPU_AVX512_VBMI, "avx512_vbmi"},
    {BSMM_CPU_AMX_INT8, "amx_int8"},
    {BSMM_CPU_AMX_BF16, "amx_bf16"},
};

void bsmm_cpu_feature_names(uint32_t features, char *text, size_t size) {
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < BSMM_COUNT(names); i++)
        if (features & names[i].feature && used < size)
            used +=
                (size_t)snprintf(text + used, size - used, "%s%s", used ? " " : "", names[i].name);
}

void bsmm_cpu_model(char *text, size_t size) {
    char brand[49];
    struct utsname machine;
    const char *name = "unknown";
    if (brand_string(brand) && brand[strspn(brand, " ")])
        name = brand + strspn(brand, " ");
    else if (uname(&machine) == 0)
        name = machine.machine;
    snprintf(text, size, "%s", name);
    while (*text && text[strlen(text) - 1] == ' ')
        text[strlen(text) - 1] = '\0';
}
