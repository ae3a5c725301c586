/* Describes a product by formats and sizes only. Its matrices have no memory. */
#ifndef CLI_PRODUCT_H
#define CLI_PRODUCT_H

#include "command.h"

typedef struct cli_product {
    bsmm_matrix a, b, d;
    /* `desc` contains pointers to a, b and d of this struct, so a copy of the struct would be
     * invalid. */
    bsmm_matmul_desc desc;
} cli_product;

void cli_product_describe(cli_product *product, const cli_format_pair *formats,
                          const int64_t sizes[3], bsmm_format out);

/* Returns the packed format of weights (bsmm_packed_form) with this name, or BSMM_PACKED_NONE if
 * `name` is NULL. */
uint32_t cli_packed_form(const char *name);

/* Defines the options for formats and device. `type` is the struct that receives the values of a
 * command's options. It must have the fields `cli_format_pair formats`, `bsmm_format out`, `const
 * char *device` and `const char *packed`. */
#define CLI_OPTION_FORMATS(type)                                                                   \
    {                                                                                              \
        .name = "format", .letter = 'f', .arg = "FORMATS",                                         \
        .help = "formats of A and B: one for both, A:B, mixed or fp8_groupwise",                   \
        .kind = CLI_FORMAT_PAIR, .offset = offsetof(type, formats), .required = true               \
    }
#define CLI_OPTION_OUT(type)                                                                       \
    {                                                                                              \
        .name = "out", .arg = "FORMAT", .help = "format of D, bf16 unless given",                  \
        .kind = CLI_FORMAT, .offset = offsetof(type, out)                                          \
    }
#define CLI_OPTION_DEVICE(type)                                                                    \
    {                                                                                              \
        .name = "device", .arg = "DEVICE", .help = "device of this machine, cpu unless given",     \
        .kind = CLI_TEXT, .offset = offsetof(type, device)                                         \
    }
#define CLI_OPTION_PACKED(type)                                                                    \
    {                                                                                              \
        .name = "packed", .arg = "FORM",                                                           \
        .help = "B is packed in advance in this form: wide or compact", .kind = CLI_TEXT,          \
        .offset = offsetof(type, packed)                                                           \
    }
#define CLI_OPTION_FAST(type)                                                                      \
    {                                                                                              \
        .name = "fast", .help = "allow kernels with a wider error bound", .kind = CLI_FLAG,        \
        .offset = offsetof(type, fast)                                                             \
    }

/* Defines one of the required options -M, -N and -K. The command's values must have the field
 * `int64_t sizes[3]`. */
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
