/* Implements the functions of the HIP API that count, select and describe devices. The environment
 * variable BSMM_SIM_ARCH lists the architectures of the devices with which a process starts.
 * bsmm_sim_device creates more devices. Each thread has its own current device. */
#include "hip.h"
#include "sim.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEVICES = 64, MEMORY_GB = 128, VERSION = 60000000 };
static const char *const names[] = {[GFX942] = "gfx942", [GFX950] = "gfx950"};
enum { ARCHS = sizeof names / sizeof *names };

static pthread_once_t listed = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* The lock guards this list of devices. An entry never changes. */
static int archs[MOST_DEVICES], device_count;
static _Thread_local int current;

static int find_arch(const char *name, size_t length) {
    for (int k = 0; k < ARCHS; k++)
        if (strlen(names[k]) == length && memcmp(names[k], name, length) == 0) return k;
    return -1;
}

/* Creates the devices that the environment variable BSMM_SIM_ARCH lists, e.g. "gfx942,gfx950". The
 * function skips unknown architectures. */
static void list_devices(void) {
    const char *word = getenv("BSMM_SIM_ARCH");
    while (word && *word) {
        const size_t length = strcspn(word, ",:+-");
        const int arch = find_arch(word, length);
        if (arch >= 0 && device_count < MOST_DEVICES) archs[device_count++] = arch;
        word += strcspn(word, ",");
        word += *word == ',';
    }
    if (device_count == 0) archs[device_count++] = GFX950;
}

static int count(void) {
    pthread_once(&listed, list_devices);
    return __atomic_load_n(&device_count, __ATOMIC_ACQUIRE);
}

int bsmm_sim_device(const char *arch, unsigned number) {
    const int wanted = arch ? find_arch(arch, strlen(arch)) : -1;
    if (wanted < 0) return -1;
    count();
    pthread_mutex_lock(&lock);
    int at = 0;
    for (unsigned seen = 0; at < MOST_DEVICES; at++) {
        if (at == device_count) {
            archs[at] = wanted;
            __atomic_store_n(&device_count, at + 1, __ATOMIC_RELEASE);
        }
        if (archs[at] == wanted && seen++ == number) break;
    }
    pthread_mutex_unlock(&lock);
    return at < MOST_DEVICES ? at : -1;
}

int hip_device(void) {
    return current;
}

int hip_arch(int device) {
    count();
    return archs[device];
}

static hipError_t check(int device) {
    const int devices = count();
    if (device >= 0 && device < devices) return hipSuccess;
    return hip_fail(hipErrorInvalidDevice, "device is %d; there are %d", device, devices);
}

static hipError_t give(int *to, int value) {
    if (!to) return hip_fail(hipErrorInvalidValue, "a result's pointer is NULL");
    *to = value;
    return hipSuccess;
}

HIP hipError_t hipInit(unsigned flags) {
    return flags ? hip_fail(hipErrorInvalidValue, "flags must be 0") : hipSuccess;
}
HIP hipError_t hipGetDeviceCount(int *devices) {
    return give(devices, count());
}
HIP hipError_t hipGetDevice(int *device) {
    return give(device, current);
}
HIP hipError_t hipDeviceGet(int *device, int ordinal) {
    const hipError_t status = check(ordinal);
    return status ? status : give(device, ordinal);
}
HIP hipError_t hipSetDevice(int device) {
    const hipError_t status = check(device);
    if (!status) current = device;
    return status;
}
HIP hipError_t hipDriverGetVersion(int *version) {
    return give(version, VERSION);
}
HIP hipError_t hipRuntimeGetVersion(int *version) {
    return give(version, VERSION);
}
HIP hipError_t hipDeviceSynchronize(void) {
    return hipSuccess;
}
HIP hipError_t hipDeviceReset(void) {
    return hipSuccess;
}
HIP hipError_t hipDeviceGetName(char *name, int length, int device) {
    const hipError_t status = check(device);
    if (status) return status;
    if (!name || length < 1)
        return hip_fail(hipErrorInvalidValue, "name is NULL or length is not positive");
    snprintf(name, (size_t)length, "bsmm simulator of %s", names[hip_arch(device)]);
    return hipSuccess;
}
HIP hipError_t hipDeviceTotalMem(size_t *bytes, int device) {
    const hipError_t status = check(device);
    if (status) return status;
    if (!bytes) return hip_fail(hipErrorInvalidValue, "bytes is NULL");
    *bytes = (size_t)MEMORY_GB << 30;
    return hipSuccess;
}
HIP hipError_t hipMemGetInfo(size_t *available, size_t *total) {
    if (available) *available = (size_t)MEMORY_GB << 30;
    return total ? hipDeviceTotalMem(total, current) : hipSuccess;
}

