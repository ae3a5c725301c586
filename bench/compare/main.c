#include "compare.h"
#include "device_texts.h"

#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: bsmm_compare OLD.so NEW.so [--device " BENCH_EXAMPLE_DEVICE
    "] [--random N] [--seed N]\n"
    "       [--threads 1,2] [--pairs N] [--largest MNK] [--every N] [--rename OLD=NEW]...\n"
    "       [--no-bits] [--no-times]\n"
    "Compares what two builds of the library write, bit for bit, then their times. Exit status 1\n"
    "if any bit differs.\n";

static bool take_rename(options *o, char *value) {
    char *to = strchr(value, '=');
    if (!to || o->rename_count == MOST_KERNELS) return false;
    *to = 0;
    o->renames[o->rename_count][OLD] = value;
    o->renames[o->rename_count++][NEW] = to + 1;
    return true;
}

static bool take_threads(options *o, const char *value) {
    return sscanf(value, "%d,%d", &o->threads[0], &o->threads[1]) >= 1;
}

static bool take_option(options *o, const char *name, char *value) {
    if (strcmp(name, "--rename") == 0) return take_rename(o, value);
    if (strcmp(name, "--threads") == 0) return o->threads[1] = 0, take_threads(o, value);
    if (strcmp(name, "--device") == 0) return o->device = value, true;
    if (strcmp(name, "--random") == 0) return o->random = strtoull(value, NULL, 10), true;
    if (strcmp(name, "--seed") == 0) return o->seed = strtoull(value, NULL, 10), true;
    if (strcmp(name, "--pairs") == 0) return o->pairs = atoi(value), o->pairs > 0;
    if (strcmp(name, "--every") == 0) return o->every = strtoull(value, NULL, 10), o->every > 0;
    if (strcmp(name, "--largest") == 0) return o->largest = atoll(value), true;
    return false;
}

static bool take_options(options *o, int count, char **words) {
    int paths = 0;
    for (int i = 1; i < count; i++) {
        if (strcmp(words[i], "--no-bits") == 0)
            o->bits = false;
        else if (strcmp(words[i], "--no-times") == 0)
            o->times = false;
        else if (words[i][0] != '-' && paths < BUILDS)
            o->paths[paths++] = words[i];
        else if (i + 1 == count || !take_option(o, words[i], words[i + 1]))
            return false;
        else
            i++;
    }
    return paths == BUILDS;
}

static void compare(session *s) {
    if (s->options->bits) {
        compare_products(s);
        printf("products: %zu results compared, %zu refused by both, %zu kernels chosen otherwise, "
               "%zu different\n",
               s->compared, s->refused, s->choices, s->different);
        size_t before = s->compared, refused = s->refused, different = s->different;
        compare_recodes(s);
        printf("conversions: %zu results compared, %zu refused by both, %zu different\n",
               s->compared - before, s->refused - refused, s->different - different);
    }
    if (s->options->times) time_products(s);
}

int main(int count, char **words) {
    static options o = {.device = "cpu", .random = 3000, .seed = 1, .threads = {1, 2}};
    static session s;
    setvbuf(stdout, NULL, _IOLBF, 0);
    o.every = 1, o.pairs = 101, o.largest = INT64_MAX / 64, o.bits = o.times = true;
    if (!take_options(&o, count, words)) return fputs(usage, stderr), 2;
    if (!session_open(&s, &o)) return 2;
    compare(&s);
    bench_device_close(s.device);
    return s.different != 0;
}
