/* Tests grouped products with random group sizes and random row indices. Some sizes and indices are
 * invalid, because a program may write any number to device memory. */
#include "grouped.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { G = GROUPED_COUNT, M = GROUPED_M };

static int32_t any_size(rng *r) {
    static const int32_t special[] = {INT32_MIN, INT32_MAX, -1, 0, 1};
    uint32_t kind = rng_below(r, 10);
    return kind < BSMM_COUNT(special) ? special[kind] : (int32_t)rng_below(r, 200) - 20;
}

/* Limits the random group sizes in device memory as bsmm.h documents, and stores the results as the
 * expected group sizes. */
static void apply_rule(grouped_case *c, int64_t total) {
    int64_t end = 0;
    for (int g = 0; g < G; g++) {
        int64_t start = c->group.kind == BSMM_GROUP_MASKED ? 0 : end, size = c->given[g];
        end = size < start ? start : size > total ? total : size;
        c->extents[g] = end - start;
    }
}

/* Tests random group sizes. The last group ends at the last row of the matrix, because grouped.h
 * computes the number of rows from the groups. */
static void test_random_sizes(void **state) {
    (void)state;
    static const uint32_t kinds[] = {BSMM_GROUP_ROWS, BSMM_GROUP_MASKED, BSMM_GROUP_K};
    rng r = {102};
    for (int i = 0; i < 15; i++) {
        uint32_t kind = kinds[i % 3];
        grouped_case c = {"random sizes", .a = "bf16", .b = "bf16", .d = "f32", .plain = true};
        c.group.kind = kind;
        for (int g = 0; g < G; g++)
            c.given[g] = any_size(&r);
        if (c.given[0] == 0) c.given[0] = 1;
        if (kind != BSMM_GROUP_MASKED) c.given[G - 1] = INT32_MAX;
        apply_rule(&c, M);
        grouped_check(&c);
    }
}

static void test_random_gathers(void **state) {
    (void)state;
    rng r = {103};
    for (int i = 0; i < 6; i++) {
        grouped_case c = {"random gathers", .a = "mxfp8", .b = "mxfp4", .d = "f32", .plain = true};
        c.group.kind = i % 2 ? BSMM_GROUP_ROWS : BSMM_GROUP_MASKED;
        c.group.flags = BSMM_GROUP_GATHER_A;
        for (int g = 0; g < G; g++)
            c.extents[g] = rng_below(&r, M);
        grouped_check(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_sizes),
        cmocka_unit_test(test_random_gathers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
