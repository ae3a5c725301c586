#ifndef BSMM_CUDA_PTX_WGMMA_H
#define BSMM_CUDA_PTX_WGMMA_H

#include "common/tensor_core.h"
#include "mma.h"
#include "values.h"

static inline void ptx_wgmma_fence(void) {}
static inline void ptx_wgmma_commit(void) {
    emulated_commit(EMULATED_PRODUCTS);
}
#define PTX_WGMMA_WAIT(pending) emulated_wait_groups(EMULATED_PRODUCTS, pending)

/* Makes the descriptor of a tile in shared memory. It contains the low 18 bits of the tile's
 * address, as for wgmma. The tile must be in the thread block's own shared memory. */
static inline uint64_t ptx_wgmma_descriptor(uint32_t address) {
    assert(address % 1024 == 0);
    return (address & 0x3FFFF) >> 4;
}

static inline uint64_t ptx_wgmma_descriptor_plain(uint32_t address, uint32_t along,
                                                  uint32_t across) {
    assert(address % 16 == 0 && along % 16 == 0 && across % 16 == 0);
    return (address & 0x3FFFF) >> 4 | uint64_t(along >> 4) << 16 | uint64_t(across >> 4) << 32;
}
static inline void ptx_wgmma_hold_words(uint32_t *) {}

/* Returns a table that converts each 8-bit code of e4m3 or e5m2 to its value. */
static inline const float *emulated_wgmma_values(char type) {
    static float values[2][256];
    static bool made = false;
    for (uint32_t c = 0; !made && c < 512; c++)
        values[c / 256][c % 256] = emulated_value(c < 256 ? EMULATED_E4M3 : EMULATED_E5M2, c % 256);
    made = true;
    return values[type == '5'];
}

/* Operand types are 'b' (bf16), 'f' (f16), '4' (e4m3) and '5' (e5m2). */
static inline bool emulated_wgmma_is_wide(char type) {
    return type == 'b' || type == 'f';
}

/* Returns the exponent of the smallest normal number of the type of A and B. The emulated tensor
 * core needs it to align products. */
static inline int emulated_wgmma_least(char type) {
    return type == 'b'   ? SIM_TENSOR_LEAST_BF16
           : type == 'f' ? SIM_TENSOR_LEAST_F16
           : type == '5' ? SIM_TENSOR_LEAST_E5M2
                         : SIM_TENSOR_LEAST_E4M3;
}

/* Returns the value of a 16-bit code, which is bf16 if `type` is 'b' and f16 otherwise. */
static inline float emulated_wgmma_wide(char type, uint32_t code) {
    return type == 'b' ? __uint_as_float(code << 16) : emulated_value(EMULATED_F16, code);
}

/* Reads 32 bytes along K of one row of a tile. The rows of the tile have 128 bytes and the 128-byte
 * swizzle. */
static inline void emulated_wgmma_row(uint64_t descriptor, uint32_t row, char type,
                                      sim_tensor_vector *to) {
    uint8_t codes[32];
    float values[32];
    const bool wide = emulated_wgmma_is_wide(type);
    uint32_t start = (uint32_t(descriptor) << 4) + row * 128;
    for (uint32_t i = 0; i < 32; i += 16) {
        uint32_t at = start + i;
        at = emulated_mapped(at ^ (at / 128 % 8) << 4, emulated_rank());
        memcpy(codes + i, emulated_pointer(at), 16);
    }
    for (uint32_t i = 0; i < 16 && wide; i++) {
        const uint32_t code = codes[2 * i] | uint32_t(codes[2 * i + 1]) << 8;
        values[i] = emulated_wgmma_wide(type, code);
    }
    for (uint32_t i = 0; i < 32 && !wide; i++)
        values[i] = emulated_wgmma_values(type)[codes[i]];
    sim_tensor_prepare(to, values, wide ? 16 : 32, emulated_wgmma_least(type));
}

/* Describes the operands of a wgmma. `first_row` is the warp's first row of the
 * tile of A. */
struct emulated_wgmma_operands {
    uint64_t a, b;
    char a_type, b_type;
    uint32_t n, first_row;
};

/* Returns the warp's memory for the 16 rows of A and the n columns of B of a wgmma. */
static inline sim_tensor_vector *emulated_wgmma_memory(uint32_t n) {
    return static_cast<sim_tensor_vector *>(
        emulated_warp_memory((16 + n) * sizeof(sim_tensor_vector)));
}

/* Prepares the operands of a wgmma in the warp's memory. */
static inline void emulated_wgmma_prepare(const uint64_t *, const void *argument) {
    const emulated_wgmma_operands *o = static_cast<const emulated_wgmma_operands *>(argument);
    sim_tensor_vector *to = emulated_wgmma_memory(o->n);
    for (uint32_t i = 0; i < 16; i++)
        emulated_wgmma_row(o->a, o->first_row + i, o->a_type, &to[i]);
    for (uint32_t i = 0; i < o->n; i++)
        emulated_wgmma_row(o->b, i, o->b_type, &to[16 + i]);
}

