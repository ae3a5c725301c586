#include "cuda/host/wgmma_kernel.h"

#include "cuda/host/generic.h"

const bsmm_wgmma_plan bsmm_wgmma_plan_bf16 = {
    .kind = BSMM_WGMMA_BF16,
    .routes = {BSMM_PACK_BF16, BSMM_PACK_BF16},
    .elems = {BSMM_ELEM_BF16, BSMM_ELEM_BF16},
    .when = BSMM_WHEN_PLAIN,
};

typedef struct parts {
    const bsmm_wgmma_tile *tile;
    bsmm_wgmma_source a, b;
} parts;

static parts parts_of(const bsmm_product *p, const bsmm_wgmma_plan *plan) {
    return (parts){
        .tile = bsmm_wgmma_choose(p, plan->kind, plan->elems[0], plan->elems[1]),
        .a = bsmm_wgmma_source_of(p, plan->kind, false, plan->routes[0]),
        .b = bsmm_wgmma_source_of(p, plan->kind, true, plan->routes[1]),
    };
}

/* A grid has 65535 blocks down, one for each 128 of K where scales are moved. */
static bool moves_too_much(const bsmm_product *p, const bsmm_wgmma_source *s) {
    return s->scaled && !s->stored_scales && p->a.m.cols > (int64_t)UINT16_MAX * BSMM_PACK_GROUP;
}

const char *bsmm_wgmma_plan_refuse(const bsmm_product *p, const bsmm_wgmma_plan *plan, char *why,
                                   size_t size) {
    const parts x = parts_of(p, plan);
    const char *reason = bsmm_cuda_refuse(p, bsmm_wgmma_function(x.tile), why, size);
    if (!reason) reason = bsmm_cuda_refuse_product(p);
    if (!reason && (moves_too_much(p, &x.a) || moves_too_much(p, &x.b)))
        reason = "K is beyond 65535 scales that are not where the engine reads them";
    if (!reason && !x.a.stored) reason = bsmm_pack_refuse(&p->a, plan->routes[0], why, size);
    if (!reason && !x.b.stored) reason = bsmm_pack_refuse(&p->b, plan->routes[1], why, size);
    return reason;
}

/* ---- workspace ---- */

/* Headers of what a run packs, and whether the engine was not to be trusted with it; cleared at
 * once. Behind it, of each attempt, A, B (unless it is packed ahead) and the engine's own. */
typedef struct head {
    bsmm_pack_header headers[2];
    uint32_t closed;
} head;

enum { HEAD_BYTES = 1024 };
_Static_assert(sizeof(head) <= HEAD_BYTES, "rooms begin behind it");

static uint64_t attempt_bytes(const bsmm_product *p, const bsmm_wgmma_plan *plan, bool b_packed) {
    const parts x = parts_of(p, plan);
    return x.a.bytes + (b_packed ? 0 : x.b.bytes) +
           (uint64_t)bsmm_round_up((int64_t)bsmm_wgmma_workspace_bytes(p, x.tile), 1024);
}

uint64_t bsmm_wgmma_plan_workspace_bytes(const bsmm_product *p, const bsmm_wgmma_plan *plan) {
    uint64_t bytes = 1024 + HEAD_BYTES + attempt_bytes(p, plan, p->b_packed);
    if (plan->otherwise) bytes += attempt_bytes(p, plan->otherwise, false);
    return bytes;
}

static head *aligned(void *pointer) {
    return (head *)(((uintptr_t)pointer + 1023) / 1024 * 1024);
}

/* ---- preparation ---- */

static bsmm_status prepare_attempt(const bsmm_product *p, const bsmm_wgmma_plan *plan) {
    const parts x = parts_of(p, plan);
    BSMM_TRY(bsmm_cuda_load(p->device, bsmm_wgmma_function(x.tile), NULL));
    BSMM_TRY(bsmm_wgmma_source_prepare(p, &p->a, &x.a));
    return bsmm_wgmma_source_prepare(p, &p->b, &x.b);
}

bsmm_status bsmm_wgmma_plan_prepare(const bsmm_product *p, const bsmm_wgmma_plan *plan) {
    BSMM_TRY(prepare_attempt(p, plan));
    BSMM_TRY(bsmm_cuda_load(p->device, &bsmm_pack_clear_function, NULL));
    if (plan->when == BSMM_WHEN_ALWAYS) return BSMM_OK;
    if (!plan->otherwise) return bsmm_cuda_generic_prepare(p);
    const bsmm_wgmma_tile *tile = parts_of(p, plan->otherwise).tile;
    return bsmm_cuda_load(p->device, bsmm_wgmma_function(tile), NULL);
}

/* ---- running ---- */

/* Packed weights are only read; one function places them and finds them. */
static void *mutable(const void *pointer) {
    union {
        const void *from;
        void *to;
    } both = {.from = pointer};
    return both.to;
}

/* Whether a plan's sums must be looked at: a stored operand has no header that says how far it
 * reaches. */
static bool is_unknown(const bsmm_wgmma_plan *plan, const parts *x) {
    return plan->kind == BSMM_WGMMA_BF16 && (x->a.stored || x->b.stored);
}

/* Where an attempt's operands are: of `room`, A, B (unless it is packed ahead), the engine's. */
typedef struct rooms {
    uint8_t *a, *b, *rest;
} rooms;

