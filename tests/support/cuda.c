#include "cuda.h"

#include "cuda/host/wgmma.h"
#include "gpu/images.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* This file includes two source files of the library. Macros give some of their functions other
 * names, e.g. choose_by_time instead of bsmm_wgmma_choose. This file can therefore define functions
 * with the library's original names, which may call the renamed functions. */
static const bsmm_wgmma_tile *choose_by_time(const bsmm_product *p, bsmm_wgmma_kind kind,
                                             uint32_t a_elem, uint32_t b_elem);
static int64_t choose_splits_by_time(const bsmm_wgmma_split *split);
#define bsmm_small_m_prefers_bands  prefers_bands_by_size
#define bsmm_small_m_prefers_mixed  prefers_mixed_by_time
#define bsmm_small_m_divides_mixed  divides_any_mixed
#define bsmm_small_m_launches_mixed launches_any_mixed
#include "../../src/cuda/host/small_m_choose.c" /* NOLINT(bugprone-suspicious-include) */
#undef bsmm_small_m_prefers_bands
#undef bsmm_small_m_prefers_mixed
#undef bsmm_small_m_divides_mixed
#undef bsmm_small_m_launches_mixed
#define bsmm_wgmma_choose        choose_by_time
#define bsmm_wgmma_choose_splits choose_splits_by_time
#include "../../src/cuda/host/wgmma_choose.c" /* NOLINT(bugprone-suspicious-include) */
#undef bsmm_wgmma_choose
#undef bsmm_wgmma_choose_splits

/* Replaces the library's function of this name in tests. It tells whether a product is computed in
 * bands, i.e. by one launch of the kernel for few rows for each 64 rows of A. The library uses
 * bands only if B is large. If the environment variable BSMM_TEST_BANDS is set, every product uses
 * bands. */
bool bsmm_small_m_prefers_bands(const bsmm_product *p, uint32_t bits) {
    return getenv("BSMM_TEST_BANDS") || prefers_bands_by_size(p, bits);
}

/* Replaces the library's function of this name in tests. With the environment variable
 * BSMM_TEST_MIXED, small products may also use the kernel cuda_sm90a_mixed. If BSMM_TEST_TILE names
 * a tile of another kernel, no product uses cuda_sm90a_mixed. */
bool bsmm_small_m_prefers_mixed(double mixed, double other) {
    if (getenv("BSMM_TEST_MIXED")) return isfinite(mixed);
    return !getenv("BSMM_TEST_TILE") && prefers_mixed_by_time(mixed, other);
}

/* Returns number `index` of the environment variable BSMM_TEST_MIXED, or 0 if it is not set. The
 * variable consists of four numbers with commas: the columns of a tile, the groups of warps of a
 * thread block, the thread blocks of a cluster, and the launches. cuda_sm90a_mixed then uses only
 * these. A 0 allows any. The last number may be missing, which means 0. */
static unsigned mixed_number(size_t index) {
    const char *text = getenv("BSMM_TEST_MIXED");
    unsigned all[4] = {0, 0, 0, 0};
    if (text) assert_true(sscanf(text, "%u,%u,%u,%u", &all[0], &all[1], &all[2], &all[3]) >= 3);
    return all[index];
}

static bool allows_mixed(size_t index, unsigned value) {
    const unsigned only = mixed_number(index);
    return only == 0 || only == value;
}

/* Replaces the library's function of this name in tests, and obeys BSMM_TEST_MIXED. */
bool bsmm_small_m_divides_mixed(uint32_t columns, uint32_t groups, uint32_t splits,
                                uint32_t steps) {
    return allows_mixed(0, columns) && allows_mixed(1, groups) && allows_mixed(2, splits) &&
           divides_any_mixed(columns, groups, splits, steps);
}

/* Replaces the library's function of this name in tests, and obeys BSMM_TEST_MIXED. */
bool bsmm_small_m_launches_mixed(uint32_t launches) {
    return allows_mixed(3, launches) && launches_any_mixed(launches);
}

