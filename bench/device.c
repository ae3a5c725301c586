#include "device.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const bench_device_kind *const kinds[] = {
#define DEVICE(kind) &bench_device_##kind,
#include "devices.def"
#undef DEVICE
};

const bench_device_kind *bench_device_kind_at(size_t index) {
    return index < sizeof kinds / sizeof kinds[0] ? kinds[index] : NULL;
}

static bool has_name(const bench_device_kind *kind, const char *device) {
    const size_t length = strcspn(device, ":");
    return strlen(kind->name) == length && memcmp(kind->name, device, length) == 0;
}

static bool has_model(const bench_device_kind *kind, const char *device) {
    const char *model = strchr(device, ':');
    for (const char *at = model ? kind->models : NULL; at; at = strchr(at, '|')) {
        at += *at == '|';
        if (strncmp(model + 1, at, strcspn(at, "|")) == 0) return true;
    }
    return false;
}

/* If `text` begins with ":" and a model of this kind of device, as ":gfx950:1" does, returns the
 * text after the model. Otherwise returns NULL. */
static const char *after_model(const bench_device_kind *kind, const char *text) {
    for (const char *at = kind->models; *text == ':' && at; at = strchr(at, '|')) {
        at += *at == '|';
        const size_t length = strcspn(at, "|");
        const char *rest = text + 1 + length;
        if (!strncmp(text + 1, at, length) && (!*rest || *rest == ':')) return rest;
    }
    return NULL;
}

/* Tells whether a text is empty or ":NUMBER". The library accepts numbers of up to four digits,
 * and for the host only 0. */
static bool is_number(const bench_device_kind *kind, const char *text) {
    const size_t digits = strspn(text + (*text == ':'), "0123456789");
    if (!*text) return true;
    return *text == ':' && digits && digits <= 4 && !text[1 + digits] &&
           (!kind->is_host || strspn(text + 1, "0") == digits);
}

bool bench_device_is_name(const char *word) {
    const bench_device_kind *kind;
    for (size_t i = 0; (kind = bench_device_kind_at(i)); i++) {
        const char *rest = word + strlen(kind->name);
        if (!has_name(kind, word)) continue;
        if (kind->models) rest = after_model(kind, rest);
        if (rest && is_number(kind, rest)) return true;
    }
    return false;
}

const bench_device_kind *bench_device_kind_of(const char *device) {
    if (!device) return kinds[0];
    const bench_device_kind *kind, *found = kinds[0];
    for (size_t i = 1; (kind = bench_device_kind_at(i)); i++) {
        if (!has_name(kind, device)) continue;
        if (found == kinds[0] || has_model(kind, device)) found = kind;
    }
    return found;
}

const char *bench_device_time_note(const bench_device_kind *kind) {
    return kind->is_model ? " model" : kind->is_simulated ? " simulating" : "";
}

bool bench_device_find(const char *device, bsmm_local_device *info) {
    char name[sizeof info->name];
    bsmm_local_device row = *info;
    bool first = !strchr(device, ':') && !bench_device_kind_of(device)->is_host;
    snprintf(name, sizeof name, "%s%s", device, first ? ":0" : "");
    for (uint32_t i = 0; !bsmm_local_device_at(i, &row); i++) {
        if (strcmp(row.name, name) != 0) continue;
        *info = row;
        return true;
    }
    return false;
}

static char error[256];

const char *bench_device_error(void) {
    return error;
}

bool bench_device_fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start has just set it */
    vsnprintf(error, sizeof error, format, arguments);
    va_end(arguments);
    return false;
}

bench_device *bench_device_open(const char *name) {
    bench_device *device = calloc(1, sizeof *device);
    bench_device_fail("no memory");
    if (!device) return NULL;
    device->kind = bench_device_kind_of(name);
    device->state = device->kind->open(name);
    if (device->state) return device;
    free(device);
    return NULL;
}

void bench_device_close(bench_device *device) {
    if (!device) return;
    bench_device_reset(device);
    device->kind->close(device->state);
    free(device->memory);
    free(device);
}

void *bench_device_stream(const bench_device *device) {
    return device->kind->stream(device->state);
}

size_t bench_device_sets(const bench_device *device, uint64_t bytes) {
    if (device->kind->is_simulated) return 1;
    uint64_t sets = 4 * device->kind->cache_bytes(device->state) / (bytes + 1) + 1;
    return (size_t)(sets < 4 ? 4 : sets > 1024 ? 1024 : sets);
}

