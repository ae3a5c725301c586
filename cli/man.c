#include "common.h"
#include "generate.h"
#include "options.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Prints text with escapes for roff, because roff gives a meaning to '\' and '-' everywhere, and
 * to '.' and ''' at the start of a line. */
static void print_text(const char *text) {
    bool line_start = true;
    for (; *text; text++) {
        if (line_start && (*text == '.' || *text == '\'')) fputs("\\&", stdout);
        line_start = *text == '\n';
        if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '-')
            fputs("\\-", stdout);
        else
            putchar(*text);
    }
}

static void print_option(const cli_option *option) {
    puts(".TP");
    if (option->letter) printf("\\fB\\-%c\\fR%s", option->letter, option->name ? ", " : "");
    if (option->name) {
        fputs("\\fB\\-\\-", stdout);
        print_text(option->name);
        fputs("\\fR", stdout);
    }
    if (option->arg) printf("%s\\fI%s\\fR", option->name ? "=" : " ", option->arg);
    putchar('\n');
    char *help = cli_option_help(option);
    print_text(help);
    putchar('\n');
    free(help);
}

static void print_keys(const cli_command *command) {
    for (size_t table = 0; command->output[table]; table++) {
        puts(table ? ".PP\nKeys of the other objects:" : ".PP\nKeys of the JSON objects:");
        for (const cli_column *column = command->output[table]; column->key || column->title;
             column++) {
            if (!column->key) continue;
            printf(".TP\n\\fB");
            print_text(column->key);
            puts("\\fR");
            print_text(column->help);
            putchar('\n');
        }
    }
}

static void print_command(const cli_command *command) {
    printf(".SS bsmm %s [OPTION...] %s\n", command->name, command->args ? command->args : "");
    print_text(command->summary);
    puts(".");
    if (command->text) {
        puts(".PP");
        print_text(command->text);
        putchar('\n');
    }
    for (size_t i = 0; i < cli_option_count(command); i++)
        if (!command->options[i].hidden) print_option(&command->options[i]);
    print_keys(command);
    if (!command->examples) return;
    puts(".PP\nExamples:\n.PP\n.EX");
    print_text(command->examples);
    puts(".EE");
}

int cli_man(const char *template_path) {
    char line[1024];
    FILE *template = fopen(template_path, "r");
    if (!template) return cli_fail("%s: cannot be read", template_path);
    while (fgets(line, sizeof line, template)) {
        if (strcmp(line, "@COMMANDS@\n")) {
            fputs(line, stdout);
            continue;
        }
        for (int i = 0; cli_commands[i]; i++)
            print_command(cli_commands[i]);
    }
    fclose(template);
    return CLI_OK;
}
