/* Executes the instructions of mbarriers, which are barriers in shared memory. The simulator stores
 * a barrier in 8 bytes. From the lowest bit on, these are: missing arrivals (20 bits), arrivals
 * that a phase expects (20 bits), missing bytes of copies (22 bits, signed), and the lowest two
 * bits of the phase's number. */
#include "access.h"
#include "async.h"
#include "races.h"
#include "time.h"
#include <string.h>

typedef struct {
    uint32_t missing, count, phase;
    int32_t bytes;
} mbarrier;

static uint64_t packed(const mbarrier *b) {
    return (uint64_t)(b->missing & 0xfffff) | (uint64_t)(b->count & 0xfffff) << 20 |
           (uint64_t)((uint32_t)b->bytes & 0x3fffff) << 40 | (uint64_t)(b->phase & 3) << 62;
}

static mbarrier unpacked(uint64_t v) {
    return (mbarrier){.missing = v & 0xfffff,
                      .count = v >> 20 & 0xfffff,
                      .bytes = (int32_t)((uint32_t)(v >> 40) << 10) >> 10,
                      .phase = (uint32_t)(v >> 62)};
}

static uint8_t *find(ptx_warp *w, const ptx_inst *i, uint64_t address, mbarrier *b) {
    uint64_t v;
    /* The address of an mbarrier is a generic address or an address in shared memory. A generic
     * address has nonzero bits above bit 55, and its low 32 bits are the address in shared
     * memory. */
    if (address >> 56) address &= 0xffffffff;
    if (address % 8) {
        ptx_stop(w, i, "an mbarrier lies at 0x%llx, which 8 does not divide",
                 (unsigned long long)address);
        return NULL;
    }
    uint8_t *at = ptx_shared(w, i, address, 8, false);
    if (!at) return NULL;
    memcpy(&v, at, 8);
    *b = unpacked(v);
    return at;
}

static bool turn_if_complete(mbarrier *b) {
    if (b->missing || b->bytes) return false;
    b->missing = b->count;
    b->phase++;
    return true;
}

/* Stores the state of the mbarrier at the shared address `address` after an arrival, which may
 * complete its current phase. */
static void put(ptx_warp *w, uint64_t address, uint8_t *at, mbarrier *b) {
    ptx_cluster *c = w->block->cluster;
    if (c->timeline) ptx_time_arrive(w, WAITED_MBARRIER, address);
    if (turn_if_complete(b) && c->timeline) ptx_time_turn(c, WAITED_MBARRIER, address);
    const uint64_t v = packed(b);
    memcpy(at, &v, 8);
}

void ptx_mbarrier_complete(ptx_warp *w, const ptx_inst *i, uint64_t address, uint32_t bytes) {
    mbarrier b;
    uint8_t *at = find(w, i, address, &b);
    if (!at) return;
    ptx_race_release(w, SYNC_ADDRESS, address & 0xffffffff);
    b.bytes -= (int32_t)bytes;
    put(w, address, at, &b);
}

static void arrive(ptx_warp *w, const ptx_inst *i, uint64_t address, uint32_t count, uint32_t bytes,
                   uint64_t *state) {
    mbarrier b;
    uint8_t *at = find(w, i, address, &b);
    if (!at) return;
    if (b.missing < count) {
        ptx_stop(w, i, "mbarrier 0x%llx: %u arrivals, but %u of %u are missing",
                 (unsigned long long)address, count, b.missing, b.count);
        return;
    }
    ptx_race_release(w, SYNC_ADDRESS, address & 0xffffffff);
    *state = packed(&b);
    b.missing -= count, b.bytes += (int32_t)bytes;
    put(w, address, at, &b);
}

void ptx_mbarrier_arrive(ptx_warp *w, const ptx_inst *i, uint64_t address, uint32_t count) {
    uint64_t state;
    arrive(w, i, address, count, 0, &state);
}

static void execute_init(ptx_warp *w, const ptx_inst *i) {
    uint64_t address[LANES];
    ptx_addresses(w, &i->op[0], address);
    for (uint32_t left = w->mask; left && !w->stop; left &= left - 1) {
        const uint32_t l = ptx_first(left), count = (uint32_t)ptx_lane(w, &i->op[1], l);
        mbarrier b = {.missing = count, .count = count};
        if (count == 0 || count >= 1u << 20) {
            ptx_stop(w, i, "an mbarrier counts 1 to 2^20 - 1 arrivals, not %u", count);
            return;
        }
        uint8_t *at =
            ptx_shared(w, i, address[l] >> 56 ? address[l] & 0xffffffff : address[l], 8, true);
        const uint64_t v = packed(&b);
        if (at) memcpy(at, &v, 8);
    }
}

static void execute_inval(ptx_warp *w, const ptx_inst *i) {
    (void)w, (void)i;
}

