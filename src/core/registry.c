/* This file has the table of kernels (kernels.def), and chooses a kernel for a product. */
#include "core/packed.h"
#include "core/panels.h"
#include "core/parts.h"
#include "core/portions.h"

#include <stdio.h>
#include <string.h>

enum { REASON_BYTES = sizeof((bsmm_explanation *)NULL)->reason };

#define KERNEL(name) extern const bsmm_kernel bsmm_kernel_##name;
#include "core/kernels.def"
#undef KERNEL

static const bsmm_kernel *const kernels[] = {
#define KERNEL(name) &bsmm_kernel_##name,
#include "core/kernels.def"
#undef KERNEL
};

const bsmm_kernel *bsmm_kernel_at(uint32_t index) {
    return index < BSMM_COUNT(kernels) ? kernels[index] : NULL;
}

bool bsmm_kernel_runs_on(const bsmm_kernel *kernel, const bsmm_backend *backend) {
    if (!backend) return false;
    return strcmp(kernel->device, backend->kernels ? backend->kernels : backend->name) == 0;
}

static bsmm_status open_device(bsmm_request *request) {
    if (request->product.backend) return BSMM_OK;
    const bsmm_backend *backend;
    BSMM_TRY(bsmm_device_open(request->device, &backend, &request->product.device));
    request->product.backend = backend;
    return BSMM_OK;
}

/* Packed weights of form wide hold B as panels, i.e. in the order in which a kernel reads it.
 * Refuses a kernel that reads another layout of panels than the plan needs. The plan needs the
 * layout that the caller has named. If the caller has named none, it needs the layout of the packed
 * weights, if that is known. The kernel has already accepted the product, and `state` is what it
 * computed for the plan. */
static const char *refuse_panels(const bsmm_kernel *kernel, const bsmm_request *request,
                                 const bsmm_product *product, const void *state, char *why,
                                 size_t size) {
    char name[BSMM_PANELS_NAME_BYTES];
    const char *settled = request->settled_panels;
    const char *wanted = request->panels ? request->panels : settled[0] ? settled : NULL;
    if (!wanted || !product->b_packed) return NULL;
    kernel->name_panels(product, state, name, sizeof name);
    if (strcmp(name, wanted) == 0) return NULL;
    return bsmm_reason(why, size, "%s \"%.32s\"; the kernel reads %s",
                       request->panels ? "b_panels is" : "B's panels are", wanted, name);
}

const char *bsmm_kernel_refusal(const bsmm_kernel *kernel, bsmm_request *request, void *state,
                                char *why, size_t size) {
    if (!bsmm_kernel_runs_on(kernel, bsmm_backend_of(request->device)))
        return bsmm_reason(why, size, "device is \"%.32s\"; the kernel runs on %s", request->device,
                           kernel->device);
    if (open_device(request) != BSMM_OK) return bsmm_reason(why, size, "%s", bsmm_error_message());
    if (request->product.b_packed && !kernel->pack_b)
        return "b_packed is WIDE; the kernel reads B only as it is stored";
    const char *lacks = bsmm_features_refuse(kernel, &request->product);
    if (lacks) return lacks;
    bsmm_product part;
    const bsmm_product *product = &request->product;
    if (bsmm_has_parts(product)) {
        bsmm_part_widest(product, &part);
        product = &part;
    }
    const char *reason = bsmm_has_portions(product)
                             ? bsmm_portions_refuse(kernel, product, state, why, size)
                             : kernel->refuse(product, state, why, size);
    return reason ? reason : refuse_panels(kernel, request, product, state, why, size);
}

