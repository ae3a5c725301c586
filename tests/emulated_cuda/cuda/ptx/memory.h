#ifndef BSMM_CUDA_PTX_MEMORY_H
#define BSMM_CUDA_PTX_MEMORY_H

static inline uint64_t ptx_load_acquire(const uint64_t *from) {
    return *from;
}
static inline void ptx_store_release(uint64_t *to, uint64_t value) {
    *to = value;
}
/* Emulates stmatrix, which stores four matrices of 8 x 8 16-bit elements from a warp's registers
 * to shared memory. Lane 4 r + j holds elements 2 j and 2 j + 1 of row r of each matrix. */
static inline void ptx_stmatrix_x4(uint32_t to, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    const uint32_t part[4] = {a, b, c, d}, lane = emulated_now->lane;
    const uint64_t *addresses = emulated_exchange(to);
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t row = uint32_t(addresses[8 * i + lane / 4]);
        memcpy(emulated_pointer(row + 4 * (lane % 4)), &part[i], 4);
    }
}
static inline void ptx_store_shared_f32(uint32_t to, float value) {
    memcpy(emulated_pointer(to), &value, 4);
}
static inline void ptx_store_shared_b16(uint32_t to, uint32_t value) {
    memcpy(emulated_pointer(to), &value, 2);
}
static inline void ptx_store_async_f32(uint32_t to, float value, uint32_t barrier) {
    memcpy(emulated_pointer(to), &value, 4);
    emulated_mbarrier_complete(barrier, 4);
}
static inline float ptx_load_shared_f32(uint32_t from) {
    float value;
    memcpy(&value, emulated_pointer(from), 4);
    return value;
}
static inline void ptx_load_shared_f32x2(uint32_t from, float to[2]) {
    assert(from % 8 == 0);
    memcpy(to, emulated_pointer(from), 8);
}

#endif
