/* Executes tcgen05.alloc, dealloc, ld and st, which access tensor memory, and the waits for loads
 * and stores. */
#include "tmem.h"
#include "access.h"
#include "loading.h"
#include "matrix.h"
#include "time.h"
#include <stdlib.h>
#include <string.h>

ptx_block *ptx_pair_block(ptx_warp *w, const ptx_inst *i, uint32_t half) {
    ptx_cluster *c = w->block->cluster;
    const uint32_t rank = (w->block->rank & ~1u) + half;
    if (rank < c->size && c->size % 2 == 0) return &c->blocks[rank];
    ptx_stop(w, i, "cta_group::2 wants clusters of an even number of blocks; this one has %u",
             c->size);
    return NULL;
}

uint32_t *ptx_tmem_cell(ptx_warp *w, const ptx_inst *i, uint32_t lane, uint32_t column,
                        bool write) {
    return ptx_tmem_cell_of(w->block, w, i, lane, column, write);
}

uint32_t *ptx_tmem_cell_of(ptx_block *block, ptx_warp *w, const ptx_inst *i, uint32_t lane,
                           uint32_t column, bool write) {
    ptx_tmem *t = block->tmem;
    if (!t || lane >= TMEM_LANES || column >= TMEM_COLUMNS || !t->owner[column / TMEM_UNIT]) {
        ptx_stop(w, i, "tensor memory: lane %u, column %u is not allocated", lane, column);
        return NULL;
    }
    if (!write && !t->written[lane][column] && w->block->launch->checks & CHECK_UNWRITTEN) {
        ptx_stop(w, i, "tensor memory: lane %u, column %u was never written", lane, column);
        return NULL;
    }
    if (write) t->written[lane][column] = 1;
    return &t->cell[lane][column];
}

static ptx_tmem *tmem_of(ptx_warp *w, const ptx_inst *i) {
    if (!w->block->tmem) w->block->tmem = calloc(1, sizeof *w->block->tmem);
    if (!w->block->tmem) ptx_stop(w, i, "out of memory");
    return w->block->tmem;
}

static bool is_free(const ptx_tmem *t, uint32_t first, uint32_t units) {
    for (uint32_t k = first; k < first + units; k++)
        if (t->owner[k]) return false;
    return true;
}

static bool check_columns(ptx_warp *w, const ptx_inst *i, uint32_t columns) {
    if (columns >= 32 && columns <= 512 && (columns & (columns - 1)) == 0) return true;
    ptx_stop(w, i, "%u columns: a power of two from 32 to 512 was expected", columns);
    return false;
}

/* Checks that all tcgen05 instructions of a kernel have the same cta_group. With cta_group::2, a
 * warp of each thread block of the pair must allocate the columns of its block. */
static bool check_group(ptx_warp *w, const ptx_inst *i, ptx_tmem *t) {
    const uint8_t group = ptx_has(i->opcode, "cta_group::2") ? 2 : 1;
    if (group == 2 && (!ptx_pair_block(w, i, 0) || !ptx_pair_block(w, i, 1))) return false;
    if (!t->group) t->group = group;
    if (t->group == group) return true;
    ptx_stop(w, i, "the block has allocated tensor memory with cta_group::%u before", t->group);
    return false;
}

static void execute_alloc(ptx_warp *w, const ptx_inst *i) {
    uint64_t address[LANES];
    if (!ptx_together(w, i, ~0u)) return;
    const uint32_t columns = (uint32_t)ptx_uniform(w, &i->op[1]), units = columns / TMEM_UNIT;
    ptx_tmem *t = tmem_of(w, i);
    ptx_addresses(w, &i->op[0], address);
    if (!t || !check_columns(w, i, columns) || !check_group(w, i, t)) return;
    if (t->relinquished) {
        ptx_stop(w, i, "the block has given up the permit to allocate");
        return;
    }
    for (uint32_t first = 0; first + units <= TMEM_COLUMNS / TMEM_UNIT; first += units) {
        if (!is_free(t, first, units)) continue;
        const uint32_t at = first * TMEM_UNIT;
        uint8_t *to = ptx_shared(w, i, address[ptx_first(w->mask)] & 0xffffffff, 4, true);
        t->allocations++;
        if (w->trace) ptx_time_columns(w, at + columns);
        for (uint32_t k = first; k < first + units; k++)
            t->owner[k] = t->allocations;
        if (to) memcpy(to, &at, 4);
        return;
    }
    ptx_stop(w, i, "%u columns of tensor memory are not free", columns);
}

