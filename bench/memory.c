#include "memory.h"
#include "samples.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#    include <immintrin.h>
#endif

/* LINE is the size of a cache line in bytes. A thread alternates between reading and writing a few
 * cache lines; one read and one write together move STEP lines. */
enum { LINE = 64, STEP = 32 };
static const size_t total = (size_t)256 << 20;
/* A measurement moves at least MOVED bytes. If the measured memory is smaller than that, each
 * thread reads and writes its part of the memory several times. The part of a thread has at least
 * LEAST_LINES cache lines. */
static const size_t MOVED = (size_t)32 << 20;
enum { LEAST_LINES = 64 };

bool bench_memory_create(bench_memory *memory) {
    memory->bytes = aligned_alloc(LINE, total);
    if (memory->bytes) memset(memory->bytes, 1, total);
    return memory->bytes != NULL;
}

void bench_memory_destroy(bench_memory *memory) {
    free(memory->bytes);
    memory->bytes = NULL;
}

/* Reads one word of each cache line. Even lines come from the first half of the memory and odd
 * lines from the second half, because the hardware prefetchers follow two streams better than
 * one. */
static uint64_t read_lines(const char *from, size_t half, size_t begin, size_t end) {
    uint64_t sum = 0, word;
    for (size_t i = begin; i < end; i++) {
        memcpy(&word, from + (i % 2 * half + i / 2) * LINE, sizeof word);
        sum += word;
    }
    return sum;
}

/* Writes cache lines with ordinary stores, which keep the lines in the caches. */
static void write_cached(char *to, size_t lines) {
    memset(to, 1, lines * LINE);
}

/* Writes cache lines, with non-temporal stores where the processor has them. Such stores do not
 * read a line before they write it. */
static void write_lines(char *to, size_t lines) {
#if defined(__x86_64__)
    const __m128i value = _mm_set1_epi8(1);
    for (size_t i = 0; i < lines * LINE; i += sizeof value)
        _mm_stream_si128((__m128i *)(void *)(to + i), value);
#else
    write_cached(to, lines);
#endif
}

/* Reads and writes the part of the memory that belongs to one thread. The thread only reads the
 * first `read_part` of the cache lines and only writes the rest. Reads and writes of a few lines
 * alternate. */
static uint64_t move(char *bytes, size_t lines, double read_part, void (*write)(char *, size_t)) {
    size_t reads = (size_t)((double)lines * read_part), writes = lines - reads;
    size_t steps = lines / STEP;
    char *to = bytes + reads * LINE;
    uint64_t sum = 0;
    for (size_t i = 0; i < steps; i++) {
        size_t begin = writes * i / steps, end = writes * (i + 1) / steps;
        sum += read_lines(bytes, (reads + 1) / 2, reads * i / steps, reads * (i + 1) / steps);
        write(to + begin * LINE, end - begin);
    }
    return sum;
}

/* Lets each thread pass over its cache lines `passes` times. Returns the bytes moved per second. */
static double move_all(const bench_memory *memory, size_t lines, size_t passes, double read_part,
                       int threads, void (*write)(char *, size_t)) {
    uint64_t sink = 0;
    double started = 0;
#pragma omp parallel num_threads(threads) reduction(+ : sink)
    {
#pragma omp barrier
#pragma omp master
        started = bench_now();
        for (size_t pass = 0; pass < passes; pass++)
            sink += move(memory->bytes + lines * LINE * (size_t)omp_get_thread_num(), lines,
                         read_part, write);
    }
    double elapsed = bench_now() - started;
    return sink ? (double)(lines * LINE) * (double)passes * threads / elapsed : 0;
}

double bench_memory_run(const bench_memory *memory, double read, double write, int threads) {
    return move_all(memory, total / LINE / (size_t)threads, 1, read / (read + write), threads,
                    write_lines);
}

double bench_memory_run_within(const bench_memory *memory, double read, double write, int threads) {
    const double bytes = read + write;
    if (bytes >= (double)total) return bench_memory_run(memory, read, write, threads);
    size_t lines = (size_t)bytes / LINE / (size_t)threads;
    if (lines < LEAST_LINES) lines = LEAST_LINES;
    const size_t passes = MOVED / (lines * LINE * (size_t)threads) + 1;
    const double cached = move_all(memory, lines, passes, read / bytes, threads, write_cached),
                 passing = move_all(memory, lines, passes, read / bytes, threads, write_lines);
    return cached > passing ? cached : passing;
}

double bench_memory_best(double read, double write, int threads) {
    bench_memory memory;
    double best = 0;
    if (!bench_memory_create(&memory)) return 0;
    for (int i = 0; i < 5; i++) {
        double rate = bench_memory_run(&memory, read, write, threads);
        if (rate > best) best = rate;
    }
    bench_memory_destroy(&memory);
    return best;
}
