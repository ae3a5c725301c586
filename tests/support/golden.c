/* SPDX-License-Identifier: Apache-2.0 */
#include "golden.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

#ifndef BSMM_GOLDEN_DIR
#    error "define BSMM_GOLDEN_DIR as the path of tests/golden"
#endif

enum { CELLS = 8, LINE_MAX_BYTES = 1024 };
static const char header[] = "case\tkind\tformat\tmode\tsource\tcount\tinput\texpected";

static void *allocate(size_t count, size_t size) {
    void *memory = calloc(count + 1, size);
    if (memory == NULL) {
        fail_msg("golden: no memory for %zu values", count);
    }
    return memory;
}

static void copy_cell(char *to, size_t size, const char *cell, const char *path) {
    size_t length = strlen(cell);
    if (length == 0 || length >= size) {
        fail_msg("golden: %s: cell \"%s\" is empty or longer than %zu", path, cell, size - 1);
    }
    memcpy(to, cell, length + 1);
}

static size_t split_line(char *line, char *cells[CELLS]) {
    size_t count = 0;
    for (char *cell = line; cell != NULL && count <= CELLS; count++) {
        char *tab = strchr(cell, '\t');
        if (tab != NULL) {
            *tab++ = '\0';
        }
        if (count < CELLS) {
            cells[count] = cell;
        }
        cell = tab;
    }
    return count;
}

static void parse_line(char *line, const char *path, golden_case *c) {
    char *cells[CELLS] = {0};
    if (split_line(line, cells) != CELLS) {
        fail_msg("golden: %s: line \"%s\" has not %d cells", path, line, CELLS);
    }
    copy_cell(c->name, sizeof c->name, cells[0], path);
    copy_cell(c->kind, sizeof c->kind, cells[1], path);
    copy_cell(c->format, sizeof c->format, cells[2], path);
    copy_cell(c->mode, sizeof c->mode, cells[3], path);
    copy_cell(c->source, sizeof c->source, cells[4], path);
    copy_cell(c->input, sizeof c->input, cells[6], path);
    copy_cell(c->expected, sizeof c->expected, cells[7], path);
    c->count = (size_t)strtoull(cells[5], NULL, 10);
    if (c->count == 0) {
        fail_msg("golden: %s: %s: count is \"%s\"; must be positive", path, c->name, cells[5]);
    }
}

/* Reads the next line without its line end. Returns false at the end of the file. */
static int next_line(FILE *file, const char *path, char line[LINE_MAX_BYTES]) {
    if (fgets(line, LINE_MAX_BYTES, file) == NULL) {
        return 0;
    }
    size_t length = strlen(line);
    if (length == 0 || line[length - 1] != '\n') {
        fail_msg("golden: %s: a line is cut short or too long", path);
    }
    line[length - 1] = '\0';
    return 1;
}

golden_list golden_open(const char *name) {
    char path[512], line[LINE_MAX_BYTES];
    snprintf(path, sizeof path, "%s/data/%s.tsv", BSMM_GOLDEN_DIR, name);
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        fail_msg("golden: %s: cannot be opened", path);
    }
    if (!next_line(file, path, line) || strcmp(line, header) != 0) {
        fail_msg("golden: %s: its first line is not the header", path);
    }
    golden_list list = {0};
    while (next_line(file, path, line)) {
        golden_case *grown = realloc(list.cases, (list.count + 1) * sizeof *grown);
        if (grown == NULL) {
            fail_msg("golden: %s: no memory", path);
        }
        list.cases = grown;
        parse_line(line, path, &list.cases[list.count++]);
    }
    fclose(file);
    if (list.count == 0) {
        fail_msg("golden: %s: has no cases", path);
    }
    return list;
}

void golden_close(golden_list *list) {
    free(list->cases);
    *list = (golden_list){0};
}

const golden_case *golden_find(const golden_list *list, const char *name) {
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->cases[i].name, name) == 0) {
            return &list->cases[i];
        }
    }
    fail_msg("golden: no case \"%s\"", name);
    return NULL;
}

int64_t golden_param(const golden_case *c, const char *key) {
    size_t length = strlen(key);
    for (const char *at = c->mode; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, key, length) == 0 && at[length] == '=') {
            return strtoll(at + length + 1, NULL, 10);
        }
    }
    fail_msg("golden: %s: mode \"%s\" has no %s", c->name, c->mode, key);
    return 0;
}

