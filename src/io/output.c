/* Writes an output file that replaces an existing file atomically. */
#define _GNU_SOURCE /* With _GNU_SOURCE, fcntl.h declares O_TMPFILE. */
#include "io/output.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Returns the length of the folder part of a path, including the last slash. It is 0 if the path
 * has no folder. */
static size_t folder_length(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* Makes a random name in the folder of `path` for a temporary file. Returns NULL if there is no
 * memory or the system gives no random numbers. The caller frees the name. */
static char *temporary_name(const char *path) {
    size_t folder = folder_length(path), size = folder + 40;
    uint64_t random;
    char *name = malloc(size);
    if (!name || getrandom(&random, sizeof random, 0) != sizeof random) {
        free(name);
        return NULL;
    }
    snprintf(name, size, "%.*s.bsmm-%016" PRIx64 ".tmp", (int)folder, path, random);
    return name;
}

/* Makes the name /proc/self/fd/N of an open file. By this name, linkat can give a path to a file
 * that was created without one. */
static void descriptor_name(int descriptor, char name[32]) {
    snprintf(name, 32, "/proc/self/fd/%d", descriptor);
}

/* Creates a file without a name (O_TMPFILE) on the file system of the folder of `path`. Such a file
 * vanishes with the process, however the process ends. Returns -1 if the file system cannot create
 * such files, or if /proc, which is needed to name the file later, is not mounted. */
static int open_unnamed(const char *path, mode_t mode) {
    char name[32], *folder = strndup(path, folder_length(path));
    if (!folder) return -1;
    int descriptor = open(folder[0] ? folder : ".", O_RDWR | O_TMPFILE | O_CLOEXEC, mode);
    free(folder);
    if (descriptor < 0) return -1;
    descriptor_name(descriptor, name);
    if (access(name, F_OK) == 0) return descriptor;
    close(descriptor);
    return -1;
}

/* Creates a file with a temporary name. The function does not use mkstemp, which makes files that
 * only the owner can read. The output should have the permissions that the umask allows. */
static int open_named(const char *path, mode_t mode, char **name) {
    static const int attempts = 100;
    for (int i = 0; i < attempts && (*name = temporary_name(path)); i++) {
        int descriptor = open(*name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
        if (descriptor >= 0) return descriptor;
        free(*name);
        *name = NULL;
        if (errno != EEXIST) break;
    }
    return -1;
}

/* Gives the new file the owner and permissions of the file that it replaces. If the group cannot be
 * kept, the new group gets no permissions, because its members might not have been allowed to read
 * the old file. */
static int keep_mode(int descriptor, const struct stat *old) {
    mode_t mode = old->st_mode & (S_IRWXU | S_IRWXG | S_IRWXO);
    bool kept = fchown(descriptor, old->st_uid, old->st_gid) == 0 ||
                fchown(descriptor, (uid_t)-1, old->st_gid) == 0;
    if (!kept) mode &= ~(mode_t)S_IRWXG;
    if (fchmod(descriptor, mode) == 0) return 0;
    /* A file system without permissions reports the same permissions for every file. A failure of
     * fchmod is no error there, because the permissions agree already. */
    int error = errno;
    struct stat now;
    bool same = fstat(descriptor, &now) == 0 && (now.st_mode & 0777) == (old->st_mode & 0777);
    errno = error;
    return same ? 0 : -1;
}

static bsmm_status create(const char *path, bsmm_output *output) {
    struct stat old;
    bool replaces = stat(path, &old) == 0;
    mode_t mode = replaces ? S_IRUSR | S_IWUSR : 0666;
    output->descriptor = open_unnamed(path, mode);
    if (output->descriptor < 0) output->descriptor = open_named(path, mode, &output->path);
    if (output->descriptor < 0)
        return bsmm_fail_system(path, "create a temporary file beside it", errno);
    if (!replaces || keep_mode(output->descriptor, &old) == 0) return BSMM_OK;
    return bsmm_fail_system(path, "keep its permissions", errno);
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

/* Reserves disk space for the whole file. Without the reservation, a full disk would cause a SIGBUS
 * when the mapping is filled. */
static int reserve(int descriptor, uint64_t bytes) {
    int error = 0;
    do
        error = posix_fallocate(descriptor, 0, (off_t)bytes);
    while (error == EINTR);
    if (error == EOPNOTSUPP || error == EINVAL) error = write_zeros(descriptor, bytes);
    return error;
}

/* Fails with a message that says how many bytes were needed. If the disk is full, the message also
 * says how many bytes are free. */
static bsmm_status fail_reserve(const char *path, const bsmm_output *output, int error) {
    char verb[96];
    struct statvfs disk;
    int used = snprintf(verb, sizeof verb, "reserve %" PRIu64 " bytes", output->bytes);
    if (error == ENOSPC && fstatvfs(output->descriptor, &disk) == 0)
        snprintf(verb + used, sizeof verb - (size_t)used, " (%" PRIu64 " are free)",
                 (uint64_t)disk.f_bavail * disk.f_frsize);
    return bsmm_fail_system(path, verb, error);
}

static bsmm_status reserve_and_map(const char *path, bsmm_output *output) {
    if (output->bytes > INT64_MAX) return fail_reserve(path, output, EFBIG);
    int error = reserve(output->descriptor, output->bytes);
    if (error) return fail_reserve(path, output, error);
    void *data =
        mmap(NULL, output->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, output->descriptor, 0);
    if (data == MAP_FAILED) return bsmm_fail_system(path, "map its temporary file", errno);
    output->data = data;
    return BSMM_OK;
}

bsmm_status bsmm_output_open(const char *path, uint64_t bytes, bsmm_output *output) {
    *output = (bsmm_output){.descriptor = -1, .bytes = bytes};
    bsmm_status status = create(path, output);
    if (status == BSMM_OK) status = reserve_and_map(path, output);
    if (status != BSMM_OK) bsmm_output_abandon(output);
    return status;
}

/* Writes the mapping back to the disk. fsync is called too, because it also reports errors that
 * occurred when the kernel wrote pages of the mapping back earlier. */
static int flush(bsmm_output *output) {
    if (msync(output->data, output->bytes, MS_SYNC) != 0) return errno;
    munmap(output->data, output->bytes);
    output->data = NULL;
    return fsync(output->descriptor) != 0 ? errno : 0;
}

static int link_as(int descriptor, const char *name) {
    char from[32];
    descriptor_name(descriptor, from);
    return linkat(AT_FDCWD, from, AT_FDCWD, name, AT_SYMLINK_FOLLOW) != 0 ? errno : 0;
}

/* Gives the file its final name. linkat fails if the name already exists, but rename replaces an
 * existing file. If the name exists, the file is therefore linked under a temporary name and then
 * renamed. */
static int give_name(bsmm_output *output, const char *path) {
    int error = output->path ? EEXIST : link_as(output->descriptor, path);
    if (error != EEXIST) return error;
    if (!output->path) {
        char *name = temporary_name(path);
        error = name ? link_as(output->descriptor, name) : ENOMEM;
        if (error) {
            free(name);
            return error;
        }
        output->path = name;
    }
    return rename(output->path, path) != 0 ? errno : 0;
}

/* Makes the new name durable by flushing the folder to disk. A failure is ignored, because some
 * file systems cannot flush a folder. */
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
    if (!error) error = give_name(output, path);
    if (error) {
        bsmm_output_abandon(output);
        return bsmm_fail_system(path, "write", error);
    }
    close(output->descriptor);
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
