/* SPDX-License-Identifier: BSD-3-Clause */
/* Ends the job with an error line if a call is made at a time, or from a thread, where it is not
 * allowed. */
#include "api/entry.h"
#include <stdatomic.h>
#include <shmem.h>
#include "core/init.h"

/* The call that a thread is in, at the thread level that allows one call at a time. */
static _Atomic(const char *) entered;
static _Thread_local bool inside; /* this thread is in it */

/* Ends the job if `other` names a call that another thread is in. Not after the end of the job: an
 * end handler may have left that call by longjmp, which does not clear `entered`. */
static void check_alone(const char *other) {
    if (other && !inside && !weft_job_aborted())
        weft_job_panic(
            "called while another thread is in %s, at thread level SHMEM_THREAD_SERIALIZED: let "
            "one thread call at a time, or ask shmem_init_thread for SHMEM_THREAD_MULTIPLE",
            other);
}

void weft_entry_check(const char *call) {
    WEFT_IN_CALL(call);
    if (weft_job.npes == 0)
        weft_misuse_phase(call);
    if (!weft_thread_allowed())
        weft_job_panic("called by a thread other than the one that called shmem_init, at thread "
                       "level %s: ask shmem_init_thread for SHMEM_THREAD_MULTIPLE",
                       weft_thread_level() == SHMEM_THREAD_SINGLE ? "SHMEM_THREAD_SINGLE"
                                                                  : "SHMEM_THREAD_FUNNELED");
    check_alone(atomic_load(&entered));
}

bool weft_entry_begin(const char *call) {
    const char *other = NULL;
    weft_entry_check(call);
    if (inside || weft_thread_level() != SHMEM_THREAD_SERIALIZED)
        return false;
    if (!atomic_compare_exchange_strong(&entered, &other, call))
        check_alone(other);
    return inside = true;
}

void weft_entry_leave(void) {
    inside = false;
    atomic_store(&entered, NULL);
}
