/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels that use NVSHMEM's names, for its test (nvshmem.c). Each counts errors in *wrong; all
 * threads of one block run. */
#define WEFT_KERNEL_THREADS
#include "weft/nvshmem/nvshmem.h"
#include "weft/nvshmem/nvshmemx.h"

WEFT_DEVICE void expect(int true_, uint32_t *wrong) {
    if (!true_)
        weft_atom_add_sys_u32(wrong, 1);
}

/* --- Numbers of PEs --------------------------------------------------------------------------- */

extern "C" __global__ void names_who(int *found, const int *object, int team) {
    int me = nvshmem_my_pe(), n = nvshmem_n_pes(), next = (me + 1) % n;
    if (weft_block_rank() != 0)
        return;
    found[0] = me;
    found[1] = n;
    found[2] = nvshmem_team_my_pe(team);
    found[3] = nvshmem_team_n_pes(team);
    found[4] = nvshmem_team_translate_pe(team, 0, NVSHMEM_TEAM_WORLD);
    found[5] = nvshmem_team_translate_pe(NVSHMEM_TEAM_WORLD, next, team);
    found[6] = nvshmem_ptr(object, me) == object && nvshmem_ptr(object, n) == NULL &&
               nvshmem_ptr(&me, me) == NULL && nvshmem_ptr(object, next) != NULL;
    found[7] = nvshmemx_mc_ptr(NVSHMEM_TEAM_WORLD, object) == NULL;
    found[8] = nvshmem_team_my_pe(NVSHMEMX_TEAM_NODE);
    found[9] = nvshmem_team_n_pes(WEFT_NVSHMEM_TEAMS) + nvshmem_barrier(NVSHMEM_TEAM_INVALID);
}

/* --- Words and copies ------------------------------------------------------------------------- */

template <class T>
WEFT_DEVICE void words_of(T *box, void (*p)(T *, T, int), T (*g)(const T *, int), uint32_t *wrong) {
    int me = nvshmem_my_pe(), n = nvshmem_n_pes(), next = (me + 1) % n, last = (me + n - 1) % n;
    if (weft_block_rank() == 0)
        p(&box[0], (T)(me + 3), next);
    nvshmemx_barrier_all_block();
    expect(box[0] == (T)(last + 3) && g(&box[0], next) == (T)(me + 3), wrong);
    nvshmemx_barrier_all_block();
}

extern "C" __global__ void names_words(char *box, uint32_t *wrong) {
    words_of((signed char *)box, nvshmem_schar_p, nvshmem_schar_g, wrong);
    words_of((short *)box, nvshmem_short_p, nvshmem_short_g, wrong);
    words_of((int *)box, nvshmem_int_p, nvshmem_int_g, wrong);
    words_of((float *)box, nvshmem_float_p, nvshmem_float_g, wrong);
    words_of((double *)box, nvshmem_double_p, nvshmem_double_g, wrong);
    words_of((uint64_t *)box, nvshmem_uint64_p, nvshmem_uint64_g, wrong);
}

/* Copies `bytes` of this PE: to the next one with a put of each kind, and from there with a get.
 * dest has room for six. */
extern "C" __global__ void names_copies(char *dest, char *source, char *got, size_t bytes,
                                        uint32_t *wrong) {
    int next = (nvshmem_my_pe() + 1) % nvshmem_n_pes();
    uint32_t thread = weft_block_rank(), threads = weft_block_size(), warp = thread / 32;
    nvshmemx_putmem_block(dest, source, bytes, next);
    nvshmemx_char_put_nbi_block(dest + bytes, source, bytes, next);
    if (warp == 0)
        nvshmemx_putmem_nbi_warp(dest + 2 * bytes, source, bytes, next);
    if (warp == 1)
        nvshmemx_put32_warp(dest + 3 * bytes, source, bytes / 4, next);
    if (thread == 0)
        nvshmem_putmem(dest + 4 * bytes, source, bytes, next);
    if (thread == threads - 1)
        nvshmem_int_put_nbi((int *)(dest + 5 * bytes), (const int *)source, bytes / 4, next);
    nvshmem_quiet();
    nvshmemx_barrier_all_block();
    for (int from = 0; from < 3; from++) {
        if (from == 0)
            nvshmemx_getmem_block(got, dest, bytes, next);
        else if (from == 1 && warp == 1)
            nvshmemx_getmem_nbi_warp(got, dest + 2 * bytes, bytes, next);
        else if (from == 2 && thread == 0)
            nvshmem_get64(got, dest + 4 * bytes, bytes / 8, next);
        weft_block_sync();
        for (size_t i = thread; i < bytes; i += threads) {
            expect(got[i] == source[i], wrong);
            got[i] = 0;
        }
        weft_block_sync();
    }
    nvshmemx_barrier_all_block();
}

