/* Implements memory pools of the simulated CUDA driver. A pool only counts its allocations, because
 * the simulator allocates memory at once and never uses freed addresses again. An allocation is
 * marked with the number of its pool plus 1 (common/memory.h). */
#include "common/memory.h"
#include "cuda.h"
#include "cuda_entries.h"
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

/* The first DEVICES entries are the default pools of the devices. */
enum { DEVICES = 64, POOLS = 256 };
/* Names the numbers of CUmemPool_attribute. */
enum {
    REUSE_FIRST = 1,
    REUSE_LAST = 3,
    RELEASE_THRESHOLD = 4,
    RESERVED = 5,
    RESERVED_HIGH = 6,
    USED = 7,
    USED_HIGH = 8
};
enum { PINNED = 1, ON_DEVICE = 1, READ_WRITE = 3 };

struct sim_pool {
    CUdevice device;
    bool exists;
    /* `refuses` holds the negated values of the attributes that control the reuse of memory. Their
     * default is 1, so a pool that is filled with zeros has the default values. The simulator only
     * stores these values. */
    int refuses[REUSE_LAST + 1];
    uint64_t threshold, most, used, highest;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sim_pool pools[POOLS];
/* `current` holds the pool that each device uses. NULL means the device's default pool. */
static CUmemoryPool current[DEVICES];

static CUmemoryPool default_pool(CUdevice device) {
    struct sim_pool *p = &pools[device];
    p->device = device, p->exists = true;
    return p;
}

/* Returns an error unless the pool exists. */
static CUresult check(CUmemoryPool pool) {
    const uintptr_t at = (uintptr_t)pool - (uintptr_t)pools;
    if (at < sizeof pools && at % sizeof *pools == 0 && pool->exists) return CUDA_SUCCESS;
    return sim_fail(CUDA_ERROR_INVALID_VALUE, "pool: %p is no memory pool", (void *)pool);
}

static CUresult check_device(CUdevice device) {
    if (sim_device_of(device)) return CUDA_SUCCESS;
    return sim_fail(CUDA_ERROR_INVALID_DEVICE, "device is %d; there is no such device", device);
}

CU CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device) {
    const CUresult status = check_device(device);
    if (status) return status;
    if (!pool) return sim_fail(CUDA_ERROR_INVALID_VALUE, "pool is NULL");
    *pool = default_pool(device);
    return CUDA_SUCCESS;
}
CU CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device) {
    const CUresult status = cuDeviceGetDefaultMemPool(pool, device);
    if (!status && current[device]) *pool = current[device];
    return status;
}
CU CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
    CUresult status = check_device(device);
    if (!status) status = check(pool);
    if (status) return status;
    if (pool->device != device)
        return sim_fail(CUDA_ERROR_INVALID_VALUE, "pool: its device is %d, not %d", pool->device,
                        device);
    current[device] = pool;
    return CUDA_SUCCESS;
}

CU CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props) {
    if (!pool || !props) return sim_fail(CUDA_ERROR_INVALID_VALUE, "pool or props is NULL");
    if (props->allocType != PINNED)
        return sim_fail(CUDA_ERROR_INVALID_VALUE, "allocType is %d; must be 1 (pinned)",
                        props->allocType);
    if (props->handleTypes)
        return sim_fail(CUDA_ERROR_NOT_SUPPORTED,
                        "handleTypes is %d; must be 0, because no other process shares memory",
                        props->handleTypes);
    if (props->location.type != ON_DEVICE)
        return sim_fail(CUDA_ERROR_NOT_SUPPORTED, "location.type is %d; must be 1 (a device)",
                        props->location.type);
    const CUresult status = check_device(props->location.id);
    if (status) return status;
    pthread_mutex_lock(&lock);
    int n = DEVICES;
    while (n < POOLS && (pools[n].exists || pools[n].used))
        n++;
    if (n < POOLS)
        pools[n] =
            (struct sim_pool){.device = props->location.id, .exists = true, .most = props->maxSize};
    pthread_mutex_unlock(&lock);
    if (n == POOLS)
        return sim_fail(CUDA_ERROR_OUT_OF_MEMORY, "there are %d memory pools already",
                        POOLS - DEVICES);
    *pool = &pools[n];
    return CUDA_SUCCESS;
}
/* The allocations of a destroyed pool remain valid until the program frees them. */
CU CUresult cuMemPoolDestroy(CUmemoryPool pool) {
    const CUresult status = check(pool);
    if (status) return status;
    if (pool < pools + DEVICES)
        return sim_fail(CUDA_ERROR_INVALID_VALUE, "pool: a default pool cannot be destroyed");
    if (current[pool->device] == pool) current[pool->device] = NULL;
    pool->exists = false;
    return CUDA_SUCCESS;
}
/* Pools keep no freed memory, so there is nothing to release. */
CU CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t kept) {
    return (void)kept, check(pool);
}

