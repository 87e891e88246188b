/* SPDX-License-Identifier: BSD-3-Clause */
/* Latencies and bandwidths between PE 0 and PE 1, each beside the machine's own limit: the same
 * access by a plain instruction through shmem_ptr, or memcpy. Run with 2 PEs; with more PEs only
 * the barrier is measured. JSON lines: bench_report. */
#include <shmem.h>
#include <stdatomic.h>
#include <string.h>
#include "bench.h"

enum { REPEATS = 15, LARGEST = 16 << 20 };

/* In the heap, which is fastest in every library. Each word has a cache line of its own. */
static unsigned long *word, *flag, *raw_flag;
static uint64_t *signal_word;
static char *remote, *local; /* LARGEST bytes each */
static int me, npes;

/* A measured loop: `n` operations; the result is seconds per operation, median of REPEATS. */
typedef void loop(long n);

static double measure(loop *body, long n) {
    double samples[REPEATS];
    body(n / 10 + 1);
    for (int i = 0; i < REPEATS; i++) {
        double begin = bench_now();
        body(n);
        samples[i] = (bench_now() - begin) / (double)n;
    }
    return bench_median(samples, REPEATS);
}

/* The machine's limit, if the library permits direct access to a peer's memory. */
static double limit(loop *body, long n) {
    return shmem_ptr(word, me == 0) && shmem_ptr(remote, me == 0) ? measure(body, n) : 0;
}

static double rate(double amount, double seconds) {
    return seconds > 0 ? amount / seconds : 0;
}

/* --- One-sided: PE 0 works, the others wait in a barrier ------------------------------------- */

static void put_quiet(long n) {
    uint64_t value = 1;
    for (long i = 0; i < n; i++) {
        shmem_putmem(word, &value, sizeof value, 1);
        shmem_quiet();
    }
}

static void store_fence(long n) {
    _Atomic uint64_t *there = shmem_ptr(word, 1);
    for (long i = 0; i < n; i++) {
        atomic_store_explicit(there, (uint64_t)i, memory_order_relaxed);
        atomic_thread_fence(memory_order_seq_cst);
    }
}

static void get(long n) {
    uint64_t value;
    for (long i = 0; i < n; i++) {
        shmem_getmem(&value, word, sizeof value, 1);
        __asm__ volatile("" : : "r"(value) : "memory");
    }
}

static void load(long n) {
    _Atomic uint64_t *there = shmem_ptr(word, 1);
    for (long i = 0; i < n; i++) {
        uint64_t value = atomic_load_explicit(there, memory_order_relaxed);
        __asm__ volatile("" : : "r"(value) : "memory");
    }
}

static void fetch_add(long n) {
    for (long i = 0; i < n; i++)
        shmem_ulong_atomic_fetch_add(word, 1, 1);
}

static void instruction_fetch_add(long n) {
    _Atomic uint64_t *there = shmem_ptr(word, 1);
    for (long i = 0; i < n; i++) {
        uint64_t value = atomic_fetch_add(there, 1);
        __asm__ volatile("" : : "r"(value) : "memory");
    }
}

static void add(long n) {
    for (long i = 0; i < n; i++)
        shmem_ulong_atomic_add(word, 1, 1);
}

static void put_nbi(long n) {
    uint64_t value = 1;
    for (long i = 0; i < n; i++)
        shmem_putmem_nbi(word, &value, sizeof value, 1);
    shmem_quiet();
}

static void store(long n) {
    _Atomic uint64_t *there = shmem_ptr(word, 1);
    for (long i = 0; i < n; i++)
        atomic_store_explicit(there, (uint64_t)i, memory_order_relaxed);
}

static void latencies(void) {
    enum { N = 2000000 };
    if (me == 0) {
        bench_report("put 8 B + quiet", 1e9 * measure(put_quiet, N), 1e9 * limit(store_fence, N),
                     "ns");
        bench_report("get 8 B", 1e9 * measure(get, N), 1e9 * limit(load, N), "ns");
        bench_report("fetch_add", 1e9 * measure(fetch_add, N),
                     1e9 * limit(instruction_fetch_add, N), "ns");
        bench_report("put_nbi 8 B", rate(1e-6, measure(put_nbi, N)), rate(1e-6, limit(store, N)),
                     "M/s");
        bench_report("add 8 B", rate(1e-6, measure(add, N)),
                     rate(1e-6, limit(instruction_fetch_add, N)), "M/s");
    }
    shmem_barrier_all();
}

static size_t copy_bytes;

