/* SPDX-License-Identifier: BSD-3-Clause */
/* Joining and leaving the job, and the two ways in which it ends early: another process aborted it,
 * or this one does. */
#include "job/job.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/crash.h"
#include "base/futex.h"
#include "base/place.h"
#include "boot/boot.h"
#include "boot/long_wait.h"
#include "job/made.h"

/* Reasons why ordering takes more than a fence instruction: the job is checked, not running, or has
 * devices; messages are under way. */
enum { ORDER_BY_CALL = 1, ORDER_MESSAGES = 2 };

struct weft_job weft_job = {.order_slow = ORDER_BY_CALL};

static _Atomic bool ended;         /* some thread is ending this process */
static _Thread_local bool ends_it; /* this thread is ending it */

static _Atomic bool left_at_exit;
static _Thread_local bool exits; /* this thread has called exit() */

enum { TEXT_BYTES = 768 };

/* Each reason has its own bit, so threads that set different ones do not disturb each other. A
 * thread that sees a bit cleared also sees everything stored before. */
static void order_slow_set(uint8_t reason, bool on) {
    if (on)
        __atomic_fetch_or(&weft_job.order_slow, reason, __ATOMIC_RELAXED);
    else
        __atomic_fetch_and(&weft_job.order_slow, (uint8_t)~reason, __ATOMIC_RELEASE);
}

void weft_job_set_unfinished(bool unfinished) {
    order_slow_set(ORDER_MESSAGES, unfinished);
}

static void derive_flags(bool running) {
    weft_job.plain = running && !weft_job.checked;
    weft_job.dispatch = weft_job.devices || weft_job.far;
    order_slow_set(ORDER_BY_CALL, !weft_job.plain || weft_job.devices);
    weft_job.slow = weft_job.checked || weft_job.devices;
    weft_job.fetch_slow = weft_job.slow || weft_job.oversubscribed;
}

void weft_job_set_mode(enum weft_job_mode mode, bool on) {
    bool *const flags[] = {[WEFT_JOB_CHECKED] = &weft_job.checked,
                           [WEFT_JOB_DEVICES] = &weft_job.devices,
                           [WEFT_JOB_FAR] = &weft_job.far,
                           [WEFT_JOB_THREADS] = &weft_job.threads};
    *flags[mode] = on;
    derive_flags(weft_job.phase == WEFT_JOB_RUNNING);
}

void weft_job_leave_forked(void) {
    weft_job.phase = WEFT_JOB_FORKED;
    weft_job.npes = 0;
    derive_flags(false);
}

/* This PE has reported an error. oshrun may write the abort word only after an end handler has left
 * the call, and exit() has begun. */
static _Atomic bool panicked;

int weft_job_join(void) {
    int result = weft_boot_join();
    if (result < 0)
        return result;
    weft_job.pe = weft_boot.pe;
    weft_job.npes = weft_boot.npes;
    weft_job.control = weft_boot.control;
    weft_job.oversubscribed = weft_boot_npes_here() > weft_boot.control->cores;
    weft_job.phase = WEFT_JOB_RUNNING;
    panicked = false;
    weft_log_set_pe(weft_boot.npes > 1 ? weft_boot.pe : -1);
    weft_crash_watch();
    return 0;
}

void weft_job_depart(void) {
    if (!weft_job_aborted() && !panicked)
        weft_made_list();
    atomic_fetch_add(&weft_job.control->pe[weft_job.pe].departures, 1);
}

void weft_job_leave_at_exit(void) {
    weft_boot_leave();
    derive_flags(false);
    weft_job.phase = WEFT_JOB_AFTER;
    left_at_exit = exits = true;
}

/* Blocks every thread but the one in exit(): the job is gone, and exit() ends the process. */
static void block_after_exit(void) {
    while (left_at_exit && !exits)
        pause();
}

void weft_job_leave(void) {
    weft_boot_leave();
    weft_job.npes = 0;
    derive_flags(false);
    weft_job.control = NULL;
    weft_job.phase = WEFT_JOB_AFTER;
}

/* Claims the right to end this process; a thread that comes second blocks forever. Exit handlers
 * can take long; meanwhile no other thread is allowed to end the process. */
