/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory management (pitfalls 43 to 45): which calls are barriers, and that these complete
 * operations; the meaning of zero bytes and of NULL; failures on all PEs; objects that correspond
 * through reallocation. */
#include <shmem.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include "conformance/ring.h"
#include "tap.h"
#include "api/model.h"

static long word;

/* Every PE puts a number to the next one, some late; after a barrier on entry or exit the number
 * has arrived. `which` is the routine that made the barrier. */
static void *routine(int which, void *object) {
    switch (which) {
    case 0:
        return shmem_malloc(100);
    case 1:
        return shmem_calloc(10, 10);
    case 2:
        return shmem_align(512, 100);
    case 3:
        return shmem_malloc_with_hints(100, SHMEM_MALLOC_ATOMICS_REMOTE);
    case 4:
        return shmem_realloc(object, 100000);
    case 5:
        return shmem_realloc(NULL, 200);
    case 6:
        return shmem_realloc(object, 0);
    default:
        shmem_free(object);
        return NULL;
    }
}

static void barriers(void) {
    for (int which = 0; which < 8; which++)
        for (int late = 0; late < npes; late++) {
            void *object = which == 4 || which >= 6 ? shmem_malloc(50) : NULL;
            long mine = 100 * which + late + 1;
            shmem_barrier_all();
            if (me == late)
                usleep(500);
            shmem_long_put_nbi(&word, &mine, 1, next);
            void *result = routine(which, object);
            EXPECT(word == mine, "routine %d, PE %d late: %ld", which, late, word);
            EXPECT((result != NULL) == (which < 6), "routine %d: %p", which, result);
            if (which < 6) /* immediately usable from all PEs */
                shmem_int_p((int *)result + 3, late, next);
            shmem_barrier_all();
            EXPECT(which >= 6 || ((int *)result)[3] == late, "routine %d: the new object", which);
            shmem_free(result);
        }
}

/* There is no barrier if nothing is allocated or freed: single PEs call it, any number of times. */
static void nothing(void) {
    for (int i = 0; i < me * 3; i++) {
        EXPECT(shmem_malloc(0) == NULL && shmem_calloc(0, 5) == NULL, "no bytes");
        EXPECT(shmem_calloc(5, 0) == NULL && shmem_align(64, 0) == NULL, "no bytes");
        EXPECT(shmem_malloc_with_hints(0, 0) == NULL && shmem_realloc(NULL, 0) == NULL, "no bytes");
        shmem_free(NULL);
    }
    shmem_barrier_all();
}

/* Freeing, and failing calls, leave the other blocks unchanged on every PE. */
static void failures(void) {
    static const size_t too_much[] = {SIZE_MAX, (size_t)1 << 60};
    unsigned char *kept = shmem_malloc(3000);
    for (int i = 0; i < 3000; i++)
        kept[i] = (unsigned char)(i * 7 + me);
    for (size_t i = 0; i < sizeof too_much / sizeof *too_much; i++) {
        EXPECT(shmem_malloc(too_much[i]) == NULL, "malloc of %zu", too_much[i]);
        EXPECT(shmem_calloc(1, too_much[i]) == NULL, "calloc of %zu", too_much[i]);
        EXPECT(shmem_align(4096, too_much[i]) == NULL, "align of %zu", too_much[i]);
        EXPECT(shmem_realloc(kept, too_much[i]) == NULL, "realloc to %zu", too_much[i]);
        EXPECT(shmem_realloc(NULL, too_much[i]) == NULL, "realloc to %zu", too_much[i]);
    }
    EXPECT(shmem_calloc((size_t)1 << 33, (size_t)1 << 33) == NULL, "a product that overflows");
    shmem_barrier_all();
    int wrong = 0;
    for (int i = 0; i < 3000; i++) {
        wrong += kept[i] != (unsigned char)(i * 7 + me);
        wrong += i % 500 == 0 && shmem_uchar_g(&kept[i], next) != (unsigned char)(i * 7 + next);
    }
    EXPECT(wrong == 0, "%d bytes of the block are lost", wrong);
    void *more = shmem_malloc(100000);
    EXPECT(more, "nothing is left after failures");
    shmem_free(more);
    shmem_free(kept);
}

static void zeroed(void) {
    for (size_t bytes = 1; bytes < 3 << 20; bytes = bytes * 5 + 3) {
        unsigned char *p = shmem_malloc(bytes), last;
        memset(p, 0xFF, bytes);
        shmem_free(p);
        p = shmem_calloc(bytes, 1);
        size_t nonzero = 0;
        shmem_getmem(&last, p + bytes - 1, 1,
                     next); /* the peer's, without another call in between */
        for (size_t i = 0; i < bytes; i++)
            nonzero += p[i] != 0;
        EXPECT(nonzero == 0 && last == 0, "%zu of %zu bytes are not 0", nonzero, bytes);
        shmem_free(p);
    }
}

