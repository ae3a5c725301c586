/* Defines functions on floats for both simulators. They convert floats from and to their bits, and
 * return the minimum and maximum of two floats. */
#ifndef SIM_COMMON_FLOATS_H
#define SIM_COMMON_FLOATS_H
#include <stdint.h>
#include <string.h>

static inline uint32_t sim_bits(float v) {
    uint32_t bits;
    memcpy(&bits, &v, 4);
    return bits;
}
static inline float sim_float(uint32_t bits) {
    float v;
    memcpy(&v, &bits, 4);
    return v;
}
static inline uint64_t sim_bits64(double v) {
    uint64_t bits;
    memcpy(&bits, &v, 8);
    return bits;
}
static inline double sim_double(uint64_t bits) {
    double v;
    memcpy(&v, &bits, 8);
    return v;
}

/* These functions return the minimum or maximum of two numbers as the instructions of NVIDIA's and
 * AMD's GPUs do. If one source is NaN, the result is the other source. -0 is less than +0. */
static inline float min_f32(float a, float b) {
    const float zero = sim_float(sim_bits(a) | sim_bits(b));
    return a < b || b != b ? a : a == b ? zero : b;
}
static inline float max_f32(float a, float b) {
    const float zero = sim_float(sim_bits(a) & sim_bits(b));
    return a > b || b != b ? a : a == b ? zero : b;
}
static inline double min_f64(double a, double b) {
    const double zero = sim_double(sim_bits64(a) | sim_bits64(b));
    return a < b || b != b ? a : a == b ? zero : b;
}
static inline double max_f64(double a, double b) {
    const double zero = sim_double(sim_bits64(a) & sim_bits64(b));
    return a > b || b != b ? a : a == b ? zero : b;
}
#endif
