/* Implements plans. A plan validates a product and chooses its kernel once, and can then run many
 * times. bsmm_matmul makes a plan for a single run. */
#include "base/threads.h"
#include "core/packed.h"
#include "core/parts.h"
#include "core/portions.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct bsmm_plan {
    /* `product` describes the product. Its pointers to the caller's memory are NULL. */
    bsmm_product product;
    /* `epilogue` is the plan's epilogue. product.epilogue points to it if there is an epilogue. */
    bsmm_product_epilogue epilogue;
    /* `groups` holds the plan's groups. product.groups points to it if there are groups. */
    bsmm_groups groups;
    const bsmm_kernel *kernel;
    /* CPU kernels accept only plain products, i.e. products with a fixed number of rows of A and
     * without groups. All other products on a CPU are divided into plain products (parts.h), and
     * `parts` holds the kernels for these. */
    bsmm_parts parts;
    uint64_t workspace_bytes;
    /* `packed` points to the description of packed weights. It is NULL in bsmm_matmul's plan. */
    const bsmm_packed *packed;
    /* `state` is the kernel's state, i.e. the data that the kernel computed when it accepted the
     * product. If the plan is on the heap, its states are in the same allocation. */
    void *state;
    /* `last_state` is what the kernel computed for the last portion of D's rows. Only plans that
     * compute a block-scaled D on a GPU, in portions, have it (portions.h). */
    void *last_state;
    /* `quantizers` points to the prepared kernels that quantize a block-scaled D on a GPU
     * (portions.h). */
    bsmm_portion_quantizers *quantizers;
};

/* This struct has memory for the kernel's states (what it computes once per plan) while a plan is
 * being made on the stack. */
typedef struct plan_states {
    _Alignas(BSMM_STATE_ALIGNMENT) uint8_t first[BSMM_STATE_BYTES], last[BSMM_STATE_BYTES];
    bsmm_portion_quantizers quantizers;
} plan_states;

enum { WORKSPACE_ALIGNMENT = 64 };

static void forget_operand(bsmm_operand *o) {
    o->m.data = o->m.scales = NULL;
    o->m.global_scale = NULL;
}

static void forget_memory(bsmm_product *p) {
    forget_operand(&p->a);
    forget_operand(&p->b);
    forget_operand(&p->c);
    forget_operand(&p->d);
    p->bias = NULL;
}

static bsmm_status find_workspace(const bsmm_request *request, const bsmm_product *widest,
                                  bsmm_plan *plan) {
    const bsmm_kernel *kernel = plan->kernel;
    if (bsmm_has_portions(&plan->product))
        return bsmm_portions_make(kernel, &plan->product, plan->state, plan->last_state,
                                  &plan->workspace_bytes);
    plan->workspace_bytes = kernel->workspace_bytes(widest, plan->state);
    if (!bsmm_has_parts(&plan->product)) return BSMM_OK;
    bsmm_parts_make(request, kernel, plan->state, &plan->parts);
    plan->workspace_bytes = plan->parts.workspace_bytes;
    return BSMM_OK;
}

/* Chooses the kernel for a request and fills a plan. The caller must have pointed the plan to
 * memory for its states. */
static bsmm_status make(bsmm_request *request, bsmm_plan *plan) {
    forget_memory(&request->product);
    BSMM_TRY(bsmm_kernel_choose(request, plan->state, &plan->kernel));
    plan->product = request->product;
    if (plan->product.epilogue) {
        plan->epilogue = request->epilogue;
        forget_operand(&plan->epilogue.residual);
        plan->epilogue.row_scale = plan->epilogue.col_scale = NULL;
        plan->product.epilogue = &plan->epilogue;
    }
    if (plan->product.groups) {
        plan->groups = request->groups;
        plan->groups.sizes = plan->groups.gather = NULL;
        plan->groups.alpha = NULL;
        plan->product.groups = &plan->groups;
    }
    bsmm_product widest;
    const bsmm_product *p = &widest;
    bsmm_part_widest(&plan->product, &widest);
    BSMM_TRY(find_workspace(request, p, plan));
    if (plan->workspace_bytes > INT64_MAX)
        return bsmm_fail(BSMM_E_INVALID,
                         "a.cols: value is %lld; the workspace of kernel %s overflows",
                         (long long)p->a.m.cols, plan->kernel->name);
    if (bsmm_has_portions(&plan->product))
        return bsmm_portions_load(plan->kernel, &plan->product, plan->state, plan->last_state,
                                  plan->quantizers);
    return plan->kernel->make ? plan->kernel->make(p, plan->state) : BSMM_OK;
}

