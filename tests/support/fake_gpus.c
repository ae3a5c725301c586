#include "fake_gpus.h"

#include "fake.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

const char *const fake_gpus[FAKE_GPUS] = {"cuda:0", "cuda:1", "cuda:2"};

fake_cuda *fake_gpus_open(void) {
    static const int capabilities[FAKE_GPUS] = {90, 100, 120};
    fake_cuda *const driver = fake_find("libcuda.so.1", "fake_cuda_state");
    if (!driver) return NULL;
    driver->driver.devices = FAKE_GPUS;
    driver->driver.free_bytes = (size_t)1 << 32;
    for (int i = 0; i < FAKE_GPUS; i++) {
        const bsmm_backend *backend;
        const void *device;
        driver->capability = capabilities[i];
        assert_int_equal(bsmm_device_open(fake_gpus[i], &backend, &device), BSMM_OK);
    }
    return driver;
}

int fake_gpus_sum(int (*check)(const char *device)) {
    int sum = 0;
    for (int i = 0; i < FAKE_GPUS; i++)
        sum += check(fake_gpus[i]);
    return sum;
}