static bsmm_status choose_forced(bsmm_request *request, void *state, const bsmm_kernel **kernel) {
    char why[REASON_BYTES];
    for (uint32_t i = 0; (*kernel = bsmm_kernel_at(i)); i++) {
        if (strcmp((*kernel)->name, request->kernel) != 0) continue;
        const char *reason = bsmm_kernel_refusal(*kernel, request, state, why, sizeof why);
        if (!reason) return BSMM_OK;
        return bsmm_fail(BSMM_E_UNSUPPORTED, "kernel: %s refuses: %s", request->kernel, reason);
    }
    return bsmm_fail(BSMM_E_NOT_FOUND,
                     "kernel: value is \"%.64s\"; is not a kernel of this library",
                     request->kernel);
}

bsmm_status bsmm_kernel_choose(bsmm_request *request, void *state, const bsmm_kernel **kernel) {
    *kernel = NULL;
    BSMM_TRY(open_device(request));
    bsmm_panels_settle(request);
    if (request->kernel) return choose_forced(request, state, kernel);
    char why[REASON_BYTES];
    for (uint32_t i = 0; (*kernel = bsmm_kernel_at(i)); i++)
        if (!bsmm_kernel_refusal(*kernel, request, state, why, sizeof why)) return BSMM_OK;
    return bsmm_fail(BSMM_E_UNSUPPORTED,
                     "device: value is \"%.64s\"; no kernel of this device takes the product "
                     "(explain gives the reason of each kernel)",
                     request->device);
}

/* Prepares a request for bsmm_explain, which says whether `kernel` takes the product. With packed
 * weights, the request depends on the kernel, because weights of form wide have panels for one
 * kernel and a copy for all others. If a plan of this request would choose `kernel` by itself, the
 * function sets *request to the request of that plan. Otherwise it sets *request to the request of
 * a plan in which the caller names `kernel`. If neither the given weights are packed nor the kernel
 * can pack weights, *request does not change. */
static void explain_as(const bsmm_kernel *kernel, bsmm_request *request, void *state) {
    const bsmm_kernel *chosen;
    bsmm_request any = *request;
    const bool may_pack = request->product.packed_form == BSMM_PACKED_NONE && kernel->pack_b;
    if (!request->product.b_packed && !may_pack) return;
    if (!request->kernel && bsmm_kernel_choose(&any, state, &chosen) == BSMM_OK &&
        chosen == kernel) {
        *request = any;
        return;
    }
    request->kernel = kernel->name;
    if (open_device(request) == BSMM_OK) bsmm_panels_settle(request);
}

bsmm_status bsmm_explain(const bsmm_matmul_desc *desc, uint32_t index,
                         bsmm_explanation *explanation) {
    bsmm_request request;
    bsmm_operand stored_b;
    BSMM_TRY(bsmm_describe(desc, &request));
    BSMM_TRY(bsmm_packed_take(&request, &stored_b));
    const bsmm_kernel *kernel = bsmm_kernel_at(index);
    if (!kernel)
        return bsmm_fail(BSMM_E_NOT_FOUND, "index: value is %u; there are %zu kernels", index,
                         BSMM_COUNT(kernels));
    bsmm_explanation result = {.kernel = kernel->name, .device = kernel->device};
    char why[REASON_BYTES];
    bsmm_message before;
    _Alignas(BSMM_STATE_ALIGNMENT) uint8_t state[BSMM_STATE_BYTES];
    bsmm_message_keep(&before);
    explain_as(kernel, &request, state);
    const char *reason = bsmm_kernel_refusal(kernel, &request, state, why, sizeof why);
    bsmm_message_restore(&before);
    result.accepts = reason == NULL;
    if (result.accepts) {
        bsmm_product part;
        bsmm_part_widest(&request.product, &part);
        result.bound = kernel->bound(&part, state);
        result.k_parts = kernel->k_parts ? kernel->k_parts(&part, state) : 1;
        bsmm_packed packed;
        BSMM_TRY(bsmm_packed_make(kernel, &request, &stored_b, state, &packed));
        result.packed_b_bytes = packed.header.bytes;
    }
    if (reason) snprintf(result.reason, sizeof result.reason, "%s", reason);
    return bsmm_give_struct(explanation, &result, sizeof result, "explanation");
}