static void put_block(long n) {
    for (long i = 0; i < n; i++)
        shmem_putmem(remote, local, copy_bytes, 1);
    shmem_quiet();
}

static void copy_block(long n) {
    char *there = shmem_ptr(remote, 1);
    for (long i = 0; i < n; i++) {
        memcpy(there, local, copy_bytes);
        __asm__ volatile("" : : : "memory");
    }
}

static void bandwidths(void) {
    static const struct {
        size_t bytes;
        const char *row;
    } sizes[] = {{4 << 10, "put 4 KiB"},
                 {64 << 10, "put 64 KiB"},
                 {1 << 20, "put 1 MiB"},
                 {16 << 20, "put 16 MiB"}};
    for (size_t i = 0; me == 0 && i < sizeof sizes / sizeof *sizes; i++) {
        bench_progress(me, sizes[i].row);
        copy_bytes = sizes[i].bytes;
        long n = (long)((size_t)256 << 20) / (long)copy_bytes;
        double put = rate(1e-9 * (double)copy_bytes, measure(put_block, n));
        double copy = rate(1e-9 * (double)copy_bytes, limit(copy_block, n));
        bench_report(sizes[i].row, put, copy, "GB/s");
    }
    shmem_barrier_all();
}

/* --- Both sides: every PE runs the loop ------------------------------------------------------ */

/* The flags only grow, so a loop needs no reset. */
static uint64_t flag_sent, raw_sent;

static void flag_ping_pong(long n) {
    for (long i = 0; i < n; i++) {
        uint64_t value = ++flag_sent;
        if (me == 0)
            shmem_ulong_p(flag, value, 1);
        shmem_ulong_wait_until(flag, SHMEM_CMP_GE, value);
        if (me == 1)
            shmem_ulong_p(flag, value, 0);
    }
}

static void raw_ping_pong(long n) {
    _Atomic uint64_t *there = shmem_ptr(raw_flag, 1 - me), *here = (_Atomic uint64_t *)raw_flag;
    for (long i = 0; i < n; i++) {
        uint64_t value = ++raw_sent;
        if (me == 0)
            atomic_store_explicit(there, value, memory_order_release);
        while (atomic_load_explicit(here, memory_order_acquire) < value)
            ;
        if (me == 1)
            atomic_store_explicit(there, value, memory_order_release);
    }
}

#ifdef SHMEM_SIGNAL_SET /* from OpenSHMEM 1.5 on */
static uint64_t signal_sent;

static void signal_ping_pong(long n) {
    uint64_t payload = 1;
    for (long i = 0; i < n; i++) {
        uint64_t value = ++signal_sent;
        if (me == 0)
            shmem_putmem_signal(word, &payload, sizeof payload, signal_word, value,
                                SHMEM_SIGNAL_SET, 1);
        shmem_signal_wait_until(signal_word, SHMEM_CMP_GE, value);
        if (me == 1)
            shmem_putmem_signal(word, &payload, sizeof payload, signal_word, value,
                                SHMEM_SIGNAL_SET, 0);
    }
}
#endif

static void barrier(long n) {
    for (long i = 0; i < n; i++)
        shmem_barrier_all();
}

static void malloc_free(long n) {
    for (long i = 0; i < n; i++)
        shmem_free(shmem_malloc(1024));
}

static void both_sides(void) {
    enum { N = 200000 };
    double raw = 0;
    if (npes == 2) {
        raw = 0.5e9 * limit(raw_ping_pong, N);
        bench_report("wait_until ping-pong, one way", 0.5e9 * measure(flag_ping_pong, N), raw,
                     "ns");
#ifdef SHMEM_SIGNAL_SET
        bench_report("put_signal ping-pong, one way", 0.5e9 * measure(signal_ping_pong, N), raw,
                     "ns");
#endif
    }
    bench_report("barrier_all", 1e9 * measure(barrier, N / 2), 2 * raw, "ns");
    bench_report("shmem_malloc + shmem_free 1 KiB", 1e9 * measure(malloc_free, N / 4), 0, "ns");
}

int main(void) {
    shmem_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    word = shmem_align(64, 64);
    flag = shmem_align(64, 64);
    raw_flag = shmem_align(64, 64);
    signal_word = shmem_align(64, 64);
    *word = *flag = *raw_flag = *signal_word = 0;
    remote = shmem_malloc(LARGEST);
    local = shmem_malloc(LARGEST);
    memset(remote, 1, LARGEST);
    memset(local, 2, LARGEST);
    shmem_barrier_all();
    if (npes == 2) {
        latencies();
        bandwidths();
    }
    both_sides();
    shmem_finalize();
    return 0;
}
