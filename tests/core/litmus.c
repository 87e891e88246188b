/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: litmus tests between two PEs, ten million instances each, a tenth of that if some
 * PEs of the job are far, and with sanitizers. Message passing with a fence, store buffering with a
 * quiet, put with signal: a batch of instances is an array; both PEs race through it after a
 * barrier, sometimes delayed, and the outcomes are compared afterwards. PEs: 2 4 */
#include <shmem.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "reach.h"
#include "tap.h"

enum { INSTANCES = 10000000, FEW_INSTANCES = 1000000, BATCH = 4096 };

static uint64_t data[BATCH], flag[BATCH]; /* symmetric */
static uint64_t seen[BATCH];              /* what this PE observed */
static uint64_t peer_seen[BATCH];
static int me, peer;

static void hold_up(unsigned *random) {
    *random = *random * 1664525u + 1013904223u;
    for (volatile unsigned i = *random >> 26; i > 0; i--)
        ;
}

typedef void racer(unsigned *random);

/* Returns whether this is the short form in a build with sanitizers, which take ten times as long
 * and see no reordering. */
static int sanitized(void) {
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
    return getenv("WEFT_TEST_LONG") == NULL;
#else
    return 0;
#endif
}

/* Runs every batch: zeroes, races, and passes what PE 1 saw to PE 0's check. */
static long race(racer *first, racer *second, int (*forbidden)(int)) {
    unsigned random = 12345u + (unsigned)me;
    long found = 0;
    int batches = (reach_is_near_to_all() && !sanitized() ? INSTANCES : FEW_INSTANCES) / BATCH + 1;
    for (int batch = 0; batch < batches; batch++) {
        memset(data, 0, sizeof data);
        memset(flag, 0, sizeof flag);
        shmem_barrier_all();
        if (me < 2)
            (me == 0 ? first : second)(&random);
        shmem_barrier_all();
        if (me == 1)
            shmem_putmem(peer_seen, seen, sizeof seen, 0);
        shmem_barrier_all();
        for (int i = 0; me == 0 && i < BATCH; i++)
            found += forbidden(i);
    }
    return found;
}

/* Message passing: data, fence, flag; the reader tests the flag, then reads the data. */
static void write_fence_flag(unsigned *random) {
    for (int i = 0; i < BATCH; i++) {
        shmem_uint64_p(&data[i], 1, peer);
        shmem_fence();
        shmem_uint64_p(&flag[i], 1, peer);
        if (i % 16 == 0)
            hold_up(random);
    }
}

static void test_then_read(unsigned *random) {
    for (int i = 0; i < BATCH; i++) {
        seen[i] = shmem_uint64_test(&flag[i], SHMEM_CMP_EQ, 1) ? 2 : 0;
        seen[i] |= *(volatile uint64_t *)&data[i];
        if (i % 16 == 0)
            hold_up(random);
    }
}

static int flag_without_data(int i) {
    return peer_seen[i] == 2;
}

/* Store buffering: each puts to the other, quiet, then reads what the other puts. */
static void put_quiet_read(unsigned *random) {
    uint64_t *mine = me == 0 ? data : flag, *theirs = me == 0 ? flag : data;
    for (int i = 0; i < BATCH; i++) {
        shmem_uint64_p(&mine[i], 1, peer);
        shmem_quiet();
        seen[i] = *(volatile uint64_t *)&theirs[i];
        if (i % 16 == 0)
            hold_up(random);
    }
}

static int both_read_zero(int i) {
    return seen[i] == 0 && peer_seen[i] == 0;
}

/* Put with signal: a PE that sees the signal sees the payload. */
static void put_with_signal(unsigned *random) {
    uint64_t one = 1;
    for (int i = 0; i < BATCH; i++) {
        shmem_uint64_put_signal(&data[i], &one, 1, &flag[i], 1, SHMEM_SIGNAL_ADD, peer);
        if (i % 16 == 0)
            hold_up(random);
    }
}

static void fetch_then_read(unsigned *random) {
    for (int i = 0; i < BATCH; i++) {
        seen[i] = shmem_signal_fetch(&flag[i]) * 2;
        seen[i] |= *(volatile uint64_t *)&data[i];
        if (i % 16 == 0)
            hold_up(random);
    }
}

int main(void) {
    shmem_init();
    me = shmem_my_pe();
    peer = me == 0 ? 1 : 0;
    tap_start(me);
    tap_case("message passing: a flag behind a fence never comes before its data");
    long found = race(write_fence_flag, test_then_read, flag_without_data);
    EXPECT(found == 0, "%ld forbidden outcomes", found);
    tap_case("store buffering: with a quiet, one of two PEs sees the other's put");
    found = race(put_quiet_read, put_quiet_read, both_read_zero);
    EXPECT(found == 0, "%ld forbidden outcomes", found);
    tap_case("a signal never comes before its payload");
    found = race(put_with_signal, fetch_then_read, flag_without_data);
    EXPECT(found == 0, "%ld forbidden outcomes", found);
    int result = tap_finish();
    shmem_finalize();
    return result;
}
