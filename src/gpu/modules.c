/* Implements the cache of loaded GPU modules and kernels. A module is an image that the driver has
 * loaded. The cache has a list of modules and a hash table of kernels, whose buckets are linked
 * lists. Entries of the hash table are only added and never removed, so that a look-up of a kernel
 * needs no lock. Loading takes a lock. */
#include "gpu/modules.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct loaded_module {
    const bsmm_gpu_image *image;
    const void *device;
    void *handle;
    struct loaded_module *next;
} loaded_module;

typedef struct loaded_function {
    const bsmm_gpu_function *function;
    const void *device;
    void *handle;
    struct loaded_function *next;
} loaded_function;

enum { BUCKETS = 64 };
static _Atomic(loaded_function *) functions[BUCKETS];
/* Only a thread that holds the mutex `loading` reads or changes this list. */
static loaded_module *modules;
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;

static size_t bucket_of(const void *device, const bsmm_gpu_function *function) {
    const uintptr_t mixed = (uintptr_t)function / sizeof *function + (uintptr_t)device / 64;
    return mixed % BUCKETS;
}

static void *find_function(const void *device, const bsmm_gpu_function *function) {
    loaded_function *f = functions[bucket_of(device, function)];
    while (f && (f->function != function || f->device != device))
        f = f->next;
    return f ? f->handle : NULL;
}

static bsmm_status load_image(const bsmm_gpu_loader *loader, const void *device,
                              const bsmm_gpu_image *image, void **handle) {
    bsmm_gpu_unpacked unpacked;
    BSMM_TRY(bsmm_gpu_image_unpack(image, &unpacked));
    const bsmm_status status = loader->load(device, unpacked.bytes, handle);
    /* The driver has copied the image, so free the decompressed bytes. */
    free(unpacked.memory);
    return status == BSMM_OK ? BSMM_OK : bsmm_fail_within(status, image->name);
}

static bsmm_status load_module(const bsmm_gpu_loader *loader, const void *device,
                               const bsmm_gpu_image *image, void **handle) {
    for (loaded_module *m = modules; m; m = m->next)
        if (m->image == image && m->device == device) {
            *handle = m->handle;
            return BSMM_OK;
        }
    loaded_module *m = malloc(sizeof *m);
    if (!m) return bsmm_fail(BSMM_E_MEMORY, "module: out of memory: %zu bytes", sizeof *m);
    const bsmm_status status = load_image(loader, device, image, handle);
    if (status != BSMM_OK) {
        free(m);
        return status;
    }
    *m = (loaded_module){image, device, *handle, modules};
    modules = m;
    return BSMM_OK;
}

static bsmm_status make_function(const bsmm_gpu_loader *loader, const void *device,
                                 const bsmm_gpu_function *function, void **handle) {
    const bsmm_gpu_image *image = NULL;
    void *module = NULL;
    char why[200];
    BSMM_TRY(loader->find_image(device, function->module, &image));
    if (!image)
        return bsmm_fail(BSMM_E_UNSUPPORTED, "%s: %s", function->module,
                         loader->no_image(device, function->module, why, sizeof why));
    BSMM_TRY(load_module(loader, device, image, &module));
    return loader->find(device, module, function, handle);
}

static bsmm_status keep(const void *device, const bsmm_gpu_function *function, void *handle) {
    loaded_function *f = malloc(sizeof *f);
    if (!f) return bsmm_fail(BSMM_E_MEMORY, "function: out of memory: %zu bytes", sizeof *f);
    const size_t bucket = bucket_of(device, function);
    *f = (loaded_function){function, device, handle, functions[bucket]};
    functions[bucket] = f;
    return BSMM_OK;
}

static bsmm_status load_locked(const bsmm_gpu_loader *loader, const void *device,
                               const bsmm_gpu_function *function, void **handle) {
    int before;
    *handle = find_function(device, function);
    if (*handle) return BSMM_OK;
    BSMM_TRY(loader->begin(device, &before));
    const bsmm_status status = make_function(loader, device, function, handle);
    loader->end(device, before);
    return status == BSMM_OK ? keep(device, function, *handle) : status;
}

bsmm_status bsmm_gpu_function_load(const bsmm_gpu_loader *loader, const void *device,
                                   const bsmm_gpu_function *function, void **handle) {
    void *found = find_function(device, function);
    bsmm_status status = BSMM_OK;
    if (!found) {
        pthread_mutex_lock(&loading);
        status = load_locked(loader, device, function, &found);
        pthread_mutex_unlock(&loading);
    }
    if (handle) *handle = found;
    return status;
}
