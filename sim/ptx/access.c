/* Executes the PTX instructions that load and store (ld, ldu, st), the instruction mov, and those
 * that convert or test addresses (cvta, mapa, isspacep). The simulator checks every byte that a
 * program accesses. */
#include "access.h"
#include "races.h"
#include "time.h"
#include <string.h>

void ptx_addresses(const ptx_warp *w, const ptx_operand *o, uint64_t *address) {
    const uint64_t offset = (uint64_t)o->value;
    if (o->width == 8) {
        const uint64_t *base = (const uint64_t *)(const void *)(w->regs + o->at);
        for (int l = 0; l < LANES; l++)
            address[l] = base[l] + offset;
        return;
    }
    const uint32_t *base = (const uint32_t *)(const void *)(w->regs + o->at);
    for (int l = 0; l < LANES; l++)
        address[l] = (uint32_t)(base[l] + (uint32_t)offset);
}

static bool all_written(const uint8_t *shadow, uint32_t bytes) {
    uint8_t others = 0;
    for (uint32_t k = 0; k < bytes; k++)
        others |= shadow[k] ^ WRITTEN;
    return others == 0;
}

static bool check_shadow(ptx_warp *w, const ptx_inst *i, const ptx_block *b, uint32_t offset,
                         uint32_t bytes, uint64_t address, bool async) {
    const uint32_t checks = b->launch->checks;
    for (uint32_t k = 0; k < bytes; k++) {
        const uint8_t state = b->shadow[offset + k];
        const char *wrong = NULL;
        if (state == NEVER_WRITTEN && checks & CHECK_UNWRITTEN) wrong = "was never written";
        if (state == UNFENCED && async && checks & CHECK_PROXIES)
            wrong = "was written by a thread, without fence.proxy.async before this access by the "
                    "async proxy";
        if (!wrong) continue;
        ptx_stop(w, i, "shared memory 0x%llx %s", (unsigned long long)address + k, wrong);
        return false;
    }
    return true;
}

static void mark_written(ptx_block *b, uint32_t offset, uint32_t bytes, bool async) {
    memset(b->shadow + offset, async ? WRITTEN : UNFENCED, bytes);
    if (async) return;
    if (offset < b->unfenced[0]) b->unfenced[0] = offset;
    if (offset + bytes > b->unfenced[1]) b->unfenced[1] = offset + bytes;
}

void ptx_fence_proxies(ptx_cluster *c) {
    for (uint32_t k = 0; k < c->size; k++) {
        ptx_block *b = &c->blocks[k];
        for (uint32_t at = b->unfenced[0]; b->shadow && at < b->unfenced[1]; at++)
            if (b->shadow[at] == UNFENCED) b->shadow[at] = WRITTEN;
        b->unfenced[0] = b->shared_bytes, b->unfenced[1] = 0;
    }
}

static uint8_t *find_shared(ptx_warp *w, const ptx_inst *i, uint64_t address, uint32_t bytes,
                            bool write, bool async) {
    const uint64_t rank = address >> RANK_SHIFT, offset = address & ((1u << RANK_SHIFT) - 1);
    ptx_cluster *c = w->block->cluster;
    if (rank >= c->size || offset < SHARED_BEGIN || offset + bytes > c->blocks[rank].shared_bytes) {
        ptx_stop(w, i, "shared memory 0x%llx, %u bytes: the block has 0x%x to 0x%x",
                 (unsigned long long)address, bytes, SHARED_BEGIN, c->blocks[0].shared_bytes);
        return NULL;
    }
    ptx_block *b = &c->blocks[rank];
    if (b->shadow && write) mark_written(b, (uint32_t)offset, bytes, async);
    if (b->shadow && !write && !all_written(b->shadow + offset, bytes) &&
        !check_shadow(w, i, b, (uint32_t)offset, bytes, address, async))
        return NULL;
    return b->shared + offset;
}

uint8_t *ptx_shared(ptx_warp *w, const ptx_inst *i, uint64_t address, uint32_t bytes, bool write) {
    return find_shared(w, i, address, bytes, write, false);
}

