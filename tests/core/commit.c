/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: memory of the symmetric heap is allocated when it is touched, and returned to the
 * system if much of it is free. A heap for which that is not wanted has its memory at once and
 * keeps it. PEs: 1 2 4 */
#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <shmem.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "tap.h"
#include "base/machine.h"
#include "job/window.h"

#define MIB ((size_t)1 << 20)

enum { SLACK = 12 }; /* MiB more that may be present: a growth's commit, large pages */

static int me, npes;

static size_t present_mib(void) {
    return weft_segment_present(&weft_windows.heap) / MIB;
}

static void begin(void) {
    shmem_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
}

static void untouched(void) {
    tap_case("what nobody touches is not there, also calloc's, and realloc's");
    size_t before = present_mib();
    char *p = shmem_malloc(300 * MIB), *zeros = shmem_calloc(300, MIB);
    EXPECT(p && zeros, "600 MiB");
    EXPECT(present_mib() <= before + SLACK, "%zu MiB", present_mib());
    p[0] = p[100 * MIB] = 1;
    p = shmem_realloc(p, 400 * MIB);
    EXPECT(p && p[0] == 1 && p[100 * MIB] == 1 && p[5 * MIB] == 0, "the contents");
    EXPECT(present_mib() <= before + SLACK, "%zu MiB after realloc", present_mib());
    shmem_free(p);
    shmem_free(zeros);
}

/* A touch by another PE counts as memory of this PE. */
static void touched_by_a_peer(void) {
    tap_case("what a peer touches is there");
    char *p = shmem_malloc(200 * MIB);
    size_t before = present_mib();
    shmem_barrier_all();
    for (size_t at = 64 * MIB; at < 96 * MIB; at += 4096)
        shmem_char_p(p + at, 1, (me + 1) % npes);
    shmem_barrier_all();
    EXPECT(present_mib() >= before + 31, "%zu MiB, before %zu", present_mib(), before);
    shmem_free(p);
}

static void zeros_again(void) {
    tap_case("calloc of memory that was used, in parts, is zeros");
    unsigned char *p = shmem_malloc(40 * MIB);
    memset(p + 3 * MIB + 5, 7, 9 * MIB);
    memset(p + 30 * MIB, 7, 1);
    shmem_free(p);
    unsigned char *zeros = shmem_calloc(40, MIB);
    size_t wrong = 0;
    for (size_t i = 0; i < 40 * MIB; i++)
        wrong += zeros[i] != 0;
    EXPECT(zeros && wrong == 0, "%zu bytes are not zero", wrong);
    shmem_free(zeros);
}

static void comes_back(void) {
    tap_case(
        "what is freed and not asked for again goes back with the next call, and is zeros then");
    size_t before = present_mib();
    char *p = shmem_malloc(100 * MIB), *kept = shmem_malloc(MIB);
    memset(p, 1, 100 * MIB);
    memset(kept, 2, MIB);
    size_t full = present_mib();
    EXPECT(full >= 100, "%zu MiB", full);
    shmem_free(p);
    char *next = shmem_malloc(8);
    EXPECT(present_mib() + 100 <= full + SLACK, "%zu MiB after free, %zu with it", present_mib(),
           full);
    EXPECT(present_mib() <= before + SLACK, "%zu MiB after free, %zu before", present_mib(),
           before);
    EXPECT(kept[0] == 2 && kept[MIB - 1] == 2, "memory in use was given back");
    shmem_free(next);
    p = shmem_malloc(100 * MIB);
    EXPECT(p[99 * MIB] == 0 && p[50 * MIB + 5] == 0, "%d", p[99 * MIB]);
    shmem_free(p);
    shmem_free(kept);
}

/* Returns how often memory was returned in `rounds` of malloc, touch and free, with other calls in
 * between. */
static int count_returns(int rounds, size_t bytes, int others) {
    int returns = 0;
    for (int round = 0; round < rounds; round++) {
        char *p = shmem_malloc(bytes);
        for (size_t at = 0; at < bytes; at += 4096)
            p[at] = 1;
        size_t before = weft_segment_present(&weft_windows.heap);
        shmem_free(p);
        for (int i = 0; i < others; i++)
            shmem_free(shmem_malloc(100));
        returns += weft_segment_present(&weft_windows.heap) < before;
    }
    return returns;
}

static void loops(void) {
    tap_case("a loop of malloc and free of one size never gives back, other loops not each time");
    char *p = shmem_malloc(80 * MIB); /* completes the returns of earlier cases */
    shmem_free(p);
    p = shmem_malloc(80 * MIB);
    size_t before = weft_segment_present(&weft_windows.heap);
    shmem_free(p);
    int returns = count_returns(20, 80 * MIB, 0);
    EXPECT(returns == 0, "%d times", returns);
    EXPECT(weft_segment_present(&weft_windows.heap) >= before, "less is there");
    returns = count_returns(40, 80 * MIB, 2);
    EXPECT(returns <= 12, "%d of 40 times", returns);
    EXPECT(count_returns(1, 80 * MIB, 300) == 1, "it never goes back now, whatever the calls");
}

/* Checks that an object of 32 MiB has memory before it is touched, and keeps it when it is
 * freed. */
