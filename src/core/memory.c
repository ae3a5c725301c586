/* This file has the public functions for device memory. They call the backend of the device. */
#include "core/backend.h"

static bsmm_status check_given(const void *pointer, const char *what) {
    return pointer ? BSMM_OK : bsmm_fail(BSMM_E_INVALID, "%s: value is NULL; must be given", what);
}

static bsmm_status open_device(const char *name, bsmm_place *place) {
    BSMM_TRY(check_given(name, "device"));
    return bsmm_device_open(name, &place->backend, &place->device);
}

bsmm_status bsmm_allocate_memory(const char *device, uint64_t bytes, void **memory) {
    bsmm_place place;
    BSMM_TRY(check_given(memory, "memory"));
    *memory = NULL;
    BSMM_TRY(open_device(device, &place));
    if (bytes > INT64_MAX)
        return bsmm_fail(BSMM_E_MEMORY, "bytes: value is %llu; no device has so many",
                         (unsigned long long)bytes);
    return bytes ? place.backend->allocate(place.device, bytes, memory) : BSMM_OK;
}

bsmm_status bsmm_free_memory(const char *device, void *memory) {
    bsmm_place place;
    BSMM_TRY(open_device(device, &place));
    if (memory) place.backend->release(place.device, memory);
    return BSMM_OK;
}

bsmm_status bsmm_copy_memory(const bsmm_exec *exec, void *to, const void *from, uint64_t bytes) {
    bsmm_place place;
    BSMM_TRY(bsmm_place_take(exec, &place));
    if (bytes == 0) return BSMM_OK;
    BSMM_TRY(check_given(to, "to"));
    BSMM_TRY(check_given(from, "from"));
    return place.backend->copy(place.device, place.stream, to, from, bytes);
}

bsmm_status bsmm_fill_memory(const bsmm_exec *exec, void *to, uint32_t value, uint64_t bytes) {
    bsmm_place place;
    BSMM_TRY(bsmm_place_take(exec, &place));
    if (value > UINT8_MAX)
        return bsmm_fail(BSMM_E_INVALID, "value: value is %u; must be 0 to 255", value);
    if (bytes == 0) return BSMM_OK;
    BSMM_TRY(check_given(to, "to"));
    BSMM_TRY(place.backend->check_pointer(place.device, to, "to"));
    return place.backend->fill(place.device, place.stream, to, (uint8_t)value, bytes);
}

bsmm_status bsmm_synchronize_stream(const bsmm_exec *exec) {
    bsmm_place place;
    BSMM_TRY(bsmm_place_take(exec, &place));
    return place.backend->finish(place.device, place.stream);
}
