/* Tests bsmm_axis_is_linear, which tells whether a scale layout stores scales at equal distances.
 * The test compares it with the offsets of all indices, for random layouts. */
#include "gpu/params.h"

#include "operand.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static bool is_linear(const bsmm_axis_map *map, uint32_t step, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (bsmm_axis_at(map, i * step) != (uint64_t)i * bsmm_axis_at(map, step)) return false;
    return true;
}

/* Makes a random map. Many of the maps have strides that make them linear. */
static bsmm_axis_map random_map(rng *r, uint32_t *block) {
    static const uint32_t extents[] = {1, 2, 3, 4, 8, 32, 128}, blocks[] = {1, 2, 16, 32, 100, 128};
    bsmm_scale_map map = {.count = 1, .digit_count = rng_below(r, 4)};
    uint32_t stride = rng_below(r, 3);
    for (uint32_t i = 0; i < map.digit_count; i++) {
        const uint32_t extent = extents[rng_below(r, BSMM_COUNT(extents))];
        map.digits[i].axis = 0;
        map.digits[i].extent = extent;
        map.digits[i].stride = rng_below(r, 4) ? stride : rng_below(r, 64);
        stride = rng_below(r, 4) ? stride * extent : rng_below(r, 64);
    }
    map.tile_row_step = stride;
    *block = blocks[rng_below(r, BSMM_COUNT(blocks))];
    return bsmm_axis_map_of(&map, 0, *block);
}

static void test_random_maps(void **state) {
    (void)state;
    rng r = {20261130};
    int linear = 0, other = 0;
    for (int i = 0; i < 200000; i++) {
        uint32_t block;
        const bsmm_axis_map map = random_map(&r, &block);
        const uint32_t steps[] = {block, 1, 32, 128, 1 + rng_below(&r, 300)};
        const uint32_t step = steps[rng_below(&r, BSMM_COUNT(steps))], count = rng_below(&r, 80);
        const bool expected = is_linear(&map, step, count);
        if (bsmm_axis_is_linear(&map, step, count) != expected)
            fail_msg("map %d, step %u, count %u: expected %d", i, step, count, expected);
        *(expected ? &linear : &other) += 1;
    }
    assert_true(linear > 20000 && other > 20000);
}

/* Tests a map that has one scale for each 128 rows. Up to the largest row number, 2^31 - 1, it has
 * 2^24 scales. */
static void test_many_scales(void **state) {
    (void)state;
    bsmm_scale_map map = {.count = 1, .tile_row_step = 7};
    const bsmm_axis_map plain = bsmm_axis_map_of(&map, 0, 128);
    for (int i = 0; i < 100000; i++)
        assert_true(bsmm_axis_is_linear(&plain, 128, (INT64_C(1) << 24) - 1));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_maps),
        cmocka_unit_test(test_many_scales),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
