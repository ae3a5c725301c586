/* Implements the driver functions for modules and launches. BSMM_SIM_CHECKS=0 in the environment
 * disables the simulator's checks. BSMM_SIM_SEED is the seed for choices that hardware leaves open,
 * such as the order of warps. BSMM_SIM_LIMIT limits the number of instructions of a warp. */
#include "cuda.h"
#include "cuda_entries.h"
#include "sim.h"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sim_function {
    CUdevice device;
    CUmodule owner;
    ptx_module *module;
    const ptx_function *kernel;
    /* `shared` is the largest dynamic shared memory in bytes that a launch may request. */
    int shared;
    int listed; /* `listed` is nonzero if the kernel is already in the list of launched kernels. */
};
struct sim_module {
    ptx_module *module;
    struct sim_function *functions;
};

static uint64_t all_steps;
uint64_t bsmm_sim_steps(void) {
    return __atomic_load_n(&all_steps, __ATOMIC_SEQ_CST);
}

const char *bsmm_sim_row(unsigned number) {
    for (const ptx_table *const *t = ptx_tables; *t; t++) {
        if (number < (*t)->count) return (*t)->rows[number].pattern;
        number -= (unsigned)(*t)->count;
    }
    return NULL;
}

/* Lists the first bytes of images that are not PTX text, such as cubins, with a name for each kind
 * of image. The simulator refuses such images, and the error message contains the name. */
static const struct {
    const char *bytes; /* These are the first bytes of the image. None of them is 0. */
    const char *what;
} other_images[] = {
    {"\177ELF", "a cubin"},
    {"\x50\xed\x55\xba", "a fat binary"},
    {"BC\xc0\xde", "LLVM bitcode"},
};

static CUresult check_image(const void *image) {
    for (size_t k = 0; k < sizeof other_images / sizeof *other_images; k++)
        if (strncmp(image, other_images[k].bytes, 4) == 0)
            return sim_fail(
                CUDA_ERROR_NO_BINARY_FOR_GPU,
                "the image is %s; the simulator executes PTX: compile with nvcc -ptx, or with "
                "code=compute_XX, and load the text",
                other_images[k].what);
    return CUDA_SUCCESS;
}

/* Returns an error if the PTX cannot run on the simulated device. PTX with the letter a, such as
 * sm_90a, runs only on the named device. PTX with the letter f runs on newer devices of the same
 * family. PTX without a letter runs on all newer devices. */
static CUresult check_target(const ptx_module *m, const sim_device *d) {
    const uint32_t arch = d->arch;
    const bool fits = m->feature == 'a'   ? m->target == arch
                      : m->feature == 'f' ? m->target / 10 == arch / 10 && m->target <= arch
                                          : m->target <= arch;
    if (fits) return CUDA_SUCCESS;
    return sim_fail(CUDA_ERROR_NO_BINARY_FOR_GPU,
                    "the PTX is for sm_%u%.1s; the device is %s (BSMM_SIM_ARCH)", m->target,
                    m->feature ? &m->feature : "", d->name);
}

static CUresult load(CUmodule *module, const char *text, size_t size) {
    char error[ERROR_BYTES] = "";
    CUresult status = CUDA_SUCCESS;
    *module = NULL;
    const CUdevice device = sim_current_device();
    if (!sim_device_of(device))
        return sim_fail(CUDA_ERROR_INVALID_DEVICE, "BSMM_SIM_ARCH names no device");
    CUmodule m = calloc(1, sizeof *m);
    if (!m) return sim_fail(CUDA_ERROR_OUT_OF_MEMORY, "out of memory");
    m->module = ptx_module_load(text, size, error);
    if (!m->module) {
        free(m);
        return sim_fail(CUDA_ERROR_INVALID_PTX, "%s", error);
    }
    status = check_target(m->module, sim_device_of(device));
    m->functions = calloc(m->module->function_count + 1, sizeof *m->functions);
    if (!status && !m->functions) status = sim_fail(CUDA_ERROR_OUT_OF_MEMORY, "out of memory");
    if (status || !m->functions) {
        ptx_module_unload(m->module);
        free(m->functions), free(m);
        return status;
    }
    for (uint32_t k = 0; k < m->module->function_count; k++)
        m->functions[k] =
            (struct sim_function){device, m, m->module, &m->module->functions[k], 48 << 10, 0};
    *module = m;
    return CUDA_SUCCESS;
}

