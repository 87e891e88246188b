/* SPDX-License-Identifier: BSD-3-Clause */
/* Effects of which PEs are near, and results that do not depend on it: pointers and
 * SHMEM_TEAM_SHARED, accesses of every kind to every PE, the completion of each kind of quiet as a
 * third PE sees it, blocks, and a second job. The first argument has a letter for each PE, equal
 * for PEs that are near to each other; reach.t runs it in several placements. Or it is "leave".
 * PEs: none */
#include <errno.h>
#include <shmem.h>
#include <shmemx.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <weft.h>
#include "tap.h"

enum { LARGE = 100 << 10, WORDS = 64, PES_MAX = 8 };

static int me, npes;
static const char *messages;
static long words[WORDS], others[WORDS];
static uint64_t signals[PES_MAX];
static char *heap;

static bool is_near(int pe) {
    return messages[pe] == messages[me];
}

static void pointers(void) {
    tap_case("pointers are of near PEs, objects of all");
    long here = 0;
    for (int pe = 0; pe < npes; pe++) {
        const void *objects[] = {heap, words};
        for (int i = 0; i < 2; i++) {
            EXPECT(!shmem_ptr(objects[i], pe) == !is_near(pe), "shmem_ptr of PE %d", pe);
            EXPECT(!shmem_team_ptr(SHMEM_TEAM_WORLD, objects[i], pe) == !is_near(pe),
                   "shmem_team_ptr of PE %d", pe);
            EXPECT(!shmemx_ptr(SHMEMX_SPACE_HOST, objects[i], pe) == !is_near(pe),
                   "shmemx_ptr of PE %d", pe);
            EXPECT(shmem_addr_accessible(objects[i], pe), "PE %d", pe);
        }
        EXPECT(!shmem_ptr(&here, pe) && !shmem_addr_accessible(&here, pe), "PE %d", pe);
        EXPECT(shmem_pe_accessible(pe), "PE %d", pe);
    }
    EXPECT(shmem_ptr(words, me) == words && shmem_ptr(heap, me) == heap, "own objects");
    EXPECT(!shmem_pe_accessible(npes) && !shmem_addr_accessible(words, npes), "no PE");
    EXPECT(!shmem_pe_accessible(-1) && !shmem_addr_accessible(words, -1), "no PE");
}

static void shared_team(void) {
    tap_case("SHMEM_TEAM_SHARED has the near PEs");
    int member = 0;
    for (int pe = 0; pe < npes; pe++) {
        int expected = is_near(pe) ? member++ : -1;
        int found = shmem_team_translate_pe(SHMEM_TEAM_WORLD, pe, SHMEM_TEAM_SHARED);
        EXPECT(found == expected, "PE %d is member %d, not %d", pe, found, expected);
        EXPECT(expected < 0 ||
                   shmem_team_ptr(SHMEM_TEAM_SHARED, words, expected) == shmem_ptr(words, pe),
               "PE %d", pe);
    }
    EXPECT(shmem_team_n_pes(SHMEM_TEAM_SHARED) == member, "%d members", member);
    EXPECT(!shmem_team_ptr(SHMEM_TEAM_SHARED, words, member), "no member %d", member);
}

/* Every PE writes its own part of every PE's array; then all read all. */
static void arrays(void) {
    tap_case("puts and gets of any length, to all PEs");
    static const size_t lengths[] = {0, 1, 3, 8, 100, 4096, 8191, LARGE};
    char *from = malloc(LARGE), *back = malloc(LARGE);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        size_t bytes = lengths[i];
        memset(from, me + 1 + (int)i, LARGE);
        for (int pe = 0; pe < npes; pe++)
            shmem_putmem(heap + (size_t)me * LARGE, from, bytes, pe);
        shmem_barrier_all();
        for (int pe = 0; pe < npes; pe++)
            for (int part = 0; part < npes; part++) {
                memset(from, part + 1 + (int)i, bytes);
                memset(back, 0, bytes);
                shmem_getmem(back, heap + (size_t)part * LARGE, bytes, pe);
                EXPECT(memcmp(from, back, bytes) == 0, "%zu bytes of %d on %d", bytes, part, pe);
            }
        shmem_barrier_all();
    }
    free(from);
    free(back);
}

