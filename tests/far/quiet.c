/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: after a quiet, everything that this PE has begun is complete as other PEs see it. A
 * third PE that is notified in another way finds it. Covers quiet for some PEs, of contexts, and
 * barriers. PEs: 3
 * Far: each seed=7,reorder=16,delay_us=100
 * Far: list:0,0,1 delay_us=50,slow_read_us=5
 * Far: list:0,1,1 refuse=10;pe=1,reorder=64,delay_us=300 */
#include <string.h>
#include "draw.h"

enum { BYTES = 1 << 16, COUNTERS = 64 };

static struct board {
    unsigned char bytes[BYTES];
    uint64_t counters[COUNTERS], signal;
    short strided[COUNTERS * 3];
} board;
static struct board seen; /* private to the PE that looks */
static uint64_t told, answered;
static int me, npes;

/* One operation of each kind by which a writer changes `pe` in a round. */
static void write_all(shmem_ctx_t ctx, uint64_t round, int pe) {
    static unsigned char source[BYTES];
    static short elements[COUNTERS];
    fill(source, BYTES, round);
    for (int i = 0; i < COUNTERS; i++)
        elements[i] = (short)((int)round + i);
    shmem_ctx_putmem_nbi(ctx, board.bytes, source, BYTES / 2, pe);
    shmem_ctx_putmem(ctx, board.bytes + BYTES / 2, source + BYTES / 2, BYTES / 2 - 1, pe);
    shmem_ctx_short_iput(ctx, board.strided, elements, 3, 1, COUNTERS, pe);
    for (int i = 0; i < COUNTERS; i++)
        shmem_ctx_uint64_atomic_add(ctx, &board.counters[i], 1, pe);
    shmem_ctx_putmem_signal_nbi(ctx, &board.bytes[BYTES - 1], &source[BYTES - 1], 1, &board.signal,
                                round, SHMEM_SIGNAL_SET, pe);
}

static void expect_all(uint64_t round, int pe) {
    shmem_getmem(&seen, &board, sizeof seen, pe);
    size_t at = differs(seen.bytes, BYTES, round);
    EXPECT(at == BYTES, "round %d: byte %zu of PE %d is another one", (int)round, at, pe);
    for (int i = 0; i < COUNTERS; i++)
        EXPECT(seen.counters[i] == round && seen.strided[3 * i] == (short)((int)round + i),
               "round %d: counter %d is %lu, element %d", (int)round, i,
               (unsigned long)seen.counters[i], seen.strided[3 * i]);
    EXPECT(seen.signal == round, "round %d: signal %lu", (int)round, (unsigned long)seen.signal);
}

/* PE 0 writes to PE 1, completes that in some way, and notifies PE 2, which looks at PE 1. */
static void run(const char *name, void (*write)(uint64_t round), int count) {
    tap_case(name);
    told = answered = 0;
    memset(&board, 0, sizeof board);
    shmem_barrier_all();
    for (uint64_t round = 1; round <= (uint64_t)count; round++) {
        if (me == 0) {
            write(round);
            shmem_uint64_p(&told, round, 2);
            shmem_uint64_wait_until(&answered, SHMEM_CMP_EQ, round);
        } else if (me == 2) {
            shmem_uint64_wait_until(&told, SHMEM_CMP_EQ, round);
            expect_all(round, 1);
            shmem_uint64_p(&answered, round, 0);
        }
    }
    shmem_barrier_all();
}

static void by_quiet(uint64_t round) {
    write_all(SHMEM_CTX_DEFAULT, round, 1);
    shmem_quiet();
}

static void by_pe_quiet(uint64_t round) {
    static const int pes[] = {1};
    write_all(SHMEM_CTX_DEFAULT, round, 1);
    shmem_uint64_atomic_add(&board.counters[0], 1, 2); /* it need not wait for this one */
    shmem_pe_quiet(pes, 1);
}

static shmem_ctx_t ctx;

static void by_context(uint64_t round) {
    write_all(ctx, round, 1);
    shmem_ctx_quiet(ctx);
}

static void by_destroying(uint64_t round) {
    shmem_ctx_t one;
    if (shmem_ctx_create(0, &one) != 0)
        EXPECT(false, "no context");
    write_all(one, round, 1);
    shmem_ctx_destroy(one);
}

/* All PEs write to all others and meet in a barrier: then each PE finds all data. */
static void check_barrier(int count) {
    static unsigned char all[4][BYTES];
    static unsigned char source[BYTES];
    for (uint64_t round = 1; round <= (uint64_t)count; round++) {
        fill(source, BYTES, round * 4 + (uint64_t)me);
        for (int pe = 0; pe < npes; pe++)
            shmem_putmem_nbi(all[me], source, BYTES, pe);
        shmem_barrier_all();
        for (int pe = 0; pe < npes; pe++) {
            size_t at = differs(all[pe], BYTES, round * 4 + (uint64_t)pe);
            EXPECT(at == BYTES, "round %d: byte %zu of PE %d", (int)round, at, pe);
        }
        shmem_barrier_all();
    }
}

int main(void) {
    shmem_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    tap_start(me);
    EXPECT(shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx) == 0, "no context");
    run("quiet", by_quiet, rounds(20));
    run("quiet for one PE", by_pe_quiet, rounds(20));
    run("quiet of a context", by_context, rounds(20));
    run("the end of a context", by_destroying, rounds(20));
    tap_case("a barrier");
    check_barrier(rounds(20));
    shmem_ctx_destroy(ctx);
    int result = tap_finish();
    shmem_finalize();
    return result;
}
