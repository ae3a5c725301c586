/* Emulates shared memory, asynchronous work and mbarriers. */
#include "state.h"

#include <cstdio>

static char anchor; /* The addresses of static variables are relative to this variable. */

/* ---- shared memory ---- */

void *emulated_shared(void) {
    return now()->in->shared.get() + SHARED_AT;
}

/* Makes a 32-bit address in shared memory. Bits 24 to 30 are the thread block's rank in the
 * cluster. Bit 31 marks a static variable, whose address is stored as the distance from the
 * variable `anchor`. */
uint32_t emulated_address(const void *pointer) {
    const emulated_block *b = now()->in;
    const uint8_t *at = static_cast<const uint8_t *>(pointer);
    if (at >= b->shared.get() && at <= b->shared.get() + b->shared_bytes)
        return b->rank << 24 | uint32_t(at - b->shared.get());
    return 1u << 31 | (uint32_t(at - reinterpret_cast<uint8_t *>(&anchor)) & INT32_MAX);
}

void *emulated_pointer(uint32_t address) {
    if (address >> 31) return &anchor + (int32_t(address << 1) >> 1);
    const emulated_block *b = &running->blocks.at(address >> 24);
    if ((address & 0xffffff) > b->shared_bytes) {
        fprintf(stderr, "shared memory: offset %u of %zu\n", address & 0xffffff, b->shared_bytes);
        abort();
    }
    return b->shared.get() + (address & 0xffffff);
}

uint32_t emulated_mapped(uint32_t address, uint32_t rank) {
    return (address & 0xffffff) | rank << 24;
}

/* ---- asynchronous work ---- */

void emulated_run_all(std::vector<work> &list) {
    std::vector<work> taken;
    taken.swap(list);
    for (work &w : taken)
        w();
    if (!taken.empty()) running->progress = true;
}

void emulated_run_some_later(void) {
    std::vector<work> &list = running->later;
    for (size_t i = 0; i < list.size();) {
        if (random_below(3)) {
            i++;
            continue;
        }
        work w = std::move(list[i]);
        list.erase(list.begin() + std::ptrdiff_t(i));
        w();
        running->progress = true;
    }
}

void emulated_push(emulated_queue queue, std::function<void()> w) {
    now()->queues[queue].open.push_back(std::move(w));
}

void emulated_commit(emulated_queue queue) {
    auto &q = now()->queues[queue];
    q.groups.push_back(std::move(q.open));
    q.open.clear();
}

void emulated_wait_groups(emulated_queue queue, uint32_t pending) {
    auto &q = now()->queues[queue];
    while (q.groups.size() > pending) {
        emulated_run_all(q.groups.front());
        q.groups.pop_front();
    }
}

void emulated_later(std::function<void()> w) {
    running->later.push_back(std::move(w));
}

/* ---- mbarriers ---- */

static void turn_if_complete(mbarrier *b) {
    if (b->arrivals_left != 0 || b->bytes_left != 0) return;
    b->arrivals_left = b->count;
    b->phase++;
    running->progress = true;
}

static mbarrier *mbarrier_at(uint32_t address) {
    auto found = running->mbarriers.find(emulated_pointer(address));
    if (found == running->mbarriers.end()) {
        fprintf(stderr, "no mbarrier at %#x\n", address);
        abort();
    }
    return &found->second;
}

void emulated_mbarrier_init(uint32_t barrier, uint32_t count) {
    running->mbarriers[emulated_pointer(barrier)] = {count, count, 0, 0};
}

void emulated_mbarrier_arrive(uint32_t barrier, uint32_t expected_bytes) {
    mbarrier *b = mbarrier_at(barrier);
    if (b->arrivals_left == 0) {
        fprintf(stderr, "mbarrier at %#x: more arrivals than its count\n", barrier);
        abort();
    }
    b->bytes_left += expected_bytes;
    b->arrivals_left--;
    turn_if_complete(b);
}

void emulated_mbarrier_complete(uint32_t barrier, uint32_t bytes) {
    mbarrier *b = mbarrier_at(barrier);
    b->bytes_left -= bytes;
    turn_if_complete(b);
}

bool emulated_mbarrier_passed(uint32_t barrier, uint32_t parity) {
    mbarrier *b = mbarrier_at(barrier);
    if ((b->phase & 1) != parity) return true;
    emulated_give_way();
    return (b->phase & 1) != parity;
}