uint8_t *ptx_shared_async(ptx_warp *w, const ptx_inst *i, uint64_t address, uint32_t bytes,
                          bool write) {
    return find_shared(w, i, address, bytes, write, true);
}

static uint8_t *local(ptx_warp *w, const ptx_inst *i, uint64_t offset, uint32_t bytes,
                      uint32_t lane) {
    if (offset + bytes <= w->local_bytes && offset < w->local_bytes)
        return w->local + (size_t)lane * w->local_bytes + offset;
    ptx_stop(w, i, "lane %u: local memory 0x%llx, %u bytes: the thread has 0x%x", lane,
             (unsigned long long)offset, bytes, w->local_bytes);
    return NULL;
}

static uint8_t *global(ptx_warp *w, const ptx_inst *i, uint64_t address, uint32_t bytes,
                       uint32_t lane) {
    if (address - w->begin < w->size && bytes <= w->size - (address - w->begin))
        return (uint8_t *)(uintptr_t)address;
    uint64_t begin = 0, size = 0;
    if (sim_memory_find(address, &begin, &size) && bytes <= size - (address - begin)) {
        w->begin = begin, w->size = size;
        return (uint8_t *)(uintptr_t)address;
    }
    if (size)
        ptx_stop(w, i,
                 "lane %u: %u bytes at 0x%llx lie outside its allocation of %llu bytes at 0x%llx",
                 lane, bytes, (unsigned long long)address, (unsigned long long)size,
                 (unsigned long long)begin);
    else
        ptx_stop(w, i, "lane %u: %u bytes at 0x%llx lie outside every allocation", lane, bytes,
                 (unsigned long long)address);
    return NULL;
}

static uint64_t parameter(const ptx_warp *w, uint64_t address) {
    return (uint64_t)(uintptr_t)w->block->launch->arguments + address - PARAM_BEGIN;
}

/* Returns the bits of an address that must be 0 in an access of `bytes` bytes. Bulk copies
 * (cp.async.bulk) have any size and check their alignment themselves, so the result is 0 for them.
 */
static uint32_t must_be_zero(const ptx_inst *i, uint32_t bytes) {
    return bytes <= 32 && (bytes & (bytes - 1)) == 0 && !i->opcode->bulk ? bytes - 1 : 0;
}

/* Finds the host addresses of the bytes that the lanes access, for all lanes at once. This works if
 * each active lane accesses aligned bytes of the allocation in which the warp has last found an
 * address. Most accesses to global memory do so. Otherwise returns false, and ptx_resolve checks
 * one lane after another. The first loop has neither branches nor comparisons, so that the compiler
 * makes vector code of it. gcc 12 does so only if `mask` has 32 bits. The second loop sets `at` of
 * inactive lanes, too, which nobody reads. */
static bool resolve_last(const ptx_warp *w, const ptx_inst *i, const uint64_t *address,
                         uint32_t bytes, uint8_t **at) {
    const uint64_t low = must_be_zero(i, bytes), begin = w->begin;
    const uint32_t mask = w->mask;
    uint64_t wrong = 0;
    if (!bytes || bytes > w->size) return false;
    const uint64_t last = w->size - bytes;
    for (uint32_t l = 0; l < LANES; l++) {
        /* If `offset` is larger than `last`, bit 63 of `offset` or of last - offset is set, because
         * allocations have fewer than 2^63 bytes. */
        const uint64_t offset = address[l] - begin, outside = (offset | (last - offset)) >> 63;
        const uint64_t active = 0 - (uint64_t)(mask >> l & 1);
        wrong |= ((address[l] & low) | outside) & active;
    }
    if (wrong) return false;
    for (uint32_t l = 0; l < LANES; l++)
        at[l] = (uint8_t *)(uintptr_t)address[l];
    return true;
}

