/* Describes a command, i.e. its options, its output columns and its function. The help, the man
 * page, the shell completion and the parser all use these descriptions. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <bsmm.h>
#include <stdbool.h>

/* CLI_MOST_THREADS is the largest number of threads that the library accepts. */
enum { CLI_MOST_THREADS = 1024 };

enum {
    CLI_OK = 0,
    CLI_FAILED = 1,
    CLI_USAGE = 2
}; /* These values are the exit statuses of the program. */

/* Lists the kinds of option values. The kind decides how the parser reads the text, and the type
 * of the field that receives the value. */
typedef enum cli_kind {
    CLI_FLAG, /* CLI_FLAG: the option has no value. Its field is a bool. */
    /* CLI_TEXT: the field is a const char *. The value is a word that `arg` allows (words.h). */
    CLI_TEXT,
    /* CLI_OUTPUT: the field is a const char *. The value is the name of an output file. */
    CLI_OUTPUT,
    CLI_SIZE, /* CLI_SIZE: the field is an int64_t. The value is at least 0. */
    /* CLI_THREADS: the field is an int64_t. The value is from 0 to CLI_MOST_THREADS. */
    CLI_THREADS,
    CLI_NUMBER, /* CLI_NUMBER: the field is a double. The value is finite. */
    CLI_FORMAT, /* CLI_FORMAT: the field is a bsmm_format. The value is the format's name. */
    /* CLI_WEIGHT_FORMAT: the field is a bsmm_format. The value is the name of a format of weights,
     * such as mxfp4, or fp8_tensor for one scale per weight (whole.h). */
    CLI_WEIGHT_FORMAT,
    /* CLI_FORMAT_PAIR: the field is a cli_format_pair. The value is "A", "A:B" or "mixed". */
    CLI_FORMAT_PAIR,
    /* CLI_RANGE: the field is an int64_t[2]. The values are two words of the command line. */
    CLI_RANGE,
    CLI_LIST /* CLI_LIST: the field is a cli_list. The user may repeat the option. */
} cli_kind;

typedef struct cli_list {
    const char **items;
    size_t count;
} cli_list;

typedef struct cli_format_pair {
    const char *name; /* `name` is the pair of formats as the user wrote it. */
    bsmm_format a, b;
} cli_format_pair;

typedef struct cli_option {
    /* `name` is the long name of the option, or NULL if the option has only a letter. */
    const char *name;
    /* `letter` is the letter of the short option, or 0 if the option has only a long name. */
    int letter;
    /* `arg` is a word such as "FORMAT", which stands for the value in the help and decides which
     * words are allowed (words.h). It is NULL for a CLI_FLAG. */
    const char *arg;
    const char *help;
    cli_kind kind;
    /* `offset` is the byte offset of the field that receives the value, in the struct of the
     * command's values. */
    size_t offset;
    bool required, hidden;
    bool lists_words; /* `lists_words` is true if the help lists the words that `arg` allows. */
} cli_option;

/* Describes a column of a command's output, which is a table or JSON. */
typedef struct cli_column {
    /* `key` is the column's key in JSON, or NULL if only the table has the column. */
    const char *key;
    /* `title` is the column's heading in the table, or NULL if only JSON has the column. */
    const char *title;
    /* `right` is true if the table aligns the column on the right, as for numbers. */
    bool right;
    const char *help; /* `help` is the description of the column for the man page. */
} cli_column;

typedef struct cli_command {
    const char *name;
    /* `args` holds the words after the options, such as "FORMAT CODE...", or NULL if there are
     * none. */
    const char *args;
    const char *summary;  /* `summary` is the summary of the command in one line. */
    const char *text;     /* `text` has further paragraphs of the help. It may be NULL. */
    const char *examples; /* `examples` has example commands for the help, one in each line. */
    /* `options` holds the options of the command. An empty entry ends the list. */
    const cli_option *options;
    /* Each entry of `output` lists the columns of one output table. NULL ends the list. */
    const cli_column *output[10];
    /* `defaults` points to the values of the options before parsing. NULL means that all are
     * zero. */
    const void *defaults;
    size_t values_size;
    /* `min_args` and `max_args` are the smallest and largest number of words that are not options.
     * A max_args of -1 means any number. */
    int min_args, max_args;
    /* If `takes_negative_numbers` is true, the parser reads a word such as "-0.5" as a number
     * instead of an option. */
    bool takes_negative_numbers;
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

/* `cli_command_line` holds the words of the command line as the user wrote them. NULL ends the
 * list. */
extern char **cli_command_line;

/* `cli_commands` has all commands, in the order of the help. NULL ends the list. */
extern const cli_command *const cli_commands[];
const cli_command *cli_command_find(const char *name);

/* Parses argv, whose first word is "bsmm NAME", and runs the command. On a usage error it exits
 * with status 2. */
int cli_command_run(const cli_command *command, int argc, char **argv);

#endif
