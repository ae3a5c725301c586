/* Implements `bsmm dequantize`, which converts quantized weights of a file to f32, f16 or bf16. */
#include "common.h"
#include "device.h"
#include "fidelity.h"
#include "product.h"
#include "tables.h"
#include "transfer.h"

typedef struct values {
    cli_transfer_values transfer;
    const char *dtype, *device;
    bool fidelity;
    bench_device *opened;
} values;

static bool wants(const void *options, const bsmm_file *file, const bsmm_weight *weight) {
    (void)file;
    (void)options;
    return !cli_is_plain(weight->format) || cli_is_ggml(weight);
}

static bool describe(const void *arguments, const bsmm_file *file, const bsmm_weight *weight,
                     cli_target *target) {
    const values *options = arguments;
    bsmm_matrix plain = BSMM_INIT(bsmm_matrix);
    (void)file;
    plain.rows = weight->rows;
    plain.cols = weight->cols;
    target->matrix = plain;
    target->family = "plain";
    return !bsmm_format_from_name(options->dtype, &target->matrix.format);
}

static const char *fill_there(const values *options, const bsmm_matrix *source,
                              const bsmm_matrix *target) {
    bsmm_matrix from, to;
    bench_device *device = options->opened;
    bsmm_exec exec = BSMM_INIT(bsmm_exec);
    exec.device = options->device;
    exec.stream = bench_device_stream(device);
    if (!bench_device_put(device, source, true, &from) ||
        !bench_device_put(device, target, false, &to))
        return cli_option_message(bench_device_error());
    const char *why = cli_reason(bsmm_dequantize_on(&exec, &from, &to));
    if (!why && !bench_device_get(device, &to, target))
        why = cli_option_message(bench_device_error());
    bench_device_reset(device);
    return why;
}

static const char *fill(const void *arguments, const bsmm_matrix *source,
                        const bsmm_matrix *target) {
    const values *options = arguments;
    if (!options->opened->kind->is_host) return fill_there(options, source, target);
    return cli_reason(bsmm_dequantize(source, target));
}

static int run(const void *arguments, char **args, int count) {
    values options = *(const values *)arguments;
    (void)count;
    const cli_transfer transfer = {.verb = "dequantize",
                                   .participle = "dequantized",
                                   .values = &options.transfer,
                                   .options = &options,
                                   .wants = wants,
                                   .wants_quantized = true,
                                   .drops_inputs = true,
                                   .describe = describe,
                                   .fill = fill};
    options.opened = bench_device_open(options.device);
    if (!options.opened) return cli_fail("%s", cli_option_message(bench_device_error()));
    int status = cli_transfer_main(&transfer, args[0]);
    bench_device_close(options.opened);
    return status;
}

static const cli_option options[] = {
    CLI_OPTIONS_TRANSFER(values, "dequantize"),
    {.name = "dtype",
     .arg = "DTYPE",
     .help = "type of the plain weights, bf16 unless given",
     .kind = CLI_TEXT,
     .offset = offsetof(values, dtype)},
    CLI_OPTION_DEVICE(values),
    CLI_OPTION_FIDELITY(values),
    CLI_OPTION_JSON_AT(values, transfer.json),
    {0},
};

static const values defaults = {.dtype = "bf16"};

const cli_command cli_dequantize = {
    .name = "dequantize",
    .args = "IN",
    .summary = "Turn the quantized weights of a file into plain ones",
    .text =
        "Each value is exact, then rounded once to the type asked for. Plain f32, f16 and "
        "bf16 weights are copied as they are unless --include names them. GGUF's quantized types "
        "give the f32 values that ggml makes of them. A broken weight ends the work unless "
        "--exclude names it.",
    .examples = "  bsmm dequantize model.safetensors -o plain.safetensors --dtype bf16\n"
                "  bsmm dequantize model.gguf -o plain.safetensors --include '*.ffn_*'\n",
    .options = options,
    .output = {cli_transfer_columns, cli_fidelity_columns},
    .defaults = &defaults,
    .values_size = sizeof(values),
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
