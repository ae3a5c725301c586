#include "cuda/host/wgmma_kernel.h"

#include <stdio.h>

const bsmm_wgmma_plan bsmm_wgmma_plan_bf16 = {
    .kind = BSMM_WGMMA_BF16,
    .routes = {BSMM_PACK_BF16, BSMM_PACK_BF16},
    .elems = {BSMM_ELEM_BF16, BSMM_ELEM_BF16},
    .when = BSMM_WHEN_PLAIN,
};

BSMM_CHECK_STATE(bsmm_wgmma_state);

static bsmm_wgmma_source source_of(const bsmm_product *p, const bsmm_wgmma_plan *plan, bool is_b) {
    const bsmm_operand *o = is_b ? &p->b : &p->a;
    const bool by_rows = plan->by_rows && o->m.format.scale == BSMM_SCALE_F32;
    const bool bare = plan->elems[is_b] == BSMM_ELEM_F16 && !is_b;
    return bsmm_wgmma_source_of(
        p, &(bsmm_wgmma_wish){.kind = plan->kind,
                              .route = plan->routes[is_b],
                              .elem = plan->elems[is_b],
                              .shift = is_b ? plan->shift : 0,
                              .is_b = is_b,
                              .by_rows = plan->by_rows && plan->kind == BSMM_WGMMA_BLOCK,
                              .row_wide = plan->kind != BSMM_WGMMA_BF16 && (!is_b || by_rows),
                              .scaled = (plan->kind != BSMM_WGMMA_BF16 && !bare) || by_rows});
}

static bsmm_wgmma_attempt attempt_of(const bsmm_product *p, const bsmm_wgmma_plan *plan,
                                     bool b_packed) {
    bsmm_wgmma_attempt x = {
        .tile = bsmm_wgmma_choose(p, plan->kind, plan->elems[0], plan->elems[1]),
        .a = source_of(p, plan, false),
        .b = source_of(p, plan, true),
    };
    const int64_t engine = (int64_t)bsmm_wgmma_engine_bytes(p, x.tile);
    x.bytes = x.a.bytes + (b_packed ? 0 : x.b.bytes) + (uint64_t)bsmm_round_up(engine, 1024);
    return x;
}

/* Returns true if the matrix is too wide for the kernel that copies scales. That kernel has one
 * thread block along the grid's y axis for each 128 elements of K, and a grid has at most 65535
 * thread blocks along y. */
static bool moves_too_much(const bsmm_product *p, const bsmm_wgmma_source *s) {
    return s->scaled && !s->stored_scales && p->a.m.cols > (int64_t)UINT16_MAX * BSMM_PACK_GROUP;
}

static const char *refuse_sources(const bsmm_product *p, const bsmm_wgmma_attempt *x, char *why,
                                  size_t size) {
    const char *reason = NULL;
    if (moves_too_much(p, &x->a) || moves_too_much(p, &x->b))
        return bsmm_reason(why, size, "K is %lld; the kernel that copies scales takes at most %lld",
                           (long long)p->a.m.cols, (long long)UINT16_MAX * BSMM_PACK_GROUP);
    if (!x->a.stored) reason = bsmm_pack_refuse(&p->a, 'A', x->a.route, why, size);
    if (!reason && !x->b.stored) reason = bsmm_pack_refuse(&p->b, 'B', x->b.route, why, size);
    return reason;
}

static uint32_t log2_of(int64_t k) {
    uint32_t log2 = 0;
    while ((int64_t)1 << log2 < k)
        log2++;
    return log2;
}