/* `kept_plan` is a plan on the heap, which bsmm_plan_create returns to a caller. */
typedef struct kept_plan {
    bsmm_plan plan;
    bsmm_packed packed;
} kept_plan;

/* Copies a complete plan from the stack to the heap. One allocation holds the plan and, after it,
 * the kernel's states and the quantizers of D. */
static bsmm_status keep(const bsmm_plan *made, const bsmm_packed *packed, bsmm_plan **plan) {
    size_t head = (size_t)bsmm_round_up(sizeof(kept_plan), BSMM_STATE_ALIGNMENT);
    size_t state_bytes = (size_t)bsmm_round_up(made->kernel->state_bytes, BSMM_STATE_ALIGNMENT);
    bool has_last = bsmm_has_portions(&made->product);
    size_t bytes = head + (has_last ? 2 * state_bytes + sizeof *made->quantizers : state_bytes);
    kept_plan *kept = aligned_alloc(BSMM_STATE_ALIGNMENT, bytes);
    if (!kept) return bsmm_fail(BSMM_E_MEMORY, "plan: out of memory: %zu bytes", bytes);
    *kept = (kept_plan){*made, *packed};
    *plan = &kept->plan;
    (*plan)->packed = &kept->packed;
    if (made->product.packed_form) (*plan)->product.b = packed->view;
    if (made->product.epilogue) (*plan)->product.epilogue = &(*plan)->epilogue;
    if (made->product.groups) (*plan)->product.groups = &(*plan)->groups;
    (*plan)->state = (uint8_t *)*plan + head;
    memcpy((*plan)->state, made->state, made->kernel->state_bytes);
    if (!has_last) return BSMM_OK;
    (*plan)->last_state = (uint8_t *)(*plan)->state + state_bytes;
    memcpy((*plan)->last_state, made->last_state, made->kernel->state_bytes);
    void *const quantizers = (uint8_t *)(*plan)->last_state + state_bytes;
    (*plan)->quantizers = memcpy(quantizers, made->quantizers, sizeof *made->quantizers);
    return BSMM_OK;
}

bsmm_status bsmm_plan_create(const bsmm_matmul_desc *desc, bsmm_plan **plan) {
    if (!plan) return bsmm_fail(BSMM_E_INVALID, "plan: value is NULL; must be given");
    *plan = NULL;
    plan_states states;
    bsmm_request request;
    bsmm_operand stored_b;
    bsmm_packed packed;
    bsmm_plan made = {
        .state = states.first, .last_state = states.last, .quantizers = &states.quantizers};
    BSMM_TRY(bsmm_describe(desc, &request));
    BSMM_TRY(bsmm_packed_take(&request, &stored_b));
    BSMM_TRY(make(&request, &made));
    BSMM_TRY(bsmm_packed_make(made.kernel, &request, &stored_b, states.first, &packed));
    return keep(&made, &packed, plan);
}

void bsmm_plan_destroy(bsmm_plan *plan) {
    free(plan);
}

const char *bsmm_plan_kernel(const bsmm_plan *plan) {
    return plan ? plan->kernel->name : "";
}

uint64_t bsmm_plan_workspace_bytes(const bsmm_plan *plan) {
    return plan ? plan->workspace_bytes : 0;
}

/* Removes const from a pointer. bsmm_operand, whose pointers are not const, describes both inputs
 * and results. No kernel writes to A, B or C. */
static void *mutable(const void *pointer) {
    union {
        const void *from;
        void *to;
    } both = {.from = pointer};
    return both.to;
}

static void set_memory(bsmm_operand *o, const void *data, const void *scales, const float *global) {
    o->m.data = mutable(data);
    o->m.scales = mutable(scales);
    o->m.global_scale = mutable(global);
}

/* Copies a product by a call of memcpy. If the compiler knew the size, it would emit one `rep movs`
 * instruction instead, whose startup alone takes longer than the call of memcpy. */
