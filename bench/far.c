/* SPDX-License-Identifier: BSD-3-Clause */
/* The overhead of the library above an engine: accesses of PE 0 to PE 1, each beside the bare round
 * trip, a word in shared memory that both PEs set and poll in turn. It is run with PE 1 near, and
 * far over the engine of the tests, which costs next to nothing (bench/run.sh); and on two hosts,
 * where there is no such word, with this and other libraries (bench/hosts/run.py). 2 PEs. */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "bench.h"
#include "far_rows.h"

static uint64_t word, signal_word;
static unsigned char *remote, *local;
static int me;
static const char *distance;
static double way; /* time of a word from one PE to the other, one way, in us; 0: unknown */

/* Two words, each on cache lines of its own, that both processes map. */
static struct bare {
    _Alignas(128) _Atomic uint64_t there;
    _Alignas(128) _Atomic uint64_t back;
} * bare;

/* Returns whether both PEs are on one host. */
static bool share_host(void) {
    static char mine[40], theirs[40];
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (!file || !fgets(mine, sizeof mine, file))
        shmem_global_exit(1);
    fclose(file);
    shmem_putmem(theirs, mine, sizeof mine, !me);
    shmem_barrier_all();
    return strcmp(mine, theirs) == 0;
}

/* Maps memory without the library, because far PEs have no common memory. */
static void map_bare(void) {
    static uint64_t pid, file;
    char path[64];
    int fd = -1;
    if (me == 0) {
        fd = memfd_create("bare", 0);
        if (fd < 0 || ftruncate(fd, sizeof *bare) < 0)
            shmem_global_exit(1);
        shmem_uint64_p(&pid, (uint64_t)getpid(), 1);
        shmem_uint64_p(&file, (uint64_t)fd, 1);
    }
    shmem_barrier_all();
    if (me != 0) {
        snprintf(path, sizeof path, "/proc/%lu/fd/%lu", (unsigned long)pid, (unsigned long)file);
        fd = open(path, O_RDWR);
    }
    bare = mmap(NULL, sizeof *bare, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (bare == MAP_FAILED)
        shmem_global_exit(1);
    shmem_barrier_all();
}

static uint64_t turn; /* of the ping-pongs, the same on both PEs */

static void bare_ping_pong(long n) {
    for (long i = 0; i < n; i++) {
        turn++;
        if (me == 0)
            atomic_store_explicit(&bare->there, turn, memory_order_release);
        _Atomic uint64_t *mine = me == 0 ? &bare->back : &bare->there;
        while (atomic_load_explicit(mine, memory_order_acquire) != turn)
            continue;
        if (me != 0)
            atomic_store_explicit(&bare->back, turn, memory_order_release);
    }
}

static void put_quiet(long n) {
    for (long i = 0; i < n && me == 0; i++) {
        shmem_uint64_p(&word, (uint64_t)i, 1);
        shmem_quiet();
    }
}

static void get(long n) {
    for (long i = 0; i < n && me == 0; i++)
        shmem_uint64_g(&word, 1);
}

static void fetch_add(long n) {
    for (long i = 0; i < n && me == 0; i++)
        shmem_ulong_atomic_fetch_add(&word, 1, 1);
}

#ifdef SHMEM_SIGNAL_SET
static void send_signal(void) {
    shmem_putmem_signal(remote, local, bytes, &signal_word, turn, SHMEM_SIGNAL_SET, !me);
}
#else /* before OpenSHMEM 1.5 */
static void send_signal(void) {
    shmem_putmem(remote, local, bytes, !me);
    shmem_fence();
    shmem_uint64_p(&signal_word, turn, !me);
}
#endif

static void put_signal(long n) {
    for (long i = 0; i < n; i++) {
        turn++;
        if (me == 0)
            send_signal();
        shmem_uint64_wait_until(&signal_word, SHMEM_CMP_EQ, turn);
        if (me != 0)
            send_signal();
    }
}

static void barrier(long n) {
    for (long i = 0; i < n; i++)
        shmem_barrier_all();
}

static void put(long n) {
    for (long i = 0; i < n && me == 0; i++)
        shmem_putmem(remote, local, bytes, 1);
    if (me == 0)
        shmem_quiet();
}

static void get_block(long n) {
    for (long i = 0; i < n && me == 0; i++)
        shmem_getmem(local, remote, bytes, 1);
}

static void report(const struct far_row *row, double value, const char *unit) {
    char name[64];
    snprintf(name, sizeof name, "%s: %s", distance, row->name);
    bench_report(name, value, row->ways * way, unit);
}

static void measure_bare(long n) {
    double samples[SAMPLES];
    map_bare();
    for (int i = 0; i < SAMPLES; i++) {
        double begin = bench_now();
        bare_ping_pong(n);
        samples[i] = (bench_now() - begin) / (double)n;
    }
    way = 0.5e6 * bench_median(samples, SAMPLES);
}

int main(void) {
    loop *const loops[ROWS] = {[PUT_QUIET] = put_quiet,
                               [GET] = get,
                               [FETCH_ADD] = fetch_add,
                               [PUT_SIGNAL] = put_signal,
                               [PUT_SIGNAL_BLOCK] = put_signal,
                               [BARRIER] = barrier,
                               [PUT_MANY] = put,
                               [PUT_LARGE] = put,
                               [GET_LARGE] = get_block};
    shmem_init();
    me = shmem_my_pe();
    if (shmem_n_pes() != 2)
        shmem_global_exit(2);
    distance = shmem_ptr(&word, !me) ? "near" : "far";
    remote = shmem_malloc(LARGEST);
    local = malloc(LARGEST);
    memset(local, 1, LARGEST);
    memset(remote, 1, LARGEST);
    bool one_host = share_host();
    long n = one_host ? 20000 : 500;
    if (one_host)
        measure_bare(n / 10);
    far_rows_measure(loops, n, shmem_barrier_all, report);
    shmem_finalize();
    return 0;
}
