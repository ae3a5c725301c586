/* The table of backends, and devices by their names. */
#include "core/describe.h"

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

static const bsmm_backend *backend_of(const char *device) {
    size_t length = strcspn(device, ":");
    for (size_t i = 0; i < BSMM_COUNT(backends); i++)
        if (strlen(backends[i]->name) == length && !memcmp(backends[i]->name, device, length))
            return backends[i];
    return NULL;
}

/* "" and ":12"; at most 4 digits. */
static bool take_ordinal(const char *text, uint32_t *ordinal) {
    *ordinal = 0;
    if (!*text) return true;
    size_t digits = strspn(++text, "0123456789");
    if (digits == 0 || digits > 4 || text[digits]) return false;
    for (size_t i = 0; i < digits; i++)
        *ordinal = *ordinal * 10 + (uint32_t)(text[i] - '0');
    return true;
}

bsmm_status bsmm_device_open(const char *name, const bsmm_backend **backend, const void **device) {
    uint32_t ordinal;
    *device = NULL;
    *backend = backend_of(name);
    if (!*backend)
        return bsmm_fail(BSMM_E_UNSUPPORTED,
                         "device: value is \"%.64s\"; no kernel here runs on it", name);
    if (!take_ordinal(name + strlen((*backend)->name), &ordinal))
        return bsmm_fail(BSMM_E_INVALID, "device: value is \"%.64s\"; must be %s or %s:NUMBER",
                         name, (*backend)->name, (*backend)->name);
    return (*backend)->open(ordinal, device);
}
