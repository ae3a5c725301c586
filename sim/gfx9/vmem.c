/* Executes AMD's global, flat, scratch and buffer instructions and scalar loads. Every address
 * must be inside an allocation. */
#include "access.h"
#include "time.h"
#include <string.h>

uint64_t gfx9_shared_base = 1ull << 48, gfx9_private_base = 2ull << 48;

enum { FLAT, GLOBAL, SCRATCH, BUFFER };
enum { LOAD, STORE, ATOMIC };

typedef struct {
    /* `at` holds the host address of each lane's data. It is NULL if the lane accesses a buffer
     * past its end. Such a load returns 0, and such a store does nothing. */
    uint8_t *at[LANES];
    uint64_t active;
    /* `limit` is, for a buffer access, the number of bytes from `at` to the buffer's end. If an
     * access needs more bytes, a load returns 0 and a store does nothing. */
    int64_t limit[LANES];
    bool local;
} places;

/* Returns the host address of a device address. If the bytes are not inside one allocation, stops
 * the wave with an error and returns NULL. `cache` holds the allocation that the last call found.
 */
static uint8_t *resolve(gfx9_wave *w, const gfx9_inst *i, uint64_t address, uint32_t bytes,
                        int lane, uint64_t cache[2]) {
    const gfx9_group *g = w->group;
    if (address - cache[0] < cache[1] && bytes <= cache[1] - (address - cache[0]))
        return (uint8_t *)(uintptr_t)address;
    if (address >> 32 == gfx9_shared_base >> 32) {
        const uint32_t at = (uint32_t)address;
        if (at < g->lds_size && bytes <= g->lds_size - at) return g->lds + at;
    } else if (address >> 32 == gfx9_private_base >> 32) {
        const uint32_t at = (uint32_t)address;
        if (at < w->scratch_size && bytes <= w->scratch_size - at)
            return w->scratch + (size_t)lane * w->scratch_size + at;
    } else if (sim_memory_find(address, &cache[0], &cache[1]) &&
               bytes <= cache[1] - (address - cache[0])) {
        return (uint8_t *)(uintptr_t)address;
    }
    cache[0] = cache[1] = 0;
    gfx9_stop(w, i, "lane %d: %u bytes at 0x%llx lie outside every allocation", lane, bytes,
              (unsigned long long)address);
    return NULL;
}

/* Names the operands of a memory instruction by their role, because their order in the text
 * depends on the kind of instruction. */
typedef struct {
    const gfx9_operand *data, *address, *base, *result, *offset;
} parts;

static parts split(const gfx9_inst *i, int kind) {
    const int family = i->row->a;
    static const gfx9_operand none = {.place = OFF};
    parts p = {&none, &none, &none, NULL, &none};
    int k = 0;
    const bool to_lds = i->row->c || i->lds;
    /* `after` is the number of operands that form the address. */
    const int after = family == BUFFER ? 3 : family == FLAT ? 1 : 2;
    if (kind == LOAD && !to_lds) p.data = &i->op[k++];
    if (kind == STORE && family == BUFFER) p.data = &i->op[k++];
    if (kind == ATOMIC && family == BUFFER) p.data = &i->op[k++], p.result = i->glc ? p.data : NULL;
    if (kind == ATOMIC && family != BUFFER && i->operand_count > after + 1) p.result = &i->op[k++];
    if (family == BUFFER && to_lds && i->op[k].place != VGPR && i->op[k].place != OFF) {
        p.base = &i->op[k], p.offset = &i->op[k + 1];
        return p;
    }
    p.address = &i->op[k++];
    if (kind != LOAD && family != BUFFER) p.data = &i->op[k++];
    if (family == BUFFER)
        p.base = &i->op[k++], p.offset = &i->op[k++];
    else if (family != FLAT)
        p.base = &i->op[k++];
    return p;
}

