/* Maps files into memory for reading. */
#include "io/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

bsmm_status bsmm_fail_system(const char *path, const char *verb, int error) {
    char buffer[128];
    if (strerror_r(error, buffer, sizeof buffer) != 0)
        snprintf(buffer, sizeof buffer, "error %d", error);
    return bsmm_fail(BSMM_E_IO, "%s: cannot %s: %s", path, verb, buffer);
}

static bsmm_status map_descriptor(int descriptor, const char *path, bsmm_map *map) {
    struct stat info;
    if (fstat(descriptor, &info) != 0) return bsmm_fail_system(path, "read its size", errno);
    if (!S_ISREG(info.st_mode))
        return bsmm_fail(BSMM_E_IO, "%s: is not a regular file; only those can be mapped", path);
    if ((uint64_t)info.st_size > SIZE_MAX) return bsmm_fail_system(path, "map", EFBIG);
    map->bytes = (size_t)info.st_size;
    /* The system call mmap refuses a length of 0, so an empty file has no mapping. */
    if (map->bytes == 0) return BSMM_OK;
    void *data = mmap(NULL, map->bytes, PROT_READ, MAP_SHARED, descriptor, 0);
    if (data == MAP_FAILED) return bsmm_fail_system(path, "map", errno);
    map->data = data;
    return BSMM_OK;
}

bsmm_status bsmm_map_open(const char *path, bsmm_map *map) {
    *map = (bsmm_map){.path = path, .data = (const uint8_t *)""};
    /* O_NONBLOCK is for pipes: without it, opening a pipe would wait for a writer. A pipe is
     * refused afterwards. */
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) return bsmm_fail_system(path, "open", errno);
    bsmm_status status = map_descriptor(descriptor, path, map);
    close(descriptor);
    return status;
}

void bsmm_map_close(bsmm_map *map) {
    if (map->bytes) munmap((void *)(uintptr_t)map->data, map->bytes);
    *map = (bsmm_map){.data = (const uint8_t *)""};
}

void bsmm_map_release(const bsmm_map *map) {
    if (map->bytes) madvise((void *)(uintptr_t)map->data, map->bytes, MADV_DONTNEED);
}

uint32_t bsmm_load_u32(const uint8_t *from) {
    return (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 |
           (uint32_t)from[3] << 24;
}

uint64_t bsmm_load_u64(const uint8_t *from) {
    return (uint64_t)bsmm_load_u32(from) | (uint64_t)bsmm_load_u32(from + 4) << 32;
}
