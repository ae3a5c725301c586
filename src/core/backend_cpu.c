/* This file has the backend of the device "cpu", the processor on which the library runs. */
#include "base/cpu.h"
#include "core/describe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* HUGE_PAGE is the size in bytes of a huge page of Linux on x86-64, and on Arm with base pages of
 * 4 KiB. */
enum { HUGE_PAGE = 2 << 20 };

static bsmm_status open_cpu(uint32_t ordinal, const void **device) {
    *device = NULL;
    if (ordinal == 0) return BSMM_OK;
    return bsmm_fail(BSMM_E_NOT_FOUND, "device: value is \"cpu:%u\"; there is only \"cpu\"",
                     ordinal);
}

static bsmm_status describe(uint32_t ordinal, bsmm_local_device *info) {
    const void *device;
    BSMM_TRY(open_cpu(ordinal, &device));
    info->cores = (uint32_t)bsmm_thread_count(0);
    snprintf(info->name, sizeof info->name, "cpu");
    bsmm_cpu_model(info->title, sizeof info->title);
    bsmm_cpu_feature_names(bsmm_cpu_features(), info->features, sizeof info->features);
    return BSMM_OK;
}

static bsmm_status check_pointer(const void *device, const void *pointer, const char *what) {
    (void)device, (void)pointer, (void)what;
    return BSMM_OK;
}

/* Asks Linux for huge pages. A processor reads a large array faster from huge pages, because the
 * hardware prefetcher stops at the end of each page, and because fewer addresses must be
 * translated. The request covers only whole huge pages, so the array occupies no additional memory.
 * Linux may ignore the request, which changes only the speed. */
static void ask_for_huge_pages(void *memory, uint64_t bytes) {
#ifdef MADV_HUGEPAGE
    if (bytes >= HUGE_PAGE) madvise(memory, (size_t)(bytes / HUGE_PAGE * HUGE_PAGE), MADV_HUGEPAGE);
#else
    (void)memory, (void)bytes;
#endif
}

static bsmm_status allocate(const void *device, uint64_t bytes, void **memory) {
    (void)device;
    /* This is not aligned_alloc, which needs a size that is a multiple of the alignment. */
    if (posix_memalign(memory, bytes < HUGE_PAGE ? 64 : HUGE_PAGE, (size_t)bsmm_align64(bytes)))
        return bsmm_fail(BSMM_E_MEMORY, "out of memory: %llu bytes", (unsigned long long)bytes);
    ask_for_huge_pages(*memory, bytes);
    return BSMM_OK;
}

static void release(const void *device, void *memory) {
    (void)device;
    free(memory);
}

static bsmm_status store(const void *device, void *stream, void *to, const void *from,
                         size_t bytes) {
    (void)device, (void)stream;
    memcpy(to, from, bytes);
    return BSMM_OK;
}

static bsmm_status copy(const void *device, void *stream, void *to, const void *from,
                        uint64_t bytes) {
    (void)device, (void)stream;
    memcpy(to, from, bytes);
    return BSMM_OK;
}

static bsmm_status fill(const void *device, void *stream, void *to, uint8_t value, uint64_t bytes) {
    (void)device, (void)stream;
    memset(to, value, bytes);
    return BSMM_OK;
}

static bsmm_status finish(const void *device, void *stream) {
    (void)device, (void)stream;
    return BSMM_OK;
}

const bsmm_backend bsmm_backend_cpu = {
    .name = "cpu",
    .host_memory = true,
    .open = open_cpu,
    .describe = describe,
    .check_pointer = check_pointer,
    .allocate = allocate,
    .release = release,
    .store = store,
    .copy = copy,
    .fill = fill,
    .finish = finish,
};
