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
    const char *name;  /* the peer's key in the command's output, for example "openblas" */
    const char *title; /* the heading of the peer's column, for example " sgemm" */
    const char *work;  /* a text for the heading of the output that says what the peer computes */
    /* The environment variable that names another file to load. Empty: there is none. */
    const char *variable;
    /* The library's usual file names, which are tried in order. NULL ends the list. */
    const char *files[2];
    bool (*load)(void *library, int threads, char *version, size_t size);
    void (*unload)(void); /* Unloads the library. It is NULL if nothing must be done. */
    /* Prepares a GEMM. Returns false if that is impossible. `release` must be called in both
     * cases. */
    bool (*prepare)(const bench_shape *shape);
    void (*run)(size_t turn);
    void (*release)(void);
} bench_peer;

enum { BENCH_PEERS = 2 };

/* The result of looking for a peer. */
typedef struct bench_found {
    const bench_peer *peer;
    /* The loaded library. If it is NULL, no library was found, and `file` is the last name that was
     * tried. */
    void *library;
    /* the name of the library's file, from the environment or one of the usual names */
    const char *file;
    /* the library and its version, for example "OpenBLAS 0.3.21, Cooperlake kernels" */
    char version[64];
} bench_found;

void bench_peers_open(bench_found found[BENCH_PEERS], int threads);
void bench_peers_close(bench_found found[BENCH_PEERS]);

/* Stores the address of a function in `function`, which points to a function pointer. */
bool bench_peer_symbol(void *library, const char *name, void *function);

extern const bench_peer bench_openblas, bench_onednn;

#endif
