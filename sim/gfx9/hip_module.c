/* Implements the functions of HIP for modules and launches. The environment variable
 * BSMM_SIM_CHECKS=0 disables the simulator's checks. BSMM_SIM_SEED varies the order of events that
 * hardware does not define. BSMM_SIM_LIMIT limits the instructions of a wave. */
#include "hip.h"
#include "hip_graph.h"
#include "sim.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hip_function {
    gfx9_object *object;
    int device;
    const gfx9_kernel *kernel;
};
struct hip_module {
    gfx9_object *object;
    struct hip_function *functions;
};

static uint64_t all_steps;
uint64_t bsmm_sim_steps(void) {
    return __atomic_load_n(&all_steps, __ATOMIC_SEQ_CST);
}

const char *bsmm_sim_row(unsigned number) {
    return gfx9_row_name(number);
}

/* Returns the size of an ELF image in bytes. HIP passes only the image's address, so the function
 * computes the size from the ELF header. The image ends where the section headers end, because they
 * come last. */
static size_t image_size(const uint8_t *image) {
    uint64_t at;
    uint16_t size, count;
    if (memcmp(image, "\177ELF", 4) != 0) return 0;
    memcpy(&at, image + 40, 8), memcpy(&size, image + 58, 2), memcpy(&count, image + 60, 2);
    return at > 1u << 30 ? 0 : (size_t)at + (size_t)size * count;
}

static hipError_t load(hipModule_t *module, const void *image, size_t size) {
    char error[512] = "";
    hipModule_t m = calloc(1, sizeof *m);
    *module = NULL;
    if (!m) return hip_fail(hipErrorOutOfMemory, "out of memory");
    m->object = gfx9_load(image, size, (enum gfx9_arch)hip_arch(hip_device()), error);
    if (m->object) m->functions = calloc(m->object->kernel_count + 1, sizeof *m->functions);
    if (!m->functions) {
        if (m->object) gfx9_unload(m->object);
        free(m);
        return hip_fail(hipErrorInvalidImage, "%s", error[0] ? error : "out of memory");
    }
    for (uint32_t k = 0; k < m->object->kernel_count; k++)
        m->functions[k] = (struct hip_function){m->object, hip_device(), &m->object->kernels[k]};
    *module = m;
    return hipSuccess;
}

HIP hipError_t hipModuleLoadData(hipModule_t *module, const void *image) {
    if (!module || !image) return hip_fail(hipErrorInvalidValue, "module or image is NULL");
    return load(module, image, image_size(image));
}

HIP hipError_t hipModuleLoadDataEx(hipModule_t *module, const void *image, unsigned count,
                                   void *options, void **values) {
    (void)count, (void)options, (void)values;
    return hipModuleLoadData(module, image);
}

HIP hipError_t hipModuleLoad(hipModule_t *module, const char *path) {
    if (!module || !path) return hip_fail(hipErrorInvalidValue, "module or path is NULL");
    FILE *f = fopen(path, "rb");
    if (!f) return hip_fail(hipErrorNotFound, "%s: %s", path, strerror(errno));
    fseek(f, 0, SEEK_END);
    const long size = ftell(f);
    rewind(f);
    uint8_t *bytes = size > 0 ? malloc((size_t)size) : NULL;
    const bool whole = bytes && fread(bytes, 1, (size_t)size, f) == (size_t)size;
    fclose(f);
    const hipError_t status = whole ? load(module, bytes, (size_t)size)
                                    : hip_fail(hipErrorInvalidImage, "%s: cannot be read", path);
    free(bytes);
    return status;
}

HIP hipError_t hipModuleUnload(hipModule_t module) {
    if (!module) return hip_fail(hipErrorInvalidHandle, "module is NULL");
    gfx9_unload(module->object);
    free(module->functions), free(module);
    return hipSuccess;
}

HIP hipError_t hipModuleGetFunction(hipFunction_t *function, hipModule_t module, const char *name) {
    if (!function || !module || !name)
        return hip_fail(hipErrorInvalidValue, "function, module or name is NULL");
    for (uint32_t k = 0; k < module->object->kernel_count; k++)
        if (strcmp(module->object->kernels[k].name, name) == 0) {
            *function = &module->functions[k];
            return hipSuccess;
        }
    return hip_fail(hipErrorNotFound, "the module has no kernel %s", name);
}

HIP hipError_t hipModuleGetGlobal(hipDeviceptr_t *at, size_t *size, hipModule_t module,
                                  const char *name) {
    if (!module || !name) return hip_fail(hipErrorInvalidValue, "module or name is NULL");
    for (uint32_t k = 0; k < module->object->object_count; k++)
        if (strcmp(module->object->objects[k].name, name) == 0) {
            if (at) *at = module->object->image + module->object->objects[k].offset;
            if (size) *size = module->object->objects[k].size;
            return hipSuccess;
        }
    return hip_fail(hipErrorNotFound, "the module has no variable %s", name);
}

/* Returns an attribute of a kernel. The attributes 0 to 4 of HIP's enum are MAX_THREADS,
 * SHARED_SIZE_BYTES, CONST_SIZE_BYTES, LOCAL_SIZE_BYTES and NUM_REGS. */
