/* Declares a peer on a GPU, i.e. another library, loaded at run time, whose GEMMs bench measures
 * too. */
#ifndef BENCH_QUEUED_PEER_H
#define BENCH_QUEUED_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* BENCH_WAYS is the largest number of kinds of GEMM that bench measures of one other library. */
enum { BENCH_WAYS = 3 };

typedef struct bench_queued_way {
    const char *name;  /* `name` is the variant's key in JSON output. NULL ends the list. */
    const char *title; /* `title` is the heading of the variant's column in a table. */
    const char *work;  /* `work` says what the variant computes. */
    uint32_t bits;     /* `bits` is the number of bits of an element of A and B. */
    /* If `is_ceiling` is true, the rate of this variant is a ceiling (an upper limit) for bsmm's
     * GEMMs whose elements of A and B have at most `bits` bits. */
    bool is_ceiling;
} bench_queued_way;

/* Describes a GEMM D = A B^T by its sizes M, N and K and the number of copies of its operands. */
typedef struct bench_queued_shape {
    int64_t m, n, k;
    uint32_t out; /* `out` is the element format of D (a bsmm_elem), i.e. f32, f16 or bf16. */
    size_t sets;
} bench_queued_shape;

struct bench_device;

typedef struct bench_queued_peer {
    const char *option; /* `option` is the value of the option --peer that selects this library. */
    const char *absent; /* `absent` is the message if the library cannot be opened. */
    bench_queued_way ways[BENCH_WAYS];

    /* `open` opens the other library (the peer) for the current device of this thread. It returns
     * NULL if the peer is not installed. */
    void *(*open)(void);
    void (*close)(void *library);
    /* `version` returns the name and version of the loaded library. */
    const char *(*version)(void *library);

    /* Prepares a GEMM with the fastest algorithm of the peer library. Returns NULL if there is no
     * algorithm or not enough memory. The operands live until bench_device_reset, and everything
     * else lives until `destroy`. */
    void *(*create)(void *library, struct bench_device *device, size_t way,
                    const bench_queued_shape *shape);
    void (*destroy)(void *product); /* `destroy` frees a prepared GEMM. Its argument may be NULL. */
    /* `run` queues the prepared GEMM on the device. The operands have several copies in device
     * memory, and the GEMM uses copy number `turn` modulo the number of copies. */
    bool (*run)(void *product, size_t turn);
} bench_queued_peer;

#endif
