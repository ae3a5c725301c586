/* Replaces the C library's allocator in a test program. The replacement counts allocations and can
 * make one of them fail. Only the main file of a program may include this header. */
#ifndef BSMM_TEST_ALLOCATOR_H
#define BSMM_TEST_ALLOCATOR_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#if defined(__has_feature)
#    if __has_feature(address_sanitizer)
#        define SANITIZED 1
#    endif
#endif

/* Replacing malloc requires a second name for the C library's malloc, which only glibc has.
 * Sanitizers replace malloc themselves, so this file leaves it alone in builds with sanitizers. */
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(SANITIZED)

#    include <malloc.h>

void *libc_malloc(size_t bytes) __asm__("__libc_malloc");
void *libc_calloc(size_t count, size_t bytes) __asm__("__libc_calloc");
void *libc_realloc(void *memory, size_t bytes) __asm__("__libc_realloc");
void *libc_memalign(size_t alignment, size_t bytes) __asm__("__libc_memalign");

/* These functions replace the C library's allocator in this program. They count their calls.
 * Their visibility is the default one, so shared libraries such as jansson call them too. */
#    pragma GCC visibility push(default)
void *counted_malloc(size_t bytes) __asm__("malloc");
void *counted_calloc(size_t items, size_t bytes) __asm__("calloc");
void *counted_realloc(void *memory, size_t bytes) __asm__("realloc");
void *counted_memalign(size_t alignment, size_t bytes) __asm__("memalign");
void *counted_aligned_alloc(size_t alignment, size_t bytes) __asm__("aligned_alloc");
int counted_posix_memalign(void **memory, size_t alignment, size_t bytes) __asm__("posix_memalign");
#    pragma GCC visibility pop

static atomic_bool counting;
static atomic_int counted;
/* `failing` is the number of the allocation that fails, counted from 1. 0 means that none fails. */
static int failing;

/* Counts an allocation. Returns true if this allocation must fail. */
static bool count(void) {
    return atomic_load(&counting) && atomic_fetch_add(&counted, 1) + 1 == failing;
}

void *counted_malloc(size_t bytes) {
    return count() ? NULL : libc_malloc(bytes);
}

void *counted_calloc(size_t items, size_t bytes) {
    return count() ? NULL : libc_calloc(items, bytes);
}

void *counted_realloc(void *memory, size_t bytes) {
    return count() ? NULL : libc_realloc(memory, bytes);
}

void *counted_memalign(size_t alignment, size_t bytes) {
    return count() ? NULL : libc_memalign(alignment, bytes);
}

void *counted_aligned_alloc(size_t alignment, size_t bytes) {
    return count() ? NULL : libc_memalign(alignment, bytes);
}

int counted_posix_memalign(void **memory, size_t alignment, size_t bytes) {
    *memory = count() ? NULL : libc_memalign(alignment, bytes);
    return *memory ? 0 : ENOMEM;
}

/* Starts counting allocations at 0. Allocation number `fails` returns NULL; none fails if `fails`
 * is 0. */
static void start_counting(int fails) {
    failing = fails;
    atomic_store(&counted, 0);
    atomic_store(&counting, true);
}

static int stop_counting(void) {
    atomic_store(&counting, false);
    return atomic_load(&counted);
}

static bool can_count(void) {
    return true;
}

/* From this call on, memory is overwritten when it is freed. A test can then notice a pointer to
 * freed memory. */
static inline void overwrite_freed(void) {
    mallopt(M_PERTURB, 0xA5);
}

#else

static void start_counting(int fails) {
    (void)fails;
}

static int stop_counting(void) {
    return 0;
}

static bool can_count(void) {
    return false;
}

static inline void overwrite_freed(void) {}

#endif

#endif
