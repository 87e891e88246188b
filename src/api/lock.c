/* SPDX-License-Identifier: BSD-3-Clause */
/* Locks. */
#include <errno.h>
#include "core/lock.h"
#include "core/space.h"
#include "api/checked.h"
#include "api/define.h"

static int check_lock_result(const char *call, long *lock, int result) {
    if (result == -EFAULT)
        weft_misuse_access(call, "lock", lock, sizeof *lock, weft_job.pe);
    if (result == -EPERM)
        weft_job_panic("%s: argument lock is %p, which this PE does not hold: clear a lock once "
                       "for each time that it was set",
                       call, (void *)lock);
    return result;
}

API(void, set_lock, (long *lock)) {
    WEFT_ENTER(__func__);
    check_lock_result(__func__, lock, weft_lock_set(lock, __func__));
}

API(int, test_lock, (long *lock)) {
    weft_check_running(__func__);
    return check_lock_result(__func__, lock, weft_lock_test(lock, __func__));
}

API(void, clear_lock, (long *lock)) {
    weft_check_running(__func__);
    weft_space_quiet(__func__);
    check_lock_result(__func__, lock, weft_lock_clear(lock));
}
