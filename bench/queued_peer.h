/* A peer on a device of devices.def: a library, loaded at run time, whose GEMMs bench measures
 * too. */
#ifndef BENCH_QUEUED_PEER_H
#define BENCH_QUEUED_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BENCH_WAYS = 3 }; /* the largest number of GEMM variants of a peer */

typedef struct bench_queued_way {
    const char *name;  /* The variant's key in the command's output. NULL ends the list. */
    const char *title; /* the heading of the variant's column in a table */
    const char *work;  /* a text that says what the variant computes */
    uint32_t bits;     /* the bits of an operand's element */
    /* True if the variant is a ceiling for GEMMs whose operands have no more bits. */
    bool is_ceiling;
} bench_queued_way;

/* The shape D = A B^T of M x N x K, over `sets` copies of random operands. */
typedef struct bench_queued_shape {
    int64_t m, n, k;
    uint32_t out; /* The element type of D (enum bsmm_elem): f32, f16 or bf16. */
    size_t sets;
} bench_queued_shape;

struct bench_device;

typedef struct bench_queued_peer {
    const char *option; /* the value of the option --peer that selects this peer */
    const char *absent; /* the message if the peer cannot be opened */
    bench_queued_way ways[BENCH_WAYS];

    /* Returns NULL if the library is not installed. The device is the thread's current one. */
    void *(*open)(void);
    void (*close)(void *library);
    const char *(*version)(void *library); /* Returns the name and version of the loaded library. */

    /* Makes a GEMM with the fastest of the algorithms that the library offers. Returns NULL if
     * there is none, or not enough memory. The operands live until bench_device_reset, and
     * everything else until `destroy`. */
    void *(*create)(void *library, struct bench_device *device, size_t way,
                    const bench_queued_shape *shape);
    void (*destroy)(void *product); /* Frees a prepared GEMM. A NULL argument is allowed. */
    /* A bench_work that queues the prepared GEMM on the device. */
    bool (*run)(void *product, size_t turn);
} bench_queued_peer;

#endif