/* Lists the values of device attributes for both architectures, by the number of
 * hipDeviceAttribute_t in ROCm 6. Attributes that are missing here are 0. The L2 size is the size
 * of the L2 of one XCD. */
typedef struct {
    int attribute, values[ARCHS];
} attribute;
static const attribute attributes[] = {
    {19, {4 << 20, 4 << 20}}, /* Attribute 19 is L2CacheSize in bytes. */
    {23, {9, 9}}, /* Attributes 23 and 61 are ComputeCapabilityMajor and ComputeCapabilityMinor. */
    {61, {4, 5}},
    {56, {1024, 1024}}, /* Attribute 56 is MaxThreadsPerBlock. */
    {26, {1024, 1024}},
    {27, {1024, 1024}},
    {28, {1024, 1024}}, /* Attributes 26 to 28 are MaxBlockDim. */
    {29, {2147483647, 2147483647}},
    {30, {65535, 65535}},
    {31, {65535, 65535}},           /* Attributes 29 to 31 are MaxGridDim. */
    {63, {304, 256}},               /* Attribute 63 is MultiprocessorCount. */
    {74, {65536, 163840}},          /* Attribute 74 is MaxSharedMemoryPerBlock in bytes. */
    {87, {64, 64}},                 /* Attribute 87 is WarpSize. */
    {8, {1, 1}},                    /* Attribute 8 is ConcurrentKernels. */
    {3, {1, 1}},                    /* Attribute 3 is CanMapHostMemory. */
    {24, {1, 1}},                   /* Attribute 24 is ManagedMemory. */
    {85, {1, 1}},                   /* Attribute 85 is UnifiedAddressing. */
    {5, {2100000, 2400000}},        /* Attribute 5 is ClockRate in kHz. */
    {59, {8192, 8192}},             /* Attribute 59 is MemoryBusWidth in bits. */
    {60, {1300000, 2000000}},       /* Attribute 60 is MemoryClockRate in kHz. */
    {57, {2048, 2048}},             /* Attribute 57 is MaxThreadsPerMultiProcessor. */
    {58, {2147483647, 2147483647}}, /* Attribute 58 is MaxPitch in bytes. */
    {83, {2147483647, 2147483647}}, /* Attribute 83 is TotalConstantMemory in bytes. */
    {71, {65536, 65536}},           /* Attribute 71 is MaxRegistersPerBlock. */
    {72, {65536, 65536}},           /* Attribute 72 is MaxRegistersPerMultiprocessor. */
    {75, {65536, 163840}},          /* Attribute 75 is SharedMemPerBlockOptin. */
    {76, {65536, 163840}},          /* Attribute 76 is SharedMemPerMultiprocessor. */
    {10000, {100000, 100000}},      /* Attribute 10000 is ClockInstructionRate in kHz. */
    {10002, {65536, 163840}},       /* Attribute 10002 is MaxSharedMemoryPerMultiprocessor. */
};
static int value_of(int which, int arch) {
    for (size_t k = 0; k < sizeof attributes / sizeof *attributes; k++)
        if (attributes[k].attribute == which) return attributes[k].values[arch];
    return 0;
}

