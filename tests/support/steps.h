/* Declares a counter of machine instructions. Counts are the same in every run, unlike times on a
 * machine that also runs other programs. */
#ifndef BSMM_TEST_STEPS_H
#define BSMM_TEST_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TEST_STEPS_MOST_OMITTED = 8 };

/* Holds the number of instructions that a call executes. Some functions can be left out of the
 * count. `omitted` has the addresses of these functions. An entry of 0 is unused. */
typedef struct test_steps {
    uintptr_t omitted[TEST_STEPS_MOST_OMITTED];
    /* calls[i] is the number of calls of function omitted[i]. */
    uint64_t calls[TEST_STEPS_MOST_OMITTED];
    /* `count` is the number of instructions outside the omitted functions and outside all functions
     * that these call. An instruction with a repeat prefix counts once. */
    uint64_t count;
} test_steps;

/* Returns true if this build can count instructions and if its counts mean something, i.e. if it is
 * optimized code for x86-64 on Linux without sanitizers. */
bool test_steps_can_count(void);

/* Calls `call` once and counts its instructions in steps->count and steps->calls. Only the calling
 * thread is counted. A first call of a function may also count the dynamic linker, so the caller
 * should have called the function before. */
void test_steps_count(void (*call)(void *context), void *context, test_steps *steps);

#endif
