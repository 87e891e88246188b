/* SPDX-License-Identifier: BSD-3-Clause */
/* The checks of checked mode, and their lines. */
#include "api/checked.h"
#include "core/heap.h"
#include "core/init.h"
#include "api/detour.h"

/* Whether p lies in a heap, and the object there; *begin is NULL when there is none. */
static bool find_object(const void *p, size_t bytes, void **begin, size_t *object_bytes) {
    *begin = NULL;
    if (weft_window_holds(&weft_windows.heap.window, p, bytes))
        weft_heap_find(p, begin, object_bytes);
    else if (weft_devices() && weft_window_holds(weft_space_device->window, p, bytes))
        weft_space_device->find(p, begin, object_bytes);
    else
        return false;
    return true;
}

void weft_checked_object(const char *call, const char *argument, const void *p, size_t bytes) {
    void *begin;
    size_t object_bytes = 0;
    if (!find_object(p, bytes, &begin, &object_bytes))
        return;
    if (!begin)
        weft_job_panic("%s: argument %s is %p, in memory of the symmetric heap that is not "
                       "allocated: it was freed, or never given out",
                       call, argument, p);
    size_t offset = (size_t)((const char *)p - (const char *)begin);
    if (offset > object_bytes || bytes > object_bytes - offset)
        weft_job_panic("%s: argument %s is %p, %zu bytes into an object of %zu bytes: an access of "
                       "%zu bytes leaves it",
                       call, argument, p, offset, object_bytes, bytes);
}

static void check_alignment(const char *call, const char *argument, const void *p,
                            size_t alignment) {
    if ((uintptr_t)p % alignment != 0)
        weft_job_panic("%s: argument %s is %p, not aligned to %zu bytes as its elements are: align "
                       "it, or use the routine's mem form",
                       call, argument, p, alignment);
}

void weft_checked_disjoint(const char *call, const char *a_name, const void *a, size_t a_bytes,
                           const char *b_name, const void *b, size_t b_bytes) {
    uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
    if (a_bytes != 0 && b_bytes != 0 && (x < y ? y - x < a_bytes : x - y < b_bytes))
        weft_job_panic("%s: arguments %s (%p, %zu bytes) and %s (%p, %zu bytes) overlap: pass "
                       "disjoint objects",
                       call, a_name, a, a_bytes, b_name, b, b_bytes);
}

/* The call that a thread is in, at the level where only one may be. */
static _Atomic(const char *) entered;
static _Thread_local bool inside; /* this one is */

/* Where the job is over an end handler may have left the other's call. */
static void check_alone(const char *call, const char *other) {
    if (other && !inside && !weft_job_aborted())
        weft_job_panic("%s: called while another thread is in %s, at thread level "
                       "SHMEM_THREAD_SERIALIZED: let one thread call at a time, or ask "
                       "shmem_init_thread for SHMEM_THREAD_MULTIPLE",
                       call, other);
}

void weft_checked_caller(const char *call) {
    if (weft_job.npes == 0)
        weft_misuse_phase(call);
    if (!weft_thread_allowed())
        weft_job_panic("%s: called by a thread other than the one that called shmem_init, at "
                       "thread level %s: ask shmem_init_thread for SHMEM_THREAD_MULTIPLE",
                       call,
                       weft_thread_level() == SHMEM_THREAD_SINGLE ? "SHMEM_THREAD_SINGLE"
                                                                  : "SHMEM_THREAD_FUNNELED");
    check_alone(call, atomic_load(&entered));
}

bool weft_checked_enter(const char *call) {
    const char *other = NULL;
    weft_checked_caller(call);
    if (inside || weft_thread_level() != SHMEM_THREAD_SERIALIZED)
        return false;
    if (!atomic_compare_exchange_strong(&entered, &other, call))
        check_alone(call, other);
    return inside = true;
}

void weft_checked_leave(void) {
    inside = false;
    atomic_store(&entered, NULL);
}

void weft_checked_access(const char *call, const struct weft_access *access) {
    weft_checked_caller(call);
    if (access->symmetric_bytes == 0)
        return;
    if (!weft_symmetric(access->symmetric, access->symmetric_bytes, access->pe))
        weft_misuse_access(call, access->symmetric_name, access->symmetric, access->symmetric_bytes,
                           access->pe);
    weft_checked_object(call, access->symmetric_name, access->symmetric, access->symmetric_bytes);
    check_alignment(call, access->symmetric_name, access->symmetric, access->alignment);
    if (!access->local_name)
        return;
    weft_checked_object(call, access->local_name, access->local, access->local_bytes);
    check_alignment(call, access->local_name, access->local, access->alignment);
    if (!access->strided && access->pe == weft_job.pe)
        weft_checked_disjoint(call, access->symmetric_name, access->symmetric,
                              access->symmetric_bytes, access->local_name, access->local,
                              access->local_bytes);
}

static const struct weft_same nothing[] = {{NULL, 0}};

void weft_checked_collective(const char *call, struct weft_team *team,
                             const struct weft_same *arguments) {
    weft_consistency_check(team, call, arguments ? arguments : nothing);
}

void weft_checked_group(const struct weft_group *group, const struct weft_same *arguments) {
    if (group->team)
        weft_checked_collective(group->call, group->team, arguments);
    else
        group->check(group, arguments ? arguments : nothing);
}