/* --- Signals ---------------------------------------------------------------------------------- */

/* A message goes around the ring `rounds` times, by threads, warps and blocks in turn: each PE
 * passes on what it has received, with each word increased by one; the first one begins. */
extern "C" __global__ void names_ring(uint32_t *box, uint32_t *out, size_t nwords, uint64_t *sig,
                                      uint32_t rounds, uint32_t *wrong) {
    int me = nvshmem_my_pe(), n = nvshmem_n_pes(), next = (me + 1) % n;
    uint32_t thread = weft_block_rank(), threads = weft_block_size();
    size_t bytes = nwords * sizeof *box;
    for (uint32_t round = 1; round <= rounds; round++) {
        uint32_t come = (round - 1) * (uint32_t)n + (uint32_t)me;
        if (come > 0 && thread == 0)
            nvshmem_signal_wait_until(sig, me ? NVSHMEM_CMP_GE : NVSHMEM_CMP_EQ,
                                      me ? round : round - 1);
        weft_block_sync();
        for (size_t i = thread; i < nwords; i += threads) {
            expect(come == 0 || box[i] == come + i, wrong);
            out[i] = come + 1 + (uint32_t)i;
        }
        weft_block_sync();
        if (round % 4 == 0 && thread == 0)
            nvshmem_putmem_signal_nbi(box, out, bytes, sig, 1, NVSHMEM_SIGNAL_ADD, next);
        if (round % 4 == 1 && thread < 32)
            nvshmemx_uint32_put_signal_warp(box, out, nwords, sig, round, NVSHMEM_SIGNAL_SET, next);
        if (round % 4 == 2)
            nvshmemx_putmem_signal_nbi_block(box, out, bytes, sig, 1, NVSHMEM_SIGNAL_ADD, next);
        if (round % 4 == 3) {
            nvshmemx_putmem_nbi_block(box, out, bytes, next);
            nvshmem_fence();
            if (thread == 0)
                nvshmemx_signal_op(sig, round, NVSHMEM_SIGNAL_SET, next);
        }
    }
    if (thread == 0 && me == 0)
        expect(nvshmem_signal_wait_until(sig, NVSHMEM_CMP_GT, rounds - 1) == rounds, wrong);
    if (thread == 0)
        expect(nvshmem_signal_fetch(sig) <= rounds, wrong);
}

/* --- Atomics ---------------------------------------------------------------------------------- */

/* Each thread takes a place in each PE's list by an atomic, and stores its number there; `sums` has
 * a word for each operation. */
extern "C" __global__ void names_atomics(uint32_t *taken, uint32_t *list, int64_t *sums,
                                         uint32_t *wrong) {
    int me = nvshmem_my_pe(), n = nvshmem_n_pes();
    uint32_t thread = weft_block_rank(), threads = weft_block_size();
    for (int pe = 0; pe < n; pe++) {
        uint32_t place = nvshmem_uint32_atomic_fetch_inc(taken, pe);
        nvshmem_uint32_p(&list[place], 1 + thread + threads * (uint32_t)me, pe);
        nvshmem_int64_atomic_add(&sums[0], -1, pe);
        nvshmem_int64_atomic_fetch_add(&sums[1], 5, pe);
        nvshmem_int64_atomic_or(&sums[2], (int64_t)1 << (thread % 64), pe);
        nvshmem_uint64_atomic_fetch_xor((uint64_t *)&sums[3], 1, pe);
        nvshmem_int64_atomic_inc(&sums[4], pe);
        int64_t seen = nvshmem_int64_atomic_fetch(&sums[5], pe), before;
        while ((before = nvshmem_int64_atomic_compare_swap(&sums[5], seen, seen + 2, pe)) != seen) {
            seen = before;
            weft_spin_yield();
        }
    }
    nvshmemx_barrier_all_block();
    int64_t all = (int64_t)threads * n;
    expect(*taken == all && sums[0] == -all && sums[1] == 5 * all && sums[4] == all, wrong);
    expect(sums[3] == all % 2 && sums[5] == 2 * all, wrong);
    expect((sums[2] >> (thread % 64) & 1) == 1, wrong);
    uint32_t times = 0;
    for (int64_t i = 0; i < all; i++)
        times += list[i] == 1 + thread + threads * (uint32_t)me;
    expect(times == 1, wrong);
    nvshmemx_barrier_all_block();
    if (thread == 0) {
        nvshmem_double_atomic_set((double *)&sums[0], 0.5 + me, (me + 1) % n);
        nvshmem_quiet();
    }
    nvshmemx_barrier_all_block();
    expect(nvshmem_double_atomic_fetch((const double *)&sums[0], me) == 0.5 + (me + n - 1) % n,
           wrong);
    weft_block_sync();
    if (thread == 0)
        expect(nvshmem_double_atomic_swap((double *)&sums[0], 1.0, me) >= 0.5, wrong);
}

