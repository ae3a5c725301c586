#define _GNU_SOURCE
#include "steps.h"

#if defined __has_feature
#    if __has_feature(address_sanitizer)
#        define IS_SANITIZED
#    endif
#endif
#if defined __x86_64__ && defined __linux__ && defined __OPTIMIZE__ &&                             \
    !defined __SANITIZE_ADDRESS__ && !defined IS_SANITIZED

#    include <signal.h>
#    include <string.h>
#    include <ucontext.h>
#    include <x86intrin.h>

/* If this flag of the register EFLAGS is set, the processor traps after each instruction. */
#    define TRAP_FLAG 0x100

static test_steps *counted;
/* `last` is the address of the instruction after the last trap. */
static uintptr_t last;
/* The instructions of some functions are not counted. While such a function runs, `back` is the
 * address to which it will return. */
static uintptr_t back;

/* Instructions are counted by a trap after each of them. A function whose instructions do not count
 * runs without traps. Its return address is replaced by the address of this breakpoint, at which
 * counting continues. */
void test_steps_resume(void);
__asm__(".pushsection .text\n"
        ".type test_steps_resume, @function\n"
        "test_steps_resume: int3\n"
        ".popsection\n");

/* The test counts instructions by a trap after each of them. It does not count the instructions of
 * some functions. If such a function begins, this handler lets it run without traps. To continue
 * afterwards, it replaces the function's return address on the stack by the address of a
 * breakpoint, at which the counting begins again. */
static void leave_out(greg_t *registers) {
    const uintptr_t resume = (uintptr_t)test_steps_resume;
    void *const stack = (void *)registers[REG_RSP];
    memcpy(&back, stack, sizeof back);
    memcpy(stack, &resume, sizeof resume);
    registers[REG_EFL] &= ~(greg_t)TRAP_FLAG;
}

static void on_trap(int signal, siginfo_t *info, void *context) {
    greg_t *const registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    uintptr_t at = (uintptr_t)registers[REG_RIP];
    (void)signal, (void)info;
    /* The breakpoint has one byte, and the trap reports the address after it. */
    if (at == (uintptr_t)test_steps_resume + 1) {
        registers[REG_RIP] = (greg_t)back;
        registers[REG_EFL] |= TRAP_FLAG;
        return;
    }
    /* An instruction with a repeat prefix traps after each repetition, but counts only once. */
    if (at != last) counted->count++;
    last = at;
    for (size_t i = 0; i < TEST_STEPS_MOST_OMITTED; i++) {
        if (counted->omitted[i] != at) continue;
        counted->calls[i]++;
        leave_out(registers);
        return;
    }
}

bool test_steps_can_count(void) {
    return true;
}

void test_steps_count(void (*call)(void *context), void *context, test_steps *steps) {
    static _Alignas(64) char memory[1 << 16];
    const stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
    struct sigaction action, before;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_trap;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    memset(steps->calls, 0, sizeof steps->calls);
    steps->count = 0;
    counted = steps;
    last = back = 0;
    sigaltstack(&stack, NULL);
    sigaction(SIGTRAP, &action, &before);
    __writeeflags(__readeflags() | TRAP_FLAG);
    call(context);
    __writeeflags(__readeflags() & ~(unsigned long long)TRAP_FLAG);
    sigaction(SIGTRAP, &before, NULL);
}

#else

bool test_steps_can_count(void) {
    return false;
}

void test_steps_count(void (*call)(void *context), void *context, test_steps *steps) {
    (void)steps;
    call(context);
}

#endif