static void claim_end(void) {
    while (!ends_it && atomic_exchange(&ended, true))
        pause();
    ends_it = true;
}

void weft_job_end(int status) {
    claim_end();
    weft_boot_end_job(status, false);
}

static bool aborted_within(int milliseconds) {
    for (int waited = 0; !weft_job_aborted() && waited < milliseconds; waited++)
        weft_clock_sleep_ms(1);
    return weft_job_aborted();
}

/* The threads that watch GPUs sleep on the abort word and check their GPU when they are woken; on
 * other hosts they check every 50 ms (transport/gpu_rescue.c). */
bool weft_job_ended_before(void) {
    enum { PATIENCE_MS = 100 };
    if (!weft_job.devices)
        return weft_job_aborted();
    weft_futex_wake(&weft_job.control->abort, WEFT_FUTEX_ALL);
    return aborted_within(PATIENCE_MS);
}

void weft_job_end_by_exit(int status) {
    claim_end();
    weft_boot_end_for(weft_job.pe, status);
}

bool weft_job_ending(void) {
    return ends_it;
}

void weft_job_die_aborted(void) {
    block_after_exit();
    struct weft_control *control = weft_job.control;
    bool in_exit = ends_it; /* an exit handler has called this */
    uint32_t reason = atomic_load(&control->abort);
    if (!in_exit)
        weft_boot_tell_end();
    int status = WEFT_STATUS_ABORTED;
    bool by_own_exit = reason == WEFT_ABORT_LEFT && atomic_load(&control->abort_pe) == weft_job.pe;
    claim_end();
    if (reason == WEFT_ABORT_GLOBAL_EXIT || by_own_exit)
        status = atomic_load(&control->abort_detail) & 0xff;
    else if (reason != WEFT_ABORT_ERROR) /* after an error its PE has logged everything already */
        weft_log("in %s: %s; leaving", weft_current_call, weft_boot_abort_text());
    if (reason == WEFT_ABORT_GLOBAL_EXIT && !in_exit)
        exit(status);
    fflush(stdout);
    weft_boot_exit(status);
}

void weft_job_die_soon(void) {
    enum { PATIENCE_MS = 2000 };
    if (aborted_within(PATIENCE_MS))
        weft_job_die_aborted();
}

void weft_job_die_left(int pe, int status) {
    weft_boot_end_for(pe, status);
    weft_job_die_soon();
    weft_job_panic_bare("%s waits for PE %d, which has exited with status %d", weft_current_call,
                        pe, status);
}

void weft_job_panic(const char *format, ...) {
    char text[TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    weft_job_panic_bare("%s: %s", weft_current_call, text);
}

/* Logs the text, then the place of the call in the program: as reported by the program's handler,
 * or one line for each caller. Threads of the library have no such place. */
static void panic_log(const char *text) {
    void *calls[WEFT_PLACE_CALLS];
    char place[WEFT_PLACE_BYTES];
    weft_log("%s", text);
    if (strcmp(weft_current_call, WEFT_NO_CALL) == 0)
        return;
    if (weft_long_wait_where_handled()) {
        weft_long_wait_where(place, sizeof place);
        if (*place)
            weft_log("    %s", place);
        return;
    }
    int count = weft_place_calls(calls);
    for (int i = 0; i < count; i++) {
        weft_place_write_call(calls[i], place, sizeof place);
        weft_log("    %s", place);
    }
}

void weft_job_panic_bare(const char *format, ...) {
    char text[TEXT_BYTES];
    va_list arguments;
    block_after_exit();
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    bool running = weft_job.phase == WEFT_JOB_RUNNING;
    bool handled = running && !ends_it && weft_boot_end_handled();
    if (!handled)
        panic_log(text);
    if (running) {
        panicked = true;
        weft_boot_end_job(WEFT_STATUS_ERROR, true);
    }
    if (handled) {
        weft_boot_tell_error(text); /* the handler may leave this call, so it gets the text first */
        panic_log(text);
    }
    fflush(stdout);
    weft_boot_exit(WEFT_STATUS_ERROR);
}
