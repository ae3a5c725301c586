#include "rows.h"
#include "common.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t TITLES = SIZE_MAX;

/* A cell of the table that is not yet printed. `text` is the offset of its text, and `width` is the
 * width of the text on a terminal. */
typedef struct cell {
    size_t text, width;
} cell;

struct cli_rows {
    const cli_column *columns;
    size_t column_count;
    size_t column; /* `column` is the index of the next cell's column. */
    bool json, headed;
    bool collects;  /* `collects` is true if rows of JSON wait for cli_rows_flush. */
    json_t *object; /* `object` points to the JSON object of the row that is being built. */
    /* `texts` holds the texts of the table's cells that are not yet printed, each with its NUL. */
    char *texts;
    size_t text_bytes, text_capacity;
    cell *cells;
    size_t cell_count, cell_capacity;
    size_t *widths;
};

cli_rows *cli_rows_open(const cli_column *columns, bool json) {
    cli_rows *rows = cli_alloc(1, sizeof *rows);
    rows->columns = columns;
    rows->json = json;
    while (columns[rows->column_count].key || columns[rows->column_count].title)
        rows->column_count++;
    rows->widths = cli_alloc(rows->column_count, sizeof *rows->widths);
    return rows;
}

/* Prints a line of JSON. The function escapes the character DEL, which controls a terminal, because
 * jansson does not escape it. */
static void put_line(const char *line) {
    for (; *line; line++)
        if (*line == 0x7F)
            fputs("\\u007F", stdout);
        else
            putchar_unlocked(*line);
    putchar('\n');
}

/* Prints a row as JSON. Characters that control a terminal are written as JSON escapes. */
static void print_json(cli_rows *rows) {
    const size_t flags = JSON_COMPACT | JSON_PRESERVE_ORDER;
    char *line = json_dumps(rows->object, flags);
    if (line && !cli_is_printable(line)) {
        free(line);
        line = json_dumps(rows->object, flags | JSON_ENSURE_ASCII);
    }
    if (!line) exit(cli_fail("no memory for a row"));
    put_line(line);
    if (!rows->collects) fflush(stdout);
    free(line);
    json_decref(rows->object);
    rows->object = NULL;
}

/* Returns the width of a text on a terminal, assuming that each character takes one column. */
static size_t width_of(const char *text) {
    size_t width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xC0) != 0x80;
    return width;
}

static void store_cell(cli_rows *rows, const char *text) {
    size_t bytes = strlen(text) + 1;
    if (rows->cell_count == rows->cell_capacity) {
        rows->cell_capacity = rows->cell_capacity * 2 + 64;
        rows->cells = cli_realloc(rows->cells, rows->cell_capacity, sizeof *rows->cells);
    }
    if (bytes > rows->text_capacity - rows->text_bytes) {
        rows->text_capacity = rows->text_capacity * 2 + bytes;
        rows->texts = cli_realloc(rows->texts, rows->text_capacity, 1);
    }
    size_t width = width_of(cli_printable(memcpy(rows->texts + rows->text_bytes, text, bytes)));
    if (width > rows->widths[rows->column]) rows->widths[rows->column] = width;
    rows->cells[rows->cell_count++] = (cell){rows->text_bytes, width};
    rows->text_bytes += bytes;
}

void cli_row_cell(cli_rows *rows, json_t *value, const char *text) {
    const cli_column *column = &rows->columns[rows->column];
    if (rows->json && column->key) {
        if (!rows->object) rows->object = json_object();
        if (json_object_set_new(rows->object, column->key, value ? value : json_null()))
            exit(cli_fail("no memory for a row"));
    } else {
        json_decref(value);
    }
    if (!rows->json) store_cell(rows, text);
    rows->column = (rows->column + 1) % rows->column_count;
    if (!rows->column && rows->json) print_json(rows);
}

bool cli_rows_are_json(const cli_rows *rows) {
    return rows->json;
}

void cli_row_text(cli_rows *rows, const char *text) {
    json_t *value = rows->json && text ? json_string(text) : NULL;
    if (rows->json && text && !value)
        exit(cli_fail("a name is not UTF-8 and cannot be printed as JSON"));
    cli_row_cell(rows, value, text && *text ? text : "-");
}

void cli_row_integer(cli_rows *rows, int64_t value) {
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    cli_row_cell(rows, json_integer(value), text);
}

void cli_row_number(cli_rows *rows, double value, const char *format) {
    char text[64];
    snprintf(text, sizeof text, format, value);
    cli_row_cell(rows, isfinite(value) ? json_real(value) : NULL, text);
}

void cli_row_value(cli_rows *rows, json_t *value, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    cli_row_cell(rows, value, text);
}

/* Tells whether a column is shown. A column whose cells are all empty is left out. */
static bool is_shown(const cli_rows *rows, size_t i) {
    return rows->columns[i].title && rows->widths[i] > 0;
}

static void widen_for_titles(cli_rows *rows) {
    for (size_t i = 0; i < rows->column_count; i++) {
        size_t title = is_shown(rows, i) ? strlen(rows->columns[i].title) : 0;
        if (title > rows->widths[i]) rows->widths[i] = title;
    }
}

/* Prints one line of the table: the row that begins with the cell `first`, or the titles if `first`
 * is TITLES. The function prints blanks only when more text follows, so that no line ends with
 * blanks. */
static void print_line(const cli_rows *rows, size_t first) {
    int blanks = 0;
    for (size_t i = 0; i < rows->column_count; i++) {
        if (!is_shown(rows, i)) continue;
        const char *title = rows->columns[i].title;
        const bool is_title = first == TITLES;
        const char *text = is_title ? title : rows->texts + rows->cells[first + i].text;
        size_t width = is_title ? strlen(title) : rows->cells[first + i].width;
        int padding = (int)(rows->widths[i] - width);
        if (rows->columns[i].right) blanks += padding;
        for (; *text && blanks > 0; blanks--)
            putchar_unlocked(' ');
        fputs(text, stdout);
        blanks += rows->columns[i].right ? 2 : padding + 2;
    }
    putchar('\n');
}

void cli_rows_collect(cli_rows *rows) {
    rows->collects = true;
}

void cli_rows_flush(cli_rows *rows) {
    if (rows->json) fflush(stdout);
    if (rows->json || !rows->cell_count) return;
    if (!rows->headed) {
        widen_for_titles(rows);
        print_line(rows, TITLES);
    }
    rows->headed = true;
    for (size_t i = 0; i + rows->column_count <= rows->cell_count; i += rows->column_count)
        print_line(rows, i);
    rows->cell_count = rows->text_bytes = 0;
    fflush(stdout);
}

void cli_rows_close(cli_rows *rows) {
    cli_rows_flush(rows);
    free(rows->texts);
    free(rows->cells);
    free(rows->widths);
    free(rows);
}
