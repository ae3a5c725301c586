/* Executes cp.async.bulk.tensor, by which TMA copies boxes of a tensor between global and shared
 * memory and swizzles them. */
#include "access.h"
#include "tensor_map.h"
#include "time.h"
#include <string.h>

enum { ALIGN16 = 14, PACKED6 = 15 };

static bool read_map(ptx_async *j, uint64_t address, ptx_tensor_map *m) {
    /* The simulator requires that an access is aligned to its size. A tensor map has 128 bytes, but
     * is aligned only to 64 bytes. It is therefore checked in two halves. */
    const uint8_t *at = ptx_engine_global(j, address, 64);
    if (!at || !ptx_engine_global(j, address + 64, 64)) return false;
    memcpy(m, at, sizeof *m);
    if (m->magic == TENSOR_MAP_MAGIC && m->rank >= 1 && m->rank <= MAP_RANK) return true;
    ptx_stop(j->warp, j->inst, "lane %u: there is no tensor map at 0x%llx", j->lane,
             (unsigned long long)address);
    return false;
}

/* Returns the number of bits that one element takes in shared memory. Elements of 4 or 6 bits take
 * 8 bits in the types ALIGN16 and PACKED6. */
static uint32_t shared_bits(const ptx_tensor_map *m) {
    return m->type == ALIGN16 || m->type == PACKED6 ? 8 : m->bits;
}

/* Returns the number of bytes of global memory from which TMA fills 16 bytes of shared memory. */
static uint32_t memory_bytes(const ptx_tensor_map *m) {
    return m->type == ALIGN16 ? 8 : m->type == PACKED6 ? 12 : 16;
}

/* Applies the swizzle of a tensor map to an address in shared memory. Let a row be 128 aligned
 * bytes, which are eight units of 16 bytes. The swizzle XORs the number of a unit in its row with
 * the lowest 1, 2 or 3 bits of the row's number. The mode of the swizzle (32, 64 or 128 bytes)
 * decides how many bits. */
static uint64_t swizzled(const ptx_tensor_map *m, uint64_t address) {
    const uint64_t units = m->swizzle >= 1 && m->swizzle <= 3 ? 1ull << m->swizzle : 0;
    return units ? address ^ (address / 128 % units) << 4 : address;
}

typedef struct {
    ptx_async *job;
    const ptx_tensor_map *map;
    uint64_t shared;
    bool load;
    /* `reduced` is the type of the elements that a reduction combines with those in memory, or 0
     * for a plain copy. */
    ptx_type reduced;
} transfer;

/* Copies 16 bytes from global to shared memory (a load) or from shared to global memory (a store).
 * Only the first `inside` bytes lie inside the tensor. A load sets the other bytes of shared memory
 * to 0, and a store omits the other bytes. */
static bool move_unit(const transfer *t, uint64_t offset, uint64_t address, uint32_t inside) {
    ptx_async *j = t->job;
    uint8_t *shared = ptx_engine_shared(j, swizzled(t->map, t->shared + offset), 16, t->load);
    uint8_t *memory = inside ? ptx_engine_global(j, address, 1) : NULL;
    if (!shared || (inside && (!memory || !ptx_engine_global(j, address + inside - 1, 1))))
        return false;
    if (t->load) {
        memset(shared, 0, 16);
        if (inside) memcpy(shared, memory, inside);
    } else if (inside && t->reduced) {
        ptx_reduce(j->inst, t->reduced, memory, shared, inside);
    } else if (inside) {
        memcpy(memory, shared, inside);
    }
    return true;
}

/* Copies one row of the box along the first dimension. If `outside` is true, the row lies outside
 * the tensor in a higher dimension. */
static bool move_row(const transfer *t, uint64_t offset, uint64_t address, bool outside) {
    const ptx_tensor_map *m = t->map;
    const int64_t bits = m->bits, first = (int64_t)t->job->at[0] * bits / 8,
                  end = ((int64_t)m->last[0] + 1) * bits / 8;
    const uint32_t units = m->box[0] * shared_bits(m) / 128, each = memory_bytes(m);
    for (uint32_t k = 0; k < units; k++) {
        const int64_t at = first + (int64_t)k * each, left = end - at;
        const bool in = !outside && at >= 0 && left > 0;
        const uint32_t inside = in ? left < (int64_t)each ? (uint32_t)left : each : 0;
        if (!move_unit(t, offset + (uint64_t)16 * k, address + (uint64_t)at, inside)) return false;
    }
    return true;
}

static uint32_t box_rows(const ptx_tensor_map *m) {
    uint32_t rows = 1;
    for (uint32_t d = 1; d < m->rank; d++)
        rows *= m->box[d];
    return rows;
}

/* Returns the number of bytes that TMA reports to an mbarrier for one box. This is the size of the
 * box in global memory, even if the elements take more bytes in shared memory. */
