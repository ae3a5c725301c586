#ifndef BSMM_CUDA_PTX_STREAM_H
#define BSMM_CUDA_PTX_STREAM_H

static inline void emulated_copy(uint32_t to, const void *from, uint32_t size, uint32_t bytes) {
    assert(to % size == 0 && uintptr_t(from) % size == 0);
    emulated_push(EMULATED_COPIES, [=] {
        memset(emulated_pointer(to), 0, size);
        if (bytes) memcpy(emulated_pointer(to), from, bytes);
    });
}
static inline void ptx_copy16_any(uint32_t to, const void *from) {
    emulated_copy(to, from, 16, 16);
}
static inline void ptx_copy16_once(uint32_t to, const void *from, uint32_t bytes) {
    emulated_copy(to, from, 16, bytes);
}
static inline void ptx_copy8_once(uint32_t to, const void *from, uint32_t bytes) {
    emulated_copy(to, from, 8, bytes);
}
static inline void ptx_copy_commit(void) {
    emulated_commit(EMULATED_COPIES);
}
#define ptx_copy_wait(groups) emulated_wait_groups(EMULATED_COPIES, groups)

#endif
