#include "stored.h"

#include "format/format.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64];

static void remove_tree(const char *path) {
    char inside[512];
    DIR *entries = opendir(path);
    for (const struct dirent *entry; entries && (entry = readdir(entries));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        snprintf(inside, sizeof inside, "%s/%s", path, entry->d_name);
        if (remove(inside) != 0) remove_tree(inside);
    }
    if (entries) closedir(entries);
    remove(path);
}

static void remove_folder(void) {
    remove_tree(folder);
}

const char *temp_folder(void) {
    if (folder[0]) return folder;
    snprintf(folder, sizeof folder, "/tmp/bsmm-test-XXXXXX");
    assert_non_null(mkdtemp(folder));
    atexit(remove_folder);
    return folder;
}

const char *temp_path(const char *name) {
    static char paths[8][256];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", temp_folder(), name);
    return path;
}

void write_bytes(const char *path, const void *bytes, size_t count) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

void write_text(const char *path, const char *text) {
    write_bytes(path, text, strlen(text));
}

uint8_t *read_bytes(const char *path, size_t *count) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *count = (size_t)ftell(file);
    rewind(file);
    uint8_t *bytes = malloc(*count + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *count, file), *count);
    fclose(file);
    return bytes;
}

uint8_t *framed_bytes(const char *header, const void *body, size_t body_bytes, size_t *bytes) {
    size_t length = strlen(header);
    uint8_t *all = calloc(1, 8 + length + body_bytes + 1);
    assert_non_null(all);
    for (unsigned i = 0; i < 8; i++)
        all[i] = (uint8_t)((uint64_t)length >> (8 * i));
    memcpy(all + 8, header, length + 1);
    if (body) memcpy(all + 8 + length, body, body_bytes);
    *bytes = 8 + length + body_bytes;
    return all;
}

static size_t append_tensor(char *header, size_t room, const stored *t, size_t begin) {
    size_t used =
        (size_t)snprintf(header, room, "\"%s\":{\"dtype\":\"%s\",\"shape\":[", t->name, t->dtype);
    for (uint32_t i = 0; i < t->ndim; i++)
        used += (size_t)snprintf(header + used, room - used, "%s%lld", i ? "," : "",
                                 (long long)t->shape[i]);
    used += (size_t)snprintf(header + used, room - used, "],\"data_offsets\":[%zu,%zu]}", begin,
                             begin + t->bytes);
    return used;
}

uint8_t *safetensors_bytes(const stored *tensors, size_t count, const char *metadata,
                           size_t *bytes) {
    size_t room = 4096 + 512 * count + (metadata ? strlen(metadata) : 0), used = 1, body = 0;
    for (size_t i = 0; i < count; i++)
        room += strlen(tensors[i].name);
    char *header = malloc(room);
    assert_non_null(header);
    header[0] = '{';
    if (metadata)
        used += (size_t)snprintf(header + used, room - used, "\"__metadata__\":%s%s", metadata,
                                 count ? "," : "");
    for (size_t i = 0; i < count; i++) {
        used += append_tensor(header + used, room - used, &tensors[i], body);
        header[used++] = i + 1 < count ? ',' : ' ';
        body += tensors[i].bytes;
    }
    snprintf(header + used, room - used, "}");
    uint8_t *all = framed_bytes(header, NULL, body, bytes);
    uint8_t *at = all + *bytes - body;
    for (size_t i = 0; i < count; at += tensors[i++].bytes)
        if (tensors[i].data) memcpy(at, tensors[i].data, tensors[i].bytes);
    free(header);
    return all;
}

bsmm_file *open_stored(const stored *tensors, size_t count, const char *metadata) {
    size_t bytes;
    uint8_t *all = safetensors_bytes(tensors, count, metadata, &bytes);
    const char *path = temp_path("stored.safetensors");
    write_bytes(path, all, bytes);
    free(all);
    bsmm_file *file;
    if (bsmm_file_open(path, &file) != BSMM_OK) fail_msg("%s", bsmm_error_message());
    return file;
}

static void *allocate(uint64_t bytes) {
    void *memory = calloc(1, bytes + 1);
    assert_non_null(memory);
    return memory;
}

double *weight_values(const bsmm_file *file, uint64_t index, int64_t slice, bool unpack) {
    bsmm_weight weight = BSMM_INIT(bsmm_weight);
    bsmm_matrix m = BSMM_INIT(bsmm_matrix);
    bsmm_operand operand;
    void *data = NULL, *scales = NULL;
    if (bsmm_file_weight_at(file, index, &weight) || bsmm_weight_matrix(file, index, slice, &m))
        fail_msg("%s", bsmm_error_message());
    if (!weight.mapped || unpack) {
        m.data = data = allocate(m.data_bytes);
        if (m.format.scale != BSMM_SCALE_NONE) m.scales = scales = allocate(m.scale_bytes);
        if (bsmm_weight_unpack(file, index, slice, &m)) fail_msg("%s", bsmm_error_message());
    }
    if (bsmm_operand_take(&m, "weight", &operand)) fail_msg("%s", bsmm_error_message());
    double *values = allocate((uint64_t)(m.rows * m.cols) * sizeof *values);
    for (int64_t r = 0; r < m.rows; r++)
        bsmm_operand_decode_row(&operand, r, 0, m.cols, values + r * m.cols);
    free(data);
    free(scales);
    return values;
}

void expect_failure(bsmm_status got, bsmm_status status, const char *mentions) {
    const char *message = got == BSMM_OK ? "(no failure)" : bsmm_error_message();
    if (got != status || !strstr(message, mentions))
        fail_msg("expected %s with \"%s\", got %s: %s", bsmm_status_name(status), mentions,
                 bsmm_status_name(got), message);
}
