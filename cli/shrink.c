#define _GNU_SOURCE /* This macro makes sys/mman.h declare MAP_ANONYMOUS. */
#include "shrink.h"
#include "common.h"
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Describes a mapped file. The program never frees the list of mapped files, because the signal
 * handler may read it in another thread. */
typedef struct range {
    struct range *next;
    /* `file` points to the file that owns the mapping, or NULL after the file is closed. */
    const bsmm_file *file;
    char *path;
    /* `begin` and `end` are the address range of the mapping, in whole pages. */
    uintptr_t begin, end;
} range;

static range *_Atomic ranges;
static const char *_Atomic opening;
static const char *_Atomic shrunk;
static uintptr_t page_bytes;

const char *cli_shrunk(void) {
    return atomic_load(&shrunk);
}

bool cli_fail_shrunk(void) {
    return cli_shrunk() && cli_fail("%s", cli_shrunk());
}

static const range *find(uintptr_t address) {
    for (const range *r = atomic_load(&ranges); r; r = r->next)
        if (r->file && address >= r->begin && address < r->end) return r;
    return NULL;
}

/* If another program shortens a file that is mapped into memory, an access past the file's new end
 * raises SIGBUS. Handles this signal: maps zeros from the page of the access to the end of the
 * mapping, so that the access succeeds, and remembers the file for an error message. If the program
 * is still opening the file, the handler does not know the mapping, so it maps zeros for that page
 * only. */
static void note_fault(int number, siginfo_t *info, void *context) {
    (void)context;
    int error = errno;
    uintptr_t page = (uintptr_t)info->si_addr / page_bytes * page_bytes;
    const range *lost = find(page);
    const char *path = lost ? lost->path : atomic_load(&opening);
    size_t bytes = lost ? lost->end - page : page_bytes;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    bool ours = info->si_code == BUS_ADRERR && path;
    if (ours && mmap((void *)page, bytes, PROT_READ, flags, -1, 0) != MAP_FAILED)
        atomic_store(&shrunk, path);
    else
        /* The address is not in a mapped file. With the default handler, the access is repeated and
         * ends the program. */
        signal(number, SIG_DFL);
    errno = error;
}

static void install(void) {
    struct sigaction action = {.sa_sigaction = note_fault, .sa_flags = SA_SIGINFO | SA_RESTART};
    if (page_bytes) return;
    page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    sigaction(SIGBUS, &action, NULL);
}

void cli_shrink_opening(const char *path) {
    install();
    atomic_store(&opening, path);
}

void cli_shrink_watch(const bsmm_file *file) {
    bsmm_file_part part = BSMM_INIT(bsmm_file_part);
    for (uint64_t i = 0; !bsmm_file_part_at(file, i, &part); i++) {
        if (!part.bytes) continue;
        range *added = cli_alloc(1, sizeof *added);
        uintptr_t begin = (uintptr_t)part.data;
        added->file = file;
        added->path = strcpy(cli_alloc(strlen(part.path) + 1, 1), part.path);
        added->begin = begin;
        added->end = (begin + part.bytes + page_bytes - 1) / page_bytes * page_bytes;
        added->next = atomic_load(&ranges);
        atomic_store(&ranges, added);
    }
}

void cli_shrink_forget(const bsmm_file *file) {
    for (range *r = atomic_load(&ranges); r; r = r->next)
        if (r->file == file) r->file = NULL;
}
