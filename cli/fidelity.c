/* Prints which instructions a command executed on a simulated GPU, and whether tests with kernels
 * of other projects execute them too. */
#include "fidelity.h"
#include "common.h"
#include "device.h"
#include "options.h"
#include "rows.h"
#include <inttypes.h>
#include <stdio.h>

const cli_column cli_fidelity_columns[] = {
    {"opcode", "opcode", false, "with --fidelity, an instruction that the simulated GPU executed"},
    {"executed", "executed", true, "how often warps or waves executed it"},
    {"vouched", "vouched for", false,
     "whether kernels of other projects, whose results are known, test it in the simulator"},
    {0},
};

/* Returns the field that receives the option `name` of the command, or NULL if the command has no
 * such option. */
static const void *field(const cli_command *command, const void *values, const char *name) {
    const cli_option *option = cli_option_find(command, name);
    return option ? (const char *)values + option->offset : NULL;
}

static bool is_set(const cli_command *command, const void *values, const char *name) {
    const bool *flag = field(command, values, name);
    return flag && *flag;
}

static void print_opcodes(const bench_device_kind *kind, bool json) {
    cli_rows *rows = cli_rows_open(cli_fidelity_columns, json);
    const char *opcode = NULL;
    uint64_t count = 0, all = 0, vouched = 0;
    int state;
    for (unsigned n = 0; (state = kind->get_opcode(n, &opcode, &count)) >= 0; n++) {
        cli_row_text(rows, opcode);
        cli_row_integer(rows, (int64_t)count);
        cli_row_text(rows, state ? "yes" : "no");
        all += count, vouched += state ? count : 0;
    }
    cli_rows_close(rows);
    if (!json && all)
        printf("\n%" PRIu64 " of %" PRIu64
               " executed instructions (%.2f%%) are vouched for by code of other projects.\n",
               vouched, all, 100 * (double)vouched / (double)all);
}

int cli_fidelity_run(const cli_command *command, const void *values, char **args, int count) {
    const bool wanted = is_set(command, values, "--fidelity"),
               json = is_set(command, values, "--json");
    if (!wanted) return command->run(values, args, count);
    const char *const *device = field(command, values, "--device");
    const bench_device_kind *kind = bench_device_kind_of(device ? *device : NULL);
    if (!kind->count_opcodes)
        return cli_usage(
            "--fidelity: value of --device is %.64s; must be a simulated GPU that counts "
            "instructions",
            device && *device ? *device : "cpu");
    kind->count_opcodes();
    const int status = command->run(values, args, count);
    if (status) return status;
    if (!json) putchar('\n');
    print_opcodes(kind, json);
    return CLI_OK;
}
