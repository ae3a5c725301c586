/* Tests how a new file replaces an old one. The old file must be intact until the writer commits.
 * After a failure or a kill, no temporary file may remain. Each test runs with temporary files that
 * have no name (O_TMPFILE) and with named ones. */
#define _GNU_SOURCE
#include "stored.h"
#include "written.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* If `named_only` is true, the function `open` below, which replaces libc's, behaves like a file
 * system without O_TMPFILE. */
static bool named_only;

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): libc reserves its own */
int open(const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    if (named_only && (flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

/* If `modes_are_fixed` is true, the function `fchmod` below behaves like a file system without
 * permissions. */
static bool modes_are_fixed;

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): libc reserves its own */
int fchmod(int descriptor, mode_t mode) {
    if (!modes_are_fixed) return (int)syscall(SYS_fchmod, descriptor, mode);
    errno = EPERM;
    return -1;
}

/* If `cannot_reserve` is true, the function `posix_fallocate` below behaves like a file system that
 * cannot reserve space. */
static bool cannot_reserve;

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): libc reserves its own */
int posix_fallocate(int descriptor, off_t offset, off_t bytes) {
    if (cannot_reserve) return EOPNOTSUPP;
    return syscall(SYS_fallocate, descriptor, 0, offset, bytes) != 0 ? errno : 0;
}

static void test_rename(void **state) {
    named_only = *state != NULL;
    const char *path = make_folder("rename");
    bsmm_writer *writer = begin_one(path, 100);
    expect_old(path);
    assert_int_equal(entries_in(temp_path("rename")), named_only ? 2 : 1);
    bsmm_writer_abort(writer);
    expect_old(path);
    assert_int_equal(entries_in(temp_path("rename")), 1);
    writer = begin_one(path, 100);
    expect_old(path);
    assert_int_equal(bsmm_writer_commit(writer), BSMM_OK);
    assert_int_equal(entries_in(temp_path("rename")), 1);
    bsmm_file *file;
    assert_int_equal(bsmm_file_open(path, &file), BSMM_OK);
    bsmm_file_close(file);
    bsmm_writer_abort(NULL);
    expect_failure(bsmm_writer_commit(NULL), BSMM_E_INVALID, "writer");
}

/* Tests an output path that becomes a folder after writing has begun. The writer must then fail
 * and leave no file behind. */
static void test_failing_commit(void **state) {
    named_only = *state != NULL;
    const char *folder = named_only ? "late_named" : "late";
    char target[32], inside[48];
    snprintf(target, sizeof target, "%s/y", folder);
    snprintf(inside, sizeof inside, "%s/inside", target);
    mkdir(temp_path(folder), 0755);
    bsmm_writer *writer = begin_one(temp_path(target), 4);
    mkdir(temp_path(target), 0755);
    write_text(temp_path(inside), "kept");
    expect_failure(bsmm_writer_commit(writer), BSMM_E_IO, "cannot write");
    assert_int_equal(entries_in(temp_path(folder)), 1);
    assert_int_equal(access(temp_path(inside), F_OK), 0);
}

static mode_t mode_of(const char *path) {
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    return info.st_mode & 07777;
}

/* Tests permissions. A new file gets those of the umask, and a file that replaces an old one keeps
 * the old permissions. */
static void test_modes(void **state) {
    named_only = *state != NULL;
    static const mode_t modes[] = {0600, 0640, 0664, 0400, 0755};
    const char *path = temp_path("mode");
    unlink(path);
    mode_t before = umask(027);
    assert_int_equal(bsmm_writer_commit(begin_one(path, 1)), BSMM_OK);
    assert_int_equal(mode_of(path), 0640);
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        assert_int_equal(chmod(path, modes[i]), 0);
        assert_int_equal(bsmm_writer_commit(begin_one(path, 1)), BSMM_OK);
        assert_int_equal(mode_of(path), modes[i]);
    }
    umask(before);
}

/* Tests a file system on which permissions cannot be set. The writer must fail if the new file
 * would have other permissions than the file that it replaces. */
static void test_fixed_modes(void **state) {
    (void)state;
    const char *path = make_folder("fixed");
    bsmm_writer *writer;
    static const int64_t count = 1;
    modes_are_fixed = true;
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(bsmm_writer_commit(begin_one(path, 1)), BSMM_OK);
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(bsmm_writer_create(path, "safetensors", &writer), BSMM_OK);
    assert_int_equal(bsmm_writer_add_tensor(writer, "t", "F32", 1, &count, NULL), BSMM_OK);
    expect_failure(bsmm_writer_begin(writer), BSMM_E_IO, "cannot keep its permissions");
    bsmm_writer_abort(writer);
    modes_are_fixed = false;
    assert_int_equal(entries_in(temp_path("fixed")), 1);
}

