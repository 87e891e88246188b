/* SPDX-License-Identifier: BSD-3-Clause */
/* Signal pads used by the calling thread, in the heap and in blocks that a group shares: puts and
 * waits on channels, and barriers, order stores; all words are 0 at the end; a wait that exceeds
 * its limit names the peer, and can be repeated. PEs: 1 2 3 4 8 */
#include <shmemx.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <weft.h>
#include "api/group.h"
#include "tap.h"

enum { CHANNELS = 4, ROUNDS = 300, WAIT_MS = 60000, SHORT_MS = 60 };

static int me, npes;      /* of the near PEs only, because pads are pointers */
static uint32_t *own_pad; /* symmetric */
static long *box;         /* symmetric, not atomic: a word for each source */

struct pads {
    uint32_t *of[GROUP_MAX];
    int rank, n;
};

static struct pads near_pads(void) {
    struct pads pads = {.rank = me, .n = npes};
    for (int pe = 0; pe < npes; pe++)
        pads.of[pe] = shmem_team_ptr(SHMEM_TEAM_SHARED, own_pad, pe);
    return pads;
}

static int put(const struct pads *pads, int peer, int channel) {
    return shmemx_pad_put_on_stream(pads->of, pads->rank, pads->n, peer, channel, WAIT_MS,
                                    SHMEMX_STREAM_HOST);
}

static int wait_for(const struct pads *pads, int peer, int channel) {
    return shmemx_pad_wait_on_stream(pads->of, pads->rank, pads->n, peer, channel, WAIT_MS,
                                     SHMEMX_STREAM_HOST);
}

static int barrier(const struct pads *pads, int channel) {
    return shmemx_pad_barrier_on_stream(pads->of, pads->rank, pads->n, channel, WAIT_MS,
                                        SHMEMX_STREAM_HOST);
}

static void expect_zero(const struct pads *pads) {
    static const uint32_t zero[CHANNELS * GROUP_MAX];
    size_t bytes = (size_t)(CHANNELS * pads->n) * sizeof *zero;
    EXPECT(memcmp(pads->of[pads->rank], zero, bytes) == 0, "a word is left");
}

/* Each PE stores to the next one, then signals. The answer frees the box. */
static void ring(void) {
    struct pads pads = near_pads();
    int next = (me + 1) % npes, before = (me + npes - 1) % npes;
    volatile long *there = shmem_team_ptr(SHMEM_TEAM_SHARED, &box[0], next);
    for (int round = 0; round < ROUNDS; round++) {
        int channel = round % CHANNELS;
        *there = me * 1000L + round;
        EXPECT(put(&pads, next, channel) == 0, "%s", weft_last_error());
        EXPECT(wait_for(&pads, before, channel) == 0, "%s", weft_last_error());
        long got = ((volatile long *)box)[0];
        EXPECT(got == before * 1000L + round, "%ld in round %d", got, round);
        EXPECT(barrier(&pads, channel) == 0, "%s", weft_last_error());
    }
    expect_zero(&pads);
    shmem_barrier_all();
}

static void barriers(void) {
    struct pads pads = near_pads();
    for (int round = 0; round < ROUNDS; round++) {
        for (int pe = 0; pe < npes; pe++)
            *(volatile long *)shmem_team_ptr(SHMEM_TEAM_SHARED, &box[me], pe) = round;
        EXPECT(barrier(&pads, 1) == 0, "%s", weft_last_error());
        for (int pe = 0; pe < npes; pe++)
            EXPECT(((volatile long *)box)[pe] == round, "%ld from PE %d", box[pe], pe);
        EXPECT(barrier(&pads, 3) == 0, "%s", weft_last_error());
    }
    expect_zero(&pads);
    shmem_barrier_all();
}

/* Ranks are indices in the group, and pads are in its blocks. */
static void of_groups(void) {
    struct random random = random_of(21, 0);
    for (int round = 0; round < 30; round++) {
        struct group group = group_draw_near(&random);
        shmemx_block_t block;
        shmemx_share_t share;
        if (group.member < 0)
            continue;
        EXPECT(shmemx_block_alloc(SHMEMX_SPACE_HOST, 4096, &block) == 0, "%s", weft_last_error());
        EXPECT(shmemx_share_attach(block, group.pes, group.count, group.tag, &share) == 0, "%s",
               weft_last_error());
        struct pads pads = {.rank = group.member, .n = group.count};
        for (int i = 0; i < group.count; i++)
            pads.of[i] = shmemx_share_ptr(share, i);
        for (int i = 0; i < CHANNELS; i++)
            EXPECT(barrier(&pads, i) == 0, "%s", weft_last_error());
        expect_zero(&pads);
        shmemx_share_release(share);
        shmemx_block_free(block);
    }
}

/* Threads of a PE use channels of their own. */
static void *run_thread(void *channel) {
    struct pads pads = near_pads();
    intptr_t wrong = 0;
    for (int round = 0; round < ROUNDS; round++)
        wrong += barrier(&pads, (int)(intptr_t)channel) != 0;
    return (void *)wrong;
}

