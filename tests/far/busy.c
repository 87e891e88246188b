/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: a PE that computes and makes no call still serves its peers: their gets, fetches,
 * puts and locks complete within milliseconds. PEs: 2
 * Far: each
 * Far: each delay_us=50,reorder=8 */
#include <stdatomic.h>
#include <time.h>
#include "draw.h"

enum { CALLS = 21, COMPUTE_MS = 1000, SLOWEST_MS = 5 };

static uint64_t word, stop, signal_word;
static unsigned char bytes[64 << 10];

static double now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static void get_word(void) {
    shmem_uint64_g(&word, 1);
}

static void get_bytes(void) {
    static unsigned char copy[sizeof bytes];
    shmem_getmem(copy, bytes, sizeof bytes, 1);
}

static void fetch_add(void) {
    shmem_uint64_atomic_fetch_add(&word, 1, 1);
}

static void put_and_quiet(void) {
    static unsigned char source[sizeof bytes];
    shmem_putmem(bytes, source, sizeof bytes, 1);
    shmem_quiet();
}

static void put_signal_and_quiet(void) {
    shmem_putmem_signal(bytes, &word, sizeof word, &signal_word, 1, SHMEM_SIGNAL_ADD, 1);
    shmem_quiet();
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Times some calls, spaced so that no thread still polls when the next one arrives. Other programs
 * may use the processors for a while, so the lower quartile is judged. */
static void time_call(const char *name, void (*call)(void)) {
    double ms[CALLS];
    tap_case(name);
    for (int i = 0; i < CALLS && shmem_my_pe() == 0; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
        double begin = now_ms();
        call();
        ms[i] = now_ms() - begin;
    }
    if (shmem_my_pe() != 0)
        return;
    qsort(ms, CALLS, sizeof *ms, compare);
    printf("# %s: %.3f ms, slowest %.3f\n", name, ms[CALLS / 2], ms[CALLS - 1]);
    EXPECT(ms[CALLS / 4] < SLOWEST_MS, "%.1f ms in the lower quartile", ms[CALLS / 4]);
}

/* Accesses only this PE's memory until a put ends the loop, for at most a second. */
static void compute(void) {
    double end = now_ms() + COMPUTE_MS;
    while (now_ms() < end && __atomic_load_n(&stop, __ATOMIC_ACQUIRE) == 0)
        continue;
}

int main(void) {
    shmem_init();
    tap_start(shmem_my_pe());
    shmem_barrier_all();
    if (shmem_my_pe() == 1)
        compute();
    time_call("a word is got", get_word);
    time_call("64 KiB are got", get_bytes);
    time_call("a word is fetched and added to", fetch_add);
    time_call("64 KiB are put, and complete", put_and_quiet);
    time_call("a signal is put, and complete", put_signal_and_quiet);
    tap_case("a put ends what the other PE does");
    if (shmem_my_pe() == 0)
        shmem_uint64_p(&stop, 1, 1);
    shmem_barrier_all();
    EXPECT(shmem_my_pe() == 0 || stop == 1, "it has not come");
    int result = tap_finish();
    shmem_finalize();
    return result;
}
