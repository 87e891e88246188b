/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: a thread of the library's own is not counted among the program's from the moment on
 * in which it has been joined, though the kernel may list it a little longer. PEs: 1 */
#include "base/thread.h"
#include <string.h>
#include "tap.h"

enum { THREADS = 10000 };

static void *nothing(void *unused) {
    return unused;
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
    return tap_finish();
}