static void execute_dealloc(ptx_warp *w, const ptx_inst *i) {
    if (!ptx_together(w, i, ~0u)) return;
    const uint32_t at = (uint32_t)ptx_uniform(w, &i->op[0]),
                   columns = (uint32_t)ptx_uniform(w, &i->op[1]);
    const uint32_t first = at / TMEM_UNIT, units = columns / TMEM_UNIT;
    ptx_tmem *t = tmem_of(w, i);
    if (!t || !check_columns(w, i, columns)) return;
    const bool inside = at % TMEM_UNIT == 0 && first + units <= TMEM_COLUMNS / TMEM_UNIT;
    const uint16_t owner = inside ? t->owner[first] : 0;
    bool whole = owner != 0;
    for (uint32_t k = 0; inside && k < TMEM_COLUMNS / TMEM_UNIT; k++)
        whole &= (t->owner[k] == owner) == (k >= first && k < first + units);
    if (!whole) {
        ptx_stop(w, i, "columns %u to %u are not what one tcgen05.alloc gave", at, at + columns);
        return;
    }
    for (uint32_t k = first; k < first + units; k++)
        t->owner[k] = 0;
    for (uint32_t l = 0; l < TMEM_LANES; l++)
        memset(&t->written[l][at], 0, columns);
}

static void execute_relinquish(ptx_warp *w, const ptx_inst *i) {
    ptx_tmem *t = tmem_of(w, i);
    if (t) t->relinquished = true;
}

/* Names the shapes of tcgen05.ld and tcgen05.st. A shape says which lanes and columns of tensor
 * memory go to the registers of a warp. An instruction may repeat the shape along the columns. */
enum shape { S32X32B, S16X64B, S16X128B, S16X256B, S16X32BX2 };
static const char shape_names[] = "32x32b|16x64b|16x128b|16x256b|16x32bx2|";
static const uint8_t shape_registers[] = {1, 1, 2, 4, 1}, shape_columns[] = {1, 2, 4, 8, 1};

typedef struct {
    /* `half` is the distance in columns between the two groups of columns that the shape 16x32bx2
     * accesses. */
    uint32_t lane, column, half;
    enum shape shape;
    /* `packed` is true if a register holds the low 16 bits of two neighboring columns. */
    bool packed;
} place;

/* Finds the cells of tensor memory that a tcgen05.ld or tcgen05.st accesses. Warp n of a warpgroup
 * can access only lanes 32 n to 32 n + 31. */
static bool find_place(ptx_warp *w, const ptx_inst *i, const ptx_operand *address,
                       const ptx_operand *half, place *p) {
    uint64_t at[LANES];
    if (!ptx_together(w, i, ~0u) || !ptx_check_written(w, i, address, "the address")) return false;
    ptx_addresses(w, address, at);
    p->lane = (uint32_t)at[0] >> 16, p->column = (uint32_t)at[0] & 0xffff;
    p->shape = (enum shape)ptx_which(i->opcode, shape_names);
    p->half = half ? (uint32_t)half->value : 0;
    p->packed = ptx_has(i->opcode, "pack::16b") || ptx_has(i->opcode, "unpack::16b");
    if (p->lane / 32 == w->id % 4) return true;
    ptx_stop(w, i, "warp %u of its warpgroup reaches lanes %u to %u of tensor memory, not %u",
             w->id % 4, w->id % 4 * 32, w->id % 4 * 32 + 31, p->lane);
    return false;
}

/* Returns the cell of tensor memory that register r of thread l of the warp reads or writes. A
 * shape with 32 lanes has one lane of tensor memory for each thread. In a shape with 16 lanes, two
 * or four threads share a lane and access different columns of it. With pack::16b or unpack::16b a
 * register corresponds to two cells, and `part` selects one. */
static uint32_t *cell_of(ptx_warp *w, const ptx_inst *i, const place *p, uint32_t l, uint32_t r,
                         uint32_t part, bool write) {
    const uint32_t each = shape_registers[p->shape], q = r % each;
    uint32_t lane = l, column = r / each * shape_columns[p->shape];
    switch (p->shape) {
    case S16X64B:
        lane = l / 4 + 8 * (l & 1), column += l >> 1 & 1;
        break;
    case S16X128B:
        lane = l / 4 + 8 * q, column += l % 4;
        break;
    case S16X256B:
        lane = l / 4 + 8 * (q >> 1), column += 2 * (l % 4) + (q & 1);
        break;
    case S16X32BX2:
        lane = l % 16;
        break;
    default:
        break;
    }
    if (p->packed) column = 2 * column + part;
    column += p->shape == S16X32BX2 && l >= 16 ? p->half : 0;
    return ptx_tmem_cell(w, i, p->lane + lane, p->column + column, write);
}

