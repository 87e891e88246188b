/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: recognises certainly ordinary memory: the calling thread's frames and small objects
 * of malloc, in any thread; but not mappings, another thread's stack, or addresses below the
 * frames, where anything may be mapped. PEs: 1 */
#include "base/host_memory.h"
#include "tap.h"
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

static int object;
static char *in_main;

/* Returns memory that certainly comes from brk, whatever malloc does. */
static void *from_brk(void) {
    char *p = sbrk(4096);
    return p == (void *)-1 ? NULL : p + 100;
}

static void expect_own(const char *who) {
    int local = 0;
    EXPECT(weft_host_memory_holds(&local), "%s: a local of its own", who);
    EXPECT(!weft_host_memory_holds((void *)((uintptr_t)&local - (1 << 16))), "%s: below its frames",
           who);
    EXPECT(!weft_host_memory_holds(&object), "%s: an object of the program", who);
    EXPECT(!weft_host_memory_holds(NULL) && !weft_host_memory_holds((void *)UINTPTR_MAX),
           "%s: nowhere", who);
}

static void *in_thread(void *brk) {
    expect_own("a thread");
    EXPECT(!weft_host_memory_holds(in_main), "the stack of another thread");
    EXPECT(!brk || weft_host_memory_holds(brk), "%p is brk's", brk);
    return NULL;
}

int main(void) {
    char local = 0;
    pthread_t thread;
    void *brk = from_brk(),
         *mapped = mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    in_main = &local;
    tap_start(0);
    tap_case("in the first thread");
    expect_own("main");
    EXPECT(!brk || weft_host_memory_holds(brk), "%p is brk's", brk);
    EXPECT(!brk || !weft_host_memory_holds((char *)sbrk(0) + 1), "behind it");
    EXPECT(!weft_host_memory_holds(mapped), "a mapping");
    tap_case("in another");
    pthread_create(&thread, NULL, in_thread, brk);
    pthread_join(thread, NULL);
    return tap_finish();
}