static void flat_places(gfx9_wave *w, const gfx9_inst *i, const parts *p, uint32_t bytes,
                        places *to) {
    const int family = i->row->a;
    const bool wide = p->address->place == VGPR && p->address->count == 2;
    const uint64_t base = p->base->place == SGPR
                              ? family == SCRATCH ? w->s[p->base->reg] : gfx9_s64(w, p->base->reg)
                              : 0;
    uint64_t cache[2] = {0};
    for (int l = 0; l < LANES; l++) {
        if (!(to->active >> l & 1)) continue;
        uint64_t address = base + (uint64_t)(int64_t)i->offset;
        if (p->address->place == VGPR)
            address += wide
                           ? w->v[p->address->reg][l] | (uint64_t)w->v[p->address->reg + 1][l] << 32
                           : w->v[p->address->reg][l];
        if (family == SCRATCH) address = gfx9_private_base | (uint32_t)address;
        to->at[l] = resolve(w, i, address, bytes, l, cache);
        to->limit[l] = bytes;
        if (!to->at[l]) return;
    }
}

/* Computes the addresses of a buffer instruction from the buffer descriptor, which has the base
 * address, the stride and the number of records. Past the buffer's end, loads return 0 and stores
 * do nothing. */
static void buffer_places(gfx9_wave *w, const gfx9_inst *i, const parts *p, uint32_t bytes,
                          places *to) {
    const uint32_t *d = &w->s[p->base->reg];
    const uint64_t base = d[0] | (uint64_t)(d[1] & 0xffff) << 32;
    const uint32_t stride = d[1] >> 16 & 0x3fff, records = d[2];
    const uint32_t soffset = (uint32_t)gfx9_scalar(w, p->offset, U32);
    uint64_t cache[2] = {0};
    for (int l = 0; l < LANES; l++) {
        if (!(to->active >> l & 1)) continue;
        uint32_t index = 0, offset = (uint32_t)i->offset;
        if (i->idxen) index = w->v[p->address->reg][l];
        if (i->offen) offset += w->v[p->address->reg + i->idxen][l];
        const int64_t left = stride ? (index < records ? (int64_t)bytes : 0)
                                    : (int64_t)records - soffset - (int64_t)offset;
        to->limit[l] = left < 0 ? 0 : left;
        to->at[l] = NULL;
        const uint32_t inside = left <= 0 ? 0 : left < bytes ? (uint32_t)left & ~3u : bytes;
        if (inside == 0) continue;
        to->at[l] =
            resolve(w, i, base + (uint64_t)index * stride + offset + soffset, inside, l, cache);
        if (!to->at[l]) return;
    }
}

static void find_places(gfx9_wave *w, const gfx9_inst *i, const parts *p, uint32_t bytes,
                        places *to) {
    to->active = gfx9_exec(w);
    (i->row->a == BUFFER ? buffer_places : flat_places)(w, i, p, bytes, to);
    if (w->trace && !w->stop) gfx9_trace_lines(w, to->at, to->active, bytes);
}

/* Reads one, two or four bytes of lane l's data, beginning with byte `from`. Bytes past the end of
 * a buffer are 0. The function has a case for each size, because a memcpy of a variable size would
 * be a slow loop over bytes. */
static uint32_t read_word(const places *p, int l, uint32_t from, uint32_t bytes) {
    if (!p->at[l] || (int64_t)from + bytes > p->limit[l]) return 0;
    const uint8_t *at = p->at[l] + from;
    if (bytes == 1) return *at;
    uint32_t word = 0;
    if (bytes == 2)
        memcpy(&word, at, 2);
    else
        memcpy(&word, at, 4);
    return word;
}

/* Reads the data that lane l loads from memory. The data have `words` 32-bit words. */
static void read_lane(const places *p, const gfx9_row *row, int l, uint32_t words,
                      gfx9_loaded *to) {
    const uint32_t bytes = (uint32_t)row->size;
    const bool active = p->active >> l & 1;
    if (active && row->form == FORM_PLAIN && bytes >= 4 && p->at[l] && bytes <= p->limit[l]) {
        for (uint32_t k = 0; k < words; k++)
            memcpy(&to->data[k][l], p->at[l] + (size_t)4 * k, 4);
        return;
    }
    for (uint32_t k = 0; k < words; k++) {
        const uint32_t n = bytes < 4 ? bytes : 4;
        to->data[k][l] = active ? gfx9_widened(read_word(p, l, 4 * k, n), (int)n, row->form) : 0;
    }
}

