/* Executes cp.async, by which a thread copies bytes to shared memory. The copy happens only when
 * the program waits for it, so that a missing wait gives wrong results. */
#include "access.h"
#include "time.h"
#include <stdlib.h>
#include <string.h>

typedef struct {
    const ptx_inst *inst;
    uint32_t mask, bytes, group[LANES];
    uint64_t to[LANES], from[LANES];
    uint32_t source_bytes[LANES];
} copy;

struct ptx_copies {
    /* `group` holds for each lane the number of the group that its next cp.async copies join.
     * cp.async.commit_group ends a group. */
    uint32_t count, room, group[LANES];
    copy list[];
};

static ptx_copies *with_room(ptx_warp *w) {
    ptx_copies *c = w->copies;
    if (c && c->count < c->room) return c;
    const uint32_t room = c ? 2 * c->room : 16;
    ptx_copies *more = realloc(c, sizeof *more + room * sizeof *more->list);
    if (!more) return NULL;
    if (!c) memset(more, 0, sizeof *more);
    more->room = room;
    return w->copies = more;
}

/* Executes an earlier cp.async instruction for the lanes in the mask `lanes`. It may be called
 * again later for other lanes of the same instruction. */
static void arrive(ptx_warp *w, copy *c, uint32_t lanes) {
    const uint32_t mask = w->mask;
    uint8_t *to[LANES], *from[LANES];
    w->mask = lanes & c->mask;
    if (!w->mask || !ptx_resolve(w, c->inst, c->to, SHARED, c->bytes, true, to)) {
        w->mask = mask;
        return;
    }
    for (uint32_t left = w->mask; left; left &= left - 1) {
        const uint32_t l = ptx_first(left), given = c->source_bytes[l];
        const uint32_t all = w->mask;
        memset(to[l] + given, 0, c->bytes - given);
        w->mask = 1u << l;
        /* cp.async requires that the source address is a multiple of the copy size c->bytes, even
         * if the copy reads fewer bytes. Only the first `given` bytes are read, so the other bytes
         * may lie outside the allocation. */
        if (given && c->from[l] % c->bytes)
            ptx_stop(w, c->inst, "lane %u: 0x%llx is no multiple of %u", l,
                     (unsigned long long)c->from[l], c->bytes);
        else if (given && ptx_resolve(w, c->inst, c->from, GLOBAL, given, false, from))
            memcpy(to[l], from[l], given);
        w->mask = all;
    }
    c->mask &= ~lanes;
    w->mask = mask;
}

static void drop_done(ptx_copies *c) {
    uint32_t kept = 0;
    for (uint32_t k = 0; k < c->count; k++)
        if (c->list[k].mask) c->list[kept++] = c->list[k];
    c->count = kept;
}

/* Executes the cp.async copies for which each active lane waits. A lane waits for all groups of
 * copies that it has committed, except the `pending` youngest ones. Copies that it has not
 * committed to a group yet are not executed, either. If `open` is set, the function executes all
 * copies of the lane. */
static void wait_groups(ptx_warp *w, uint32_t pending, bool open) {
    ptx_copies *c = w->copies;
    if (!c) return;
    for (uint32_t k = 0; k < c->count && !w->stop; k++) {
        copy *item = &c->list[k];
        uint32_t lanes = 0;
        for (uint32_t left = w->mask & item->mask; left; left &= left - 1) {
            const uint32_t l = ptx_first(left);
            if (open || item->group[l] + pending < c->group[l]) lanes |= 1u << l;
        }
        if (lanes) arrive(w, item, lanes);
    }
    drop_done(c);
}

static void execute_copy(ptx_warp *w, const ptx_inst *i) {
    const uint32_t bytes = (uint32_t)i->op[2].value;
    ptx_copies *c = with_room(w);
    if (!c || (bytes != 4 && bytes != 8 && bytes != 16)) {
        ptx_stop(w, i, c ? "a copy has 4, 8 or 16 bytes" : "out of memory");
        return;
    }
    copy *item = &c->list[c->count++];
    *item = (copy){.inst = i, .mask = w->mask, .bytes = bytes};
    memcpy(item->group, c->group, sizeof item->group);
    ptx_addresses(w, &i->op[0], item->to);
    ptx_addresses(w, &i->op[1], item->from);
    for (uint32_t l = 0; l < LANES; l++) {
        const uint64_t given = i->op[3].place == REG ? ptx_lane(w, &i->op[3], l) : bytes;
        item->source_bytes[l] = given < bytes ? (uint32_t)given : bytes;
    }
    if (w->trace) ptx_time_access(w, i, item->from, GLOBAL, bytes);
}

static void execute_commit(ptx_warp *w, const ptx_inst *i) {
    ptx_copies *c = with_room(w);
    if (!c) ptx_stop(w, i, "out of memory");
    for (uint32_t left = w->mask; left && c; left &= left - 1)
        c->group[ptx_first(left)]++;
}

static void execute_wait(ptx_warp *w, const ptx_inst *i) {
    wait_groups(w, (uint32_t)i->op[0].value, false);
}

static void execute_wait_all(ptx_warp *w, const ptx_inst *i) {
    (void)i;
    wait_groups(w, 0, true);
}

#define ROW(pattern, operands, execute)                                                            \
    { pattern, operands, execute, NULL, 0, 0, 0, 0, 0 }
static const ptx_row rows[] = {
    ROW("cp.async.ca|cg.shared|shared::cta.global.{L2::cache_hint}.{L2::64B|L2::128B|L2::256B}",
        "mmiR?L?", execute_copy),
    ROW("cp.async.commit_group", "", execute_commit),
    ROW("cp.async.wait_group", "i", execute_wait),
    ROW("cp.async.wait_all", "", execute_wait_all),
};
const ptx_table ptx_copy_table = {rows, sizeof rows / sizeof *rows};
