/* Names the opcodes whose executions are counted (common/fidelity.h). */
#include "fidelity.h"
#include <stdlib.h>
#include <string.h>

const char *const sim_vouched[] = {
#define VOUCHED(opcode) opcode,
#include "vouched.def"
#undef VOUCHED
};
const size_t sim_vouched_count = sizeof sim_vouched / sizeof *sim_vouched;

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

sim_record *ptx_record_of(const char *opcode) {
    char *name = malloc(strlen(opcode) + 1);
    if (!name) return NULL;
    copy_name(name, opcode);
    sim_record *record = sim_record_of(name);
    free(name);
    return record;
}