static void elements(void) {
    tap_case("elements, strides and atomics, in statics");
    for (int pe = 0; pe < npes; pe++) {
        long both[2] = {10 + me, 20 + me};
        shmem_long_p(&words[me], 100 + me, pe);
        shmem_long_iput(&words[PES_MAX + me], both, PES_MAX, 1, 2, pe);
        shmem_long_atomic_add(&words[WORDS - 1], 1 << me, pe);
    }
    shmem_barrier_all();
    for (int pe = 0; pe < npes; pe++)
        for (int part = 0; part < npes; part++) {
            long both[2];
            shmem_long_iget(both, &words[PES_MAX + part], 1, PES_MAX, 2, pe);
            EXPECT(shmem_long_g(&words[part], pe) == 100 + part, "of %d on %d", part, pe);
            EXPECT(both[0] == 10 + part && both[1] == 20 + part, "of %d on %d", part, pe);
        }
    for (int pe = 0; pe < npes; pe++) {
        long sum = shmem_long_atomic_fetch(&words[WORDS - 1], pe);
        EXPECT(sum == (1 << npes) - 1, "%ld on %d", sum, pe);
        shmem_long_atomic_fetch_nbi(&others[0], &words[WORDS - 1], pe);
        shmem_quiet();
        EXPECT(others[0] == sum, "%ld on %d", others[0], pe);
    }
    shmem_barrier_all();
    memset(words, 0, sizeof words);
    shmem_barrier_all();
}

/* Data, then the word that announces it, to one PE: with a fence, or in one call. */
static void order(void) {
    tap_case("data put before a fence or a signal has arrived with the next put or the signal");
    int next = (me + 1) % npes, last = (me + npes - 1) % npes;
    char *data = heap + (size_t)npes * LARGE, *from = malloc(LARGE);
    for (int round = 1; round <= 6; round++) {
        memset(from, round, LARGE);
        if (round % 3 == 0) {
            shmem_putmem_signal(data, from, LARGE, &signals[0], (uint64_t)round, SHMEM_SIGNAL_SET,
                                next);
        } else if (round % 3 == 1) {
            shmem_putmem(data, from, LARGE, next);
            shmem_fence();
            shmem_signal_set(&signals[0], (uint64_t)round, next);
        } else {
            shmem_putmem_signal_nbi(data, from, LARGE, &signals[1], 1, SHMEM_SIGNAL_ADD, next);
            shmem_putmem_signal(NULL, NULL, 0, &signals[0], 1, SHMEM_SIGNAL_ADD, next);
        }
        shmem_signal_wait_until(&signals[0], SHMEM_CMP_GE, (uint64_t)round);
        for (size_t i = 0; i < LARGE; i += 1000)
            EXPECT(data[i] == round, "byte %zu from PE %d: %d", i, last, data[i]);
        shmem_barrier_all();
    }
    memset(signals, 0, sizeof signals);
    free(from);
    shmem_barrier_all();
}

enum { QUIET, PE_QUIET, CTX_QUIET, CTX_PE_QUIET, CTX_DESTROY, TEAM_PE_QUIET, FORMS };

/* PE 0 puts to PE 1, completes that with one of the forms, and signals the last PE, which checks
 * it. */
static void complete(int form, int round, const char *from) {
    int one = 1, first = 0;
    shmem_ctx_t ctx = SHMEM_CTX_DEFAULT;
    if (form == TEAM_PE_QUIET)
        shmem_team_create_ctx(SHMEM_TEAM_WORLD, 0, &ctx);
    else if (form >= CTX_QUIET)
        shmem_ctx_create(0, &ctx);
    shmem_ctx_putmem(ctx, heap, from, LARGE, 1);
    shmem_ctx_long_p(ctx, &words[0], round, 1);
    if (form == QUIET)
        shmem_quiet();
    else if (form == PE_QUIET)
        shmem_pe_quiet(&one, 1);
    else if (form == CTX_QUIET)
        shmem_ctx_quiet(ctx);
    else if (form == CTX_PE_QUIET || form == TEAM_PE_QUIET)
        shmem_ctx_pe_quiet(ctx, (int[]){first, one}, 2);
    else
        shmem_ctx_destroy(ctx);
    shmem_signal_set(&signals[0], (uint64_t)round, npes - 1);
    if (form > CTX_QUIET && form != CTX_DESTROY)
        shmem_ctx_destroy(ctx);
}

