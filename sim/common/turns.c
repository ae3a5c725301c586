/* Keeps the waves of a time model in a binary heap, ordered by the time at which they continue. */
#include "turns.h"
#include <stdlib.h>

static bool before(const sim_turn *a, const sim_turn *b) {
    return a->time < b->time || (a->time == b->time && a->wave < b->wave);
}

bool sim_turns_make(sim_turns *t, uint32_t waves) {
    *t = (sim_turns){calloc(waves, sizeof *t->at), 0};
    return t->at != NULL;
}

void sim_turns_free(sim_turns *t) {
    free(t->at);
}

void sim_turns_push(sim_turns *t, double time, uint32_t wave) {
    const sim_turn new = {time, wave};
    uint32_t at = t->count++;
    for (; at && before(&new, &t->at[(at - 1) / 2]); at = (at - 1) / 2)
        t->at[at] = t->at[(at - 1) / 2];
    t->at[at] = new;
}

uint32_t sim_turns_pop(sim_turns *t) {
    const uint32_t top = t->at[0].wave;
    const sim_turn last = t->at[--t->count];
    uint32_t at = 0;
    for (uint32_t next; (next = 2 * at + 1) < t->count; at = next) {
        if (next + 1 < t->count && before(&t->at[next + 1], &t->at[next])) next++;
        if (!before(&t->at[next], &last)) break;
        t->at[at] = t->at[next];
    }
    t->at[at] = last;
    return top;
}