static uint8_t *resolve_one(ptx_warp *w, const ptx_inst *i, uint64_t address, int space,
                            uint32_t bytes, bool write, uint32_t lane) {
    if (address & must_be_zero(i, bytes)) {
        ptx_stop(w, i, "lane %u: address 0x%llx is misaligned for %u bytes", lane,
                 (unsigned long long)address, bytes);
        return NULL;
    }
    if (space == PARAM && address >= PARAM_BEGIN)
        address = parameter(w, address), space = GLOBAL;
    else if (space == PARAM)
        space = LOCAL;
    if (space == GENERIC && address >> 56)
        space = address >> 56 == SHARED_WINDOW >> 56 ? SHARED : LOCAL, address &= 0xffffffffffff;
    if (space == SHARED) {
        uint8_t *const at = ptx_shared(w, i, address, bytes, write);
        if (at)
            ptx_race_access(w, i, &w->block->cluster->blocks[address >> RANK_SHIFT],
                            (uint32_t)address & ((1u << RANK_SHIFT) - 1), bytes, write, lane);
        return w->stop == STOP_ERROR ? NULL : at;
    }
    if (space == LOCAL) return local(w, i, address, bytes, lane);
    return global(w, i, address, bytes, lane);
}

bool ptx_resolve(ptx_warp *w, const ptx_inst *i, const uint64_t *address, int space, uint32_t bytes,
                 bool write, uint8_t **at) {
    if ((space == GLOBAL || space == GENERIC) && resolve_last(w, i, address, bytes, at))
        return true;
    for (uint32_t left = w->mask; left; left &= left - 1) {
        const uint32_t l = ptx_first(left);
        at[l] = resolve_one(w, i, address[l], space, bytes, write, l);
        if (!at[l]) return false;
    }
    return true;
}

bool ptx_check_written(ptx_warp *w, const ptx_inst *i, const ptx_operand *o, const char *what) {
    if (!(w->block->launch->checks & CHECK_UNWRITTEN) || (o->place != REG && o->place != ADDRESS))
        return true;
    const uint32_t missing = w->mask & ~w->written[o->at / 128];
    if (!missing) return true;
    ptx_stop(w, i, "lane %u: the register of %s was never written", ptx_first(missing), what);
    return false;
}

static int space_of(const ptx_inst *i, const ptx_operand *address) {
    return address->space ? address->space : i->opcode->space;
}

static void load_words(ptx_warp *w, const ptx_operand *o, uint8_t *const *at, uint32_t offset) {
    uint32_t words[LANES];
    if (w->mask == ~0u) {
        /* A loop over all lanes is faster, because it need not look for the active ones. */
        for (uint32_t l = 0; l < LANES; l++)
            memcpy(&words[l], at[l] + offset, 4);
    } else {
        for (uint32_t left = w->mask; left; left &= left - 1) {
            const uint32_t l = ptx_first(left);
            memcpy(&words[l], at[l] + offset, 4);
        }
    }
    ptx_commit(w, o, words);
}

/* Returns the unsigned integer of 1, 2, 4 or 8 bytes at this address. A memcpy with a variable size
 * would take longer. */
static uint64_t load_value(const uint8_t *at, uint32_t bytes) {
    uint16_t two;
    uint32_t four;
    uint64_t eight;
    if (bytes == 1) return *at;
    if (bytes == 2) return memcpy(&two, at, 2), two;
    if (bytes == 4) return memcpy(&four, at, 4), four;
    return memcpy(&eight, at, 8), eight;
}

static void load_element(ptx_warp *w, const ptx_operand *o, uint8_t *const *at, uint32_t offset,
                         ptx_type type) {
    const uint32_t bytes = ptx_types[type].bits / 8;
    const bool sign = ptx_types[type].kind == SIGNED;
    uint64_t wide[LANES];
    uint32_t narrow[LANES];
    if (bytes == 4 && o->width == 4) {
        load_words(w, o, at, offset);
        return;
    }
    for (uint32_t left = w->mask; left; left &= left - 1) {
        const uint32_t l = ptx_first(left);
        uint64_t v = load_value(at[l] + offset, bytes);
        if (sign && bytes < 8 && v >> (8 * bytes - 1)) v |= ~0ull << 8 * bytes;
        wide[l] = v, narrow[l] = (uint32_t)v;
        if (o->width < 4) narrow[l] &= ~0u >> (32 - 8 * o->width);
    }
    ptx_commit(w, o, o->width == 8 ? (void *)wide : (void *)narrow);
}