static void in_threads(void) {
    pthread_t threads[CHANNELS];
    for (intptr_t i = 0; i < CHANNELS; i++)
        pthread_create(&threads[i], NULL, run_thread, (void *)i);
    for (int i = 0; i < CHANNELS; i++) {
        void *wrong = NULL;
        pthread_join(threads[i], &wrong);
        EXPECT(wrong == NULL, "thread %d", i);
    }
    shmem_barrier_all();
}

/* --- Errors ----------------------------------------------------------------------------------- */

static long now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void expect_timeout(int rc, long begun_ms, const char *text) {
    EXPECT(rc == -ETIMEDOUT && strstr(weft_last_error(), text), "%d: %s", rc, weft_last_error());
    EXPECT(now_ms() - begun_ms >= SHORT_MS - 1, "after %ld ms", now_ms() - begun_ms);
}

/* A separate pad with two ranks, which nobody else uses. */
static void too_long(void) {
    uint32_t words[2][8] = {{0}}, *const pads[] = {words[0], words[1]};
    long begun = now_ms();
    expect_timeout(shmemx_pad_wait_on_stream(pads, 0, 2, 1, 3, SHORT_MS, SHMEMX_STREAM_HOST), begun,
                   "rank 0 has heard nothing from rank 1 on channel 3");
    EXPECT(shmemx_pad_put_on_stream(pads, 0, 2, 1, 3, SHORT_MS, SHMEMX_STREAM_HOST) == 0, "free");
    begun = now_ms();
    expect_timeout(shmemx_pad_put_on_stream(pads, 0, 2, 1, 3, SHORT_MS, SHMEMX_STREAM_HOST), begun,
                   "rank 0 has not been heard by rank 1 on channel 3");
    begun = now_ms();
    expect_timeout(shmemx_pad_barrier_on_stream(pads, 0, 2, 0, SHORT_MS, SHMEMX_STREAM_HOST), begun,
                   "rank 0 has heard nothing from rank 1 on channel 0");
    EXPECT(shmemx_pad_wait_on_stream(pads, 1, 2, 0, 3, SHORT_MS, SHMEMX_STREAM_HOST) == 0, "heard");
    EXPECT(words[1][2 * 3] == 0 && words[1][0] == 1, "its words");
    EXPECT(shmemx_pad_barrier_on_stream(pads, 0, 1, 0, 0, SHMEMX_STREAM_HOST) == 0, "alone");
}

static void expect_error(int rc, int expected, const char *text) {
    EXPECT(rc == expected && strstr(weft_last_error(), text), "%d: %s", rc, weft_last_error());
}

static void wrong_arguments(void) {
    uint32_t words[8] = {0}, *const pads[] = {words};
    shmemx_stream_t host = SHMEMX_STREAM_HOST;
    expect_error(shmemx_pad_put_on_stream(NULL, 0, 1, 0, 0, 0, host), -EINVAL, "pads is NULL");
    expect_error(shmemx_pad_put_on_stream(pads, 1, 1, 0, 0, 0, host), -EINVAL, "rank is 1");
    expect_error(shmemx_pad_wait_on_stream(pads, 0, 1, 1, 0, 0, host), -EINVAL, "peer is 1");
    expect_error(shmemx_pad_barrier_on_stream(pads, 0, 1, -1, 0, host), -EINVAL, "channel is -1");
    expect_error(shmemx_putmem_on_stream(box, box, 8, 0, host), -EINVAL, "SHMEMX_STREAM_HOST");
    expect_error(shmemx_barrier_all_on_stream(host), -EINVAL, "SHMEMX_STREAM_HOST");
}

int main(void) {
    tap_start(0);
    int provided;
    uint32_t word = 0, *const pads[] = {&word};
    int early = shmemx_pad_put_on_stream(pads, 0, 1, 0, 0, 0, SHMEMX_STREAM_HOST);
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    tap_start(shmem_my_pe());
    me = shmem_team_my_pe(SHMEM_TEAM_SHARED);
    npes = shmem_team_n_pes(SHMEM_TEAM_SHARED);
    own_pad = shmem_calloc(CHANNELS * (size_t)shmem_n_pes(), sizeof *own_pad);
    box = shmem_calloc((size_t)shmem_n_pes(), sizeof *box);
    tap_case("a put of a pad orders earlier stores");
    ring();
    tap_case("barriers");
    barriers();
    tap_case("pads in blocks that groups share");
    of_groups();
    tap_case("threads on channels of their own");
    in_threads();
    tap_case("a wait that is too long names the peer");
    too_long();
    tap_case("arguments that are wrong");
    wrong_arguments();
    shmem_finalize();
    tap_case("outside of a job");
    EXPECT(early == -EPERM && word == 0, "%d before shmem_init", early);
    expect_error(shmemx_pad_put_on_stream(pads, 0, 1, 0, 0, 0, SHMEMX_STREAM_HOST), -EPERM,
                 "shmem_finalize");
    return tap_finish();
}
