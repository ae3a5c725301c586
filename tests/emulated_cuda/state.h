/* Declares the state of the emulated GPU, for the files that emulate it. machine.cpp runs threads
 * and makes them meet; memory.cpp has shared memory, copies and mbarriers. */
#ifndef EMULATED_CUDA_STATE_H
#define EMULATED_CUDA_STATE_H

#include "machine.h"

#include <ucontext.h>

#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <vector>

/* SHARED_AT is the offset of dynamic shared memory. It is a multiple of 128 but not of 1024, as may
 * happen on a GPU, so that kernels must align their tiles themselves. */
enum { SHARED_AT = 1152, WARP = 32 };

typedef std::function<void()> work;

struct queue {
    std::vector<work> open;
    std::deque<std::vector<work>> groups;
};

/* `place` is the point at which a fiber continues, stored by the compiler's own setjmp, which
 * stores only a few words. The C library's setjmp is slower, because it stores all registers and
 * its longjmp looks for cleanups on the stack. */
struct place {
    void *words[5];
};

/* A fiber runs one thread of the emulated GPU after another. It is started once by setcontext.
 * Later switches between fibers are jumps, because setcontext makes slow system calls. */
struct fiber : emulated_thread {
    place at;
    bool started, ended;
    uint32_t exchanges; /* The number of warp-wide exchanges in which the thread has taken part. */
    ucontext_t context;
    queue queues[EMULATED_QUEUES];
};

struct mbarrier {
    int64_t count, arrivals_left, bytes_left;
    uint32_t phase;
};

struct warp_state {
    uint64_t values[2][3 * WARP];
    uint32_t arrived[2], left[2], ended;
    uint32_t nonzero[2]; /* A mask of the lanes whose first word of an exchange is not 0. */
};

struct meeting {
    uint32_t arrived, number;
};

struct emulated_warp : warp_state {
    std::vector<double> memory; /* The memory that emulated_warp_memory returns. */
};

struct released {
    void operator()(uint8_t *memory) const {
        free(memory);
    }
};

struct emulated_block {
    uint32_t rank, threads_left;
    std::unique_ptr<uint8_t[], released> shared;
    size_t shared_bytes;
    std::vector<emulated_warp> warps;
    meeting barriers[16];
    bool any;
};

struct cluster {
    std::vector<emulated_block> blocks;
    std::vector<fiber> fibers;
    std::map<void *, mbarrier> mbarriers;
    std::vector<work> later;
    meeting together;
    uint32_t threads_left;
    uint64_t random;
    bool progress;
};

/* Only one cluster runs at a time. */
extern cluster *running __attribute__((visibility("hidden")));

static inline fiber *now() {
    return static_cast<fiber *>(emulated_now);
}

static inline uint32_t random_below(uint32_t n) {
    running->random = running->random * 6364136223846793005u + 1442695040888963407u;
    return uint32_t(running->random >> 33) % n;
}

/* Executes all work of a list, which is empty afterwards. */
void emulated_run_all(std::vector<work> &list);
/* Executes some pending TMA copies, in random order. */
void emulated_run_some_later(void);

#endif
