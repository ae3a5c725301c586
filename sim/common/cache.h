/* Declares a cache of a time model. The caller chooses the size of a line and numbers the lines. */
#ifndef SIM_COMMON_CACHE_H
#define SIM_COMMON_CACHE_H
#include <stdbool.h>
#include <stdint.h>

typedef struct sim_cache sim_cache;
/* Makes an empty cache that holds up to `lines` lines. Returns NULL if memory runs out. */
sim_cache *sim_cache_new(uint32_t lines);
void sim_cache_free(sim_cache *cache);
/* Describes a cache line in a cache of a time model. */
typedef struct {
    double arrival; /* `arrival` is the cycle in which the cache line arrives. */
    bool dirty;     /* `dirty` is true if a store has written the line since it arrived. */
} sim_cache_line;
/* Finds a cache line. If the cache does not contain the line, the function inserts it as a clean
 * line and sets *hit to false. */
sim_cache_line *sim_cache_find(sim_cache *cache, uint32_t line, bool *hit);
#endif
