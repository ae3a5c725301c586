/* Runs the threads of the emulated GPU, and makes those of a warp, block or cluster meet. */
#include "state.h"

#include <cstring>

enum { STACK_BYTES = 256 << 10, ROUNDS_WITHOUT_PROGRESS = 20000, MOST_ROUNDS_OF_WARP = 32 };

cluster *running;
emulated_thread *emulated_now;

static place scheduler;
static fiber *round_end; /* run_round runs the fibers before this one. */
static emulated_kernel running_kernel;
static void **running_arguments;

/* Looks for a fiber whose thread has not ended, from `f` up to the fiber before `round_end`.
 * Continues the first one, or the scheduler if there is none. This is a separate function, because
 * gcc removes the setjmp of a function that itself jumps away. */
static __attribute__((noinline)) void go_on_from(fiber *f) {
    while (f != round_end && f->ended)
        f++;
    if (f == round_end) __builtin_longjmp(scheduler.words, 1);
    emulated_now = f;
    if (f->started) __builtin_longjmp(f->at.words, 1);
    f->started = true;
    setcontext(&f->context);
}

__attribute__((noinline)) void emulated_give_way(void) {
    if (!__builtin_setjmp(now()->at.words)) go_on_from(now() + 1);
}

/* Runs the fibers from `first` up to `end`, one after another, until each of them waits. Each fiber
 * jumps directly to the next one, which takes half as many jumps as a return to the scheduler. */
static __attribute__((noinline)) void run_round(fiber *first, fiber *end) {
    round_end = end;
    if (!__builtin_setjmp(scheduler.words)) go_on_from(first);
}

template <typename F> static void wait_until(F ready) {
    while (!ready())
        emulated_give_way();
    running->progress = true;
}

/* ---- warps and blocks ---- */

/* In an exchange, each lane of a warp writes its words to a buffer, waits until all lanes have
 * written theirs, and reads the words of all lanes. Exchanges alternate between two buffers. When a
 * lane writes to a buffer again, all lanes have entered the exchange with the other buffer in the
 * meantime, so they have read this buffer. */
const uint64_t *emulated_exchange_words(const uint64_t *words, uint32_t count,
                                        emulated_warp_work work, const void *argument) {
    fiber *me = now();
    emulated_warp *w = me->warp;
    uint32_t place = me->exchanges++ % 2;
    if (w->arrived[place] == 0) {
        memset(w->values[place], 0, count * WARP * sizeof(uint64_t));
        w->nonzero[place] = 0;
    }
    for (uint32_t i = 0; i < count; i++)
        w->values[place][i * WARP + me->lane] = words[i];
    w->nonzero[place] |= uint32_t(count && words[0]) << me->lane;
    w->arrived[place] |= 1u << me->lane;
    w->left[place] = 0;
    wait_until([=] { return (w->arrived[place] | w->ended) == UINT32_MAX; });
    if (work && w->left[place] == 0) work(w->values[place], argument);
    w->left[place] |= 1u << me->lane;
    if ((w->left[place] | w->ended) == UINT32_MAX) w->arrived[place] = 0;
    return w->values[place];
}

const uint64_t *emulated_exchange(uint64_t value) {
    return emulated_exchange_words(&value, 1, nullptr, nullptr);
}

void *emulated_warp_memory(size_t bytes) {
    std::vector<double> &mine = now()->warp->memory;
    if (mine.size() * sizeof(double) < bytes) mine.resize((bytes + 7) / sizeof(double));
    return mine.data();
}

uint32_t emulated_ballot(bool value) {
    const fiber *me = now();
    const uint32_t place = me->exchanges % 2;
    emulated_exchange(value);
    return me->warp->nonzero[place];
}

void emulated_barrier(uint32_t id, uint32_t threads) {
    emulated_block *b = now()->in;
    meeting *m = &b->barriers[id];
    uint32_t number = m->number;
    m->arrived++;
    wait_until([=] {
        if (m->number == number && m->arrived >= (threads ? threads : b->threads_left)) {
            m->arrived = 0;
            m->number++;
        }
        return m->number != number;
    });
}

void emulated_cluster_arrive(void) {
    running->together.arrived++;
}

/* Waits at the cluster's barrier. A thread arrives once and waits once in each phase of the
 * barrier. */
void emulated_cluster_wait(void) {
    meeting *m = &running->together;
    uint32_t number = m->number;
    wait_until([=] {
        if (m->number == number && m->arrived >= running->threads_left) {
            m->arrived = 0;
            m->number++;
        }
        return m->number != number;
    });
}

uint32_t emulated_rank(void) {
    return now()->in->rank;
}

/* ---- kernels ---- */

/* Executes asynchronous work that no thread has waited for, when the thread that issued it ends. */
static void finish_queues(fiber *me) {
    for (queue &q : me->queues) {
        while (!q.groups.empty()) {
            emulated_run_all(q.groups.front());
            q.groups.pop_front();
        }
        emulated_run_all(q.open);
    }
}

static void run_thread() {
    running_kernel(running_arguments);
    fiber *me = now();
    finish_queues(me);
    me->ended = true;
    me->warp->ended |= 1u << me->lane;
    me->in->threads_left--;
    running->threads_left--;
    running->progress = true;
}

/* When a thread of the GPU has ended, its fiber waits until it gets another thread to run. */
static void fiber_main() {
    for (;;) {
        run_thread();
        emulated_give_way();
    }
}

