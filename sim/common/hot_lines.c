/* For each line of source, adds up the cycles in which waves wait there. */
#include "clock.h"
#include <stdlib.h>
#include <string.h>

static double total(const sim_hot *h) {
    double sum = 0;
    for (int cause = 0; cause < STALLS; cause++)
        sum += h->stalls[cause];
    return sum;
}

static int by_total(const void *a, const void *b) {
    const double x = total(a), y = total(b);
    return x != y ? (x < y) - (x > y)
                  : strcmp(((const sim_hot *)a)->place, ((const sim_hot *)b)->place);
}

static void add_stalls(sim_hot *all, size_t *count, const sim_hot *one) {
    size_t k = 0;
    while (k < *count && strcmp(all[k].place, one->place) != 0)
        k++;
    if (k == *count) {
        all[(*count)++] = *one;
        return;
    }
    for (int cause = 0; cause < STALLS; cause++)
        all[k].stalls[cause] += one->stalls[cause];
}

void sim_hottest(const void *code, size_t count, sim_place *place, double (*stalls)[STALLS],
                 sim_hot *to) {
    sim_hot *all = calloc(count + 1, sizeof *all);
    size_t places = 0;
    memset(to, 0, HOT_LINES * sizeof *to);
    for (size_t k = 0; all && k < count; k++) {
        sim_hot one;
        memcpy(one.stalls, stalls[k], sizeof one.stalls);
        if (total(&one) == 0) continue;
        place(code, k, one.place, sizeof one.place);
        add_stalls(all, &places, &one);
    }
    if (places) qsort(all, places, sizeof *all, by_total);
    if (places) memcpy(to, all, (places < HOT_LINES ? places : HOT_LINES) * sizeof *to);
    free(all);
}
