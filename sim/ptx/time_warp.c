/* Runs the instructions of a warp in the time model. An instruction waits for its registers and its
 * pipe, and then sets the cycle in which its results are ready. */
#include "time_state.h"
#include <math.h>
#include <string.h>

/* Counts the cycles in which a warp waits to execute its current instruction. */
static void stall(ptx_replay_state *p, const ptx_replayed *w, int cause, double from, double to) {
    if (to <= from) return;
    p->r->stalls[cause] += to - from;
    p->stalls[w->code][cause] += to - from;
}

static uint32_t register_of(const ptx_replay_state *p, const ptx_operand *o) {
    return o->place == PRED ? o->at : p->predicates + o->at / 128;
}

/* Calls `visit` for each register of an operand. */
typedef void visit(ptx_replay_state *p, ptx_replayed *w, uint32_t number, void *user);
static void each_register(ptx_replay_state *p, ptx_replayed *w, const ptx_operand *o, visit *call,
                          void *user) {
    if (o->place == REG || o->place == PRED || o->place == ADDRESS)
        call(p, w, register_of(p, o), user);
    for (uint32_t k = 0; (o->place == VECTOR || o->place == ADDRESS) && k < o->count; k++)
        if (o->elements) each_register(p, w, &o->elements[k], call, user);
}

typedef struct {
    double ready;
    uint8_t cause;
} readiness;
static void take_source(ptx_replay_state *p, ptx_replayed *w, uint32_t number, void *user) {
    readiness *r = user;
    (void)p;
    if (w->registers[number] > r->ready)
        r->ready = w->registers[number], r->cause = w->causes[number];
}
static void set_result(ptx_replay_state *p, ptx_replayed *w, uint32_t number, void *user) {
    const readiness *r = user;
    (void)p;
    w->registers[number] = r->ready, w->causes[number] = r->cause;
}

static readiness sources(ptx_replay_state *p, ptx_replayed *w, const ptx_inst *i,
                         const ptx_class *c) {
    readiness r = {0, STALL_ISSUE};
    if (i->guard >= 0) take_source(p, w, (uint32_t)i->guard, &r);
    for (uint32_t k = 0; k < i->count; k++)
        if (!(c->results >> k & 1)) each_register(p, w, &i->op[k], take_source, &r);
    return r;
}

static void set_results(ptx_replay_state *p, ptx_replayed *w, const ptx_inst *i, double ready,
                        uint8_t cause) {
    readiness r = {ready, cause};
    const uint32_t results = p->classes[i - p->t->launch->module->code].results;
    for (uint32_t k = 0; k < i->count; k++)
        if (results >> k & 1) each_register(p, w, &i->op[k], set_result, &r);
}

void ptx_add_to_queue(ptx_groups *q, double done) {
    q->open = fmax(q->open, done);
}

static void commit(ptx_groups *q) {
    if (q->count == GROUPS) {
        q->done[1] = fmax(q->done[0], q->done[1]);
        memmove(q->done, q->done + 1, (GROUPS - 1) * sizeof *q->done), q->count--;
    }
    q->done[q->count++] = q->open, q->open = 0;
}

/* Returns the first cycle in which at most `pending` groups of asynchronous operations are
 * incomplete. */
static double wait_for(const ptx_groups *q, uint32_t pending) {
    double last = 0;
    for (uint32_t k = 0; k + pending < q->count; k++)
        last = fmax(last, q->done[k]);
    return last;
}

void ptx_wait_until(ptx_replay_state *p, ptx_replayed *w, double at, int cause) {
    stall(p, w, cause, w->ready, at);
    w->ready = fmax(w->ready, at);
}

/* Runs a wgmma on the tensor core of the warp's partition. */
static void multiply(ptx_replay_state *p, ptx_replayed *w, ptx_sm *sm, const ptx_class *c) {
    double *tensor = &sm->pipe[w->partition][PIPE_TENSOR];
    const double begin = fmax(w->ready, *tensor),
                 read = ptx_take_shared(&p->units, sm, begin, c->bytes);
    *tensor = fmax(begin + c->cycles, read);
    if (sm->busy == 0) sm->first = begin;
    sm->last = fmax(sm->last, *tensor), sm->busy += c->cycles / PARTITIONS;
    ptx_add_to_queue(&w->queues[QUEUE_PRODUCTS], *tensor + p->t->device->tensor_latency);
}

static const int queue_causes[] = {STALL_MEMORY, STALL_MEMORY, STALL_MATRIX};

