/* A command is one table row: its options, its output columns and its function. --help, the man
 * page, the completion and the parser are all made from these rows. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <bsmm.h>
#include <stdbool.h>

enum { CLI_MOST_THREADS = 1024 }; /* as the library takes them */

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2 }; /* exit statuses */

/* What an option's text becomes, and the type of the field that receives it. */
typedef enum cli_kind {
    CLI_FLAG,        /* bool */
    CLI_TEXT,        /* const char *; checked against the vocabulary of its metavariable */
    CLI_OUTPUT,      /* const char *; the name of a file to write */
    CLI_SIZE,        /* int64_t, 0 and more */
    CLI_THREADS,     /* int64_t, 0 to CLI_MOST_THREADS */
    CLI_NUMBER,      /* double, finite */
    CLI_FORMAT,      /* bsmm_format */
    CLI_FORMAT_PAIR, /* cli_format_pair */
    CLI_RANGE,       /* int64_t[2]: two words */
    CLI_LIST         /* cli_list: may be repeated */
} cli_kind;

typedef struct cli_list {
    const char **items;
    size_t count;
} cli_list;

typedef struct cli_format_pair {
    const char *name; /* as the user wrote it */
    bsmm_format a, b;
} cli_format_pair;

typedef struct cli_option {
    const char *name; /* long name; NULL: the letter only */
    int letter;       /* short name, or 0 */
    const char *arg;  /* metavariable, NULL for a flag; also names a vocabulary (words.h) */
    const char *help;
    cli_kind kind;
    size_t offset; /* of the field in the command's values */
    bool required, hidden;
} cli_option;

/* One column of a command's output: a key in JSON, a heading in the table. */
typedef struct cli_column {
    const char *key;   /* NULL: only in the table */
    const char *title; /* NULL: only in JSON */
    bool right;        /* numbers are aligned on the right */
    const char *help;  /* what the man page says of the key */
} cli_column;

typedef struct cli_command {
    const char *name;
    const char *args;            /* "IN", "FORMAT CODE..."; NULL: none */
    const char *summary;         /* one line */
    const char *text;            /* further paragraphs; may be NULL */
    const char *examples;        /* lines of commands */
    const cli_option *options;   /* ends with an empty row */
    const cli_column *output[4]; /* each ends with an empty row */
    const void *defaults;        /* the values before parsing; NULL: zeros */
    size_t values_size;
    int min_args, max_args;      /* words that are not options; max -1: any number */
    bool takes_negative_numbers; /* "-0.5" is a word, not an option */
    int (*run)(const void *values, char **args, int count); /* returns an exit status */
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

/* All commands, in the order of the help; ends with NULL. */
extern const cli_command *const cli_commands[];
const cli_command *cli_command_find(const char *name);

/* Parses argv (argv[0] is "bsmm NAME") and runs the command; exits with 2 on a usage error. */
int cli_command_run(const cli_command *command, int argc, char **argv);

#endif
