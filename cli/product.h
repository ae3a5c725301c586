/* A product described by formats and sizes alone, without memory. */
#ifndef CLI_PRODUCT_H
#define CLI_PRODUCT_H

#include "command.h"

typedef struct cli_product {
    bsmm_matrix a, b, d;
    bsmm_matmul_desc desc; /* points to the three: the struct must not move */
} cli_product;

void cli_product_describe(cli_product *product, const cli_format_pair *formats,
                          const int64_t sizes[3], bsmm_format out);

/* The options -M, -N, -K of a struct with `int64_t sizes[3]`, all required. */
#define CLI_OPTION_SIZE(type, index, key, what)                                                    \
    {                                                                                              \
        .letter = key, .arg = "COUNT", .help = what, .kind = CLI_SIZE,                             \
        .offset = offsetof(type, sizes[index]), .required = true                                   \
    }
#define CLI_OPTION_SIZES(type)                                                                     \
    CLI_OPTION_SIZE(type, 0, 'M', "rows of A and D"),                                              \
        CLI_OPTION_SIZE(type, 1, 'N', "rows of B, columns of D"),                                  \
        CLI_OPTION_SIZE(type, 2, 'K', "columns of A and B")

#endif