static void run_special(ptx_replay_state *p, ptx_replayed *w, ptx_sm *sm, const ptx_inst *i,
                        const ptx_class *c) {
    double *memory = &sm->tensor_memory[w->partition];
    switch (c->special) {
    case COMMITS:
        commit(&w->queues[c->queue]);
        break;
    case WAITS:
        if (i->count == 0) commit(&w->queues[c->queue]);
        ptx_wait_until(p, w,
                       wait_for(&w->queues[c->queue], i->count ? (uint32_t)i->op[0].value : 0),
                       queue_causes[c->queue]);
        break;
    case MULTIPLIES:
        multiply(p, w, sm, c);
        break;
    case TENSOR_MEMORY:
        *memory = fmax(*memory, w->ready) + c->cycles;
        w->tensor_memory = *memory + p->t->device->shared_latency;
        set_results(p, w, i, w->tensor_memory, STALL_SHARED);
        break;
    case WAITS_TENSOR_MEMORY:
        ptx_wait_until(p, w, w->tensor_memory, STALL_SHARED);
        break;
    default:
        break;
    }
}

/* Returns true if an instruction computes with a value that is still on its way from global memory.
 * A warp would have to wait for the value before it issues later instructions. But NVIDIA's
 * assembler, which compiles PTX for a real GPU, moves such an instruction behind later independent
 * ones. The model therefore does not let the warp wait here. Memory accesses are not moved. */
static bool is_postponed(const ptx_replayed *w, const ptx_class *c, const readiness *r) {
    return r->cause == STALL_MEMORY && r->ready > w->ready && c->special == ORDINARY &&
           c->pipe <= PIPE_SPECIAL && !c->ordering;
}

void ptx_replay_instruction(ptx_replay_state *p, ptx_replayed *w, ptx_sm *sm, uint32_t code) {
    const ptx_inst *i = &p->t->launch->module->code[code];
    const ptx_class *c = &p->classes[code];
    readiness r = sources(p, w, i, c);
    const bool postponed = is_postponed(w, c, &r);
    if (c->ordering && w->late > r.ready) r = (readiness){w->late, STALL_MEMORY};
    if (c->special == RENAMED) {
        set_results(p, w, i, r.ready, r.cause);
        return;
    }
    double *pipe = &sm->pipe[w->partition][c->pipe], *slot = &sm->issue[w->partition];
    if (!postponed) ptx_wait_until(p, w, r.ready, r.cause);
    const double at = fmax(w->ready, fmax(*slot, c->pipe ? *pipe : 0));
    stall(p, w, c->pipe == PIPE_TENSOR ? STALL_MATRIX : STALL_ISSUE, w->ready, at);
    *slot = at + 1, *pipe = at + c->cycles, w->ready = at + 1;
    p->r->instructions++;
    if (c->special == ORDINARY) {
        const double done = (postponed ? r.ready : at) + fmaxf(c->latency, c->cycles);
        set_results(p, w, i, done, postponed ? STALL_MEMORY : STALL_ISSUE);
        w->late = postponed ? fmax(w->late, done) : w->late;
    }
    if (c->pipe == PIPE_TENSOR) {
        if (sm->busy == 0) sm->first = at;
        sm->last = fmax(sm->last, at + c->cycles), sm->busy += c->cycles / PARTITIONS;
    }
    if (c->special > ACCESS) run_special(p, w, sm, i, c);
}

void ptx_replay_shared(ptx_replay_state *p, ptx_replayed *w, ptx_sm *sm, const ptx_event *e) {
    const ptx_device *d = p->t->device;
    const double end = ptx_take(&sm->shared, w->ready, e->a);
    p->r->shared_busy += e->a, p->r->shared_conflicts += e->b;
    set_results(p, w, &p->t->launch->module->code[e->code], end + d->shared_latency, STALL_SHARED);
}

static bool starts_with(const ptx_inst *i, const char *text) {
    return strncmp(i->opcode->text, text, strlen(text)) == 0;
}

void ptx_replay_memory(ptx_replay_state *p, ptx_replayed *w, ptx_sm *sm, const ptx_event *e) {
    const ptx_inst *i = &p->t->launch->module->code[e->code];
    const bool writes = starts_with(i, "st.") || starts_with(i, "red."),
               cached = starts_with(i, "ld.") && !ptx_has(i->opcode, "volatile"),
               copies = starts_with(i, "cp.async");
    double done = w->ready;
    for (uint32_t k = 0; k < e->a; k++) {
        const ptx_span *s = &w->trace->spans.at[w->span++];
        const double at = writes ? ptx_write_span(&p->units, sm, s, w->ready)
                                 : ptx_read_span(&p->units, sm, s, w->ready, cached);
        done = fmax(done, at);
    }
    p->r->l1_bytes += e->b;
    if (writes)
        p->end = fmax(p->end, done);
    else if (copies)
        ptx_add_to_queue(&w->queues[QUEUE_COPIES], ptx_take_shared(&p->units, sm, done, e->b));
    else
        set_results(p, w, i, done, STALL_MEMORY);
}
