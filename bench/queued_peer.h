/* Another library's products on the device of a row of devices.def, loaded at run time. */
#ifndef BENCH_QUEUED_PEER_H
#define BENCH_QUEUED_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BENCH_WAYS = 3 }; /* in which a peer multiplies, at most */

typedef struct bench_queued_way {
    const char *name;  /* the key in the command's `peers`; NULL: no more ways */
    const char *title; /* a column's heading */
    const char *work;  /* what it does */
    uint32_t bits;     /* of an operand's element */
    bool is_ceiling;   /* of products whose operands have no more bits */
} bench_queued_way;

/* D = A B^T of M x N x K with results of `out`, over `sets` copies of random operands. */
typedef struct bench_queued_shape {
    int64_t m, n, k;
    uint32_t out; /* bsmm_elem: f32, f16 or bf16 */
    size_t sets;
} bench_queued_shape;

struct bench_device;

typedef struct bench_queued_peer {
    const char *option; /* what --peer calls it */
    const char *absent; /* said where it cannot be opened */
    bench_queued_way ways[BENCH_WAYS];

    /* NULL if it is not there. The device is the thread's current one. */
    void *(*open)(void);
    void (*close)(void *library);
    const char *(*version)(void *library); /* with its name */

    /* With the fastest of the algorithms that it offers. NULL where it has none, or without memory.
     * The operands live until bench_device_reset, the rest until destroy. */
    void *(*create)(void *library, struct bench_device *device, size_t way,
                    const bench_queued_shape *shape);
    void (*destroy)(void *product);          /* NULL is allowed */
    bool (*run)(void *product, size_t turn); /* a bench_work */
} bench_queued_peer;

#endif