/* --- Waits ------------------------------------------------------------------------------------ */

enum { WORDS = 8 };

/* The next PE's words are set one by one, the last first, to their numbers from -3 on; meanwhile
 * the first thread waits for its own: for any, for some, and for all of those that count. */
extern "C" __global__ void names_waits(int *words, short *shorts, uint64_t *sig, uint32_t *wrong) {
    int next = (nvshmem_my_pe() + 1) % nvshmem_n_pes();
    uint32_t thread = weft_block_rank();
    int left_out[WORDS] = {0, 1, 0, 0, 0, 0, 1, 0}, none[WORDS] = {1, 1, 1, 1, 1, 1, 1, 1};
    int values[WORDS];
    size_t indices[WORDS];
    for (int i = 0; i < WORDS; i++)
        values[i] = i - 3;
    if (thread == 32)
        for (int i = WORDS - 1; i >= 0; i--) {
            nvshmem_int_p(&words[i], values[i], next);
            nvshmem_short_p(&shorts[i], (short)-i, next);
            nvshmem_fence();
            nvshmemx_signal_op(sig, 1, NVSHMEM_SIGNAL_ADD, next);
            weft_spin_yield();
        }
    if (thread == 0) {
        size_t any = nvshmem_int_wait_until_any(words, WORDS, left_out, NVSHMEM_CMP_NE, 99);
        expect(any < WORDS && !left_out[any] && words[any] == values[any], wrong);
        size_t some = nvshmem_int_wait_until_some(words, WORDS, indices, NULL, NVSHMEM_CMP_LT, 99);
        expect(some > 0 && some <= WORDS, wrong);
        for (size_t i = 0; i < some; i++)
            expect(words[indices[i]] == values[indices[i]], wrong);
        nvshmem_int_wait_until_all(words, WORDS, left_out, NVSHMEM_CMP_LE, WORDS - 4);
        nvshmem_int_wait_until_all_vector(words, WORDS, NULL, NVSHMEM_CMP_EQ, values);
        nvshmem_int_wait_until(&words[0], NVSHMEM_CMP_EQ, -3);
        nvshmem_short_wait_until(&shorts[1], NVSHMEM_CMP_LT, 0);
        nvshmem_short_wait_until_all(shorts, WORDS, NULL, NVSHMEM_CMP_LE, 0);
        nvshmem_uint64_wait_until(sig, NVSHMEM_CMP_GE, WORDS);
        expect(nvshmem_int_wait_until_any(words, WORDS, none, NVSHMEM_CMP_EQ, 99) == SIZE_MAX,
               wrong);
        expect(nvshmem_int_wait_until_some(words, 0, indices, NULL, NVSHMEM_CMP_EQ, 0) == 0, wrong);
    }
    weft_block_sync();
    expect(nvshmem_int_test(&words[0], NVSHMEM_CMP_LT, -2) &&
               !nvshmem_int_test(&words[0], NVSHMEM_CMP_GE, 0),
           wrong);
    expect(nvshmem_int_test_all(words, WORDS, NULL, NVSHMEM_CMP_GE, -3) == 1, wrong);
    expect(nvshmem_int_test_all(words, WORDS, NULL, NVSHMEM_CMP_GT, -3) == 0, wrong);
    expect(nvshmem_int_test_any(words, WORDS, left_out, NVSHMEM_CMP_EQ, -2) == SIZE_MAX, wrong);
    expect(nvshmem_int_test_any(words, WORDS, NULL, NVSHMEM_CMP_EQ, -2) == 1, wrong);
    expect(nvshmem_int_test_some(words, WORDS, indices, left_out, NVSHMEM_CMP_GT, -3) == WORDS - 3,
           wrong);
    expect(nvshmem_int_test_some_vector(words, WORDS, indices, NULL, NVSHMEM_CMP_EQ, values) ==
               WORDS,
           wrong);
    expect(nvshmem_short_test(&shorts[3], NVSHMEM_CMP_EQ, -3), wrong);
    expect(nvshmem_ushort_test((unsigned short *)&shorts[3], NVSHMEM_CMP_EQ, 65533), wrong);
    expect(nvshmem_uint_test((unsigned *)&words[0], NVSHMEM_CMP_GT, 5), wrong);
}

