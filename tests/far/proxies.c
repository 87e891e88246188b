/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: with host proxies, PEs on other hosts have a channel only to the proxy of a host,
 * whichever of its PEs they access. Data, words, atomics and answers are correct at each PE. A PE
 * whose process does not poll is served, and one that sleeps is woken. A stopped PE blocks no
 * other. Teams of any members can be made. PEs: 4
 * Far: 2+2 seed=3 WEFT_PROXIES=host
 * Far: cyclic:2 reorder=16,delay_us=50,refuse=5 WEFT_PROXIES=host
 * Far: list:0,1,1,0 slow_read_us=5 WEFT_PROXIES=host */
#include <shmemx.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "far/channel.h"
#include "far/far.h"
#include "core/init.h"
#include "draw.h"

enum {
    PES_MAX = 6,
    BYTES = 100000,
    ROUNDS = 200,
    GETS = 64,
    GET_BYTES = 8000,
    LATE_US = 20000,
};

static unsigned char landing[PES_MAX][BYTES]; /* symmetric: from each PE */
static uint64_t seen[PES_MAX], counter, flag, stopped, done;
static int me, npes;

static bool is_far(int pe) {
    return shmem_team_translate_pe(SHMEM_TEAM_WORLD, pe, SHMEM_TEAM_SHARED) < 0;
}

/* All messages for a host go to its first PE, and a PE that is no proxy has channels to proxies
 * only. */
static void check_channels(void) {
    bool is_proxy = weft_far_proxy(me) == me;
    for (int pe = 0; pe < npes; pe++) {
        bool proxy = weft_far_proxy(pe) == pe;
        EXPECT(proxy == (weft_far_first(pe) == pe), "PE %d is a proxy: %d", pe, proxy);
        EXPECT(!weft_channels.of[pe] || proxy || is_proxy, "PE %d has a channel to PE %d", me, pe);
        EXPECT(!weft_channels.of[pe] || is_far(pe), "PE %d has a channel to its neighbour %d", me,
               pe);
    }
    shmem_barrier_all(); /* PEs that make teams exchange messages with others, too */
}

static void put_to_all(uint64_t round) {
    static unsigned char source[BYTES];
    for (int pe = 0; pe < npes; pe++) {
        fill(source, BYTES, round * 100 + (uint64_t)(me * 10 + pe));
        shmem_putmem_signal(landing[me], source, BYTES, &seen[me], round, SHMEM_SIGNAL_SET, pe);
    }
}

static void check_data(void) {
    static unsigned char fetched[BYTES];
    for (uint64_t round = 1; round <= 5; round++) {
        put_to_all(round);
        for (int pe = 0; pe < npes; pe++) {
            shmem_signal_wait_until(&seen[pe], SHMEM_CMP_GE, round);
            size_t at = differs(landing[pe], BYTES, round * 100 + (uint64_t)(pe * 10 + me));
            EXPECT(at == BYTES, "byte %zu of PE %d is another one", at, pe);
        }
        shmem_barrier_all();
        for (int pe = 0; pe < npes; pe++) {
            shmem_getmem(fetched, landing[me], BYTES, pe);
            EXPECT(differs(fetched, BYTES, round * 100 + (uint64_t)(me * 10 + pe)) == BYTES,
                   "PE %d has something else", pe);
        }
        shmem_barrier_all();
    }
}

/* Atomics of all PEs, near and far, on each word. */
static void check_atomics(void) {
    for (int i = 0; i < ROUNDS; i++)
        for (int pe = 0; pe < npes; pe++)
            if (i % 2)
                shmem_uint64_atomic_inc(&counter, pe);
            else
                shmem_uint64_atomic_fetch_add(&counter, 1, pe);
    shmem_barrier_all();
    EXPECT(counter == (uint64_t)(ROUNDS * npes), "counted %lu", (unsigned long)counter);
    shmem_barrier_all();
}

