/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: atomics of near and far PEs on one word are atomic with each other: all operations,
 * of 32 and 64 bits, fetching or not. Sums are exact, every step of a ladder of compare-and-swaps
 * is taken once, and no swapped value is lost. PEs: 4
 * Far: each
 * Far: cyclic:2 reorder=16,delay_us=20,seed=11
 * Far: list:0,0,1,0 refuse=10
 * Far: cyclic:2 seed=9,reorder=16 WEFT_PROXIES=host */
#include <string.h>
#include "draw.h"

/* The words of one PE, which all PEs change. */
static struct words {
    uint64_t sum64, ladder64, swap64, and64, or64, xor64;
    uint32_t sum32, ladder32, swap32, and32, or32, xor32;
    int64_t signed64;
    uint32_t beside[2]; /* neighbours in eight bytes */
    double real64;
    float real32;
} words;

static struct taken {
    uint64_t swapped64, swapped32; /* sums of the values that swaps returned */
    uint64_t steps64, steps32;     /* of the ladders, taken by this PE */
} taken;

static int me, npes;

static void add(int pe, uint64_t i) {
    shmem_uint64_atomic_add(&words.sum64, i, pe);
    shmem_uint64_atomic_inc(&words.sum64, pe);
    shmem_uint64_atomic_fetch_add(&words.sum64, i << 32, pe);
    shmem_uint64_atomic_fetch_inc(&words.sum64, pe);
    shmem_uint32_atomic_add(&words.sum32, (uint32_t)i, pe);
    shmem_uint32_atomic_inc(&words.sum32, pe);
    shmem_uint32_atomic_fetch_add(&words.sum32, (uint32_t)i, pe);
    shmem_uint32_atomic_fetch_inc(&words.sum32, pe);
    shmem_int64_atomic_add(&words.signed64, -(int64_t)i, pe);
    shmem_uint32_atomic_add(&words.beside[me % 2], 1, pe);
}

/* Each PE toggles bits of its own an even number of times. */
static void toggle(int pe) {
    uint64_t bit = UINT64_C(0x100000001) << me;
    shmem_uint64_atomic_xor(&words.xor64, bit, pe);
    shmem_uint64_atomic_or(&words.or64, bit, pe);
    shmem_uint64_atomic_and(&words.and64, ~bit, pe);
    shmem_uint32_atomic_xor(&words.xor32, (uint32_t)bit, pe);
    shmem_uint32_atomic_or(&words.or32, (uint32_t)bit, pe);
    shmem_uint32_atomic_and(&words.and32, ~(uint32_t)bit, pe);
    uint64_t before = shmem_uint64_atomic_fetch_xor(&words.xor64, bit, pe);
    EXPECT((before & bit) == bit, "%#lx of PE %d", (unsigned long)before, pe);
    EXPECT((shmem_uint64_atomic_fetch_and(&words.or64, ~bit, pe) & bit) == bit, "of PE %d", pe);
    EXPECT((shmem_uint64_atomic_fetch_or(&words.and64, bit, pe) & bit) == 0, "of PE %d", pe);
    uint32_t bit32 = (uint32_t)bit;
    EXPECT((shmem_uint32_atomic_fetch_xor(&words.xor32, bit32, pe) & bit32) == bit32, "of PE %d",
           pe);
    EXPECT((shmem_uint32_atomic_fetch_and(&words.or32, ~bit32, pe) & bit32) == bit32, "of PE %d",
           pe);
    EXPECT((shmem_uint32_atomic_fetch_or(&words.and32, bit32, pe) & bit32) == 0, "of PE %d", pe);
}

/* A value that a swap stores is returned by another swap, or stays. */
static void swap(int pe, uint64_t i) {
    uint64_t value = (i + 1) * (uint64_t)npes + (uint64_t)me;
    taken.swapped64 += shmem_uint64_atomic_swap(&words.swap64, value, pe);
    taken.swapped32 += shmem_uint32_atomic_swap(&words.swap32, (uint32_t)value, pe);
}

/* Takes a step of each ladder if no other PE is ahead. */
static void climb(int pe) {
    uint64_t seen = shmem_uint64_atomic_fetch(&words.ladder64, pe);
    taken.steps64 += shmem_uint64_atomic_compare_swap(&words.ladder64, seen, seen + 1, pe) == seen;
    uint32_t seen32 = shmem_uint32_atomic_fetch(&words.ladder32, pe);
    taken.steps32 +=
        shmem_uint32_atomic_compare_swap(&words.ladder32, seen32, seen32 + 1, pe) == seen32;
}

/* Near PEs add to a word of PE 0 as fast as they can until all far PEs have added to it. */
static void check_crowd(uint64_t count) {
    static uint64_t crowded, done, near_ones; /* symmetric */
    uint64_t mine = 0, nfar = 0;
    for (int pe = 0; pe < npes; pe++)
        nfar += !shmem_ptr(&crowded, pe);
    bool far = me != 0 && !shmem_ptr(&crowded, 0);
    shmem_barrier_all();
    if (far) {
        for (; mine < count; mine++)
            shmem_uint64_atomic_add(&crowded, 1, 0);
        shmem_quiet();
        for (int pe = 0; pe < npes; pe++)
            shmem_uint64_atomic_inc(&done, pe);
    }
    while (!far && shmem_uint64_atomic_fetch(&done, me) < nfar)
        for (int i = 0; i < 100; i++, mine++)
            shmem_uint64_atomic_add(&crowded, 1, 0);
    shmem_uint64_atomic_add(&near_ones, mine, 0);
    shmem_barrier_all();
    EXPECT(me != 0 || crowded == near_ones, "%lu of %lu", (unsigned long)crowded,
           (unsigned long)near_ones);
}