/* Loads a b128 register, which has 16 bytes per lane. */
static void load_wide(ptx_warp *w, const ptx_operand *o, uint8_t *const *at, uint32_t offset) {
    for (uint32_t left = w->mask; left && o->place == REG; left &= left - 1) {
        const uint32_t l = ptx_first(left);
        memcpy(w->regs + o->at + (size_t)16 * l, at[l] + offset, 16);
    }
    if (o->place == REG) w->written[o->at / 128] |= w->mask;
}

static void execute_ld(ptx_warp *w, const ptx_inst *i) {
    const ptx_type type = (ptx_type)i->opcode->types[0];
    const uint32_t count = i->opcode->vector ? i->opcode->vector : 1,
                   bytes = ptx_types[type].bits / 8;
    uint64_t address[LANES];
    uint8_t *at[LANES];
    if (!ptx_check_written(w, i, &i->op[1], "the address")) return;
    ptx_addresses(w, &i->op[1], address);
    if (!ptx_resolve(w, i, address, space_of(i, &i->op[1]), count * bytes, false, at)) return;
    if (w->trace) ptx_time_access(w, i, address, space_of(i, &i->op[1]), count * bytes);
    for (uint32_t k = 0; k < count; k++) {
        const ptx_operand *o = ptx_element(&i->op[0], k);
        if (bytes == 16)
            load_wide(w, o, at, k * bytes);
        else
            load_element(w, o, at, k * bytes, type);
    }
}

static void execute_st(ptx_warp *w, const ptx_inst *i) {
    const ptx_type type = (ptx_type)i->opcode->types[0];
    const uint32_t count = i->opcode->vector ? i->opcode->vector : 1,
                   bytes = ptx_types[type].bits / 8;
    uint64_t address[LANES];
    uint8_t *at[LANES];
    if (!ptx_check_written(w, i, &i->op[0], "the address")) return;
    ptx_addresses(w, &i->op[0], address);
    for (uint32_t k = 0; k < count; k++)
        if (!ptx_check_written(w, i, ptx_element(&i->op[1], k), "the value")) return;
    if (!ptx_resolve(w, i, address, space_of(i, &i->op[0]), count * bytes, true, at)) return;
    if (w->trace) ptx_time_access(w, i, address, space_of(i, &i->op[0]), count * bytes);
    for (uint32_t k = 0; k < count; k++) {
        const ptx_operand *o = ptx_element(&i->op[1], k);
        const uint32_t each = o->width == 16 ? 16 : o->width == 8 ? 8 : 4;
        for (uint32_t left = w->mask; left; left &= left - 1) {
            const uint32_t l = ptx_first(left);
            memcpy(at[l] + (size_t)k * bytes, w->regs + o->at + (size_t)each * l, bytes);
        }
    }
}

static void gather_parts(ptx_warp *w, const ptx_operand *from, uint8_t *bytes, uint32_t lane,
                         uint32_t each) {
    for (uint32_t k = 0; k < from->count; k++) {
        const uint64_t v = ptx_lane(w, &from->elements[k], lane);
        memcpy(bytes + (size_t)k * each, &v, each);
    }
}

/* Executes mov, which may pack several registers into one or unpack one into several. */
static void execute_mov(ptx_warp *w, const ptx_inst *i) {
    const ptx_operand *to = &i->op[0], *from = &i->op[1];
    const uint32_t bytes = ptx_types[i->opcode->types[0]].bits / 8;
    if (to->place == REG && from->place == REG && to->width < 16) {
        ptx_commit(w, to, ptx_at(w, from));
        return;
    }
    uint8_t lanes[LANES][16] = {{0}};
    for (uint32_t l = 0; l < LANES; l++) {
        if (from->place == VECTOR)
            gather_parts(w, from, lanes[l], l, bytes / from->count);
        else
            memcpy(lanes[l], w->regs + from->at + (size_t)(from->width < 4 ? 4 : from->width) * l,
                   bytes);
    }
    const uint32_t parts = to->place == VECTOR ? to->count : 1, each = bytes / parts;
    for (uint32_t k = 0; k < parts; k++) {
        const ptx_operand *o = ptx_element(to, k);
        uint8_t *at[LANES];
        for (uint32_t l = 0; l < LANES; l++)
            at[l] = lanes[l];
        if (each == 16)
            load_wide(w, o, at, 0);
        else
            load_element(w, o, at, k * each,
                         each == 8   ? T_b64
                         : each == 4 ? T_b32
                         : each == 2 ? T_b16
                                     : T_b8);
    }
}

