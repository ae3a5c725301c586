/* Others' products on the same shape, loaded at run time where they are installed. */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include <bsmm.h>
#include <stdbool.h>
#include <stddef.h>

/* What a peer multiplies: fp32 matrices (M, K) and (N, K), dense rows, that outlive the peer's
 * work on them. cold: B comes from memory in every run. */
typedef struct bench_shape {
    const bsmm_matrix *a, *b;
    bool cold;
} bench_shape;

/* A peer keeps its state itself: one is prepared for one shape at a time. */
typedef struct bench_peer {
    const char *name;     /* the key in the command's `peers`: "openblas" */
    const char *title;    /* a column's heading: " sgemm" */
    const char *work;     /* what it does, for the heading of the output */
    const char *variable; /* of the environment that names another file; empty: none */
    const char *files[2]; /* the usual ones, tried in turn; NULL: no more */
    bool (*load)(void *library, int threads, char *version, size_t size);
    void (*unload)(void);                      /* may be NULL */
    bool (*prepare)(const bench_shape *shape); /* false: it cannot; release is called anyway */
    void (*run)(size_t turn);
    void (*release)(void);
} bench_peer;

enum { BENCH_PEERS = 2 };

/* A row of the table of peers, and whether and what it found. */
typedef struct bench_found {
    const bench_peer *peer;
    void *library;    /* NULL: not there, and `file` was looked for last */
    const char *file; /* of the environment, or a usual one */
    char version[64]; /* "OpenBLAS 0.3.21, Cooperlake kernels" */
} bench_found;

void bench_peers_open(bench_found found[BENCH_PEERS], int threads);
void bench_peers_close(bench_found found[BENCH_PEERS]);

/* The function of that name, into a pointer to a pointer to a function. */
bool bench_peer_symbol(void *library, const char *name, void *function);

extern const bench_peer bench_openblas, bench_onednn;

#endif
