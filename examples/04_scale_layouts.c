/* Copies scales from the row-major layout, which quantizers write, to the layout nv_128x4, which
 * kernels read, and back. */
#include <bsmm.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The layout nv_128x4 pads the scales to tiles of 128 x 4 scales. These 200 x 6 scales do not fill
 * whole tiles. */
enum { ROWS = 200, COLS = 32 * 6 };

static uint8_t plain[ROWS * COLS / 32], back[ROWS * COLS / 32];

static int fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, bsmm_error_message());
    return 1;
}

int main(void) {
    for (size_t i = 0; i < sizeof plain; i++)
        plain[i] = (uint8_t)(i % 251 + 1);

    bsmm_matrix from = {sizeof from, .rows = ROWS, .cols = COLS, .scales = plain};
    if (bsmm_format_from_name("mxfp8", &from.format) != BSMM_OK) return fail("format");
    from.scale_layout = BSMM_LAYOUT_ROW_MAJOR;
    from.scale_bytes = sizeof plain;

    bsmm_matrix tiled = from;
    tiled.scale_layout = BSMM_LAYOUT_NV_128X4;
    /* bsmm_scale_bytes sets this size, because the layout nv_128x4 has padding. */
    tiled.scale_bytes = 0;
    if (bsmm_scale_bytes(&tiled, &tiled.scale_bytes) != BSMM_OK) return fail("size");
    tiled.scales = malloc(tiled.scale_bytes);
    if (bsmm_relayout_scales(&from, &tiled) != BSMM_OK) return fail("relayout");

    uint64_t offset;
    if (bsmm_scale_offset(&tiled, 150, 5, &offset) != BSMM_OK) return fail("offset");
    uint8_t moved = ((const uint8_t *)tiled.scales)[offset];
    printf("%zu scales take %llu bytes; the one of block (150, 5) lies at %llu\n", sizeof plain,
           (unsigned long long)tiled.scale_bytes, (unsigned long long)offset);

    bsmm_matrix to = from;
    to.scales = back;
    if (bsmm_relayout_scales(&tiled, &to) != BSMM_OK) return fail("relayout back");
    free(tiled.scales);
    int right = moved == plain[150 * (COLS / 32) + 5] && memcmp(plain, back, sizeof plain) == 0;
    puts(right ? "and all of them came back" : "some are lost");
    return right ? 0 : 1;
}
