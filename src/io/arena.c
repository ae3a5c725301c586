/* Implements arenas, i.e. memory whose allocations are all freed at once, and arrays that grow. */
#include "io/io.h"

#include <stdlib.h>
#include <string.h>

struct bsmm_arena_chunk {
    struct bsmm_arena_chunk *next;
    size_t used, room;
    _Alignas(16) unsigned char bytes[];
};

static const size_t chunk_bytes = 1u << 16;

static struct bsmm_arena_chunk *add_chunk(bsmm_arena *arena, size_t least) {
    size_t room = least > chunk_bytes ? least : chunk_bytes;
    struct bsmm_arena_chunk *chunk = calloc(1, sizeof *chunk + room);
    if (!chunk) return NULL;
    chunk->room = room;
    chunk->next = arena->head;
    arena->head = chunk;
    return chunk;
}

void *bsmm_arena_take(bsmm_arena *arena, size_t bytes) {
    if (bytes > SIZE_MAX / 2) return NULL;
    bytes = (bytes + 15) / 16 * 16;
    struct bsmm_arena_chunk *chunk = arena->head;
    if (!chunk || chunk->room - chunk->used < bytes) chunk = add_chunk(arena, bytes);
    if (!chunk) return NULL;
    void *taken = chunk->bytes + chunk->used;
    chunk->used += bytes;
    return taken;
}

char *bsmm_arena_text(bsmm_arena *arena, const char *text, size_t length) {
    return bsmm_arena_join(arena, text, length, "");
}

char *bsmm_arena_join(bsmm_arena *arena, const char *a, size_t a_length, const char *b) {
    size_t b_length = strlen(b);
    char *joined = bsmm_arena_take(arena, a_length + b_length + 1);
    if (!joined) return NULL;
    memcpy(joined, a, a_length);
    memcpy(joined + a_length, b, b_length + 1);
    return joined;
}

void bsmm_arena_free(bsmm_arena *arena) {
    while (arena->head) {
        struct bsmm_arena_chunk *next = arena->head->next;
        free(arena->head);
        arena->head = next;
    }
}

bsmm_status bsmm_fail_memory(void) {
    return bsmm_fail(BSMM_E_MEMORY, "out of memory");
}

bsmm_status bsmm_grow(void **items, uint64_t count, uint64_t *room, size_t item_bytes) {
    if (count < *room) return BSMM_OK;
    uint64_t wanted = *room ? *room * 2 : 16;
    void *grown = wanted > SIZE_MAX / item_bytes ? NULL : realloc(*items, wanted * item_bytes);
    if (!grown) return bsmm_fail_memory();
    *items = grown;
    *room = wanted;
    return BSMM_OK;
}