int bench_device_repeats(const bench_device *device, int wanted) {
    return device->kind->is_simulated ? 1 : wanted;
}

bool bench_device_allocate(bench_device *device, uint64_t bytes, void **memory) {
    *memory = NULL;
    if (bytes == 0) return true;
    void **grown = realloc(device->memory, (device->count + 1) * sizeof *grown);
    if (!grown) return bench_device_fail("no memory");
    device->memory = grown;
    if (!device->kind->allocate(device->state, bytes, memory)) return false;
    device->memory[device->count++] = *memory;
    return true;
}

/* Fills device memory with the byte 0x5A. A kernel that reads uninitialized memory then gives
 * visibly wrong results. */
static bool poison(bench_device *device, void *memory, uint64_t bytes) {
    static const uint8_t rest[3] = {0x5A, 0x5A, 0x5A};
    uint64_t words = bytes / 4;
    return device->kind->fill_words(device->state, memory, 0x5A5A5A5A, words) &&
           bench_device_wait(device) &&
           bench_device_write(device, (uint8_t *)memory + words * 4, rest, bytes % 4);
}

bool bench_device_new(bench_device *device, const void *from, uint64_t bytes, void **memory) {
    if (!bench_device_allocate(device, bytes, memory)) return false;
    return from ? bench_device_write(device, *memory, from, bytes) : poison(device, *memory, bytes);
}

/* A buffer begins with an operand of `bytes` bytes. The function copies this operand to sets - 1
 * further positions in the buffer. Each position is `stride` bytes after the one before. */
static bool spread(bench_device *device, void *memory, uint64_t bytes, uint64_t stride,
                   size_t sets) {
    bool done = true;
    for (size_t i = 1; i < sets && done && bytes; i++)
        done = device->kind->copy(device->state, (uint8_t *)memory + i * stride, memory, bytes);
    return done && bench_device_wait(device);
}

bool bench_device_new_sets(bench_device *device, const void *from, uint64_t bytes, uint64_t stride,
                           size_t sets, void **memory) {
    return bench_device_new(device, NULL, stride * sets, memory) &&
           bench_device_write(device, *memory, from, bytes) &&
           spread(device, *memory, bytes, stride, sets);
}

bool bench_device_write(bench_device *device, void *to, const void *from, uint64_t bytes) {
    return bytes == 0 || device->kind->write(device->state, to, from, bytes);
}

bool bench_device_read(bench_device *device, void *to, const void *from, uint64_t bytes) {
    return bytes == 0 || device->kind->read(device->state, to, from, bytes);
}

bool bench_device_fill_f32(bench_device *device, void *memory, float value, uint64_t count) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return device->kind->fill_words(device->state, memory, bits, count);
}

bool bench_device_wait(bench_device *device) {
    return device->kind->wait(device->state);
}

void bench_device_reset(bench_device *device) {
    bench_device_wait(device);
    for (size_t i = 0; i < device->count; i++)
        device->kind->release(device->state, device->memory[i]);
    device->count = 0;
    device->copies[0] = device->copies[1] = NULL;
}

static bool sizes_of(const bsmm_matrix *m, uint64_t *data, uint64_t *scales) {
    *scales = 0;
    if (!bsmm_data_bytes(m, data) && (!m->format.scale || !bsmm_scale_bytes(m, scales)))
        return true;
    return bench_device_fail("%s", bsmm_error_message());
}

bool bench_device_put(bench_device *device, const bsmm_matrix *host, bool copied,
                      bsmm_matrix *there) {
    uint64_t data, scales;
    void *global = NULL;
    *there = *host;
    if (device->kind->is_host) return true;
    bool done = sizes_of(host, &data, &scales) &&
                bench_device_new(device, copied ? host->data : NULL, data, &there->data) &&
                bench_device_new(device, copied ? host->scales : NULL, scales, &there->scales) &&
                (!host->global_scale || bench_device_new(device, copied ? host->global_scale : NULL,
                                                         sizeof *host->global_scale, &global));
    there->global_scale = global;
    return done;
}

bool bench_device_get(bench_device *device, const bsmm_matrix *there, const bsmm_matrix *host) {
    uint64_t data, scales;
    if (device->kind->is_host) return true;
    return bench_device_wait(device) && sizes_of(there, &data, &scales) &&
           bench_device_read(device, host->data, there->data, data) &&
           bench_device_read(device, host->scales, there->scales, scales) &&
           bench_device_read(device, host->global_scale, there->global_scale,
                             host->global_scale ? sizeof *host->global_scale : 0);
}
