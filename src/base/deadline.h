/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits of the C library with a deadline, on a clock that cannot be set. glibc 2.31 and later have
 * functions for that. For older versions, and under the thread sanitizer, the time of day is used.
 */
#ifndef WEFT_BASE_DEADLINE_H
#define WEFT_BASE_DEADLINE_H

#include <pthread.h>
#include <semaphore.h>
#include <time.h>
#include "base/sanitizer.h"

#if defined(__GLIBC_PREREQ) && !defined(WEFT_THREAD_SANITIZER)
#if __GLIBC_PREREQ(2, 31)
#define WEFT_DEADLINE_CLOCK CLOCK_MONOTONIC
#endif
#endif
#ifndef WEFT_DEADLINE_CLOCK
#define WEFT_DEADLINE_CLOCK                               CLOCK_REALTIME
#define pthread_mutex_clocklock(mutex, clock, until)      pthread_mutex_timedlock(mutex, until)
#define pthread_cond_clockwait(cond, mutex, clock, until) pthread_cond_timedwait(cond, mutex, until)
#define pthread_clockjoin_np(thread, result, clock, until) \
    pthread_timedjoin_np(thread, result, until)
#define sem_clockwait(event, clock, until) sem_timedwait(event, until)
#endif

/* Returns the time `milliseconds` from now, for the functions below. */
static inline struct timespec weft_deadline_ms(long milliseconds) {
    struct timespec until;
    clock_gettime(WEFT_DEADLINE_CLOCK, &until);
    until.tv_sec += milliseconds / 1000;
    until.tv_nsec += milliseconds % 1000 * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return until;
}

/* As pthread_mutex_timedlock. */
static inline int weft_deadline_lock(pthread_mutex_t *mutex, const struct timespec *until) {
    return pthread_mutex_clocklock(mutex, WEFT_DEADLINE_CLOCK, until);
}

/* As pthread_cond_timedwait. */
static inline int weft_deadline_wait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                     const struct timespec *until) {
    return pthread_cond_clockwait(condition, mutex, WEFT_DEADLINE_CLOCK, until);
}

/* As sem_timedwait. */
static inline int weft_deadline_take(sem_t *event, const struct timespec *until) {
    return sem_clockwait(event, WEFT_DEADLINE_CLOCK, until);
}

/* As pthread_timedjoin_np without a result. */
static inline int weft_deadline_join(pthread_t thread, const struct timespec *until) {
    return pthread_clockjoin_np(thread, NULL, WEFT_DEADLINE_CLOCK, until);
}

#endif