static void load_to_lds(gfx9_wave *w, const gfx9_inst *i, const places *p, uint32_t bytes) {
    gfx9_group *g = w->group;
    const uint32_t start = (w->s[M0] & 0x3ffff) + (uint32_t)i->offset, step = bytes < 4 ? 4 : bytes;
    gfx9_pending *late = g->checks & CHECK_WAITS ? gfx9_postpone(w) : NULL;
    if (late)
        late->vm = 1, late->to_lds = 1, late->inst = i, late->exec = p->active,
        late->count = (uint16_t)(step / 4);
    for (int l = 0; l < LANES; l++) {
        if (!(p->active >> l & 1)) continue;
        const uint32_t at = start + (uint32_t)l * step;
        uint32_t words[4];
        if (at > g->lds_size || step > g->lds_size - at) {
            gfx9_stop(w, i, "lane %d: %u bytes at LDS 0x%x lie outside the workgroup's %u bytes", l,
                      step, at, g->lds_size);
            return;
        }
        for (uint32_t k = 0; k < step / 4; k++)
            words[k] = read_word(p, l, 4 * k, bytes < 4 ? bytes : 4);
        gfx9_lds_touch(w, i, at, step, (uint32_t)l, 1, words);
        if (late) gfx9_lds_late(w, at, step, 1);
        if (late)
            late->lds_at[l] = at, memcpy(&late->data[0][0] + (size_t)l * (step / 4), words, step);
        else
            memcpy(g->lds + at, words, step);
    }
}

static void execute_load(gfx9_wave *w, const gfx9_inst *i) {
    const uint32_t bytes = (uint32_t)i->row->size, words = (bytes + 3) / 4;
    const parts p = split(i, LOAD);
    places at;
    gfx9_loaded loaded;
    find_places(w, i, &p, bytes, &at);
    if (w->stop) return;
    if (i->row->c || i->lds) {
        load_to_lds(w, i, &at, bytes);
        return;
    }
    for (int l = 0; l < LANES; l++)
        read_lane(&at, i->row, l, words, &loaded);
    gfx9_result(w, p.data->reg, words, at.active, i->row->form, &loaded, true, i->row->a == FLAT);
}

static void execute_store(gfx9_wave *w, const gfx9_inst *i) {
    const uint32_t bytes = (uint32_t)i->row->size;
    const parts p = split(i, STORE);
    places at;
    find_places(w, i, &p, bytes, &at);
    if (w->stop) return;
    for (int l = 0; l < LANES; l++) {
        if (!(at.active >> l & 1) || !at.at[l]) continue;
        for (uint32_t k = 0; k < bytes; k += 4) {
            const uint32_t n = bytes < 4 ? bytes : 4;
            const uint32_t word =
                w->v[p.data->reg + k / 4][l] >> (i->row->form & FORM_HIGH ? 16 : 0);
            if ((int64_t)k + n <= at.limit[l]) memcpy(at.at[l] + k, &word, n);
        }
    }
    if (w->group->checks & CHECK_WAITS) {
        gfx9_pending *late = gfx9_postpone(w);
        if (late) late->vm = 1, late->lgkm = i->row->a == FLAT;
    }
}

/* Executes an atomic of one lane on global memory. Several host threads run workgroups at the same
 * time, so the function uses the host's atomic operations. */
