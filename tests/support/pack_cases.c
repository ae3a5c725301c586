#include "pack_cases.h"

#include <stddef.h>

void pack_check_matrix(pack_check *check, bsmm_matrix shape, const char *other, fill how, rng *r) {
    test_matrix t;
    test_matrix_make(&t, shape, how, r);
    float global = 0.25f;
    if (rng_below(r, 2)) t.m.global_scale = &global;
    check(&t, other);
    test_matrix_free(&t);
}

void pack_check_lengths(pack_check *check, const format_list *formats) {
    static const int64_t lengths[] = {0, 1, 2, 31, 33, 65, 127, 1060};
    static const char *const others[] = {"mxfp4", "nvfp4", "fp8_group128"};
    rng r = {1};
    for (size_t i = 0; i < formats->count; i++)
        for (size_t j = 0; j < BSMM_COUNT(lengths); j++) {
            bsmm_matrix m = describe(format_named(formats->names[i]), 10 + (int64_t)j, lengths[j]);
            pack_check_matrix(check, m, others[j % 3], (fill)(j % 3), &r);
            m.order = BSMM_ORDER_COL;
            pack_check_matrix(check, m, others[i % 3], (fill)((j + 1) % 3), &r);
        }
}

void pack_check_every_code(pack_check *check, const format_list *formats, int64_t rows) {
    rng r = {2};
    for (size_t i = 0; i < formats->count; i++)
        for (int how = 0; how < 3; how++)
            pack_check_matrix(check, describe(format_named(formats->names[i]), rows, 512), "mxfp4",
                              (fill)how, &r);
}

void pack_check_leading_dimensions(pack_check *check, const format_list *formats) {
    rng r = {3};
    for (size_t i = 0; i < formats->count; i++)
        for (uint32_t order = 0; order < 2; order++) {
            bsmm_matrix m = describe(format_named(formats->names[i]), 11, 94);
            m.order = order;
            m.ld = order ? 20 : 100;
            pack_check_matrix(check, m, "nvfp4", FILL_EXTREME, &r);
        }
}

void pack_check_scale_layouts(pack_check *check) {
    static const char *const scaled[] = {"mxfp4", "mxfp8", "nvfp4", "fp8_group128", "fp8_block128"};
    rng r = {4};
    for (size_t i = 0; i < BSMM_COUNT(scaled); i++)
        for (uint32_t layout = 0; layout < BSMM_LAYOUT_COUNT; layout++) {
            bsmm_matrix m = describe(format_named(scaled[i]), 39, 2100);
            m.scale_layout = layout;
            if (layout == BSMM_LAYOUT_TILE_CONTIGUOUS) m.scale_tile_rows = 7, m.scale_tile_cols = 5;
            pack_check_matrix(check, m, i % 2 ? "mxfp8" : "mxfp4", FILL_EXTREME, &r);
        }
}
