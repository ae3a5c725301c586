/* Declares conversions of float formats of at most 16 bits. They use the library's tables of
 * formats. */
#ifndef EMULATED_CUDA_PTX_VALUES_H
#define EMULATED_CUDA_PTX_VALUES_H

extern "C" {
double emulated_decode(uint32_t elem, uint32_t code);
uint32_t emulated_encode(uint32_t elem, double value);
}

enum { EMULATED_BF16, EMULATED_F16, EMULATED_E4M3, EMULATED_E5M2 };

static inline float emulated_value(uint32_t elem, uint32_t code) {
    return float(emulated_decode(elem, code));
}
static inline uint32_t emulated_pair(uint32_t elem, uint32_t bits, double high, double low) {
    return emulated_encode(elem, high) << bits | emulated_encode(elem, low);
}

/* Applies f to the lower and to the upper 16 bits of the registers, and returns the two results as
 * a pair of 16-bit floats. */
template <typename F>
static inline uint32_t emulated_halves(uint32_t elem, uint32_t a, uint32_t b, uint32_t c, F f) {
    double part[2];
    for (int i = 0; i < 2; i++)
        part[i] = f(emulated_decode(elem, a >> 16 * i & 0xffff),
                    emulated_decode(elem, b >> 16 * i & 0xffff),
                    emulated_decode(elem, c >> 16 * i & 0xffff));
    return emulated_pair(elem, 16, part[1], part[0]);
}

#endif