/* The PE's own process must not take part in the delivery: its count of polls does not change. */
static void check_quiet(void) {
    for (int pe = 0; pe < npes; pe++)
        if (is_far(pe))
            shmem_uint64_p(&seen[me], 1000, pe);
    shmem_quiet();
    for (int pe = 0; pe < npes; pe++)
        EXPECT(!is_far(pe) || shmem_uint64_g(&seen[me], pe) == 1000, "PE %d has not got it", pe);
    shmem_barrier_all();
}

/* PE 0 is late, so that the others sleep. */
static void check_sleepers(void) {
    for (uint64_t round = 1; round <= 5; round++) {
        if (me == 0)
            usleep(LATE_US);
        for (int pe = 1; me == 0 && pe < npes; pe++)
            shmem_uint64_p(&flag, round, pe);
        if (me != 0)
            shmem_uint64_wait_until(&flag, SHMEM_CMP_EQ, round);
        shmem_barrier_all();
    }
}

/* The last PE is no proxy. It requests more than a ring holds and is stopped. The other PEs
 * continue to access each other and its memory. When all are done, the first PE of its host lets it
 * continue. */
static void check_stopped(void) {
    static unsigned char fetched[GETS][GET_BYTES];
    int last = npes - 1, first = weft_far_first(last), asked = is_far(0) ? 0 : 1;
    if (first == last)
        return; /* its host has no other PE */
    fill(landing[0], GET_BYTES, (uint64_t)me);
    counter = 0;
    shmem_barrier_all();
    if (me == last) {
        shmem_uint64_p(&stopped, (uint64_t)getpid(), first);
        for (int i = 0; i < GETS; i++)
            shmem_getmem_nbi(fetched[i], landing[0], GET_BYTES, asked);
        kill(getpid(), SIGSTOP);
        shmem_quiet();
        shmem_uint64_atomic_inc(&done, first);
    }
    if (me == first) {
        shmem_uint64_wait_until(&stopped, SHMEM_CMP_NE, 0);
        usleep(LATE_US);
    }
    for (int i = 0; me != last && i < ROUNDS; i++)
        for (int pe = 0; pe < npes; pe++)
            shmem_uint64_atomic_fetch_add(&counter, 1, pe);
    if (me != last)
        shmem_uint64_atomic_inc(&done, first);
    if (me == first) {
        shmem_uint64_wait_until(&done, SHMEM_CMP_EQ, (uint64_t)last);
        do {
            kill((pid_t)stopped, SIGCONT); /* it may be late, and not have stopped yet */
            usleep(1000);
        } while (!shmem_uint64_test(&done, SHMEM_CMP_EQ, (uint64_t)npes));
    }
    for (int i = 0; me == last && i < GETS; i++)
        EXPECT(differs(fetched[i], GET_BYTES, (uint64_t)asked) == GET_BYTES, "get %d is wrong", i);
    EXPECT(me != last || counter == (uint64_t)(ROUNDS * last), "counted %lu",
           (unsigned long)counter);
    shmem_barrier_all();
}

/* Teams with and without the first PE of a host. */
static void check_teams(void) {
    for (int first = 0; first < npes; first++) {
        shmem_team_t team;
        int pes[PES_MAX], n = 0;
        for (int pe = npes - 1; pe >= 0; pe--)
            if (pe != first)
                pes[n++] = pe;
        if (me == first)
            continue;
        int rc = shmemx_team_create(pes, n, first, &team);
        EXPECT(rc == 0 && shmem_team_n_pes(team) == n, "rc is %d without PE %d", rc, first);
        shmem_team_sync(team);
        shmem_team_destroy(team);
    }
    shmem_barrier_all();
}

int main(void) {
    shmem_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    tap_start(me);
    tap_case("data with signals, and what is fetched");
    check_data();
    tap_case("atomics of all on all");
    check_atomics();
    tap_case("a quiet waits for the proxy");
    check_quiet();
    tap_case("who sleeps is woken");
    check_sleepers();
    tap_case("who is stopped stops nobody");
    check_stopped();
    tap_case("channels go to proxies");
    check_channels();
    tap_case("teams of any members");
    check_teams();
    int result = tap_finish();
    shmem_finalize();
    return result;
}