enum { PLAIN, EXPECT, DROP };
static void execute_arrive(ptx_warp *w, const ptx_inst *i) {
    const int what = i->opcode->row->what;
    uint64_t address[LANES], state[LANES] = {0};
    ptx_addresses(w, &i->op[1], address);
    for (uint32_t left = w->mask; left && !w->stop; left &= left - 1) {
        const uint32_t l = ptx_first(left);
        const uint32_t value = i->op[2].place == NOWHERE ? 1 : (uint32_t)ptx_lane(w, &i->op[2], l);
        arrive(w, i, address[l], what == EXPECT ? 1 : value, what == EXPECT ? value : 0, &state[l]);
    }
    if (!w->stop) ptx_commit(w, &i->op[0], state);
}

static void execute_expect(ptx_warp *w, const ptx_inst *i) {
    uint64_t address[LANES];
    ptx_addresses(w, &i->op[0], address);
    for (uint32_t left = w->mask; left && !w->stop; left &= left - 1) {
        const uint32_t l = ptx_first(left);
        const uint32_t bytes = (uint32_t)ptx_lane(w, &i->op[1], l);
        ptx_mbarrier_complete(w, i, address[l], i->opcode->row->what == EXPECT ? 0 - bytes : bytes);
    }
}

/* Executes test_wait and try_wait, which set a predicate if a phase of the mbarrier is complete. If
 * the predicate is false in all lanes, the simulator runs other warps first, because this warp
 * would only test again. */
static void execute_wait(ptx_warp *w, const ptx_inst *i) {
    const bool parity = ptx_has(i->opcode, "parity");
    uint64_t address[LANES];
    uint32_t done = 0;
    ptx_addresses(w, &i->op[1], address);
    for (uint32_t left = w->mask; left && !w->stop; left &= left - 1) {
        const uint32_t l = ptx_first(left);
        mbarrier b;
        if (!find(w, i, address[l], &b)) return;
        const uint64_t given = ptx_lane(w, &i->op[2], l);
        const uint32_t wanted = parity ? (uint32_t)given & 1 : (uint32_t)(given >> 62) & 1;
        const bool over = (b.phase & 1) != wanted;
        done |= (uint32_t)over << l;
        if (over) ptx_race_acquire(w, SYNC_ADDRESS, address[l] & 0xffffffff);
    }
    ptx_set_pred(w, &i->op[0], done);
    if (w->trace && done) ptx_time_wait(w, i, WAITED_MBARRIER, address[ptx_first(done)]);
    if (done) return;
    if (w->trace) ptx_time_poll(w, i);
    w->idle = true;
    ptx_schedule(w, true);
    if (!w->stop) w->stop = STOP_YIELD;
}

static void nothing(ptx_warp *w, const ptx_inst *i) {
    (void)w, (void)i;
}

static void execute_proxy_fence(ptx_warp *w, const ptx_inst *i) {
    (void)i;
    ptx_race_fence(w);
    ptx_fence_proxies(w->block->cluster);
}

#define ROW(pattern, operands, execute, what)                                                      \
    { pattern, operands, execute, NULL, 0, 0, 0, 0, what }
#define SEM   "{release|acquire|relaxed}.{cta|cluster}."
#define PLACE "{shared|shared::cta|shared::cluster}."
static const ptx_row rows[] = {
    ROW("mbarrier.init." PLACE "b64", "mR", execute_init, 0),
    ROW("mbarrier.inval." PLACE "b64", "m", execute_inval, 0),
    ROW("mbarrier.arrive." SEM PLACE "b64", "lmR?", execute_arrive, PLAIN),
    ROW("mbarrier.arrive.expect_tx." SEM PLACE "b64", "lmR", execute_arrive, EXPECT),
    ROW("mbarrier.expect_tx.{relaxed}.{cta|cluster}." PLACE "b64", "mR", execute_expect, EXPECT),
    ROW("mbarrier.complete_tx.{relaxed}.{cta|cluster}." PLACE "b64", "mR", execute_expect, PLAIN),
    ROW("mbarrier.test_wait|try_wait." SEM PLACE "b64", "pmLR?", execute_wait, 0),
    ROW("mbarrier.test_wait|try_wait.parity." SEM PLACE "b64", "pmRR?", execute_wait, 0),
    ROW("fence.mbarrier_init.release.cluster", "", nothing, 0),
    ROW("fence.proxy.alias", "", nothing, 0),
    ROW("fence.proxy.async", "", execute_proxy_fence, 0),
    ROW("fence.proxy.async.global", "", nothing, 0),
    ROW("fence.proxy.async.shared::cta|shared::cluster", "", execute_proxy_fence, 0),
    ROW("fence.proxy.tensormap::generic.release.cta|cluster|gpu|sys", "", nothing, 0),
    ROW("fence.proxy.tensormap::generic.acquire.cta|cluster|gpu|sys", "mi", nothing, 0),
};
const ptx_table ptx_mbarrier_table = {rows, sizeof rows / sizeof *rows};
