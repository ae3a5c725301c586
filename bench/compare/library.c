#include "compare.h"

#include <dlfcn.h>
#include <string.h>

static const struct {
    const char *symbol;
    size_t offset;
} functions[] = {
#define FUNCTION(name) {"bsmm_" #name, offsetof(library, name)},
#include "functions.def"
#undef FUNCTION
};

static bool open_library(library *l, const char *path) {
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) return fprintf(stderr, "%s\n", dlerror()), false;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *symbol = dlsym(handle, functions[i].symbol);
        if (!symbol) return fprintf(stderr, "%s: no %s\n", path, functions[i].symbol), false;
        memcpy((char *)l + functions[i].offset, &symbol, sizeof symbol);
    }
    return true;
}

typedef struct names {
    const char *list[MOST_KERNELS];
    size_t count;
} names;

/* Lists the kernels of a build for the device. Some builds also list the kernels of other devices.
 * The function skips these kernels, whose reason for refusing begins with "runs on". */
static names kernels_of(const library *l, const char *device) {
    static const char elsewhere[] = "runs on ";
    static const bsmm_format f32 = {.elem = BSMM_ELEM_F32};
    bsmm_matrix m = BSMM_INIT(bsmm_matrix);
    m.format = f32, m.rows = m.cols = 32;
    bsmm_matmul_desc desc = BSMM_INIT(bsmm_matmul_desc);
    desc.a = desc.b = desc.d = &m;
    bsmm_explanation e = BSMM_INIT(bsmm_explanation);
    names found = {.count = 0};
    desc.device = device;
    for (uint32_t i = 0; found.count < MOST_KERNELS && !l->explain(&desc, i, &e); i++)
        if (strncmp(e.reason, elsewhere, strlen(elsewhere)) != 0)
            found.list[found.count++] = e.kernel;
    return found;
}

static void match(session *s, const char *old, const char *new) {
    s->kernels[s->kernel_count][OLD] = old;
    s->kernels[s->kernel_count++][NEW] = new;
}

static const char *take(names *from, const char *name) {
    for (size_t i = 0; name && i < from->count; i++) {
        const char *found = from->list[i];
        if (strcmp(found, name) != 0) continue;
        memmove(&from->list[i], &from->list[i + 1], (--from->count - i) * sizeof found);
        return found;
    }
    return NULL;
}

/* `old` lists kernels that only the old build has, and `new` those that only the new build has. If
 * both lists have the same length, pairs their kernels in order, because a renamed kernel usually
 * keeps its position. */
static void match_in_order(session *s, names *old, names *new) {
    if (old->count != new->count) return;
    while (old->count) {
        printf("kernel %s is now %s\n", old->list[0], new->list[0]);
        match(s, take(old, old->list[0]), take(new, new->list[0]));
    }
}

static void match_kernels(session *s) {
    names old = kernels_of(&s->builds[OLD], s->options->device);
    names new = kernels_of(&s->builds[NEW], s->options->device);
    for (size_t i = 0; i < s->options->rename_count; i++) {
        const char *const *pair = s->options->renames[i];
        const char *from = take(&old, pair[OLD]), *to = take(&new, pair[NEW]);
        if (from || to) match(s, from, to);
    }
    for (size_t i = 0; i < old.count;) {
        const char *name = old.list[i], *to = take(&new, name);
        if (to) match(s, take(&old, name), to);
        i += to ? 0 : 1;
    }
    match_in_order(s, &old, &new);
    for (size_t i = 0; i < old.count; i++)
        printf("kernel %s is gone\n", old.list[i]), match(s, old.list[i], NULL);
    for (size_t i = 0; i < new.count; i++)
        printf("kernel %s is new\n", new.list[i]), match(s, NULL, new.list[i]);
}

bool session_open(session *s, const options *o) {
    *s = (session){.options = o};
    if (dlsym(RTLD_DEFAULT, "bsmm_version"))
        return fprintf(stderr, "this program's own library would answer for the others\n"), false;
    for (int i = 0; i < BUILDS; i++)
        if (!open_library(&s->builds[i], o->paths[i])) return false;
    match_kernels(s);
    s->device = bench_device_open(o->device);
    return s->device || (fprintf(stderr, "%s: %s\n", o->device, bench_device_error()), false);
}
