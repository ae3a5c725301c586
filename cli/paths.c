#define _GNU_SOURCE /* This macro makes stdio.h declare open_memstream. */
#include "paths.h"
#include "common.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *cli_path_join(const char *folder, const char *name) {
    char *path = cli_alloc(strlen(folder) + strlen(name) + 2, 1);
    sprintf(path, "%s/%s", folder, name);
    return path;
}

char *cli_path_folder(const char *path) {
    const char *slash = strrchr(path, '/');
    const size_t length = slash ? (size_t)(slash - path) : 0;
    char *folder = cli_alloc(length + 2, 1);
    memcpy(folder, path, length);
    if (!length) *folder = slash ? '/' : '.';
    return folder;
}

bool cli_is_folder(const char *path) {
    struct stat info;
    return !stat(path, &info) && S_ISDIR(info.st_mode);
}

bool cli_fail_system(const char *path, const char *what) {
    cli_fail("%s: cannot %s: %s", path, what, strerror(errno));
    return false;
}

/* Opens a regular file. Other files, such as pipes, could make the command wait without end. */
static FILE *open_regular(const char *path) {
    struct stat info = {0};
    const int descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0) return NULL;
    if (!fstat(descriptor, &info) && S_ISREG(info.st_mode)) return fdopen(descriptor, "r");
    close(descriptor);
    errno = S_ISDIR(info.st_mode) ? EISDIR : ENOTSUP;
    return NULL;
}

/* Removes the byte order mark that some programs write at the beginning of a text. */
static void remove_mark(char *text) {
    if (!strncmp(text, "\xEF\xBB\xBF", 3)) memmove(text, text + 3, strlen(text + 3) + 1);
}

char *cli_read_text(const char *path) {
    char *text = NULL, part[4096];
    size_t size, n;
    FILE *file = open_regular(path), *stream = file ? open_memstream(&text, &size) : NULL;
    if (!stream) {
        if (file) fclose(file);
        return NULL;
    }
    while ((n = fread(part, 1, sizeof part, file)))
        fwrite(part, 1, n, stream);
    const bool failed = ferror(file);
    fclose(file);
    const bool closed = !fclose(stream) && text;
    if (closed && !failed && strlen(text) == size) {
        remove_mark(text);
        return text;
    }
    free(text);
    errno = closed && !failed ? EILSEQ : EIO;
    return NULL;
}

bool cli_write_text(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    if (!file) return cli_fail_system(path, "create it");
    const bool written = fputs(text, file) >= 0 && !fflush(file) && !fsync(fileno(file));
    return (fclose(file) == 0 && written) || cli_fail_system(path, "write it");
}

bool cli_copy_file(const char *from, const char *to) {
    const int in = open(from, O_RDONLY | O_CLOEXEC);
    if (in < 0) return cli_fail_system(from, "read it");
    const int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    ssize_t n = out < 0 ? -1 : 1;
    char part[1 << 16];
    while (n > 0 && (n = read(in, part, sizeof part)) > 0)
        for (ssize_t at = 0, w; n > 0 && at < n; at += w)
            if ((w = write(out, part + at, (size_t)(n - at))) < 0) n = w = -1;
    if (n == 0 && fsync(out)) n = -1;
    const int error = errno;
    close(in);
    if (out >= 0 && close(out)) n = -1;
    errno = error;
    return n == 0 || cli_fail_system(to, "copy into it");
}