static uint64_t atomic_at(uint8_t *at, int what, uint64_t data, uint64_t compare, int bytes) {
    if (bytes == 4) {
        uint32_t *p = (uint32_t *)(void *)at, old = __atomic_load_n(p, __ATOMIC_SEQ_CST);
        while (!__atomic_compare_exchange_n(
            p, &old, (uint32_t)gfx9_atomic_value(what, old, (uint32_t)data, (uint32_t)compare, 4),
            false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
        }
        return old;
    }
    uint64_t *p = (uint64_t *)(void *)at, old = __atomic_load_n(p, __ATOMIC_SEQ_CST);
    while (!__atomic_compare_exchange_n(p, &old, gfx9_atomic_value(what, old, data, compare, 8),
                                        false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    }
    return old;
}

static uint64_t register_value(const gfx9_wave *w, uint32_t reg, int l, int bytes) {
    return w->v[reg][l] | (bytes == 8 ? (uint64_t)w->v[reg + 1][l] << 32 : 0);
}

static void execute_atomic(gfx9_wave *w, const gfx9_inst *i) {
    const int bytes = i->row->size, what = i->row->b;
    const parts p = split(i, ATOMIC);
    places at = {0};
    gfx9_loaded loaded = {0};
    find_places(w, i, &p, (uint32_t)bytes, &at);
    if (w->stop) return;
    for (int l = 0; l < LANES; l++) {
        if (!(at.active >> l & 1) || !at.at[l]) continue;
        if ((uintptr_t)at.at[l] % (unsigned)bytes) {
            gfx9_stop(w, i, "lane %d: an atomic's address is not aligned to %d bytes", l, bytes);
            return;
        }
        const uint64_t data = register_value(w, p.data->reg, l, bytes);
        const uint64_t compare =
            what == AT_CMPSWAP ? register_value(w, p.data->reg + (uint32_t)bytes / 4, l, bytes) : 0;
        const uint64_t old = atomic_at(at.at[l], what, data, compare, bytes);
        loaded.data[0][l] = (uint32_t)old, loaded.data[1][l] = (uint32_t)(old >> 32);
    }
    if (p.result)
        gfx9_result(w, p.result->reg, (uint32_t)bytes / 4, at.active, FORM_PLAIN, &loaded, true,
                    i->row->a == FLAT);
}

static void execute_nothing(gfx9_wave *w, const gfx9_inst *i) {
    (void)w, (void)i;
}

static void execute_scalar_load(gfx9_wave *w, const gfx9_inst *i) {
    const uint32_t words = (uint32_t)i->row->size / 4;
    const bool buffer = i->row->b;
    const uint32_t reg = i->op[1].reg;
    uint64_t address =
        buffer ? w->s[reg] | (uint64_t)(w->s[reg + 1] & 0xffff) << 32 : gfx9_s64(w, reg);
    uint32_t offset = (uint32_t)i->offset;
    if (i->operand_count > 2) offset += (uint32_t)gfx9_scalar(w, &i->op[2], U32);
    uint32_t left = buffer ? w->s[reg + 2] : ~0u;
    address = (address + (buffer ? offset : (uint64_t)(int64_t)(int32_t)offset)) & ~3ull;
    uint32_t data[16] = {0};
    uint64_t cache[2] = {0};
    const uint32_t inside = buffer ? (offset >= left              ? 0
                                      : left - offset < 4 * words ? (left - offset) & ~3u
                                                                  : 4 * words)
                                   : 4 * words;
    if (inside) {
        const uint8_t *from = resolve(w, i, address, inside, 0, cache);
        if (!from) return;
        memcpy(data, from, inside);
    }
    gfx9_pending *late = w->group->checks & CHECK_WAITS ? gfx9_postpone(w) : NULL;
    for (uint32_t k = 0; k < words; k++) {
        if (late)
            late->data[0][k] = data[k], w->late_s[i->op[0].reg + k]++;
        else
            w->s[i->op[0].reg + k] = data[k];
    }
    if (late) late->lgkm = late->smem = 1, late->reg = i->op[0].reg, late->count = (uint16_t)words;
}

#define LOADS(f, F)                                                                                \
    L(f "load_dword", F, 4, 0), L(f "load_dwordx2", F, 8, 0), L(f "load_dwordx3", F, 12, 0),       \
        L(f "load_dwordx4", F, 16, 0), L(f "load_ubyte", F, 1, 0),                                 \
        L(f "load_sbyte", F, 1, FORM_SIGNED), L(f "load_ushort", F, 2, 0),                         \
        L(f "load_sshort", F, 2, FORM_SIGNED), L(f "load_ubyte_d16", F, 1, FORM_LOW),              \
        L(f "load_ubyte_d16_hi", F, 1, FORM_HIGH),                                                 \
        L(f "load_sbyte_d16", F, 1, FORM_LOW | FORM_SIGNED),                                       \
        L(f "load_sbyte_d16_hi", F, 1, FORM_HIGH | FORM_SIGNED),                                   \
        L(f "load_short_d16", F, 2, FORM_LOW), L(f "load_short_d16_hi", F, 2, FORM_HIGH),          \
        S(f "store_dword", F, 4, 0), S(f "store_dwordx2", F, 8, 0),                                \
        S(f "store_dwordx3", F, 12, 0), S(f "store_dwordx4", F, 16, 0),                            \
        S(f "store_byte", F, 1, 0), S(f "store_short", F, 2, 0),                                   \
        S(f "store_byte_d16_hi", F, 1, FORM_HIGH), S(f "store_short_d16_hi", F, 2, FORM_HIGH)
#define L(name, F, bytes, form)                                                                    \
    { name, execute_load, {0}, N, F, 0, 0, COST_VMEM, bytes, form }
#define S(name, F, bytes, form)                                                                    \
    { name, execute_store, {0}, N, F, 0, 0, COST_VMEM, bytes, form }
#define A(name, F, what, bytes)                                                                    \
    { name, execute_atomic, {0}, N, F, what, 0, COST_VMEM, bytes, 0 }
#define BOTH(f, F, name, what)                                                                     \
    A(f "atomic_" name, F, what, 4), A(f "atomic_" name "_x2", F, what, 8)
#define ATOMICS(f, F)                                                                              \
    BOTH(f, F, "swap", AT_SWAP), BOTH(f, F, "cmpswap", AT_CMPSWAP), BOTH(f, F, "add", AT_ADD),     \
        BOTH(f, F, "sub", AT_SUB), BOTH(f, F, "smin", AT_SMIN), BOTH(f, F, "umin", AT_UMIN),       \
        BOTH(f, F, "smax", AT_SMAX), BOTH(f, F, "umax", AT_UMAX), BOTH(f, F, "and", AT_AND),       \
        BOTH(f, F, "or", AT_OR), BOTH(f, F, "xor", AT_XOR), BOTH(f, F, "inc", AT_INC),             \
        BOTH(f, F, "dec", AT_DEC), A(f "atomic_add_f32", F, AT_ADD_F32, 4),                        \
        A(f "atomic_add_f64", F, AT_ADD_F64, 8), A(f "atomic_min_f64", F, AT_MIN_F64, 8),          \
        A(f "atomic_max_f64", F, AT_MAX_F64, 8), A(f "atomic_pk_add_f16", F, AT_PK_ADD_F16, 4),    \
        A(f "atomic_pk_add_bf16", F, AT_PK_ADD_BF16, 4)
#define D(name, bytes)                                                                             \
    { name, execute_load, {0}, N, GLOBAL, 0, 1, COST_VMEM, bytes, 0 }
#define M(name, buffer, bytes)                                                                     \
    { name, execute_scalar_load, {0}, U32, N, buffer, N, COST_SMEM, bytes, 0 }
#define NOTHING(name)                                                                              \
    { name, execute_nothing, {0}, N, N, N, N, COST_VMEM, 0, 0 }
static const gfx9_row rows[] = {
    LOADS("flat_", FLAT),
    LOADS("global_", GLOBAL),
    LOADS("scratch_", SCRATCH),
    LOADS("buffer_", BUFFER),
    ATOMICS("flat_", FLAT),
    ATOMICS("global_", GLOBAL),
    ATOMICS("buffer_", BUFFER),
    D("global_load_lds_dword", 4),
    D("global_load_lds_dwordx3", 12),
    D("global_load_lds_dwordx4", 16),
    D("global_load_lds_ubyte", 1),
    D("global_load_lds_ushort", 2),
    M("s_load_dword", 0, 4),
    M("s_load_dwordx2", 0, 8),
    M("s_load_dwordx4", 0, 16),
    M("s_load_dwordx8", 0, 32),
    M("s_load_dwordx16", 0, 64),
    M("s_buffer_load_dword", 1, 4),
    M("s_buffer_load_dwordx2", 1, 8),
    M("s_buffer_load_dwordx4", 1, 16),
    M("s_buffer_load_dwordx8", 1, 32),
    M("s_buffer_load_dwordx16", 1, 64),
    NOTHING("buffer_wbl2"),
    NOTHING("buffer_inv"),
};
const gfx9_table gfx9_memory_table = {rows, sizeof rows / sizeof *rows};
