/* SPDX-License-Identifier: Apache-2.0 */
#include "recipe_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

#define FOLDER BSMM_GOLDEN_DIR "/recipes/"

enum { CELLS = 15, LINE_BYTES = 1024, MOST_FILES = 16 };

static const char header[] = "case\trecipe\tformat\toptions\tdtype\trows\tcols\tsource\tfile\t"
                             "input_at\tdata_at\tdata_bytes\tscales_at\tscales_bytes\tglobal_at";

struct recipe_file {
    char name[32];
    uint8_t *bytes;
    size_t size;
};

static void inflate_into(struct recipe_file *file, gzFile from) {
    size_t room = 1 << 20;
    int got;
    file->bytes = malloc(room);
    assert_non_null(file->bytes);
    while ((got = gzread(from, file->bytes + file->size, (unsigned)(room - file->size))) > 0) {
        file->size += (size_t)got;
        if (file->size < room) continue;
        room *= 2;
        uint8_t *grown = realloc(file->bytes, room);
        assert_non_null(grown);
        file->bytes = grown;
    }
    if (got < 0 || gzclose(from) != Z_OK) fail_msg("%s: cannot be read", file->name);
}

static const struct recipe_file *file_named(recipe_cases *set, const char *name) {
    char path[512];
    for (size_t i = 0; i < set->file_count; i++)
        if (strcmp(set->files[i].name, name) == 0) return &set->files[i];
    assert_true(set->file_count < MOST_FILES);
    struct recipe_file *file = &set->files[set->file_count++];
    snprintf(file->name, sizeof file->name, "%s", name);
    snprintf(path, sizeof path, "%s%s", FOLDER, name);
    gzFile from = gzopen(path, "rb");
    if (!from) fail_msg("%s: cannot be opened", path);
    inflate_into(file, from);
    return file;
}

static const uint8_t *bytes_at(const struct recipe_file *file, const char *cell, size_t bytes) {
    size_t at = strtoull(cell, NULL, 10);
    if (at > file->size || bytes > file->size - at)
        fail_msg("%s: no %zu bytes at %s", file->name, bytes, cell);
    return file->bytes + at;
}

static void copy_cell(char *to, size_t size, const char *cell) {
    assert_true(*cell && strlen(cell) < size);
    strcpy(to, cell);
}

static void split(char *line, char *cells[CELLS]) {
    for (int i = 0; i < CELLS; i++) {
        cells[i] = line;
        char *tab = strchr(line, '\t');
        if ((tab == NULL) != (i == CELLS - 1)) fail_msg("manifest: a line has not %d cells", CELLS);
        if (!tab) return;
        *tab = 0;
        line = tab + 1;
    }
}

static void parse_case(recipe_cases *set, char *line, recipe_case *c) {
    char *cells[CELLS];
    split(line, cells);
    copy_cell(c->name, sizeof c->name, cells[0]);
    copy_cell(c->recipe, sizeof c->recipe, cells[1]);
    copy_cell(c->format, sizeof c->format, cells[2]);
    copy_cell(c->options, sizeof c->options, cells[3]);
    copy_cell(c->dtype, sizeof c->dtype, cells[4]);
    c->rows = strtoll(cells[5], NULL, 10);
    c->cols = strtoll(cells[6], NULL, 10);
    assert_true(c->rows > 0 && c->cols > 0);
    const struct recipe_file *file = file_named(set, cells[8]);
    size_t width = strcmp(c->dtype, "f32") == 0 ? 4 : 2;
    c->input = bytes_at(file, cells[9], width * (size_t)(c->rows * c->cols));
    c->data_bytes = strtoull(cells[11], NULL, 10);
    c->data = bytes_at(file, cells[10], c->data_bytes);
    c->scales_bytes = strtoull(cells[13], NULL, 10);
    c->scales = bytes_at(file, cells[12], c->scales_bytes);
    c->global = strcmp(cells[14], "-") == 0 ? NULL : bytes_at(file, cells[14], sizeof(float));
}

static int next_line(FILE *from, char line[LINE_BYTES]) {
    if (!fgets(line, LINE_BYTES, from)) return 0;
    size_t length = strlen(line);
    if (length == 0 || line[length - 1] != '\n') fail_msg("manifest: a line is cut or too long");
    line[length - 1] = 0;
    return 1;
}

recipe_cases recipe_cases_open(void) {
    recipe_cases set = {.files = calloc(MOST_FILES, sizeof(struct recipe_file))};
    char line[LINE_BYTES];
    FILE *from = fopen(FOLDER "manifest.tsv", "r");
    if (!from) fail_msg("%smanifest.tsv: cannot be opened", FOLDER);
    assert_non_null(set.files);
    if (!next_line(from, line) || strcmp(line, header) != 0) fail_msg("manifest: wrong header");
    while (next_line(from, line)) {
        if ((set.count & (set.count + 1)) == 0) {
            set.cases = realloc(set.cases, (2 * set.count + 2) * sizeof *set.cases);
            assert_non_null(set.cases);
        }
        parse_case(&set, line, &set.cases[set.count++]);
    }
    fclose(from);
    assert_true(set.count > 0);
    return set;
}

void recipe_cases_close(recipe_cases *set) {
    for (size_t i = 0; i < set->file_count; i++)
        free(set->files[i].bytes);
    free(set->files);
    free(set->cases);
}
