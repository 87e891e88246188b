/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory management: size, alignment, contents and failures of each routine, and that objects
 * correspond on all PEs during a random sequence of allocations. */
#include <shmem.h>
#include <shmemx.h>
#include <stdint.h>
#include <string.h>
#include "tap.h"
#include "api/model.h"

static int me, npes;

static void nothing(void) {
    void *p = shmem_malloc(64);
    EXPECT(shmem_malloc(0) == NULL, "malloc");
    EXPECT(shmem_calloc(0, 8) == NULL && shmem_calloc(8, 0) == NULL, "calloc");
    EXPECT(shmem_align(64, 0) == NULL, "align");
    EXPECT(shmem_malloc_with_hints(0, SHMEM_MALLOC_SIGNAL_REMOTE) == NULL, "hints");
    EXPECT(shmem_realloc(p, 0) == NULL, "realloc to nothing is free");
    shmem_free(NULL);
    if (me == 0) /* no barrier: the others are not here */
        EXPECT(shmem_malloc(0) == NULL, "malloc on one PE alone");
    shmem_barrier_all();
}

static void impossible(void) {
    EXPECT(shmem_calloc(SIZE_MAX / 2, 3) == NULL, "an overflow");
    EXPECT(shmem_calloc((size_t)1 << 32, (size_t)1 << 32) == NULL, "an overflow to zero");
    EXPECT(shmem_calloc(SIZE_MAX / 16 + 2, 16) == NULL, "an overflow to 16");
    EXPECT(shmem_align(0, 64) == NULL && shmem_align((SIZE_MAX >> 1) + 2, 64) == NULL,
           "alignments that are none");
}

static void alignments(void) {
    void *first = shmem_malloc(64); /* otherwise everything would begin where the heap does */
    for (size_t alignment = 1; alignment <= 1 << 20; alignment *= 2) {
        char *p = shmem_align(alignment, 100), *q = shmem_malloc(1);
        EXPECT(p && (uintptr_t)p % alignment == 0, "%p for %zu", (void *)p, alignment);
        EXPECT((uintptr_t)p % sizeof(void *) == 0, "%p for %zu", (void *)p, alignment);
        EXPECT((uintptr_t)q % _Alignof(max_align_t) == 0, "%p", (void *)q);
        memset(p, 1, 100);
        shmem_free(p);
        shmem_free(q);
    }
    for (size_t alignment = 3; alignment < 5000; alignment = alignment * 2 + 3) {
        char *p = shmem_align(alignment, 100);
        size_t next = 8;
        while (next < alignment)
            next *= 2;
        EXPECT(p && (uintptr_t)p % next == 0, "%p for %zu", (void *)p, alignment);
        shmem_free(p);
    }
    shmem_free(first);
}

static int lines_of_freed;

static int count_line(const char *line) {
    lines_of_freed += strstr(line, "that was freed before: the result is NULL") != NULL;
    return 1;
}

/* No object is touched, and PE 0 writes one line. */
static void freed(void) {
    long *before = shmem_malloc(64), *object = shmem_malloc(64), *after = shmem_malloc(64);
    *before = *after = 7;
    shmem_free(object);
    shmemx_set_log_handler(count_line);
    EXPECT(shmem_realloc(object, 128) == NULL && shmem_realloc(object, 0) == NULL, "an object");
    shmemx_set_log_handler(NULL);
    EXPECT(lines_of_freed == (me == 0 ? 2 : 0), "%d lines", lines_of_freed);
    EXPECT(*before == 7 && *after == 7, "neighbours are %ld and %ld", *before, *after);
    EXPECT(shmem_malloc(64) == object, "the heap has changed");
    object = shmem_realloc(object, 128);
    EXPECT(object != NULL, "a live object at the same place");
    shmem_free(object);
    shmem_free(before);
    shmem_free(after);
}

static void contents(void) {
    unsigned char *p = shmem_malloc(5000), *kept;
    memset(p, 0xA5, 5000);
    shmem_free(p);
    p = shmem_calloc(50, 100);
    size_t nonzero = 0;
    for (int i = 0; i < 5000; i++)
        nonzero += p[i] != 0;
    EXPECT(nonzero == 0, "%zu bytes of calloc are not 0", nonzero);
    for (int i = 0; i < 5000; i++)
        p[i] = (unsigned char)(i + me);
    kept = shmem_realloc(p, 300000);
    size_t wrong = 0;
    for (int i = 0; i < 5000; i++)
        wrong += kept[i] != (unsigned char)(i + me);
    kept = shmem_realloc(kept, 700);
    for (int i = 0; i < 700; i++)
        wrong += kept[i] != (unsigned char)(i + me);
    EXPECT(wrong == 0, "%zu bytes are lost in realloc", wrong);
    shmem_free(kept);
    p = shmem_realloc(NULL, 10);
    EXPECT(p, "realloc of NULL is malloc");
    shmem_free(p);
    p = shmem_malloc_with_hints(10, SHMEM_MALLOC_ATOMICS_REMOTE | SHMEM_MALLOC_SIGNAL_REMOTE);
    EXPECT(p, "hints");
    shmem_free(p);
}

/* Random allocations and frees; each object contains its number and PE, written by the PE before.
 */
static void life(void) {
    enum { SLOTS = 40, TURNS = 600 };
    static long *objects[SLOTS];
    static size_t nelems[SLOTS];
    struct random random = random_of(99, 0); /* the same on all PEs */
    int next = (me + 1) % npes, before = (me + npes - 1) % npes;
    for (int turn = 0; turn < TURNS; turn++) {
        size_t slot = random_below(&random, SLOTS);
        if (objects[slot]) {
            long expected = (long)slot * 1000 + before;
            EXPECT(objects[slot][0] == expected && objects[slot][nelems[slot] - 1] == expected,
                   "turn %d slot %zu: %ld %ld, not %ld", turn, slot, objects[slot][0],
                   objects[slot][nelems[slot] - 1], expected);
            shmem_free(objects[slot]);
            objects[slot] = NULL;
            continue;
        }
        nelems[slot] = 1 + random_below(&random, random_below(&random, 8) ? 500 : 200000);
        objects[slot] = shmem_malloc(nelems[slot] * sizeof(long));
        EXPECT(objects[slot], "turn %d: no %zu elements", turn, nelems[slot]);
        shmem_long_p(&objects[slot][0], (long)slot * 1000 + me, next);
        shmem_long_p(&objects[slot][nelems[slot] - 1], (long)slot * 1000 + me, next);
        shmem_barrier_all();
    }
    for (int slot = 0; slot < SLOTS; slot++)
        shmem_free(objects[slot]);
}

int main(void) {
    shmem_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    tap_start(me);
    tap_case("nothing");
    nothing();
    tap_case("impossible sizes");
    impossible();
    tap_case("alignments");
    alignments();
    tap_case("an object that was freed has no new size");
    freed();
    tap_case("contents");
    contents();
    tap_case("a random life");
    life();
    int result = tap_finish();
    shmem_finalize();
    return result;
}
