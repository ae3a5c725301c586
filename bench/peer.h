/* Peers: GEMMs of other libraries on the same shape. They are loaded at run time if they are
 * installed. */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include <bsmm.h>
#include <stdbool.h>
#include <stddef.h>

/* The operands of a peer: dense row-major fp32 matrices (M, K) and (N, K) that outlive the peer's
 * work. If `cold` is set, B comes from memory in every run. */
typedef struct bench_shape {
    const bsmm_matrix *a, *b;
    bool cold;
} bench_shape;

/* A peer. It stores its state itself, so it can be prepared for one shape at a time only. */
typedef struct bench_peer {
    const char *name;     /* key in the command's output, for example "openblas" */
    const char *title;    /* heading of the column, for example " sgemm" */
    const char *work;     /* what the peer computes, for the heading of the output */
    const char *variable; /* environment variable that names another file; empty: none */
    const char *files[2]; /* the usual file names, tried in order; NULL: no more */
    bool (*load)(void *library, int threads, char *version, size_t size);
    void (*unload)(void); /* Unloads the library. It is NULL if nothing must be done. */
    /* returns false if it cannot; `release` is called anyway */
    bool (*prepare)(const bench_shape *shape);
    void (*run)(size_t turn);
    void (*release)(void);
} bench_peer;

enum { BENCH_PEERS = 2 };

/* The result of looking for a peer. */
typedef struct bench_found {
    const bench_peer *peer;
    void *library; /* NULL if no library was found; `file` is then the last name that was tried */
    const char *file; /* file name, from the environment or one of the usual ones */
    /* the library and its version, for example "OpenBLAS 0.3.21, Cooperlake kernels" */
    char version[64];
} bench_found;

void bench_peers_open(bench_found found[BENCH_PEERS], int threads);
void bench_peers_close(bench_found found[BENCH_PEERS]);

/* Stores the address of a function in `function`, which points to a function pointer. */
bool bench_peer_symbol(void *library, const char *name, void *function);

extern const bench_peer bench_openblas, bench_onednn;

#endif
