/* bsmm explain: what each kernel says of a product. */
#include "common.h"
#include "product.h"
#include "rows.h"

typedef struct values {
    cli_format_pair formats;
    int64_t sizes[3];
    bsmm_format out;
    const char *device;
    bool json, fast;
} values;

static const cli_column columns[] = {
    {"kernel", "kernel", false, "name of the kernel, in the order in which they are tried"},
    {"accepts", "accepts", false, "true or false; the first that accepts is taken"},
    {"reason", "reason", false, "why it refuses; empty if it accepts"},
    {0},
};

static int run(const void *arguments, char **args, int count) {
    const values *options = arguments;
    (void)args, (void)count;
    cli_product product;
    cli_product_describe(&product, &options->formats, options->sizes, options->out);
    product.desc.device = options->device;
    product.desc.compute = options->fast ? BSMM_COMPUTE_FAST : BSMM_COMPUTE_EXACT;
    cli_rows *rows = cli_rows_open(columns, options->json);
    bsmm_explanation explanation = BSMM_INIT(bsmm_explanation);
    bsmm_status status;
    bool taken = false;
    for (uint32_t i = 0; !(status = bsmm_explain(&product.desc, i, &explanation)); i++) {
        bool first = explanation.accepts && !taken;
        taken |= first;
        cli_row_text(rows, explanation.kernel);
        cli_row_value(rows, json_boolean(explanation.accepts), "%s",
                      first                 ? "taken"
                      : explanation.accepts ? "yes"
                                            : "no");
        cli_row_value(rows, json_string(explanation.reason), "%s",
                      *explanation.reason ? explanation.reason : "-");
    }
    cli_rows_close(rows);
    if (status != BSMM_E_NOT_FOUND) return cli_fail_library(NULL);
    return taken ? CLI_OK : cli_fail("no kernel takes this product");
}

static const cli_option options[] = {
    CLI_OPTION_FORMATS(values),
    CLI_OPTION_SIZES(values),
    CLI_OPTION_OUT(values),
    CLI_OPTION_DEVICE(values),
    CLI_OPTION_FAST(values),
    CLI_OPTION_JSON(values),
    {0},
};

static const values defaults = {.out = {.elem = BSMM_ELEM_BF16}};

const cli_command cli_explain = {
    .name = "explain",
    .summary = "Say which kernel takes a product, and why each other one refuses",
    .examples = "  bsmm explain --format mxfp4 -M 512 -N 4096 -K 4096\n"
                "  bsmm explain --format bf16:nvfp4 -M 1 -N 4096 -K 4096 --out f32\n",
    .options = options,
    .output = {columns},
    .defaults = &defaults,
    .values_size = sizeof(values),
    .run = run,
};
