/* Tests the ceilings of bench. A probe is a loop that measures the rate of an arithmetic unit or of
 * memory. A ceiling is the best rate that a probe reaches. The machine in this test is simulated
 * and may be busy while a probe runs. bench must repeat a measurement whose probe was too slow, so
 * that it never reports a product above its ceiling. */
#include "../../bench/ceiling.c" /* NOLINT(bugprone-suspicious-include) */
#include "../../bench/memory.c"  /* NOLINT(bugprone-suspicious-include) */

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

enum { ROWS = 3, FAILURE = 7 };

/* The clock of this test advances by a second each time it is read. */
double bench_now(void) {
    static double now;
    return ++now;
}

/* The test plays a machine whose speed varies. This struct holds what one measurement of row number
 * `row` of bench's output finds: `probe` is the rate that the probe (a loop that measures the peak
 * rate) reaches at that moment, and `product` is the rate that the product reaches. The unit of all
 * rates is arbitrary. */
typedef struct moment {
    size_t row;
    double probe, product;
} moment;

typedef struct machine {
    const moment *moments;
    size_t count, next;
    /* `product` is the rate of the product in the last measurement. `kept` holds for each row of
     * the output the rate that bench reported. */
    double product, kept[ROWS];
} machine;

static int measure(void *context, size_t row, bench_probed *probed) {
    machine *m = context;
    if (m->next == m->count) return FAILURE;
    const moment *now = &m->moments[m->next++];
    assert_int_equal(row, now->row);
    m->product = now->product;
    probed->best[BENCH_UNIT] = probed->typical[BENCH_UNIT] = now->probe;
    probed->reached[BENCH_UNIT] = now->product;
    return 0;
}

static void keep(void *context, size_t row) {
    machine *m = context;
    m->kept[row] = m->product;
}

/* Makes bench measure all rows of its output on a simulated machine. Measurement number i reaches
 * the rates of moments[i]. Fails unless bench used all moments, i.e. measured as often as the test
 * expects. */
static machine run(const moment *moments, size_t count, size_t rows, bench_ceilings *ceilings,
                   bench_probed *probed, int *attempts) {
    machine m = {.moments = moments, .count = count};
    const bench_rows all = {rows, measure, keep, &m};
    assert_int_equal(bench_rows_measure(&all, ceilings, probed, attempts), 0);
    assert_int_equal(m.next, count);
    return m;
}

/* Tests that bench measures each row once on a machine without other work. */
static void test_quiet(void **state) {
    (void)state;
    static const moment moments[] = {{0, 98, 70}, {1, 100, 80}, {2, 97, 96}};
    bench_ceilings ceilings = {0};
    bench_probed probed[ROWS];
    int attempts[ROWS];
    machine m = run(moments, 3, ROWS, &ceilings, probed, attempts);
    assert_true(ceilings.best[BENCH_UNIT] == 100);
    for (size_t i = 0; i < ROWS; i++) {
        assert_int_equal(attempts[i], 1);
        assert_true(m.kept[i] == moments[i].product);
        assert_false(bench_ceilings_disturbed(&ceilings, &probed[i]));
    }
}

/* Tests a row of the output for which the machine was busy only while the probe (the loop that
 * measures the peak rate) ran. Without a second measurement, bench would report a rate above the
 * ceiling. */
static void test_share_above_one(void **state) {
    (void)state;
    static const moment moments[] = {{0, 100, 80}, {1, 32, 79.4}, {1, 99, 78}};
    bench_ceilings ceilings = {0};
    bench_probed probed[ROWS];
    int attempts[ROWS];
    machine m = run(moments, 3, 2, &ceilings, probed, attempts);
    assert_true(attempts[0] == 1 && attempts[1] == 2);
    assert_true(m.kept[1] == 78 && ceilings.best[BENCH_UNIT] == 100);
    assert_false(bench_ceilings_disturbed(&ceilings, &probed[1]));
}

/* The machine is busy with other work while bench first measures the peak rate, so this peak is too
 * low. The product, which has one row, then seems faster than the peak. Tests that bench notices
 * this and measures again. */
static void test_one_row(void **state) {
    (void)state;
    static const moment moments[] = {{0, 40, 99}, {0, 100, 97}};
    bench_ceilings ceilings = {0};
    bench_probed probed[ROWS];
    int attempts[ROWS];
    machine m = run(moments, 2, 1, &ceilings, probed, attempts);
    assert_true(m.kept[0] == 97 && ceilings.best[BENCH_UNIT] == 100 && attempts[0] == 2);
}

/* Tests a machine that stays busy. bench measures the row three times. It must keep the measurement
 * in which the probe (the loop that measures the peak rate) was fastest, even if the product was
 * faster in another measurement, and it must mark the row as disturbed. */
static void test_stays_busy(void **state) {
    (void)state;
    static const moment moments[] = {{0, 100, 80}, {1, 50, 70}, {1, 80, 60}, {1, 70, 90}};
    bench_ceilings ceilings = {0};
    bench_probed probed[ROWS];
    int attempts[ROWS];
    machine m = run(moments, 4, 2, &ceilings, probed, attempts);
    assert_true(attempts[1] == BENCH_ATTEMPTS && m.kept[1] == 60);
    assert_true(bench_ceilings_share(&ceilings, &probed[1]) == 0.8);
    assert_true(bench_ceilings_disturbed(&ceilings, &probed[1]));
}

/* A probe is a loop that measures a peak rate, and the ceiling is the best rate of all probes.
 * Tests the case that the probe of a later row of the output is faster than all probes before. The
 * probes of the earlier rows are then too slow beside the new ceiling, i.e. other work disturbed
 * their measurements. bench must mark these rows as disturbed. */
