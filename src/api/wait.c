/* SPDX-License-Identifier: BSD-3-Clause */
/* Point-to-point synchronisation: waiting for, and testing, one word or a set of words.
 *
 * A call that returns satisfied has acquired: everything that the writer ordered before the word is
 * visible. An empty set is satisfied at once, and its pointers are not accessed. */
#include "api/wait.h"
#include <sched.h>
#include <shmemx.h>
#include "job/poll.h"
#include "api/define.h"

/* --- Sets ------------------------------------------------------------------------------------ */

/* Returns false if there is nothing to wait for. */
static bool open_view(struct weft_view *view, const struct weft_ivars *set) {
    if (weft_ivars_empty(set))
        return false;
    weft_check_ivars("ivars", set->ivars, set->type, set->nelems, set->cmp);
    weft_check_local(weft_current_call, "cmp_values", set->cmp_values, set->nelems);
    weft_view_open(view, set);
    return true;
}

/* --- Waits and tests ------------------------------------------------------------------------- */

/* Waits for one word after the other. The specification counts a word as satisfied once it has been
 * seen so, also if that was at the previous look. */
void weft_api_wait_until_all(const char *call, const struct weft_ivars *set) {
    WEFT_ENTER(call);
    struct weft_view view;
    if (!open_view(&view, set))
        return;
    weft_view_look(&view);
    for (size_t i = 0; i < set->nelems; i++)
        if (!set->status || set->status[i] == 0)
            WEFT_WAIT_FOR(WEFT_AWAITED_IVARS(set, i),
                          weft_ivars_met(&view.set, i) || weft_ivars_met(weft_view_look(&view), i));
    weft_view_close(&view);
}

size_t weft_api_wait_until_any(const char *call, const struct weft_ivars *set) {
    WEFT_ENTER(call);
    struct weft_view view;
    size_t found = SIZE_MAX;
    if (!open_view(&view, set))
        return SIZE_MAX;
    WEFT_WAIT_FOR(WEFT_AWAITED_IVARS(set, WEFT_AWAITED_ANY),
                  (found = weft_ivars_any(weft_view_look(&view))) != SIZE_MAX);
    weft_view_close(&view);
    return found;
}

size_t weft_api_wait_until_some(const char *call, const struct weft_ivars *set, size_t *indices) {
    WEFT_ENTER(call);
    struct weft_view view;
    size_t found = 0;
    if (!open_view(&view, set))
        return 0;
    weft_check_local(call, "indices", indices, set->nelems);
    WEFT_WAIT_FOR(WEFT_AWAITED_IVARS(set, WEFT_AWAITED_ANY),
                  (found = weft_ivars_some(weft_view_look(&view), indices)) != 0);
    weft_view_close(&view);
    return found;
}

/* Ends a test. If PEs share processors, the PE that is waited for may need this processor (a flag
 * passed 300 times around 4 PEs on 2 cores: 4.4 s without the yield, 0.1 s with it), and testing a
 * word twice has no other purpose; a loop may also continue while its condition is met. `key` is
 * the value of the word, the first one of a set. */
static void end_test(const void *ivars, uint64_t key, bool met) {
    if (!met && weft_job_aborted())
        weft_job_die_aborted();
    if (__builtin_expect(!weft_job.oversubscribed, 1))
        return;
    if (met)
        weft_poll_look(ivars, weft_job.pe, key, weft_current_call);
    else if (weft_poll_repeats(ivars, weft_poll_number(ivars, weft_job.pe, key)))
        sched_yield();
}

int weft_api_test_slow(const char *call, struct weft_ivar_type type, const void *ivar, int cmp,
                       const void *cmp_value) {
    WEFT_IN_CALL(call);
    weft_check_ivars("ivar", ivar, type, 1, cmp);
    uint64_t bound = weft_ivar_key(type, cmp_value);
    uint64_t key = weft_view_key(type, ivar);
    bool met = weft_ivar_compare(key, cmp, bound);
    end_test(ivar, key, met);
    return met;
}

static inline void end_view(struct weft_view *view, bool met) {
    if (!met || weft_job.oversubscribed)
        end_test(view->words, weft_ivar_key(view->set.type, view->set.ivars), met);
    weft_view_close(view);
}

int weft_api_test_all(const char *call, const struct weft_ivars *set) {
    WEFT_ENTER(call);
    struct weft_view view;
    if (!open_view(&view, set))
        return true;
    bool met = weft_ivars_all(weft_view_look(&view));
    end_view(&view, met);
    return met;
}

size_t weft_api_test_any(const char *call, const struct weft_ivars *set) {
    WEFT_ENTER(call);
    struct weft_view view;
    if (!open_view(&view, set))
        return SIZE_MAX;
    size_t found = weft_ivars_any(weft_view_look(&view));
    end_view(&view, found != SIZE_MAX);
    return found;
}

size_t weft_api_test_some(const char *call, const struct weft_ivars *set, size_t *indices) {
    WEFT_ENTER(call);
    struct weft_view view;
    if (!open_view(&view, set))
        return 0;
    weft_check_local(call, "indices", indices, set->nelems);
    size_t found = weft_ivars_some(weft_view_look(&view), indices);
    end_view(&view, found != 0);
    return found;
}

/* --- Waits of the program itself -------------------------------------------------------------- */

_Static_assert(sizeof(struct weft_waiter) <= sizeof(shmemx_wait_t), "a waiter fits");
_Static_assert(offsetof(struct weft_waiter, call) == offsetof(shmemx_wait_t, call), "as named");

void shmemx_wait_turn(shmemx_wait_t *wait) {
    struct weft_waiter *waiter = (struct weft_waiter *)wait;
    weft_check_running(__func__);
    weft_check_local(__func__, "wait->call", wait->call, 1);
    WEFT_IN_CALL(wait->call);
    if (waiter->turns == 0)
        waiter->pe = WEFT_PE_ANY;
    weft_waiter_turn(waiter);
}

void shmemx_wait_end(shmemx_wait_t *wait) {
    weft_waiter_end((struct weft_waiter *)wait);
}

SHMEM_WAIT_TYPES(WEFT_WAITS, _)
