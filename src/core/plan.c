/* Plans: validate and choose once, run many times; and the one call on top of them. */
#include "core/describe.h"

#include <stdlib.h>
#include <string.h>

struct bsmm_plan {
    bsmm_product product; /* without memory */
    const bsmm_kernel *kernel;
    uint64_t workspace_bytes;
};

static const size_t workspace_alignment = 64;

static void forget_memory(bsmm_operand *o) {
    o->m.data = o->m.scales = NULL;
    o->m.global_scale = NULL;
}

static bsmm_status make(const bsmm_request *request, bsmm_plan *plan) {
    BSMM_TRY(bsmm_kernel_choose(request, &plan->kernel));
    plan->product = request->product;
    bsmm_product *p = &plan->product;
    forget_memory(&p->a);
    forget_memory(&p->b);
    forget_memory(&p->c);
    forget_memory(&p->d);
    p->bias = NULL;
    plan->workspace_bytes = plan->kernel->workspace_bytes(p);
    if (plan->workspace_bytes > INT64_MAX)
        return bsmm_fail(BSMM_E_INVALID,
                         "a.cols: value is %lld; the workspace of kernel %s overflows",
                         (long long)p->a.m.cols, plan->kernel->name);
    return BSMM_OK;
}

bsmm_status bsmm_plan_create(const bsmm_matmul_desc *desc, bsmm_plan **plan) {
    if (!plan) return bsmm_fail(BSMM_E_INVALID, "plan: value is NULL; must be given");
    *plan = NULL;
    bsmm_request request;
    bsmm_plan made;
    BSMM_TRY(bsmm_describe(desc, &request));
    BSMM_TRY(make(&request, &made));
    *plan = malloc(sizeof made);
    if (!*plan) return bsmm_fail(BSMM_E_MEMORY, "plan: %zu bytes are not to be had", sizeof made);
    **plan = made;
    return BSMM_OK;
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

/* The product never writes through A, B, C: one struct serves for operands and results. */
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

static bsmm_product bind(const bsmm_plan *plan, const bsmm_buffers *buffers) {
    bsmm_product p = plan->product;
    set_memory(&p.a, buffers->a, buffers->a_scales, buffers->a_global);
    set_memory(&p.b, buffers->b, buffers->b_scales, buffers->b_global);
    set_memory(&p.c, buffers->c, NULL, NULL);
    set_memory(&p.d, buffers->d, buffers->d_scales, buffers->d_global);
    p.bias = buffers->bias;
    return p;
}

static bsmm_status check_workspace(const bsmm_plan *plan, const bsmm_buffers *buffers) {
    if (plan->workspace_bytes == 0) return BSMM_OK;
    if (buffers->workspace_bytes < plan->workspace_bytes)
        return bsmm_fail(BSMM_E_INVALID, "workspace_bytes: value is %llu; must be at least %llu",
                         (unsigned long long)buffers->workspace_bytes,
                         (unsigned long long)plan->workspace_bytes);
    if (!buffers->workspace || (uintptr_t)buffers->workspace % workspace_alignment)
        return bsmm_fail(BSMM_E_INVALID, "workspace: value is %p; must be aligned to %zu bytes",
                         buffers->workspace, workspace_alignment);
    return BSMM_OK;
}

bsmm_status bsmm_plan_run(const bsmm_plan *plan, const bsmm_buffers *buffers) {
    if (!plan) return bsmm_fail(BSMM_E_INVALID, "plan: value is NULL; must be given");
    bsmm_buffers copy;
    BSMM_TRY(bsmm_take_struct(&copy, sizeof copy, buffers, "buffers"));
    bsmm_product product = bind(plan, &copy);
    BSMM_TRY(bsmm_check_memory(&product));
    BSMM_TRY(check_workspace(plan, &copy));
    if (product.d.m.rows == 0 || product.d.m.cols == 0) return BSMM_OK;
    return plan->kernel->run(&product, copy.workspace);
}

/* The buffers that a description's own pointers give. */
static bsmm_buffers buffers_of(const bsmm_product *p) {
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
    };
}

bsmm_status bsmm_matmul(const bsmm_matmul_desc *desc) {
    bsmm_plan plan;
    bsmm_request request;
    BSMM_TRY(bsmm_describe(desc, &request));
    BSMM_TRY(make(&request, &plan));
    bsmm_buffers buffers = buffers_of(&request.product);
    uint64_t bytes = (plan.workspace_bytes + workspace_alignment - 1) & ~(workspace_alignment - 1);
    buffers.workspace = bytes ? aligned_alloc(workspace_alignment, bytes) : NULL;
    buffers.workspace_bytes = plan.workspace_bytes;
    if (bytes && !buffers.workspace)
        return bsmm_fail(BSMM_E_MEMORY, "workspace: %llu bytes are not to be had",
                         (unsigned long long)bytes);
    bsmm_status status = bsmm_plan_run(&plan, &buffers);
    free(buffers.workspace);
    return status;
}