const char *bsmm_wgmma_refuse(const bsmm_product *p, const bsmm_wgmma_plan *plan,
                              bsmm_wgmma_state *state, char *why, size_t size) {
    const bsmm_wgmma_tile *tile = bsmm_wgmma_choose(p, plan->kind, plan->elems[0], plan->elems[1]);
    const char *reason = bsmm_cuda_refuse(p, bsmm_wgmma_function(tile), why, size);
    if (!reason) reason = bsmm_gpu_refuse_extents(p, why, size);
    if (reason) return reason;
    state->plan = *plan;
    state->log2_k = log2_of(p->a.m.cols);
    state->first = attempt_of(p, plan, p->b_packed);
    if (plan->otherwise)
        state->second = attempt_of(p, plan->otherwise, plan->when == BSMM_WHEN_HALF);
    return refuse_sources(p, &state->first, why, size);
}

/* Describes the first bytes of the workspace. Each run clears these bytes. They hold the headers of
 * the operands that the run packs, and a flag that the GEMM kernel sets if its result may be wrong.
 * The memory of two attempts to compute the GEMM follows. The first attempt is the plan's GEMM
 * kernel with the packing kernels before it. The second attempt is the fallback's GEMM kernel. Each
 * attempt has memory for A, for B (unless B was packed in advance) and for the GEMM kernel. */
typedef struct head {
    bsmm_pack_header headers[2];
    uint32_t closed;
} head;

enum { HEAD_BYTES = 1024 };
_Static_assert(sizeof(head) <= HEAD_BYTES, "rooms begin behind it");

uint64_t bsmm_wgmma_workspace_bytes(const bsmm_product *p, const void *state) {
    const bsmm_wgmma_state *s = state;
    (void)p;
    return 1024 + HEAD_BYTES + s->first.bytes + (s->plan.otherwise ? s->second.bytes : 0);
}

/* Returns the number of parts into which the plan's GEMM kernel splits K of every tile. Each part
 * is summed by itself, and the number of parts changes the bits of a result. The kernel may also
 * divide the K of the last tiles among clusters, where each cluster continues with the accumulators
 * of the one before (split_last in wgmma.c). This division does not count, because it does not
 * change the bits. */
uint32_t bsmm_wgmma_k_parts(const bsmm_product *p, const void *state) {
    const bsmm_wgmma_state *s = state;
    return (uint32_t)bsmm_wgmma_deal_of(p, s->first.tile).splits;
}

static head *aligned(void *pointer) {
    return (head *)(((uintptr_t)pointer + 1023) / 1024 * 1024);
}

static bsmm_status make_attempt(const bsmm_product *p, bsmm_wgmma_attempt *x, bool plain) {
    return bsmm_wgmma_make(p, x->tile, &x->a.form, &x->b.form, plain, &x->engine);
}

static bsmm_status make_in_context(const bsmm_product *p, bsmm_wgmma_state *s) {
    const bool halves = s->plan.when == BSMM_WHEN_HALF;
    BSMM_TRY(make_attempt(p, &s->first, s->plan.otherwise && !halves));
    if (halves && bsmm_wgmma_is_f16_at_once(p, &p->b, &s->first.b))
        s->first.engine.params.plain[1] = bsmm_pack_plain_of(&p->b, NULL);
    BSMM_TRY(bsmm_wgmma_packer_make(p, &p->a, &s->first.a, &s->a));
    BSMM_TRY(bsmm_wgmma_packer_make(p, &p->b, &s->first.b, &s->b));
    BSMM_TRY(bsmm_pack_clear_load(p->device, &s->clear));
    if (s->plan.when == BSMM_WHEN_ALWAYS) return BSMM_OK;
    if (s->plan.otherwise) BSMM_TRY(make_attempt(p, &s->second, false));
    return s->plan.otherwise && !halves ? BSMM_OK : bsmm_cuda_generic_make(p, true, &s->generic);
}

bsmm_status bsmm_wgmma_make_state(const bsmm_product *p, void *state) {
    BSMM_CUDA_RETURN_INSIDE(p->device, make_in_context(p, state));
}

/* Casts const away. The same functions compute addresses in packed weights for kernels that write
 * the weights and for kernels that only read them, so these functions take pointers without const.
 * Weights that were packed in advance are const; kernels only read them. */
