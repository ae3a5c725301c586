/* A command is one row of a table: its options, its output columns and its function. --help, the
 * man page, the completion and the parser are all made from these rows. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <bsmm.h>
#include <stdbool.h>

enum { CLI_MOST_THREADS = 1024 }; /* the largest number of threads that the library accepts */

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2 }; /* exit statuses of the program */

/* The kinds of option values. The kind decides how the text is parsed, and the type of the field
 * that receives it. */
typedef enum cli_kind {
    CLI_FLAG,        /* field type: bool; the option has no value */
    CLI_TEXT,        /* const char *; a word of the metavariable's vocabulary */
    CLI_OUTPUT,      /* const char *; the name of an output file */
    CLI_SIZE,        /* field type: int64_t, at least 0 */
    CLI_THREADS,     /* field type: int64_t, from 0 to CLI_MOST_THREADS */
    CLI_NUMBER,      /* field type: double, finite */
    CLI_FORMAT,      /* field type: bsmm_format, from a format's name */
    CLI_FORMAT_PAIR, /* field type: cli_format_pair, from "A", "A:B" or "mixed" */
    CLI_RANGE,       /* int64_t[2], from two words of the command line */
    CLI_LIST         /* field type: cli_list; the option may be repeated */
} cli_kind;

typedef struct cli_list {
    const char **items;
    size_t count;
} cli_list;

typedef struct cli_format_pair {
    const char *name; /* the format as the user wrote it */
    bsmm_format a, b;
} cli_format_pair;

typedef struct cli_option {
    const char *name; /* long name of the option; NULL: it has only a letter */
    int letter;       /* letter of the short option, or 0 */
    const char *arg;  /* metavariable, which names a vocabulary (words.h); NULL for a flag */
    const char *help;
    cli_kind kind;
    size_t offset; /* offset of the field in the command's values */
    bool required, hidden;
} cli_option;

/* A column of a command's output: a key in JSON and a heading in the table. */
typedef struct cli_column {
    const char *key;   /* key of the column in JSON; NULL: it is only in the table */
    const char *title; /* heading in the table; NULL: only in JSON */
    bool right;        /* the column is aligned on the right, as numbers are */
    const char *help;  /* description of the key for the man page */
} cli_column;

typedef struct cli_command {
    const char *name;
    const char *args;            /* words after the options, such as "FORMAT CODE..."; NULL: none */
    const char *summary;         /* summary of the command in one line */
    const char *text;            /* further paragraphs of the help; may be NULL */
    const char *examples;        /* example commands for the help, one a line */
    const cli_option *options;   /* options of the command; an empty row ends them */
    const cli_column *output[4]; /* columns of up to 4 tables; an empty row ends each */
    const void *defaults;        /* values before parsing; NULL: all zero */
    size_t values_size;
    int min_args, max_args;      /* number of words that are not options; max -1: any number */
    bool takes_negative_numbers; /* a word such as "-0.5" is a number, not an option */
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

/* All commands, in the order of the help. NULL ends the list. */
extern const cli_command *const cli_commands[];
const cli_command *cli_command_find(const char *name);

/* Parses argv (argv[0] is "bsmm NAME") and runs the command. On a usage error it exits with status
 * 2. */
int cli_command_run(const cli_command *command, int argc, char **argv);

#endif
