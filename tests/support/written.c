#include "written.h"
#include "stored.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

unsigned entries_in(const char *folder) {
    unsigned count = 0;
    DIR *entries = opendir(folder);
    assert_non_null(entries);
    for (const struct dirent *entry; (entry = readdir(entries));)
        count += entry->d_name[0] != '.' || strlen(entry->d_name) > 2;
    closedir(entries);
    return count;
}

const char *make_folder(const char *name) {
    char inside[64];
    mkdir(temp_path(name), 0755);
    snprintf(inside, sizeof inside, "%s/x", name);
    write_text(temp_path(inside), "old");
    return temp_path(inside);
}

void expect_old(const char *path) {
    size_t bytes;
    uint8_t *all = read_bytes(path, &bytes);
    assert_int_equal(bytes, 3);
    assert_memory_equal(all, "old", 3);
    free(all);
}

bsmm_writer *begin_one(const char *path, int64_t count) {
    bsmm_writer *writer;
    assert_int_equal(bsmm_writer_create(path, "safetensors", &writer), BSMM_OK);
    assert_int_equal(bsmm_writer_add_tensor(writer, "t", "F32", 1, &count, NULL), BSMM_OK);
    if (bsmm_writer_begin(writer)) fail_msg("%s", bsmm_error_message());
    return writer;
}
