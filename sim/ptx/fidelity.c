/* Counts executed instructions by opcode if the environment variable BSMM_SIM_FIDELITY is set. If
 * the variable names a file, the process appends a line "COUNT OPCODE vouched|ours" for each opcode
 * to the file when it ends. An opcode is vouched for if a kernel of another project has executed it
 * in a test that compares the kernel's results with NumPy's. vouched.def lists these opcodes. */
#include "fidelity.h"
#include "cuda.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const vouched[] = {
#define VOUCHED(opcode) opcode,
#include "vouched.def"
#undef VOUCHED
    NULL,
};
enum { VOUCHED = sizeof vouched / sizeof *vouched - 1 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ptx_record *records; /* Sorted by name. */

static int compare(const void *name, const void *row) {
    return strcmp(name, *(const char *const *)row);
}

/* Returns true for an opcode whose 32-bit and 64-bit types do not matter, only their width. */
static bool is_untyped(const char *opcode) {
    static const char *const bases[] = {"ld.", "st.", "mov.", "selp."};
    for (size_t k = 0; k < sizeof bases / sizeof *bases; k++)
        if (strncmp(opcode, bases[k], strlen(bases[k])) == 0) return true;
    return false;
}

/* Returns true if a token is a hint for caches. L2::cache_hint also adds an operand, so it counts
 * as a part of the opcode. */
static bool is_hint(const char *token) {
    return (strncmp(token, ".L1::", 5) == 0 || strncmp(token, ".L2::", 5) == 0) &&
           strncmp(token, ".L2::cache_hint", 15) != 0;
}

/* Copies the name under which an opcode is counted: without hints for caches, and with the type b32
 * or b64 if only the type's width matters. */
static void copy_name(char *to, const char *opcode) {
    const bool untyped = is_untyped(opcode);
    while (*opcode) {
        const size_t length = 1 + strcspn(opcode + 1, ".");
        const bool typed = untyped && length == 4 && strchr("usf", opcode[1]) &&
                           (strncmp(opcode + 2, "32", 2) == 0 || strncmp(opcode + 2, "64", 2) == 0);
        if (!is_hint(opcode)) {
            memcpy(to, opcode, length);
            if (typed) to[1] = 'b';
            to += length;
        }
        opcode += length;
    }
    *to = '\0';
}

/* Returns the address of the pointer to the first counter whose opcode is not below `name`. */
static ptx_record **find(const char *name) {
    ptx_record **at = &records;
    while (*at && strcmp((*at)->name, name) < 0)
        at = &(*at)->next;
    return at;
}

ptx_record *ptx_record_of(const char *opcode) {
    if (!getenv("BSMM_SIM_FIDELITY")) return NULL;
    ptx_record *made = calloc(1, sizeof *made + strlen(opcode) + 1);
    if (!made) return NULL;
    copy_name(made->name, opcode);
    made->vouched = bsearch(made->name, vouched, VOUCHED, sizeof *vouched, compare) != NULL;
    pthread_mutex_lock(&lock);
    ptx_record **at = find(made->name), *found = *at;
    if (found && strcmp(found->name, made->name) == 0)
        free(made);
    else
        made->next = found, *at = found = made;
    pthread_mutex_unlock(&lock);
    return found;
}

int bsmm_sim_fidelity(unsigned number, const char **opcode, uint64_t *count) {
    int result = -1;
    pthread_mutex_lock(&lock);
    for (const ptx_record *r = records; r && result < 0; r = r->next) {
        *count = __atomic_load_n(&r->count, __ATOMIC_RELAXED);
        if (*count && number-- == 0) *opcode = r->name, result = r->vouched;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

__attribute__((destructor)) static void write_records(void) {
    const char *path = getenv("BSMM_SIM_FIDELITY"), *opcode = NULL;
    FILE *f = path && *path && records ? fopen(path, "a") : NULL;
    uint64_t count = 0;
    int state;
    if (!f) return;
    for (unsigned n = 0; (state = bsmm_sim_fidelity(n, &opcode, &count)) >= 0; n++)
        fprintf(f, "%llu %s %s\n", (unsigned long long)count, opcode, state ? "vouched" : "ours");
    fclose(f);
}
