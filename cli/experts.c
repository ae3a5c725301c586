#include "experts.h"
#include "common.h"
#include <stdio.h>
#include <string.h>

static const char gate_up[] = ".experts.gate_up_proj", down[] = ".experts.down_proj";

/* Finds the weight whose name is that of `weight` with the ending `to` instead of `from`. Returns
 * false if the file has no such weight with the same number of matrices. */
static bool find_other(const bsmm_file *file, const bsmm_weight *weight, const char *from,
                       const char *to, bsmm_weight *other) {
    char name[512];
    uint64_t index;
    const int stem = (int)(strlen(weight->name) - strlen(from));
    if (snprintf(name, sizeof name, "%.*s%s", stem, weight->name, to) >= (int)sizeof name)
        return false;
    return !bsmm_file_weight_find(file, name, &index) && !bsmm_file_weight_at(file, index, other) &&
           other->batch == weight->batch;
}

cli_experts cli_experts_of(const bsmm_file *file, const bsmm_weight *weight) {
    bsmm_weight other = BSMM_INIT(bsmm_weight);
    const bool is_down = cli_ends_with(weight->name, down);
    if (!is_down && !cli_ends_with(weight->name, gate_up)) return CLI_EXPERTS_NONE;
    if (!find_other(file, weight, is_down ? down : gate_up, is_down ? gate_up : down, &other))
        return CLI_EXPERTS_NONE;
    const bsmm_weight *first = is_down ? &other : weight, *second = is_down ? weight : &other;
    /* The output of gate_up_proj has twice as many elements as the input of down_proj. */
    if (first->rows == 2 * second->cols && first->cols == second->rows) return CLI_EXPERTS_ROWS;
    if (first->cols == 2 * second->rows && first->rows == second->cols) return CLI_EXPERTS_COLUMNS;
    return CLI_EXPERTS_NONE;
}
