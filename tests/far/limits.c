/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: PEs that all send as fast as they can, without waiting, complete in the end, and no
 * memory fills up: neither the engine's (it ends the job above its limit) nor a PE's own. Answers
 * and acknowledgments get through even if all channels are full. PEs: 2 3
 * Far: each limit=1600000,ring=4194304,slow_read_us=5
 * Far: each limit=1600000,ring=4194304,reorder=64,delay_us=200
 * Far: each ring=32768,refuse=10 */
#include <stdio.h>
#include <string.h>
#include "draw.h"

enum { SMALL = 6000, LARGE_BYTES = 16 << 20, LARGE = 1 };

/* The address sanitizer keeps freed memory, by default 256 MiB of it. */
#ifdef __SANITIZE_ADDRESS__
enum { MIB_MAX = 200 };
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "quarantine_size_mb=16";
}
#else
enum { MIB_MAX = 40 };
#endif

static uint64_t words[1024], counter, got[1024];
static unsigned char *large;
static int me, npes;

static long resident_mib(void) {
    long pages = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld %ld", &pages, &resident) != 2)
        resident = 0;
    if (file)
        fclose(file);
    return resident / 256;
}

static void send_small(int count) {
    for (uint64_t i = 0; i < (uint64_t)count; i++)
        for (int pe = 0; pe < npes; pe++)
            shmem_uint64_p(&words[(uint64_t)me * 256 + i % 256], i, pe);
    shmem_barrier_all();
    for (int pe = 0; pe < npes; pe++)
        for (uint64_t k = 0; k < 256; k++) {
            uint64_t last = (uint64_t)count - 1 - ((uint64_t)count - 1 - k) % 256;
            EXPECT(words[(uint64_t)pe * 256 + k] == last, "word %d of PE %d is %lu, not %lu",
                   (int)k, pe, (unsigned long)words[(uint64_t)pe * 256 + k], (unsigned long)last);
        }
    shmem_barrier_all();
}

static void count_up(int count) {
    for (int i = 0; i < count; i++)
        for (int pe = 0; pe < npes; pe++)
            shmem_uint64_atomic_inc(&counter, pe);
    shmem_barrier_all();
    EXPECT(counter == (uint64_t)count * (uint64_t)npes, "counted to %lu", (unsigned long)counter);
}

static void send_large(int count) {
    size_t part = LARGE_BYTES / 4;
    unsigned char *source = malloc(part);
    for (int i = 1; i <= count; i++) {
        fill(source, part, (uint64_t)(i * 10 + me));
        for (int pe = 0; pe < npes; pe++)
            shmem_putmem_nbi(large + (size_t)me * part, source, part, (me + pe) % npes);
        shmem_barrier_all();
        for (int pe = 0; pe < npes; pe++)
            EXPECT(differs(large + (size_t)pe * part, part, (uint64_t)(i * 10 + pe)) == part,
                   "what PE %d has sent is not here", pe);
        shmem_barrier_all();
    }
    free(source);
}

/* Makes all calls that need an answer while the channels in both directions are full of puts. */
static void ask_all(int count) {
    static const unsigned char bytes[4000];
    for (int i = 0; i < count; i++)
        for (int pe = 0; pe < npes; pe++) {
            shmem_putmem_nbi(large + (size_t)me * sizeof bytes, bytes, sizeof bytes, pe);
            shmem_uint64_get_nbi(&got[i % 1024], &words[i % 1024], 1, pe);
            shmem_uint64_atomic_fetch_inc_nbi(&got[i % 1024], &counter, pe);
            if (i % 64 == 63)
                shmem_uint64_atomic_fetch_inc(&counter, pe);
        }
    shmem_barrier_all();
}

int main(void) {
    shmem_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    tap_start(me);
    large = shmem_malloc(LARGE_BYTES);
    memset(large, 1, LARGE_BYTES);
    memset(words, 0, sizeof words);
    shmem_barrier_all();
    long before = resident_mib();
    tap_case("small messages");
    send_small(rounds(SMALL));
    tap_case("atomics that fetch nothing");
    count_up(rounds(SMALL / 4));
    tap_case("large ones");
    send_large(rounds(LARGE));
    tap_case("gets and fetches between them");
    ask_all(rounds(1000));
    tap_case("no memory has filled");
    long grown = resident_mib() - before;
    EXPECT(grown < MIB_MAX, "%ld MiB more than at first", grown);
    int result = tap_finish();
    shmem_finalize();
    return result;
}
