#include "core/panels.h"

#include "core/packed.h"

#include <string.h>

enum { REASON_BYTES = sizeof((bsmm_explanation *)NULL)->reason };

static bsmm_status make_plain(const bsmm_product *p, const bsmm_operand *b, bsmm_product *plain) {
    const bsmm_matrix a = {
        .struct_size = sizeof a, .format = p->a.m.format, .rows = 1, .cols = b->m.cols};
    const bsmm_matrix d = {
        .struct_size = sizeof d, .format = {.elem = BSMM_ELEM_F32}, .rows = 1, .cols = b->m.rows};
    *plain = (bsmm_product){.b = *b,
                            .alpha = 1,
                            .compute = p->compute,
                            .threads = p->threads,
                            .pool = p->pool,
                            .packed_form = BSMM_PACKED_WIDE,
                            .b_packed = true,
                            .backend = p->backend,
                            .device = p->device,
                            .stream = p->stream};
    BSMM_TRY(bsmm_operand_take(&a, "a", &plain->a));
    return bsmm_operand_take(&d, "d", &plain->d);
}

static bool has_panels(const bsmm_kernel *kernel, const char *name, bsmm_panels *panels) {
    char why[REASON_BYTES];
    const bsmm_product *p = &panels->product;
    if (!kernel->pack_b || bsmm_features_refuse(kernel, p)) return false;
    if (kernel->refuse(p, panels->state, why, sizeof why)) return false;
    kernel->name_panels(p, panels->state, panels->name, sizeof panels->name);
    return !name || strcmp(name, panels->name) == 0;
}

bool bsmm_panels_find(const bsmm_product *product, const bsmm_operand *b, const char *kernel,
                      const char *name, bsmm_panels *panels) {
    bsmm_message before;
    bool found = false;
    bsmm_message_keep(&before);
    if (make_plain(product, b, &panels->product) == BSMM_OK)
        for (uint32_t i = 0; !found && (panels->kernel = bsmm_kernel_at(i)); i++)
            found = bsmm_kernel_runs_on(panels->kernel, product->backend) &&
                    (!kernel || strcmp(kernel, panels->kernel->name) == 0) &&
                    has_panels(panels->kernel, name, panels);
    bsmm_message_restore(&before);
    return found;
}

/* The request names panels, i.e. a layout of packed values of B. Returns true if a kernel that
 * accepts the product reads these panels. */
static bool are_read(bsmm_request *request) {
    _Alignas(BSMM_STATE_ALIGNMENT) uint8_t state[BSMM_STATE_BYTES];
    char why[REASON_BYTES];
    const bsmm_kernel *kernel;
    for (uint32_t i = 0; (kernel = bsmm_kernel_at(i)); i++)
        if ((!request->kernel || strcmp(request->kernel, kernel->name) == 0) &&
            !bsmm_kernel_refusal(kernel, request, state, why, sizeof why))
            return true;
    return false;
}

void bsmm_panels_settle(bsmm_request *request) {
    bsmm_product *p = &request->product;
    bsmm_panels found;
    bsmm_operand view;
    bsmm_message before;
    if (!p->b_packed || request->settled_panels[0]) return;
    if (!bsmm_panels_find(p, &p->b, request->kernel, request->panels, &found)) return;
    memcpy(request->settled_panels, found.name, sizeof found.name);
    bsmm_message_keep(&before);
    if (!are_read(request) && bsmm_packed_view(p->backend->host_memory, &p->b, &view) == BSMM_OK) {
        p->b_packed = false;
        p->b = view;
    }
    bsmm_message_restore(&before);
}
