/* A peer on a device whose work is queued (a GPU): another library, loaded at run time, whose GEMMs
 * bench measures too. */
#ifndef BENCH_QUEUED_PEER_H
#define BENCH_QUEUED_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BENCH_WAYS = 3 }; /* largest number of GEMM variants of a peer */

typedef struct bench_queued_way {
    const char *name;  /* key of the variant in the command's output; NULL ends the list */
    const char *title; /* heading of the variant's column in a table */
    const char *work;  /* text that says what the variant computes */
    uint32_t bits;     /* bits of an element of A and B */
    /* True if the rate of the variant is a ceiling for our GEMMs whose elements have at most `bits`
     * bits. */
    bool is_ceiling;
} bench_queued_way;

/* The shape of a GEMM D = A B^T with sizes M, N and K, and the number of copies of its random
 * operands. */
typedef struct bench_queued_shape {
    int64_t m, n, k;
    uint32_t out; /* element format of D, a bsmm_elem: f32, f16 or bf16 */
    size_t sets;
} bench_queued_shape;

struct bench_device;

typedef struct bench_queued_peer {
    const char *option; /* value of the option --peer that selects this peer */
    const char *absent; /* message if the peer cannot be opened */
    bench_queued_way ways[BENCH_WAYS];

    /* Opens the library for the current device of this thread. Returns NULL if the library is not
     * installed. */
    void *(*open)(void);
    void (*close)(void *library);
    const char *(*version)(void *library); /* name and version of the loaded library */

    /* Prepares a GEMM with the fastest of the algorithms that the library offers. Returns NULL if
     * there is none, or if there is not enough memory. The operands live until bench_device_reset,
     * and everything else until `destroy`. */
    void *(*create)(void *library, struct bench_device *device, size_t way,
                    const bench_queued_shape *shape);
    void (*destroy)(void *product); /* frees a prepared GEMM; NULL is allowed */
    /* A bench_work function that queues the prepared GEMM on the device. */
    bool (*run)(void *product, size_t turn);
} bench_queued_peer;

#endif
