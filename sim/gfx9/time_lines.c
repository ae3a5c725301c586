/* Sums the cycles in which waves wait by line of source. Instructions without a line count alone,
 * by their address and text. */
#include "lines.h"
#include "time_replay.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double total(const gfx9_hot *h) {
    double sum = 0;
    for (int cause = 0; cause < STALLS; cause++)
        sum += h->stalls[cause];
    return sum;
}

static int by_total(const void *a, const void *b) {
    const double x = total(a), y = total(b);
    return x != y ? (x < y) - (x > y)
                  : strcmp(((const gfx9_hot *)a)->place, ((const gfx9_hot *)b)->place);
}

static void add_stalls(gfx9_hot *all, size_t *count, const gfx9_hot *one) {
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

void gfx9_hottest(const gfx9_object *object, double (*stalls)[STALLS], gfx9_hot *to) {
    gfx9_hot *all = calloc(object->code_count + 1, sizeof *all);
    size_t count = 0;
    memset(to, 0, HOT_LINES * sizeof *to);
    for (uint32_t k = 0; all && k < object->code_count; k++) {
        const gfx9_inst *i = &object->code[k];
        gfx9_hot one;
        memcpy(one.stalls, stalls[k], sizeof one.stalls);
        if (total(&one) == 0) continue;
        if (!gfx9_line_of(object->lines, i->address, one.place, sizeof one.place))
            snprintf(one.place, sizeof one.place, "0x%llx %.40s", (unsigned long long)i->address,
                     i->text);
        add_stalls(all, &count, &one);
    }
    if (count) qsort(all, count, sizeof *all, by_total);
    if (count) memcpy(to, all, (count < HOT_LINES ? count : HOT_LINES) * sizeof *to);
    free(all);
}