HIP hipError_t hipDeviceGetAttribute(int *value, int which, int device) {
    const hipError_t status = check(device);
    if (status) return status;
    return give(value, value_of(which, hip_arch(device)));
}

/* Lists the members of hipDeviceProp_t that are also attributes of the device. hipDeviceProp_t has
 * two layouts: R0600 for HIP 6 and later, and R0000 for older versions. A row has the member's
 * offsets in R0600 and in R0000 (0 if R0000 lacks the member), its size in bytes, and the number of
 * the attribute. */
static const struct {
    uint16_t at[2], bytes, attribute;
} properties[] = {
    {{296, 264}, 8, 74},     {{304, 272}, 4, 71}, {{308, 276}, 4, 87}, {{312, 712}, 8, 58},
    {{320, 280}, 4, 56},     {{324, 284}, 4, 26}, {{328, 288}, 4, 27}, {{332, 292}, 4, 28},
    {{336, 296}, 4, 29},     {{340, 300}, 4, 30}, {{344, 304}, 4, 31}, {{348, 308}, 4, 5},
    {{352, 320}, 8, 83},     {{360, 328}, 4, 23}, {{364, 332}, 4, 61}, {{388, 336}, 4, 63},
    {{400, 388}, 4, 3},      {{576, 360}, 4, 8},  {{604, 0}, 4, 85},   {{608, 312}, 4, 60},
    {{612, 316}, 4, 59},     {{616, 340}, 4, 19}, {{624, 344}, 4, 57}, {{640, 0}, 8, 76},
    {{648, 0}, 4, 72},       {{652, 772}, 4, 24}, {{696, 0}, 8, 75},   {{1416, 376}, 8, 10002},
    {{1424, 352}, 4, 10000},
};
/* `memory`, `name`, `bus` and `arch` are the offsets of members of hipDeviceProp_t that are no
 * attributes, and `bytes` is the size of hipDeviceProp_t. The member `arch` is a set of bits for
 * abilities such as 64-bit atomics. */
enum { R0600, R0000 };
static const struct {
    size_t memory, name, bus, arch, bytes;
} layouts[] = {[R0600] = {288, 1160, 584, 1428, 1472}, [R0000] = {256, 396, 368, 356, 792}};

static hipError_t give_properties(char *to, int layout, int device) {
    const hipError_t status = check(device);
    if (status) return status;
    if (!to) return hip_fail(hipErrorInvalidValue, "prop is NULL");
    const int arch = hip_arch(device);
    const uint64_t memory = (uint64_t)MEMORY_GB << 30;
    const uint32_t abilities = 0x97ff;
    memset(to, 0, layouts[layout].bytes);
    hipDeviceGetName(to, 256, device);
    memcpy(to + layouts[layout].memory, &memory, sizeof memory);
    memcpy(to + layouts[layout].bus, &device, sizeof device);
    memcpy(to + layouts[layout].arch, &abilities, sizeof abilities);
    snprintf(to + layouts[layout].name, 256, "%s:sramecc+:xnack-", names[arch]);
    for (size_t k = 0; k < sizeof properties / sizeof *properties; k++) {
        const int64_t value = value_of(properties[k].attribute, arch);
        if (properties[k].at[layout])
            memcpy(to + properties[k].at[layout], &value, properties[k].bytes);
    }
    return hipSuccess;
}

/* Programs that were compiled for HIP 6 and later call the symbol with the suffix R0600. Programs
 * for older versions of HIP call the symbol without a suffix, as in AMD's library. */
HIP hipError_t hipGetDevicePropertiesR0600(void *to, int device) {
    return give_properties(to, R0600, device);
}
HIP hipError_t hipGetDevicePropertiesR0000(void *to, int device) {
    return give_properties(to, R0000, device);
}
HIP hipError_t hipGetDeviceProperties(void *to, int device) {
    return give_properties(to, R0000, device);
}
