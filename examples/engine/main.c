/* Loads a model, serves batches of 1 to 512 tokens and checks a row of each batch.
 *
 *   usage: bsmm_engine MODEL.safetensors [DEVICE [FORMAT]]
 * DEVICE is cpu by default. The program quantizes weights that the file stores unscaled to FORMAT,
 * which is mxfp4 by default. The last line of the output tells whether all errors are within their
 * bounds. */
#include "engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const int64_t batches[] = {1, 2, 3, 8, 16, 17, 64, 100, 128, 300, 512};
enum { BATCHES = sizeof batches / sizeof batches[0] };

static double seconds_now(void) {
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Fills a batch with bf16 numbers of magnitudes from 0.5 to 2, half of them negative. */
static void fill(uint16_t *values, int64_t count) {
    uint32_t state = 1;
    for (int64_t i = 0; i < count; i++) {
        state = state * 1664525 + 1013904223;
        values[i] = (uint16_t)(0x3F00 + (state >> 24) + (state >> 16 & 1) * 0x8000);
    }
}

/* Serves one batch of `rows` rows and checks the batch's last row. Rows of the buffer after it are
 * only padding. */
static bool serve(const engine *e, int64_t rows, const uint16_t *given, uint16_t *batch) {
    const int64_t hidden = e->products[ENGINE_UP].a.cols;
    memcpy(batch, given, (size_t)(rows * hidden) * sizeof *batch);
    const double start = seconds_now();
    if (!engine_serve(e, batch, rows)) return false;
    const double seconds = seconds_now() - start;
    const int64_t last = (rows - 1) * hidden;
    const double worst = engine_check(e, given + last, batch + last);
    printf("%5lld %6lld %12.1f %14.3f\n", (long long)rows, (long long)engine_class_rows(e, rows),
           seconds * 1e6, worst);
    return worst >= 0 && worst <= 1;
}

static bool serve_all(const engine *e) {
    const size_t count = (size_t)(ENGINE_MOST_ROWS * e->products[ENGINE_UP].a.cols);
    uint16_t *given = malloc(count * sizeof *given), *batch = malloc(count * sizeof *batch);
    bool good = given && batch;
    if (good) fill(given, (int64_t)count);
    printf("%5s %6s %12s %14s\n", "rows", "plan", "us", "error / bound");
    for (int i = 0; good && i < BATCHES; i++)
        good = serve(e, batches[i], given, batch);
    free(given);
    free(batch);
    return good;
}

static void describe(const engine *e) {
    const engine_product *up = &e->products[ENGINE_UP];
    printf("%d layers, hidden %lld, inner %lld, weights in %s on %s, %s, %s\n", e->layers,
           (long long)up->a.cols, (long long)up->d.cols, bsmm_format_name(up->b.format), e->device,
           e->any_rows ? "one plan for any number of rows" : "one plan per class of row counts",
           e->graphs ? "CUDA graphs" : "plain runs");
}

int main(int argc, char **argv) {
    static engine e; /* The struct is static, because it is too large for the stack. */
    e.device = argc > 2 ? argv[2] : "cpu";
    if (argc < 2 || argc > 4) {
        fprintf(stderr, "usage: %s MODEL.safetensors [DEVICE [FORMAT]]\n", argv[0]);
        return 2;
    }
    bool good = engine_load(&e, argv[1], argc > 3 ? argv[3] : "mxfp4") && engine_start(&e);
    if (good) describe(&e);
    good = good && serve_all(&e);
    engine_stop(&e);
    engine_free_weights(&e);
    puts(good ? "passed: every row that was checked is within its bound" : "failed");
    return good ? 0 : 1;
}
