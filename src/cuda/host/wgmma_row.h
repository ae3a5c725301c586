/* The end of a kernel of the sm_90a engine: its row for the registry. Included once, last, by a
 * file that has plan_of, refuse and bound and defines WGMMA_KERNEL, its own name. */
static uint64_t workspace_bytes(const bsmm_product *p, const void *state) {
    (void)state;
    const bsmm_wgmma_plan plan = plan_of(p);
    return bsmm_wgmma_plan_workspace_bytes(p, &plan);
}

static bsmm_status make(const bsmm_product *p, void *state) {
    (void)state;
    const bsmm_wgmma_plan plan = plan_of(p);
    return bsmm_wgmma_plan_prepare(p, &plan);
}

static bsmm_status run(const bsmm_product *p, const void *state, void *workspace) {
    (void)state;
    const bsmm_wgmma_plan plan = plan_of(p);
    return bsmm_wgmma_plan_run(p, &plan, workspace);
}

static uint64_t packed_b_bytes(const bsmm_product *p, const void *state) {
    (void)state;
    const bsmm_wgmma_plan plan = plan_of(p);
    return bsmm_wgmma_plan_packed_b_bytes(p, &plan);
}

static bsmm_status pack_b(const bsmm_product *p, const void *state, void *packed) {
    (void)state;
    const bsmm_wgmma_plan plan = plan_of(p);
    return bsmm_wgmma_plan_pack_b(p, &plan, packed);
}

#define WGMMA_TEXT_OF(name)   #name
#define WGMMA_TEXT(name)      WGMMA_TEXT_OF(name)
#define WGMMA_SYMBOL_OF(name) bsmm_kernel_##name
#define WGMMA_SYMBOL(name)    WGMMA_SYMBOL_OF(name)

const bsmm_kernel WGMMA_SYMBOL(WGMMA_KERNEL) = {
    .name = WGMMA_TEXT(WGMMA_KERNEL),
    .device = "cuda",
    .refuse = refuse,
    .workspace_bytes = workspace_bytes,
    .bound = bound,
    .make = make,
    .run = run,
    .packed_b_bytes = packed_b_bytes,
    .pack_b = pack_b,
    .alignment = 16,
};