static void copy_product(const bsmm_product *from, bsmm_product *to) {
    size_t bytes = sizeof *to;
    __asm__("" : "+r"(bytes)); /* This empty assembly statement hides the size from the compiler. */
    memcpy(to, from, bytes);
}

/* Sets the product's pool to the pool that the caller gave for this run. If the caller gave none,
 * the plan's pool stays. */
static bsmm_status bind_pool(const bsmm_buffers *buffers, bsmm_product *p) {
    return buffers->pool ? bsmm_pool_take(buffers->pool, &p->pool) : BSMM_OK;
}

static void bind(const bsmm_buffers *buffers, bsmm_product *p) {
    set_memory(&p->a, buffers->a, buffers->a_scales, buffers->a_global);
    if (!p->packed_form) set_memory(&p->b, buffers->b, buffers->b_scales, buffers->b_global);
    set_memory(&p->c, buffers->c, NULL, NULL);
    set_memory(&p->d, buffers->d, buffers->d_scales, buffers->d_global);
    p->bias = buffers->bias;
    p->stream = buffers->stream;
}

/* Returns a copy of the plan's epilogue with the pointers of one run. */
static bsmm_product_epilogue bind_epilogue(const bsmm_plan *plan, const bsmm_buffers *buffers) {
    bsmm_product_epilogue f = plan->epilogue;
    f.residual.m.data = mutable(buffers->residual);
    f.row_scale = buffers->row_scale;
    f.col_scale = buffers->col_scale;
    return f;
}

/* Returns a copy of the plan's groups in which the pointers to arrays, such as the group sizes, are
 * those of one run's buffers. */
static bsmm_groups bind_groups(const bsmm_plan *plan, const bsmm_buffers *buffers) {
    bsmm_groups g = plan->groups;
    g.sizes = buffers->group_sizes;
    g.gather = buffers->gather;
    g.alpha = buffers->group_alpha;
    return g;
}

uint64_t bsmm_plan_packed_b_bytes(const bsmm_plan *plan) {
    return plan ? plan->packed->header.bytes : 0;
}

bsmm_status bsmm_plan_packed_info(const bsmm_plan *plan, bsmm_packed_info *info) {
    if (!plan) return bsmm_fail(BSMM_E_INVALID, "plan: value is NULL; must be given");
    if (plan->packed->header.bytes) return bsmm_packed_give_info(&plan->packed->header, info);
    return bsmm_fail(BSMM_E_UNSUPPORTED, "plan: kernel %s takes B as it is stored, not packed",
                     plan->kernel->name);
}

/* Checks the alignment and the device of memory that the caller provides for the kernel: the
 * workspace or packed weights. */
static bsmm_status check_own(const bsmm_plan *plan, const void *memory, const char *what) {
    if (!memory || !bsmm_is_aligned(memory, WORKSPACE_ALIGNMENT))
        return bsmm_fail(BSMM_E_INVALID, "%s: value is %p; must be aligned to %d bytes", what,
                         memory, WORKSPACE_ALIGNMENT);
    return plan->product.backend->check_pointer(plan->product.device, memory, what);
}

static bsmm_status check_packed(const bsmm_plan *plan, const void *packed, uint64_t bytes) {
    uint64_t wanted = bsmm_plan_packed_b_bytes(plan);
    BSMM_TRY(check_own(plan, packed, "packed_b"));
    if (bytes < wanted)
        return bsmm_fail(BSMM_E_INVALID, "packed_b_bytes: value is %llu; must be at least %llu",
                         (unsigned long long)bytes, (unsigned long long)wanted);
    return BSMM_OK;
}

static bsmm_status take_buffers(const bsmm_buffers *from, bsmm_buffers *to) {
    /* bsmm_buffers ended before packed_b in the library's first version, so no valid struct is
     * smaller. */
    const uint32_t least = offsetof(bsmm_buffers, packed_b);
    BSMM_TRY(bsmm_take_struct(to, sizeof *to, from, "buffers"));
    if (to->struct_size < least)
        return bsmm_fail(BSMM_E_INVALID, "buffers.struct_size: value is %u; must be at least %u",
                         to->struct_size, least);
    if (!to->reserved) return BSMM_OK;
    return bsmm_fail(BSMM_E_INVALID, "buffers.reserved: value is %u; must be 0", to->reserved);
}