static rooms rooms_of(const bsmm_product *p, const parts *x, bool b_packed, uint8_t *room) {
    return (rooms){
        .a = room,
        .b = b_packed ? mutable(p->packed_b) : room + x->a.bytes,
        .rest = room + x->a.bytes + (b_packed ? 0 : x->b.bytes),
    };
}

/* Packs, but for a B that was ahead. */
static bsmm_status fill(const bsmm_product *p, const bsmm_wgmma_plan *plan, const parts *x,
                        const rooms *at, head *h) {
    bool cleared = plan->when != BSMM_WHEN_ALWAYS;
    bsmm_wgmma_packing a_how = {&h->headers[0], cleared}, b_how = {&h->headers[1], cleared};
    BSMM_TRY(bsmm_wgmma_fill(p, &p->a, &x->a, &a_how, at->a));
    return p->b_packed ? BSMM_OK : bsmm_wgmma_fill(p, &p->b, &x->b, &b_how, at->b);
}

/* Queues the engine behind packing; *gate is for what comes behind it. */
static bsmm_status multiply(const bsmm_product *p, const bsmm_wgmma_plan *plan, const parts *x,
                            const rooms *at, head *h, void *const plain[2], bsmm_cuda_gate *gate) {
    bsmm_wgmma_input in = {.gate = *gate, .plain = {plain[0], plain[1]}, .workspace = at->rest};
    in.a = bsmm_wgmma_side_of(&p->a, &x->a, at->a, &in.gate.a);
    in.b = bsmm_wgmma_side_of(&p->b, &x->b, at->b, &in.gate.b);
    if (in.gate.a) in.gate.a = &h->headers[0];
    if (in.gate.b && !p->b_packed) in.gate.b = &h->headers[1];
    in.gate.when = in.gate.a || in.gate.b ? plan->when : BSMM_WHEN_ALWAYS;
    in.overflowed = is_unknown(plan, x) ? gate->closed : NULL;
    gate->a = in.gate.a;
    gate->b = in.gate.b;
    return bsmm_wgmma_run(p, x->tile, &in);
}

/* Queues what multiplies the operands that `multiply` has packed again; gate: as that left it. */
static bsmm_status multiply_plain(const bsmm_product *p, const parts *x, const rooms *at,
                                  const bsmm_cuda_gate *gate) {
    bsmm_wgmma_input in = {.gate = *gate, .workspace = at->rest};
    const bsmm_pack_header *unused;
    in.gate.when = BSMM_WHEN_ELSE_PLAIN;
    in.a = bsmm_wgmma_side_of(&p->a, &x->a, at->a, &unused);
    in.b = bsmm_wgmma_side_of(&p->b, &x->b, at->b, &unused);
    return bsmm_wgmma_run(p, x->tile, &in);
}

static uint32_t log2_of(int64_t k) {
    uint32_t log2 = 0;
    while ((int64_t)1 << log2 < k)
        log2++;
    return log2;
}

/* As plan.otherwise says, the rooms of that behind the plan's. */
static bsmm_status run_either(const bsmm_product *p, const bsmm_wgmma_plan *plan, const parts *x,
                              const rooms *at, head *h, bsmm_cuda_gate *gate) {
    const parts other = parts_of(p, plan->otherwise);
    const rooms there = rooms_of(p, &other, false, at->a + attempt_bytes(p, plan, p->b_packed));
    void *const plain[2] = {there.a, there.b};
    gate->slack = plan->slack;
    BSMM_TRY(multiply(p, plan, x, at, h, plain, gate));
    return multiply_plain(p, &other, &there, gate);
}

bsmm_status bsmm_wgmma_plan_run(const bsmm_product *p, const bsmm_wgmma_plan *plan,
                                void *workspace) {
    head *h = aligned(workspace);
    const parts x = parts_of(p, plan);
    const rooms at = rooms_of(p, &x, p->b_packed, (uint8_t *)h + HEAD_BYTES);
    void *const none[2] = {NULL, NULL};
    bsmm_cuda_gate gate = {.log2_k = log2_of(p->a.m.cols)};
    if (plan->when != BSMM_WHEN_ALWAYS)
        BSMM_TRY(bsmm_pack_clear(p->device, h, sizeof *h, p->stream));
    BSMM_TRY(fill(p, plan, &x, &at, h));
    if (plan->otherwise) return run_either(p, plan, &x, &at, h, &gate);
    gate.closed = &h->closed;
    BSMM_TRY(multiply(p, plan, &x, &at, h, none, &gate));
    if (plan->when == BSMM_WHEN_ALWAYS) return BSMM_OK;
    return bsmm_cuda_generic_run(p, &(bsmm_cuda_gate){.only = gate.closed});
}

uint64_t bsmm_wgmma_plan_packed_b_bytes(const bsmm_product *p, const bsmm_wgmma_plan *plan) {
    return parts_of(p, plan).b.bytes;
}

bsmm_status bsmm_wgmma_plan_pack_b(const bsmm_product *p, const bsmm_wgmma_plan *plan,
                                   void *packed) {
    const parts x = parts_of(p, plan);
    return bsmm_wgmma_fill(p, &p->b, &x.b, &(bsmm_wgmma_packing){0}, packed);
}
