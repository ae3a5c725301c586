/* Atomic replacement of a file. */
#include "io/output.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

/* The length of the folder in a path, its slash included; 0: the current folder. */
static size_t folder_length(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* Not mkstemp: its files are for the owner only, and the result should follow the umask. */
static bsmm_status create(const char *path, bsmm_output *output) {
    static const int attempts = 100;
    size_t folder = folder_length(path), size = folder + 40;
    output->path = malloc(size);
    if (!output->path) return bsmm_fail_memory();
    for (int i = 0; i < attempts; i++) {
        uint64_t random;
        if (getrandom(&random, sizeof random, 0) != sizeof random) break;
        snprintf(output->path, size, "%.*s.bsmm-%016" PRIx64 ".tmp", (int)folder, path, random);
        output->descriptor =
            open(output->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (output->descriptor >= 0) return BSMM_OK;
        if (errno != EEXIST) break;
    }
    int error = errno;
    free(output->path);
    output->path = NULL;
    return bsmm_fail_system(path, "create a temporary file beside it", error);
}

static int write_zeros(int descriptor, uint64_t bytes) {
    static const uint8_t zeros[1u << 16];
    for (uint64_t at = 0; at < bytes;) {
        uint64_t left = bytes - at;
        ssize_t written =
            pwrite(descriptor, zeros, left < sizeof zeros ? left : sizeof zeros, (off_t)at);
        if (written < 0 && errno != EINTR) return errno;
        if (written == 0) return ENOSPC;
        if (written > 0) at += (uint64_t)written;
    }
    return 0;
}

/* Without reserved blocks a full disk would show as a SIGBUS while the mapping is filled. */
static int reserve(int descriptor, uint64_t bytes) {
    int error = 0;
    do
        error = posix_fallocate(descriptor, 0, (off_t)bytes);
    while (error == EINTR);
    if (error == EOPNOTSUPP || error == EINVAL) error = write_zeros(descriptor, bytes);
    return error;
}

static bsmm_status reserve_and_map(const char *path, bsmm_output *output) {
    if (output->bytes > INT64_MAX) return bsmm_fail_system(path, "reserve its space", EFBIG);
    int error = reserve(output->descriptor, output->bytes);
    if (error) return bsmm_fail_system(path, "reserve its space", error);
    void *data =
        mmap(NULL, output->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, output->descriptor, 0);
    if (data == MAP_FAILED) return bsmm_fail_system(path, "map its temporary file", errno);
    output->data = data;
    return BSMM_OK;
}

bsmm_status bsmm_output_open(const char *path, uint64_t bytes, bsmm_output *output) {
    *output = (bsmm_output){.descriptor = -1, .bytes = bytes};
    BSMM_TRY(create(path, output));
    bsmm_status status = reserve_and_map(path, output);
    if (status != BSMM_OK) bsmm_output_abandon(output);
    return status;
}

/* fsync reports what went wrong while the kernel wrote the mapping back. */
static int flush(bsmm_output *output) {
    if (msync(output->data, output->bytes, MS_SYNC) != 0) return errno;
    munmap(output->data, output->bytes);
    output->data = NULL;
    if (fsync(output->descriptor) != 0) return errno;
    int failed = close(output->descriptor);
    output->descriptor = -1;
    return failed ? errno : 0;
}

/* Makes the rename last. A file system that cannot sync a folder has nothing to add. */
static void sync_folder(const char *path) {
    size_t length = folder_length(path);
    char *folder = length ? strndup(path, length) : strdup(".");
    int descriptor = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (descriptor >= 0) {
        fsync(descriptor);
        close(descriptor);
    }
    free(folder);
}

bsmm_status bsmm_output_commit(bsmm_output *output, const char *path) {
    int error = flush(output);
    if (!error && rename(output->path, path) != 0) error = errno;
    if (error) {
        bsmm_output_abandon(output);
        return bsmm_fail_system(path, "write", error);
    }
    free(output->path);
    *output = (bsmm_output){.descriptor = -1};
    sync_folder(path);
    return BSMM_OK;
}

void bsmm_output_abandon(bsmm_output *output) {
    if (output->data) munmap(output->data, output->bytes);
    if (output->descriptor >= 0) close(output->descriptor);
    if (output->path) unlink(output->path);
    free(output->path);
    *output = (bsmm_output){.descriptor = -1};
}
