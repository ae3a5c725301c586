/* Executes clusterlaunchcontrol. With this instruction, a running cluster takes over the work of a
 * cluster that has not begun, and cancels its launch. */
#include "access.h"
#include "async.h"
#include <string.h>

/* Holds the response to a request to cancel a cluster. It says whether a cluster was canceled, and
 * has the coordinates of this cluster's first thread block. The PTX ISA leaves the bits of the
 * response undefined, so this layout is the simulator's own. */
typedef struct {
    uint32_t id[3], canceled;
} response;

/* Takes the next cluster from the counter of clusters that have not begun. */
static response take_cluster(const ptx_cluster *c) {
    const ptx_launch *l = c->blocks[0].launch;
    const uint32_t *size = l->cluster, across = l->grid[0] / size[0], down = l->grid[1] / size[1],
                   count = across * down * (l->grid[2] / size[2]);
    uint32_t n = __atomic_load_n(c->next, __ATOMIC_SEQ_CST);
    do {
        if (n >= count) return (response){0};
    } while (!__atomic_compare_exchange_n(c->next, &n, n + 1, false, __ATOMIC_SEQ_CST,
                                          __ATOMIC_SEQ_CST));
    return (response){
        {n % across * size[0], n / across % down * size[1], n / across / down * size[2]}, 1};
}

static bool answer(ptx_async *j, const response *r, uint64_t to, uint64_t barrier) {
    uint8_t *at = ptx_engine_shared(j, to, sizeof *r, true);
    if (!at) return false;
    memcpy(at, r, sizeof *r);
    ptx_mbarrier_complete(j->warp, j->inst, barrier, sizeof *r);
    return true;
}

/* Writes the response of the instruction clusterlaunchcontrol.try_cancel to shared memory of this
 * thread block, or of all blocks in the cluster at the same offset. */
static void run_request(ptx_async *j) {
    const ptx_cluster *c = j->warp->block->cluster;
    const uint64_t low = (1u << RANK_SHIFT) - 1;
    const response r = take_cluster(c);
    if (!j->multicast) {
        answer(j, &r, j->to, j->barrier);
        return;
    }
    for (uint64_t k = 0; k < c->size; k++)
        if (!answer(j, &r, (j->to & low) | k << RANK_SHIFT, (j->barrier & low) | k << RANK_SHIFT))
            return;
}

static void execute_request(ptx_warp *w, const ptx_inst *i) {
    uint64_t to[LANES], barrier[LANES];
    ptx_addresses(w, &i->op[0], to), ptx_addresses(w, &i->op[1], barrier);
    for (uint32_t left = w->mask; left && !w->stop; left &= left - 1) {
        const uint32_t l = ptx_first(left);
        ptx_async j = {.run = run_request,
                       .warp = w,
                       .inst = i,
                       .lane = l,
                       .to = to[l],
                       .barrier = barrier[l],
                       .multicast = ptx_has(i->opcode, "multicast::cluster::all")};
        if (to[l] % 16)
            ptx_stop(w, i, "lane %u: the response lies at 0x%llx, which 16 does not divide", l,
                     (unsigned long long)to[l]);
        ptx_async_add(&j);
    }
}

static response response_in(const ptx_warp *w, const ptx_operand *o, uint32_t lane) {
    response r;
    memcpy(&r, w->regs + o->at + sizeof r * lane, sizeof r);
    return r;
}

static void execute_is_canceled(ptx_warp *w, const ptx_inst *i) {
    uint32_t canceled = 0;
    for (uint32_t l = 0; l < LANES; l++)
        canceled |= (uint32_t)(response_in(w, &i->op[1], l).canceled == 1) << l;
    ptx_set_pred(w, &i->op[0], canceled);
}

enum { ALL = 3 };
static void execute_first(ptx_warp *w, const ptx_inst *i) {
    static const char names[] = "get_first_ctaid::x|get_first_ctaid::y|get_first_ctaid::z|";
    const bool all = i->opcode->row->what == ALL;
    const uint32_t count = all ? i->op[0].count : 1;
    for (uint32_t n = 0; n < count; n++) {
        uint32_t word[LANES];
        const uint32_t d = all ? n : (uint32_t)ptx_which(i->opcode, names);
        for (uint32_t l = 0; l < LANES; l++)
            word[l] = d < 3 ? response_in(w, &i->op[1], l).id[d] : 0;
        ptx_commit(w, all ? ptx_element(&i->op[0], n) : &i->op[0], word);
    }
}

#define ROW(pattern, operands, execute, what)                                                      \
    { pattern, operands, execute, NULL, 0, 0, 0, 0, what }
#define CONTROL "clusterlaunchcontrol."
static const ptx_row rows[] = {
    ROW(CONTROL "try_cancel.async.{shared::cta}.mbarrier::complete_tx::bytes."
                "{multicast::cluster::all}.b128",
        "mm", execute_request, 0),
    ROW(CONTROL "query_cancel.is_canceled.pred.b128", "pQ", execute_is_canceled, 0),
    ROW(CONTROL "query_cancel.get_first_ctaid::x|get_first_ctaid::y|get_first_ctaid::z.b32.b128",
        "rQ", execute_first, 0),
    ROW(CONTROL "query_cancel.get_first_ctaid.v4.b32.b128", "wQ", execute_first, ALL),
};
const ptx_table ptx_launch_control_table = {rows, sizeof rows / sizeof *rows};
