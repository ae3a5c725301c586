/* Declares the order in which a replay of the time models continues waves (warps on NVIDIA): the
 * wave with the earliest time first, and of waves with the same time the one with the lowest
 * number. */
#ifndef SIM_COMMON_TURNS_H
#define SIM_COMMON_TURNS_H
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    double time;
    uint32_t wave;
} sim_turn;
/* Holds a binary heap of the waves that can continue. at[0] is the next turn. */
typedef struct {
    sim_turn *at;
    uint32_t count;
} sim_turns;

/* Makes room for `waves` waves. Returns false if memory runs out. */
bool sim_turns_make(sim_turns *t, uint32_t waves);
void sim_turns_free(sim_turns *t);
/* Adds a turn for a wave that has no turn in the heap. The wave can continue at `time`. */
void sim_turns_push(sim_turns *t, double time, uint32_t wave);
/* Removes the next turn and returns its wave. */
uint32_t sim_turns_pop(sim_turns *t);
#endif
