/* Sorts the tensors of a file by the addresses of their bytes. */
#include "io/io.h"

#include <stdlib.h>

typedef struct placed {
    const uint8_t *begin, *end;
    uint64_t index;
} placed;

static placed place_of(const bsmm_file *file, uint64_t index) {
    const uint8_t *begin = file->tensors[index].data;
    return (placed){begin, begin + file->tensors[index].bytes, index};
}

static int compare(const void *left, const void *right) {
    const placed *a = left, *b = right;
    if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
    if (a->end != b->end) return a->end < b->end ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

static bool is_ordered(const bsmm_file *file) {
    for (uint64_t i = 1; i < file->tensor_count; i++) {
        placed before = place_of(file, i - 1), here = place_of(file, i);
        if (compare(&before, &here) > 0) return false;
    }
    return true;
}

/* Sorts the tensors in place: it moves each tensor to its position along the cycles of the
 * permutation `order`. A sorted copy would need as much memory again, and a file may have a million
 * tensors. */
static void permute(bsmm_tensor *tensors, placed *order, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        bsmm_tensor first = tensors[i];
        uint64_t to = i, from = order[i].index;
        for (; from != i; to = from, from = order[to].index) {
            tensors[to] = tensors[from];
            order[to].index = to;
        }
        tensors[to] = first;
        order[to].index = to;
    }
}

bsmm_status bsmm_file_order(bsmm_file *file) {
    uint64_t count = file->tensor_count;
    if (is_ordered(file)) return BSMM_OK;
    placed *order = malloc(count * sizeof *order);
    if (!order) return bsmm_fail_memory();
    for (uint64_t i = 0; i < count; i++)
        order[i] = place_of(file, i);
    qsort(order, count, sizeof *order, compare);
    permute(file->tensors, order, count);
    free(order);
    return BSMM_OK;
}