bsmm_status bsmm_pack_b(const bsmm_plan *plan, const bsmm_buffers *buffers, void *packed,
                        uint64_t packed_bytes) {
    if (!plan) return bsmm_fail(BSMM_E_INVALID, "plan: value is NULL; must be given");
    if (!plan->packed->header.bytes)
        return bsmm_fail(BSMM_E_UNSUPPORTED, "plan: kernel %s takes B as it is stored, not packed",
                         plan->kernel->name);
    bsmm_buffers copy;
    BSMM_TRY(take_buffers(buffers, &copy));
    BSMM_TRY(check_packed(plan, packed, packed_bytes));
    bsmm_product p = plan->product;
    p.b = plan->packed->stored;
    set_memory(&p.b, copy.b, copy.b_scales, copy.b_global);
    p.stream = copy.stream;
    BSMM_TRY(bind_pool(&copy, &p));
    BSMM_TRY(bsmm_check_b(&p, plan->kernel));
    if (p.groups && p.groups->flags & BSMM_GROUP_EACH_B_GLOBAL && p.groups->count && !copy.b_global)
        return bsmm_fail(BSMM_E_INVALID, "b.global_scale: value is NULL; must be given");
    BSMM_TRY(bsmm_check_room(&p, packed, bsmm_plan_packed_b_bytes(plan), "packed_b"));
    return bsmm_packed_fill(plan->packed, plan->kernel, &p, plan->state, packed);
}

static bsmm_status bind_packed(const bsmm_plan *plan, const bsmm_buffers *buffers,
                               bsmm_product *p) {
    if (!p->packed_form && buffers->packed_b)
        return bsmm_fail(BSMM_E_INVALID, "packed_b: given, but the plan's desc.b_packed is 0");
    if (!p->packed_form) return BSMM_OK;
    BSMM_TRY(check_packed(plan, buffers->packed_b, buffers->packed_b_bytes));
    BSMM_TRY(bsmm_check_room(p, buffers->packed_b, bsmm_plan_packed_b_bytes(plan), "packed_b"));
    BSMM_TRY(bsmm_packed_check(plan->packed, p, buffers->packed_b));
    if (!p->groups) bsmm_packed_bind(plan->packed, buffers->packed_b, 0, p);
    return BSMM_OK;
}

/* Checks that the caller's workspace is large enough and does not overlap other buffers. Only the
 * first plan->workspace_bytes bytes are compared, because a run writes no more of the workspace. */
static bsmm_status check_workspace(const bsmm_plan *plan, const bsmm_product *p,
                                   const bsmm_buffers *buffers) {
    if (plan->workspace_bytes == 0) return BSMM_OK;
    if (buffers->workspace_bytes < plan->workspace_bytes)
        return bsmm_fail(BSMM_E_INVALID, "workspace_bytes: value is %llu; must be at least %llu",
                         (unsigned long long)buffers->workspace_bytes,
                         (unsigned long long)plan->workspace_bytes);
    BSMM_TRY(check_own(plan, buffers->workspace, "workspace"));
    BSMM_TRY(bsmm_check_room(p, buffers->workspace, plan->workspace_bytes, "workspace"));
    if (!p->packed_form || !bsmm_overlap(buffers->workspace, plan->workspace_bytes,
                                         buffers->packed_b, bsmm_plan_packed_b_bytes(plan)))
        return BSMM_OK;
    return bsmm_fail(BSMM_E_INVALID, "workspace: its memory overlaps packed_b's; must not");
}

static bsmm_status bind_rows(const bsmm_buffers *buffers, bsmm_product *p) {
    p->rows = buffers->rows;
    p->device_rows = buffers->device_rows;
    if (!p->any_rows && (p->rows || p->device_rows))
        return bsmm_fail(BSMM_E_INVALID, "%s: given, but the plan has no ANY_ROWS in desc.flags",
                         p->rows ? "rows" : "device_rows");
    return p->any_rows ? bsmm_check_rows(p) : BSMM_OK;
}

