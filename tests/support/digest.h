/* Declares digests of bytes of which some have no defined value, such as the padding of a struct. A
 * test records the bytes twice, each time with other garbage in fresh memory. The digest omits the
 * bytes that differ. */
#ifndef BSMM_TEST_DIGEST_H
#define BSMM_TEST_DIGEST_H

#include <stddef.h>
#include <stdint.h>

enum { DIGEST_ROUNDS = 2 };

/* Forgets all bytes that were recorded. */
void digest_reset(void);

/* Begins round 0 or 1: fills free stack memory and, with glibc, new heap memory with the byte
 * pattern of this round. */
void digest_begin(int round);

/* Fills free stack memory once more with the pattern of the last digest_begin. */
void digest_fill(void);

void digest_add(const void *bytes, size_t count);
void digest_add_text(const char *text);
void digest_add_number(uint64_t number);

/* A test records its bytes in two rounds. Returns the digest of those bytes that are equal in both
 * rounds. Fails the test if the rounds have different numbers of bytes. */
uint32_t digest_end(void);

#endif
