/* Declares the option --fidelity of commands that run on a device. On a simulated GPU it prints the
 * instructions that the command executed. For each instruction it tells whether tests of the
 * simulator with kernels of other projects execute the instruction too. */
#ifndef CLI_FIDELITY_H
#define CLI_FIDELITY_H

#include "command.h"

/* Defines the option --fidelity of a command. The struct of the command's options must have the
 * field `bool fidelity`. */
#define CLI_OPTION_FIDELITY(type)                                                                  \
    {                                                                                              \
        .name = "fidelity",                                                                        \
        .help = "on a simulated GPU, tell which executed instructions are vouched for by code of " \
                "other projects",                                                                  \
        .kind = CLI_FLAG, .offset = offsetof(type, fidelity)                                       \
    }

extern const cli_column cli_fidelity_columns[];

/* Runs a command and then, if the option --fidelity is set, prints the instructions that the
 * command executed. Returns the exit status. */
int cli_fidelity_run(const cli_command *command, const void *values, char **args, int count);

#endif
