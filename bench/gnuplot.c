#include "gnuplot.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Returns true if the file can be written. The caller must know this, because gnuplot writes to its
 * standard output if it cannot open the file. */
static bool can_write(const char *path) {
    bool there = access(path, F_OK) == 0;
    FILE *file = fopen(path, "ab");
    if (!file) return false;
    fclose(file);
    if (!there) remove(path);
    return true;
}

static bool is_script(const char *path) {
    size_t length = strlen(path);
    return length > 3 && strcmp(path + length - 3, ".gp") == 0;
}

const char *bench_gnuplot_refusal(const char *path) {
    /* NOLINTNEXTLINE(cert-env33-c): the command contains no input of the user */
    if (!is_script(path) && system("command -v gnuplot >/dev/null 2>&1") != 0)
        return "gnuplot, which draws it, is not installed (a name that ends in .gp keeps a script "
               "for it)";
    return can_write(path) ? NULL : strerror(errno);
}

void bench_gnuplot_quote(FILE *to, const char *text) {
    putc('\'', to);
    for (; *text; text++) {
        if (*text == '\'') putc('\'', to);
        putc(*text, to);
    }
    putc('\'', to);
}

static void put_setting(FILE *to, const char *name, const char *value) {
    fprintf(to, "set %s ", name);
    bench_gnuplot_quote(to, value);
    putc('\n', to);
}

void bench_gnuplot_titles(FILE *to, const char *title, const char *subtitle) {
    fputs("set multiplot layout 1,2 title ", to);
    bench_gnuplot_quote(to, title);
    /* This writes a line break, because gnuplot allows none inside single quotes. */
    fputs(" . \"\\n\" . ", to);
    bench_gnuplot_quote(to, subtitle);
    fputs(" noenhanced\n", to);
}

static void put_script(FILE *to, bench_gnuplot_put *put, const void *context, const char *drawing) {
    fputs("set terminal svg size 1200,500 dynamic background 'white'\n", to);
    put_setting(to, "output", drawing);
    put(to, context);
}

static bool is_regular(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

/* Returns true if the SVG file is complete. gnuplot does not report write errors, so the function
 * checks the end of the file. A pipe or a device cannot be read back and counts as complete. */
static bool is_whole(const char *path) {
    static const char end[] = "</svg>";
    char tail[16] = {0};
    if (!is_regular(path)) return true;
    FILE *file = fopen(path, "rb");
    if (!file) return false;
    if (fseek(file, -(long)(sizeof tail - 1), SEEK_END) != 0 ||
        fread(tail, 1, sizeof tail - 1, file) != sizeof tail - 1)
        tail[0] = '\0';
    fclose(file);
    return strstr(tail, end) != NULL;
}

/* Returns the reason why a drawing is not complete. gnuplot does not tell it. The function must be
 * called before the incomplete file is removed, because that makes room on the disk again. */
static const char *reason(const char *path) {
    struct statvfs disk;
    bool full = is_regular(path) && statvfs(path, &disk) == 0 && disk.f_bavail == 0;
    return full ? strerror(ENOSPC) : "gnuplot failed";
}

static const char *draw(const char *path, bench_gnuplot_put *put, const void *context) {
    /* gnuplot may exit early. Writing to its pipe then raises SIGPIPE, which must not end this
     * process. */
    void (*before)(int) = signal(SIGPIPE, SIG_IGN);
    /* NOLINTNEXTLINE(cert-env33-c): the command contains no input of the user */
    FILE *gnuplot = popen("gnuplot", "w");
    const char *failure = gnuplot ? NULL : "gnuplot failed";
    if (gnuplot) {
        put_script(gnuplot, put, context, path);
        if (pclose(gnuplot) != 0 || !is_whole(path)) failure = reason(path);
        if (failure && is_regular(path)) remove(path);
    }
    signal(SIGPIPE, before);
    return failure;
}

/* Writes the gnuplot script FILE.gp. When the user runs it, it draws FILE.svg in the current
 * folder. */
static const char *keep_script(const char *path, bench_gnuplot_put *put, const void *context) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    int stem = (int)(strlen(name) - strlen("gp"));
    size_t size = (size_t)stem + sizeof "svg";
    char *drawing = malloc(size);
    FILE *file = drawing ? fopen(path, "w") : NULL;
    const char *failure = file ? NULL : strerror(errno);
    if (file) {
        snprintf(drawing, size, "%.*ssvg", stem, name);
        errno = 0;
        put_script(file, put, context, drawing);
        bool written = fflush(file) == 0 && !ferror(file);
        if (!written) failure = errno ? strerror(errno) : "a write failed";
        if (fclose(file) != 0 && written) failure = strerror(errno);
        if (failure && is_regular(path)) remove(path);
    }
    free(drawing);
    return failure;
}

const char *bench_gnuplot_draw(const char *path, bench_gnuplot_put *put, const void *context) {
    return is_script(path) ? keep_script(path, put, context) : draw(path, put, context);
}