static void *mutable(const void *pointer) {
    union {
        const void *from;
        void *to;
    } both = {.from = pointer};
    return both.to;
}

/* Returns true if the GEMM kernel must test its accumulators. There are three reasons:
 * - A bf16 operand is not packed, so there is no header with the range of its values. An unpacked
 *   f16 operand needs no test, because sums of products of two f16 numbers cannot leave the range
 *   of fp32.
 * - An element is the sum of several bf16 numbers. One of these numbers may be 0, and 0 times Inf
 *   is NaN.
 * - The kernel multiplies accumulators by scales. The accumulators or these products may leave the
 *   range of fp32. */
static bool is_unknown(const bsmm_wgmma_state *s) {
    const uint32_t parts = s->first.a.form.parts * s->first.b.form.parts;
    const bool scaled = s->plan.kind != BSMM_WGMMA_BF16 || s->plan.by_rows;
    if (s->plan.elems[0] == BSMM_ELEM_F16) return scaled;
    return s->plan.elems[0] == BSMM_ELEM_BF16 &&
           (s->first.a.stored || s->first.b.stored || parts > 1 || scaled);
}

/* The header of the packed B says which values B has, so that the GEMM kernel can decide whether
 * its result is valid. Returns true if the GEMM kernel does not need the header. In this case, B is
 * packed to f16 and f16 holds all of its elements exactly, because the GEMM kernel itself applies
 * B's fp32 scales to its sums. Only a scale of Inf can then make a result wrong. The wrong result
 * is Inf or NaN, so the GEMM kernel detects it (is_unknown) and sets the flag head.closed. The
 * kernel that packs B sets this flag to 0 before, so no other kernel has to clear it. */
static bool needs_no_header(const bsmm_product *p, const bsmm_wgmma_state *s) {
    if (s->plan.when != BSMM_WHEN_FITS || s->plan.elems[0] != BSMM_ELEM_F16) return false;
    if (p->b_packed || !s->first.a.stored || s->first.b.stored) return false;
    return bsmm_pack_f16_clears(&p->b) && p->b.m.rows > 0 && p->b.m.cols > 0;
}

/* Holds the memory of one attempt, i.e. of one GEMM kernel and the kernels that pack its operands.
 * `a` and `b` point to the packed operands, and `rest` points to the workspace of the GEMM kernel.
 * All three lie in the workspace, except that `b` points to B if B was packed in advance. */
typedef struct rooms {
    uint8_t *a, *b, *rest;
} rooms;

static rooms rooms_of(const bsmm_product *p, const bsmm_wgmma_attempt *x, bool b_packed,
                      uint8_t *room) {
    return (rooms){
        .a = room,
        .b = b_packed ? mutable(p->packed_b) : room + x->a.bytes,
        .rest = room + x->a.bytes + (b_packed ? 0 : x->b.bytes),
    };
}

/* Queues the kernels that pack A and, unless B was packed in advance, B. */
static bsmm_status fill(const bsmm_product *p, const bsmm_wgmma_state *s, const rooms *at,
                        head *h) {
    bool cleared = s->plan.when != BSMM_WHEN_ALWAYS;
    bsmm_wgmma_packing a_how = {&h->headers[0], cleared, NULL},
                       b_how = {&h->headers[1], cleared, NULL};
    if (needs_no_header(p, s)) b_how.overlaps = false, b_how.cleared = &h->closed;
    BSMM_TRY(bsmm_wgmma_fill(p, &p->a, &s->first.a, &s->a, &a_how, at->a));
    if (p->b_packed) return BSMM_OK;
    return bsmm_wgmma_fill(p, &p->b, &s->first.b, &s->b, &b_how, at->b);
}

/* Queues the kernels of the first attempt: those that pack the operands, and then the plan's GEMM
 * kernel. Fills *gate with pointers to device memory in which the packing kernels write whether the
 * packed operands hold all values exactly enough (sm80/gate.h). If they do not, the GEMM kernel
 * does not multiply them. The fallback, which is queued next, reads the same memory to decide
 * whether it must compute the product. */
