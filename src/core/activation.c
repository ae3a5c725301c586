/* This file has the table of activation functions. Their formulas avoid sums in which nearly equal
 * numbers cancel, so that rounding in double causes an error of only a few units in the last place.
 * For example, 1 + erf(x) is computed as erfc(-x), and 1 + tanh(u) as 2 / (1 + exp(-2u)). */
#include "core/epilogue.h"

#include <math.h>

static double none(double x, double slope) {
    (void)slope;
    return x;
}

static double silu(double x, double slope) {
    return x / (1 + exp(-slope * x));
}

static double gelu(double x, double slope) {
    static const double sqrt_half = 0.70710678118654752440;
    (void)slope;
    return 0.5 * x * erfc(-x * sqrt_half);
}

static double gelu_tanh(double x, double slope) {
    static const double sqrt_2_over_pi = 0.79788456080286535588;
    (void)slope;
    return silu(x, 2 * sqrt_2_over_pi * (1 + 0.044715 * x * x));
}

/* Returns max(x, 0), and NaN if x is NaN. Every comparison with a NaN is false, so the expression
 * returns x itself if x is NaN. */
static double relu(double x, double slope) {
    (void)slope;
    return x < 0 ? 0 : x;
}

static double relu2(double x, double slope) {
    return relu(x, slope) * relu(x, slope);
}

#define SILU      "x / (1 + exp(-slope x))"
#define GELU      "x (1 + erf(x / sqrt(2))) / 2"
#define GELU_TANH "x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2"

static const bsmm_activation_row rows[] = {
    [BSMM_ACTIVATION_NONE] = {{.name = "none", .formula = "x", .source = "identity"}, none},
    [BSMM_ACTIVATION_SILU] =
        {{.name = "silu", .formula = SILU, .source = "torch.nn.functional.silu", .has_slope = 1},
         silu},
    [BSMM_ACTIVATION_GELU] =
        {{.name = "gelu", .formula = GELU, .source = "torch.nn.functional.gelu"}, gelu},
    [BSMM_ACTIVATION_GELU_TANH] = {{.name = "gelu_tanh",
                                    .formula = GELU_TANH,
                                    .source = "torch.nn.functional.gelu(approximate=\"tanh\")"},
                                   gelu_tanh},
    [BSMM_ACTIVATION_RELU] =
        {{.name = "relu", .formula = "max(x, 0)", .source = "torch.nn.functional.relu"}, relu},
    [BSMM_ACTIVATION_RELU2] =
        {{.name = "relu2", .formula = "max(x, 0)^2", .source = "Primer, arXiv 2109.08668"}, relu2},
    [BSMM_ACTIVATION_SWIGLU] = {{.name = "swiglu",
                                 .formula = SILU,
                                 .source = "arXiv 2002.05202; gpt_oss/torch/model.py",
                                 .is_gated = 1,
                                 .has_slope = 1},
                                silu},
    [BSMM_ACTIVATION_GEGLU] =
        {{.name = "geglu", .formula = GELU, .source = "arXiv 2002.05202", .is_gated = 1}, gelu},
    [BSMM_ACTIVATION_GEGLU_TANH] = {{.name = "geglu_tanh",
                                     .formula = GELU_TANH,
                                     .source = "transformers, Gemma's gelu_pytorch_tanh",
                                     .is_gated = 1},
                                    gelu_tanh},
};

const bsmm_activation_row *bsmm_activation_row_of(uint32_t activation) {
    return activation < BSMM_COUNT(rows) ? &rows[activation] : NULL;
}

/* Limits x to the range from `least` to `most`. A NaN stays NaN, as in torch.clamp. */
static double clamp(double x, double least, double most) {
    return x < least ? least : x > most ? most : x;
}

double bsmm_epilogue_activate(const bsmm_product_epilogue *epilogue, double gate, double up) {
    if (!epilogue->activation->info.is_gated)
        return epilogue->activation->apply(gate, epilogue->slope);
    double value =
        epilogue->activation->apply(clamp(gate, -INFINITY, epilogue->limit), epilogue->slope);
    return value * (clamp(up, -epilogue->limit, epilogue->limit) + epilogue->up_offset);
}

bsmm_status bsmm_activation_at(uint32_t index, bsmm_activation_info *info) {
    if (index >= BSMM_COUNT(rows))
        return bsmm_fail(BSMM_E_NOT_FOUND, "index: value is %u; there are %zu activations", index,
                         BSMM_COUNT(rows));
    bsmm_activation_info row = rows[index].info;
    row.activation = index;
    return bsmm_give_struct(info, &row, sizeof row, "info");
}
