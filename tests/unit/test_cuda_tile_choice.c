/* Tests how the host chooses a tile and the number of parts of K (split-K) for GEMMs on Hopper. A
 * file has times that were measured on an H200. For each GEMM in it, the time of the choice must
 * not be much longer than the shortest time. The ratio of these two times, averaged over all GEMMs,
 * must be near 1. */
#include "cuda/host/wgmma.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_LINE = 160, MOST_WAYS = 64, LEAST_GEMMS = 150 };

/* These are limits for a quotient: the measured time of a GEMM as the library chooses to compute
 * it, divided by the shortest measured time of the GEMM. most_loss limits the quotient of each
 * GEMM, and most_mean_loss limits the mean over all GEMMs. */
static const double most_loss = 1.3, most_mean_loss = 1.03;

static const bsmm_cuda_device h200 = {.capability = 90, .multiprocessors = 132};

/* Describes one way to compute a GEMM, i.e. a tile and a way to split K, with its measured time in
 * us. */
typedef struct way {
    char tile[40];
    long long splits, whole;
    double time;
} way;

typedef struct gemm {
    char title[80];
    bsmm_product product;
    way ways[MOST_WAYS];
    int count;
} gemm;

static const bsmm_wgmma_tile *find_tile(const char *name) {
    const bsmm_wgmma_tile *t;
    for (size_t i = 0; (t = bsmm_wgmma_tile_at(i)); i++)
        if (strcmp(bsmm_wgmma_function(t)->name, name) == 0) return t;
    fail_msg("no tile %s", name);
    return NULL;
}

/* Returns the measured time of the tile and split of K that the host chooses, i.e. those with the
 * shortest estimated time. */
static double chosen_time(const gemm *g) {
    const bsmm_wgmma_tile *best = find_tile(g->ways[0].tile);
    for (int i = 1; i < g->count; i++) {
        const bsmm_wgmma_tile *t = find_tile(g->ways[i].tile);
        if (bsmm_wgmma_tile_cycles(&g->product, t) < bsmm_wgmma_tile_cycles(&g->product, best))
            best = t;
    }
    const bsmm_wgmma_deal deal = bsmm_wgmma_deal_of(&g->product, best);
    for (int i = 0; i < g->count; i++)
        if (find_tile(g->ways[i].tile) == best && g->ways[i].splits == deal.splits &&
            g->ways[i].whole == deal.whole)
            return g->ways[i].time;
    fail_msg("%s: %s, %lld parts, %lld whole tiles were not measured", g->title,
             bsmm_wgmma_function(best)->name, (long long)deal.splits, (long long)deal.whole);
    return 0;
}

static double fastest_time(const gemm *g) {
    double least = g->ways[0].time;
    for (int i = 1; i < g->count; i++)
        least = fmin(least, g->ways[i].time);
    return least;
}

static double loss_of(const gemm *g) {
    const double loss = chosen_time(g) / fastest_time(g);
    if (loss > most_loss) fail_msg("%s: %.2f of the fastest", g->title, loss);
    return loss;
}

static void begin(gemm *g, const char *line) {
    long long m, n, k;
    char a[40], b[40];
    *g = (gemm){.product.device = &h200};
    assert_int_equal(sscanf(line, "gemm %39s %39s %lld %lld %lld", a, b, &m, &n, &k), 5);
    snprintf(g->title, sizeof g->title, "%.*s", (int)strcspn(line, "\n"), line);
    g->product.a.m.cols = k;
    g->product.d.m.rows = m;
    g->product.d.m.cols = n;
}

static void add_way(gemm *g, const char *line) {
    assert_true(g->count < MOST_WAYS);
    way *w = &g->ways[g->count++];
    assert_int_equal(sscanf(line, "%39s %lld %lld %lf", w->tile, &w->splits, &w->whole, &w->time),
                     4);
    assert_true(w->time > 0);
}

static void test_losses(void **state) {
    (void)state;
    FILE *file = fopen(BSMM_GOLDEN_DIR "/data/h200_tiles.txt", "r");
    assert_non_null(file);
    char line[MOST_LINE];
    gemm g = {.count = 0};
    double sum = 0;
    int gemms = 0;
    while (fgets(line, sizeof line, file)) {
        if (line[0] == '#') continue;
        if (strncmp(line, "gemm ", 5) != 0) {
            add_way(&g, line);
            continue;
        }
        if (g.count) sum += log(loss_of(&g)), gemms++;
        begin(&g, line);
    }
    fclose(file);
    sum += log(loss_of(&g)), gemms++;
    assert_true(gemms >= LEAST_GEMMS);
    print_message("%d GEMMs: %.4f of the fastest ways\n", gemms, exp(sum / gemms));
    assert_true(exp(sum / gemms) <= most_mean_loss);
}

/* Tests FP8 groupwise GEMMs with a short and a long K. Their fastest tiles are known from separate
 * measurements (docs/notes/hopper-large.md, "FP8 groupwise, later changes"). */
static void test_known_tiles(void **state) {
    (void)state;
    static const struct {
        int64_t m, n, k;
        const char *tile;
    } known[] = {
        {1024, 7168, 256, "gemm_block_192x128_alone"},
        {6144, 7168, 256, "gemm_block_192x128_alone"},
        {6144, 7168, 512, "gemm_block_192x128"},
        {1024, 1536, 7168, "gemm_block_128x96"},
        {1024, 4608, 7168, "gemm_block_128x128"},
        {6144, 4608, 7168, "gemm_block_192x128"},
        {1024, 8192, 14336, "gemm_block_128x256"},
        {192, 4096, 7168, "gemm_block_64x96"},
        {256, 8192, 2048, "gemm_block_128x128_alone"},
        {512, 6144, 1536, "gemm_block_128x192"},
    };
    for (size_t i = 0; i < BSMM_COUNT(known); i++) {
        bsmm_product p = {.device = &h200};
        p.a.m.cols = known[i].k;
        p.d.m.rows = known[i].m;
        p.d.m.cols = known[i].n;
        const bsmm_wgmma_tile *t =
            bsmm_wgmma_choose(&p, BSMM_WGMMA_BLOCK, BSMM_ELEM_E4M3, BSMM_ELEM_E4M3);
        assert_string_equal(bsmm_wgmma_function(t)->name, known[i].tile);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_losses),
                                       cmocka_unit_test(test_known_tiles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
