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

bool fake_is_device_memory(const void *address) {
    const char *at = address;
    for (size_t i = 0; i < MOST_BLOCKS; i++) {
        const char *begin = blocks[i].begin;
        if (begin && at >= begin && at < begin + blocks[i].bytes) return true;
    }
    return false;
}

void *fake_load(fake_driver *driver, const void *image) {
    static char any;
    driver->loads++;
    memcpy(driver->image, image, sizeof driver->image);
    return &any;
}
