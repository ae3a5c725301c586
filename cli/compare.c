#include "compare.h"
#include "compare_tensor.h"
#include "progress.h"
#include "shrink.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool cli_is_shared(const cli_difference *difference) {
    return difference->formats[0].text[0] && difference->formats[1].text[0];
}

/* Holds two models whose tensors are compared. The tensors of each model are sorted by name. */
typedef struct pairing {
    const bsmm_file *const *models;
    const char *const *paths;
    cli_model_tensors tensors[2];
    /* `pairs` has two pointers for each difference, to the compared tensors of the two models. A
     * pointer is NULL if its model has no tensor of this name. */
    const cli_model_tensor *(*pairs)[2];
} pairing;

static int order_of(const pairing *x, size_t first, size_t second) {
    if (first == x->tensors[0].count) return 1;
    if (second == x->tensors[1].count) return -1;
    return strcmp(x->tensors[0].items[first].name, x->tensors[1].items[second].name);
}

/* Matches the tensors of the two models that have the same name. */
static void pair_up(pairing *x, cli_differences *to) {
    const size_t most = x->tensors[0].count + x->tensors[1].count;
    size_t at[2] = {0, 0};
    x->pairs = cli_alloc(most, sizeof *x->pairs);
    to->items = cli_alloc(most, sizeof *to->items);
    while (at[0] < x->tensors[0].count || at[1] < x->tensors[1].count) {
        const int order = order_of(x, at[0], at[1]);
        cli_difference *item = &to->items[to->count];
        for (int i = 0; i < 2; i++) {
            if (i == 0 ? order > 0 : order < 0) continue;
            const cli_model_tensor *tensor = &x->tensors[i].items[at[i]++];
            x->pairs[to->count][i] = tensor;
            item->formats[i] = tensor->format;
            item->name = tensor->name;
        }
        to->shared += order == 0;
        to->count++;
    }
}

/* Checks the shapes of all pairs of tensors. The caller checks the shapes before it reads any
 * tensor, so that the command fails at once if the models do not match. */
static bool check_pairs(const pairing *x, const cli_differences *list) {
    for (size_t i = 0; i < list->count; i++) {
        const cli_model_tensor *const *pair = x->pairs[i];
        if (!cli_is_shared(&list->items[i]) || cli_same_shape(pair[0], pair[1])) continue;
        cli_fail("%s: its shape is %s in %s and %s in %s; both must be equal", list->items[i].name,
                 cli_shape_text(pair[0]).text, x->paths[0], cli_shape_text(pair[1]).text,
                 x->paths[1]);
        return false;
    }
    if (list->shared) return true;
    cli_fail("%s and %s have no tensor of the same name", x->paths[0], x->paths[1]);
    return false;
}

static uint64_t total_of(const pairing *x, const cli_differences *list) {
    uint64_t total = 0;
    for (size_t i = 0; i < list->count; i++)
        if (cli_is_shared(&list->items[i])) total += cli_element_count(x->pairs[i][0]);
    return total;
}

static bool compare_pairs(const pairing *x, uint32_t threads, cli_differences *list) {
    cli_progress progress = cli_progress_begin("compare", total_of(x, list));
    bool done = true;
    for (size_t i = 0; i < list->count && done; i++) {
        if (!cli_is_shared(&list->items[i])) continue;
        done = cli_compare_tensor(x->models, x->pairs[i], threads, &list->items[i]);
        if (!done) cli_fail_library(list->items[i].name);
        cli_progress_add(&progress, cli_element_count(x->pairs[i][0]));
    }
    cli_progress_end(&progress);
    return done && !cli_fail_shrunk();
}

/* Returns the number by which differences are sorted, so that the worst come first. It is the SQNR,
 * or minus infinity if the SQNR is NaN. For a tensor that only one model has, it is infinity. */
static double rank_of(const cli_difference *item) {
    if (!cli_is_shared(item)) return INFINITY;
    return isnan(item->sqnr_db) ? -INFINITY : item->sqnr_db;
}

static int compare_items(const void *left, const void *right) {
    const cli_difference *a = left, *b = right;
    if (cli_is_shared(a) != cli_is_shared(b)) return cli_is_shared(a) ? -1 : 1;
    if (rank_of(a) != rank_of(b)) return rank_of(a) < rank_of(b) ? -1 : 1;
    return strcmp(a->name, b->name);
}

bool cli_compare_models(const bsmm_file *const models[2], const char *const paths[2],
                        uint32_t threads, cli_differences *differences) {
    pairing x = {.models = models, .paths = paths};
    *differences = (cli_differences){0};
    bool done = true;
    for (int i = 0; i < 2 && done; i++)
        done = cli_model_tensors_list(models[i], paths[i], &x.tensors[i]);
    if (done) pair_up(&x, differences);
    done = done && check_pairs(&x, differences) && compare_pairs(&x, threads, differences);
    if (done) qsort(differences->items, differences->count, sizeof(cli_difference), compare_items);
    for (int i = 0; i < 2; i++)
        free(x.tensors[i].items);
    free(x.pairs);
    if (done) return true;
    free(differences->items);
    *differences = (cli_differences){0};
    return false;
}