CU CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    if (!module || !image) return sim_fail(CUDA_ERROR_INVALID_VALUE, "module or image is NULL");
    const CUresult status = check_image(image);
    return status ? status : load(module, image, strlen(image));
}

/* Copies the error message to the caller's buffer, as the driver's JIT compiler does. The option
 * with the number 5 (CUjit_option) is the buffer's address, and the option with the number 6 is its
 * size. */
static void put_log(unsigned count, const int *options, void **values) {
    char *log = NULL;
    size_t size = 0;
    for (unsigned k = 0; options && values && k < count; k++) {
        if (options[k] == 5) log = values[k];
        if (options[k] == 6) size = (size_t)(uintptr_t)values[k];
    }
    if (log && size) snprintf(log, size, "%s", bsmm_sim_message());
}

CU CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count, int *options,
                               void **values) {
    const CUresult status = cuModuleLoadData(module, image);
    if (status) put_log(count, options, values);
    return status;
}
CU CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image) {
    return cuModuleLoadData(module, image);
}

CU CUresult cuModuleLoad(CUmodule *module, const char *path) {
    if (!module || !path) return sim_fail(CUDA_ERROR_INVALID_VALUE, "module or path is NULL");
    FILE *f = fopen(path, "rb");
    if (!f) return sim_fail(CUDA_ERROR_NOT_FOUND, "%s: %s", path, strerror(errno));
    fseek(f, 0, SEEK_END);
    const long size = ftell(f);
    rewind(f);
    char *bytes = size > 0 ? calloc((size_t)size + 4, 1) : NULL;
    const bool whole = bytes && fread(bytes, 1, (size_t)size, f) == (size_t)size;
    fclose(f);
    const CUresult status = whole ? cuModuleLoadData(module, bytes)
                                  : sim_fail(CUDA_ERROR_INVALID_IMAGE, "%s: cannot be read", path);
    free(bytes);
    return status;
}

CU CUresult cuModuleUnload(CUmodule module) {
    if (!module) return sim_fail(CUDA_ERROR_INVALID_HANDLE, "module is NULL");
    ptx_module_unload(module->module);
    free(module->functions), free(module);
    return CUDA_SUCCESS;
}

CU CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    if (!function || !module || !name)
        return sim_fail(CUDA_ERROR_INVALID_VALUE, "function, module or name is NULL");
    for (uint32_t k = 0; k < module->module->function_count; k++) {
        const ptx_function *f = &module->module->functions[k];
        if (!f->entry || !f->defined || strcmp(f->name, name) != 0) continue;
        *function = &module->functions[k];
        return CUDA_SUCCESS;
    }
    return sim_fail(CUDA_ERROR_NOT_FOUND, "the module has no kernel %s", name);
}

CU CUresult cuModuleGetGlobal_v2(CUdeviceptr *at, size_t *size, CUmodule module, const char *name) {
    if (!module || !name) return sim_fail(CUDA_ERROR_INVALID_VALUE, "module or name is NULL");
    for (uint32_t k = 0; k < module->module->variable_count; k++) {
        const ptx_variable *v = &module->module->variables[k];
        if (strcmp(v->name, name) != 0) continue;
        if (at) *at = v->address;
        if (size) *size = v->size;
        return CUDA_SUCCESS;
    }
    return sim_fail(CUDA_ERROR_NOT_FOUND, "the module has no variable %s", name);
}