static void expect_committed(const char *how) {
    begin();
    char *p = shmem_malloc(100 * MIB);
    EXPECT(p && present_mib() >= 100, "%s: %zu MiB", how, present_mib());
    shmem_free(p);
    shmem_free(shmem_malloc(8));
    shmem_free(shmem_malloc(8));
    EXPECT(present_mib() >= 100, "%s: %zu MiB after free", how, present_mib());
    shmem_finalize();
}

static void at_once(void) {
    tap_case("memory is there at once, and stays, where any PE wants it");
    if (me == npes - 1)
        setenv("WEFT_COMMIT", "now", 1);
    expect_committed("WEFT_COMMIT=now");
    setenv("WEFT_COMMIT", "auto", 1);
    setenv("SHMEM_SYMMETRIC_SIZE", "4m", 1);
    expect_committed("SHMEM_SYMMETRIC_SIZE");
    unsetenv("WEFT_COMMIT");
    unsetenv("SHMEM_SYMMETRIC_SIZE");
}

/* The policy of the process: 0, or the one that the tests run under. */
static int policy_at(void *p) {
    int policy = -1;
    unsigned long nodes[16];
    unsigned flags = p ? MPOL_F_ADDR : 0;
    if (syscall(SYS_get_mempolicy, &policy, nodes, 8 * sizeof nodes, p, flags) != 0)
        return -1;
    return policy;
}

/* The result of a call that commits memory: a kernel older than Linux 5.14 does not know it. */
static enum { COMMITS, REFUSES, KNOWS_NONE } kernel;

/* Replaces the C library's function. */
int madvise(void *at, size_t bytes, int advice) {
    if (kernel != COMMITS && advice == 23) { /* MADV_POPULATE_WRITE */
        errno = kernel == REFUSES ? EFAULT : EINVAL;
        return -1;
    }
    return (int)syscall(SYS_madvise, at, bytes, advice);
}

static void older_kernel(void) {
    tap_case(
        "a kernel that cannot populate a mapping has its pages touched, and nothing is changed");
    struct weft_segment *heap = &weft_windows.heap;
    unsigned char *p = shmem_malloc(4 * MIB);
    memset(p, 7, 4096);
    size_t offset = (uintptr_t)p - heap->window.local;
    kernel = KNOWS_NONE;
    int error = weft_segment_commit_range(heap, offset, 4 * MIB);
    kernel = COMMITS;
    EXPECT(error == 0, "%d", error);
    EXPECT(present_mib() >= 4, "%zu MiB are there", present_mib());
    EXPECT(p[0] == 7 && p[4095] == 7 && p[4096] == 0, "%d %d %d", p[0], p[4095], p[4096]);
    shmem_free(p);
}

static void refused(void) {
    tap_case(
        "a growth that one PE cannot follow leaves no memory on the others, and can be repeated");
    struct weft_segment *heap = &weft_windows.heap;
    size_t before = weft_segment_present(heap), more = heap->window.bytes + 4 * MIB;
    int extents = (int)heap->nextents;
    kernel = me == npes - 1 ? REFUSES : COMMITS;
    EXPECT(!shmem_malloc(more), "%zu bytes", more);
    kernel = COMMITS;
    EXPECT(weft_segment_present(heap) == before, "%zu bytes, before %zu",
           weft_segment_present(heap), before);
    EXPECT((int)heap->nextents == extents, "%d extents, before %d", (int)heap->nextents, extents);
    void *p = shmem_malloc(more);
    EXPECT(p != NULL, "%zu bytes afterwards", more);
    EXPECT((int)heap->nextents == extents + 1, "%d extents, before %d", (int)heap->nextents,
           extents);
    shmem_free(p);
}

static void prefers_own_node(void) {
    tap_case("the own slot prefers the node of its PE");
    char *p = shmem_malloc(MIB);
    if (policy_at(NULL) != MPOL_DEFAULT)
        printf("# the process has a policy, or there are none\n");
    else
        EXPECT(policy_at(p) == MPOL_PREFERRED, "%d", policy_at(p));
    shmem_free(p);
}

/* Returns why the cases cannot run: they need memory for all PEs, and addresses. PE 0 decides,
 * because others may see other numbers. */
static const char *why_not(void) {
    if (weft_windows.heap.slot_bytes < 2048 * MIB)
        return "the heap's slot is too small";
    if (weft_machine_counts_pages())
        return "vm.overcommit_memory is 2";
    return weft_machine_memory_room(0, SIZE_MAX, NULL) < 4096 * MIB ? "there are less than 4 GiB"
                                                                    : NULL;
}

int main(void) {
    static int skipped;
    begin();
    const char *reason = me == 0 ? why_not() : NULL;
    tap_start(me);
    for (int pe = 0; reason && pe < npes; pe++)
        shmem_int_p(&skipped, 1, pe);
    shmem_barrier_all();
    if (skipped) {
        if (me == 0)
            printf("1..0 # SKIP %s\n", reason);
        shmem_finalize();
        return 0;
    }
    untouched();
    touched_by_a_peer();
    zeros_again();
    comes_back();
    loops();
    refused();
    older_kernel();
    prefers_own_node();
    shmem_finalize();
    at_once();
    return tap_finish();
}
