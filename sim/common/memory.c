/* Implements device memory for the simulators. It reserves one large address range and allocates
 * pages of it. An unmapped page follows each allocation, so that an access past the allocation's
 * end is found. */
#include "memory.h"
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096 };
#define ARENA (1ull << 38)

typedef struct {
    uint64_t begin, size;
    /* `type` and `device` are two numbers that the caller attaches to the allocation by
     * sim_memory_mark. */
    int type, device;
} block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint8_t *arena;
/* `page_block` has an entry for each page of the address range: the index of the allocation that
 * owns the page, or 0. */
static uint32_t *page_block;
/* This array has room for all possible allocations, so it never moves. */
static block *blocks;
static uint32_t block_count = 1;
static uint64_t next_page;

/* Reserves addresses without memory. The operating system supplies memory for a page when it is
 * first written. */
static void *reserve(size_t bytes, int access) {
    void *at = mmap(NULL, bytes, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

/* Reserves the address range and the tables of allocations, unless an earlier call has done so. */
static bool prepare(void) {
    if (arena) return true;
    if (!page_block)
        page_block = reserve(ARENA / PAGE * sizeof *page_block, PROT_READ | PROT_WRITE);
    if (!blocks) blocks = reserve((ARENA / PAGE / 2 + 1) * sizeof *blocks, PROT_READ | PROT_WRITE);
    if (page_block && blocks) arena = reserve(ARENA, PROT_NONE);
    return arena;
}

/* Allocates pages. The function never allocates freed addresses again, so that a use after free is
 * found. */
static void *take(size_t bytes) {
    const uint64_t pages = (bytes + PAGE - 1) / PAGE + (bytes == 0);
    if (!prepare() || bytes > ARENA || next_page + pages + 1 > ARENA / PAGE) return NULL;
    uint8_t *at = arena + next_page * PAGE;
    const uint32_t b = block_count;
    if (mprotect(at, pages * PAGE, PROT_READ | PROT_WRITE)) return NULL;
    block_count++;
    blocks[b] = (block){(uint64_t)(uintptr_t)at, bytes, 0, 0};
    for (uint64_t i = 0; i < pages; i++)
        page_block[next_page + i] = b;
    next_page += pages + 1;
    return at;
}

void *sim_memory_alloc(size_t bytes) {
    pthread_mutex_lock(&lock);
    void *at = take(bytes);
    pthread_mutex_unlock(&lock);
    return at;
}

bool sim_memory_find(uint64_t address, uint64_t *begin, uint64_t *size) {
    const uint64_t offset = address - (uint64_t)(uintptr_t)arena;
    if (!arena || offset >= ARENA || !page_block[offset / PAGE]) return false;
    const block b = blocks[page_block[offset / PAGE]];
    *begin = b.begin, *size = b.size;
    return address - b.begin < b.size || b.size == 0;
}

static block *block_of(uint64_t address) {
    return &blocks[page_block[(address - (uint64_t)(uintptr_t)arena) / PAGE]];
}

void sim_memory_mark(void *pointer, int type, int device) {
    pthread_mutex_lock(&lock);
    block *b = block_of((uint64_t)(uintptr_t)pointer);
    b->type = type, b->device = device;
    pthread_mutex_unlock(&lock);
}

void sim_memory_marked(uint64_t address, int *type, int *device) {
    pthread_mutex_lock(&lock);
    const block *b = block_of(address);
    *type = b->type, *device = b->device;
    pthread_mutex_unlock(&lock);
}

bool sim_memory_free(void *pointer) {
    uint64_t begin, size;
    pthread_mutex_lock(&lock);
    const bool found = sim_memory_find((uint64_t)(uintptr_t)pointer, &begin, &size) &&
                       begin == (uint64_t)(uintptr_t)pointer;
    if (found) {
        const uint64_t first = (begin - (uint64_t)(uintptr_t)arena) / PAGE,
                       pages = (size + PAGE - 1) / PAGE + (size == 0);
        for (uint64_t i = 0; i < pages; i++)
            page_block[first + i] = 0;
        (void)mmap(pointer, pages * PAGE, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    }
    pthread_mutex_unlock(&lock);
    return found;
}
