/* A GPU's threads on one processor, for tests of kernels without a GPU: each thread is a fiber,
 * each instruction that waits gives way to the others. What runs later on a GPU (copies, matrix
 * products) runs here as late as the program allows, or at a random moment, so that a missing wait
 * shows.
 *
 * It shows wrong results, accesses beyond an allocation's last page (driver.c), deadlocks. Not:
 * races between threads, the order of weakly ordered memory, speed. FP8 products are summed
 * exactly; the tensor cores keep about 14 bits. */
#ifndef EMULATED_CUDA_MACHINE_H
#define EMULATED_CUDA_MACHINE_H

#include "map.h"

#include <cstddef>
#include <cstdint>
#include <functional>

struct emulated_index {
    uint32_t x, y, z;
};

struct emulated_warp;
struct emulated_block;

/* The thread that runs. */
struct emulated_thread {
    emulated_index thread, block, threads, blocks; /* threadIdx, blockIdx, blockDim, gridDim */
    emulated_block *in;
    emulated_warp *warp;
    uint32_t lane;
};
extern emulated_thread *emulated_now;

/* Runs the others once. */
void emulated_give_way(void);

/* ---- warps and blocks ---- */

/* All lanes give a value and get everybody's; the array is good until the next exchange. */
const uint64_t *emulated_exchange(uint64_t value);
uint32_t emulated_ballot(bool value);

/* `threads` of the block meet at barrier `id`; 0: all that have not ended. */
void emulated_barrier(uint32_t id, uint32_t threads);
void emulated_cluster_arrive(void);
void emulated_cluster_wait(void);
uint32_t emulated_rank(void);
bool emulated_block_or(bool value);

/* ---- shared memory ---- */

/* Of this block, as large as the launch asked for. */
void *emulated_shared(void);

/* Shared-window addresses: of this block's shared memory or of static variables, and back. */
uint32_t emulated_address(const void *pointer);
void *emulated_pointer(uint32_t address);
uint32_t emulated_mapped(uint32_t address, uint32_t rank);

/* ---- what runs later ---- */

enum emulated_queue { EMULATED_COPIES, EMULATED_STORES, EMULATED_PRODUCTS, EMULATED_QUEUES };

/* Work of this thread: pushed, committed as a group, done when all but `pending` groups are waited
 * for. */
void emulated_push(emulated_queue queue, std::function<void()> work);
void emulated_commit(emulated_queue queue);
void emulated_wait_groups(emulated_queue queue, uint32_t pending);

/* Work of the copy engine: done at some moment while threads wait. */
void emulated_later(std::function<void()> work);

/* ---- mbarriers, by address ---- */

void emulated_mbarrier_init(uint32_t barrier, uint32_t count);
void emulated_mbarrier_arrive(uint32_t barrier, uint32_t expected_bytes);
void emulated_mbarrier_complete(uint32_t barrier, uint32_t bytes);
bool emulated_mbarrier_passed(uint32_t barrier, uint32_t parity);

/* ---- tensor maps ---- */

/* The box at (x, y), between memory and shared memory at a block's address. */
void emulated_map_load(const void *map, int32_t x, int32_t y, uint32_t to);
void emulated_map_store(const void *map, int32_t x, int32_t y, uint32_t from);
uint32_t emulated_map_bytes(const void *map);

/* ---- kernels ---- */

typedef void (*emulated_kernel)(void **arguments);

struct emulated_registration {
    emulated_registration(const char *name, emulated_kernel kernel);
};

#endif