static uint32_t box_bytes(const ptx_tensor_map *m) {
    return m->box[0] * (uint32_t)m->bits / 8 * box_rows(m);
}

/* Records for the time model how many bytes of a box TMA copies, and the first thread block whose
 * shared memory the copy uses. */
static void record_box(const transfer *t) {
    ptx_job *job = ptx_time_running(t->job->warp->block->cluster);
    if (!job) return;
    job->bytes = t->map->box[0] * shared_bits(t->map) / 8 * box_rows(t->map);
    job->blocks |= 1u << (t->shared >> RANK_SHIFT & 31);
}

/* Records for the time model a row of the box that lies inside the tensor. A multicast reads the
 * row from global memory once, so the row is recorded only for the first destination block. */
static void record_row(const transfer *t, uint64_t address) {
    const ptx_tensor_map *m = t->map;
    ptx_cluster *c = t->job->warp->block->cluster;
    const ptx_job *job = ptx_time_running(c);
    const int64_t first = t->job->at[0] < 0 ? 0 : t->job->at[0],
                  end = (int64_t)t->job->at[0] + m->box[0], most = (int64_t)m->last[0] + 1,
                  last = end < most ? end : most;
    if (job && last > first && !(job->blocks & (job->blocks - 1)))
        ptx_time_span(c, address + (uint64_t)(first * (int64_t)m->bits / 8),
                      (uint64_t)((last - first) * (int64_t)m->bits / 8));
}

static bool move_box(const transfer *t) {
    const ptx_tensor_map *m = t->map;
    const uint32_t row = m->box[0] * shared_bits(m) / 8, rows = box_rows(m);
    record_box(t);
    for (uint32_t r = 0; r < rows; r++) {
        uint64_t address = m->address;
        uint32_t rest = r;
        bool outside = false;
        for (uint32_t d = 1; d < m->rank; d++) {
            const int64_t x = (int64_t)t->job->at[d] + rest % m->box[d];
            rest /= m->box[d];
            outside |= x < 0 || x > (int64_t)m->last[d];
            address += (uint64_t)x * m->strides[d];
        }
        if (!outside) record_row(t, address);
        if (!move_row(t, (uint64_t)r * row, address, outside)) return false;
    }
    return true;
}

static bool taken(ptx_async *j, const ptx_tensor_map *m) {
    const char *missing = m->interleave    ? "interleaved"
                          : m->swizzle > 3 ? "128-byte swizzles of larger atoms"
                                           : NULL;
    if (missing) ptx_stop(j->warp, j->inst, "%s tensor maps are not executed", missing);
    return !missing;
}

/* A multicast load by TMA writes to the shared memory of several thread blocks. Returns the rank of
 * the thread block whose mbarrier counts the bytes that are written to block `rank`. Without
 * cta_group::2 this is block `rank` itself. With cta_group::2 the thread blocks 2 i and 2 i + 1 are
 * a pair, and the mbarrier of one of them counts the bytes of both. The address of the mbarrier in
 * the instruction contains a rank. If this rank is even, it is the mbarrier of the even block of
 * each pair, otherwise that of the odd one. */
static uint64_t signalled(const ptx_async *j, uint64_t rank) {
    const bool pair = ptx_has(j->inst->opcode, "cta_group::2");
    return pair ? (rank & ~1ull) | (j->barrier >> RANK_SHIFT & 1) : rank;
}

static void run_load(ptx_async *j) {
    ptx_tensor_map m;
    const uint64_t low = (1u << RANK_SHIFT) - 1;
    if (!read_map(j, j->from, &m) || !taken(j, &m)) return;
    uint32_t blocks = j->multicast ? j->multicast : 1;
    for (; blocks; blocks &= blocks - 1) {
        const uint64_t rank = ptx_first(blocks);
        const transfer t = {j, &m, j->multicast ? (j->to & low) | rank << RANK_SHIFT : j->to, true,
                            T_none};
        if (!move_box(&t)) return;
        ptx_mbarrier_complete(j->warp, j->inst,
                              j->multicast ? (j->barrier & low) | signalled(j, rank) << RANK_SHIFT
                                           : j->barrier,
                              box_bytes(&m));
    }
}

static void run_store(ptx_async *j) {
    ptx_tensor_map m;
    if (!read_map(j, j->to, &m) || !taken(j, &m)) return;
    const transfer t = {j, &m, j->from, false, T_none};
    (void)move_box(&t);
}

/* Executes cp.reduce.async.bulk.tensor, which combines the elements of a box in shared memory with
 * those in global memory. */
