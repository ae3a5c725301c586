/* Lists sorted by name. */
#include "io/io.h"

#include <stdlib.h>
#include <string.h>

static int compare(const void *left, const void *right) {
    const bsmm_name *a = left, *b = right;
    int order = strcmp(a->name, b->name);
    return order ? order : (a->index > b->index) - (a->index < b->index);
}

void bsmm_names_sort(bsmm_name *names, uint64_t count) {
    if (count > 1) qsort(names, count, sizeof *names, compare);
}

/* As strcmp of the candidate with the joined name, which is never built. */
static int compare_joined(const char *candidate, const char *name, size_t base,
                          const char *suffix) {
    int order = strncmp(candidate, name, base);
    return order ? order : strcmp(candidate + base, suffix);
}

uint64_t bsmm_names_find(const bsmm_name *names, uint64_t count, const char *name, size_t base,
                         const char *suffix) {
    uint64_t low = 0, high = count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (compare_joined(names[middle].name, name, base, suffix) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool bsmm_name_is(const char *candidate, const char *name, size_t base, const char *suffix) {
    return compare_joined(candidate, name, base, suffix) == 0;
}
