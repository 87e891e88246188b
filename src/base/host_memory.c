/* SPDX-License-Identifier: BSD-3-Clause */
/* Stacks that the program allocates itself (coroutines) are not recognised: a frame on such a stack
 * lies outside the thread's stack. */
#include "base/host_memory.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

static _Thread_local struct {
    bool asked;
    uintptr_t low, high; /* equal if the system does not report them */
} stack;

static void stack_ask(void) {
    pthread_attr_t attributes;
    void *low;
    size_t bytes;
    stack.asked = true;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return;
    if (pthread_attr_getstack(&attributes, &low, &bytes) == 0) {
        stack.low = (uintptr_t)low;
        stack.high = stack.low + bytes;
    }
    pthread_attr_destroy(&attributes);
}

/* Memory between this frame and the end of the stack contains only frames. */
static bool stack_has(uintptr_t p) {
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    if (!stack.asked)
        stack_ask();
    return here >= stack.low && p >= here && p < stack.high;
}

/* Returns the start of brk's memory, field 47 of the process's line in /proc, or UINTPTR_MAX if the
 * kernel does not report it. */
static uintptr_t brk_read(void) {
    enum { FIELDS_BEFORE = 46 };
    FILE *file = fopen("/proc/self/stat", "re");
    unsigned long begin = 0;
    bool found = file && fscanf(file, "%*d (%*[^)])") == 0;
    for (int field = 2; found && field < FIELDS_BEFORE; field++)
        found = fscanf(file, " %*s") == 0;
    found = found && fscanf(file, " %lu", &begin) == 1;
    if (file)
        fclose(file);
    return found && begin ? begin : UINTPTR_MAX;
}

static bool brk_has(uintptr_t p) {
    static _Atomic uintptr_t known;
    uintptr_t begin = atomic_load_explicit(&known, memory_order_relaxed);
    if (begin == 0) {
        begin = brk_read();
        atomic_store_explicit(&known, begin, memory_order_relaxed);
    }
    return p >= begin && p < (uintptr_t)sbrk(0);
}

bool weft_host_memory_holds(const void *p) {
    return stack_has((uintptr_t)p) || brk_has((uintptr_t)p);
}
