#include "fake.h"

#include "message.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

void *fake_find(const char *library, const char *name) {
    void *loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    void *state = loaded ? dlsym(loaded, name) : NULL;
    if (!state) print_message("the fake %s is not on LD_LIBRARY_PATH\n", library);
    return state;
}

void fake_check_memory(const fake_driver *fake, const bsmm_backend *backend, const void *device) {
    void *memory, *more;
    const size_t left = fake->free_bytes;
    assert_int_equal(backend->allocate(device, left + 1, &memory), BSMM_E_MEMORY);
    expect_message("bytes");
    assert_int_equal(backend->allocate(device, left, &memory), BSMM_OK);
    assert_int_equal(backend->allocate(device, 1, &more), BSMM_E_MEMORY);
    backend->release(device, memory);
    assert_int_equal(fake->free_bytes, left);
    assert_int_equal(fake->allocations, 0);
}

void *fake_upload(const char *device, size_t bytes) {
    void *memory;
    assert_int_equal(bsmm_allocate_memory(device, bytes, &memory), BSMM_OK);
    return memory;
}

void fake_product_make(fake_product *p, const char *device) {
    static const char *const formats[3] = {"mxfp8", "mxfp4", "f32"};
    static const int64_t rows[3] = {5, 8, 5}, cols[3] = {64, 64, 8};
    rng r = {6};
    p->device = device;
    for (int i = 0; i < 3; i++) {
        test_matrix_make(&p->host[i], describe(format_named(formats[i]), rows[i], cols[i]),
                         FILL_ORDINARY, &r);
        p->on[i] = p->host[i].m;
        p->on[i].data = fake_upload(device, p->host[i].data_bytes);
        if (p->on[i].scales) p->on[i].scales = fake_upload(device, p->host[i].scale_bytes);
    }
    p->bias = fake_upload(device, 8 * sizeof(float));
    p->desc = (bsmm_matmul_desc){.struct_size = sizeof p->desc,
                                 .a = &p->on[0],
                                 .b = &p->on[1],
                                 .d = &p->on[2],
                                 .bias = p->bias,
                                 .bias_elem = BSMM_ELEM_F32,
                                 .device = device};
}

void fake_product_free(fake_product *p) {
    for (int i = 0; i < 3; i++) {
        assert_int_equal(bsmm_free_memory(p->device, p->on[i].data), BSMM_OK);
        assert_int_equal(bsmm_free_memory(p->device, p->on[i].scales), BSMM_OK);
        test_matrix_free(&p->host[i]);
    }
    assert_int_equal(bsmm_free_memory(p->device, p->bias), BSMM_OK);
}

bsmm_buffers fake_product_buffers(const fake_product *p, void *stream) {
    return (bsmm_buffers){.struct_size = sizeof(bsmm_buffers),
                          .a = p->on[0].data,
                          .a_scales = p->on[0].scales,
                          .b = p->on[1].data,
                          .b_scales = p->on[1].scales,
                          .d = p->on[2].data,
                          .bias = p->bias,
                          .stream = stream};
}