static void quiets(void) {
    tap_case("a quiet, of all kinds, completes what a third PE then sees");
    char *from = malloc(LARGE), *back = malloc(LARGE);
    for (int round = 1; npes > 1 && round <= 3 * FORMS; round++) {
        memset(from, round, LARGE);
        if (me == 0)
            complete(round % FORMS, round, from);
        if (me == npes - 1) {
            shmem_signal_wait_until(&signals[0], SHMEM_CMP_EQ, (uint64_t)round);
            shmem_getmem(back, heap, LARGE, 1);
            EXPECT(memcmp(from, back, LARGE) == 0, "form %d", round % FORMS);
            EXPECT(shmem_long_g(&words[0], 1) == round, "form %d", round % FORMS);
        }
        shmem_barrier_all();
    }
    free(from);
    free(back);
}

static void blocks(void) {
    tap_case("blocks are shared by near PEs, and refused to others on all of them");
    shmemx_block_t block;
    shmemx_share_t share;
    int all[PES_MAX], near[PES_MAX], nnear = 0;
    for (int pe = 0; pe < npes; pe++) {
        all[pe] = pe;
        if (is_near(pe))
            near[nnear++] = pe;
    }
    EXPECT(shmemx_block_alloc(SHMEMX_SPACE_HOST, 4096, &block) == 0, "a block");
    int error = shmemx_share_attach(block, all, npes, 1, &share);
    if (nnear == npes) {
        EXPECT(error == 0, "%d", error);
    } else {
        EXPECT(error == -ENOTSUP, "%d", error);
        EXPECT(strstr(weft_last_error(), "is far from PE"), "%s", weft_last_error());
    }
    if (error == 0)
        shmemx_share_release(share);
    EXPECT(shmemx_share_attach(block, near, nnear, 2, &share) == 0, "%s", weft_last_error());
    shmemx_share_release(share);
    shmemx_block_free(block);
    shmem_barrier_all();
}

static void gpus(void) {
    tap_case("GPU memory has an address if the PE is near, or no address at all");
    long *object = shmemx_malloc(SHMEMX_SPACE_DEVICE, 64);
    for (int pe = 0; pe < npes; pe++) {
        void *there = shmemx_ptr(SHMEMX_SPACE_DEVICE, object, pe);
        EXPECT(object && is_near(pe) ? there != NULL : !there, "%p on PE %d", there, pe);
    }
    EXPECT(!shmemx_ptr(SHMEMX_SPACE_DEVICE, words, me), "a GPU finds words");
    shmem_free(object);
}

static void life(void) {
    heap = shmem_malloc((size_t)(npes + 1) * LARGE);
    pointers();
    shared_team();
    arrays();
    elements();
    order();
    quiets();
    blocks();
    gpus();
    shmem_free(heap);
}

/* The root finishes its part, and departs, before the others have received its data. */
static int leave(void) {
    for (long round = 1; round <= 8; round++) {
        words[0] = round;
        shmem_broadcastmem(SHMEM_TEAM_WORLD, others, words, sizeof words[0], 0);
        shmem_finalize();
        if (others[0] != round)
            return 1;
        shmem_init();
    }
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 2)
        return 2;
    messages = argv[1];
    shmem_init();
    if (strcmp(messages, "leave") == 0)
        return leave();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    tap_start(me);
    life();
    shmem_finalize();
    shmem_init(); /* once more */
    memset(words, 0, sizeof words);
    memset(signals, 0, sizeof signals);
    shmem_barrier_all();
    life();
    return tap_finish(); /* which finalizes */
}
