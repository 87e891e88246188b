/* SPDX-License-Identifier: BSD-3-Clause */
#include "fibre.h"
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#ifndef __x86_64__
#include <ucontext.h>
#endif

#ifndef __has_feature /* clang's form; gcc before 14 has macros only */
#define __has_feature(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define TELL_ASAN
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define TELL_TSAN
#endif

#ifdef TELL_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef TELL_TSAN
#include <sanitizer/tsan_interface.h>
#endif

/* A few cache lines more than a power of two: else the same part of all stacks, of thousands of
 * threads that take turns, would have to share a few lines of the cache. */
enum { STACK_BYTES = (128 << 10) + 5 * 64, STACKS_A_MAPPING = 64 };
#define CANARY UINT64_C(0x5f1b2e5f1b2e5f1b)

/* The place where a side of a switch continues. */
#ifdef __x86_64__
typedef void *place;
#else
typedef ucontext_t place;
#endif

/* At the high end of its own memory, beside what the fibre uses most: a switch then touches one
 * page of the many that thousands of threads have. */
struct fibre_stack {
    _Alignas(64) place inside;
    place outside;
    struct fibre_stack *next; /* of the pool */
    void (*body)(void *);
    void *argument;
    void *thread, *thread_outside; /* ThreadSanitizer's */
    void *fake, *fake_outside;     /* AddressSanitizer's */
    const void *bottom_outside;
    size_t bytes_outside;
};

static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static struct fibre_stack *pool;

/* Returns the low end, with a word that only an overrun of the stack changes. */
static uint64_t *low_end(struct fibre_stack *stack) {
    return (uint64_t *)((char *)(stack + 1) - STACK_BYTES);
}

static void overrun(const struct fibre_stack *stack) {
    fprintf(stderr, "pretended GPU: a kernel's thread needs more than %zu bytes of stack\n",
            STACK_BYTES - sizeof *stack);
    abort();
}

/* --- The switch ----------------------------------------------------------------------------------
 */

static void run_body(struct fibre_stack *stack);

#ifdef __x86_64__
/* Saves what a callee keeps, and the stack pointer; takes the other side's. The first entry has
 * the stack in rbx. */
__attribute__((naked, noinline)) static void switch_sides(place *from __attribute__((unused)),
                                                          place *to __attribute__((unused))) {
    __asm__("push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15\n\t"
            "mov %rsp, (%rdi); mov (%rsi), %rsp\n\t"
            "pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp\n\t"
            "ret");
}

__attribute__((naked, noinline)) static void first_entry(void) {
    __asm__("mov %rbx, %rdi; xor %ebp, %ebp; call *%r12; ud2");
}

static void prepare(struct fibre_stack *stack) {
    void **top = (void **)stack;
    *--top = NULL; /* the call in first_entry then finds the stack aligned */
    *--top = NULL;
    *--top = (void *)(uintptr_t)first_entry;
    *--top = NULL;                        /* rbp */
    *--top = stack;                       /* rbx */
    *--top = (void *)(uintptr_t)run_body; /* r12 */
    top -= 3;
    stack->inside = top;
}
#else
static void switch_sides(place *from, place *to) {
    swapcontext(from, to);
}

static void first_entry(unsigned high, unsigned low) {
    run_body((struct fibre_stack *)((uintptr_t)high << 32 | low));
}

static void prepare(struct fibre_stack *stack) {
    uintptr_t word = (uintptr_t)stack;
    getcontext(&stack->inside);
    stack->inside.uc_stack.ss_sp = low_end(stack) + 1;
    stack->inside.uc_stack.ss_size = STACK_BYTES - sizeof *stack - sizeof(uint64_t);
    makecontext(&stack->inside, (void (*)(void))first_entry, 2, (unsigned)(word >> 16 >> 16),
                (unsigned)word);
}
#endif

/* --- Calls of the sanitizers ------------------------------------------------------------------ */

