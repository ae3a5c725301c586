/* Declares peers, i.e. other libraries whose GEMMs bench times on the same shape. bench loads a
 * peer at run time if it is installed. */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include <bsmm.h>
#include <stdbool.h>
#include <stddef.h>

/* Describes the operands of the GEMM of a peer (another library), which are row-major fp32 matrices
 * A (M, K) and B (N, K). The matrices live longer than the peer's work. If `cold` is set, the peer
 * must read B from memory instead of a cache in every run. */
typedef struct bench_shape {
    const bsmm_matrix *a, *b;
    bool cold;
} bench_shape;

/* Describes a peer, i.e. another library. A peer has global state, so bench can prepare it for only
 * one shape at a time. */
typedef struct bench_peer {
    const char *name; /* `name` is the peer's key in JSON output, such as "openblas". */
    /* `title` is the heading of the library's column in a table, such as " sgemm". */
    const char *title;
    /* `work` is the text in the heading of the output that says what the peer library computes. */
    const char *work;
    /* `variable` is the environment variable that names another library file to load, or an empty
     * text. */
    const char *variable;
    /* `files` holds the usual file names of the library, which bench tries in order. NULL ends the
     * list. */
    const char *files[2];
    bool (*load)(void *library, int threads, char *version, size_t size);
    /* `unload` unloads the library. It is NULL if there is nothing to unload. */
    void (*unload)(void);
    /* `prepare` prepares a GEMM. It returns false if the peer library cannot compute the GEMM. The
     * caller must call `release` in either case. */
    bool (*prepare)(const bench_shape *shape);
    void (*run)(size_t turn);
    void (*release)(void);
} bench_peer;

enum { BENCH_PEERS = 2 };

/* Holds the result of the search for a peer, i.e. for another library with which bench compares. */
typedef struct bench_found {
    const bench_peer *peer;
    /* `library` is the handle of the loaded library. If it is NULL, bench found no library, and
     * `file` is the last file name that it tried. */
    void *library;
    /* `file` is the name of the library's file. The environment variable `variable` may set it;
     * otherwise it is one of the usual names. */
    const char *file;
    /* `version` is the name and version of the library, such as "OpenBLAS 0.3.21, Cooperlake
     * kernels". */
    char version[64];
} bench_found;

void bench_peers_open(bench_found found[BENCH_PEERS], int threads);
void bench_peers_close(bench_found found[BENCH_PEERS]);

/* Finds a function of a library and stores its address at `function`, a pointer to a function
 * pointer. Returns false if the library has no such function. */
bool bench_peer_symbol(void *library, const char *name, void *function);

extern const bench_peer bench_openblas, bench_onednn;

#endif