CU CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value) {
    const CUresult status = check(pool);
    if (status) return status;
    if (!value) return sim_fail(CUDA_ERROR_INVALID_VALUE, "value is NULL");
    if (attribute >= REUSE_FIRST && attribute <= REUSE_LAST) {
        int wanted;
        memcpy(&wanted, value, sizeof wanted);
        pool->refuses[attribute] = !wanted;
        return CUDA_SUCCESS;
    }
    uint64_t number;
    memcpy(&number, value, sizeof number);
    if (attribute == RELEASE_THRESHOLD) return pool->threshold = number, CUDA_SUCCESS;
    if ((attribute != RESERVED_HIGH && attribute != USED_HIGH) || number)
        return sim_fail(CUDA_ERROR_INVALID_VALUE,
                        "attribute %d cannot be set; 6 and 8 can be set to 0", attribute);
    pthread_mutex_lock(&lock);
    pool->highest = pool->used;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}
CU CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value) {
    const CUresult status = check(pool);
    if (status) return status;
    if (!value) return sim_fail(CUDA_ERROR_INVALID_VALUE, "value is NULL");
    if (attribute >= REUSE_FIRST && attribute <= REUSE_LAST) {
        const int allowed = !pool->refuses[attribute];
        memcpy(value, &allowed, sizeof allowed);
        return CUDA_SUCCESS;
    }
    if (attribute < RELEASE_THRESHOLD || attribute > USED_HIGH)
        return sim_fail(CUDA_ERROR_INVALID_VALUE, "there is no attribute %d", attribute);
    pthread_mutex_lock(&lock);
    const uint64_t numbers[] = {pool->threshold, pool->used, pool->highest, pool->used,
                                pool->highest};
    pthread_mutex_unlock(&lock);
    memcpy(value, &numbers[attribute - RELEASE_THRESHOLD], sizeof *numbers);
    return CUDA_SUCCESS;
}

/* Every simulated device can access the memory of every pool, so cuMemPoolSetAccess has no
 * effect. */
CU CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *access, size_t count) {
    CUresult status = check(pool);
    if (!status && count && !access) return sim_fail(CUDA_ERROR_INVALID_VALUE, "access is NULL");
    for (size_t k = 0; k < count && !status; k++) {
        if (access[k].location.type != ON_DEVICE)
            return sim_fail(CUDA_ERROR_INVALID_VALUE, "location %zu: type is %d; must be 1", k,
                            access[k].location.type);
        status = check_device(access[k].location.id);
        if (!status && access[k].location.id == pool->device && access[k].flags != READ_WRITE)
            return sim_fail(CUDA_ERROR_INVALID_VALUE,
                            "location %zu: a pool's own device reads and writes (flags 3)", k);
    }
    return status;
}
CU CUresult cuMemPoolGetAccess(int *flags, CUmemoryPool pool, const CUmemLocation *location) {
    const CUresult status = check(pool);
    if (status) return status;
    if (!flags || !location) return sim_fail(CUDA_ERROR_INVALID_VALUE, "flags or location is NULL");
    *flags = READ_WRITE;
    return check_device(location->id);
}

/* Counts `bytes` more bytes of a memory pool as used. Returns false if the pool would then exceed
 * its largest size. */
static bool take(CUmemoryPool pool, size_t bytes) {
    pthread_mutex_lock(&lock);
    const bool fits = !pool->most || (bytes <= pool->most && pool->used <= pool->most - bytes);
    if (fits) pool->used += bytes;
    if (pool->used > pool->highest) pool->highest = pool->used;
    pthread_mutex_unlock(&lock);
    return fits;
}
static void give(int number, uint64_t bytes) {
    pthread_mutex_lock(&lock);
    pools[number].used -= bytes;
    pthread_mutex_unlock(&lock);
}

/* NOLINTNEXTLINE(readability-non-const-parameter): CUDA's signature */
CU CUresult cuMemAllocFromPoolAsync(CUdeviceptr *at, size_t bytes, CUmemoryPool pool, CUstream s) {
    CUresult status = check(pool);
    if (status) return status;
    (void)s;
    if (!take(pool, bytes))
        return sim_fail(CUDA_ERROR_OUT_OF_MEMORY, "%zu bytes: the pool has at most %llu", bytes,
                        (unsigned long long)pool->most);
    status = cuMemAlloc_v2(at, bytes);
    if (status)
        give((int)(pool - pools), bytes);
    else
        sim_memory_mark((void *)(uintptr_t)*at, (int)(pool - pools) + 1, pool->device);
    return status;
}
CU CUresult cuMemAllocAsync(CUdeviceptr *at, size_t bytes, CUstream s) {
    CUmemoryPool pool;
    const CUresult status = cuDeviceGetMemPool(&pool, sim_current_device());
    return status ? status : cuMemAllocFromPoolAsync(at, bytes, pool, s);
}
CU CUresult cuMemFreeAsync(CUdeviceptr at, CUstream s) {
    return (void)s, cuMemFree_v2(at);
}

void sim_pool_forget(CUdeviceptr at) {
    uint64_t begin, size;
    int number, device;
    if (!sim_memory_find(at, &begin, &size) || begin != at) return;
    sim_memory_marked(at, &number, &device);
    if (number) give(number - 1, size);
}