/* In tests, this function replaces the library's function of the same name. If the environment
 * variable BSMM_TEST_TILE names a tile, the function chooses this tile for each product that it can
 * compute, even if another tile is estimated to be faster. If BSMM_TEST_SHOW_DEAL is set, the
 * function also prints the number of parts of K and the number of cluster tiles that are not split
 * along K. */
const bsmm_wgmma_tile *bsmm_wgmma_choose(const bsmm_product *p, bsmm_wgmma_kind kind,
                                         uint32_t a_elem, uint32_t b_elem) {
    const char *only = getenv("BSMM_TEST_TILE");
    const bsmm_wgmma_tile *t;
    for (size_t i = 0; only && (t = bsmm_wgmma_tile_at(i)); i++)
        if (bsmm_wgmma_tile_takes(t, kind, a_elem, b_elem) &&
            strcmp(bsmm_wgmma_function(t)->name, only) == 0) {
            if (getenv("BSMM_TEST_SHOW_DEAL")) {
                const bsmm_wgmma_deal deal = bsmm_wgmma_deal_of(p, t);
                fprintf(stderr, "deal %s %lld %lld\n", only, (long long)deal.splits,
                        (long long)deal.whole);
            }
            return t;
        }
    return choose_by_time(p, kind, a_elem, b_elem);
}

/* Replaces the library's function of this name in tests. The environment variable BSMM_TEST_SPLITS
 * sets the number of parts into which K is split (split-K). The function takes fewer parts if the
 * device has too few SMs or if K has too few blocks of 128 elements. */
int64_t bsmm_wgmma_choose_splits(const bsmm_wgmma_split *split) {
    const char *wanted = getenv("BSMM_TEST_SPLITS");
    if (!wanted) return choose_splits_by_time(split);
    const int64_t splits = bsmm_min_i64(atoll(wanted), split->most);
    return splits > 0 ? splits : 1;
}

bool test_cuda_is_built(void) {
    const bsmm_gpu_image *image;
    return bsmm_gpu_image_find("sm80/words", NULL, NULL, &image) == BSMM_OK;
}

const bsmm_cuda_device *test_cuda_device_or_null(void) {
    const bsmm_cuda_device *device;
    if (!test_cuda_is_built()) return NULL;
    return bsmm_cuda_device_get(0, &device) == BSMM_OK ? device : NULL;
}

const bsmm_cuda_device *test_cuda_device(void) {
    const bsmm_cuda_device *device = test_cuda_device_or_null();
    if (device) return device;
    printf("skipped: no CUDA device: %s\n", bsmm_error_message());
    skip();
    return NULL;
}

/* Copies bytes to the device and waits until the copy is complete. cuMemcpyHtoD may return before
 * that, and kernels on other streams do not wait for the copy. */
void test_cuda_write(const bsmm_cuda_device *device, void *to, const void *from, size_t bytes) {
    TEST_CUDA(device, cuMemcpyHtoD, (uintptr_t)to, from, bytes);
    TEST_CUDA(device, cuStreamSynchronize, NULL);
}

void *test_cuda_new(const bsmm_cuda_device *device, const void *from, size_t bytes) {
    CUdeviceptr memory = 0;
    if (bytes == 0) return NULL;
    TEST_CUDA(device, cuMemAlloc, &memory, bytes);
    TEST_CUDA(device, cuMemsetD8Async, memory, 0xA5, bytes, NULL);
    TEST_CUDA(device, cuStreamSynchronize, NULL);
    if (from) test_cuda_write(device, (void *)(uintptr_t)memory, from, bytes);
    return (void *)(uintptr_t)memory;
}

void test_cuda_read(const bsmm_cuda_device *device, void *to, const void *from, size_t bytes) {
    if (bytes == 0) return;
    TEST_CUDA(device, cuStreamSynchronize, NULL);
    TEST_CUDA(device, cuMemcpyDtoH, to, (uintptr_t)from, bytes);
}

void test_cuda_free(const bsmm_cuda_device *device, void *memory) {
    if (memory) TEST_CUDA(device, cuMemFree, (uintptr_t)memory);
}
