/* Lists the opcodes that tests with kernels of other projects execute, and makes the names under
 * which executed opcodes are counted (common/fidelity.h). */
#include "fidelity.h"
#include <stdlib.h>
#include <string.h>

const char *const sim_vouched[] = {
#define VOUCHED(opcode) opcode,
#include "vouched.def"
#undef VOUCHED
};
const size_t sim_vouched_count = sizeof sim_vouched / sizeof *sim_vouched;

/* Returns true for an opcode, such as a load, for which only the width of its 32-bit or 64-bit type
 * matters. */
static bool is_untyped(const char *opcode) {
    static const char *const bases[] = {"ld.", "st.", "mov.", "selp."};
    for (size_t k = 0; k < sizeof bases / sizeof *bases; k++)
        if (strncmp(opcode, bases[k], strlen(bases[k])) == 0) return true;
    return false;
}

/* Returns true if the part `token` of an opcode is a cache hint. .L2::cache_hint does not count,
 * because an opcode with it has one more operand. */
static bool is_hint(const char *token) {
    return (strncmp(token, ".L1::", 5) == 0 || strncmp(token, ".L2::", 5) == 0) &&
           strncmp(token, ".L2::cache_hint", 15) != 0;
}

/* Copies the name under which an opcode is counted. The copied name has no cache hints. If only the
 * width of a type matters, the type becomes b32 or b64. */
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
