#include "compare.h"

#include <stdlib.h>

static void require(bool done) {
    if (done) return;
    fprintf(stderr, "%s\n", bench_device_error());
    exit(2);
}

void *memory_new(session *s, const void *from, uint64_t bytes) {
    void *made;
    require(bench_device_new(s->device, from, bytes, &made));
    return made;
}

void memory_write(session *s, void *to, const void *from, uint64_t bytes) {
    require(bench_device_write(s->device, to, from, bytes));
}

void memory_read(session *s, void *to, const void *from, uint64_t bytes) {
    require(bench_device_wait(s->device) && bench_device_read(s->device, to, from, bytes));
}
