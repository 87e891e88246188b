/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: an exchange among some PEs, also of several hosts: all contributions arrive at all
 * members, in consecutive rounds, of any size, also if members are late; exchanges with random
 * lists in several threads are not confused; contributions that do not match, and a member that has
 * finalized, are an error on all members, and the next exchange is correct. PEs: 1 2 3 4 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>
#include "boot/boot.h"
#include "far/draw.h"

enum { ROUNDS = 40, THREADS = 4, LISTS = 60, PES_MAX = 16 };

static int me, npes;

/* Returns the number of errors. */
static int meet(const int *pes, int count, uint64_t number, int round, size_t bytes) {
    unsigned char *mine = malloc(bytes + 1), *all = malloc((size_t)count * bytes + 1);
    struct weft_boot_subset subset = {.pes = pes, .count = count, .tag = number};
    struct weft_exchange exchange = {.mine = mine, .bytes = bytes, .all = all};
    uint64_t key = number * 1000 + (uint64_t)round * 16;
    fill(mine, bytes, key + (uint64_t)me);
    int wrong = weft_boot_exchange_among(&subset, &exchange) != 0;
    for (int i = 0; i < count && !wrong; i++)
        wrong = differs(all + (size_t)i * bytes, bytes, key + (uint64_t)pes[i]) != bytes;
    free(mine);
    free(all);
    return wrong;
}

static int meet_bytes(const int *pes, int count, size_t bytes) {
    unsigned char mine[16] = {0}, all[PES_MAX * 16];
    struct weft_boot_subset subset = {.pes = pes, .count = count, .tag = 1};
    struct weft_exchange exchange = {.mine = mine, .bytes = bytes, .all = all};
    return weft_boot_exchange_among(&subset, &exchange);
}

/* Draws some PEs in a random order, the same on all PEs that draw from this state. Returns their
 * number. */
static int draw_list(uint64_t *state, int *pes) {
    for (int pe = 0; pe < npes; pe++)
        pes[pe] = pe;
    for (int i = npes - 1; i > 0; i--) {
        int other = (int)(draw(state) % ((uint64_t)i + 1)), pe = pes[i];
        pes[i] = pes[other];
        pes[other] = pe;
    }
    return 1 + (int)(draw(state) % (uint64_t)npes);
}

static bool has_me(const int *pes, int count) {
    for (int i = 0; i < count; i++)
        if (pes[i] == me)
            return true;
    return false;
}

static void *meet_in_thread(void *number) {
    uint64_t state = (uintptr_t)number;
    intptr_t wrong = 0;
    int pes[PES_MAX];
    for (int round = 0; round < LISTS; round++) {
        int count = draw_list(&state, pes);
        size_t bytes = draw_size(&state, WEFT_BOOT_BLOB_MAX);
        if (has_me(pes, count))
            wrong += meet(pes, count, (uintptr_t)number, round, bytes);
    }
    return (void *)wrong;
}

static void in_threads(void) {
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, meet_in_thread, (void *)(100 + i));
    for (int i = 0; i < THREADS; i++) {
        void *wrong = NULL;
        pthread_join(threads[i], &wrong);
        EXPECT(wrong == NULL, "%d wrong in thread %d", (int)(intptr_t)wrong, i);
    }
}

/* Each PE in turn is late, when the others have already contributed. */
static void in_rounds(const int *pes) {
    static const size_t sizes[] = {0, 1, 8, 1000, WEFT_BOOT_BLOB_MAX};
    for (int round = 0; round < ROUNDS; round++) {
        if (round % 8 == me)
            usleep(2000);
        EXPECT(meet(pes, npes, 1, round, sizes[round % 5]) == 0, "round %d", round);
    }
}

int main(void) {
    int provided, pes[PES_MAX];
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    me = shmem_my_pe();
    npes = shmem_n_pes();
    for (int i = 0; i < npes; i++)
        pes[i] = npes - 1 - i;
    tap_start(me);
    tap_case("all PEs, round after round");
    in_rounds(pes);
    tap_case("random lists, in several threads");
    in_threads();
    tap_case("contributions of several sizes are an error on all, and the next exchange is whole");
    int rc = meet_bytes(pes, npes, me == npes - 1 ? 16 : 8);
    EXPECT(rc == (npes > 1 ? -EPROTO : 0), "rc is %d", rc);
    EXPECT(meet(pes, npes, 1, ROUNDS, 8) == 0, "the next one");
    tap_case("a member that has finalized is an error on all others");
    if (me != npes - 1) {
        rc = meet_bytes(pes, npes, 8);
        EXPECT(rc == -ECONNABORTED, "rc is %d", rc);
    }
    shmem_finalize();
    return tap_finish();
}
