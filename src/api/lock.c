/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include "job/made.h"
#include "core/dispatch.h"
#include "core/lock.h"
#include "api/checked.h"
#include "api/define.h"

/* Records held locks, which checked mode lists at the end of the job. */
static void note_held(long *lock, bool held) {
    if (weft_checked() && held)
        weft_made_keep(WEFT_MADE_LOCK, lock, sizeof *lock);
    else if (weft_checked())
        weft_made_forget(WEFT_MADE_LOCK, lock);
}

static int check_lock_result(long *lock, int result) {
    if (result == -EFAULT)
        weft_misuse_access(weft_current_call, "lock", lock, sizeof *lock, weft_job.pe);
    if (result == -EPERM)
        weft_job_panic("argument lock is %p, which this PE does not hold: clear a lock once for "
                       "each time that it was set",
                       (void *)lock);
    return result;
}

API(void, set_lock, (long *lock)) {
    WEFT_ENTER(__func__);
    check_lock_result(lock, weft_lock_set(lock));
    note_held(lock, true);
}

API(int, test_lock, (long *lock)) {
    WEFT_IN_CALL(__func__);
    weft_check_running(__func__);
    int taken = check_lock_result(lock, weft_lock_test(lock));
    if (taken == 0)
        note_held(lock, true);
    return taken;
}

API(void, clear_lock, (long *lock)) {
    WEFT_IN_CALL(__func__);
    weft_check_running(__func__);
    weft_dispatch_quiet();
    note_held(lock, false);
    check_lock_result(lock, weft_lock_clear(lock));
}