/* Adds products to this thread's accumulators. The thread has two of the warp's 16 rows of D,
 * `group` and `group` + 8. In each of these rows it has n / 4 columns: columns 2 t and 2 t + 1 of
 * every eight. Each result is the dot product of a row of A and a column of B, added to the old
 * accumulator if `add` is set. */
static inline void emulated_wgmma_add(float *d, uint32_t add, uint32_t n, int k,
                                      sim_tensor_rule rule) {
    const uint32_t group = emulated_now->lane / 4, t = emulated_now->lane % 4;
    const sim_tensor_vector *rows = emulated_wgmma_memory(n), *columns = rows + 16;
    for (uint32_t c = 0; c < n / 4; c++)
        for (uint32_t r = 0; r < 2; r++) {
            float *to = &d[c / 2 * 4 + 2 * r + c % 2];
            *to = sim_tensor_sum(add ? *to : 0, &rows[group + 8 * r],
                                 &columns[c / 2 * 8 + 2 * t + c % 2], k, rule);
        }
}

/* Emulates wgmma with both operands in shared memory. `types` names the types of D, A and B, for
 * example "f32.e4m3.e4m3", "f32.bf16.bf16" or "f32.f16.f16". */
static inline void emulated_wgmma(float *d, uint64_t a, uint64_t b, uint32_t add, uint32_t n,
                                  const char *types) {
    const bool wide = emulated_wgmma_is_wide(types[4]);
    const char a_type = wide ? types[4] : types[5], b_type = wide ? types[4] : types[10];
    const emulated_wgmma_operands operands = {a,      b, a_type,
                                              b_type, n, emulated_now->thread.x % 128 / 32 * 16};
    emulated_exchange_words(nullptr, 0, emulated_wgmma_prepare, &operands);
    emulated_wgmma_add(
        d, add, n, wide ? 16 : 32,
        sim_tensor_rule_of(!wide, emulated_wgmma_least(a_type), emulated_wgmma_least(b_type)));
}

/* Reads 16 elements of 16 bits along K of one row of a tile. The tile has no swizzle. */
static inline void emulated_wgmma_plain_row(uint64_t descriptor, uint32_t row, char type,
                                            sim_tensor_vector *to) {
    float values[16];
    uint32_t along = uint32_t(descriptor >> 16 & 0x3FFF) << 4;
    uint32_t across = uint32_t(descriptor >> 32 & 0x3FFF) << 4;
    uint32_t start = (uint32_t(descriptor & 0x3FFF) << 4) + row / 8 * across + row % 8 * 16;
    for (uint32_t half = 0; half < 2; half++) {
        uint16_t codes[8];
        memcpy(codes, emulated_pointer(emulated_mapped(start + half * along, emulated_rank())), 16);
        for (uint32_t k = 0; k < 8; k++)
            values[8 * half + k] = emulated_wgmma_wide(type, codes[k]);
    }
    sim_tensor_prepare(to, values, 16, emulated_wgmma_least(type));
}

/* Prepares one of the 16 rows of A, whose elements four threads hold. A thread has two pairs of
 * adjacent elements. The second pair begins 8 elements after the first one. */
static inline void emulated_wgmma_words_row(const uint64_t *values, char type,
                                            sim_tensor_vector *to) {
    float row[16];
    for (uint32_t i = 0; i < 16; i++)
        row[i] = emulated_wgmma_wide(
            type, uint32_t(values[i % 8 / 2] >> (32 * (i / 8) + 16 * (i % 2)) & 0xffff));
    sim_tensor_prepare(to, row, 16, emulated_wgmma_least(type));
}

/* Prepares the operands of a wgmma with A in registers: 16 rows of A, whose words the threads of
 * the warp have exchanged, and the columns of B in shared memory. */
static inline void emulated_wgmma_words_prepare(const uint64_t *values, const void *argument) {
    const emulated_wgmma_operands *o = static_cast<const emulated_wgmma_operands *>(argument);
    sim_tensor_vector *to = emulated_wgmma_memory(o->n);
    for (uint32_t i = 0; i < 16; i++)
        emulated_wgmma_words_row(values + 32 * (i / 8) + 4 * (i % 8), o->a_type, &to[i]);
    for (uint32_t i = 0; i < o->n; i++)
        emulated_wgmma_plain_row(o->b, i, o->b_type, &to[16 + i]);
}

/* Emulates wgmma with bf16 or f16 operands and A in registers. `a` holds this thread's four words
 * of the 16 rows of A of its warp. The words are read only when a thread waits for the wgmma, as on
 * hardware. A kernel that changes them too early therefore gets wrong results. */
static inline void emulated_wgmma_words(float *d, const uint32_t *a, uint64_t b, uint32_t add,
                                        uint32_t n, const char *types) {
    const char type = types[4];
    const uint64_t mine[2] = {uint64_t(a[2]) << 32 | a[0], uint64_t(a[3]) << 32 | a[1]};
    const emulated_wgmma_operands operands = {0, b, type, type, n, 0};
    emulated_exchange_words(mine, 2, emulated_wgmma_words_prepare, &operands);
    emulated_wgmma_add(
        d, add, n, 16,
        sim_tensor_rule_of(false, emulated_wgmma_least(type), emulated_wgmma_least(type)));
}

#endif
