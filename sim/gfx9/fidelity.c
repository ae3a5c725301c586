/* Names the opcodes whose executions are counted (common/fidelity.h). */
#include "sim.h"
#include <stdio.h>
#include <string.h>

const char *const sim_vouched[] = {
#define VOUCHED(opcode) opcode,
#include "vouched.def"
#undef VOUCHED
};
const size_t sim_vouched_count = sizeof sim_vouched / sizeof *sim_vouched;

sim_record *gfx9_record_of(const gfx9_inst *i) {
    static const char *const types[] = {"e4m3", "e5m2", "e2m3", "e3m2", "e2m1", "?", "?", "?"};
    char name[96];
    const int length = snprintf(name, 64, "%s%s", i->row->name,
                                i->sdwa  ? "_sdwa"
                                : i->dpp ? "_dpp"
                                : i->lds ? "_lds"
                                         : "");
    if (strstr(name, "f8f6f4"))
        snprintf(name + length, 32, "[%s,%s]", types[i->cbsz & 7], types[i->blgp & 7]);
    return sim_record_of(name);
}