enum { TO_GENERIC, FROM_GENERIC };

static void execute_cvta(ptx_warp *w, const ptx_inst *i) {
    const uint64_t window = i->opcode->space == SHARED  ? SHARED_WINDOW
                            : i->opcode->space == LOCAL ? LOCAL_WINDOW
                            : i->opcode->space == PARAM
                                ? (uint64_t)(uintptr_t)w->block->launch->arguments - PARAM_BEGIN
                                : 0;
    uint64_t result[LANES];
    for (uint32_t l = 0; l < LANES; l++) {
        const uint64_t v = ptx_lane(w, &i->op[1], l);
        result[l] = i->opcode->row->what == TO_GENERIC ? v + window : v - window;
    }
    ptx_commit(w, &i->op[0], result);
}

static void execute_isspacep(ptx_warp *w, const ptx_inst *i) {
    const uint64_t *a = ptx_u64(w, &i->op[1]);
    uint32_t mask = 0;
    for (uint32_t l = 0; l < LANES; l++) {
        const int space = a[l] >> 56 == 1 ? SHARED : a[l] >> 56 == 2 ? LOCAL : GLOBAL;
        mask |= (uint32_t)(space == i->opcode->space) << l;
    }
    ptx_set_pred(w, &i->op[0], mask);
}

static void execute_mapa(ptx_warp *w, const ptx_inst *i) {
    uint64_t wide[LANES];
    uint32_t narrow[LANES];
    for (uint32_t l = 0; l < LANES; l++) {
        const uint64_t rank = ptx_lane(w, &i->op[2], l), v = ptx_lane(w, &i->op[1], l);
        wide[l] = (v & ~(0xffull << RANK_SHIFT)) | (rank & 0xff) << RANK_SHIFT;
        narrow[l] = (uint32_t)wide[l];
    }
    ptx_commit(w, &i->op[0], i->op[0].width == 8 ? (void *)wide : (void *)narrow);
}

#define ROW(pattern, operands, execute, what)                                                      \
    { pattern, operands, execute, NULL, 0, 0, 0, 0, what }
#define ORDER "{weak|volatile|relaxed|acquire|release|mmio}.{cta|cluster|gpu|sys}."
#define SPACES                                                                                     \
    "{global|shared|shared::cta|shared::cluster|local|param|param::entry|param::func|const}."
#define VALUES "b8|b16|b32|b64|b128|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64"
#define HINT                                                                                       \
    "{ca|cg|cs|lu|cv|wb|wt|nc|L1::evict_normal|L1::evict_unchanged|L1::evict_first|"               \
    "L1::evict_last|L1::no_allocate|L2::evict_normal|L2::evict_first|L2::evict_last|"              \
    "L2::cache_hint|L2::64B|L2::128B|L2::256B}."
#define HINTS HINT HINT HINT HINT
static const ptx_row rows[] = {
    ROW("ld." ORDER SPACES ORDER HINTS "{v2|v4|v8}." VALUES, "vmL?", execute_ld, 0),
    ROW("ldu." SPACES "{v2|v4}." VALUES, "vm", execute_ld, 0),
    ROW("st." ORDER SPACES ORDER HINTS "{v2|v4|v8}." VALUES, "mVL?", execute_st, 0),
    ROW("mov.b16|b32|b64|b128|u16|u32|u64|s16|s32|s64|f16|bf16|f32|f64", "yY", execute_mov, 0),
    ROW("cvta." SPACES "u64|u32", "tT", execute_cvta, TO_GENERIC),
    ROW("cvta.to." SPACES "u64|u32", "tT", execute_cvta, FROM_GENERIC),
    ROW("isspacep.global|shared|shared::cta|shared::cluster|local", "pL", execute_isspacep, 0),
    ROW("mapa.{shared::cluster}.u32|u64", "tTR", execute_mapa, 0),
};
const ptx_table ptx_access_table = {rows, sizeof rows / sizeof *rows};
