/* Device memory of the simulators: one large reserved address range, from which pages are
 * allocated. An unmapped page follows each allocation, so that an access beyond its end is
 * found. */
#include "memory.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096 };
#define ARENA (1ull << 38)

typedef struct {
    uint64_t begin, size;
    int type, device; /* two numbers that the caller attaches with sim_memory_mark */
} block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint8_t *arena;
static uint32_t *page_block; /* for each page of the range, the index of its allocation, or 0 */
static block *blocks;
static uint32_t block_count = 1, block_room;
static uint64_t next_page;

static bool prepare(void) {
    if (arena) return true;
    void *a = mmap(NULL, ARENA, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    void *p = mmap(NULL, ARENA / PAGE * 4, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (a == MAP_FAILED || p == MAP_FAILED) return false;
    arena = a, page_block = p;
    return true;
}

static uint32_t new_block(void) {
    if (block_count >= block_room) {
        const uint32_t room = block_room ? 2 * block_room : 1024;
        block *more = realloc(blocks, room * sizeof *more);
        if (!more) return 0;
        blocks = more, block_room = room;
    }
    return block_count++;
}

/* Allocates pages. Freed addresses are never allocated again, so that a use after free is found. */
static void *take(size_t bytes) {
    const uint64_t pages = (bytes + PAGE - 1) / PAGE + (bytes == 0);
    if (!prepare() || bytes > ARENA || next_page + pages + 1 > ARENA / PAGE) return NULL;
    uint8_t *at = arena + next_page * PAGE;
    const uint32_t b = new_block();
    if (!b || mprotect(at, pages * PAGE, PROT_READ | PROT_WRITE)) return NULL;
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
