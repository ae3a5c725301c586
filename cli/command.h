/* The description of a command: its options, its output columns and its function. --help, the man
 * page, the shell completion and the parser are all made from these descriptions. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <bsmm.h>
#include <stdbool.h>

enum { CLI_MOST_THREADS = 1024 }; /* the largest number of threads that the library accepts */

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2 }; /* exit statuses of the program */

/* The kinds of option values. The kind decides how the text is parsed, and the type of the field
 * that receives it. */
typedef enum cli_kind {
    CLI_FLAG,        /* the option has no value; field type: bool */
    CLI_TEXT,        /* field type: const char *; a word that `arg` allows (words.h) */
    CLI_OUTPUT,      /* field type: const char *; the name of an output file */
    CLI_SIZE,        /* field type: int64_t, at least 0 */
    CLI_THREADS,     /* field type: int64_t, from 0 to CLI_MOST_THREADS */
    CLI_NUMBER,      /* field type: double, finite */
    CLI_FORMAT,      /* field type: bsmm_format, from a format's name */
    CLI_FORMAT_PAIR, /* field type: cli_format_pair, from "A", "A:B" or "mixed" */
    CLI_RANGE,       /* field type: int64_t[2], from two words of the command line */
    CLI_LIST         /* field type: cli_list; the option may be repeated */
} cli_kind;

typedef struct cli_list {
    const char **items;
    size_t count;
} cli_list;

typedef struct cli_format_pair {
    const char *name; /* the pair as the user wrote it */
    bsmm_format a, b;
} cli_format_pair;

typedef struct cli_option {
    const char *name; /* long name of the option; NULL: the option has only a letter */
    int letter;       /* letter of the short option; 0: the option has only a long name */
    /* metavariable, such as "FORMAT", which stands for the value in the help and decides which
     * words are allowed (words.h); NULL for a CLI_FLAG */
    const char *arg;
    const char *help;
    cli_kind kind;
    /* offset of the field that receives the value, in the struct of the command's values */
    size_t offset;
    bool required, hidden;
} cli_option;

/* A column of a command's output. The output is either a table or JSON. */
typedef struct cli_column {
    const char *key;   /* key of the column in JSON; NULL: the column is only in the table */
    const char *title; /* heading of the column in the table; NULL: the column is only in JSON */
    bool right;        /* the column is right-aligned, as numbers are */
    const char *help;  /* description of the key for the man page */
} cli_column;

typedef struct cli_command {
    const char *name;
    const char *args;            /* words after the options, such as "FORMAT CODE..."; NULL: none */
    const char *summary;         /* summary of the command in one line */
    const char *text;            /* further paragraphs of the help; may be NULL */
    const char *examples;        /* example commands for the help, one per line */
    const cli_option *options;   /* options of the command; an empty entry ends the list */
    const cli_column *output[4]; /* columns of up to 4 tables; an empty entry ends each list */
    const void *defaults;        /* values of the options before parsing; NULL: all zero */
    size_t values_size;
    int min_args, max_args;      /* number of words that are not options; max_args -1: any number */
    bool takes_negative_numbers; /* a word such as "-0.5" is a number and not an option */
    /* Runs the command and returns an exit status. */
    int (*run)(const void *values, char **args, int count);
} cli_command;

#define CLI_OPTION_JSON(type) CLI_OPTION_JSON_AT(type, json)
#define CLI_OPTION_JSON_AT(type, field)                                                            \
    {                                                                                              \
        .name = "json", .help = "print one JSON object per line", .kind = CLI_FLAG,                \
        .offset = offsetof(type, field)                                                            \
    }
#define CLI_OPTION_THREADS(type)                                                                   \
    {                                                                                              \
        .name = "threads", .arg = "COUNT", .help = "threads to use; 0, the default, is all",       \
        .kind = CLI_THREADS, .offset = offsetof(type, threads)                                     \
    }

/* The words of the command line, as the user gave them. NULL ends the list. */
extern char **cli_command_line;

/* All commands, in the order of the help. NULL ends the list. */
extern const cli_command *const cli_commands[];
const cli_command *cli_command_find(const char *name);

/* Parses argv (argv[0] is "bsmm NAME") and runs the command. On a usage error it exits with status
 * 2. */
int cli_command_run(const cli_command *command, int argc, char **argv);

#endif
