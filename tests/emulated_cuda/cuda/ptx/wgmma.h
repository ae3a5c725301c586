#ifndef BSMM_CUDA_PTX_WGMMA_H
#define BSMM_CUDA_PTX_WGMMA_H

#include "values.h"

static inline void ptx_wgmma_fence(void) {}
static inline void ptx_wgmma_commit(void) {
    emulated_commit(EMULATED_PRODUCTS);
}
#define PTX_WGMMA_WAIT(pending) emulated_wait_groups(EMULATED_PRODUCTS, pending)

/* As the instruction's: 18 bits of the address. The tile is the block's own. */
static inline uint64_t ptx_wgmma_descriptor(uint32_t address) {
    assert(address % 1024 == 0);
    return (address & 0x3FFFF) >> 4;
}

/* Values of the codes of e4m3 and e5m2. */
static inline const float *emulated_wgmma_values(char type) {
    static float values[2][256];
    static bool made = false;
    for (uint32_t c = 0; !made && c < 512; c++)
        values[c / 256][c % 256] = emulated_value(c < 256 ? EMULATED_E4M3 : EMULATED_E5M2, c % 256);
    made = true;
    return values[type == '5'];
}

/* 32 bytes of K of row `row` of a tile in 128-byte swizzled rows, as values. */
static inline void emulated_wgmma_row(uint64_t descriptor, uint32_t row, char type, float *to) {
    uint8_t codes[32];
    uint32_t start = (uint32_t(descriptor) << 4) + row * 128;
    for (uint32_t i = 0; i < 32; i += 16) {
        uint32_t at = start + i;
        at = emulated_mapped(at ^ (at / 128 % 8) << 4, emulated_rank());
        memcpy(codes + i, emulated_pointer(at), 16);
    }
    if (type == 'b') {
        for (uint32_t i = 0; i < 16; i++)
            to[i] =
                __uint_as_float(uint32_t(codes[2 * i]) << 16 | uint32_t(codes[2 * i + 1]) << 24);
        return;
    }
    const float *values = emulated_wgmma_values(type);
    for (uint32_t i = 0; i < 32; i++)
        to[i] = values[codes[i]];
}

/* types: "f32.e4m3.e4m3", "f32.bf16.bf16". */
static inline void emulated_wgmma(float *d, uint64_t a, uint64_t b, uint32_t add, uint32_t n,
                                  const char *types) {
    const char a_type = types[4] == 'b' ? 'b' : types[5],
               b_type = types[4] == 'b' ? 'b' : types[10];
    const int k = a_type == 'b' ? 16 : 32;
    const uint32_t t = emulated_now->thread.x % 128, first = 16 * (t / 32) + t % 32 / 4;
    float rows[2][32], column[32];
    emulated_wgmma_row(a, first, a_type, rows[0]);
    emulated_wgmma_row(a, first + 8, a_type, rows[1]);
    for (uint32_t c = 0; c < n / 4; c++) { /* two columns of every eight */
        emulated_wgmma_row(b, c / 2 * 8 + 2 * (t % 4) + c % 2, b_type, column);
        for (uint32_t r = 0; r < 2; r++) {
            float *to = &d[c / 2 * 4 + 2 * r + c % 2];
            double sum = add ? *to : 0;
            for (int i = 0; i < k; i++)
                sum += double(rows[r][i]) * double(column[i]);
            *to = float(sum);
        }
    }
}

#endif
