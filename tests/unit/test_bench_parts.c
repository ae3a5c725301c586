/* Tests functions of bench. Some compute medians. Some copy operands so often that no cache holds
 * all copies. Some read and write memory in a given proportion. */
/* The test includes source files of bench, because no library contains this code. */
#include "../../bench/copies.c"  /* NOLINT(bugprone-suspicious-include) */
#include "../../bench/memory.c"  /* NOLINT(bugprone-suspicious-include) */
#include "../../bench/samples.c" /* NOLINT(bugprone-suspicious-include) */

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_samples(void **state) {
    (void)state;
    bench_samples s = {0};
    assert_true(bench_samples_median(&s) == 0 && bench_samples_best(&s) == 0);
    for (int i = 0; i < 200; i++) /* The loop adds the numbers 0 to 199 in a mixed order. */
        assert_int_equal(bench_samples_add(&s, (double)(i * 77 % 200)), BSMM_OK);
    assert_true(bench_samples_median(&s) == 99.5);
    assert_int_equal(bench_samples_add(&s, 1000), BSMM_OK);
    assert_true(bench_samples_median(&s) == 100 && bench_samples_best(&s) == 1000);
    bench_samples_destroy(&s);
    assert_int_equal(s.count, 0);
}

static bsmm_status fail_third(void *context, size_t turn) {
    size_t *last = context;
    *last = turn;
    return turn == 2 ? BSMM_E_MEMORY : BSMM_OK;
}

static bsmm_status count_turns(void *context, size_t turn) {
    size_t *next = context;
    assert_int_equal(turn, (*next)++);
    return BSMM_OK;
}

static void test_time(void **state) {
    (void)state;
    bench_samples s = {0};
    size_t turn = 0;
    assert_int_equal(bench_time(fail_third, &turn, 1, &s), BSMM_E_MEMORY);
    assert_int_equal(turn, 2);
    assert_int_equal(s.count, 2);
    turn = 3;
    double started = bench_now();
    assert_int_equal(bench_time(count_turns, &turn, 1, &s), BSMM_OK);
    assert_true(bench_now() - started >= round_seconds);
    /* The failed run is not counted. */
    assert_int_equal(s.count, turn - 1);
    bench_samples_destroy(&s);
}

/* Tests measurements with several threads. Runs during the warm-up are not counted as samples, but
 * `turn` counts all runs. */
static void test_warm(void **state) {
    (void)state;
    bench_samples s = {0};
    size_t turn = 0;
    double started = bench_now();
    assert_true(bench_is_warm(started, 1) && !bench_is_warm(started, 2));
    assert_true(bench_is_warm(started - warm_seconds, 2));
    for (int round = 1; round <= 2; round++) {
        assert_int_equal(bench_time(count_turns, &turn, 2, &s), BSMM_OK);
        assert_true(bench_now() - started >= round * (warm_seconds + round_seconds));
        assert_true(s.count > 0 && s.count < s.turns && s.turns == turn);
    }
    bench_samples_destroy(&s);
}

static void test_copies(void **state) {
    (void)state;
    static const uint64_t sizes[] = {0, 1, 64, 65, 1000, 8912896, (uint64_t)300 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t count = bench_copies_count(sizes[i], true);
        assert_int_equal(bench_copies_count(sizes[i], false), 1);
        assert_true(count >= 2 && count * stride_of(sizes[i]) >= beyond_caches);
    }
    bench_copies c = {0};
    assert_true(bench_copies_create(&c, 100, 5));
    memset(c.memory, 7, 100);
    bench_copies_spread(&c);
    for (size_t turn = 0; turn < 12; turn++) {
        char *copy = bench_copies_at(&c, turn);
        assert_int_equal((uintptr_t)copy % 64, 0);
        assert_ptr_equal(copy, bench_copies_at(&c, turn + 5));
        assert_int_equal(memcmp(copy, c.memory, 100), 0);
    }
    assert_ptr_not_equal(bench_copies_at(&c, 0), bench_copies_at(&c, 4));
    bench_copies_destroy(&c);
}

/* Tests the loop that measures the memory bandwidth, with stores that bypass the caches and with
 * ordinary stores. The loop must read every cache line of the first part of the memory, and write
 * every cache line of the rest. */
static void test_memory(void **state) {
    (void)state;
    enum { LINES = 1000 };
    static const struct {
        double part;
        void (*write)(char *, size_t);
    } rows[] = {{1, write_lines},     {0.5, write_lines},    {0.883, write_lines},
                {0.333, write_lines}, {0.883, write_cached}, {0.333, write_cached}};
    char *bytes = aligned_alloc(LINE, (size_t)LINES * LINE);
    assert_non_null(bytes);
    for (size_t p = 0; p < sizeof rows / sizeof rows[0]; p++) {
        uint64_t sum = 0, word;
        size_t reads = (size_t)(LINES * rows[p].part);
        for (size_t i = 0; i < (size_t)LINES * LINE; i++)
            bytes[i] = (char)(i / LINE % 100 + 2);
        for (size_t i = 0; i < reads; i++) {
            memcpy(&word, bytes + i * LINE, sizeof word);
            sum += word;
        }
        assert_true(move(bytes, LINES, rows[p].part, rows[p].write) == sum);
        for (size_t i = 0; i < (size_t)LINES * LINE; i++)
            assert_int_equal(bytes[i], i / LINE < reads ? (char)(i / LINE % 100 + 2) : 1);
    }
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples), cmocka_unit_test(test_time),   cmocka_unit_test(test_warm),
        cmocka_unit_test(test_copies),  cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
