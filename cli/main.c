/* Runs the program bsmm. Each command is an entry of a table. The file cmd_NAME.c ends with the
 * entry of the command NAME. */
#include "common.h"
#include "generate.h"
#include "nearest.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COMMAND(name) extern const cli_command cli_##name;
#include "commands.def"
#undef COMMAND

#define COMMAND(name) &cli_##name,
const cli_command *const cli_commands[] = {
#include "commands.def"
    NULL,
};
#undef COMMAND

char **cli_command_line;

const cli_command *cli_command_find(const char *name) {
    for (int i = 0; cli_commands[i]; i++)
        if (!strcmp(cli_commands[i]->name, name)) return cli_commands[i];
    return NULL;
}

static int print_version(void) {
    uint32_t version = bsmm_version();
    printf("bsmm %u.%u.%u\n", version / 10000, version / 100 % 100, version % 100);
    return CLI_OK;
}

static int print_overview(void) {
    puts("Usage: bsmm COMMAND [OPTION...]\n"
         "Multiplies block-scaled matrices, converts formats and files, and measures speed.\n\n"
         "Commands:");
    for (int i = 0; cli_commands[i]; i++)
        printf("  %-11s %s\n", cli_commands[i]->name, cli_commands[i]->summary);
    puts("\n'bsmm COMMAND --help' describes a command; 'bsmm --version' tells the version.\n"
         "Exit status: 0 success, 1 the work failed, 2 wrong usage.");
    return CLI_OK;
}

static int no_command(void) {
    fputs("bsmm: no command given; 'bsmm help' lists the commands\n", stderr);
    return CLI_USAGE;
}

static int unknown_command(const char *word) {
    char text[128];
    cli_nearest nearest = {.word = word};
    snprintf(text, sizeof text, "%.100s", word);
    for (int i = 0; cli_commands[i]; i++)
        cli_nearest_try(&nearest, cli_commands[i]->name);
    fprintf(stderr, "bsmm: unknown command '%s'%s 'bsmm help' lists the commands\n",
            cli_printable(text), nearest.best ? cli_did_you_mean_this(&nearest, "").text : ";");
    return CLI_USAGE;
}

/* Runs a command. argv[0] becomes "bsmm NAME", because messages begin with it. */
static int run_command(int argc, char **argv) {
    const cli_command *command = cli_command_find(argv[0]);
    if (!command) return unknown_command(argv[0]);
    char name[64];
    snprintf(name, sizeof name, "bsmm %s", command->name);
    argv[0] = name;
    return cli_command_run(command, argc, argv);
}

static int help(int argc, char **argv) {
    char option[] = "--help";
    if (argc < 3) return print_overview();
    return run_command(2, (char *[]){argv[2], option, NULL});
}

static int dispatch(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "__complete")) return cli_complete(argc - 2, argv + 2);
    if (argc > 2 && !strcmp(argv[1], "__man")) return cli_man(argv[2]);
    if (argc < 2) return no_command();
    if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) return print_version();
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) return print_overview();
    if (!strcmp(argv[1], "help")) return help(argc, argv);
    return run_command(argc - 1, argv + 1);
}

/* Copies the words of the command line, because parsing changes the order of argv. */
static void keep_words(int argc, char **argv) {
    cli_command_line = cli_alloc((size_t)argc + 1, sizeof *cli_command_line);
    memcpy(cli_command_line, argv, (size_t)argc * sizeof *cli_command_line);
}

/* Ends the process with a failure if standard output could not take all that was printed. argp
 * calls exit after it has printed the help, so this check runs at every exit. */
static void check_output(void) {
    if (!fflush(stdout) && !ferror(stdout)) return;
    perror("bsmm: standard output");
    _exit(CLI_FAILED);
}

int main(int argc, char **argv) {
    if (atexit(check_output)) return CLI_FAILED;
    setenv("ARGP_HELP_FMT", "no-dup-args-note", 0);
    keep_words(argc, argv);
    int status = dispatch(argc, argv);
    free(cli_command_line);
    return status;
}