static void run_reduction(ptx_async *j) {
    static const uint8_t types[] = {T_none, T_none, T_u32, T_s32,  T_u64, T_s64,
                                    T_f16,  T_f32,  T_f64, T_bf16, T_f32, T_none};
    ptx_tensor_map m;
    if (!read_map(j, j->to, &m) || !taken(j, &m)) return;
    const ptx_type type = (ptx_type)(m.type < sizeof types ? types[m.type] : T_none);
    const transfer t = {j, &m, j->from, false, type};
    const bool bits = ptx_has(j->inst->opcode, "and") || ptx_has(j->inst->opcode, "or") ||
                      ptx_has(j->inst->opcode, "xor") || ptx_has(j->inst->opcode, "inc") ||
                      ptx_has(j->inst->opcode, "dec");
    if (type && !(bits && ptx_types[type].kind == FLOAT))
        (void)move_box(&t);
    else
        ptx_stop(j->warp, j->inst,
                 "the elements of the tensor map, type %u, have no such reduction", m.type);
}

static void take_coordinates(const ptx_warp *w, const ptx_operand *o, ptx_async *j) {
    for (uint32_t d = 0; d < o->count && d < 5; d++)
        j->at[d] = (int32_t)ptx_lane(w, &o->elements[d], j->lane);
}

static bool has_rank(ptx_warp *w, const ptx_inst *i, const ptx_operand *o) {
    static const char ranks[] = "1d|2d|3d|4d|5d|";
    if (o->count == (uint32_t)ptx_which(i->opcode, ranks) + 1) return true;
    ptx_stop(w, i, "%u coordinates", o->count);
    return false;
}

static void execute_load(ptx_warp *w, const ptx_inst *i) {
    const bool many = ptx_has(i->opcode, "multicast::cluster");
    uint64_t to[LANES], map[LANES], barrier[LANES];
    if (!has_rank(w, i, &i->op[1])) return;
    ptx_addresses(w, &i->op[0], to), ptx_addresses(w, &i->op[1], map),
        ptx_addresses(w, &i->op[2], barrier);
    for (uint32_t left = w->mask; left && !w->stop; left &= left - 1) {
        const uint32_t l = ptx_first(left);
        ptx_async j = {.run = run_load,
                       .warp = w,
                       .inst = i,
                       .lane = l,
                       .to = to[l],
                       .from = map[l],
                       .barrier = barrier[l]};
        if (many) j.multicast = (uint32_t)ptx_lane(w, &i->op[3], l) & 0xffff;
        take_coordinates(w, &i->op[1], &j);
        ptx_async_add(&j);
    }
}

enum { COPY, REDUCE };
static void execute_store(ptx_warp *w, const ptx_inst *i) {
    uint64_t map[LANES], from[LANES];
    if (!has_rank(w, i, &i->op[0])) return;
    ptx_addresses(w, &i->op[0], map), ptx_addresses(w, &i->op[1], from);
    for (uint32_t left = w->mask; left && !w->stop; left &= left - 1) {
        const uint32_t l = ptx_first(left);
        ptx_async j = {.run = i->opcode->row->what == REDUCE ? run_reduction : run_store,
                       .warp = w,
                       .inst = i,
                       .lane = l,
                       .to = map[l],
                       .from = from[l]};
        take_coordinates(w, &i->op[0], &j);
        ptx_bulk_push(&j);
    }
}

static void nothing(ptx_warp *w, const ptx_inst *i) {
    (void)w, (void)i;
}

#define ROW(pattern, operands, execute)                                                            \
    { pattern, operands, execute, NULL, 0, 0, 0, 0, 0 }
/* NVIDIA's compilers write the cta_group before or after the cache hint, so both orders are
 * accepted. */
#define GROUP  "{cta_group::1|cta_group::2}"
#define TENSOR "cp.async.bulk.tensor.1d|2d|3d|4d|5d."
static const ptx_row rows[] = {
    ROW(TENSOR
        "shared::cluster.global.{tile}.mbarrier::complete_tx::bytes.multicast::cluster." GROUP
        ".{L2::cache_hint}." GROUP,
        "mmmHL?", execute_load),
    ROW(TENSOR "shared::cluster|shared::cta.global.{tile}.mbarrier::complete_tx::bytes." GROUP
               ".{L2::cache_hint}." GROUP,
        "mmmL?", execute_load),
    ROW(TENSOR "global.shared::cta.{tile}.bulk_group.{L2::cache_hint}", "mmL?", execute_store),
    {"cp.reduce.async.bulk.tensor.1d|2d|3d|4d|5d.global.shared::cta.add|min|max|inc|dec|and|or|xor."
     "{tile}.bulk_group.{L2::cache_hint}",
     "mmL?", execute_store, NULL, 0, 0, 0, 0, REDUCE},
    ROW("prefetch.{param|const}.tensormap", "m", nothing),
};
const ptx_table ptx_tma_table = {rows, sizeof rows / sizeof *rows};
