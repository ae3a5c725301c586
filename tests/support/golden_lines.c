#include "golden_lines.h"

#include "operand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_PATH = 512, MOST_LINE = 512, MOST_SHOWN = 10 };

/* `text` has a line break, followed by the lines of the file, so that the first line, too, has a
 * line break before it. If the test writes the file anew, the lines are those that it has written
 * so far. */
static char *text;
static size_t text_bytes, text_room;
static FILE *output; /* `output` is the file if it is written. */
static int differences;

static void append(const char *more) {
    const size_t bytes = strlen(more) + 1;
    if (text_bytes + bytes > text_room) {
        text_room = 2 * (text_bytes + bytes);
        text = realloc(text, text_room);
        assert_non_null(text);
    }
    memcpy(text + text_bytes, more, bytes);
    text_bytes += bytes - 1;
}

static void read_text(const char *path) {
    char line[MOST_LINE];
    FILE *const file = fopen(path, "rb");
    if (!file) fail_msg("%s is missing", path);
    while (fgets(line, sizeof line, file))
        append(line);
    fclose(file);
}

void golden_lines_open(const char *name) {
    char path[MOST_PATH];
    snprintf(path, sizeof path, "%s/choices/%s.txt", BSMM_GOLDEN_DIR, name);
    differences = 0;
    output = getenv("BSMM_TEST_WRITE") ? fopen(path, "wb") : NULL;
    text = NULL;
    text_bytes = text_room = 0;
    append("\n");
    if (!output) read_text(path);
}

void golden_lines_check(const char *name, const char *found, const char *about) {
    char key[MOST_PATH], line[MOST_LINE];
    snprintf(key, sizeof key, "\n%s\t", name);
    snprintf(line, sizeof line, "%s\t%s\n", name, found);
    const char *const at = strstr(text, key);
    if (at && strncmp(at + 1, line, strlen(line)) == 0) return;
    if (output && !at) {
        append(line);
        fputs(line, output);
        return;
    }
    const char *const wanted = at ? at + strlen(key) : "nothing";
    if (differences++ < MOST_SHOWN)
        print_error("%s: %s: found %s; the file has %.*s\n", name, about, found,
                    (int)strcspn(wanted, "\n"), wanted);
}

void golden_lines_close(void) {
    if (output) fclose(output);
    free(text);
    output = NULL, text = NULL;
    if (differences)
        fail_msg("%d cases differ from tests/golden/choices (README.md there says when to write it "
                 "again)",
                 differences);
}
