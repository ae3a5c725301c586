#include "probe.h"
#include "samples.h"

#include <omp.h>
#include <string.h>

/* CHAINS is the number of independent dependency chains. It is larger than the latency of an
 * instruction (in cycles) times the number of arithmetic units, so the units are always busy. All
 * chains fit in the registers. */
enum { CHAINS = 12 };

static bool always(void) {
    return true;
}

/* These variables are volatile, so the compiler cannot compute the measured loops in advance. A
 * loop multiplies a vector by 1 or adds 0 to it, and its values stay constant. */
static volatile float one = 1, zero = 0;

typedef float vec4 __attribute__((vector_size(16)));

static double f32_portable(uint32_t rounds) {
    vec4 chain[CHAINS], factor = {one, one, one, one}, addend = {zero, zero, zero, zero};
    for (int i = 0; i < CHAINS; i++)
        chain[i] = factor;
    for (uint32_t round = 0; round < rounds; round++)
        for (int i = 0; i < CHAINS; i++)
            chain[i] = chain[i] * factor + addend;
    vec4 sum = chain[0];
    for (int i = 1; i < CHAINS; i++)
        sum += chain[i];
    return (double)sum[0];
}

#if defined(__x86_64__)

#    include <immintrin.h>

static bool has_avx2(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
static bool has_avx512(void) {
    return __builtin_cpu_supports("avx512f");
}
static bool has_bf16(void) {
    return has_avx512() && __builtin_cpu_supports("avx512bf16");
}
static bool has_vnni(void) {
    return has_avx512() && __builtin_cpu_supports("avx512vnni");
}

__attribute__((target("avx2,fma"))) static double f32_avx2(uint32_t rounds) {
    __m256 chain[CHAINS], factor = _mm256_set1_ps(one), addend = _mm256_set1_ps(zero);
    for (int i = 0; i < CHAINS; i++)
        chain[i] = factor;
    for (uint32_t round = 0; round < rounds; round++)
        for (int i = 0; i < CHAINS; i++)
            chain[i] = _mm256_fmadd_ps(chain[i], factor, addend);
    for (int i = 1; i < CHAINS; i++)
        chain[0] = _mm256_add_ps(chain[0], chain[i]);
    return (double)_mm256_cvtss_f32(chain[0]);
}

/* Multiplies int8 values, adds each pair of products in int16, and adds the results to the chains
 * (independent sums). The empty asm statement pretends to change `factor`, so that the compiler
 * does not move the multiplication out of the loop. */
__attribute__((target("avx2"))) static double int8_avx2(uint32_t rounds) {
    __m256i chain[CHAINS], factor = _mm256_set1_epi8((char)one);
    for (int i = 0; i < CHAINS; i++)
        chain[i] = _mm256_set1_epi8((char)zero);
    for (uint32_t round = 0; round < rounds; round++)
        for (int i = 0; i < CHAINS; i++) {
            __asm__("" : "+x"(factor));
            chain[i] = _mm256_add_epi16(chain[i], _mm256_maddubs_epi16(factor, factor));
        }
    for (int i = 1; i < CHAINS; i++)
        chain[0] = _mm256_add_epi16(chain[0], chain[i]);
    return _mm256_extract_epi16(chain[0], 0);
}

__attribute__((target("avx512f"))) static double f32_avx512(uint32_t rounds) {
    __m512 chain[CHAINS], factor = _mm512_set1_ps(one), addend = _mm512_set1_ps(zero);
    for (int i = 0; i < CHAINS; i++)
        chain[i] = factor;
    for (uint32_t round = 0; round < rounds; round++)
        for (int i = 0; i < CHAINS; i++)
            chain[i] = _mm512_fmadd_ps(chain[i], factor, addend);
    for (int i = 1; i < CHAINS; i++)
        chain[0] = _mm512_add_ps(chain[0], chain[i]);
    return (double)_mm512_cvtss_f32(chain[0]);
}

__attribute__((target("avx512f,avx512bf16"))) static double bf16_dot(uint32_t rounds) {
    __m512 chain[CHAINS];
    __m512bh factor = (__m512bh)_mm512_set1_ps(one);
    for (int i = 0; i < CHAINS; i++)
        chain[i] = _mm512_set1_ps(zero);
    for (uint32_t round = 0; round < rounds; round++)
        for (int i = 0; i < CHAINS; i++)
            chain[i] = _mm512_dpbf16_ps(chain[i], factor, factor);
    for (int i = 1; i < CHAINS; i++)
        chain[0] = _mm512_add_ps(chain[0], chain[i]);
    return (double)_mm512_cvtss_f32(chain[0]);
}

__attribute__((target("avx512f,avx512vnni"))) static double int8_dot(uint32_t rounds) {
    __m512i chain[CHAINS], factor = _mm512_set1_epi8((char)one);
    for (int i = 0; i < CHAINS; i++)
        chain[i] = _mm512_setzero_si512();
    for (uint32_t round = 0; round < rounds; round++)
        for (int i = 0; i < CHAINS; i++)
            chain[i] = _mm512_dpbusd_epi32(chain[i], factor, factor);
    for (int i = 1; i < CHAINS; i++)
        chain[0] = _mm512_add_epi32(chain[0], chain[i]);
    return _mm512_cvtsi512_si32(chain[0]);
}

#endif

static const bench_probe probes[] = {
    {"f32_sse", "f32", always, f32_portable, 2.0 * CHAINS * 4},
#if defined(__x86_64__)
    {"f32_fma_avx2", "f32", has_avx2, f32_avx2, 2.0 * CHAINS * 8},
    {"f32_fma_avx512", "f32", has_avx512, f32_avx512, 2.0 * CHAINS * 16},
    {"int8_dot_avx2", "f6", has_avx2, int8_avx2, 2.0 * CHAINS * 32},
    {"int8_dot_avx2", "f4", has_avx2, int8_avx2, 2.0 * CHAINS * 32},
    {"bf16_dot_avx512", "f16", has_bf16, bf16_dot, 2.0 * CHAINS * 32},
    {"int8_dot_avx512", "f6", has_vnni, int8_dot, 2.0 * CHAINS * 64},
    {"int8_dot_avx512", "f4", has_vnni, int8_dot, 2.0 * CHAINS * 64},
#endif
};

const bench_probe *bench_probe_at(uint32_t index) {
    return index < sizeof probes / sizeof probes[0] ? &probes[index] : NULL;
}

static const bench_probe *find(const char *unit) {
    const bench_probe *found = NULL;
    for (uint32_t i = 0; bench_probe_at(i); i++)
        if (strcmp(probes[i].unit, unit) == 0 && probes[i].available()) found = &probes[i];
    return found;
}

const bench_probe *bench_probe_of(const char *unit) {
    const bench_probe *found = find(unit);
    return found ? found : find("f32");
}

/* Runs the measured loop in all threads, which start at the same time. The measured time ends when
 * the slowest thread ends, as it does for a GEMM. */
static double time_rounds(const bench_probe *probe, int threads, uint32_t rounds) {
    double started = 0, sink = 0;
#pragma omp parallel num_threads(threads) reduction(+ : sink)
    {
#pragma omp barrier
#pragma omp master
        started = bench_now();
        sink += probe->work(rounds);
    }
    double elapsed = bench_now() - started;
    return elapsed + 0 * sink;
}

double bench_probe_run(const bench_probe *probe, int threads) {
    /* TRIAL is the number of rounds of the measured loop in a first trial. A trial of this length
     * takes much longer than waking the threads. */
    enum { TRIAL = 100000 };
    static const double target = 2e-3;
    double trial = time_rounds(probe, threads, TRIAL);
    uint32_t rounds = (uint32_t)(TRIAL * (trial < target ? target / trial : 1));
    return probe->per_round * rounds * threads / time_rounds(probe, threads, rounds);
}

const bench_probe *bench_probe_ceiling(const char *unit) {
    const bench_probe *own = bench_probe_of(unit), *f32 = find("f32");
    if (own == f32) return f32;
    return bench_probe_best(own, 1) > bench_probe_best(f32, 1) ? own : f32;
}

double bench_probe_best(const bench_probe *probe, int threads) {
    double best = 0;
    for (int i = 0; i < 5; i++) {
        double rate = bench_probe_run(probe, threads);
        if (rate > best) best = rate;
    }
    return best;
}
