/* Executes bulk copies (cp.async.bulk), asynchronous stores (st.async), and the instructions that
 * commit and wait for groups of bulk copies. */
#include "access.h"
#include "time.h"
#include <stdlib.h>
#include <string.h>

static uint64_t in_block(uint64_t address, uint32_t rank) {
    return (address & ((1u << RANK_SHIFT) - 1)) | (uint64_t)rank << RANK_SHIFT;
}

/* Records a copy between shared and global memory for the time model, which uses the record after
 * the launch. */
static void record(const ptx_async *j, uint64_t shared, uint64_t global, uint32_t bytes) {
    ptx_cluster *c = j->warp->block->cluster;
    ptx_job *job = ptx_time_running(c);
    if (!job) return;
    if (!job->blocks) ptx_time_span(c, global, bytes);
    job->bytes = bytes, job->blocks |= 1u << (shared >> RANK_SHIFT & 31);
}

static void copy_to(ptx_async *j, uint64_t to, uint64_t barrier) {
    const uint8_t *from = ptx_engine_global(j, j->from, j->bytes);
    uint8_t *at = from ? ptx_engine_shared(j, to, j->bytes, true) : NULL;
    if (!at) return;
    memcpy(at, from, j->bytes);
    record(j, to, j->from, j->bytes);
    ptx_mbarrier_complete(j->warp, j->inst, barrier, j->bytes);
}

static void run_load(ptx_async *j) {
    if (!j->multicast) {
        copy_to(j, j->to, j->barrier);
        return;
    }
    for (uint32_t left = j->multicast; left; left &= left - 1)
        copy_to(j, in_block(j->to, ptx_first(left)), in_block(j->barrier, ptx_first(left)));
}

/* Copies bytes from the shared memory of this thread block to that of another block in the
 * cluster. */
static void run_across(ptx_async *j) {
    const uint8_t *from = ptx_engine_shared(j, j->from, j->bytes, false);
    uint8_t *at = from ? ptx_engine_shared(j, j->to, j->bytes, true) : NULL;
    if (!at) return;
    memcpy(at, from, j->bytes);
    ptx_mbarrier_complete(j->warp, j->inst, j->barrier, j->bytes);
}

static bool check_bulk(ptx_warp *w, const ptx_async *j) {
    if ((j->to | j->from | j->bytes) % 16 == 0) return true;
    ptx_stop(w, j->inst,
             "lane %u: a bulk copy of %u bytes from 0x%llx to 0x%llx: 16 must divide all three",
             j->lane, j->bytes, (unsigned long long)j->from, (unsigned long long)j->to);
    return false;
}

enum { LOAD, ACROSS };
static void execute_load(ptx_warp *w, const ptx_inst *i) {
    const bool across = i->opcode->row->what == ACROSS,
               many = ptx_has(i->opcode, "multicast::cluster");
    uint64_t to[LANES], from[LANES], barrier[LANES];
    ptx_addresses(w, &i->op[0], to), ptx_addresses(w, &i->op[1], from),
        ptx_addresses(w, &i->op[3], barrier);
    for (uint32_t left = w->mask; left && !w->stop; left &= left - 1) {
        const uint32_t l = ptx_first(left);
        ptx_async j = {.run = across ? run_across : run_load, .warp = w, .inst = i, .lane = l};
        j.to = to[l], j.from = from[l], j.barrier = barrier[l],
        j.bytes = (uint32_t)ptx_lane(w, &i->op[2], l);
        if (many) j.multicast = (uint32_t)ptx_lane(w, &i->op[4], l) & 0xffff;
        if (check_bulk(w, &j)) ptx_async_add(&j);
    }
}

static void run_value(ptx_async *j) {
    uint8_t *at = ptx_engine_shared(j, j->to, j->bytes, true);
    if (!at) return;
    memcpy(at, &j->value, j->bytes);
    ptx_mbarrier_complete(j->warp, j->inst, j->barrier, j->bytes);
}

static void execute_st_async(ptx_warp *w, const ptx_inst *i) {
    const uint32_t count = i->opcode->vector ? i->opcode->vector : 1,
                   bytes = ptx_types[i->opcode->types[0]].bits / 8;
    uint64_t to[LANES], barrier[LANES];
    ptx_addresses(w, &i->op[0], to), ptx_addresses(w, &i->op[2], barrier);
    for (uint32_t left = w->mask; left; left &= left - 1)
        for (uint32_t k = 0; k < count && !w->stop; k++) {
            const uint32_t l = ptx_first(left);
            ptx_async j = {.run = run_value, .warp = w, .inst = i, .lane = l, .bytes = bytes};
            j.to = to[l] + (uint64_t)k * bytes, j.barrier = barrier[l],
            j.value = ptx_lane(w, ptx_element(&i->op[1], k), l);
            ptx_async_add(&j);
        }
}