/* Names the numbers of CUfunction_attribute. */
enum {
    MAX_THREADS = 0,
    SHARED_SIZE = 1,
    LOCAL_SIZE = 3,
    REGISTERS = 4,
    PTX_VERSION = 5,
    DYNAMIC_SHARED = 8
};

CU CUresult cuFuncSetAttribute(CUfunction f, int attribute, int value) {
    if (!f) return sim_fail(CUDA_ERROR_INVALID_HANDLE, "function is NULL");
    if (attribute != DYNAMIC_SHARED) return CUDA_SUCCESS;
    const uint32_t most = sim_device_of(f->device)->shared_bytes;
    const uint32_t own = ptx_static_shared(f->module, f->kernel);
    if (value < 0 || (uint64_t)own + (uint32_t)value > most)
        return sim_fail(CUDA_ERROR_INVALID_VALUE,
                        "%s: %d bytes of dynamic and %u of static shared memory; the device has %u "
                        "for a block",
                        f->kernel->name, value, own, most);
    f->shared = value;
    return CUDA_SUCCESS;
}
CU CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction f) {
    if (!value || !f) return sim_fail(CUDA_ERROR_INVALID_VALUE, "value or function is NULL");
    *value = attribute == MAX_THREADS      ? 1024
             : attribute == SHARED_SIZE    ? (int)ptx_static_shared(f->module, f->kernel)
             : attribute == LOCAL_SIZE     ? (int)f->kernel->local
             : attribute == REGISTERS      ? 255
             : attribute == PTX_VERSION    ? (int)f->module->target
             : attribute == DYNAMIC_SHARED ? f->shared
                                           : 0;
    return CUDA_SUCCESS;
}
CU CUresult cuFuncGetName(const char **name, CUfunction f) {
    if (!name || !f) return sim_fail(CUDA_ERROR_INVALID_VALUE, "name or function is NULL");
    *name = f->kernel->name;
    return CUDA_SUCCESS;
}
/* Writes the offset and the size in bytes of parameter number `index`. `size` may be NULL. */
CU CUresult cuFuncGetParamInfo(CUfunction f, size_t index, size_t *offset, size_t *size) {
    if (!f || !offset) return sim_fail(CUDA_ERROR_INVALID_VALUE, "function or offset is NULL");
    if (index >= f->kernel->parameter_count)
        return sim_fail(CUDA_ERROR_INVALID_VALUE, "%s: parameter is %zu; there are %u",
                        f->kernel->name, index, f->kernel->parameter_count);
    *offset = f->kernel->parameters[index].offset;
    if (size) *size = f->kernel->parameters[index].size;
    return CUDA_SUCCESS;
}
CU CUresult cuFuncGetModule(CUmodule *module, CUfunction f) {
    if (!module || !f) return sim_fail(CUDA_ERROR_INVALID_VALUE, "module or function is NULL");
    *module = f->owner;
    return CUDA_SUCCESS;
}
CU CUresult cuModuleGetFunctionCount(unsigned *count, CUmodule module) {
    if (!count || !module) return sim_fail(CUDA_ERROR_INVALID_VALUE, "count or module is NULL");
    *count = 0;
    for (uint32_t k = 0; k < module->module->function_count; k++)
        *count += module->module->functions[k].entry && module->module->functions[k].defined;
    return CUDA_SUCCESS;
}
CU CUresult cuKernelGetName(const char **name, CUfunction kernel) {
    return cuFuncGetName(name, kernel);
}
CU CUresult cuFuncSetCacheConfig(CUfunction f, int config) {
    return (void)f, (void)config, CUDA_SUCCESS;
}
CU CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *count, CUfunction f, int threads,
                                                        size_t shared) {
    if (!count || !f || threads < 1)
        return sim_fail(CUDA_ERROR_INVALID_VALUE,
                        "count or function is NULL, or threads is not positive");
    const size_t each = shared + SHARED_BEGIN + ptx_static_shared(f->module, f->kernel),
                 all = sim_device_of(f->device)->shared_bytes + 1024u;
    const size_t by_shared = all / each, by_threads = 2048u / (size_t)threads;
    *count = (int)(by_shared < by_threads ? by_shared : by_threads);
    return CUDA_SUCCESS;
}
CU CUresult cuOccupancyMaxActiveClusters(int *count, CUfunction f, const CUlaunchConfig *config) {
    uint32_t size = 1;
    if (!count || !f || !config) return sim_fail(CUDA_ERROR_INVALID_VALUE, "a pointer is NULL");
    for (unsigned k = 0; k < config->numAttrs; k++)
        if (config->attrs[k].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            size = config->attrs[k].value.clusterDim.x * config->attrs[k].value.clusterDim.y *
                   config->attrs[k].value.clusterDim.z;
    *count = size ? sim_multiprocessors(f->device) / (int)size : 0;
    return CUDA_SUCCESS;
}

static uint64_t number(const char *variable, uint64_t otherwise) {
    const char *text = getenv(variable);
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

/* The list `launched` has the name of each kernel that this process has launched without an error,
 * for example "sm_90a gemm_bf16". The lock guards the list. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char (*launched)[128];
static unsigned launched_count, launched_room;

const char *bsmm_sim_launched(unsigned number) {
    pthread_mutex_lock(&lock);
    const char *name = number < launched_count ? launched[number] : NULL;
    pthread_mutex_unlock(&lock);
    return name;
}

/* Adds a kernel to the list of launched kernels unless it is there already. If there is no memory,
 * the list stays incomplete. */
static void list_launch(CUfunction f) {
    if (__atomic_exchange_n(&f->listed, 1, __ATOMIC_SEQ_CST)) return;
    pthread_mutex_lock(&lock);
    if (launched_count == launched_room) {
        const unsigned room = launched_room ? 2 * launched_room : 64;
        void *more = realloc(launched, room * sizeof *launched);
        if (more) launched = more, launched_room = room;
    }
    if (launched_count < launched_room)
        snprintf(launched[launched_count++], sizeof *launched, "sm_%u%.1s %.100s",
                 f->module->target, f->module->feature ? &f->module->feature : "", f->kernel->name);
    pthread_mutex_unlock(&lock);
}

CUresult sim_launch(const sim_work *w) {
    char error[ERROR_BYTES] = "";
    uint8_t *arguments = sim_memory_alloc(w->argument_bytes + 16);
    if (!arguments) return sim_fail(CUDA_ERROR_OUT_OF_MEMORY, "out of memory");
    memset(arguments, 0, w->argument_bytes + 16);
    if (w->argument_bytes) memcpy(arguments, w->arguments, w->argument_bytes);
    ptx_launch l = {.module = w->function->module,
                    .kernel = w->function->kernel,
                    .dynamic = w->shared,
                    .arguments = arguments,
                    .most_shared = sim_device_of(w->function->device)->shared_bytes,
                    .capability = sim_device_of(w->function->device)->arch,
                    .checks = (uint32_t)number("BSMM_SIM_CHECKS", CHECK_ALL),
                    .seed = number("BSMM_SIM_SEED", 1),
                    .limit = number("BSMM_SIM_LIMIT", 0),
                    .multiprocessors = (uint32_t)sim_multiprocessors(w->function->device),
                    .timed = ptx_has_time_model(sim_device_of(w->function->device)->arch)
                                 ? sim_time_mode()
                                 : TIMING_OFF};
    /* If only a sample of the thread blocks runs, some data is never written, and the checks would
     * report its use as errors. The checks are therefore switched off. */
    if (l.timed == TIMING_SAMPLE) l.checks = 0;
    memcpy(l.grid, w->grid, sizeof l.grid), memcpy(l.block, w->block, sizeof l.block);
    memcpy(l.cluster, w->cluster, sizeof l.cluster);
    const bool good = ptx_run_launch(&l, error);
    __atomic_add_fetch(&all_steps, l.steps, __ATOMIC_SEQ_CST);
    sim_memory_free(arguments);
    if (good) list_launch(w->function);
    if (good && l.timed)
        sim_keep_launch(&(sim_timed_launch){l.kernel->name, &l.times.seconds,
                                            sizeof l.times / sizeof(double), l.hot});
    return good ? CUDA_SUCCESS : sim_fail(CUDA_ERROR_LAUNCH_FAILED, "%s", error);
}

/* Copies the arguments of a kernel to the buffer `to`. The caller passes either a pointer to each
 * argument in `arguments`, or one buffer with all arguments in `extra`, which is {1, buffer, 2,
 * pointer to the buffer's size, 0}. */
static CUresult pack_arguments(const ptx_function *k, void **arguments, void **extra, uint8_t *to) {
    if (extra) {
        const void *bytes = NULL;
        size_t size = 0;
        for (uint32_t n = 0; extra[n] && n < 8; n += 2) {
            if ((uintptr_t)extra[n] == 1) bytes = extra[n + 1];
            if ((uintptr_t)extra[n] == 2) memcpy(&size, extra[n + 1], sizeof size);
        }
        if (!bytes || size > k->param_bytes)
            return sim_fail(CUDA_ERROR_INVALID_VALUE,
                            "%s: the arguments' buffer has %zu bytes instead of %u", k->name, size,
                            k->param_bytes);
        memcpy(to, bytes, size);
        return CUDA_SUCCESS;
    }
    for (uint32_t n = 0; n < k->parameter_count; n++) {
        if (!arguments || !arguments[n])
            return sim_fail(CUDA_ERROR_INVALID_VALUE, "%s: argument %u is NULL", k->name, n);
        memcpy(to + k->parameters[n].offset, arguments[n], k->parameters[n].size);
    }
    return CUDA_SUCCESS;
}

CU CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **arguments,
                             void **extra) {
    if (!c || !f) return sim_fail(CUDA_ERROR_INVALID_HANDLE, "config or function is NULL");
    sim_work w = {.function = f,
                  .grid = {c->gridDimX, c->gridDimY, c->gridDimZ},
                  .block = {c->blockDimX, c->blockDimY, c->blockDimZ},
                  .cluster = {1, 1, 1},
                  .shared = c->sharedMemBytes,
                  .argument_bytes = f->kernel->param_bytes};
    if (f->kernel->cluster[0]) memcpy(w.cluster, f->kernel->cluster, sizeof w.cluster);
    for (unsigned k = 0; k < c->numAttrs; k++)
        if (c->attrs[k].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            w.cluster[0] = c->attrs[k].value.clusterDim.x,
            w.cluster[1] = c->attrs[k].value.clusterDim.y,
            w.cluster[2] = c->attrs[k].value.clusterDim.z;
    if (w.shared > (uint32_t)f->shared)
        return sim_fail(CUDA_ERROR_INVALID_VALUE,
                        "%s: %u bytes of dynamic shared memory; cuFuncSetAttribute allows %d",
                        f->kernel->name, w.shared, f->shared);
    w.arguments = calloc(w.argument_bytes + 1, 1);
    if (!w.arguments) return sim_fail(CUDA_ERROR_OUT_OF_MEMORY, "out of memory");
    CUresult status = pack_arguments(f->kernel, arguments, extra, w.arguments);
    if (!status) status = sim_submit(c->hStream, &w);
    free(w.arguments);
    return status;
}

/* NOLINTNEXTLINE(readability-function-size): CUDA's signature */
CU CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                           unsigned by, unsigned bz, unsigned shared, CUstream s, void **arguments,
                           void **extra) {
    const CUlaunchConfig config = {gx, gy, gz, bx, by, bz, shared, s, NULL, 0};
    return cuLaunchKernelEx(&config, f, arguments, extra);
}
