/* Emulates the threads of a GPU on one processor, to test kernels without a GPU. Each thread is a
 * fiber, and each instruction that waits switches to another fiber. A GPU executes copies and wgmma
 * asynchronously. The emulation executes them as late as the program allows, or at a random moment,
 * so that a missing wait gives wrong results. It finds wrong results, accesses past an allocation's
 * last page (driver.c), and deadlocks. It does not find races between threads or violations of the
 * weak memory order, and it says nothing about speed. wgmma and mma.sync truncate sums as the
 * tensor cores of an H200 do (sim/common/tensor_core.h). */
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

struct emulated_thread {
    emulated_index thread, block, threads, blocks;
    emulated_block *in;
    emulated_warp *warp;
    uint32_t lane;
};
extern emulated_thread *emulated_now;

/* Switches to the fiber of another GPU thread. Returns after the other threads have run until they
 * wait. */
void emulated_give_way(void);

/* Exchanges a value among all lanes of a warp. Returns the values of all lanes, which are valid
 * until the next exchange. */
const uint64_t *emulated_exchange(uint64_t value);

/* emulated_exchange_words exchanges `count` words (0 to 3) among all lanes of a warp. Element 32 i
 * + l of its result is word i of lane l. After all lanes have called it and before it returns, one
 * lane calls `work` with these words and `argument`. */
typedef void (*emulated_warp_work)(const uint64_t *values, const void *argument);
const uint64_t *emulated_exchange_words(const uint64_t *words, uint32_t count,
                                        emulated_warp_work work, const void *argument);

/* Returns memory that all lanes of a warp share. Its contents stay until a call asks for more bytes
 * than before. */
void *emulated_warp_memory(size_t bytes);
uint32_t emulated_ballot(bool value);

/* Waits at barrier `id` until `threads` threads of the thread block have arrived. If `threads` is
 * 0, waits for all threads of the block that have not ended. */
void emulated_barrier(uint32_t id, uint32_t threads);
void emulated_cluster_arrive(void);
void emulated_cluster_wait(void);
uint32_t emulated_rank(void);
bool emulated_block_or(bool value);

/* Returns the dynamic shared memory of the calling thread's block. The launch has set the size of
 * this memory. */
void *emulated_shared(void);

/* emulated_address converts a pointer to a 32-bit address, as PTX instructions take it. The pointer
 * may point to this block's shared memory or to a static variable. emulated_pointer converts the
 * address back. emulated_mapped converts an address in this block's shared memory to the same
 * address in thread block `rank` of the cluster. */
uint32_t emulated_address(const void *pointer);
void *emulated_pointer(uint32_t address);
uint32_t emulated_mapped(uint32_t address, uint32_t rank);

enum emulated_queue { EMULATED_COPIES, EMULATED_STORES, EMULATED_PRODUCTS, EMULATED_QUEUES };

/* These functions emulate asynchronous work of the calling GPU thread. emulated_push adds work,
 * and emulated_commit makes a group of the added work. The groups are executed when the thread
 * calls emulated_wait_groups, which returns when at most `pending` groups remain. */
void emulated_push(emulated_queue queue, std::function<void()> work);
void emulated_commit(emulated_queue queue);
void emulated_wait_groups(emulated_queue queue, uint32_t pending);

/* Queues a TMA copy. It is executed at an arbitrary moment while threads wait. */
void emulated_later(std::function<void()> work);

void emulated_mbarrier_init(uint32_t barrier, uint32_t count);
void emulated_mbarrier_arrive(uint32_t barrier, uint32_t expected_bytes);
void emulated_mbarrier_complete(uint32_t barrier, uint32_t bytes);
bool emulated_mbarrier_passed(uint32_t barrier, uint32_t parity);

/* emulated_map_load copies the box of a tensor map at (x, y) from device memory to a block's
 * shared memory. emulated_map_store copies the box from shared memory to device memory.
 * emulated_map_bytes returns the size of the box in bytes. */
void emulated_map_load(const void *map, int32_t x, int32_t y, uint32_t to);
void emulated_map_store(const void *map, int32_t x, int32_t y, uint32_t from);
uint32_t emulated_map_bytes(const void *map);

typedef void (*emulated_kernel)(void **arguments);

struct emulated_registration {
    emulated_registration(const char *name, emulated_kernel kernel);
};

#endif