static bool is_empty(const bsmm_product *p) {
    return p->d.m.rows == 0 || p->d.m.cols == 0;
}

bsmm_status bsmm_plan_run(const bsmm_plan *plan, const bsmm_buffers *buffers) {
    if (!plan) return bsmm_fail(BSMM_E_INVALID, "plan: value is NULL; must be given");
    bsmm_buffers copy;
    BSMM_TRY(take_buffers(buffers, &copy));
    bsmm_product product;
    copy_product(&plan->product, &product);
    bind(&copy, &product);
    BSMM_TRY(bind_pool(&copy, &product));
    BSMM_TRY(bsmm_check_surplus(&product, &copy));
    bsmm_product_epilogue epilogue;
    if (product.epilogue) {
        epilogue = bind_epilogue(plan, &copy);
        product.epilogue = &epilogue;
    }
    bsmm_groups groups;
    if (product.groups) {
        groups = bind_groups(plan, &copy);
        product.groups = &groups;
    }
    BSMM_TRY(bind_rows(&copy, &product));
    BSMM_TRY(bsmm_check_memory(&product, plan->kernel));
    BSMM_TRY(bind_packed(plan, &copy, &product));
    BSMM_TRY(check_workspace(plan, &product, &copy));
    if (is_empty(&product)) return BSMM_OK;
    if (bsmm_has_parts(&product))
        return bsmm_parts_run(&plan->parts, plan->packed, copy.packed_b, &product, copy.workspace);
    if (bsmm_has_portions(&product))
        return bsmm_portions_run(plan->kernel, &product, plan->state, plan->last_state,
                                 plan->quantizers, copy.workspace);
    return plan->kernel->run(&product, plan->state, copy.workspace);
}

/* Collects the pointers of a description into a bsmm_buffers, because bsmm_matmul runs its plan
 * with the description's own memory. */
static bsmm_buffers buffers_of(const bsmm_product *p) {
    static const bsmm_product_epilogue none;
    static const bsmm_groups one;
    const bsmm_product_epilogue *epilogue = p->epilogue ? p->epilogue : &none;
    const bsmm_groups *groups = p->groups ? p->groups : &one;
    return (bsmm_buffers){
        .struct_size = sizeof(bsmm_buffers),
        .a = p->a.m.data,
        .a_scales = p->a.m.scales,
        .a_global = p->a.m.global_scale,
        .b = p->b.m.data,
        .b_scales = p->b.m.scales,
        .b_global = p->b.m.global_scale,
        .c = p->c.m.data,
        .d = p->d.m.data,
        .d_scales = p->d.m.scales,
        .d_global = p->d.m.global_scale,
        .bias = p->bias,
        .residual = epilogue->residual.m.data,
        .row_scale = epilogue->row_scale,
        .col_scale = epilogue->col_scale,
        .group_sizes = groups->sizes,
        .gather = groups->gather,
        .group_alpha = groups->alpha,
    };
}

bsmm_status bsmm_matmul(const bsmm_matmul_desc *desc) {
    plan_states states;
    bsmm_plan plan = {
        .state = states.first, .last_state = states.last, .quantizers = &states.quantizers};
    bsmm_request request;
    BSMM_TRY(bsmm_describe(desc, &request));
    bsmm_buffers buffers = buffers_of(&request.product);
    BSMM_TRY(make(&request, &plan));
    if (request.product.any_rows)
        return bsmm_fail(BSMM_E_INVALID, "flags: value is %d; only plans take ANY_ROWS",
                         BSMM_MATMUL_ANY_ROWS);
    if (request.product.packed_form)
        return bsmm_fail(BSMM_E_INVALID, "b_packed: value is %u; only plans take packed weights",
                         request.product.packed_form);
    const bsmm_backend *backend = plan.product.backend;
    buffers.workspace_bytes = plan.workspace_bytes;
    if (plan.workspace_bytes)
        BSMM_TRY(backend->allocate(plan.product.device, plan.workspace_bytes, &buffers.workspace));
    bsmm_status status = bsmm_plan_run(&plan, &buffers);
    if (status == BSMM_OK) status = backend->finish(plan.product.device, buffers.stream);
    if (buffers.workspace) backend->release(plan.product.device, buffers.workspace);
    return status;
}