static bsmm_status multiply(const bsmm_product *p, const bsmm_wgmma_state *s, const rooms *at,
                            head *h, void *const plain[2], bsmm_cuda_gate *gate) {
    const bsmm_wgmma_attempt *x = &s->first;
    const bsmm_pack_header *b_header = p->b_packed ? (void *)at->b : &h->headers[1];
    gate->a = x->a.stored ? NULL : &h->headers[0];
    gate->b = x->b.stored || needs_no_header(p, s) ? NULL : b_header;
    bsmm_wgmma_input in = {.a = bsmm_wgmma_side_of(&p->a, &x->a, at->a),
                           .b = bsmm_wgmma_side_of(&p->b, &x->b, at->b),
                           .gate = *gate,
                           .plain = {plain[0], plain[1]},
                           .overflowed = is_unknown(s) ? gate->closed : NULL,
                           .workspace = at->rest};
    in.gate.when = gate->a || gate->b ? s->plan.when : BSMM_WHEN_ALWAYS;
    return bsmm_wgmma_run(p, &x->engine, &in);
}

/* Queues the GEMM kernel of the fallback plan, which multiplies bf16, after the first plan's GEMM
 * kernel. The host does not know whether the first kernel could compute the product, so it always
 * queues both. If the first kernel could not, it has packed A and B to bf16, and the second kernel
 * multiplies these packed operands. Otherwise the second kernel does nothing. It learns from
 * `gate`, which multiply() has filled, whether it must run. */
static bsmm_status multiply_plain(const bsmm_product *p, const bsmm_wgmma_attempt *x,
                                  const rooms *at, const bsmm_cuda_gate *gate) {
    bsmm_wgmma_input in = {.a = bsmm_wgmma_side_of(&p->a, &x->a, at->a),
                           .b = bsmm_wgmma_side_of(&p->b, &x->b, at->b),
                           .gate = *gate,
                           .workspace = at->rest};
    in.gate.when = BSMM_WHEN_ELSE_PLAIN;
    return bsmm_wgmma_run(p, &x->engine, &in);
}

/* Queues two GEMM kernels: that of the plan, and that of its fallback (plan.otherwise). On the
 * device, the fallback's kernel does nothing unless the packed formats of the plan's kernel could
 * not hold the values of A and B. In the workspace, the memory of the fallback comes after that of
 * the plan's kernel. */
static bsmm_status run_either(const bsmm_product *p, const bsmm_wgmma_state *s, const rooms *at,
                              head *h, bsmm_cuda_gate *gate) {
    const rooms there = rooms_of(p, &s->second, false, at->a + s->first.bytes);
    void *const plain[2] = {there.a, there.b};
    gate->slack = s->plan.slack;
    BSMM_TRY(multiply(p, s, at, h, plain, gate));
    return multiply_plain(p, &s->second, &there, gate);
}

/* Queues two GEMM kernels. The first one multiplies f16. If f16 cannot hold the values of B, it
 * instead prepares the operands for the second kernel, which multiplies bf16: it splits A into two
 * bf16 parts, and packs B to bf16 again if packing to f16 has spoiled B. Otherwise the second
 * kernel does nothing. Both kernels read B from the same memory. */