static void alignments(void) {
    enum { MANY = 40 };
    char *all[MANY];
    struct random random = random_of(4, 0);
    for (int i = 0; i < MANY; i++) {
        size_t alignment = sizeof(void *) << random_below(&random, 21); /* up to 8 MiB */
        size_t bytes = 1 + random_below(&random, 5000);
        all[i] = shmem_align(alignment, bytes);
        EXPECT(all[i] && (uintptr_t)all[i] % alignment == 0, "%p for %zu", (void *)all[i],
               alignment);
        memset(all[i], i, bytes);
        shmem_char_p(&all[i][bytes - 1], (char)i, next);
        char *there = shmem_ptr(all[i], next);
        EXPECT(!there || (uintptr_t)there % alignment == 0, "at the peer: %p", (void *)there);
    }
    shmem_barrier_all();
    for (int i = 0; i < MANY; i++)
        EXPECT(all[i][0] == (char)i, "block %d has %d", i, all[i][0]);
    for (int i = 0; i < MANY; i++)
        shmem_free(all[i * 27 % MANY]);
}

/* Objects grow and shrink, in random order, among others; the peer writes both ends each time. */
static void reallocations(void) {
    enum { MANY = 12, TURNS = 300 };
    long *objects[MANY] = {NULL};
    size_t nelems[MANY] = {0};
    struct random random = random_of(8, 0);
    for (int turn = 0; turn < TURNS; turn++) {
        size_t i = random_below(&random, MANY), old = nelems[i];
        nelems[i] = random_below(&random, 4) ? 1 + random_below(&random, 3000) : 0;
        if (turn % 50 == 49)
            nelems[i] = 200000;
        objects[i] = shmem_realloc(objects[i], nelems[i] * sizeof(long));
        EXPECT((objects[i] != NULL) == (nelems[i] != 0), "turn %d", turn);
        if (!objects[i])
            continue;
        size_t kept = old < nelems[i] ? old : nelems[i];
        if (kept) {
            EXPECT(objects[i][0] == (long)i * 1000 + before, "turn %d: %ld", turn, objects[i][0]);
            EXPECT(kept < old || objects[i][old - 1] == (long)i * 1000 + before, "turn %d", turn);
        }
        shmem_barrier_all(); /* all have checked */
        shmem_long_p(&objects[i][0], (long)i * 1000 + me, next);
        shmem_long_p(&objects[i][nelems[i] - 1], (long)i * 1000 + me, next);
        shmem_barrier_all();
    }
    for (int i = 0; i < MANY; i++)
        shmem_free(objects[i]);
}

/* Hints have no effect on results; a block may use a large part of memory, and is returned. */
static void sizes_and_hints(void) {
    static const long hints[] = {0, SHMEM_MALLOC_ATOMICS_REMOTE, SHMEM_MALLOC_SIGNAL_REMOTE,
                                 SHMEM_MALLOC_ATOMICS_REMOTE | SHMEM_MALLOC_SIGNAL_REMOTE};
    for (int i = 0; i < 4; i++) {
        uint64_t *p = shmem_malloc_with_hints(4096, hints[i]);
        *p = 0;
        p = shmem_realloc(p, 8192);
        p[1000] = 0;
        shmem_barrier_all();
        shmem_uint64_atomic_inc(&p[1000], next);
        shmem_signal_add(&p[0], 5, next);
        shmem_signal_wait_until(&p[0], SHMEM_CMP_EQ, 5);
        shmem_barrier_all();
        EXPECT(p[1000] == 1, "%llu", (unsigned long long)p[1000]);
        shmem_free(p);
    }
    enum { LARGE = 48 << 20 };
    for (int i = 0; i < 3; i++) {
        char *p = shmem_malloc(LARGE);
        EXPECT(p, "no %d bytes, time %d", LARGE, i);
        shmem_char_p(&p[LARGE - 1], (char)(me + i), next);
        shmem_barrier_all();
        EXPECT(p[LARGE - 1] == (char)(before + i), "%d", p[LARGE - 1]);
        shmem_free(p);
    }
}

int main(void) {
    shmem_init();
    ring_start();
    tap_case("43: barriers, and the operations that they complete");
    barriers();
    tap_case("43: nothing");
    nothing();
    tap_case("44: failures are unanimous and lose nothing");
    failures();
    tap_case("44: calloc is zero, at the peers too");
    zeroed();
    tap_case("44: alignments");
    alignments();
    tap_case("44: reallocations");
    reallocations();
    tap_case("43, 44: hints and large blocks");
    sizes_and_hints();
    int result = tap_finish();
    shmem_finalize();
    return result;
}
