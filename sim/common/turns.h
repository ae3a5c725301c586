/* Declares the order in which a time model continues waves (warps on NVIDIA). The wave with the
 * earliest time comes first, and of several waves with the same time the one with the lowest
 * number. */
#ifndef SIM_COMMON_TURNS_H
#define SIM_COMMON_TURNS_H
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    double time;
    uint32_t wave;
} sim_turn;
/* Holds a binary heap of the waves that can continue. at[0] is the wave that continues first. */
typedef struct {
    sim_turn *at;
    uint32_t count;
} sim_turns;

/* Makes room for `waves` waves. Returns false if there is not enough memory. */
bool sim_turns_make(sim_turns *t, uint32_t waves);
void sim_turns_free(sim_turns *t);
/* Adds a wave that is not in the heap. It can continue at `time`. */
void sim_turns_push(sim_turns *t, double time, uint32_t wave);
/* Removes the wave that continues first from the heap and returns its number. */
uint32_t sim_turns_pop(sim_turns *t);
#endif
