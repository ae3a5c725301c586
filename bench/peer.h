/* Peers: other libraries whose GEMMs are timed on the same shape. A peer is loaded at run time if
 * it is installed. */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include <bsmm.h>
#include <stdbool.h>
#include <stddef.h>

/* The operands of a peer's GEMM: dense row-major fp32 matrices A (M, K) and B (N, K). They live
 * longer than the peer's work. If `cold` is set, the peer must read B from memory, and not from a
 * cache, in every run. */
typedef struct bench_shape {
    const bsmm_matrix *a, *b;
    bool cold;
} bench_shape;

/* A peer. Its state is global, so it can be prepared for only one shape at a time. */
typedef struct bench_peer {
    const char *name;  /* key of the peer in the command's JSON output, such as "openblas" */
    const char *title; /* heading of the peer's column in a table, such as " sgemm" */
    const char *work;  /* text in the heading of the output that says what the peer computes */
    /* Environment variable that names another library file to load; empty: there is none. */
    const char *variable;
    /* Usual file names of the library, which are tried in order; NULL ends the list. */
    const char *files[2];
    bool (*load)(void *library, int threads, char *version, size_t size);
    void (*unload)(void); /* unloads the library; NULL: nothing needs to be done */
    /* Prepares a GEMM. Returns false if the peer cannot compute it. `release` must be called in
     * either case. */
    bool (*prepare)(const bench_shape *shape);
    void (*run)(size_t turn);
    void (*release)(void);
} bench_peer;

enum { BENCH_PEERS = 2 };

/* The result of looking for a peer's library. */
typedef struct bench_found {
    const bench_peer *peer;
    /* Handle of the loaded library. If it is NULL, no library was found, and `file` is the last
     * name that was tried. */
    void *library;
    /* name of the library's file: from the environment variable, or one of the usual names */
    const char *file;
    /* name and version of the library, such as "OpenBLAS 0.3.21, Cooperlake kernels" */
    char version[64];
} bench_found;

void bench_peers_open(bench_found found[BENCH_PEERS], int threads);
void bench_peers_close(bench_found found[BENCH_PEERS]);

/* Finds a function of a library and stores its address at `function`, a pointer to a function
 * pointer. Returns false if the library has no such function. */
bool bench_peer_symbol(void *library, const char *name, void *function);

extern const bench_peer bench_openblas, bench_onednn;

#endif
