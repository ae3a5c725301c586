/* Counts executed instructions by opcode if the environment variable BSMM_SIM_FIDELITY is set. If
 * it names a file, the process appends a line "COUNT OPCODE vouched|ours" for each opcode to the
 * file when it ends. "vouched" means that tests with code of another project execute the opcode
 * too. */
#include "fidelity.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sim_record *records; /* `records` is a linked list that is sorted by name. */

static int compare(const void *name, const void *row) {
    return strcmp(name, *(const char *const *)row);
}

/* Returns the address of the pointer that points to the counter of opcode `name`. If there is no
 * such counter, returns the address of the pointer at which a new counter must be inserted. */
static sim_record **find(const char *name) {
    sim_record **at = &records;
    while (*at && strcmp((*at)->name, name) < 0)
        at = &(*at)->next;
    return at;
}

sim_record *sim_record_of(const char *name) {
    if (!getenv("BSMM_SIM_FIDELITY")) return NULL;
    sim_record *made = calloc(1, sizeof *made + strlen(name) + 1);
    if (!made) return NULL;
    strcpy(made->name, name);
    made->vouched =
        bsearch(made->name, sim_vouched, sim_vouched_count, sizeof *sim_vouched, compare);
    pthread_mutex_lock(&lock);
    sim_record **at = find(made->name), *found = *at;
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
    for (const sim_record *r = records; r && result < 0; r = r->next) {
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
