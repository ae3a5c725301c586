/* Tests the number of parts into which the GPU kernels for few rows of A split K (split-K). The
 * host chooses the number with the shortest predicted time. With this number, a product must take
 * at most 1.12 times as long in measurements as with the best number. */
#include "cuda/host/small_m_product.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_LINE = 512, LEAST_LINES = 20 };

static const bsmm_cuda_device h200 = {.capability = 90, .multiprocessors = 132};

static const bsmm_small_m_speed *find_speed(uint32_t k_warps) {
    for (int i = 0; i < BSMM_SMALL_M_SPEEDS; i++)
        if (bsmm_small_m_speeds[BSMM_SMALL_M_4BIT][i].k_warps == k_warps)
            return &bsmm_small_m_speeds[BSMM_SMALL_M_4BIT][i];
    fail_msg("no blocks with %u warps along K", k_warps);
    return NULL;
}

/* Predicts the times of several choices for one product, as the library does, and checks that the
 * choice with the least predicted time is nearly the fastest one in measurements. `text` lists the
 * measured times. For example, "8/2=8.7" means 8.7 us with 8 warps along K in each thread block and
 * with K split into 2 parts. */
static void check_product(const bsmm_product *p, char *text) {
    double best = 1e9, chosen = 0, least = 1e9;
    for (char *word = strtok(text, " \n"); word; word = strtok(NULL, " \n")) {
        char *end;
        uint32_t k_warps = (uint32_t)strtoul(word, &end, 10);
        assert_int_equal(*end, '/');
        uint32_t splits = (uint32_t)strtoul(end + 1, &end, 10);
        assert_int_equal(*end, '=');
        double measured = strtod(end + 1, NULL);
        double predicted = bsmm_small_m_predict(p, find_speed(k_warps), splits);
        assert_true(measured > 0);
        if (measured < best) best = measured;
        if (predicted < least) least = predicted, chosen = measured;
    }
    print_message("%lld x %lld: %.1f us chosen, %.1f the best\n", (long long)p->b.m.rows,
                  (long long)p->b.m.cols, chosen, best);
    assert_true(chosen <= 1.12 * best);
}

static void test_chosen_cut_is_near_the_best(void **state) {
    (void)state;
    FILE *file = fopen(BSMM_GOLDEN_DIR "/data/small_m_cuts.txt", "r");
    assert_non_null(file);
    char line[MOST_LINE];
    int count = 0;
    while (fgets(line, sizeof line, file)) {
        if (line[0] == '#') continue;
        char *end;
        bsmm_product p = {.device = &h200};
        p.b.m.rows = strtoll(line, &end, 10);
        p.a.m.cols = p.b.m.cols = strtoll(end, &end, 10);
        check_product(&p, end);
        count++;
    }
    fclose(file);
    assert_true(count >= LEAST_LINES);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_chosen_cut_is_near_the_best)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
