#include "fake_driver.h"

#include <stdlib.h>

enum { MOST_BLOCKS = 256 };

static struct {
    char *begin;
    size_t bytes;
} blocks[MOST_BLOCKS];

bool fake_is_told_to_fail(const fake_driver *driver, const char *function) {
    return driver->failing && strcmp(driver->failing, function) == 0;
}

void *fake_allocate(fake_driver *driver, size_t bytes) {
    size_t i = 0;
    while (i < MOST_BLOCKS && blocks[i].begin)
        i++;
    if (bytes > driver->free_bytes || i == MOST_BLOCKS) return NULL;
    blocks[i].begin = aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (!blocks[i].begin) return NULL;
    blocks[i].bytes = bytes;
    driver->free_bytes -= bytes;
    driver->allocations++;
    return blocks[i].begin;
}

bool fake_release(fake_driver *driver, const void *begin) {
    for (size_t i = 0; i < MOST_BLOCKS; i++) {
        if (blocks[i].begin != begin) continue;
        free(blocks[i].begin);
        blocks[i].begin = NULL;
        driver->free_bytes += blocks[i].bytes;
        driver->allocations--;
        return true;
    }
    return false;
}

bool fake_is_device_memory(const fake_driver *driver, const void *address) {
    const char *at = address;
    if ((uintptr_t)address - driver->first_address < driver->address_count) return true;
    for (size_t i = 0; i < MOST_BLOCKS; i++) {
        const char *begin = blocks[i].begin;
        if (begin && at >= begin && at < begin + blocks[i].bytes) return true;
    }
    return false;
}

void fake_record(const fake_driver *driver, const void *bytes, size_t count) {
    if (driver->record) driver->record(bytes, count);
}

/* The fake driver copies each image (compiled GPU code) that the library loads. The copies remain
 * until the process ends, as the library never unloads a module. This list points to the copies, so
 * that LeakSanitizer does not report them. */
static struct loaded {
    struct loaded *next;
    void *image;
} * all_loaded;

void *fake_load(fake_driver *driver, const void *image, size_t bytes) {
    struct loaded *const l = malloc(sizeof *l);
    void *const copy = malloc(bytes + 1);
    if (!l || !copy) abort();
    memcpy(copy, image, bytes);
    ((char *)copy)[bytes] = 0;
    *l = (struct loaded){all_loaded, copy};
    all_loaded = l;
    driver->loads++;
    memcpy(driver->image, image, sizeof driver->image);
    return copy;
}