/* Returns the stack of a fiber. The tops of the stacks are some cache lines apart, because tops
 * that are a power of two apart would compete for the same few sets of L1. */
static char *stack_of(size_t number) {
    static std::vector<std::unique_ptr<char[]>> stacks;
    while (stacks.size() <= number)
        stacks.emplace_back(new char[STACK_BYTES + 4096]);
    return stacks[number].get() + number * 320 % 4096;
}

static void make_fiber(fiber *f, emulated_block *in, uint32_t number, size_t stack,
                       const emulated_thread &like) {
    static_cast<emulated_thread &>(*f) = like;
    f->thread = {number % like.threads.x, number / like.threads.x % like.threads.y,
                 number / like.threads.x / like.threads.y};
    f->in = in;
    f->warp = &in->warps[number / WARP];
    f->lane = number % WARP;
    f->ended = false;
    f->exchanges = 0;
    if (f->started) return;
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = stack_of(stack);
    f->context.uc_stack.ss_size = STACK_BYTES;
    f->context.uc_link = nullptr;
    makecontext(&f->context, fiber_main, 0);
}

/* Runs the threads of one warp until each of them waits, and does so several times. Returns true if
 * any thread made progress. The stacks of a single warp fit in the L1 cache, so it is faster to run
 * one warp many times in a row than to run all warps of a block once. A random limit on the number
 * of runs varies the order in which warps run. */
static bool run_warp(cluster *c, fiber *first, uint32_t lanes) {
    bool any = false;
    for (uint32_t rounds = 1 + random_below(MOST_ROUNDS_OF_WARP); rounds > 0; rounds--) {
        c->progress = false;
        run_round(first, first + lanes);
        any = any || c->progress;
        if (!c->progress || first->warp->ended == UINT32_MAX) break;
    }
    return any;
}

static bool run_cluster(cluster *c, uint32_t threads_of_block) {
    uint32_t idle = 0;
    running = c;
    while (c->threads_left) {
        c->progress = false;
        emulated_run_some_later();
        bool progress = c->progress;
        for (size_t i = 0; i < c->fibers.size(); i += threads_of_block)
            for (uint32_t at = 0; at < threads_of_block; at += WARP) {
                const uint32_t left = threads_of_block - at;
                fiber *first = &c->fibers[i + at];
                if (first->warp->ended == UINT32_MAX) continue;
                progress = run_warp(c, first, left < WARP ? left : uint32_t(WARP)) || progress;
            }
        idle = progress ? 0 : idle + 1;
        if (idle > ROUNDS_WITHOUT_PROGRESS) return false;
    }
    while (!c->later.empty())
        emulated_run_some_later();
    return true;
}

static void make_block(emulated_block *b, uint32_t rank, uint32_t threads, uint32_t shared_bytes) {
    b->rank = rank;
    b->threads_left = threads;
    if (b->shared_bytes != SHARED_AT + shared_bytes) {
        b->shared_bytes = SHARED_AT + shared_bytes;
        b->shared.reset(
            static_cast<uint8_t *>(aligned_alloc(1024, (b->shared_bytes + 1023) / 1024 * 1024)));
    }
    memset(b->shared.get(), 0xA5, b->shared_bytes);
    b->warps.resize((threads + WARP - 1) / WARP);
    for (emulated_warp &w : b->warps)
        static_cast<warp_state &>(w) = {};
    uint32_t last = threads % WARP;
    if (last) b->warps.back().ended = ~((1u << last) - 1);
    memset(b->barriers, 0, sizeof b->barriers);
}

extern "C" int emulated_launch(void *kernel, void **arguments, const uint32_t grid[3],
                               const uint32_t block[3], uint32_t size, uint32_t shared_bytes) {
    static cluster c;
    const emulated_index blocks = {grid[0], grid[1], grid[2]};
    const emulated_index threads = {block[0], block[1], block[2]};
    uint32_t each = threads.x * threads.y * threads.z, all = blocks.x * blocks.y * blocks.z;
    running_kernel = reinterpret_cast<emulated_kernel>(kernel);
    running_arguments = arguments;
    c.blocks.resize(size);
    c.fibers.resize(size_t(size) * each);
    for (uint32_t first = 0; first < all; first += size) {
        c.mbarriers.clear();
        c.later.clear();
        c.together = {0, 0};
        c.threads_left = size * each;
        for (uint32_t i = 0; i < size; i++) {
            uint32_t number = first + i;
            make_block(&c.blocks[i], i, each, shared_bytes);
            emulated_thread like = {};
            like.threads = threads;
            like.blocks = blocks;
            like.block = {number % blocks.x, number / blocks.x % blocks.y,
                          number / blocks.x / blocks.y};
            for (uint32_t t = 0; t < each; t++)
                make_fiber(&c.fibers[i * each + t], &c.blocks[i], t, i * each + t, like);
        }
        if (!run_cluster(&c, each)) {
            c.fibers.clear(); /* These fibers stopped in the middle of a thread. */
            return 0;
        }
    }
    return 1;
}

/* Returns true if the value is true in any thread of the block. Values are gathered between two
 * barriers and read before a third. */
bool emulated_block_or(bool value) {
    emulated_block *b = now()->in;
    b->any = false;
    emulated_barrier(0, 0);
    b->any = b->any || value;
    emulated_barrier(0, 0);
    bool any = b->any;
    emulated_barrier(0, 0);
    return any;
}