static uint32_t register_count(const ptx_inst *i) {
    static const char names[] = "x1|x2|x4|x8|x16|x32|x64|x128|";
    const uint32_t each = shape_registers[ptx_which(i->opcode, shape_names)];
    return each << ptx_which(i->opcode, names);
}

/* Executes tcgen05.ld. The registers get their values at once. They are marked, because only a mov
 * may read them before tcgen05.wait::ld. */
static void execute_ld(ptx_warp *w, const ptx_inst *i) {
    const uint32_t count = register_count(i);
    place p;
    if (!ptx_has_count(w, i, &i->op[0], count)) return;
    if (!find_place(w, i, &i->op[1], i->count > 2 ? &i->op[2] : NULL, &p)) return;
    for (uint32_t r = 0; r < count; r++) {
        uint32_t word[LANES];
        for (uint32_t l = 0; l < LANES; l++) {
            const uint32_t *from = cell_of(w, i, &p, l, r, 0, false);
            const uint32_t *upper = from && p.packed ? cell_of(w, i, &p, l, r, 1, false) : from;
            if (!from || !upper) return;
            word[l] = p.packed ? (*from & 0xffff) | *upper << 16 : *from;
        }
        ptx_commit(w, ptx_element(&i->op[0], r), word);
        ptx_loading_mark(w, i, ptx_element(&i->op[0], r));
    }
}

static void execute_st(ptx_warp *w, const ptx_inst *i) {
    const ptx_operand *values = &i->op[i->count - 1];
    const uint32_t count = register_count(i);
    place p;
    if (!ptx_has_count(w, i, values, count)) return;
    if (!find_place(w, i, &i->op[0], i->count > 2 ? &i->op[1] : NULL, &p)) return;
    for (uint32_t r = 0; r < count; r++) {
        const uint32_t *from = ptx_u32(w, ptx_element(values, r));
        for (uint32_t l = 0; l < LANES; l++) {
            uint32_t *to = cell_of(w, i, &p, l, r, 0, true);
            uint32_t *upper = to && p.packed ? cell_of(w, i, &p, l, r, 1, true) : to;
            if (!to || !upper) return;
            *upper = from[l] >> 16;
            *to = p.packed ? from[l] & 0xffff : from[l];
        }
    }
}

static void execute_wait_ld(ptx_warp *w, const ptx_inst *i) {
    if (ptx_together(w, i, ~0u)) ptx_loading_end(w);
}

static void execute_wait_st(ptx_warp *w, const ptx_inst *i) {
    (void)ptx_together(w, i, ~0u);
}

static void nothing(ptx_warp *w, const ptx_inst *i) {
    (void)w, (void)i;
}

#define ROW(pattern, operands, execute)                                                            \
    { pattern, operands, execute, NULL, 0, 0, 0, 0, 0 }
#define COUNTS "x1|x2|x4|x8|x16|x32|x64|x128"
static const ptx_row rows[] = {
    ROW("tcgen05.alloc.cta_group::1|cta_group::2.sync.aligned.{shared::cta}.b32", "mR",
        execute_alloc),
    ROW("tcgen05.dealloc.cta_group::1|cta_group::2.sync.aligned.b32", "RR", execute_dealloc),
    ROW("tcgen05.relinquish_alloc_permit.cta_group::1|cta_group::2.sync.aligned", "",
        execute_relinquish),
    ROW("tcgen05.ld.sync.aligned.32x32b|16x64b|16x128b|16x256b." COUNTS ".{pack::16b}.b32", "wm",
        execute_ld),
    ROW("tcgen05.ld.sync.aligned.16x32bx2." COUNTS ".{pack::16b}.b32", "wmi", execute_ld),
    ROW("tcgen05.st.sync.aligned.32x32b|16x64b|16x128b|16x256b." COUNTS ".{unpack::16b}.b32", "mW",
        execute_st),
    ROW("tcgen05.st.sync.aligned.16x32bx2." COUNTS ".{unpack::16b}.b32", "miW", execute_st),
    ROW("tcgen05.wait::ld.sync.aligned", "", execute_wait_ld),
    ROW("tcgen05.wait::st.sync.aligned", "", execute_wait_st),
    ROW("tcgen05.fence::before_thread_sync|fence::after_thread_sync", "", nothing),
};
const ptx_table ptx_tmem_table = {rows, sizeof rows / sizeof *rows};
