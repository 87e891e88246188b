/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: deadlines use a clock that cannot be set, and waits end at their deadlines. PEs: 1
 */
#include "base/deadline.h"
#include <errno.h>
#include "base/clock.h"
#include "tap.h"

static int64_t ms_of(const struct timespec *time) {
    return (int64_t)time->tv_sec * 1000 + time->tv_nsec / 1000000;
}

static void is_monotonic(void) {
    tap_case("a deadline is by the monotonic clock where the C library has such waits");
    struct timespec until = weft_deadline_ms(1500);
    int64_t left = ms_of(&until) - weft_clock_ms();
    if (WEFT_DEADLINE_CLOCK == CLOCK_MONOTONIC)
        EXPECT(left > 0 && left <= 1500, "%ld ms are left", (long)left);
}

static void comes(void) {
    tap_case("each wait ends at its deadline");
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    sem_t event;
    sem_init(&event, 0, 0);
    pthread_mutex_lock(&mutex);
    int64_t begin = weft_clock_ms();
    struct timespec until = weft_deadline_ms(30);
    EXPECT(weft_deadline_lock(&mutex, &until) == ETIMEDOUT, "the mutex was had");
    EXPECT(weft_deadline_wait(&never, &mutex, &until) == ETIMEDOUT, "the condition came");
    EXPECT(weft_deadline_take(&event, &until) < 0 && errno == ETIMEDOUT, "the event came");
    EXPECT(weft_clock_ms() >= begin + 29, "after %ld ms", (long)(weft_clock_ms() - begin));
    pthread_mutex_unlock(&mutex);
}

int main(void) {
    tap_start(0);
    is_monotonic();
    comes();
    return tap_finish();
}
