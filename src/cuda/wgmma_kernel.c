#include "cuda/wgmma_kernel.h"

#include "cuda/generic.h"

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
    if (!reason) reason = bsmm_wgmma_refuse(p);
    if (!reason && (moves_too_much(p, &x.a) || moves_too_much(p, &x.b)))
        reason = "K is beyond 65535 scales that are not where the engine reads them";
    if (!reason && !x.a.stored) reason = bsmm_pack_refuse(&p->a, plan->routes[0], why, size);
    if (!reason && !x.b.stored) reason = bsmm_pack_refuse(&p->b, plan->routes[1], why, size);
    return reason;
}

/* ---- workspace ---- */

/* Headers of what a run packs, and for each attempt whether it was not exact; cleared at once.
 * Behind it, of each attempt, A, B (unless it is packed ahead) and the engine's own. */
typedef struct head {
    bsmm_pack_header headers[4];
    uint32_t closed[2];
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
    if (plan->otherwise) BSMM_TRY(prepare_attempt(p, plan->otherwise));
    return plan->when == BSMM_WHEN_ALWAYS ? BSMM_OK : bsmm_cuda_generic_prepare(p);
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

/* One attempt: packs, and multiplies if what came out is exact. gate: says where its result is
 * wanted (only) and where it tells that it was not exact (closed). */
static bsmm_status attempt(const bsmm_product *p, const bsmm_wgmma_plan *plan, bool b_packed,
                           bsmm_pack_header *headers, uint8_t *room, bsmm_cuda_gate gate) {
    const parts x = parts_of(p, plan);
    uint8_t *b_room = b_packed ? mutable(p->packed_b) : room + x.a.bytes;
    uint8_t *rest = room + x.a.bytes + (b_packed ? 0 : x.b.bytes);
    bool cleared = plan->when != BSMM_WHEN_ALWAYS; /* or gated, which waits anyway */
    bsmm_wgmma_packing a_how = {&headers[0], gate.only, cleared};
    bsmm_wgmma_packing b_how = {&headers[1], gate.only, cleared};
    BSMM_TRY(bsmm_wgmma_fill(p, &p->a, &x.a, &a_how, room));
    if (!b_packed) BSMM_TRY(bsmm_wgmma_fill(p, &p->b, &x.b, &b_how, b_room));
    bsmm_wgmma_side a = bsmm_wgmma_side_of(&p->a, &x.a, room, &gate.a);
    bsmm_wgmma_side b = bsmm_wgmma_side_of(&p->b, &x.b, b_room, &gate.b);
    if (gate.a) gate.a = &headers[0];
    if (gate.b && !b_packed) gate.b = &headers[1];
    gate.when = gate.a || gate.b ? plan->when : BSMM_WHEN_ALWAYS;
    return bsmm_wgmma_run(p, x.tile, &a, &b, &gate, is_unknown(plan, &x) ? gate.closed : NULL,
                          rest);
}

static uint32_t log2_of(int64_t k) {
    uint32_t log2 = 0;
    while ((int64_t)1 << log2 < k)
        log2++;
    return log2;
}

bsmm_status bsmm_wgmma_plan_run(const bsmm_product *p, const bsmm_wgmma_plan *plan,
                                void *workspace) {
    head *h = aligned(workspace);
    uint8_t *room = (uint8_t *)h + HEAD_BYTES;
    bsmm_cuda_gate gate = {.log2_k = log2_of(p->a.m.cols), .closed = &h->closed[0]};
    if (plan->when != BSMM_WHEN_ALWAYS)
        BSMM_TRY(bsmm_pack_clear(p->device, h, sizeof *h, p->stream));
    BSMM_TRY(attempt(p, plan, p->b_packed, &h->headers[0], room, gate));
    if (plan->when == BSMM_WHEN_ALWAYS) return BSMM_OK;
    gate.only = gate.closed;
    if (plan->otherwise) {
        room += attempt_bytes(p, plan, p->b_packed);
        gate.closed = &h->closed[1];
        BSMM_TRY(attempt(p, plan->otherwise, false, &h->headers[2], room, gate));
        gate.only = gate.closed;
    }
    gate.closed = NULL;
    return bsmm_cuda_generic_run(p, &gate);
}

uint64_t bsmm_wgmma_plan_packed_b_bytes(const bsmm_product *p, const bsmm_wgmma_plan *plan) {
    return parts_of(p, plan).b.bytes;
}

bsmm_status bsmm_wgmma_plan_pack_b(const bsmm_product *p, const bsmm_wgmma_plan *plan,
                                   void *packed) {
    const parts x = parts_of(p, plan);
    return bsmm_wgmma_fill(p, &p->b, &x.b, &(bsmm_wgmma_packing){0}, packed);
}