typedef struct {
    ptx_async job;
    uint32_t group;
    bool done;
} bulk;

struct ptx_bulks {
    uint32_t count, room, group[LANES];
    bulk list[];
};

static struct ptx_bulks *with_room(ptx_warp *w) {
    struct ptx_bulks *b = w->bulks;
    if (b && b->count < b->room) return b;
    const uint32_t room = b ? 2 * b->room : 16;
    struct ptx_bulks *more = realloc(b, sizeof *more + room * sizeof *more->list);
    if (!more) return NULL;
    if (!b) memset(more, 0, sizeof *more);
    more->room = room;
    return w->bulks = more;
}

bool ptx_bulk_push(const ptx_async *job) {
    struct ptx_bulks *b = with_room(job->warp);
    if (!b) {
        ptx_stop(job->warp, job->inst, "out of memory");
        return false;
    }
    b->list[b->count] = (bulk){.job = *job, .group = b->group[job->lane]};
    b->list[b->count].job.race = ptx_race_issue(job->warp, false);
    if (job->warp->trace) b->list[b->count].job.timed = ptx_time_job(job, true);
    b->count++;
    return true;
}

static void run_store(ptx_async *j) {
    const uint8_t *from = ptx_engine_shared(j, j->from, j->bytes, false);
    uint8_t *at = from ? ptx_engine_global(j, j->to, j->bytes) : NULL;
    if (at) memcpy(at, from, j->bytes);
    record(j, j->from, j->to, j->bytes);
}

static void execute_store(ptx_warp *w, const ptx_inst *i) {
    uint64_t to[LANES], from[LANES];
    ptx_addresses(w, &i->op[0], to), ptx_addresses(w, &i->op[1], from);
    for (uint32_t left = w->mask; left && !w->stop; left &= left - 1) {
        const uint32_t l = ptx_first(left);
        ptx_async j = {
            .run = run_store, .warp = w, .inst = i, .lane = l, .to = to[l], .from = from[l]};
        j.bytes = (uint32_t)ptx_lane(w, &i->op[2], l);
        if (check_bulk(w, &j)) ptx_bulk_push(&j);
    }
}

static void execute_commit(ptx_warp *w, const ptx_inst *i) {
    struct ptx_bulks *b = with_room(w);
    if (!b) ptx_stop(w, i, "out of memory");
    for (uint32_t left = w->mask; left && b; left &= left - 1)
        b->group[ptx_first(left)]++;
}

void ptx_bulks_wait(ptx_warp *w, uint32_t lanes, uint32_t pending, bool all) {
    struct ptx_bulks *b = w->bulks;
    uint32_t kept = 0;
    for (uint32_t k = 0; b && k < b->count; k++) {
        bulk *item = &b->list[k];
        const uint32_t l = item->job.lane;
        if (lanes >> l & 1 && (all || item->group + pending < b->group[l])) {
            ptx_async_execute(&item->job, END_KNOWN);
        } else
            b->list[kept++] = *item;
    }
    if (b) b->count = kept;
}

static void execute_wait(ptx_warp *w, const ptx_inst *i) {
    ptx_bulks_wait(w, w->mask, (uint32_t)i->op[0].value, false);
}

#define ROW(pattern, operands, execute, what)                                                      \
    { pattern, operands, execute, NULL, 0, 0, 0, 0, what }
#define TX   "mbarrier::complete_tx::bytes."
#define BULK "cp.async.bulk."
static const ptx_row rows[] = {
    ROW(BULK
        "shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.{L2::cache_hint}",
        "mmRmHL?", execute_load, LOAD),
    ROW(BULK "shared::cluster|shared::cta.global.mbarrier::complete_tx::bytes.{L2::cache_hint}",
        "mmRmL?", execute_load, LOAD),
    ROW(BULK "shared::cluster.shared::cta.mbarrier::complete_tx::bytes", "mmRm", execute_load,
        ACROSS),
    ROW(BULK "global.shared::cta.bulk_group.{L2::cache_hint}", "mmRL?", execute_store, 0),
    ROW(BULK "commit_group", "", execute_commit, 0),
    ROW(BULK "wait_group.{read}", "i", execute_wait, 0),
    ROW("st.async.{weak}.{shared::cluster}.mbarrier::complete_tx::bytes.{v2|v4}.b32|b64|u32|u64|"
        "s32|s64|f32|f64",
        "mVm", execute_st_async, 0),
};
const ptx_table ptx_bulk_table = {rows, sizeof rows / sizeof *rows};
