/* This file has the table of backends, i.e. of the drivers for kinds of devices (CPU, CUDA, HIP,
 * simulators). It also has the functions that find a backend and a device by a name such as
 * "cuda:0". */
#include "base/threads.h"
#include "core/describe.h"

#include <stdio.h>
#include <string.h>

#define BACKEND(name) extern const bsmm_backend bsmm_backend_##name;
#include "core/backends.def"
#undef BACKEND

static const bsmm_backend *const backends[] = {
#define BACKEND(name) &bsmm_backend_##name,
#include "core/backends.def"
#undef BACKEND
};

const bsmm_backend *bsmm_backend_at(uint32_t index) {
    return index < BSMM_COUNT(backends) ? backends[index] : NULL;
}

/* Parses the end of a device's name: "" is number 0, and ":12" is number 12. A number has at most 4
 * digits. */
static bool take_number(const char *text, uint32_t *number) {
    *number = 0;
    if (!*text) return true;
    if (*text++ != ':') return false;
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 4 || text[digits]) return false;
    for (size_t i = 0; i < digits; i++)
        *number = *number * 10 + (uint32_t)(text[i] - '0');
    return true;
}

static uint32_t count_models(const bsmm_backend *b) {
    uint32_t count = 0;
    while (b->models && b->models[count])
        count++;
    return count;
}

/* Parses the end of a simulator's name, such as ":gfx950" (number 0) or ":gfx950:12" (number 12).
 * *ordinal becomes number * (count of models) + index of the model. */
static bool take_model(const bsmm_backend *b, const char *text, uint32_t *ordinal) {
    const uint32_t count = count_models(b);
    uint32_t number;
    for (uint32_t i = 0; i < count; i++) {
        const size_t length = strlen(b->models[i]);
        if (*text != ':' || strncmp(text + 1, b->models[i], length) != 0) continue;
        if (!take_number(text + 1 + length, &number)) continue;
        *ordinal = number * count + i;
        return true;
    }
    return false;
}

static bool has_name(const bsmm_backend *b, const char *device) {
    const size_t length = strcspn(device, ":");
    return strlen(b->name) == length && memcmp(b->name, device, length) == 0;
}

/* Parses the part of a device's name after the name of its backend, such as ":1" in "cuda:1". */
static bool take_ordinal(const bsmm_backend *b, const char *device, uint32_t *ordinal) {
    const char *rest = device + strlen(b->name);
    return b->models ? take_model(b, rest, ordinal) : take_number(rest, ordinal);
}

const bsmm_backend *bsmm_backend_of(const char *device) {
    const bsmm_backend *found = NULL;
    uint32_t ordinal;
    for (size_t i = 0; i < BSMM_COUNT(backends); i++) {
        if (!has_name(backends[i], device)) continue;
        if (!found || take_ordinal(backends[i], device, &ordinal)) found = backends[i];
    }
    return found;
}

/* Writes a list such as "sim:gfx950, sim:sm_100" to to[size]: the names of all devices of the
 * simulator backends that are called `name`. */
static void list_models(const char *name, char *to, size_t size) {
    size_t at = 0;
    *to = 0;
    for (size_t i = 0; i < BSMM_COUNT(backends); i++)
        for (uint32_t k = 0; backends[i]->models && backends[i]->models[k] && at < size; k++)
            if (strcmp(backends[i]->name, name) == 0)
                at += (size_t)snprintf(to + at, size - at, "%s%s:%s", at ? ", " : "", name,
                                       backends[i]->models[k]);
}

static bsmm_status fail_name(const bsmm_backend *b, const char *name) {
    if (!b->models)
        return bsmm_fail(BSMM_E_INVALID, "device: value is \"%.64s\"; must be %s or %s:NUMBER",
                         name, b->name, b->name);
    char models[160];
    list_models(b->name, models, sizeof models);
    return bsmm_fail(
        BSMM_E_INVALID,
        "device: value is \"%.64s\"; must be one of %s, with :NUMBER for more than one", name,
        models);
}

bsmm_status bsmm_device_open(const char *name, const bsmm_backend **backend, const void **device) {
    uint32_t ordinal;
    *device = NULL;
    *backend = bsmm_backend_of(name);
    if (!*backend)
        return bsmm_fail(BSMM_E_UNSUPPORTED,
                         "device: value is \"%.64s\"; no kernel here runs on it", name);
    if (!take_ordinal(*backend, name, &ordinal)) return fail_name(*backend, name);
    return (*backend)->open(ordinal, device);
}

bsmm_status bsmm_place_take(const bsmm_exec *exec, bsmm_place *place) {
    bsmm_exec copy = {0};
    if (exec) BSMM_TRY(bsmm_take_struct(&copy, sizeof copy, exec, "exec"));
    *place = (bsmm_place){.stream = copy.stream, .threads = bsmm_thread_count(copy.threads)};
    BSMM_TRY(bsmm_pool_take(copy.pool, &place->pool));
    return bsmm_device_open(copy.device ? copy.device : "cpu", &place->backend, &place->device);
}

static bsmm_status check_buffer(const bsmm_place *place, const void *pointer, const char *operand,
                                const char *field, uint32_t alignment, const char *who) {
    char what[64];
    /* NULL is accepted here. Another check refuses NULL for a buffer that the run needs. */
    if (!pointer) return BSMM_OK;
    bool aligned = !alignment || bsmm_is_aligned(pointer, alignment);
    /* The function formats the buffer's name only for a message. For a small product on a GPU,
     * formatting the names of all buffers would take as long as the launch of a kernel. */
    if (aligned && (place->backend->host_memory ||
                    place->backend->check_pointer(place->device, pointer, field) == BSMM_OK))
        return BSMM_OK;
    snprintf(what, sizeof what, "%s.%s", operand, field);
    if (!aligned)
        return bsmm_fail(BSMM_E_INVALID, "%s: value is %p; %s needs it aligned to %u bytes", what,
                         pointer, who, alignment);
    return place->backend->check_pointer(place->device, pointer, what);
}

bsmm_status bsmm_place_check(const bsmm_place *place, const bsmm_operand *o, const char *what,
                             uint32_t alignment, const char *who) {
    const void *data = o->data_bytes ? o->m.data : NULL;
    const void *scales = o->scale_bytes ? o->m.scales : NULL;
    BSMM_TRY(bsmm_operand_check_memory(o, what));
    BSMM_TRY(check_buffer(place, data, what, "data", alignment, who));
    BSMM_TRY(check_buffer(place, scales, what, "scales", alignment, who));
    return check_buffer(place, o->m.global_scale, what, "global_scale", 0, who);
}
