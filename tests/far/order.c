/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: a PE that sees a flag, a signal or a counter sees the data that was put before it:
 * after a fence, with a signal, from one word to the next, for all sizes from a byte to 1 MiB.
 * PEs: 2 3 4
 * Far: each
 * Far: each seed=7,reorder=16,delay_us=50
 * Far: cyclic:2 seed=3,reorder=32,refuse=10
 * Far: cyclic:2 seed=5,reorder=16,delay_us=30 WEFT_PROXIES=host */
#include <string.h>
#include "draw.h"

enum { BYTES_MAX = 1 << 20, PIECES = 8 };

static unsigned char *inbox; /* symmetric */
static uint64_t flag, answer, signal_word, words[2];
static int me, npes, to, from;

/* Both ends of a ring draw the same sizes. */
static uint64_t state_of(int sender, int round) {
    return (uint64_t)sender * 1000003u + (uint64_t)round;
}

static void await(uint64_t *word, uint64_t value) {
    shmem_uint64_wait_until(word, SHMEM_CMP_GE, value);
}

static void expect_bytes(size_t offset, size_t bytes, uint64_t key) {
    size_t at = differs(inbox + offset, bytes, key);
    EXPECT(at == bytes, "byte %zu of %zu at %zu is another one", at, bytes, offset);
}

/* The target has read the data, so the next round may overwrite it. */
static void give_back(uint64_t round) {
    shmem_uint64_p(&answer, round, from);
    await(&answer, round);
}

static void put_then_flag(unsigned char *source, uint64_t round) {
    uint64_t mine = state_of(me, (int)round), theirs = state_of(from, (int)round);
    size_t bytes = draw_size(&mine, BYTES_MAX), offset = draw(&mine) % (BYTES_MAX - bytes + 1);
    fill(source, bytes, state_of(me, (int)round));
    shmem_putmem(inbox + offset, source, bytes, to);
    memset(source, 0xee, bytes); /* the call has returned, so the source may change */
    shmem_fence();
    shmem_uint64_p(&flag, round, to);
    await(&flag, round);
    bytes = draw_size(&theirs, BYTES_MAX);
    expect_bytes(draw(&theirs) % (BYTES_MAX - bytes + 1), bytes, state_of(from, (int)round));
    give_back(round);
}

/* The pieces of an array are put one by one; only the last one is followed by a fence. */
static void pieces_then_flag(unsigned char *source, uint64_t round) {
    uint64_t mine = state_of(me, (int)round);
    size_t bytes = draw_size(&mine, BYTES_MAX / PIECES);
    fill(source, PIECES * bytes, state_of(me, (int)round));
    for (size_t i = 0; i < PIECES; i++)
        shmem_putmem_nbi(inbox + i * bytes, source + i * bytes, bytes, to);
    shmem_fence();
    shmem_uint64_atomic_set(&flag, round, to);
    await(&flag, round);
    uint64_t theirs = state_of(from, (int)round);
    expect_bytes(0, PIECES * draw_size(&theirs, BYTES_MAX / PIECES), state_of(from, (int)round));
    shmem_quiet(); /* the source may be overwritten */
    give_back(round);
}

static void put_with_signal(unsigned char *source, uint64_t round) {
    uint64_t mine = state_of(me, (int)round), theirs = state_of(from, (int)round);
    size_t bytes = draw_size(&mine, BYTES_MAX);
    fill(source, bytes, state_of(me, (int)round));
    if (round % 2)
        shmem_putmem_signal(inbox, source, bytes, &signal_word, 1, SHMEM_SIGNAL_ADD, to);
    else
        shmem_putmem_signal_nbi(inbox, source, bytes, &signal_word, round, SHMEM_SIGNAL_SET, to);
    EXPECT(shmem_signal_wait_until(&signal_word, SHMEM_CMP_GE, round) == round, "round %d",
           (int)round);
    expect_bytes(0, draw_size(&theirs, BYTES_MAX), state_of(from, (int)round));
    shmem_quiet();
    give_back(round);
}

/* The target makes no call: a thread of the library stores while this one reads. */
static void put_to_who_looks_itself(unsigned char *source, uint64_t round) {
    size_t bytes = 4000 + round % 4000;
    fill(source, bytes, state_of(me, (int)round));
    shmem_putmem_signal(inbox, source, bytes, &signal_word, round, SHMEM_SIGNAL_SET, to);
    while (__atomic_load_n(&signal_word, __ATOMIC_ACQUIRE) < round)
        continue;
    expect_bytes(0, bytes, state_of(from, (int)round));
    give_back(round);
}

/* A writer increments one word and, after a fence, the other; no reader finds the second ahead. */
static void words_in_order(int count) {
    for (uint64_t i = 1; i <= (uint64_t)count; i++) {
        shmem_uint64_p(&words[0], i, to);
        shmem_fence();
        if (i % 3)
            shmem_uint64_p(&words[1], i, to);
        else
            shmem_uint64_atomic_set(&words[1], i, to);
        uint64_t second = shmem_uint64_atomic_fetch(&words[1], me);
        uint64_t first = shmem_uint64_atomic_fetch(&words[0], me);
        EXPECT(first >= second, "%lu has come before %lu", (unsigned long)second,
               (unsigned long)first);
    }
    await(&words[1], (uint64_t)count);
    shmem_barrier_all();
}

/* A flag is passed on after data: the next PE sees the data that all PEs before it have put. */
static void chain(uint64_t turn) {
    uint64_t value = (turn - 1) * (uint64_t)npes + (uint64_t)me + 1;
    if (me != 0 || turn > 1)
        await(&flag, value - 1);
    uint64_t *counts = (uint64_t *)(void *)inbox;
    for (int pe = 0; pe < npes; pe++)
        shmem_uint64_atomic_add(&counts[me], 1, pe);
    shmem_quiet();
    shmem_uint64_p(&flag, value, to);
    for (int pe = 0; pe < npes; pe++) {
        uint64_t least = turn - (pe > me), found = shmem_uint64_atomic_fetch(&counts[pe], me);
        EXPECT(found >= least, "PE %d has counted to %lu, not %lu", pe, (unsigned long)found,
               (unsigned long)least);
    }
}

static void reset(void) {
    shmem_barrier_all();
    flag = answer = signal_word = 0;
    memset(inbox, 0, BYTES_MAX);
    shmem_barrier_all();
}

static void run(const char *name, void (*one)(unsigned char *source, uint64_t round),
                unsigned char *source, int count) {
    tap_case(name);
    reset();
    for (int round = 1; round <= count; round++)
        one(source, (uint64_t)round);
}

int main(void) {
    shmem_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    to = (me + 1) % npes;
    from = (me + npes - 1) % npes;
    tap_start(me);
    inbox = shmem_calloc(1, BYTES_MAX);
    unsigned char *source = malloc(BYTES_MAX);
    run("a put, a fence, a flag", put_then_flag, source, rounds(60));
    run("puts that follow each other, a fence, a flag", pieces_then_flag, source, rounds(40));
    run("puts with signals", put_with_signal, source, rounds(60));
    run("the same to PEs that make no call", put_to_who_looks_itself, source, rounds(40));
    tap_case("words, fences between them");
    reset();
    words_in_order(rounds(1000));
    tap_case("a flag round all PEs, behind what each has put to all");
    reset();
    for (int turn = 1; turn <= rounds(20); turn++)
        chain((uint64_t)turn);
    shmem_barrier_all();
    free(source);
    int result = tap_finish();
    shmem_finalize();
    return result;
}
