/* Compares the processor features that the library detects with those that the operating system
 * reports. */
#include "base/cpu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Returns the "flags" line of /proc/cpuinfo with a space before and after it, or NULL if the file
 * has no such line. */
static char *kernel_flags(void) {
    FILE *file = fopen("/proc/cpuinfo", "r");
    char *line = NULL, *flags = NULL;
    size_t size = 0;
    while (file && !flags && getline(&line, &size, file) > 0)
        if (strncmp(line, "flags", 5) == 0) {
            line[strcspn(line, "\n")] = ' ';
            flags = strdup(strchr(line, ':') + 1);
        }
    free(line);
    if (file) fclose(file);
    return flags;
}

static bool listed(const char *flags, const char *flag) {
    char word[32];
    snprintf(word, sizeof word, " %s ", flag);
    return strstr(flags, word) != NULL;
}

static void test_features_agree_with_the_kernel(void **state) {
    (void)state;
    static const struct {
        uint32_t feature;
        const char *flags[4];
    } known[] = {
        {BSMM_CPU_AVX2, {"avx2", "fma", "f16c"}},
        {BSMM_CPU_AVX512, {"avx512f", "avx512bw", "avx512dq", "avx512vl"}},
        {BSMM_CPU_AVX512_VNNI, {"avx512_vnni", "avx512f", "avx512bw", "avx512vl"}},
        {BSMM_CPU_AVX512_BF16, {"avx512_bf16", "avx512f", "avx512bw", "avx512vl"}},
        {BSMM_CPU_AVX512_VBMI, {"avx512vbmi", "avx512f", "avx512bw", "avx512vl"}},
        {BSMM_CPU_AMX_INT8, {"amx_int8", "amx_tile"}},
        {BSMM_CPU_AMX_BF16, {"amx_bf16", "amx_tile"}},
    };
    char *flags = kernel_flags();
    if (!flags) skip();
    uint32_t features = bsmm_cpu_features();
    for (size_t i = 0; i < BSMM_COUNT(known); i++) {
        bool expected = true;
        for (size_t j = 0; j < 4 && known[i].flags[j]; j++)
            expected = expected && listed(flags, known[i].flags[j]);
        if (expected != ((features & known[i].feature) != 0))
            fail_msg("%s: the kernel says %d", known[i].flags[0], expected);
    }
    free(flags);
}

/* Tests AMX's features on processors that this machine need not have. The features need AMX's tiles
 * and both of the state's parts, 17 and 18. Bits 21 to 26 of EDX are those around AMX's bits. */
static void test_amx(void **state) {
    (void)state;
    for (uint32_t bits = 0; bits < 1u << 10; bits++) {
        const uint32_t edx = (bits & 63) << 21, parts = bits >> 6, xcr0 = parts << 16 | 7;
        const bool usable = (edx >> 24 & 1) && (parts & 6) == 6;
        const uint32_t expected = (usable && edx >> 25 & 1 ? BSMM_CPU_AMX_INT8 : 0u) |
                                  (usable && edx >> 22 & 1 ? BSMM_CPU_AMX_BF16 : 0u);
        assert_int_equal(bsmm_cpu_amx_of(edx, xcr0), expected);
    }
    /* The bits of a Sapphire Rapids processor under Linux. */
    assert_int_equal(bsmm_cpu_amx_of(0xFFC1C010u, 0x602E7u), BSMM_CPU_AMX_INT8 | BSMM_CPU_AMX_BF16);
}

static void test_names(void **state) {
    (void)state;
    char text[32];
    bsmm_cpu_feature_names(BSMM_CPU_AVX2 | BSMM_CPU_AVX512_BF16, text, sizeof text);
    assert_string_equal(text, "avx2 avx512_bf16");
    bsmm_cpu_feature_names(0, text, sizeof text);
    assert_string_equal(text, "");
    /* The buffer has 8 bytes, so the text is truncated to 7 characters and a terminating zero. */
    bsmm_cpu_feature_names(~0u, text, 8);
    assert_string_equal(text, "avx2 av");
}

static void test_model(void **state) {
    (void)state;
    char text[64], cut[4];
    bsmm_cpu_model(text, sizeof text);
    assert_true(strlen(text) > 0 && text[0] != ' ' && text[strlen(text) - 1] != ' ');
    bsmm_cpu_model(cut, sizeof cut);
    assert_true(strlen(cut) < sizeof cut);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_features_agree_with_the_kernel),
        cmocka_unit_test(test_amx),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
