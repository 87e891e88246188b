/* SPDX-License-Identifier: BSD-3-Clause */
/* Locks. */
#include <errno.h>
#include "core/lock.h"
#include "core/route.h"
#include "api/checked.h"
#include "api/define.h"

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
}

API(int, test_lock, (long *lock)) {
    WEFT_IN_CALL(__func__);
    weft_check_running(__func__);
    return check_lock_result(lock, weft_lock_test(lock));
}

API(void, clear_lock, (long *lock)) {
    WEFT_IN_CALL(__func__);
    weft_check_running(__func__);
    weft_route_quiet();
    check_lock_result(lock, weft_lock_clear(lock));
}