static void read_bytes(const char *reference, uint8_t *to, size_t bytes) {
    char path[512], file_name[64];
    long long offset = 0;
    if (sscanf(reference, "%63[^@]@%lld", file_name, &offset) != 2) {
        fail_msg("golden: reference \"%s\" is not FILE@BYTE", reference);
    }
    snprintf(path, sizeof path, "%s/data/%s", BSMM_GOLDEN_DIR, file_name);
    gzFile file = gzopen(path, "rb");
    if (file == NULL) {
        fail_msg("golden: %s: cannot be opened", path);
    }
    z_off_t at = gzseek(file, (z_off_t)offset, SEEK_SET);
    int got = at == (z_off_t)offset ? gzread(file, to, (unsigned)bytes) : -1;
    gzclose(file);
    if (got < 0 || (size_t)got != bytes) {
        fail_msg("golden: %s: %d of %zu bytes at %lld", path, got, bytes, offset);
    }
}

uint32_t *golden_read(const char *reference, size_t width, size_t count) {
    uint8_t *bytes = allocate(count, width);
    uint32_t *values = allocate(count, sizeof *values);
    read_bytes(reference, bytes, count * width);
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < width; k++) {
            values[i] |= (uint32_t)bytes[i * width + k] << (8 * k);
        }
    }
    free(bytes);
    return values;
}

/* Returns the reference FILE@BYTE (file name and byte offset) from the input of a case. The input
 * has the form "f32:FILE@BYTE". */
static const char *reference_of(const golden_case *c) {
    const char *colon = strchr(c->input, ':');
    if (colon == NULL) {
        fail_msg("golden: %s: input \"%s\" has no reference", c->name, c->input);
        return "";
    }
    return colon + 1;
}

static double value_of_f32(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

static double *values_of_f32(const uint32_t *bits, size_t count) {
    double *values = allocate(count, sizeof *values);
    for (size_t i = 0; i < count; i++) {
        values[i] = value_of_f32(bits[i]);
    }
    return values;
}

static double *inputs_f16(const golden_list *list, const golden_case *c) {
    uint32_t *bits = golden_read(golden_find(list, "decode/f16")->expected, 4, c->count);
    double *values = values_of_f32(bits, c->count);
    free(bits);
    return values;
}

static double *inputs_bf16(const golden_list *list, const golden_case *c) {
    (void)list;
    double *values = allocate(c->count, sizeof *values);
    for (size_t i = 0; i < c->count; i++) {
        values[i] = value_of_f32((uint32_t)i << 16);
    }
    return values;
}

static double *inputs_f32(const golden_list *list, const golden_case *c) {
    (void)list;
    uint32_t *bits = golden_read(reference_of(c), 4, c->count);
    double *values = values_of_f32(bits, c->count);
    free(bits);
    return values;
}

static double *inputs_neighbours(const golden_list *list, const golden_case *c) {
    (void)list;
    uint32_t *bits = golden_read(reference_of(c), 4, c->count / 2);
    double *values = allocate(c->count, sizeof *values);
    for (size_t i = 0; i < c->count; i++) {
        values[i] = nextafter(value_of_f32(bits[i / 2]), i % 2 == 0 ? -INFINITY : INFINITY);
    }
    free(bits);
    return values;
}

static uint64_t splitmix64(uint64_t *state) {
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static int compare_u32(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static double *inputs_random(const golden_list *list, const golden_case *c) {
    (void)list;
    unsigned long long seed = 0;
    unsigned low = 0, high = 0;
    if (sscanf(c->input, "random:%llu:%u:%u", &seed, &low, &high) != 3 || high < low) {
        fail_msg("golden: %s: input \"%s\" is not random:SEED:LOW:HIGH", c->name, c->input);
    }
    uint32_t *bits = allocate(c->count, sizeof *bits);
    uint64_t state = seed;
    for (size_t i = 0; i < c->count; i++) {
        uint64_t z = splitmix64(&state);
        uint32_t top = (uint32_t)(z >> 32);
        uint32_t exponent = low + (top & 0x7FFFFFFFu) % (high - low + 1);
        bits[i] =
            i % 2 == 0 ? top : (top & 0x80000000u) | exponent << 23 | ((uint32_t)z & 0x7FFFFFu);
    }
    qsort(bits, c->count, sizeof *bits, compare_u32);
    double *values = values_of_f32(bits, c->count);
    free(bits);
    return values;
}

uint32_t *golden_input_codes(const golden_case *c, size_t count) {
    return golden_read(reference_of(c), 1, count);
}

static const struct {
    const char *name;
    double *(*make)(const golden_list *list, const golden_case *c);
} inputs[] = {
    {"f16", inputs_f16},       {"bf16", inputs_bf16},
    {"f32", inputs_f32},       {"neighbours", inputs_neighbours},
    {"random", inputs_random},
};

double *golden_inputs(const golden_list *list, const golden_case *c) {
    size_t length = strcspn(c->input, ":");
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
        if (strlen(inputs[i].name) == length && strncmp(inputs[i].name, c->input, length) == 0) {
            return inputs[i].make(list, c);
        }
    }
    fail_msg("golden: %s: unknown input \"%s\"", c->name, c->input);
    return NULL;
}
