/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: a thread of the library is not counted among the program's as soon as it has been
 * joined, even if the kernel still lists it. Short slices leave the rest of a thread's scheduling
 * unchanged. PEs: 1 */
#include "base/thread.h"
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include "slices.h"
#include "tap.h"

enum { THREADS = 10000, OTHER_NS = 1000000 };

static void *nothing(void *unused) {
    return unused;
}

static void *shorten_slices(void *policy) {
    bool have = slice_set(OTHER_NS);
    struct sched_param none = {0};
    EXPECT(nice(3) != -1, "nice failed");
    sched_setscheduler(0, *(int *)policy, &none);
    struct attributes before = attributes();
    weft_thread_shorten_slices();
    struct attributes after = attributes();
    if (have)
        EXPECT((after.runtime == 100000) == (*(int *)policy == SCHED_OTHER), "slices of %lu ns",
               (unsigned long)after.runtime);
    EXPECT(after.nice == before.nice && after.policy == before.policy, "nice %d, policy %u",
           after.nice, after.policy);
    return NULL;
}

static void check_slices(int policy, const char *name) {
    pthread_t thread;
    tap_case(name);
    pthread_create(&thread, NULL, shorten_slices, &policy);
    pthread_join(thread, NULL);
}

int main(void) {
    int others = 0, failed = 0;
    tap_start(0);
    tap_case("others have ended once a thread has been joined");
    for (int i = 0; i < THREADS && !failed; i++) {
        pthread_t thread;
        failed = weft_thread_start(&thread, nothing, NULL);
        if (!failed)
            weft_thread_join(thread);
        others += !weft_thread_others_ended();
    }
    EXPECT(failed == 0, "%s", strerror(-failed));
    EXPECT(others == 0, "%d of %d threads were still counted", others, THREADS);
    bool have = slice_set(OTHER_NS);
    check_slices(SCHED_OTHER,
                 have ? "slices get short" : "slices get short # SKIP before Linux 6.12");
    check_slices(SCHED_BATCH, "not those of a thread with another policy");
    return tap_finish();
}
