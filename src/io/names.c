/* Makes and searches lists of names that are sorted by name. */
#include "io/io.h"

#include <stdlib.h>
#include <string.h>

static int compare_names(const bsmm_name *a, const bsmm_name *b) {
    int order = strcmp(a->name, b->name);
    return order ? order : (a->index > b->index) - (a->index < b->index);
}

static bool is_sorted(const bsmm_name *names, uint64_t count) {
    for (uint64_t i = 1; i < count; i++)
        if (compare_names(&names[i - 1], &names[i]) > 0) return false;
    return true;
}

/* This struct holds a name together with 8 of its bytes as an integer, by which names are sorted.
 * The 8 bytes follow the prefix that all names of the list share. Most comparisons are decided by
 * the integer without reading the name. */
typedef struct sorted_name {
    uint64_t key; /* `key` has 8 bytes of the name, the first one most significant. */
    bsmm_name name;
} sorted_name;

static int compare_keys(const void *left, const void *right) {
    const sorted_name *a = left, *b = right;
    if (a->key != b->key) return a->key < b->key ? -1 : 1;
    return compare_names(&a->name, &b->name);
}

static size_t common_length(const bsmm_name *names, uint64_t count) {
    size_t common = strlen(names[0].name);
    for (uint64_t i = 1; i < count && common; i++) {
        size_t same = 0;
        while (same < common && names[i].name[same] == names[0].name[same])
            same++;
        common = same;
    }
    return common;
}

/* Returns the first 8 bytes of a text as a number. Bytes past the end of the text are 0. */
static uint64_t key_of(const char *text) {
    uint64_t key = 0;
    for (int i = 0; i < 8; i++) {
        key = key << 8 | (unsigned char)*text;
        text += *text != 0;
    }
    return key;
}

bsmm_status bsmm_names_sort(bsmm_name *names, uint64_t count) {
    if (count < 2 || is_sorted(names, count)) return BSMM_OK;
    sorted_name *sorted = malloc(count * sizeof *sorted);
    if (!sorted) return bsmm_fail_memory();
    size_t common = common_length(names, count);
    for (uint64_t i = 0; i < count; i++)
        sorted[i] = (sorted_name){key_of(names[i].name + common), names[i]};
    qsort(sorted, count, sizeof *sorted, compare_keys);
    for (uint64_t i = 0; i < count; i++)
        names[i] = sorted[i].name;
    free(sorted);
    return BSMM_OK;
}

/* Compares a candidate with the first `base` characters of `name` followed by `suffix`, as strcmp
 * would. The function does not allocate the joined text. */
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
