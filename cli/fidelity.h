/* Declares the option --fidelity of commands that run on a device. On a simulated GPU it prints
 * which of the executed instructions code of other projects vouches for. */
#ifndef CLI_FIDELITY_H
#define CLI_FIDELITY_H

#include "command.h"

/* The command's values must have the field `bool fidelity`. */
#define CLI_OPTION_FIDELITY(type)                                                                  \
    {                                                                                              \
        .name = "fidelity",                                                                        \
        .help = "on a simulated GPU, tell which executed instructions are vouched for by code of " \
                "other projects",                                                                  \
        .kind = CLI_FLAG, .offset = offsetof(type, fidelity)                                       \
    }

extern const cli_column cli_fidelity_columns[];

/* Runs a command. If its option --fidelity is set, then prints the instructions that it executed.
 * Returns the exit status. */
int cli_fidelity_run(const cli_command *command, const void *values, char **args, int count);

#endif
