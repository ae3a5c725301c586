/* Tests the memory of every device of this machine. Data that is copied or filled in the order of a
 * stream must be read back in this order. Messages must name invalid arguments. */
#include "bsmm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

enum { BYTES = 1000, HUGE_PAGE = 2 << 20, LARGE = 5 * HUGE_PAGE / 2 };

static void check_device(const char *name) {
    bsmm_exec exec = BSMM_INIT(bsmm_exec);
    exec.device = name;
    uint8_t from[BYTES], to[BYTES];
    for (int i = 0; i < BYTES; i++)
        from[i] = (uint8_t)(i * 7 + 3);
    memset(to, 0, sizeof to);
    void *first, *second;
    assert_int_equal(bsmm_allocate_memory(name, BYTES, &first), BSMM_OK);
    assert_int_equal(bsmm_allocate_memory(name, BYTES, &second), BSMM_OK);
    assert_int_equal((uintptr_t)first % 64, 0);
    assert_int_equal(bsmm_copy_memory(&exec, first, from, BYTES), BSMM_OK);
    assert_int_equal(bsmm_copy_memory(&exec, second, first, BYTES), BSMM_OK);
    assert_int_equal(bsmm_fill_memory(&exec, (uint8_t *)second + 10, 0xa5, 20), BSMM_OK);
    assert_int_equal(bsmm_copy_memory(&exec, to, second, BYTES), BSMM_OK);
    assert_int_equal(bsmm_synchronize_stream(&exec), BSMM_OK);
    memset(from + 10, 0xa5, 20);
    assert_memory_equal(to, from, BYTES);
    assert_int_equal(bsmm_free_memory(name, first), BSMM_OK);
    assert_int_equal(bsmm_free_memory(name, second), BSMM_OK);
}

static void test_memory_round_trip(void **state) {
    (void)state;
    bsmm_local_device info = BSMM_INIT(bsmm_local_device);
    for (uint32_t i = 0; bsmm_local_device_at(i, &info) == BSMM_OK; i++)
        check_device(info.name);
}

static void check_named(bsmm_status status, bsmm_status wanted, const char *field) {
    assert_int_equal(status, wanted);
    assert_non_null(strstr(bsmm_error_message(), field));
}

static void test_bad_arguments_are_named(void **state) {
    (void)state;
    void *memory = &memory;
    uint8_t byte = 1;
    check_named(bsmm_allocate_memory("cpu", 16, NULL), BSMM_E_INVALID, "memory");
    check_named(bsmm_allocate_memory(NULL, 16, &memory), BSMM_E_INVALID, "device");
    assert_null(memory);
    memory = &memory;
    check_named(bsmm_allocate_memory("tpu", 16, &memory), BSMM_E_UNSUPPORTED, "tpu");
    assert_null(memory);
    check_named(bsmm_allocate_memory("cpu", UINT64_MAX, &memory), BSMM_E_MEMORY, "bytes");
    check_named(bsmm_copy_memory(NULL, NULL, &byte, 1), BSMM_E_INVALID, "to");
    check_named(bsmm_copy_memory(NULL, &byte, NULL, 1), BSMM_E_INVALID, "from");
    check_named(bsmm_fill_memory(NULL, &byte, 256, 1), BSMM_E_INVALID, "value");
    assert_int_equal(byte, 1);
}

static void test_nothing_is_fine(void **state) {
    (void)state;
    void *memory = &memory;
    assert_int_equal(bsmm_allocate_memory("cpu", 0, &memory), BSMM_OK);
    assert_null(memory);
    assert_int_equal(bsmm_free_memory("cpu", NULL), BSMM_OK);
    assert_int_equal(bsmm_copy_memory(NULL, NULL, NULL, 0), BSMM_OK);
    assert_int_equal(bsmm_fill_memory(NULL, NULL, 0, 0), BSMM_OK);
}

/* Returns true if the library has asked Linux for huge pages for the memory at this address. The
 * flags of its mapping in /proc/self/smaps then contain "hg". */
static bool asks_for_huge_pages(const void *memory) {
    FILE *file = fopen("/proc/self/smaps", "r");
    char line[512];
    unsigned long long from, to, at = (uintptr_t)memory;
    bool inside = false, asks = false;
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "%llx-%llx ", &from, &to) == 2) inside = from <= at && at < to;
        if (inside && strncmp(line, "VmFlags:", 8) == 0) asks = strstr(line, " hg") != NULL;
    }
    if (file) fclose(file);
    return asks;
}

/* Returns true if /proc/self/smaps shows a request for huge pages. It shows none if the operating
 * system has no huge pages, or on an emulated processor. */
static bool shows_huge_pages(void) {
    bool shows = false;
#ifdef MADV_HUGEPAGE
    void *memory = NULL;
    assert_int_equal(posix_memalign(&memory, HUGE_PAGE, LARGE), 0);
    shows = madvise(memory, HUGE_PAGE, MADV_HUGEPAGE) == 0 && asks_for_huge_pages(memory);
    free(memory);
#endif
    return shows;
}

/* Tests that the library asks for huge pages for a large allocation on the CPU. The library must
 * not ask for huge pages for the end of the allocation, which is smaller than a huge page. */
static void test_large_memory_gets_huge_pages(void **state) {
    (void)state;
    void *memory;
    assert_int_equal(bsmm_allocate_memory("cpu", LARGE, &memory), BSMM_OK);
    assert_int_equal((uintptr_t)memory % HUGE_PAGE, 0);
    memset(memory, 1, LARGE);
    if (shows_huge_pages()) {
        assert_true(asks_for_huge_pages(memory));
        assert_true(asks_for_huge_pages((uint8_t *)memory + 2 * HUGE_PAGE - 1));
        assert_false(asks_for_huge_pages((uint8_t *)memory + 2 * HUGE_PAGE));
    } else {
        print_message("no request for huge pages shows on this machine\n");
    }
    assert_int_equal(bsmm_free_memory("cpu", memory), BSMM_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_round_trip),
        cmocka_unit_test(test_bad_arguments_are_named),
        cmocka_unit_test(test_nothing_is_fine),
        cmocka_unit_test(test_large_memory_gets_huge_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
