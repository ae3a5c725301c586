/* Reads the metadata note of an AMDGPU code object. The note is in msgpack format and holds the
 * names and arguments of the kernels. */
#include "sim.h"
#include <stdlib.h>
#include <string.h>

typedef struct {
    const uint8_t *at, *end;
    bool bad;
} reader;

enum kind { NOTHING, INTEGER, STRING, ARRAY, MAP };
typedef struct {
    enum kind kind;
    /* `value` is the value of a msgpack integer. For other msgpack objects, it is the number of
     * bytes or elements. */
    uint64_t value;
    const char *text;
} item;

static uint64_t big_endian(reader *r, uint32_t bytes) {
    uint64_t v = 0;
    if ((size_t)(r->end - r->at) < bytes) return r->bad = true, r->at = r->end, 0;
    while (bytes--)
        v = v << 8 | *r->at++;
    return v;
}

static item text(reader *r, uint64_t length) {
    if ((uint64_t)(r->end - r->at) < length) return r->bad = true, (item){0};
    const item i = {STRING, length, (const char *)r->at};
    r->at += length;
    return i;
}

static item next(reader *r) {
    const uint8_t c = (uint8_t)big_endian(r, 1);
    if (r->bad) return (item){0};
    if (c < 0x80) return (item){INTEGER, c, NULL};
    if (c < 0x90) return (item){MAP, c & 15, NULL};
    if (c < 0xa0) return (item){ARRAY, c & 15, NULL};
    if (c < 0xc0) return text(r, c & 31);
    switch (c) {
    case 0xc0:
    case 0xc2:
        return (item){INTEGER, 0, NULL};
    case 0xc3:
        return (item){INTEGER, 1, NULL};
    case 0xca:
    case 0xcb:
        return (item){INTEGER, big_endian(r, c == 0xca ? 4 : 8), NULL};
    case 0xcc:
    case 0xcd:
    case 0xce:
    case 0xcf:
        return (item){INTEGER, big_endian(r, 1u << (c - 0xcc)), NULL};
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3:
        return (item){INTEGER, big_endian(r, 1u << (c - 0xd0)), NULL};
    case 0xc4:
    case 0xc5:
    case 0xc6:
        return text(r, big_endian(r, 1u << (c - 0xc4)));
    case 0xd9:
    case 0xda:
    case 0xdb:
        return text(r, big_endian(r, 1u << (c - 0xd9)));
    case 0xdc:
    case 0xdd:
        return (item){ARRAY, big_endian(r, c == 0xdc ? 2 : 4), NULL};
    case 0xde:
    case 0xdf:
        return (item){MAP, big_endian(r, c == 0xde ? 2 : 4), NULL};
    default:
        r->bad = true;
        return (item){0};
    }
}

/* Skips a msgpack object and all objects nested in it. `depth` limits the nesting, so that a
 * damaged file cannot overflow the stack. */
static void skip(reader *r, int depth) {
    const item i = next(r);
    if (depth > 16) r->bad = true;
    for (uint64_t n = i.kind == MAP     ? 2 * i.value
                      : i.kind == ARRAY ? i.value
                                        : 0;
         n && !r->bad; n--)
        skip(r, depth + 1);
}

static bool is(item key, const char *name) {
    return key.kind == STRING && key.value == strlen(name) &&
           memcmp(key.text, name, key.value) == 0;
}

static void read_arg(reader *r, gfx9_arg *arg) {
    const item map = next(r);
    for (uint64_t n = map.kind == MAP ? map.value : 0; n && !r->bad; n--) {
        const item key = next(r);
        if (is(key, ".offset"))
            arg->offset = (uint32_t)next(r).value;
        else if (is(key, ".size"))
            arg->size = (uint32_t)next(r).value;
        else if (is(key, ".value_kind")) {
            const item v = next(r);
            if (v.kind == STRING && v.value < sizeof arg->kind) memcpy(arg->kind, v.text, v.value);
        } else
            skip(r, 0);
    }
    if (arg->size > 1 << 16 || arg->offset > 1 << 16) r->bad = true;
}

static void read_args(reader *r, gfx9_kernel *k) {
    const item list = next(r);
    if (list.kind == ARRAY && list.value <= 4096 && !k->args)
        k->args = calloc(list.value + 1, sizeof *k->args);
    else
        r->bad = true;
    if (!k->args) r->bad = true;
    for (; k->arg_count < list.value && !r->bad; k->arg_count++)
        read_arg(r, &k->args[k->arg_count]);
}

static void read_kernel(reader *r, gfx9_kernel *k) {
    const item map = next(r);
    for (uint64_t n = map.kind == MAP ? map.value : 0; n && !r->bad; n--) {
        const item key = next(r);
        if (is(key, ".args"))
            read_args(r, k);
        else if (is(key, ".name")) {
            const item v = next(r);
            if (v.kind != STRING || v.value >= sizeof k->name)
                r->bad = true;
            else
                memcpy(k->name, v.text, v.value), k->name[v.value] = 0;
        } else
            skip(r, 0);
    }
}

bool gfx9_metadata(gfx9_object *object, const uint8_t *bytes, size_t size) {
    reader r = {bytes, bytes + size, false};
    const item map = next(&r);
    for (uint64_t n = map.kind == MAP ? map.value : 0; n && !r.bad; n--) {
        const item key = next(&r);
        if (!is(key, "amdhsa.kernels")) {
            skip(&r, 0);
            continue;
        }
        const item list = next(&r);
        if (list.kind != ARRAY || list.value > size || object->kernels) return false;
        object->kernels = calloc(list.value + 1, sizeof *object->kernels);
        if (!object->kernels) return false;
        for (; object->kernel_count < list.value && !r.bad; object->kernel_count++)
            read_kernel(&r, &object->kernels[object->kernel_count]);
    }
    return !r.bad && map.kind == MAP;
}