static void tell_entering(struct fibre_stack *stack) {
    (void)stack;
#ifdef TELL_TSAN
    stack->thread_outside = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(stack->thread, 0);
#endif
#ifdef TELL_ASAN
    __sanitizer_start_switch_fiber(&stack->fake_outside, low_end(stack),
                                   STACK_BYTES - sizeof *stack);
#endif
}

static void tell_entered(struct fibre_stack *stack) {
    (void)stack;
#ifdef TELL_ASAN
    __sanitizer_finish_switch_fiber(stack->fake, &stack->bottom_outside, &stack->bytes_outside);
#endif
}

static void tell_leaving(struct fibre_stack *stack, bool ends) {
    (void)stack, (void)ends;
#ifdef TELL_ASAN
    __sanitizer_start_switch_fiber(ends ? NULL : &stack->fake, stack->bottom_outside,
                                   stack->bytes_outside);
#endif
#ifdef TELL_TSAN
    __tsan_switch_to_fiber(stack->thread_outside, 0);
#endif
}

static void tell_left(struct fibre_stack *stack) {
    (void)stack;
#ifdef TELL_ASAN
    __sanitizer_finish_switch_fiber(stack->fake_outside, NULL, NULL);
#endif
}

/* --- Stacks --------------------------------------------------------------------------------------
 */

static void map_stacks(void) {
    size_t bytes = (size_t)STACKS_A_MAPPING * STACK_BYTES;
    char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) {
        perror("pretended GPU: no memory for the stacks of a kernel's threads");
        abort();
    }
    for (int i = 0; i < STACKS_A_MAPPING; i++) {
        struct fibre_stack *stack = (struct fibre_stack *)(at + (size_t)(i + 1) * STACK_BYTES) - 1;
        stack->next = pool;
        pool = stack;
    }
}

static struct fibre_stack *take_stack(void) {
    pthread_mutex_lock(&pool_lock);
    if (!pool)
        map_stacks();
    struct fibre_stack *stack = pool;
    pool = stack->next;
    pthread_mutex_unlock(&pool_lock);
    return stack;
}

void fibre_drop(struct fibre *fibre) {
    struct fibre_stack *stack = fibre->stack;
    if (!stack)
        return;
    fibre->stack = NULL;
    if (*low_end(stack) != CANARY)
        overrun(stack);
#ifdef TELL_ASAN
    __asan_unpoison_memory_region(low_end(stack), STACK_BYTES);
#endif
    pthread_mutex_lock(&pool_lock);
    stack->next = pool;
    pool = stack;
    pthread_mutex_unlock(&pool_lock);
}

/* --- Fibres --------------------------------------------------------------------------------------
 */

static void run_body(struct fibre_stack *stack) {
    tell_entered(stack);
    stack->body(stack->argument);
    abort(); /* it leaves for good instead */
}

void fibre_begin(struct fibre *fibre, void (*body)(void *argument), void *argument) {
    struct fibre_stack *stack = take_stack();
    *low_end(stack) = CANARY;
    stack->body = body;
    stack->argument = argument;
    stack->fake = NULL;
#ifdef TELL_TSAN
    if (!stack->thread)
        stack->thread = __tsan_create_fiber(0);
#endif
    prepare(stack);
    fibre->stack = stack;
}

void fibre_enter(struct fibre *fibre) {
    struct fibre_stack *stack = fibre->stack;
    tell_entering(stack);
    switch_sides(&stack->outside, &stack->inside);
    tell_left(stack);
#ifdef __x86_64__
    if ((uint64_t *)stack->inside <= low_end(stack))
        overrun(stack);
#endif
}

void fibre_leave(struct fibre *fibre, bool ends) {
    struct fibre_stack *stack = fibre->stack;
    tell_leaving(stack, ends);
    switch_sides(&stack->inside, &stack->outside);
    tell_entered(stack);
}
