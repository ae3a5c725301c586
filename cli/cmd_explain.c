/* Implements `bsmm explain`, which shows for each kernel whether it accepts a product, and the
 * reason if it does not. */
#include "common.h"
#include "device.h"
#include "product.h"
#include "rows.h"
#include <string.h>

typedef struct values {
    cli_format_pair formats;
    int64_t sizes[3];
    bsmm_format out;
    const char *device;
    const char *packed;
    bool json, fast, all;
} values;

static const cli_column columns[] = {
    {"kernel", "kernel", false, "name of the kernel, in the order in which they are tried"},
    {"accepts", "accepts", false, "true or false; the first that accepts is taken"},
    {"bound", "bound", true,
     "largest error before the last rounding, as a multiple of |alpha| sum |a||b|; null: refuses"},
    {"packed_b_bytes", "packed B", true,
     "bytes of a packed B, of form wide unless --packed names another; 0: it takes B as it is "
     "stored; "
     "null: refuses"},
    {"workspace_bytes", "workspace", true,
     "bytes of workspace that a run needs; null: refuses, or no plan can be made"},
    {"reason", "reason", false, "why it refuses; empty if it accepts"},
    {0},
};

/* Tells whether the kernel runs on the device that the user named. A simulated GPU runs the
 * kernels of the real GPU. */
static bool is_requested(const values *options, const bsmm_explanation *kernel) {
    const char *device = options->device ? options->device : "cpu";
    const bench_device_kind *kind = bench_device_kind_of(options->device);
    if (kind->kernels) return strcmp(kernel->device, kind->kernels) == 0;
    const size_t length = strcspn(device, ":");
    return strlen(kernel->device) == length && !memcmp(kernel->device, device, length);
}

static void workspace_cell(cli_rows *rows, const bsmm_matmul_desc *desc, const char *kernel) {
    bsmm_matmul_desc forced = *desc;
    bsmm_plan *plan;
    forced.kernel = kernel;
    if (bsmm_plan_create(&forced, &plan) != BSMM_OK) {
        cli_row_text(rows, NULL);
        return;
    }
    const uint64_t bytes = bsmm_plan_workspace_bytes(plan);
    bsmm_plan_destroy(plan);
    cli_row_value(rows, json_integer((json_int_t)bytes), "%s",
                  cli_quantity((double)bytes, "B").text);
}

static void cost_cells(cli_rows *rows, const bsmm_matmul_desc *desc,
                       const bsmm_explanation *kernel) {
    double bytes = (double)kernel->packed_b_bytes;
    if (!kernel->accepts) {
        for (int i = 0; i < 3; i++)
            cli_row_text(rows, NULL);
        return;
    }
    cli_row_number(rows, kernel->bound, "%.2g");
    cli_row_value(rows, json_integer((json_int_t)kernel->packed_b_bytes), "%s",
                  kernel->packed_b_bytes ? cli_quantity(bytes, "B").text : "as stored");
    workspace_cell(rows, desc, kernel->kernel);
}

static void kernel_row(cli_rows *rows, const bsmm_matmul_desc *desc, const bsmm_explanation *kernel,
                       bool taken) {
    const char *accepts = taken ? "taken" : kernel->accepts ? "yes" : "no";
    cli_row_text(rows, kernel->kernel);
    cli_row_value(rows, json_boolean(kernel->accepts), "%s", accepts);
    cost_cells(rows, desc, kernel);
    cli_row_value(rows, json_string(kernel->reason), "%s", *kernel->reason ? kernel->reason : "-");
}

static int run(const void *arguments, char **args, int count) {
    const values *options = arguments;
    (void)args, (void)count;
    cli_product product;
    cli_product_describe(&product, &options->formats, options->sizes, options->out);
    product.desc.device = options->device;
    product.desc.b_packed = cli_packed_form(options->packed);
    product.desc.compute = options->fast ? BSMM_COMPUTE_FAST : BSMM_COMPUTE_EXACT;
    cli_rows *rows = cli_rows_open(columns, options->json);
    bsmm_explanation kernel = BSMM_INIT(bsmm_explanation);
    bsmm_status status;
    bool taken = false;
    for (uint32_t i = 0; !(status = bsmm_explain(&product.desc, i, &kernel)); i++) {
        bool first = kernel.accepts && !taken;
        taken |= first;
        if (options->all || is_requested(options, &kernel))
            kernel_row(rows, &product.desc, &kernel, first);
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
    CLI_OPTION_PACKED(values),
    CLI_OPTION_FAST(values),
    {.name = "all",
     .help = "list the kernels of other devices too",
     .kind = CLI_FLAG,
     .offset = offsetof(values, all)},
    CLI_OPTION_JSON(values),
    {0},
};

static const values defaults = {.out = {.elem = BSMM_ELEM_BF16}};

const cli_command cli_explain = {
    .name = "explain",
    .summary = "Say which kernel takes a product, and why each other one refuses",
    .text =
        "The command lists the kernels of the device in the order in which the library asks them; "
        "the "
        "first that accepts the product computes it. For each kernel that accepts, it prints the "
        "error bound, the bytes of a packed B and the bytes of workspace.",
    .examples = "  bsmm explain --format mxfp4 -M 512 -N 4096 -K 4096\n"
                "  bsmm explain --format bf16:nvfp4 -M 1 -N 4096 -K 4096 --out f32\n"
                "  bsmm explain --format bf16:mxfp4 -M 1 -N 4096 -K 4096 --packed compact\n",
    .options = options,
    .output = {columns},
    .defaults = &defaults,
    .values_size = sizeof(values),
    .run = run,
};