static void test_rises_late(void **state) {
    (void)state;
    static const moment moments[] = {
        {0, 80, 60}, {1, 81, 60}, {2, 100, 70}, {0, 99, 75}, {1, 97, 74}};
    bench_ceilings ceilings = {0};
    bench_probed probed[ROWS];
    int attempts[ROWS];
    machine m = run(moments, 5, ROWS, &ceilings, probed, attempts);
    assert_true(m.kept[0] == 75 && m.kept[1] == 74 && m.kept[2] == 70);
}

/* Tests that the ceiling includes the rates that bench measures for the heading, before the rows of
 * the output. */
static void test_known_before(void **state) {
    (void)state;
    static const moment moments[] = {{0, 50, 60}, {0, 95, 65}};
    bench_ceilings ceilings = {.best = {[BENCH_UNIT] = 100}};
    bench_probed probed[ROWS];
    int attempts[ROWS];
    machine m = run(moments, 2, 1, &ceilings, probed, attempts);
    assert_true(m.kept[0] == 65 && ceilings.best[BENCH_UNIT] == 100);
}

/* A probe is a loop that measures a peak rate. For a row of its output, bench runs the probe of the
 * arithmetic unit, and for some rows also the probe of memory. A row counts as disturbed if a probe
 * is much slower than its best rate in all rows (its ceiling). Tests that the probe of memory is
 * ignored in rows for which bench has not run it. */
static void test_memory(void **state) {
    (void)state;
    const bench_ceilings ceilings = {.best = {100, 10}};
    const bench_probed warm = {.best = {100, 0}, .typical = {95, 0}, .reached = {50, 50}};
    assert_true(bench_ceilings_share(&ceilings, &warm) == 0.95);
    assert_false(bench_ceilings_disturbed(&ceilings, &warm));
    const bench_probed cold = {.best = {100, 8}, .typical = {95, 7}, .reached = {50, 5}};
    assert_true(bench_ceilings_share(&ceilings, &cold) == 0.7);
    assert_true(bench_ceilings_disturbed(&ceilings, &cold));
    const bench_probed fast = {.best = {100, 10}, .typical = {100, 10}, .reached = {50, 11}};
    assert_true(bench_ceilings_disturbed(&ceilings, &fast));
    const bench_probed none = {0};
    assert_true(bench_ceilings_share(&ceilings, &none) == 1);
}

/* Memory limits the speed of a conversion such as quantizing. bench also runs a probe, i.e. a loop
 * that measures the peak rate of the memory, and a conversion cannot be faster than this peak.
 * Tests that a conversion with a higher rate than its probe counts as disturbed, so that bench
 * measures it again. */
static void test_conversion(void **state) {
    (void)state;
    const bench_ceilings ceilings = {.best = {[BENCH_MEMORY] = 10}};
    const bench_probed slow = bench_probed_memory(10, 9.5, 9.9);
    assert_true(slow.best[BENCH_UNIT] == 0 && bench_ceilings_share(&ceilings, &slow) == 0.95);
    assert_false(bench_ceilings_disturbed(&ceilings, &slow));
    const bench_probed fast = bench_probed_memory(10, 10, 21.9);
    assert_true(bench_ceilings_disturbed(&ceilings, &fast));
}

/* For a small conversion, bench measures the bandwidth of reading and writing as many bytes as the
 * conversion does (a probe). Tests that the probe accesses no more memory than that. The caches
 * that hold the matrices of the conversion then also hold the memory of the probe, so both have the
 * same bandwidth. */
static void test_small_probe(void **state) {
    (void)state;
    enum { READ = 12 << 10, WRITTEN = 4 << 10, SPARE = 64 << 10, THREADS = 2 };
    static _Alignas(LINE) char bytes[READ + WRITTEN + SPARE];
    const bench_memory memory = {bytes};
    memset(bytes, 2, sizeof bytes);
    assert_true(bench_memory_run_within(&memory, READ, WRITTEN, THREADS) > 0);
    for (size_t i = 0; i < sizeof bytes; i++) {
        const size_t part = i % ((READ + WRITTEN) / THREADS);
        const bool is_written = i < READ + WRITTEN && part >= READ / THREADS;
        assert_int_equal(bytes[i], is_written ? 1 : 2);
    }
}

/* Tests that bench can measure the memory bandwidth for a conversion of fewer bytes than a cache
 * line. */
static void test_tiny_probe(void **state) {
    (void)state;
    static _Alignas(LINE) char bytes[2 * LEAST_LINES * LINE];
    memset(bytes, 1, sizeof bytes);
    assert_true(bench_memory_run_within(&(bench_memory){bytes}, 12, 4, 2) > 0);
}

static void test_failure(void **state) {
    (void)state;
    static const moment moments[] = {{0, 100, 60}};
    machine m = {.moments = moments, .count = 1};
    const bench_rows rows = {ROWS, measure, keep, &m};
    bench_ceilings ceilings = {0};
    bench_probed probed[ROWS];
    int attempts[ROWS];
    assert_int_equal(bench_rows_measure(&rows, &ceilings, probed, attempts), FAILURE);
    assert_true(attempts[0] == 1 && attempts[1] == 0 && m.kept[0] == 60);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quiet),      cmocka_unit_test(test_share_above_one),
        cmocka_unit_test(test_one_row),    cmocka_unit_test(test_stays_busy),
        cmocka_unit_test(test_rises_late), cmocka_unit_test(test_known_before),
        cmocka_unit_test(test_memory),     cmocka_unit_test(test_failure),
        cmocka_unit_test(test_conversion), cmocka_unit_test(test_small_probe),
        cmocka_unit_test(test_tiny_probe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