static uint64_t sum_of(const uint64_t *mine) {
    static uint64_t source; /* symmetric */
    source = *mine;
    shmem_barrier_all();
    uint64_t sum = 0;
    for (int pe = 0; pe < npes; pe++)
        sum += shmem_uint64_atomic_fetch(&source, pe);
    shmem_barrier_all();
    return sum;
}

static void check_sums(uint64_t count) {
    uint64_t n = (uint64_t)npes, i = n * count * (count - 1) / 2, times = n * count;
    EXPECT(words.sum64 == i + 2 * times + (i << 32), "%#lx", (unsigned long)words.sum64);
    EXPECT(words.sum32 == (uint32_t)(2 * i + 2 * times), "%u", words.sum32);
    EXPECT(words.signed64 == -(int64_t)i, "%ld", (long)words.signed64);
    uint64_t even = (n + 1) / 2 * count, odd = n / 2 * count;
    EXPECT(words.beside[0] == even && words.beside[1] == odd, "%u, %u", words.beside[0],
           words.beside[1]);
    EXPECT(words.xor64 == 0 && words.or64 == 0 && words.and64 == UINT64_MAX, "%lx, %lx, %lx",
           (unsigned long)words.xor64, (unsigned long)words.or64, (unsigned long)words.and64);
    EXPECT(words.xor32 == 0 && words.or32 == 0 && words.and32 == UINT32_MAX, "%x, %x, %x",
           words.xor32, words.or32, words.and32);
}

/* Over all PEs' words: all stored values but the first were returned or are still there. */
static void check_handed_on(uint64_t count) {
    uint64_t n = (uint64_t)npes, put_in = 0;
    for (uint64_t i = 0; i < count; i++)
        put_in += n * ((i + 1) * n * n + n * (n - 1) / 2);
    uint64_t left64 = words.swap64, left32 = words.swap32;
    uint64_t found64 = sum_of(&taken.swapped64) + sum_of(&left64);
    uint64_t found32 = sum_of(&taken.swapped32) + sum_of(&left32);
    EXPECT(found64 == put_in, "%lu of %lu", (unsigned long)found64, (unsigned long)put_in);
    EXPECT(found32 == put_in, "%lu of %lu", (unsigned long)found32, (unsigned long)put_in);
    uint64_t ladder64 = words.ladder64, ladder32 = words.ladder32;
    uint64_t steps64 = sum_of(&taken.steps64), steps32 = sum_of(&taken.steps32);
    EXPECT(sum_of(&ladder64) == steps64, "%lu steps", (unsigned long)steps64);
    EXPECT(sum_of(&ladder32) == steps32, "%lu steps", (unsigned long)steps32);
}

/* All PEs set and swap floating-point numbers; the word holds one of the written values. */
static void check_reals(void) {
    for (int pe = 0; pe < npes; pe++) {
        shmem_double_atomic_set(&words.real64, me + 0.25, pe);
        double before = shmem_double_atomic_swap(&words.real64, me + 0.5, pe);
        double part = before - (int)before;
        EXPECT(part == 0.25 || part == 0.5, "%g of PE %d", before, pe);
        shmem_float_atomic_set(&words.real32, (float)me + 0.75f, pe);
        float real32 = shmem_float_atomic_fetch(&words.real32, pe);
        EXPECT(real32 - (float)(int)real32 == 0.75f, "%g of PE %d", (double)real32, pe);
    }
}

/* Values fetched without blocking have arrived after a quiet: each PE's own counter increases by
 * ones. */
static void check_nbi(int count) {
    static uint64_t counter[64];
    uint64_t *fetched = calloc((size_t)count * (size_t)npes, sizeof *fetched);
    for (int pe = 0; pe < npes; pe++)
        for (int i = 0; i < count; i++)
            shmem_uint64_atomic_fetch_add_nbi(&fetched[pe * count + i], &counter[me], 1, pe);
    shmem_quiet();
    for (int pe = 0; pe < npes; pe++) {
        uint64_t sum = 0;
        for (int i = 0; i < count; i++)
            sum += fetched[pe * count + i];
        uint64_t expected = (uint64_t)count * (uint64_t)(count - 1) / 2;
        EXPECT(sum == expected, "%lu from PE %d, not %lu", (unsigned long)sum, pe,
               (unsigned long)expected);
    }
    free(fetched);
    shmem_barrier_all();
}

int main(void) {
    shmem_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    tap_start(me);
    int count = rounds(300);
    words.and64 = UINT64_MAX;
    words.and32 = UINT32_MAX;
    shmem_barrier_all();
    tap_case("each has the value that it is to have");
    for (uint64_t i = 0; i < (uint64_t)count; i++)
        for (int pe = 0; pe < npes; pe++) {
            add(pe, i);
            toggle(pe);
            swap(pe, i);
            climb(pe);
        }
    shmem_barrier_all();
    check_sums((uint64_t)count);
    tap_case("what is swapped is not lost, and each step is taken once");
    check_handed_on((uint64_t)count);
    tap_case("near PEs add to a word while far ones do");
    check_crowd((uint64_t)rounds(5000));
    tap_case("reals are whole");
    check_reals();
    tap_case("what is fetched without waiting is there behind quiet");
    check_nbi(count);
    int result = tap_finish();
    shmem_finalize();
    return result;
}
