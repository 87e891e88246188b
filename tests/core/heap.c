/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: the allocation routines: corresponding objects on all PEs, growth on demand,
 * contents, alignment, zero and impossible sizes, and reuse of freed memory. */
#include <shmem.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "tap.h"

static int me, npes;
static uintptr_t offsets[64]; /* symmetric: PE 0's, shown to all */

/* Checks that `p` is at the same distance from the heap's first object on every PE. */
static void expect_same_place(const char *first, const char *p) {
    uintptr_t distance = (uintptr_t)(p - first);
    shmem_barrier_all();
    if (me == 0)
        for (int pe = 0; pe < npes; pe++)
            shmem_putmem(&offsets[0], &distance, sizeof distance, pe);
    shmem_barrier_all();
    EXPECT(offsets[0] == distance, "distance %zu here, %zu on PE 0", distance, offsets[0]);
}

static void zero_and_impossible_sizes(void) {
    tap_case("zero bytes and impossible sizes are NULL on every PE, and nothing is lost");
    EXPECT(shmem_malloc(0) == NULL, "malloc(0)");
    EXPECT(shmem_calloc(0, 8) == NULL && shmem_calloc(8, 0) == NULL, "calloc of nothing");
    EXPECT(shmem_align(64, 0) == NULL, "align(64, 0)");
    EXPECT(shmem_malloc_with_hints(0, SHMEM_MALLOC_ATOMICS_REMOTE) == NULL, "hints, 0 bytes");
    EXPECT(shmem_calloc(SIZE_MAX / 2, 4) == NULL, "calloc whose product overflows");
    EXPECT(shmem_malloc(SIZE_MAX) == NULL, "malloc(SIZE_MAX)");
    EXPECT(shmem_malloc(SIZE_MAX / 4) == NULL, "malloc(SIZE_MAX / 4)");
    EXPECT(shmem_malloc((size_t)1 << 46) == NULL, "malloc of 64 TiB");
    void *rounded = shmem_align(3, 64);
    EXPECT(rounded != NULL && (uintptr_t)rounded % 4 == 0, "alignment 3 is rounded up to 4");
    shmem_free(rounded);
    shmem_free(NULL);
    void *p = shmem_malloc(100);
    EXPECT(p != NULL, "malloc(100) after the failures");
    shmem_free(p);
}

static void growth(void) {
    tap_case("the heap grows under many objects, which keep their contents and places");
    enum { OBJECTS = 40 };
    unsigned char *object[OBJECTS];
    size_t bytes = 1;
    for (int i = 0; i < OBJECTS; i++, bytes = bytes * 3 / 2 + 1) {
        object[i] = shmem_malloc(bytes);
        EXPECT(object[i] != NULL, "%zu bytes", bytes);
        memset(object[i], i + me, bytes);
        expect_same_place((char *)object[0], (char *)object[i]);
    }
    int next = (me + 1) % npes;
    bytes = 1;
    for (int i = 0; i < OBJECTS; i++, bytes = bytes * 3 / 2 + 1)
        EXPECT(shmem_uchar_g(&object[i][bytes - 1], next) == (unsigned char)(i + next),
               "object %d of PE %d", i, next);
    shmem_barrier_all();
    for (int i = 0; i < OBJECTS; i++)
        shmem_free(object[(i * 7) % OBJECTS]);
}

static void alignment(void) {
    tap_case("alignments are kept, blocks do not overlap");
    void *kept[20];
    for (int shift = 3; shift < 20; shift++) {
        size_t alignment = (size_t)1 << shift;
        kept[shift] = shmem_align(alignment, 3 * alignment / 2);
        EXPECT(kept[shift] && (uintptr_t)kept[shift] % alignment == 0, "alignment %zu", alignment);
        memset(kept[shift], shift, 3 * alignment / 2);
    }
    for (int shift = 3; shift < 20; shift++) {
        unsigned char *bytes = kept[shift];
        EXPECT(bytes[0] == shift && bytes[((size_t)3 << shift) / 2 - 1] == shift, "overlap");
        shmem_free(kept[shift]);
    }
}

static void zeroed(void) {
    tap_case("calloc gives zeros, also in memory that was used");
    unsigned char *p = shmem_malloc(100000);
    memset(p, 255, 100000);
    shmem_free(p);
    p = shmem_calloc(1000, 100);
    int nonzero = 0;
    for (int i = 0; i < 100000; i++)
        nonzero += p[i] != 0;
    EXPECT(nonzero == 0, "%d bytes are not zero", nonzero);
    shmem_free(p);
}

static void reallocated(void) {
    tap_case("realloc keeps contents, shrinks, grows, frees at size 0 and begins at NULL");
    unsigned *p = shmem_realloc(NULL, 10 * sizeof *p);
    for (unsigned i = 0; i < 10; i++)
        p[i] = i * 7;
    for (size_t n = 20; n < 200000; n *= 3) {
        p = shmem_realloc(p, n * sizeof *p);
        EXPECT(p && p[9] == 63, "contents after growing to %zu", n);
    }
    unsigned *same = shmem_realloc(p, (size_t)1 << 46);
    EXPECT(same == NULL && p[9] == 63, "a failed realloc must leave the block");
    p = shmem_realloc(p, 5 * sizeof *p);
    EXPECT(p && p[4] == 28, "contents after shrinking");
    EXPECT(shmem_realloc(p, 0) == NULL, "realloc to 0");
}

static void memory_comes_back(void) {
    tap_case("what is freed is used again: ten thousand rounds stay in place");
    void *first = shmem_malloc(1 << 20);
    shmem_free(first);
    for (int i = 0; i < 10000; i++) {
        void *p = shmem_malloc(1 << 20);
        if (p != first) {
            EXPECT(p == first, "round %d moved", i);
            break;
        }
        shmem_free(p);
    }
}

int main(void) {
    shmem_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    tap_start(me);
    zero_and_impossible_sizes();
    growth();
    alignment();
    zeroed();
    reallocated();
    memory_comes_back();
    int result = tap_finish();
    shmem_finalize();
    return result;
}
