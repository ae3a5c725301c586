#include "host.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>

/* Holds the functions of HIP that a launch needs, with the types of hip_runtime_api.h. */
static struct {
    int (*hipMalloc)(void **, size_t);
    int (*hipFree)(void *);
    int (*hipMemcpy)(void *, const void *, size_t, int);
    int (*hipModuleLoadData)(void **, const void *);
    int (*hipModuleUnload)(void *);
    int (*hipModuleGetFunction)(void **, void *, const char *);
    int (*hipModuleLaunchKernel)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                 unsigned, void *, void **, void **);
    int (*hipDeviceSynchronize)(void);
    const char *(*hipGetErrorString)(int);
} hip;

enum { TO_DEVICE = 1, TO_HOST = 2, MOST_BUFFERS = 8 };

static void need(int status, const char *what) {
    if (!status) return;
    fprintf(stderr, "%s: %s\n", what, hip.hipGetErrorString(status));
    exit(1);
}

static void open_hip(void) {
    void *library = dlopen("libamdhip64.so", RTLD_NOW);
    if (!library) fprintf(stderr, "%s\n", dlerror()), exit(1);
#define ENTRY(name)                                                                                \
    if (!(*(void **)&hip.name = dlsym(library, #name))) fprintf(stderr, "%s\n", dlerror()), exit(1)
    ENTRY(hipMalloc);
    ENTRY(hipFree);
    ENTRY(hipMemcpy);
    ENTRY(hipModuleLoadData);
    ENTRY(hipModuleUnload);
    ENTRY(hipModuleGetFunction);
    ENTRY(hipModuleLaunchKernel);
    ENTRY(hipDeviceSynchronize);
    ENTRY(hipGetErrorString);
#undef ENTRY
}

static void *read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) perror(path), exit(1);
    fseek(file, 0, SEEK_END);
    const long size = ftell(file);
    rewind(file);
    void *content = malloc((size_t)size);
    if (!content || fread(content, 1, (size_t)size, file) != (size_t)size) perror(path), exit(1);
    fclose(file);
    return content;
}

void run_wave(const char *code_object, const char *kernel, const buffer *buffers, int count) {
    void *memory[MOST_BUFFERS], *arguments[MOST_BUFFERS], *module, *function;
    open_hip();
    void *code = read_file(code_object);
    need(hip.hipModuleLoadData(&module, code), code_object);
    need(hip.hipModuleGetFunction(&function, module, kernel), kernel);
    for (int i = 0; i < count; i++) {
        need(hip.hipMalloc(&memory[i], buffers[i].bytes), "hipMalloc");
        need(hip.hipMemcpy(memory[i], buffers[i].host, buffers[i].bytes, TO_DEVICE), "hipMemcpy");
        arguments[i] = &memory[i];
    }
    need(hip.hipModuleLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, NULL, arguments, NULL), kernel);
    need(hip.hipDeviceSynchronize(), kernel);
    need(hip.hipMemcpy(buffers[count - 1].host, memory[count - 1], buffers[count - 1].bytes,
                       TO_HOST),
         "hipMemcpy");
    for (int i = 0; i < count; i++)
        need(hip.hipFree(memory[i]), "hipFree");
    need(hip.hipModuleUnload(module), "hipModuleUnload");
    free(code);
}

int sample(int seed, int i, int least, int most) {
    const uint32_t mixed = ((uint32_t)i * 2654435761u + (uint32_t)seed * 40503u) >> 16;
    return least + (int)(mixed % (uint32_t)(most - least + 1));
}

float small_float(unsigned code, int exponent_bits, int mantissa_bits, int bias) {
    const unsigned mantissa = code & ((1u << mantissa_bits) - 1);
    const unsigned exponent = code >> mantissa_bits & ((1u << exponent_bits) - 1);
    const float sign = code >> (exponent_bits + mantissa_bits) & 1 ? -1.0f : 1.0f;
    const unsigned significand = exponent ? mantissa | 1u << mantissa_bits : mantissa;
    const int power = (exponent ? (int)exponent : 1) - bias - mantissa_bits;
    return sign * ldexpf((float)significand, power);
}

static void print_corner(const char *name, const float *matrix, int rows, int cols) {
    for (int i = 0; i < 3 && i < rows; i++) {
        printf("%6s", i ? "" : name);
        for (int j = 0; j < 6 && j < cols; j++)
            printf(" %8g", (double)matrix[i * cols + j]);
        printf("%s\n", cols > 6 ? " ..." : "");
    }
}

int check_product(const char *title, const float *a, const float *b, const float *d, int m, int n,
                  int k) {
    int wrong = 0;
    printf("%s: A (%d x %d) times B (%d x %d)\n", title, m, k, k, n);
    print_corner("A", a, m, k);
    print_corner("B", b, k, n);
    print_corner("D", d, m, n);
    for (int i = 0; i < m * n; i++) {
        double sum = 0;
        for (int j = 0; j < k; j++)
            sum += (double)a[i / n * k + j] * (double)b[j * n + i % n];
        wrong += !((double)d[i] == sum);
    }
    printf("%d of %d elements of D differ from the host's sums\n", wrong, m * n);
    return wrong != 0;
}
