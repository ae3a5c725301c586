#include "peer.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static const bench_peer *const peers[BENCH_PEERS] = {&bench_openblas, &bench_onednn};

/* Finds a function of a library. ISO C has no cast from dlsym's data pointer to a function pointer,
 * so the function copies the pointer with memcpy. POSIX guarantees that this works. */
bool bench_peer_symbol(void *library, const char *name, void *function) {
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static void open_file(bench_found *found, const char *file, int threads) {
    found->file = file;
    found->library = *file ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!found->library) return;
    if (found->peer->load(found->library, threads, found->version, sizeof found->version)) return;
    dlclose(found->library);
    found->library = NULL;
}

static void open_peer(bench_found *found, const bench_peer *peer, int threads) {
    const char *named = getenv(peer->variable);
    const char *const usual[] = {named ? named : peer->files[0], named ? NULL : peer->files[1]};
    *found = (bench_found){.peer = peer};
    for (int i = 0; i < 2 && usual[i] && !found->library; i++)
        open_file(found, usual[i], threads);
}

void bench_peers_open(bench_found found[BENCH_PEERS], int threads) {
    for (int i = 0; i < BENCH_PEERS; i++)
        open_peer(&found[i], peers[i], threads);
}

void bench_peers_close(bench_found found[BENCH_PEERS]) {
    for (int i = 0; i < BENCH_PEERS; i++) {
        if (!found[i].library) continue;
        if (found[i].peer->unload) found[i].peer->unload();
        dlclose(found[i].library);
    }
}
