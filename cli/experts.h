/* Recognises experts that are fused into one tensor of three dimensions, such as
 * model.layers.0.mlp.experts.gate_up_proj. Their names do not end with ".weight". */
#ifndef CLI_EXPERTS_H
#define CLI_EXPERTS_H

#include "command.h"

typedef enum cli_experts {
    /* CLI_EXPERTS_NONE: the weight is neither gate_up_proj nor down_proj of fused experts, or the
     * file has no second tensor (the other one of the two) of matching shape. */
    CLI_EXPERTS_NONE,
    /* CLI_EXPERTS_ROWS: the rows of a matrix are outputs, as in Mixtral and Qwen3-MoE. */
    CLI_EXPERTS_ROWS,
    /* CLI_EXPERTS_COLUMNS: each row of an expert's matrix belongs to one input of the layer, as in
     * gpt-oss and Llama 4. */
    CLI_EXPERTS_COLUMNS
} cli_experts;

/* Tells how a file stores the fused experts to which a weight belongs. The shapes of gate_up_proj
 * and down_proj together decide this. */
cli_experts cli_experts_of(const bsmm_file *file, const bsmm_weight *weight);

#endif