/* --- Meetings --------------------------------------------------------------------------------- */

/* A word is stored at every member before each meeting, and must be there after it. One thread
 * meets, or a warp, or the block, in turn; on each PE a different one. */
extern "C" __global__ void names_meetings(uint32_t *words, int team, uint32_t rounds,
                                          uint32_t *wrong) {
    int me = nvshmem_team_my_pe(team), n = nvshmem_team_n_pes(team);
    uint32_t thread = weft_block_rank();
    for (uint32_t round = 1; round <= rounds; round++) {
        uint32_t *row = words + round % 2 * (uint32_t)n, how = (round + (me == 0)) % 3;
        for (int m = (int)thread; m < n; m += (int)weft_block_size())
            nvshmem_uint32_p(&row[me], round,
                             nvshmem_team_translate_pe(team, m, NVSHMEM_TEAM_WORLD));
        weft_block_sync();
        if (how == 0 && thread == 0)
            expect(nvshmem_barrier(team) == 0, wrong);
        if (how == 1 && thread < 32)
            expect(nvshmemx_sync_warp(team) == 0, wrong);
        if (how == 2)
            expect(nvshmemx_team_sync_block(team) == 0, wrong);
        weft_block_sync();
        for (int m = 0; m < n; m++)
            expect(row[m] == round, wrong);
        weft_block_sync();
    }
}

/* Meets all PEs, with the names that have no team. */
extern "C" __global__ void names_meet_all(uint32_t *word, uint32_t rounds, uint32_t *wrong) {
    int n = nvshmem_n_pes(), next = (nvshmem_my_pe() + 1) % n;
    uint32_t thread = weft_block_rank();
    for (uint32_t round = 1; round <= rounds; round++) {
        if (thread == 0)
            nvshmem_uint32_p(&word[round % 2], round, next);
        if (thread == 0 && round % 2)
            nvshmem_barrier_all();
        if (thread == 0 && round % 2 == 0)
            nvshmem_sync_all();
        weft_block_sync();
        expect(word[round % 2] == round, wrong);
        if (thread < 32)
            nvshmemx_barrier_all_warp();
        nvshmemx_sync_all_block();
    }
}

/* --- Collectives ------------------------------------------------------------------------------ */

/* box: room for two arrays of n * nelems; members contribute numbers that identify them. */
extern "C" __global__ void names_collectives(int *box, size_t nelems, int team, uint32_t *wrong) {
    int me = nvshmem_team_my_pe(team), n = nvshmem_team_n_pes(team);
    int *source = box, *dest = box + (size_t)n * nelems;
    uint32_t thread = weft_block_rank(), threads = weft_block_size();
    size_t all = (size_t)n * nelems;
    for (size_t i = thread; i < all; i += threads) {
        source[i] = 1000 * me + (int)i;
        dest[i] = -1;
    }
    nvshmemx_barrier_block(team);
    expect(nvshmemx_int_fcollect_block(team, dest, source, nelems) == 0, wrong);
    for (size_t i = thread; i < all; i += threads)
        expect(dest[i] == 1000 * (int)(i / nelems) + (int)(i % nelems), wrong);
    nvshmemx_barrier_block(team);
    expect(nvshmemx_alltoallmem_block(team, dest, source, nelems * sizeof *dest) == 0, wrong);
    for (size_t i = thread; i < all; i += threads)
        expect(dest[i] == 1000 * (int)(i / nelems) + me * (int)nelems + (int)(i % nelems), wrong);
    nvshmemx_barrier_block(team);
    if (thread < 32)
        nvshmemx_broadcastmem_warp(team, dest, source, nelems * sizeof *dest, n - 1);
    weft_block_sync();
    for (size_t i = thread; i < nelems; i += threads)
        expect(dest[i] == 1000 * (n - 1) + (int)i, wrong);
    nvshmemx_barrier_block(team);
    if (thread == 0)
        nvshmem_int_max_reduce(team, dest, source, nelems);
    weft_block_sync();
    for (size_t i = thread; i < nelems; i += threads)
        expect(dest[i] == 1000 * (n - 1) + (int)i, wrong);
    nvshmemx_barrier_block(team);
    expect(nvshmemx_int_sum_reduce_block(team, source, source, nelems) == 0, wrong);
    for (size_t i = thread; i < nelems; i += threads)
        expect(source[i] == 1000 * (n * (n - 1) / 2) + n * (int)i, wrong);
    nvshmemx_barrier_block(team);
}