/* Tests that the temporary file is not readable for users who could not read the old file. */
static void test_mode_of_temporary(void **state) {
    (void)state;
    named_only = true;
    const char *path = make_folder("secret");
    assert_int_equal(chmod(path, 0600), 0);
    bsmm_writer *writer = begin_one(path, 1);
    glob_t found;
    assert_int_equal(glob(temp_path("secret/.bsmm-*.tmp"), 0, NULL, &found), 0);
    assert_int_equal(mode_of(found.gl_pathv[0]), 0600);
    globfree(&found);
    bsmm_writer_abort(writer);
}

/* Tests that a killed process leaves no file behind if its temporary files have no name
 * (O_TMPFILE). */
static void test_kill(void **state) {
    (void)state;
    named_only = false;
    const char *path = make_folder("killed");
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        begin_one(path, 1000);
        raise(SIGKILL);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    expect_old(path);
    assert_int_equal(entries_in(temp_path("killed")), 1);
}

/* Tests a limit of the file size. The system then refuses to reserve space, as on a full disk. */
static void test_file_size_limit(void **state) {
    named_only = *state != NULL;
    struct rlimit before, small = {1u << 20, 0};
    const char *path = make_folder("limited");
    bsmm_writer *writer;
    int64_t count = 1 << 20;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small.rlim_max = before.rlim_max;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_int_equal(bsmm_writer_create(path, "safetensors", &writer), BSMM_OK);
    assert_int_equal(bsmm_writer_add_tensor(writer, "t", "F32", 1, &count, NULL), BSMM_OK);
    bsmm_status status = bsmm_writer_begin(writer);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    expect_failure(status, BSMM_E_IO, "cannot reserve 4194384 bytes: File too large");
    bsmm_writer_abort(writer);
    expect_old(path);
    assert_int_equal(entries_in(temp_path("limited")), 1);
}

/* Tests a file system that cannot reserve space. The writer must fill the new file with zeros, so
 * that the disk has space for all of it, and must report if there is too little space. */
static void test_zeros(void **state) {
    named_only = false;
    cannot_reserve = true;
    test_file_size_limit(state);
    const char *path = make_folder("zeros");
    bsmm_writer *writer = begin_one(path, 100000);
    assert_int_equal(bsmm_writer_commit(writer), BSMM_OK);
    cannot_reserve = false;
    struct stat file;
    assert_int_equal(stat(path, &file), 0);
    assert_true(file.st_size > 400000);
    assert_true(file.st_blocks * 512 >= file.st_size);
}

/* Tests a disk that is really full. The test needs the right to mount one. */
static void test_full_disk(void **state) {
    named_only = *state != NULL;
    mkdir(temp_path("disk"), 0755);
    if (mount("none", temp_path("disk"), "tmpfs", 0, "size=1m") != 0) {
        print_message("no tmpfs can be mounted: not tested on a full disk\n");
        skip();
    }
    bsmm_writer *writer;
    int64_t count = 1 << 20;
    write_text(temp_path("disk/x"), "old");
    assert_int_equal(bsmm_writer_create(temp_path("disk/x"), "safetensors", &writer), BSMM_OK);
    assert_int_equal(bsmm_writer_add_tensor(writer, "t", "F32", 1, &count, NULL), BSMM_OK);
    bsmm_status status = bsmm_writer_begin(writer);
    unsigned left = entries_in(temp_path("disk"));
    bsmm_writer_abort(writer);
    expect_old(temp_path("disk/x"));
    assert_int_equal(umount(temp_path("disk")), 0);
    expect_failure(status, BSMM_E_IO, "cannot reserve 4194384 bytes (");
    assert_non_null(strstr(bsmm_error_message(), " are free): No space left"));
    assert_int_equal(left, 1);
}

#define BOTH(test) cmocka_unit_test(test), cmocka_unit_test_prestate(test, &named_only)

int main(void) {
    const struct CMUnitTest tests[] = {BOTH(test_rename),
                                       BOTH(test_failing_commit),
                                       BOTH(test_modes),
                                       BOTH(test_file_size_limit),
                                       BOTH(test_full_disk),
                                       cmocka_unit_test(test_fixed_modes),
                                       cmocka_unit_test(test_mode_of_temporary),
                                       cmocka_unit_test(test_kill),
                                       cmocka_unit_test(test_zeros)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
