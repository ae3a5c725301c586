#include "digest.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct {
    uint8_t *bytes;
    size_t count, room;
} rounds[DIGEST_ROUNDS], *current = rounds;

void digest_reset(void) {
    for (int i = 0; i < DIGEST_ROUNDS; i++)
        rounds[i].count = 0;
    current = rounds;
}

/* Fills the memory below the stack pointer with `value`. The functions that are called next have
 * their variables there. */
static __attribute__((noinline)) void fill_stack(int value) {
    enum { BYTES = 200000 };
    volatile uint8_t memory[BYTES];
    for (size_t i = 0; i < BYTES; i++)
        memory[i] = (uint8_t)value;
    (void)memory[0];
}

void digest_fill(void) {
    fill_stack(current == rounds ? 0xa5 : 0x5a);
}

void digest_begin(int round) {
    current = &rounds[round];
#ifdef M_PERTURB
    mallopt(M_PERTURB, round ? 0x5a : 0xa5);
#endif
    digest_fill();
}

void digest_add(const void *bytes, size_t count) {
    if (current->count + count > current->room) {
        current->room = 2 * (current->count + count);
        current->bytes = realloc(current->bytes, current->room);
        assert_non_null(current->bytes);
    }
    if (count) memcpy(current->bytes + current->count, bytes, count);
    current->count += count;
}

void digest_add_text(const char *text) {
    digest_add(text, strlen(text) + 1);
}

void digest_add_number(uint64_t number) {
    digest_add(&number, sizeof number);
}

/* The digest is the FNV-1a hash of 64 bits, folded to 32 bits. */
uint32_t digest_end(void) {
    uint64_t hash = 0xcbf29ce484222325;
    assert_int_equal(rounds[0].count, rounds[1].count);
    for (size_t i = 0; i < rounds[0].count; i++) {
        const uint8_t byte = rounds[0].bytes[i];
        hash = (hash ^ (byte == rounds[1].bytes[i] ? byte : 0)) * 0x100000001b3;
    }
    return (uint32_t)(hash ^ hash >> 32);
}