/* Returns the sum over members m of 1000 * m + i, their element i. */
WEFT_DEVICE int sum_of_members(int n, size_t i) {
    return 1000 * (n * (n - 1) / 2) + n * (int)i;
}

/* Reductions with scatter by a thread, a warp and a block, the last two in place. */
extern "C" __global__ void names_scatters(int *box, size_t nelems, int team, uint32_t *wrong) {
    int me = nvshmem_team_my_pe(team), n = nvshmem_team_n_pes(team);
    int *source = box, *dest = box + (size_t)n * nelems;
    uint32_t thread = weft_block_rank(), threads = weft_block_size();
    size_t all = (size_t)n * nelems, mine = (size_t)me * nelems;
    for (int form = 0; form < 3; form++) {
        int *to = form == 0 ? dest : source;
        for (size_t i = thread; i < all; i += threads)
            source[i] = 1000 * me + (int)i;
        nvshmemx_barrier_block(team);
        if (form == 0 && thread == 0)
            expect(nvshmem_int_sum_reducescatter(team, to, source, nelems) == 0, wrong);
        if (form == 1 && thread < 32)
            expect(nvshmemx_int_sum_reducescatter_warp(team, to, source, nelems) == 0, wrong);
        if (form == 2)
            expect(nvshmemx_int_sum_reducescatter_block(team, to, source, nelems) == 0, wrong);
        weft_block_sync();
        for (size_t i = thread; i < nelems; i += threads)
            expect(to[i] == sum_of_members(n, mine + i), wrong);
        nvshmemx_barrier_block(team);
    }
}

/* The largest x and its y: each member is the largest for some elements, and two are equal for the
 * last one, of which the first member's y counts. In place the second time. */
#if defined(__CUDACC__) || defined(WEFT_DEVICE_HOST)
extern "C" __global__ void names_largest(double2 *box, size_t nelems, int team, uint32_t *wrong) {
    int me = nvshmem_team_my_pe(team), n = nvshmem_team_n_pes(team);
    uint32_t thread = weft_block_rank(), threads = weft_block_size();
    double2 *source = box, *dest = box + nelems;
    for (size_t i = thread; i < nelems; i += threads) {
        bool equal = i == nelems - 1, largest = (int)(i % (size_t)n) == me;
        source[i].x = equal ? 7 : largest ? -1 : -2 - (double)me;
        source[i].y = 100.0 * me + (double)i;
    }
    nvshmemx_barrier_block(team);
    for (int in_place = 0; in_place < 2; in_place++) {
        double2 *to = in_place ? source : dest;
        expect(nvshmemx_double2_maxloc_reduce_block(team, to, source, nelems) == 0, wrong);
        for (size_t i = thread; i < nelems; i += threads) {
            bool equal = i == nelems - 1;
            double of = equal ? 0 : (double)(i % (size_t)n);
            expect(to[i].x == (equal ? 7 : -1) && to[i].y == 100 * of + (double)i, wrong);
        }
        nvshmemx_barrier_block(team);
    }
}
#endif

/* --- Waits that never end --------------------------------------------------------------------- */

extern "C" __global__ void names_over(int *words, uint64_t *sig, uint32_t *wrong) {
    int values[2] = {1, 2};
    size_t indices[2];
    if (weft_block_rank() != 0)
        return;
    nvshmem_signal_wait_until(sig, NVSHMEM_CMP_NE, 0);
    nvshmem_int_wait_until(words, NVSHMEM_CMP_GT, 0);
    nvshmem_int_wait_until_all(words, 2, NULL, NVSHMEM_CMP_LT, 0);
    nvshmem_int_wait_until_all_vector(words, 2, NULL, NVSHMEM_CMP_EQ, values);
    expect(nvshmem_int_wait_until_any(words, 2, NULL, NVSHMEM_CMP_EQ, 1) == SIZE_MAX, wrong);
    expect(nvshmem_int_wait_until_some(words, 2, indices, NULL, NVSHMEM_CMP_EQ, 1) == 0, wrong);
}
