/* Device memory of the simulators. */
#ifndef SIM_COMMON_MEMORY_H
#define SIM_COMMON_MEMORY_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Allocates device memory. Returns NULL if there is no memory left. */
void *sim_memory_alloc(size_t bytes);
bool sim_memory_free(void *pointer);
/* Finds the allocation that contains `address`: its first byte and its size. Returns false if there
 * is none. */
bool sim_memory_find(uint64_t address, uint64_t *begin, uint64_t *size);
/* The caller of sim_memory_alloc can attach two numbers to an allocation, its kind of memory and
 * its device. sim_memory_marked returns them. */
void sim_memory_mark(void *pointer, int type, int device);
void sim_memory_marked(uint64_t address, int *type, int *device);
#endif