static bsmm_status run_half(const bsmm_product *p, const bsmm_wgmma_state *s, const rooms *at,
                            head *h) {
    const bsmm_wgmma_attempt *x = &s->first, *y = &s->second;
    const bsmm_pack_header *b = p->b_packed ? (const void *)at->b : &h->headers[1];
    uint8_t *parts = at->rest + (x->bytes - x->a.bytes - (p->b_packed ? 0 : x->b.bytes));
    const bool again = bsmm_wgmma_is_f16_at_once(p, &p->b, &x->b);
    const bsmm_cuda_gate gate = {
        .b = b, .log2_k = s->log2_k, .shift = s->plan.shift, .closed = &h->closed};
    bsmm_wgmma_input in = {.a = bsmm_wgmma_side_of(&p->a, &x->a, at->a),
                           .b = bsmm_wgmma_side_of(&p->b, &x->b, at->b),
                           .gate = gate,
                           .plain = {NULL, again ? at->b : NULL},
                           .parts = parts + y->a.elements_at,
                           .parts_pitch = y->a.form.pitch,
                           .workspace = at->rest};
    in.gate.when = BSMM_WHEN_HALF;
    BSMM_TRY(bsmm_wgmma_run(p, &x->engine, &in));
    in = (bsmm_wgmma_input){.a = bsmm_wgmma_side_of(&p->a, &y->a, parts),
                            .b = bsmm_wgmma_side_of(&p->b, &y->b, at->b),
                            .gate = gate,
                            .overflowed = &h->closed,
                            .workspace = parts + y->a.bytes};
    in.gate.when = BSMM_WHEN_ELSE_PARTS;
    return bsmm_wgmma_run(p, &y->engine, &in);
}

static bsmm_status run_in_context(const bsmm_product *p, const bsmm_wgmma_state *s,
                                  void *workspace) {
    head *h = aligned(workspace);
    const rooms at = rooms_of(p, &s->first, p->b_packed, (uint8_t *)h + HEAD_BYTES);
    void *const none[2] = {NULL, NULL};
    bsmm_cuda_gate gate = {.log2_k = s->log2_k};
    const bool halves = s->plan.when == BSMM_WHEN_HALF;
    const bool uses_head = s->plan.when != BSMM_WHEN_ALWAYS && !(halves && p->b_packed);
    if (uses_head && !needs_no_header(p, s))
        BSMM_TRY(bsmm_pack_clear(p->device, &s->clear, h, sizeof *h, p->stream));
    BSMM_TRY(fill(p, s, &at, h));
    if (s->plan.otherwise && !halves) return run_either(p, s, &at, h, &gate);
    gate.closed = &h->closed;
    BSMM_TRY(halves ? run_half(p, s, &at, h) : multiply(p, s, &at, h, none, &gate));
    if (s->plan.when == BSMM_WHEN_ALWAYS) return BSMM_OK;
    return bsmm_cuda_generic_run(p, &s->generic, &(bsmm_cuda_gate){.only = gate.closed});
}

bsmm_status bsmm_wgmma_run_state(const bsmm_product *p, const void *state, void *workspace) {
    BSMM_CUDA_RETURN_INSIDE(p->device, run_in_context(p, state, workspace));
}

uint64_t bsmm_wgmma_packed_b_bytes(const bsmm_product *p, const void *state) {
    const bsmm_wgmma_state *s = state;
    (void)p;
    return s->first.b.bytes;
}

/* Writes the name of the layout of packed weights B to `name`. It is the name of the format to
 * which the elements are packed, or "stored" if the GEMM kernel reads B's elements as they are. The
 * name ends in "_r" if the packed weights hold scales of rows, and in "_b" if they hold scales of
 * 128 x 128 blocks. */
void bsmm_wgmma_name_panels(const bsmm_product *p, const void *state, char *name, size_t size) {
    const bsmm_wgmma_source *b = &((const bsmm_wgmma_state *)state)->first.b;
    (void)p;
    snprintf(name, size, "sm90a_%s%s",
             b->stored ? "stored"
             : b->half ? "f16"
                       : bsmm_pack_route_name(b->route),
             !b->scaled || b->stored_scales ? ""
             : b->by_row                    ? "_r"
                                            : "_b");
}

bsmm_status bsmm_wgmma_pack_b(const bsmm_product *p, const void *state, void *packed) {
    const bsmm_wgmma_state *s = state;
    const bsmm_wgmma_packing alone = {0};
    BSMM_CUDA_RETURN_INSIDE(p->device,
                            bsmm_wgmma_fill(p, &p->b, &s->first.b, &s->b, &alone, packed));
}