HIP hipError_t hipFuncGetAttribute(int *value, int attribute, hipFunction_t f) {
    if (!value || !f) return hip_fail(hipErrorInvalidValue, "value or function is NULL");
    const gfx9_kernel *k = f->kernel;
    const int vgprs = 8 * (int)((k->rsrc1 & 63) + 1);
    const int values[] = {1024, (int)k->lds, 0, (int)k->scratch, vgprs};
    if (attribute < 0 || attribute > 4)
        return hip_fail(hipErrorInvalidValue, "attribute %d is not known", attribute);
    *value = values[attribute];
    return hipSuccess;
}
HIP hipError_t hipFuncSetAttribute(const void *f, int attribute, int value) {
    /* Hardware allows large LDS sizes only if the program sets this attribute of the kernel. The
     * simulator ignores the attribute, because it always allows all of LDS. */
    (void)f, (void)attribute, (void)value;
    return hipSuccess;
}

static bool gather(const gfx9_kernel *k, void **params, uint8_t *to, size_t room) {
    uint32_t n = 0;
    for (uint32_t a = 0; a < k->arg_count; a++) {
        const gfx9_arg *arg = &k->args[a];
        if (strncmp(arg->kind, "hidden_", 7) == 0) continue;
        if ((uint64_t)arg->offset + arg->size > room || !params[n]) return false;
        memcpy(to + arg->offset, params[n++], arg->size);
    }
    return true;
}

/* Reads the parameter `extra` of a launch, which replaces `params`. It is a list of numbers, most
 * of which are followed by a value. After 1 (POINTER) comes the address of the buffer with all
 * arguments. After 2 (SIZE) comes a pointer to the buffer's size. The number 3 ends the list. */
static bool gather_extra(void **extra, const void **buffer, size_t *size) {
    *buffer = NULL, *size = 0;
    for (; (uintptr_t)*extra != 3; extra += 2) {
        if ((uintptr_t)*extra == 1)
            *buffer = extra[1];
        else if ((uintptr_t)*extra == 2)
            *size = *(const size_t *)extra[1];
        else
            return false;
    }
    return *buffer != NULL;
}

uint64_t hip_setting(const char *name, uint64_t otherwise) {
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

static hipError_t run_launch(hip_work *w) {
    char error[512] = "";
    gfx9_launch l = w->launch;
    l.timed = sim_time_mode();
    const bool ran = gfx9_dispatch(w->function->object, w->function->kernel, &l, error);
    __atomic_fetch_add(&all_steps, l.steps, __ATOMIC_SEQ_CST);
    if (ran && l.timed)
        sim_keep_launch(&(sim_timed_launch){w->function->kernel->name, &l.times.seconds,
                                            sizeof l.times / sizeof(double), l.hot});
    return ran ? hipSuccess : hip_fail(hipErrorLaunchFailure, "%s", error);
}

static hipError_t check_owner(hipFunction_t f, hipStream_t stream) {
    if (f->device == hip_device()) return hip_check_stream(stream);
    return hip_fail(hipErrorInvalidHandle, "the module of %s is of device %d; device %d is current",
                    f->kernel->name, f->device, hip_device());
}

hipError_t hip_prepare(const hip_call *call, hip_work *w, uint8_t **arguments) {
    const gfx9_kernel *k = call->function->kernel;
    *arguments = calloc(1, k->kernarg_size + 1u);
    const uint64_t checks = CHECK_STATES | CHECK_WAITS | CHECK_RACES | CHECK_UNWRITTEN;
    *w = (hip_work){.run = run_launch,
                    .function = call->function,
                    .launch = {.dynamic_lds = call->shared,
                               .kernarg = *arguments,
                               .kernarg_size = k->kernarg_size,
                               .checks = (uint32_t)hip_setting("BSMM_SIM_CHECKS", checks),
                               .seed = hip_setting("BSMM_SIM_SEED", 1),
                               .limit = hip_setting("BSMM_SIM_LIMIT", 0)}};
    if (!*arguments) return hip_fail(hipErrorOutOfMemory, "out of memory");
    gfx9_launch *l = &w->launch;
    memcpy(l->grid, call->grid, sizeof l->grid), memcpy(l->block, call->block, sizeof l->block);
    if (call->params ? gather(k, call->params, *arguments, k->kernarg_size)
                     : !call->extra || gather_extra(call->extra, &l->kernarg, &l->kernarg_size))
        return hipSuccess;
    return hip_fail(hipErrorInvalidValue, "%s: the arguments are not what its metadata says",
                    k->name);
}

/* NOLINTNEXTLINE(readability-function-size): HIP's signature */
HIP hipError_t hipModuleLaunchKernel(hipFunction_t f, unsigned gx, unsigned gy, unsigned gz,
                                     unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                     hipStream_t stream, void **params, void **extra) {
    if (!f) return hip_fail(hipErrorInvalidHandle, "function is NULL");
    const hip_call call = {f, {gx, gy, gz}, {bx, by, bz}, shared, params, extra};
    hip_graph **capture = hip_capture_of(stream);
    uint8_t *arguments = NULL;
    hip_work w = {0};
    hipError_t status = check_owner(f, stream);
    if (!status) status = hip_prepare(&call, &w, &arguments);
    if (!status)
        status = capture && *capture
                     ? hip_graph_record(*capture, &w, w.launch.kernarg, w.launch.kernarg_size)
                     : run_launch(&w);
    return free(arguments), status;
}
